//! The words that rules are made of: severity, windows and strikes, thresholds, verdicts, moments.

/// What a bad observation means when it was made often enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Severity {
    /// Worth a line.
    Warn,
    /// The host should get no work.
    Fail,
}

/// When bad observations count, and when they are over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Rule {
    /// Bad observations within the window that make it fail.
    pub(super) strikes: u32,
    /// Good observations in a row that end it.
    pub(super) passes: u32,
    /// How long a bad observation counts, seconds.
    pub(super) window_s: u64,
    /// Observations that follow sooner are the same one, seconds.
    pub(super) spacing_s: u64,
}

/// Twice within an hour, ten seconds apart, as two calls of a scheduler are; over after three good ones.
pub(super) const TWICE: Rule = Rule { strikes: 2, passes: 3, window_s: 3600, spacing_s: 10 };
/// For readings that cover a window of their own, such as lines of a log.
pub(super) const ONCE: Rule = Rule { strikes: 1, passes: 2, window_s: 3600, spacing_s: 10 };

/// A number that a site may set.
#[derive(Debug)]
pub(super) struct Threshold {
    /// Key in `checks.toml`.
    pub(super) name: &'static str,
    pub(super) default: f64,
    pub(super) unit: &'static str,
    /// One sentence, with its source.
    pub(super) meaning: &'static str,
}

/// How one subject is now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Good,
    Bad,
    /// It could not be judged; changes nothing that stands.
    Unknown,
}

/// When it is, on clocks that do not jump and on one that does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Moment {
    /// Seconds since boot: what windows are counted in.
    pub(super) up_s: u64,
    /// Seconds since 1970: only shown, and for what outlives a boot.
    pub(super) unix_s: i64,
}
