//! The list of layouts. Each is one file beside this one and one line in [`LAYOUTS`].

use super::layout::Layout;
use super::levels::Level;
use super::lvm::LvmRaid10;
use super::lvm_parity::LvmParity;
use super::md::Md;
use super::old_mirror::OldMirror;

/// All of them, by level, the recommended one of each first.
pub(super) const LAYOUTS: &[&dyn Layout] = &[
    &Md(Level::Raid10),
    &LvmRaid10,
    &OldMirror,
    &Md(Level::Raid5),
    &LvmParity(Level::Raid5),
    &Md(Level::Raid6),
    &LvmParity(Level::Raid6),
];
