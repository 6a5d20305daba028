//! Lists of names in error messages.

/// Names that an error lists.
const LISTED_MAX: usize = 12;

/// `there are: a, b and 3 more`.
pub(super) fn listed(head: &str, names: &[String]) -> String {
    if names.is_empty() {
        return format!("{head} none");
    }
    let mut list = names[..names.len().min(LISTED_MAX)].join(", ");
    if names.len() > LISTED_MAX {
        list = format!("{list} and {} more", names.len() - LISTED_MAX);
    }
    format!("{head}: {list}")
}
