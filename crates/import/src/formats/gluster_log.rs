//! Lines of glusterd's log about the lock of the cluster: who waits for it and who holds it. Other lines of
//! that log are not read.

use crate::reader::{Block, Reader};
use crate::sink::Sink;

/// The format.
pub(crate) struct GlusterLog;

/// Longest identifier that is kept; a UUID has 36 characters.
const ID_MAX: usize = 64;

/// `Unable to get lock for uuid: X, lock held by: Y`, with or without the colons.
fn lock(line: &str) -> Option<(&str, &str)> {
    let rest = line.split("Unable to get lock for uuid").nth(1)?;
    let (wants, holds) = rest.split_once(", lock held by")?;
    let id = |text: &'_ str| -> Option<usize> {
        let end = text.find(|c: char| !(c.is_ascii_hexdigit() || c == '-')).unwrap_or(text.len());
        (1..=ID_MAX).contains(&end).then_some(end)
    };
    let trimmed = |text| str::trim_start_matches(text, [':', ' ']);
    let (wants, holds) = (trimmed(wants), trimmed(holds));
    Some((&wants[..id(wants)?], &holds[..id(holds)?]))
}

impl Reader for GlusterLog {
    fn name(&self) -> &'static str {
        "gluster-log"
    }

    fn describes(&self) -> &'static str {
        "lines of glusterd's log about its lock"
    }

    fn begins(&self, block: &Block<'_>) -> bool {
        lock(block.first()).is_some()
    }

    fn read(&self, block: &Block<'_>, out: &mut Sink) -> usize {
        let mut taken = 0;
        for line in block.lines {
            let Some((wants, holds)) = lock(line) else { break };
            out.text("gluster.lock.waits_for", wants);
            out.text("gluster.lock.held_by", holds);
            taken += 1;
        }
        taken.max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_the_line_are_read() {
        let line = "[2013-02-01 10:00:00] E glusterd: Unable to get lock for uuid: 0a-1, lock held by: 0a-2";
        assert_eq!(lock(line), Some(("0a-1", "0a-2")));
        assert_eq!(lock("Unable to get lock for uuid ab, lock held by: ab."), Some(("ab", "ab")));
        assert_eq!(lock("Unable to get lock for uuid , lock held by: x"), None);
        assert_eq!(lock("Unable to get lock"), None);
    }
}
