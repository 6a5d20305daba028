//! The result of a check in sentences: about the disk, about each habit of programs, about the limits of the
//! check.

use linerate_model::durability::{
    DurabilityVerdict, Fate, FolderLocation, PatternFate, PatternRule, Promised, Promises,
};

fn count(pattern: &PatternFate, fate: Fate) -> u32 {
    pattern.fates.get(&fate).copied().unwrap_or(0)
}

fn losses(pattern: &PatternFate) -> u32 {
    Fate::LOSSES.iter().map(|fate| count(pattern, *fate)).sum()
}

pub(super) fn sentences(
    promises: &Promises,
    location: &FolderLocation,
    verdict: DurabilityVerdict,
    patterns: &[PatternFate],
) -> Vec<String> {
    let mut words = Vec::new();
    if verdict == DurabilityVerdict::NotRestarted {
        words.push(
            "The host was not restarted since the records were written: what is read comes from its memory, and nothing is proven. Cut the power while it writes."
                .to_owned(),
        );
        return words;
    }
    if location.filesystem != promises.place.filesystem {
        words.push(format!(
            "The folder lay on {} and lies on {} now: is the right file system mounted?",
            promises.place.filesystem, location.filesystem
        ));
    }
    if location.run.as_deref() != Some(promises.plan.run.as_str()) {
        let all = |p: &PatternFate| count(p, Fate::Missing) + count(p, Fate::NameLost) == p.files;
        let what = if patterns.iter().all(all) {
            "The folder itself is gone"
        } else {
            "The marker of the folder is gone"
        };
        words.push(format!("{what}, though it had been synchronised before the first record."));
    }
    words.push(about_the_disk(verdict, patterns));
    words.extend(patterns.iter().filter_map(|pattern| about_a_habit(pattern, &location.filesystem)));
    let unpromised = || patterns.iter().filter(|p| p.pattern.promised == Promised::Nothing);
    if unpromised().any(|p| p.files > 0) && unpromised().all(|p| losses(p) == 0) {
        words.push(
            "Nothing without a promise is lost either. Either the kernel had written it all (it takes up to \
             about 30 s), or the power was not cut: a proper shutdown writes everything."
                .to_owned(),
        );
    }
    words
}

fn about_the_disk(verdict: DurabilityVerdict, patterns: &[PatternFate]) -> String {
    let promised = || patterns.iter().filter(|p| p.pattern.promised != Promised::Nothing);
    let files: u32 = promised().map(|p| p.files).sum();
    let broken: u32 = patterns.iter().map(|p| p.broken).sum();
    match verdict {
        DurabilityVerdict::Broken if broken > 0 => format!(
            "{broken} of {files} synchronised files are not as the kernel had promised: this disk lies about \
             flush. It, its controller, the hypervisor's cache, or a mount option such as nobarrier reported \
             data as safe which were not. No program can help that: switch the volatile write cache off, or \
             replace what lies."
        ),
        _ if files == 0 => "No record was synchronised, so the disk is untested.".to_owned(),
        _ => format!("All {files} synchronised files are as promised: the disk kept its promise."),
    }
}

/// What a pattern shows that a program ought to know.
fn about_a_habit(pattern: &PatternFate, filesystem: &str) -> Option<String> {
    let (name, files) = (&pattern.pattern.name, pattern.files);
    let empty = count(pattern, Fate::Empty);
    let name_lost = count(pattern, Fate::NameLost);
    match (pattern.pattern.promised, pattern.pattern.shape) {
        (Promised::Nothing, PatternRule::Replaced) if empty > 0 => Some(format!(
            "{name}: {empty} of {files} files are empty although their old versions had been synchronised. A \
             rename without an fsync before it replaces a good file by an empty one; {}.",
            match filesystem {
                "ext4" => "ext4 writes the data first, unless it is mounted with noauto_da_alloc",
                "xfs" => "XFS does what it is asked, where ext4 would write the data first",
                _ => "some file systems write the data first, and none promises it",
            }
        )),
        (Promised::Nothing, _) if empty > 0 => Some(format!(
            "{name}: {empty} of {files} files are empty. Zero-length after a reset is not {} bug but a missing fsync: the name was written, the data were still in memory.",
            match filesystem {
                "xfs" => "an XFS".to_owned(),
                "ext4" => "an ext4".to_owned(),
                _ => "a file system".to_owned(),
            }
        )),
        (Promised::Content, _) if name_lost > 0 => Some(format!(
            "{name}: {name_lost} of {files} names are gone. The data had been synchronised, the folder had not: without an fsync of the folder a name is no promise."
        )),
        _ => None,
    }
}
