//! Interface of a format: the trait that each one implements, and the block of lines that it reads. The list
//! of formats is in `formats`.

use crate::context::Context;
use crate::sink::Sink;

/// Lines that follow each other, up to the next prompt or the end.
pub(crate) struct Block<'a> {
    /// The lines; never empty.
    pub lines: &'a [&'a str],
    /// What is known around them.
    pub at: &'a Context,
}

impl<'a> Block<'a> {
    /// The first line.
    pub(crate) fn first(&self) -> &'a str {
        self.lines.first().copied().unwrap_or("")
    }

    /// A line of the block; empty behind its end.
    pub(crate) fn line(&self, index: usize) -> &'a str {
        self.lines.get(index).copied().unwrap_or("")
    }
}

/// Stands for a line that is too long: a control character, which no clean line has.
pub(crate) const LONG_LINE: &str = "\u{1}";

/// One format.
pub(crate) trait Reader: Sync {
    /// Name for `--as` and for the account.
    fn name(&self) -> &'static str;
    /// Short description.
    fn describes(&self) -> &'static str;
    /// Whether a piece of it begins with the first line. Checks a few lines only, because it is called at
    /// every line.
    fn begins(&self, block: &Block<'_>) -> bool;
    /// Reads a piece and returns the number of its lines. Lines that it cannot use are reported to the sink.
    fn read(&self, block: &Block<'_>, out: &mut Sink) -> usize;
    /// Whether its lines are prose, which may be the title of what follows too.
    fn is_prose(&self) -> bool {
        false
    }
    /// A command at a prompt, for formats whose commands set something and print nothing.
    fn typed(&self, _command: &str, _out: &mut Sink) {}
    /// Whether the piece names its own hosts, so that no host of a prompt is needed.
    fn names_hosts(&self) -> bool {
        false
    }
    /// Whether it takes lines of any length. For all others a line beyond the limit is [`LONG_LINE`], which
    /// belongs to no format.
    fn takes_long_lines(&self) -> bool {
        false
    }
}
