//! The revision of a kept set in its text: a comment in the first line, so that a file that was printed from
//! the database, edited and loaded again names what it was edited from.

const BEGIN: &str = "# Revision ";
const END: &str = " in the database. `linerate drift --load FILE` stores an edited one.";

/// The revision that the first line of a text names.
#[must_use]
pub fn revision_of(text: &str) -> Option<u64> {
    text.lines().next()?.strip_prefix(BEGIN)?.split(' ').next()?.parse().ok()
}

/// The text as this revision.
#[must_use]
pub fn with_revision(text: &str, revision: u64) -> String {
    let rest = match revision_of(text) {
        Some(_) => text.split_once('\n').map_or("", |(_, rest)| rest),
        None => text,
    };
    format!("{BEGIN}{revision}{END}\n{rest}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_names_one_revision_and_keeps_all_else() {
        let text = "# Ours.\n\n[[cohort]]\nhosts = [\"a\"]\n";
        assert_eq!(revision_of(text), None);
        let first = with_revision(text, 1);
        assert_eq!((revision_of(&first), first.lines().count()), (Some(1), text.lines().count() + 1));
        let next = with_revision(&first, 12);
        assert_eq!((revision_of(&next), next.ends_with(text)), (Some(12), true));
        assert_eq!(next.lines().count(), first.lines().count());
        assert_eq!(revision_of(&with_revision("", 3)), Some(3));
        for other in
            ["", "# Revision", "# Revision x of", "# Revision -1 in", "# Revision 99999999999999999999"]
        {
            assert_eq!(revision_of(other), None, "{other}");
        }
    }
}
