//! One host with an old congestion control in a network with a little loss, which the default of all others
//! tolerates.

use linerate_model::finding::Direction;

use super::fault::{Fault, FaultInfo, FaultTarget};
use crate::damage::Damage;
use crate::error::Result;
use crate::wire::Toward;

/// Per wire: two of them make about 1 per thousand on a path. Without any loss all algorithms reach the same
/// rate.
const LOSS_PPM: u32 = 500;

pub(super) struct WrongCongestionControl;

impl Fault for WrongCongestionControl {
    fn about(&self) -> &FaultInfo {
        static ABOUT: FaultInfo = FaultInfo::host(
            "wrong-congestion-control",
            "congestion-control-differs",
            "one host sends with reno, all others with bbr, over paths that lose 1 packet of 1000",
            &[Direction::Tx],
        );
        &ABOUT
    }

    fn unavailable(&self) -> Option<String> {
        let default =
            std::fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control").unwrap_or_default();
        (default.trim() != "bbr").then(|| {
            format!(
                "only bbr differs visibly from reno in this lab, and the default of this machine is {}",
                default.trim()
            )
        })
    }

    fn inject(&self, damage: &mut Damage<'_>, target: &FaultTarget, _strength: f64) -> Result<()> {
        let (_, machine) = damage.host(target.host()?)?;
        for hypervisor in 0..damage.cluster.hypervisors.len() {
            for toward in [Toward::Hypervisor, Toward::Core] {
                damage.wire(hypervisor, toward, |s| s.loss_ppm = LOSS_PPM)?;
            }
        }
        damage.sysctl(machine, "net.ipv4.tcp_congestion_control", "reno")
    }
}
