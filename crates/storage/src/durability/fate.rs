//! What became of one file, and whether the kernel had promised otherwise.

use linerate_model::durability::{Fate, Pattern, Promised, Seen, SeenFile, Shape};

/// Versions of a file: the last that was acknowledged, and the last that may have been begun.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Versions {
    pub acknowledged: u32,
    pub asked: u32,
}

/// What became of a file with at least one acknowledged version.
pub(super) fn of(pattern: &Pattern, file: &SeenFile, versions: Versions) -> Fate {
    let Versions { acknowledged, asked } = versions;
    let (shape, under_way) = (pattern.shape, asked > acknowledged);
    match file.state {
        Seen::Whole { version } if version >= acknowledged => Fate::Kept,
        // What follows the last record that counts was never acknowledged.
        Seen::Short { version, .. } | Seen::Zeros { version, .. } | Seen::Corrupt { version, .. }
            if shape == Shape::Grown && version >= acknowledged =>
        {
            Fate::Kept
        }
        Seen::Torn { oldest, .. } if shape == Shape::InPlace && oldest >= acknowledged && under_way => {
            Fate::Kept
        }
        // The file had been made empty for a record that was never acknowledged.
        _ if shape == Shape::Truncated && under_way => Fate::UnderWay,
        // A block may be half of one version and half of the other.
        Seen::Corrupt { .. } if shape == Shape::InPlace && under_way => Fate::UnderWay,
        Seen::Missing if matches!(shape, Shape::Fresh | Shape::Replaced) => {
            let data = file.temporary || pattern.promised != Promised::Nothing;
            if data { Fate::NameLost } else { Fate::Missing }
        }
        Seen::Missing => Fate::Missing,
        Seen::Empty => Fate::Empty,
        Seen::Whole { .. } if shape == Shape::Grown => Fate::Short,
        Seen::Whole { .. } => Fate::Stale,
        Seen::Short { .. } => Fate::Short,
        Seen::Zeros { .. } => Fate::Zeros,
        Seen::Torn { .. } | Seen::Corrupt { .. } => Fate::Corrupt,
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
pub(super) fn sentence(state: &Seen, versions: Versions, temporary: bool) -> String {
    let acknowledged = versions.acknowledged;
    match state {
        Seen::Missing if temporary => "only the temporary file is there".to_owned(),
        Seen::Missing => "no such name".to_owned(),
        Seen::Empty => "it has no byte".to_owned(),
        Seen::Whole { version } => format!("version {version} is there, {acknowledged} was acknowledged"),
        Seen::Short { version, bytes } => {
            format!("it ends after {bytes} bytes, in version {version}; {acknowledged} was acknowledged")
        }
        Seen::Zeros { version: 0, bytes } => format!("its {bytes} bytes are zeros"),
        Seen::Zeros { version, .. } => format!("zeros follow record {version} of {acknowledged}"),
        Seen::Torn { oldest, newest } => {
            format!("blocks of the versions {oldest} to {newest}; {acknowledged} was acknowledged")
        }
        Seen::Corrupt { what, .. } => what.clone(),
    }
}
