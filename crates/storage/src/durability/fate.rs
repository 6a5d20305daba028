//! What became of one file, and whether the kernel had promised otherwise.

use linerate_model::durability::{Fate, FileState, FoundFile, Pattern, PatternRule, Promised};

/// Versions of a file: the last that was acknowledged, and the last that may have been begun.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Versions {
    pub acknowledged: u32,
    pub asked: u32,
}

/// What became of a file with at least one acknowledged version.
pub(super) fn of(pattern: &Pattern, file: &FoundFile, versions: Versions) -> Fate {
    let Versions { acknowledged, asked } = versions;
    let (shape, unfinished) = (pattern.shape, asked > acknowledged);
    match file.state {
        FileState::Whole { version } if version >= acknowledged => Fate::Kept,
        // What follows the last record that counts was never acknowledged.
        FileState::Short { version, .. }
        | FileState::Zeros { version, .. }
        | FileState::Corrupt { version, .. }
            if shape == PatternRule::Grown && version >= acknowledged =>
        {
            Fate::Kept
        }
        FileState::Torn { oldest, .. }
            if shape == PatternRule::InPlace && oldest >= acknowledged && unfinished =>
        {
            Fate::Kept
        }
        // The file had been made empty for a record that was never acknowledged.
        _ if shape == PatternRule::Truncated && unfinished => Fate::UnderWay,
        // A block may be half of one version and half of the other.
        FileState::Corrupt { .. } if shape == PatternRule::InPlace && unfinished => Fate::UnderWay,
        FileState::Missing if matches!(shape, PatternRule::Fresh | PatternRule::Replaced) => {
            let data = file.temporary || pattern.promised != Promised::Nothing;
            if data { Fate::NameLost } else { Fate::Missing }
        }
        FileState::Missing => Fate::Missing,
        FileState::Empty => Fate::Empty,
        FileState::Whole { .. } if shape == PatternRule::Grown => Fate::Short,
        FileState::Whole { .. } => Fate::Stale,
        FileState::Short { .. } => Fate::Short,
        FileState::Zeros { .. } => Fate::Zeros,
        FileState::Torn { .. } | FileState::Corrupt { .. } => Fate::Corrupt,
    }
}

/// Whether that is not what the kernel had promised.
pub(super) fn is_broken(pattern: &Pattern, fate: Fate) -> bool {
    if matches!(fate, Fate::Kept | Fate::UnderWay) {
        return false;
    }
    match pattern.promised {
        Promised::Nothing => false,
        // The name may be gone, or still be that of the old file.
        Promised::Content => !matches!(fate, Fate::NameLost | Fate::Missing | Fate::Stale),
        Promised::All => true,
    }
}

/// What is there, in words.
pub(super) fn sentence(state: &FileState, versions: Versions, temporary: bool) -> String {
    let acknowledged = versions.acknowledged;
    match state {
        FileState::Missing if temporary => "only the temporary file is there".to_owned(),
        FileState::Missing => "no such name".to_owned(),
        FileState::Empty => "it has no byte".to_owned(),
        FileState::Whole { version } => {
            format!("version {version} is there, {acknowledged} was acknowledged")
        }
        FileState::Short { version, bytes } => {
            format!("it ends after {bytes} bytes, in version {version}; {acknowledged} was acknowledged")
        }
        FileState::Zeros { version: 0, bytes } => format!("its {bytes} bytes are zeros"),
        FileState::Zeros { version, .. } => format!("zeros follow record {version} of {acknowledged}"),
        FileState::Torn { oldest, newest } => {
            format!("blocks of the versions {oldest} to {newest}; {acknowledged} was acknowledged")
        }
        FileState::Corrupt { what, .. } => what.clone(),
    }
}
