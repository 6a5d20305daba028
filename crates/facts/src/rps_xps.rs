//! Facts and settings `nic.*.queue.*`: which CPUs process what a queue receives (RPS), how many flows of it
//! follow their application (RFS), and which CPUs send through it (XPS).

use linerate_model::fact::{FactDecl, FactValue};
use linerate_sys::root::Root;
use linerate_sys::sysfs;

use super::boot::{is_plain, unit};
use super::fact::Fact;
use super::readings::{Readings, flawed, number_of, setting, text_of};
use super::view::{View, key_name, split_key};
use crate::change::setting::{Persist, Setting, SettingError};

/// The topic.
pub(super) struct Steering;

pub(super) fn is_setting(key: &str) -> bool {
    file_of(key).is_some()
}

/// Settings of queues: direction, file.
const FILES: [(&str, &str); 3] = [("rx", CPUS), ("rx", FLOWS), ("tx", "xps_cpus")];
const CPUS: &str = "rps_cpus";
const FLOWS: &str = "rps_flow_cnt";
/// Most flows of a queue that are written: the kernel takes memory for each.
const FLOWS_MAX: u32 = 1 << 20;

/// Whether a file holds a number of flows, and no mask.
fn counts_flows(key: &str) -> bool {
    key.ends_with(FLOWS)
}

/// `nic.eth0.queue.rx-0.rps_cpus` -> its file in `/sys`.
fn file_of(key: &str) -> Option<String> {
    let (nic, field) = split_key(key)?;
    let (queue, file) = field.strip_prefix("queue.")?.split_once('.')?;
    let (direction, number) = queue.split_once('-')?;
    number.parse::<u16>().ok()?;
    (!nic.contains('/') && FILES.contains(&(direction, file)))
        .then(|| format!("/sys/class/net/{nic}/queues/{queue}/{file}"))
}

/// The keys of all queues that a device has now.
pub(super) fn keys(root: &Root, nic: &str) -> Vec<String> {
    let queues = root.list(&format!("/sys/class/net/{nic}/queues")).unwrap_or_default();
    let of_queue =
        |queue: String| FILES.map(|(_, file)| format!("nic.{}.queue.{queue}.{file}", key_name(nic)));
    queues.into_iter().flat_map(of_queue).filter(|key| is_setting(key)).collect()
}

impl Fact for Steering {
    fn declarations(&self) -> Vec<FactDecl> {
        vec![
            setting(
                "nic.*.queue.rx-*.rps_cpus",
                "text",
                "CPUs that process what the queue receives, as a hexadecimal mask; 0 is off.",
            ),
            setting(
                "nic.*.queue.rx-*.rps_flow_cnt",
                "flows",
                "Flows of the queue that follow their application (RFS): 0 or a power of two.",
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
                let file = if queue.starts_with("rx-") { CPUS } else { "xps_cpus" };
                // XPS is refused where there is only one queue: nothing to steer, no gap.
                if let Ok(text) = view.root.read(&format!("{folder}/queues/{queue}/{file}"))
                    && let Some(mask) = sysfs::normal_mask(&text)
                {
                    out.text(format!("{nic}.{queue}.{file}"), mask);
                }
                if file == CPUS
                    && let Ok(flows) = view.root.number(&format!("{folder}/queues/{queue}/{FLOWS}"))
                {
                    out.int(format!("{nic}.{queue}.{FLOWS}"), flows);
                }
            }
        }
    }
}

/// A number of flows that the kernel takes as it is: it rounds others up to the next power of two.
fn flows(value: &FactValue) -> Result<u32, SettingError> {
    let count = number_of(value)?;
    if count <= FLOWS_MAX && (count == 0 || count.is_power_of_two()) {
        return Ok(count);
    }
    Err(flawed(&count, "neither 0 nor a power of two up to 1048576"))
}

impl Setting for Steering {
    fn read(&self, root: &Root, key: &str) -> Result<FactValue, SettingError> {
        let file = file_of(key).ok_or(SettingError::NotAKey("not a key of a queue"))?;
        if counts_flows(key) {
            return Ok(FactValue::Int(root.number(&file)?));
        }
        let text = root.read(&file)?;
        sysfs::normal_mask(&text).map(FactValue::Text).ok_or(SettingError::NoMask)
    }

    fn write(&self, root: &Root, key: &str, value: &FactValue) -> Result<(), SettingError> {
        let file = file_of(key).ok_or(SettingError::NotAKey("not a key of a queue"))?;
        if counts_flows(key) {
            return Ok(root.write(&file, &flows(value)?.to_string())?);
        }
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
        let text = value.to_string();
        let good = if counts_flows(key) { flows(value).is_ok() } else { sysfs::normal_mask(&text).is_some() };
        if !good || !is_plain(&nic) {
            return Persist::Impossible { reason: format!("'{text}' on '{nic}' cannot stand in a command") };
        }
        unit(
            &format!("{nic}-{field}"),
            &format!("{field} of {nic}"),
            format!("/bin/sh -c 'echo {text} > {file}'"),
        )
    }
}
