//! What promises and the files that are left prove about a disk and about programs.
//!
//! In: promises, files, their location. Out: what became of each file, whether that had been promised
//! otherwise, sentences. Pure.

mod fate;
mod words;

use std::collections::BTreeMap;

use linerate_model::SCHEMA;
use linerate_model::durability::{
    DurabilityReport, DurabilityVerdict, Fate, FolderLocation, FoundFile, LostFile, PatternFate, Promises,
};

use fate::Versions;

/// Lost files that are named for each pattern and fate.
const NAMED_MAX: usize = 3;

/// How many files of a pattern are to be checked.
#[must_use]
pub fn files(promises: &Promises, pattern: usize) -> u32 {
    versions(promises, pattern).keys().next_back().map_or(0, |last| last + 1)
}

/// Files of a pattern that records went to.
fn versions(promises: &Promises, pattern: usize) -> BTreeMap<u32, Versions> {
    let mut files: BTreeMap<u32, Versions> = BTreeMap::new();
    let all = promises.plan.patterns.len().min(promises.patterns.len());
    if pattern >= all {
        return files;
    }
    let shape = |of: usize| promises.patterns[of.min(all - 1)].shape;
    for number in (pattern as u32..promises.asked.min(promises.plan.records)).step_by(all) {
        let Some(spot) = promises.plan.spot(number, shape) else { continue };
        let file = files.entry(spot.slot).or_default();
        file.asked = file.asked.max(spot.version);
        if number < promises.acknowledged {
            file.acknowledged = file.acknowledged.max(spot.version);
        }
    }
    files
}

/// Judges what is left. `seen` has the files of each pattern, by the index of the pattern.
#[must_use]
pub fn judge(
    promises: &Promises,
    location: FolderLocation,
    seen: &BTreeMap<usize, Vec<FoundFile>>,
) -> DurabilityReport {
    let mut patterns = Vec::new();
    let mut lost = Vec::new();
    for (index, pattern) in promises.patterns.iter().enumerate() {
        let files = versions(promises, index);
        let by_slot: BTreeMap<u32, &FoundFile> =
            seen.get(&index).into_iter().flatten().map(|file| (file.slot, file)).collect();
        let mut result = PatternFate {
            pattern: pattern.clone(),
            records: records(promises, index),
            files: 0,
            fates: BTreeMap::new(),
            broken: 0,
        };
        for (slot, versions) in files.iter().filter(|(_, versions)| versions.acknowledged > 0) {
            let Some(file) = by_slot.get(slot) else { continue };
            let fate = fate::of(pattern, file, *versions);
            let broken = fate::is_broken(pattern, fate);
            result.files += 1;
            result.broken += u32::from(broken);
            let count = result.fates.entry(fate).or_default();
            *count += 1;
            if *count as usize <= NAMED_MAX && Fate::LOSSES.contains(&fate) {
                lost.push(LostFile {
                    file: format!("{}/{slot:08}", pattern.name),
                    fate,
                    promised: broken,
                    sentence: fate::sentence(&file.state, *versions, file.temporary),
                });
            }
        }
        patterns.push(result);
    }
    lost.sort_by_key(|file| !file.promised);
    let marker_lost = location.run.as_deref() != Some(promises.plan.run.as_str());
    let verdict = if !location.boot.is_empty() && location.boot == promises.place.boot {
        DurabilityVerdict::NotRestarted
    } else if marker_lost || patterns.iter().any(|p| p.broken > 0) {
        DurabilityVerdict::Broken
    } else {
        DurabilityVerdict::Kept
    };
    let sentences = words::sentences(promises, &location, verdict, &patterns);
    DurabilityReport {
        schema: SCHEMA,
        promises: promises.clone(),
        place: location,
        verdict,
        patterns,
        sentences,
        lost,
    }
}

/// Records of a pattern that were acknowledged.
fn records(promises: &Promises, pattern: usize) -> u32 {
    let (all, pattern) = (promises.patterns.len() as u32, pattern as u32);
    promises.acknowledged.min(promises.plan.records).saturating_sub(pattern).div_ceil(all.max(1))
}

#[cfg(test)]
mod tests;
