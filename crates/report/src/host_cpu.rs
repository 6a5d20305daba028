//! CPU time of the whole hosts of a test in words, to stand beside that of its threads.

use std::fmt::Write as _;

use linerate_model::load::{HostCpu, LoadReport};
use linerate_model::units;

/// A smaller share of steal is not worth its words.
const STEAL_FROM: f64 = 0.005;

fn end(host: HostCpu, gigabytes: f64) -> String {
    format!(
        "{} s/GB (softirq {})",
        units::short(host.busy_s / gigabytes),
        units::short(host.softirq_s / gigabytes)
    )
}

/// Per gigabyte of payload, each CPU once; empty where an end does not report it or nothing came through.
pub(super) fn words(tx: &LoadReport, rx: &LoadReport, gigabytes: f64) -> String {
    let (Some(near), Some(far)) = (tx.host_cpu, rx.host_cpu) else { return String::new() };
    if gigabytes <= 0.0 {
        return String::new();
    }
    let all = near.and(far);
    let mut text = if all.same_host {
        format!("{}, both ends on one host", end(all, gigabytes))
    } else {
        format!("{} sender + {} receiver", end(near, gigabytes), end(far, gigabytes))
    };
    if all.steal_share() >= STEAL_FROM {
        let _ = write!(text, "; steal, not in it: {}", units::percent(all.steal_share()));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_common_host_is_named_once_and_steal_is_kept_apart() {
        let host = HostCpu { busy_s: 1.0, softirq_s: 0.25, steal_s: 0.2, capacity_s: 2.0, same_host: false };
        let end = |host_cpu| LoadReport { host_cpu, ..LoadReport::default() };
        let (tx, rx) = (end(Some(host)), end(Some(HostCpu { busy_s: 0.5, steal_s: 0.0, ..host })));
        let apart = words(&tx, &rx, 2.0);
        assert!(
            apart.starts_with("0.5 s/GB (softirq 0.12) sender + 0.25 s/GB (softirq 0.12) receiver"),
            "{apart}"
        );
        assert!(apart.ends_with("; steal, not in it: 5 %"), "{apart}");
        let own = end(Some(HostCpu { same_host: true, steal_s: 0.0, ..host }));
        assert_eq!(words(&own, &own, 2.0), "0.5 s/GB (softirq 0.12), both ends on one host");
        assert_eq!(words(&own, &end(None), 2.0), "");
        assert_eq!(words(&own, &own, 0.0), "");
    }
}
