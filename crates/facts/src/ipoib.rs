//! Fact and setting `nic.*.ipoib_mode`: how IP over InfiniBand sends, which decides about its largest MTU.

use linerate_model::fact::{FactDecl, FactValue};
use linerate_sys::root::Root;

use super::boot::{is_plain, unit};
use super::fact::Fact;
use super::readings::{Readings, flawed, setting, text_of};
use super::view::{View, key_name, split_key};
use crate::change::setting::{Persist, Setting, SettingError};

/// The topic.
pub(super) struct Ipoib;

const MODES: [&str; 2] = ["datagram", "connected"];

pub(super) fn is_setting(key: &str) -> bool {
    file_of(key).is_some()
}

/// `nic.ib0.ipoib_mode` -> the device and its file.
fn file_of(key: &str) -> Option<(String, String)> {
    let (nic, field) = split_key(key)?;
    let file = format!("/sys/class/net/{nic}/mode");
    (field == "ipoib_mode" && !nic.contains('/')).then_some((nic, file))
}

impl Fact for Ipoib {
    fn declarations(&self) -> Vec<FactDecl> {
        vec![setting(
            "nic.*.ipoib_mode",
            "text",
            "How IP over InfiniBand sends: datagram, with an MTU of up to 4092, or connected, with up to 65520.",
        )]
    }

    fn read(&self, view: &View<'_>, out: &mut Readings) {
        for link in view.links().iter().filter(|l| !l.loopback) {
            let Some(folder) = view.sys_folder(link) else { continue };
            // Other devices have no such file, or one with another meaning.
            if let Ok(mode) = view.root.line(&format!("{folder}/mode"))
                && MODES.contains(&mode.as_str())
            {
                out.text(format!("nic.{}.ipoib_mode", key_name(&link.name)), mode);
            }
        }
    }
}

impl Setting for Ipoib {
    fn read(&self, root: &Root, key: &str) -> Result<FactValue, SettingError> {
        let (_, file) = file_of(key).ok_or(SettingError::NotAKey("not a key of a device"))?;
        Ok(FactValue::Text(root.line(&file)?))
    }

    fn write(&self, root: &Root, key: &str, value: &FactValue) -> Result<(), SettingError> {
        let (_, file) = file_of(key).ok_or(SettingError::NotAKey("not a key of a device"))?;
        let mode = text_of(value)?;
        if !MODES.contains(&mode.as_str()) {
            return Err(flawed(&mode, "neither datagram nor connected"));
        }
        Ok(root.write(&file, &mode)?)
    }

    /// Without connected mode the largest MTU is that of a datagram.
    fn related(&self, key: &str) -> Vec<String> {
        split_key(key).map(|(nic, _)| format!("nic.{}.mtu", key_name(&nic))).into_iter().collect()
    }

    fn persist(&self, key: &str, value: &FactValue) -> Persist {
        let mode = value.to_string();
        match file_of(key).filter(|(nic, _)| is_plain(nic) && MODES.contains(&mode.as_str())) {
            Some((nic, file)) => unit(
                &format!("{nic}-mode"),
                &format!("mode of {nic}"),
                format!("/bin/sh -c 'echo {mode} > {file}'"),
            ),
            None => Persist::Impossible { reason: format!("'{mode}' is no mode of a device") },
        }
    }
}
