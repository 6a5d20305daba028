//! `dmsetup ls`: names of the volumes of the device mapper. Lines come in, facts `disk.dm-<n>.dm_name` go
//! out.

use crate::reader::{Block, Reader};
use crate::sink::Sink;

/// The format.
pub(crate) struct Dmsetup;

/// Major numbers that the kernel gives the device mapper.
const MAJORS: std::ops::RangeInclusive<u32> = 249..=254;

/// `vg0-home  (253:2)`, `vg0-home  (253, 2)`: name and minor number.
fn volume(line: &str) -> Option<(&str, u32)> {
    let (name, rest) = line.trim().split_once([' ', '\t'])?;
    let (major, minor) = rest.trim().strip_prefix('(')?.strip_suffix(')')?.split_once([':', ','])?;
    let major: u32 = major.trim().parse().ok()?;
    Some((name, minor.trim().parse().ok()?)).filter(|_| MAJORS.contains(&major))
}

impl Reader for Dmsetup {
    fn name(&self) -> &'static str {
        "dmsetup"
    }

    fn describes(&self) -> &'static str {
        "dmsetup ls: names of volumes"
    }

    fn begins(&self, block: &Block<'_>) -> bool {
        volume(block.first()).is_some()
    }

    fn read(&self, block: &Block<'_>, out: &mut Sink) -> usize {
        let volumes = block.lines.iter().map_while(|line| volume(line));
        let mut taken = 0;
        for (name, minor) in volumes {
            out.text(format!("disk.dm-{minor}.dm_name"), name);
            taken += 1;
        }
        taken.max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn volumes_by_their_number() {
        assert_eq!(volume("vg0-home\t(253:2)"), Some(("vg0-home", 2)));
        assert_eq!(volume("vg0-var  (252, 11)"), Some(("vg0-var", 11)));
        assert_eq!(volume("sda (8:0)"), None);
        assert_eq!(volume("arc-1 (vs-4)"), None);
    }
}
