//! Facts and settings `nic.*.qdisc`, the root queueing discipline of a device by its kind, and
//! `nic.*.qdisc_rate_bit`, the rate of a token bucket there.
//!
//! The kind alone does not bring a token bucket back. `nic.*.qdisc_exact` is a setting too: the raw
//! parameters of every discipline of the device, journalled and restored beside the kind. It is no fact,
//! because it says nothing to people.

use linerate_model::fact::{FactDecl, FactValue};
use linerate_sys::qdisc::{self, Qdisc, ROOT};
use linerate_sys::root::{ReadError, Root};

use super::boot::{is_plain, unit};
use super::fact::Fact;
use super::readings::{Readings, bytes_of, flawed, hex_of, setting, text_of};
use super::view::{View, key_name, split_key};
use crate::change::setting::{Persist, Setting, SettingError};

/// The topic.
pub(super) struct Qdiscs;

/// Value of the exact form when the kernel attached its default.
const DEFAULT: &str = "default";

pub(super) fn is_setting(key: &str) -> bool {
    split_key(key).is_some_and(|(_, field)| ["qdisc", "qdisc_exact", "qdisc_rate_bit"].contains(&field))
}

impl Fact for Qdiscs {
    fn declarations(&self) -> Vec<FactDecl> {
        vec![
            setting("nic.*.qdisc", "text", "Kind of the root queueing discipline."),
            setting("nic.*.qdisc_rate_bit", "bit/s", "Rate of a token bucket at the root."),
        ]
    }

    fn read(&self, view: &View<'_>, out: &mut Readings) {
        for link in view.links() {
            let nic = format!("nic.{}", key_name(&link.name));
            out.text(format!("{nic}.qdisc"), link.qdisc.as_deref().unwrap_or_default());
            let root = view.qdiscs().iter().find(|q| q.link == link.index && q.is_root());
            if let Some(rate) = root.and_then(Qdisc::rate_bps) {
                out.int(format!("{nic}.qdisc_rate_bit"), rate);
            }
        }
    }
}

/// Index, kind of the root and disciplines of a device.
fn state(root: &Root, nic: &str) -> Result<(u32, String, Vec<Qdisc>), SettingError> {
    let view = View::new(root, None, &[]);
    let link =
        view.links().iter().find(|l| l.name == nic).ok_or_else(|| SettingError::NoDevice(nic.to_owned()))?;
    let lacks = || SettingError::Lacks { device: nic.to_owned(), what: "queueing discipline".to_owned() };
    let kind = link.qdisc.clone().ok_or_else(lacks)?;
    Ok((
        link.index,
        kind,
        view.qdiscs().iter().filter(|q| q.link == link.index && !q.is_ingress()).cloned().collect(),
    ))
}

/// All disciplines as text: `kind handle parent options`, numbers in hexadecimal, separated by `;`.
fn exact(all: &[Qdisc]) -> String {
    let made_by_hand = all.iter().any(|q| q.handle != 0);
    if !made_by_hand {
        return DEFAULT.to_string();
    }
    let mut ordered: Vec<&Qdisc> = all.iter().filter(|q| q.handle != 0).collect();
    ordered.sort_by_key(|q| (!q.is_root(), q.parent));
    let one = |q: &&Qdisc| {
        let options = hex_of(&q.options);
        format!(
            "{} {:x} {:x} {}",
            q.kind,
            q.handle,
            q.parent,
            if options.is_empty() { "-" } else { &options }
        )
    };
    ordered.iter().map(one).collect::<Vec<_>>().join(";")
}

fn parse_exact(link: u32, text: &str) -> Option<Vec<Qdisc>> {
    if text == DEFAULT {
        return Some(Vec::new());
    }
    text.split(';')
        .map(|one| {
            let mut words = one.split(' ');
            let kind = words.next().filter(|k| !k.is_empty())?.to_string();
            let handle = u32::from_str_radix(words.next()?, 16).ok()?;
            let parent = u32::from_str_radix(words.next()?, 16).ok()?;
            let options = words.next().filter(|_| words.next().is_none())?;
            let options = if options == "-" { Vec::new() } else { bytes_of(options)? };
            Some(Qdisc { link, kind, handle, parent, options })
        })
        .collect()
}

/// Refuses to replace what could not be put back.
fn check_restorable(all: &[Qdisc]) -> Result<(), SettingError> {
    match all.iter().find(|q| !q.is_restorable()) {
        None => Ok(()),
        Some(q) => Err(SettingError::NotRestorable(q.kind.clone())),
    }
}

fn write_kind(root: &Root, nic: &str, kind: &str) -> Result<(), SettingError> {
    let (link, now, all) = state(root, nic)?;
    if now == kind {
        return Ok(());
    }
    check_restorable(&all)?;
    let wanted = Qdisc { link, kind: kind.to_string(), handle: 0, parent: ROOT, options: Vec::new() };
    check_restorable(std::slice::from_ref(&wanted))?;
    let before = all;
    qdisc::delete_root(link)?;
    if state(root, nic)?.1 == kind {
        return Ok(());
    }
    qdisc::replace_root(link, kind).map_err(|e| {
        // A kind that this kernel lacks must not leave the device without its old discipline.
        let back = before.iter().filter(|q| q.handle != 0).try_for_each(qdisc::restore);
        SettingError::Discipline { kind: kind.to_owned(), reason: e.to_string(), is_back: back.is_ok() }
    })
}

fn write_exact(root: &Root, nic: &str, text: &str) -> Result<(), SettingError> {
    let (link, _, all) = state(root, nic)?;
    let wanted = parse_exact(link, text).ok_or(SettingError::NotAKey("not a list of disciplines"))?;
    check_restorable(&wanted)?;
    check_restorable(&all)?;
    qdisc::delete_root(link)?;
    Ok(wanted.iter().try_for_each(qdisc::restore)?)
}

/// The token bucket at the root of a device.
fn bucket(root: &Root, nic: &str) -> Result<Qdisc, SettingError> {
    let all = state(root, nic)?.2;
    let found = all.into_iter().find(|q| q.is_root() && q.rate_bps().is_some());
    found.ok_or_else(|| SettingError::Lacks { device: nic.to_owned(), what: "token bucket".to_owned() })
}

fn write_rate(root: &Root, nic: &str, value: &FactValue) -> Result<(), SettingError> {
    let flaw = || flawed(value, "not a rate in bit/s, in steps of 8, that a token bucket takes");
    let rate: u64 = value.to_string().trim().parse().map_err(|_| flaw())?;
    let now = bucket(root, nic)?;
    if now.rate_bps() == Some(rate) {
        return Ok(());
    }
    let wanted = qdisc::with_rate(&now, rate).filter(|q| q.rate_bps() == Some(rate)).ok_or_else(flaw)?;
    Ok(qdisc::restore(&wanted)?)
}

impl Setting for Qdiscs {
    fn read(&self, root: &Root, key: &str) -> Result<FactValue, SettingError> {
        match split_key(key) {
            Some((nic, "qdisc")) => Ok(FactValue::Text(state(root, &nic)?.1)),
            Some((nic, "qdisc_exact")) => Ok(FactValue::Text(exact(&state(root, &nic)?.2))),
            Some((nic, "qdisc_rate_bit")) => {
                let rate = bucket(root, &nic)?.rate_bps().and_then(|rate| i64::try_from(rate).ok());
                Ok(FactValue::Int(rate.unwrap_or(i64::MAX)))
            }
            _ => Err(SettingError::NotAKey("not a key of a queueing discipline")),
        }
    }

    fn write(&self, root: &Root, key: &str, value: &FactValue) -> Result<(), SettingError> {
        let text = text_of(value)?;
        if !root.is_live() {
            return Err(ReadError::Recorded.into());
        }
        match split_key(key) {
            Some((nic, "qdisc_rate_bit")) => write_rate(root, &nic, value),
            Some((nic, "qdisc")) => write_kind(root, &nic, &text),
            Some((nic, "qdisc_exact")) => write_exact(root, &nic, &text),
            _ => Err(SettingError::NotAKey("not a key of a queueing discipline")),
        }
    }

    fn related(&self, key: &str) -> Vec<String> {
        match split_key(key) {
            Some((nic, "qdisc" | "qdisc_rate_bit")) => vec![format!("nic.{}.qdisc_exact", key_name(&nic))],
            _ => Vec::new(),
        }
    }

    fn persist(&self, key: &str, value: &FactValue) -> Persist {
        let Some((nic, field @ ("qdisc" | "qdisc_rate_bit"))) = split_key(key) else {
            let reason = "only the kind of a discipline and a rate can be made to stay".to_string();
            return Persist::Impossible { reason };
        };
        let is_rate = field == "qdisc_rate_bit";
        if is_rate && is_plain(&nic) {
            return persist_rate(&nic, value);
        }
        let kind = value.to_string();
        if !is_plain(&nic) || !is_plain(&kind) || kind == "tbf" {
            return Persist::Impossible { reason: format!("'{kind}' on '{nic}' is not one command") };
        }
        let command = match kind.as_str() {
            // What the kernel attaches when nothing else is; that nothing was there is no failure.
            "noqueue" | "mq" => format!("/bin/sh -c '/usr/sbin/tc qdisc del dev {nic} root || true'"),
            _ => format!("/usr/sbin/tc qdisc replace dev {nic} root {kind}"),
        };
        unit(&format!("{nic}-qdisc"), &format!("queueing discipline of {nic}"), command)
    }
}

/// Part of a second whose bytes a bucket holds that is made at boot, and how long a packet may wait in its
/// queue, milliseconds.
const BUCKET_PART: u64 = 250;
const QUEUE_MS: u32 = 50;
/// A bucket holds at least one aggregated packet, bytes.
const BUCKET_BYTES_MIN: u64 = 65_536;

fn persist_rate(nic: &str, value: &FactValue) -> Persist {
    let FactValue::Int(rate @ 8..) = value else {
        return Persist::Impossible { reason: format!("'{value}' is not a rate") };
    };
    let bytes = (u64::try_from(*rate).unwrap_or(0) / 8 / BUCKET_PART).max(BUCKET_BYTES_MIN);
    let command = format!(
        "/usr/sbin/tc qdisc replace dev {nic} root tbf rate {rate}bit burst {bytes} latency {QUEUE_MS}ms"
    );
    unit(&format!("{nic}-qdisc"), &format!("rate of {nic}"), command)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_qdisc() -> impl Strategy<Value = Qdisc> {
        ("[a-z_]{1,8}", 1_u32.., any::<u32>(), proptest::collection::vec(any::<u8>(), 0..40))
            .prop_map(|(kind, handle, parent, options)| Qdisc { link: 7, kind, handle, parent, options })
    }

    proptest! {
        #[test]
        fn the_exact_form_comes_back(all in proptest::collection::vec(any_qdisc(), 1..5)) {
            let mut ordered = all.clone();
            ordered.sort_by_key(|q| (!q.is_root(), q.parent));
            prop_assert_eq!(parse_exact(7, &exact(&all)), Some(ordered));
        }

        #[test]
        fn garbage_is_refused_not_panicked_on(text in "\\PC{0,60}") {
            let _ = parse_exact(1, &text);
        }
    }
}
