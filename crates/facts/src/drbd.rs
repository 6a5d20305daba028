//! Facts and settings `drbd.<resource>.…`: what is in force for running resources of DRBD, defaults too. Read
//! only when asked for by this prefix, because the kernel tells it to DRBD's own program alone, which has to
//! be started for it.
//!
//! In: what `drbdsetup show` prints. Out: values by key; a written value is set while the resource runs, and
//! what its file says stays as it is. It never touches a resource that does not run, and writes no file.

mod shown;

use std::time::Duration;

use linerate_model::fact::{FactDecl, FactValue};
use linerate_model::step::{Argv, DRBD_OPTIONS, DrbdForm, DrbdOption, drbd_option, drbd_peer, drbd_show};
use linerate_sys::root::{ReadError, Root};

use self::shown::{Running, read_all};
use super::fact::Fact;
use super::readings::{Readings, fact, setting};
use super::view::View;
use crate::change::setting::{Persist, Setting, SettingError};
use crate::run;

/// The topic.
pub(super) struct Drbd;

const PREFIX: &str = "drbd.";
/// Field of the key that says whether a resource looks for its peer.
const PEER: &str = "peer";
/// How long the program may take: it asks the kernel and ends.
const LIMIT: Duration = Duration::from_secs(20);
/// The kernel has the module, or has it built in.
const MODULE: &str = "/sys/module/drbd";

/// What runs here; nothing where DRBD is not loaded, without starting a program.
fn running(root: &Root) -> Result<Vec<Running>, SettingError> {
    let text = root.answer("drbd_show", || {
        if root.list(MODULE).is_err() {
            Ok(String::new())
        } else {
            printed(&drbd_show()).map_err(|e| ReadError::Other(e.to_string()))
        }
    })?;
    Ok(read_all(&text))
}

/// Runs a program of DRBD and returns what it printed.
fn printed(argv: &Argv) -> Result<String, SettingError> {
    let command = argv.join(" ");
    match run::run(argv, LIMIT, run::Until::Limit) {
        Ok(Some(seen)) if seen.is_good() => Ok(seen.out),
        Ok(Some(seen)) => {
            let words = seen.err.trim().replace('\n', "; ");
            Err(SettingError::Failed { command, code: seen.code, words })
        }
        Ok(None) => Err(SettingError::Late { command, limit_s: LIMIT.as_secs() }),
        Err(error) => Err(SettingError::NotRun { command, reason: error.to_string() }),
    }
}

/// `drbd.r0.net.max-buffers` -> (`r0`, `net.max-buffers`). A `.` in the name of a resource is written `/`.
fn split(key: &str) -> Option<(String, &str)> {
    let (resource, field) = key.strip_prefix(PREFIX)?.split_once('.')?;
    (!resource.is_empty() && !field.is_empty()).then(|| (resource.replace('/', "."), field))
}

/// Whether a key is a setting here.
pub(super) fn is_setting(key: &str) -> bool {
    split(key).is_some_and(|(_, field)| field == PEER || option_of(field).is_some())
}

fn option_of(field: &str) -> Option<&'static DrbdOption> {
    let (section, name) = field.split_once('.')?;
    drbd_option(section, name)
}

/// A value in the form in which the program shows it.
fn value(text: &str) -> FactValue {
    text.parse::<i64>().map_or_else(|_| FactValue::Text(text.to_owned()), FactValue::Int)
}

/// A value as a fact has it. What cannot be changed while the resource runs is as the program shows it.
fn shown(section: &str, name: &str, text: String) -> String {
    match drbd_option(section, name) {
        Some(option) => option.shown(text),
        None => text,
    }
}

fn unit(form: DrbdForm) -> &'static str {
    match form {
        DrbdForm::Count(..) => "number",
        DrbdForm::Switch | DrbdForm::Size | DrbdForm::Word(_) | DrbdForm::Digest => "text",
    }
}

impl Fact for Drbd {
    fn declarations(&self) -> Vec<FactDecl> {
        let mut all = vec![
            setting(
                "drbd.*.peer",
                "flag",
                "Whether the resource looks for its peer or has it; only when asked for.",
            ),
            fact(
                "drbd.*.al_covers_percent",
                "%",
                "Share of its largest device that the activity log covers; only when asked for.",
            ),
            fact("drbd.*.address", "text", "Own address of its connection; only when asked for."),
            fact("drbd.*.address_family", "text", "Family of that address; only when asked for."),
        ];
        for option in DRBD_OPTIONS {
            let pattern = format!("drbd.*.{}.{}", option.section.word(), option.name);
            all.push(setting(
                &pattern,
                unit(option.form),
                &format!("{} Only when asked for.", option.describes),
            ));
        }
        for section in ["net", "disk"] {
            let pattern = format!("drbd.*.{section}.*");
            all.push(fact(&pattern, "text", "Other options of a running resource; only when asked for."));
        }
        all
    }

    fn of_namespace(&self) -> bool {
        false
    }

    fn read(&self, view: &View<'_>, out: &mut Readings) {
        if !view.prefixes.iter().any(|prefix| prefix.starts_with(PREFIX)) {
            return;
        }
        let resources = match running(view.root) {
            Ok(resources) => resources,
            Err(error) => return out.gap("drbd.*", &error),
        };
        for resource in resources {
            let head = format!("{PREFIX}{}", resource.name.replace('.', "/"));
            out.flag(format!("{head}.{PEER}"), resource.has_peer());
            if let Some(percent) = log_covers(view.root, &resource) {
                out.int(format!("{head}.al_covers_percent"), percent);
            }
            if let Some((family, address)) = resource.address() {
                out.text(format!("{head}.address_family"), family);
                out.text(format!("{head}.address"), address);
            }
            for section in ["net", "disk"] {
                for name in resource.names(section) {
                    if let Ok(text) = resource.one_value(section, &name)
                        && let text = shown(section, &name, text)
                        && !text.is_empty()
                    {
                        out.put(format!("{head}.{section}.{name}"), value(&text));
                    }
                }
            }
        }
    }
}

/// Share of the largest device that can be written without a note in the activity log first, percent:
/// `al-extents` parts of 4 MiB.
fn log_covers(root: &Root, resource: &Running) -> Option<i64> {
    const EXTENT_SECTORS: i64 = (4 << 20) / 512;
    let extents: i64 = resource.one_value("disk", "al-extents").ok()?.parse().ok()?;
    let sizes =
        resource.minors().filter_map(|minor| root.number(&format!("/sys/block/drbd{minor}/size")).ok());
    let sectors = sizes.max().filter(|sectors| *sectors > 0)?;
    Some((extents.saturating_mul(EXTENT_SECTORS).saturating_mul(100) / sectors).min(100))
}

fn of_key(root: &Root, key: &str) -> Result<(Running, String), SettingError> {
    let (name, field) = split(key).ok_or(SettingError::NotAKey("no key of a resource of DRBD"))?;
    let resource = running(root)?.into_iter().find(|r| r.name == name);
    Ok((resource.ok_or(SettingError::NoResource(name))?, field.to_owned()))
}

impl Setting for Drbd {
    fn read(&self, root: &Root, key: &str) -> Result<FactValue, SettingError> {
        let (resource, field) = of_key(root, key)?;
        if field == PEER {
            return Ok(FactValue::Flag(resource.has_peer()));
        }
        let option = option_of(&field)
            .ok_or(SettingError::NotAKey("no option of DRBD that can be changed while it runs"))?;
        resource.one_value(option.section.word(), option.name).map(|text| value(&option.shown(text)))
    }

    fn write(&self, root: &Root, key: &str, new: &FactValue) -> Result<(), SettingError> {
        let (resource, field) = of_key(root, key)?;
        if field == PEER {
            let FactValue::Flag(wanted) = new else { return Err(SettingError::NotASwitch(new.clone())) };
            // Told to look for a peer that it looks for already, it fails with "address in use".
            if *wanted == resource.has_peer() {
                return Ok(());
            }
            let argv = drbd_peer(&resource.name, *wanted)?;
            return printed(&argv).map(drop);
        }
        let option = option_of(&field)
            .ok_or(SettingError::NotAKey("no option of DRBD that can be changed while it runs"))?;
        let subjects = resource.subjects(option.section);
        if subjects.is_empty() {
            return Err(SettingError::NoConnection { resource: resource.name, field });
        }
        for subject in subjects {
            printed(&option.set(&subject, new)?)?;
        }
        Ok(())
    }

    fn persist(&self, key: &str, new: &FactValue) -> Persist {
        let line = match split(key).map(|(resource, field)| (resource, option_of(field))) {
            Some((resource, Some(option))) => format!(
                "the file of {resource} belongs to both hosts: write `{} {new};` into its `{}` section on both, then `drbdadm adjust {resource}`",
                option.name,
                option.section.word()
            ),
            _ => "a peer that is left is looked for again after a reboot".to_owned(),
        };
        Persist::Impossible { reason: line }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_name_a_resource_and_an_option_that_can_be_changed() {
        assert_eq!(split("drbd.a/b.net.max-buffers"), Some(("a.b".to_owned(), "net.max-buffers")));
        for key in
            ["drbd.r0.net.max-buffers", "drbd.r0.disk.al-extents", "drbd.r0.disk.c-max-rate", "drbd.r0.peer"]
        {
            assert!(is_setting(key), "{key}");
        }
        for key in
            ["drbd.r0", "drbd..peer", "drbd.r0.net.sndbuf-size", "drbd.r0.net.shared-secret", "nic.r0.peer"]
        {
            assert!(!is_setting(key), "{key}");
        }
    }

    #[test]
    fn what_cannot_be_kept_says_what_to_write_where() {
        let Persist::Impossible { reason } = Drbd.persist("drbd.r0.disk.al-extents", &FactValue::Int(6007))
        else {
            panic!("the file is not ours");
        };
        assert!(reason.contains("`al-extents 6007;`") && reason.contains("`disk` section"), "{reason}");
    }

    #[test]
    fn a_recorded_host_answers_from_its_record() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::recorded(folder.path());
        assert!(Setting::read(&Drbd, &root, "drbd.r0.peer").is_err());
        assert!(Setting::write(&Drbd, &root, "drbd.r0.peer", &FactValue::Flag(false)).is_err());
    }
}
