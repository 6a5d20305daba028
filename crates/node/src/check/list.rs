//! The list of checks: one line each, in the order in which they are shown.

use super::checks::{
    carrier, clock, disk_health, drbd, frame_drops, frame_errors, gluster_log, kept_set, kernel_log,
    link_duplex, link_speed, mount_points, mounts, pcie_width, pressure, site, volumes,
};
use super::kind::Check;

/// All of them.
pub(super) const CHECKS: &[&dyn Check] = &[
    &link_speed::LinkSpeed,
    &link_duplex::LinkDuplex,
    &pcie_width::PcieWidth,
    &frame_errors::FrameErrors,
    &frame_drops::FrameDrops,
    &carrier::Carrier,
    &kept_set::KeptSet,
    &mounts::Mounts,
    &mount_points::MountPoints,
    &disk_health::DiskHealth,
    &volumes::Volumes,
    &drbd::Drbd,
    &pressure::Pressure,
    &clock::Clock,
    &kernel_log::KernelLog,
    &gluster_log::GlusterLog,
    &site::Site,
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::kind::Lane;
    use super::super::settings::RULE_KEYS;
    use super::*;

    #[test]
    fn every_check_has_a_name_of_its_own_and_is_described() {
        let ids: BTreeSet<&str> = CHECKS.iter().map(|check| check.about().id).collect();
        assert_eq!(ids.len(), CHECKS.len());
        for about in CHECKS.iter().map(|check| check.about()) {
            let plain = |c: char| c.is_ascii_lowercase() || c == '-';
            assert!(
                !about.id.is_empty() && about.id.chars().all(plain) && about.id != "enforce",
                "{about:?}"
            );
            assert!(!about.title.is_empty() && !about.reads.is_empty(), "{about:?}");
            assert!(about.rule.strikes >= 1 && about.rule.passes >= 1, "{about:?}");
            assert!(Lane::ALL.contains(&about.lane));
            for threshold in about.thresholds {
                assert!(!RULE_KEYS.contains(&threshold.name) && !threshold.meaning.is_empty(), "{about:?}");
            }
        }
    }
}
