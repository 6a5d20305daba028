//! CPU time of whole hosts during a test, beside that of the test's own threads: much of the work on a packet
//! is done in softirq, which no thread is charged for.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// CPU time of all CPUs of a host during a test (`/proc/stat`), seconds. Everything that runs on the host is
/// in it, so that on a host that does other work it is an upper bound.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct HostCpu {
    /// User, system, interrupts and softirq; without steal.
    pub busy_s: f64,
    /// Part of `busy_s` in softirq.
    pub softirq_s: f64,
    /// Taken by the hypervisor while a CPU had work.
    pub steal_s: f64,
    /// Busy, idle and steal of all CPUs: what they could have done.
    pub capacity_s: f64,
    /// Both ends ran under the same kernel: the other end's figures are of the same CPUs.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub same_host: bool,
}

impl HostCpu {
    /// Of two ends, each CPU once. The end that was watched longer has the figures of a common host.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        if self.same_host || other.same_host {
            return if self.capacity_s >= other.capacity_s { self } else { other };
        }
        Self {
            busy_s: self.busy_s + other.busy_s,
            softirq_s: self.softirq_s + other.softirq_s,
            steal_s: self.steal_s + other.steal_s,
            capacity_s: self.capacity_s + other.capacity_s,
            same_host: false,
        }
    }

    /// Share of the time that the hypervisor took, 0 to 1.
    pub fn steal_share(self) -> f64 {
        if self.capacity_s > 0.0 { self.steal_s / self.capacity_s } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_of_a_common_host_count_once() {
        let near = HostCpu { busy_s: 1.5, softirq_s: 0.5, steal_s: 0.1, capacity_s: 2.0, same_host: false };
        let far = HostCpu { busy_s: 1.0, capacity_s: 1.9, ..near };
        let apart = near.and(far);
        assert_eq!((apart.busy_s, apart.softirq_s, apart.capacity_s), (2.5, 1.0, 3.9));
        let [near, far] = [near, far].map(|end| HostCpu { same_host: true, ..end });
        assert_eq!((near.and(far), far.and(near)), (near, near));
        assert!((near.steal_share() - 0.05).abs() < 1e-9 && HostCpu::default().steal_share() == 0.0);
    }
}
