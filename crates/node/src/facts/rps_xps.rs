//! Facts and settings `nic.*.queue.*`: which CPUs process what a queue receives (RPS), and which send through
//! it (XPS).

use linerate_model::fact::{FactDecl, FactValue};
use linerate_sys::root::Root;
use linerate_sys::sysfs;

use super::boot::{is_plain, unit};
use super::fact::Fact;
use super::readings::{Readings, fact, flawed, setting, text_of};
use super::view::{View, key_name, split_key};
use crate::change::setting::{Persist, Setting, SettingError};

/// The topic.
pub(super) struct Steering;

pub(super) fn is_setting(key: &str) -> bool {
    file_of(key).is_some()
}

/// `nic.eth0.queue.rx-0.rps_cpus` -> its file in `/sys`.
fn file_of(key: &str) -> Option<String> {
    let (nic, field) = split_key(key)?;
    let (queue, file) = field.strip_prefix("queue.")?.split_once('.')?;
    let (direction, number) = queue.split_once('-')?;
    number.parse::<u16>().ok()?;
    (!nic.contains('/') && [("rx", "rps_cpus"), ("tx", "xps_cpus")].contains(&(direction, file)))
        .then(|| format!("/sys/class/net/{nic}/queues/{queue}/{file}"))
}

/// The keys of all queues that a device has now.
pub(super) fn keys(root: &Root, nic: &str) -> Vec<String> {
    let queues = root.list(&format!("/sys/class/net/{nic}/queues")).unwrap_or_default();
    let key = |queue: String| {
        let file = if queue.starts_with("rx-") { "rps_cpus" } else { "xps_cpus" };
        format!("nic.{}.queue.{queue}.{file}", key_name(nic))
    };
    queues.into_iter().map(key).filter(|key| is_setting(key)).collect()
}

impl Fact for Steering {
    fn declarations(&self) -> Vec<FactDecl> {
        vec![
            setting(
                "nic.*.queue.rx-*.rps_cpus",
                "text",
                "CPUs that process what the queue receives, as a hexadecimal mask; 0 is off.",
            ),
            fact(
                "nic.*.queue.rx-*.rps_flow_cnt",
                "flows",
                "Flows of the queue that follow their application (RFS).",
            ),
            setting(
                "nic.*.queue.tx-*.xps_cpus",
                "text",
                "CPUs that send through the queue, as a hexadecimal mask.",
            ),
        ]
    }

    fn read(&self, view: &View<'_>, out: &mut Readings) {
        for link in view.links().iter().filter(|l| !l.loopback) {
            let Some(folder) = view.sys_folder(link) else { continue };
            let nic = format!("nic.{}.queue", key_name(&link.name));
            for queue in view.root.list(&format!("{folder}/queues")).unwrap_or_default() {
                let file = if queue.starts_with("rx-") { "rps_cpus" } else { "xps_cpus" };
                // XPS is refused where there is only one queue: nothing to steer, no gap.
                if let Ok(text) = view.root.read(&format!("{folder}/queues/{queue}/{file}"))
                    && let Some(mask) = sysfs::normal_mask(&text)
                {
                    out.text(format!("{nic}.{queue}.{file}"), mask);
                }
                if file == "rps_cpus"
                    && let Ok(flows) = view.root.number(&format!("{folder}/queues/{queue}/rps_flow_cnt"))
                {
                    out.int(format!("{nic}.{queue}.rps_flow_cnt"), flows);
                }
            }
        }
    }
}

impl Setting for Steering {
    fn read(&self, root: &Root, key: &str) -> Result<FactValue, SettingError> {
        let file = file_of(key).ok_or(SettingError::NotAKey("not a key of a queue"))?;
        let text = root.read(&file)?;
        sysfs::normal_mask(&text).map(FactValue::Text).ok_or(SettingError::NoMask)
    }

    fn write(&self, root: &Root, key: &str, value: &FactValue) -> Result<(), SettingError> {
        let file = file_of(key).ok_or(SettingError::NotAKey("not a key of a queue"))?;
        let mask = text_of(value)?;
        if sysfs::normal_mask(&mask).is_none() {
            return Err(flawed(&mask, "not a hexadecimal mask of CPUs"));
        }
        Ok(root.write(&file, &mask)?)
    }

    fn persist(&self, key: &str, value: &FactValue) -> Persist {
        let (Some(file), Some((nic, field))) = (file_of(key), split_key(key)) else {
            return Persist::Impossible { reason: "not a key of a queue".to_string() };
        };
        let mask = value.to_string();
        if sysfs::normal_mask(&mask).is_none() || !is_plain(&nic) {
            return Persist::Impossible { reason: format!("'{mask}' on '{nic}' cannot stand in a command") };
        }
        unit(
            &format!("{nic}-{field}"),
            &format!("{field} of {nic}"),
            format!("/bin/sh -c 'echo {mask} > {file}'"),
        )
    }
}
