//! Finding causes by words. A word may be that of a person (`flow control`), a key (`nic.eth0.ring.rx`), or
//! the name of a counter as a driver prints it (`rx_missed_errors`).

use linerate_knowledge::{Cause, Knowledge};

/// A pattern whose pieces are together shorter fits too much.
const PIECE_MIN: usize = 4;

/// The causes that have all words, those that have them in their name or title first.
pub(super) fn search<'k>(knowledge: &'k Knowledge, words: &[String]) -> Vec<&'k Cause> {
    let words: Vec<String> = words.iter().flat_map(|w| w.split_whitespace()).map(str::to_lowercase).collect();
    let mut found: Vec<(usize, &Cause)> = knowledge
        .causes()
        .filter_map(|cause| {
            let places: Option<Vec<usize>> = words.iter().map(|word| place(cause, word)).collect();
            Some((places?.into_iter().sum(), cause))
        })
        .collect();
    found.sort_by_key(|(place, cause)| (*place, cause.id.as_str()));
    found.into_iter().map(|(_, cause)| cause).collect()
}

/// Where a cause has a word: 0 in its name, 1 in its title, 2 in a key or a value, 3 elsewhere.
fn place(cause: &Cause, word: &str) -> Option<usize> {
    let has = |text: &str| text.to_lowercase().contains(word);
    if has(&cause.id) {
        return Some(0);
    }
    if has(&cause.title) || cause.area == word {
        return Some(1);
    }
    let facts = || cause.indicators.iter().chain(&cause.excludes);
    let keys = facts()
        .flat_map(|t| t.keys.iter().chain(t.also.iter().flat_map(|c| &c.keys)))
        .chain(&cause.accompanies)
        .chain(cause.remedy.iter().flat_map(|r| &r.set).flat_map(|s| &s.keys));
    let values = facts().flat_map(|t| &t.values).any(|v| has(v));
    let shapes = cause.shape.iter().map(|t| &t.value);
    if keys.chain(shapes).any(|key| is_of(key, word)) || values {
        return Some(2);
    }
    let remedy = cause.remedy.iter().flat_map(|r| [&r.title, &r.instruction, &r.persistence, &r.risk_text]);
    let shown = cause.shape.iter().map(|t| &t.says);
    let texts = remedy.chain(shown).chain(&cause.sources).chain([&cause.mechanism]);
    let is_proof = || cause.proof.iter().any(|proof| has(&proof.to_string()));
    (texts.into_iter().any(|text| has(text)) || is_proof()).then_some(3)
}

/// Whether a word speaks of the keys of a pattern: it stands in it, or has its telling pieces.
fn is_of(pattern: &str, word: &str) -> bool {
    let pattern = linerate_knowledge::features::counter(pattern).unwrap_or(pattern).to_lowercase();
    if pattern.contains(word) {
        return true;
    }
    // `rx_missed_errors` and `nic.eth0.stat.rx_missed_errors` are of `nic.*.stat.rx_miss*`.
    let Some(name) = pattern.rsplit_once('.').map(|(_, name)| name).filter(|n| n.contains('*')) else {
        return pattern.split('*').all(|piece| word.contains(piece));
    };
    let pieces: Vec<&str> = name.split('*').filter(|p| !p.is_empty()).collect();
    let word = word.rsplit_once('.').map_or(word, |(_, name)| name);
    let mut rest = word;
    let fits = pieces.iter().all(|piece| match rest.find(piece) {
        Some(at) => {
            rest = &rest[at + piece.len()..];
            true
        }
        None => false,
    });
    fits && pieces.iter().map(|p| p.len()).sum::<usize>() >= PIECE_MIN
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_and_keys_are_found_as_they_are_printed() {
        assert!(is_of("counter:nic.*.stat.rx_miss*", "rx_missed_errors"));
        assert!(is_of("counter:nic.*.stat.rx_miss*", "nic.eth0.stat.rx_missed_errors"));
        assert!(is_of("counter:softnet.dropped", "softnet"));
        assert!(is_of("nic.*.ring.rx", "nic.eth0.ring.rx"));
        assert!(!is_of("nic.*.stat.rx_miss*", "tx_dropped"));
        assert!(!is_of("nic.*.feature.*", "anything"));
    }

    #[test]
    fn words_find_causes() {
        let knowledge = Knowledge::builtin().unwrap();
        let ids = |words: &[&str]| -> Vec<String> {
            let words: Vec<String> = words.iter().map(|w| (*w).to_owned()).collect();
            search(&knowledge, &words).iter().map(|c| c.id.clone()).collect()
        };
        assert!(ids(&["rx_missed_errors"]).contains(&"flow-control-off".to_owned()));
        assert_eq!(ids(&["LRO"])[0], "lro-forwarding");
        assert!(ids(&["receive", "buffer", "tcp_rmem"]).contains(&"tcp-rmem-small".to_owned()));
        assert!(ids(&["no such word at all"]).is_empty());
    }
}
