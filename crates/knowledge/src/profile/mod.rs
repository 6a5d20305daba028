//! Profiles: published sets of settings as data, one TOML file each, embedded from `knowledge/profiles/`.
//!
//! Text comes in, checked profiles go out. A profile changes nothing by itself: its groups are tried one by
//! one, and only what is proven stays.

mod check;
mod schema;

use include_dir::{Dir, File};

use super::builtin::{BUILTIN, utf8};
use super::check::parse;
use super::error::KnowledgeError;

pub use schema::{
    HostCondition, LeftOut, Profile, ProfileGroup, ProfileRole, ProfileSetting, ProfileSource, SettingGroup,
};

/// Folder of the profiles below `knowledge/`.
pub(super) const FOLDER: &str = "profiles";

/// All profiles, in the order of their ids.
#[derive(Debug, Clone, Default)]
pub struct Profiles {
    profiles: Vec<Profile>,
}

impl Profiles {
    /// The profiles that come with the program.
    pub fn builtin() -> Result<Self, KnowledgeError> {
        let mut profiles = Self::default();
        let is_profile = |file: &&File<'_>| file.path().extension().is_some_and(|end| end == "toml");
        for file in BUILTIN.get_dir(FOLDER).into_iter().flat_map(Dir::files).filter(is_profile) {
            let name = file.path().display().to_string();
            profiles.add(&name, utf8(file)?)?;
        }
        Ok(profiles)
    }

    /// Adds one file: its name for messages, and its text. Returns the profile.
    pub fn add(&mut self, file: &str, text: &str) -> Result<&Profile, KnowledgeError> {
        let hint = "knowledge/profiles/README.md lists every field with its values";
        let profile: Profile = parse(file, text, hint)?;
        check::profile(file, text, &profile, &self.profiles)?;
        let at = self.profiles.partition_point(|other| other.id < profile.id);
        self.profiles.insert(at, profile);
        Ok(&self.profiles[at])
    }

    /// All profiles.
    pub fn iter(&self) -> impl Iterator<Item = &Profile> {
        self.profiles.iter()
    }

    /// One profile.
    #[must_use]
    pub fn get(&self, id: &str) -> Option<&Profile> {
        self.profiles.iter().find(|profile| profile.id == id)
    }
}

#[cfg(test)]
mod tests;
