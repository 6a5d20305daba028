//! Settings inside a network namespace of this host (`netns.<path>|<key>`).

use std::path::Path;

use linerate_model::fact::FactValue;
use linerate_sys::place;
use linerate_sys::root::Root;

use crate::change::setting::{Persist, Setting, SettingError};

/// Runs the setting of the key inside the namespace.
pub(super) struct InNamespace {
    /// The setting that serves a key without a namespace.
    pub(super) setting_for: fn(&str) -> Option<&'static dyn Setting>,
}

fn split(key: &str) -> Option<(&Path, &str)> {
    let (path, inner) = key.strip_prefix("netns.")?.split_once('|')?;
    let place = ["/", "pid:", "container:"].iter().any(|head| path.starts_with(head));
    place.then(|| (Path::new(path), inner))
}

impl InNamespace {
    /// Whether a key is one of a setting inside a namespace.
    pub(super) fn serves(&self, key: &str) -> bool {
        split(key)
            .is_some_and(|(_, inner)| !inner.starts_with("netns.") && (self.setting_for)(inner).is_some())
    }

    fn inside<T: Send>(
        &self,
        root: &Root,
        key: &str,
        work: impl FnOnce(&dyn Setting, &Root, &str) -> Result<T, SettingError> + Send,
    ) -> Result<T, SettingError> {
        let (path, inner) = split(key).ok_or(SettingError::NotAKey("not a key of a namespace"))?;
        let setting = (self.setting_for)(inner)
            .filter(|_| self.serves(key))
            .ok_or(SettingError::NotAKey("not a setting"))?;
        place::in_namespace(root, path, |root, _| work(setting, root, inner))?
    }
}

impl Setting for InNamespace {
    fn read(&self, root: &Root, key: &str) -> Result<FactValue, SettingError> {
        self.inside(root, key, |setting, root, inner| setting.read(root, inner))
    }

    fn write(&self, root: &Root, key: &str, value: &FactValue) -> Result<(), SettingError> {
        self.inside(root, key, |setting, root, inner| setting.write(root, inner, value))
    }

    fn check(&self, root: &Root, key: &str, value: &FactValue) -> Result<(), SettingError> {
        self.inside(root, key, |setting, root, inner| setting.check(root, inner, value))
    }

    fn related(&self, key: &str) -> Vec<String> {
        let Some((path, _)) = split(key) else { return Vec::new() };
        let related = self.inside(&Root::live(), key, |setting, _, inner| Ok(setting.related(inner)));
        related.unwrap_or_default().into_iter().map(|k| format!("netns.{}|{k}", path.display())).collect()
    }

    fn persist(&self, _key: &str, _value: &FactValue) -> Persist {
        Persist::Impossible {
            reason: "the namespace belongs to another program, which makes it anew at every start; \
                     set it where that program is configured"
                .to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_namespaces_lead_to_the_setting_inside() {
        let serves = |key| InNamespace { setting_for: crate::setting_for }.serves(key);
        assert!(serves("netns./run/netns/a|nic.vx0.mtu"));
        assert!(!serves("netns./run/netns/a|nic.vx0.driver"));
        assert!(!serves("netns./a|netns./b|nic.vx0.mtu"));
        assert!(!serves("netns.a|nic.vx0.mtu"));
        assert!(serves("netns.container:web|nic.eth0.mtu") && serves("netns.pid:17|nic.eth0.mtu"));
    }
}
