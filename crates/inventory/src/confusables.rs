//! Confusable names: a Cyrillic `а` beside a Latin `a`. Names come in, remarks go out.

use std::collections::HashMap;

use super::draft::ListRemark;

/// Remarks that are given.
const REMARKS_MAX: usize = 100;

/// Letters of other scripts, each before its Latin lookalike.
const LETTERS: &str = "аaеeоoрpсcуyхxіiјjѕsһhԁdԛqԝwкkмmтtвbнh\
    АAВBЕEКKМMНHОOРPСCТTУYХXІIЈJЅS\
    οoαaνvρpτtυuιiκkΑAΒBΕEΖZΗHΙIΚKΜMΝNΟOΡPΤTΥYΧX";

/// One remark for each lookalike of an earlier name.
pub fn remarks<'a>(names: impl Iterator<Item = &'a str> + Clone) -> Vec<ListRemark> {
    // Among plain ASCII names none is taken for another; most inventories end here.
    if names.clone().all(str::is_ascii) {
        return Vec::new();
    }
    let latin = table();
    let mut first: HashMap<String, &str> = HashMap::new();
    let mut remarks = Vec::new();
    for name in names {
        let latin_form: String = name.chars().map(|c| *latin.get(&c).unwrap_or(&c)).collect();
        let other = *first.entry(latin_form).or_insert(name);
        if other != name && remarks.len() < REMARKS_MAX {
            remarks.push(remark(other, name));
        }
    }
    remarks
}

fn table() -> HashMap<char, char> {
    let letters: Vec<char> = LETTERS.chars().collect();
    let pairs = letters.as_chunks::<2>().0.iter().map(|[from, to]| (*from, *to));
    // Letters and digits of full width stand in the order of ASCII.
    let wide = ('!'..='~').filter_map(|c| Some((char::from_u32(u32::from(c) + 0xfee0)?, c)));
    pairs.chain(wide).collect()
}

fn remark(one: &str, other: &str) -> ListRemark {
    let odd = [one, other].into_iter().find_map(|name| {
        let (at, c) = name.chars().enumerate().find(|(_, c)| !c.is_ascii())?;
        Some(format!("character {} of {} is U+{:04X}", at + 1, name.escape_default(), u32::from(c)))
    });
    ListRemark {
        line: 0,
        what: format!("{one} and {other}"),
        why: format!("two names that look the same: {}", odd.unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_two_scripts_are_distinguished() {
        let found = remarks(["arc-1", "arc-a", "arc-а", "b"].into_iter());
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].what, "arc-a and arc-а");
        assert_eq!(found[0].why, "two names that look the same: character 5 of arc-\\u{430} is U+0430");
        assert_eq!(remarks(["узел-1", "узел-2", "a"].into_iter()), []);
        assert_eq!(remarks(["ａ1", "a1"].into_iter()).len(), 1);
        assert_eq!(LETTERS.chars().count() % 2, 0);
    }
}
