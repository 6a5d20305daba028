//! Limits of an import: input is unbounded, memory and time are not.
//!
//! Every limit is checked before anything is allocated for what exceeds it. Omissions are noted or quoted,
//! with the number and the limit.

/// Longest line that readers of lines are shown, bytes; JSON on one line has no such limit.
pub(crate) const LINE_BYTES_MAX: usize = 64 << 10;
/// Most lines of a text: 60 MB of `ping` have a million.
pub(crate) const LINES_MAX: usize = 4 << 20;
/// Most pairs of one table: rows times columns of a matrix of 256 hosts.
pub(crate) const PAIRS_MAX: usize = 65_536;
/// Most tests in all: four such tables.
pub(crate) const TESTS_MAX: usize = 4 * PAIRS_MAX;
/// Most distinct hosts and addresses.
pub(crate) const HOSTS_MAX: usize = 65_536;
/// Most names, addresses and memberships of hosts in tables of names.
pub(crate) const NAMES_MAX: usize = 4 * HOSTS_MAX;
/// Most facts and counters in all: a thousand hosts have two million.
pub(crate) const VALUES_MAX: usize = 2 << 20;
/// Most figures of storage.
pub(crate) const FIGURES_MAX: usize = 65_536;
/// Most pieces that the account lists.
pub(crate) const PIECES_MAX: usize = 65_536;
/// Most objects and lists of one JSON value: each of them takes up to a kilobyte.
pub(crate) const JSON_PARTS_MAX: usize = 1 << 19;
/// Most commas of one JSON value.
pub(crate) const JSON_COMMAS_MAX: usize = 4 << 20;

/// Counts what a JSON value is made of, before it is built. Signs inside of strings count, too: the bound is
/// a coarse one.
#[derive(Debug, Default)]
pub(crate) struct JsonParts {
    parts: usize,
    commas: usize,
}

impl JsonParts {
    /// Counts more bytes of the value; the error names the limit that they exceed.
    pub(crate) fn add(&mut self, bytes: &[u8]) -> Result<(), String> {
        for byte in bytes {
            self.parts += usize::from(matches!(byte, b'{' | b'['));
            self.commas += usize::from(*byte == b',');
        }
        if self.parts > JSON_PARTS_MAX {
            return Err(format!("more than {JSON_PARTS_MAX} objects and lists"));
        }
        if self.commas > JSON_COMMAS_MAX {
            return Err(format!("more than {JSON_COMMAS_MAX} commas"));
        }
        Ok(())
    }
}

/// Lines around the output of tools.
pub(crate) const PROSE_MAX: usize = 20_000;
