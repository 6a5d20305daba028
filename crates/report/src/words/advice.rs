//! Advice in a sentence, with the figures that it follows from.

use linerate_model::advice::{Advice, Advised, BufferWindow, Reason};
use linerate_model::units::{duration_us, percent, rate, short};

use crate::names;

/// Hosts that are named; the rest is counted.
const NAMED_MAX: usize = 3;

/// Fills in the texts of a piece of advice.
pub(super) fn write(advice: &mut Advice) {
    if let Some(reason) = &advice.reason {
        advice.sentence = sentence(advice.advised, reason);
        advice.references = reference(reason).into_iter().collect();
    }
}

/// All of it.
fn sentence(advised: Advised, reason: &Reason) -> String {
    match reason {
        Reason::Buffers(window, hosts) => buffers(advised, window, hosts),
        Reason::Retransmits { from, to, per_s, share, others } => format!(
            "change nothing because of retransmissions: {from} to {to} has {} a second and is at {} of its ceiling{}",
            short(*per_s),
            percent(*share),
            more(*others, "such pair"),
        ),
        Reason::Drops { host, per_test, others } => format!(
            "change nothing because of rx_dropped: it grows by {} per test at {host}{}, but no datagram is lost there and nothing is sent \
             again. The kernel counts there what the host does not want: unknown protocols, VLANs and IPv6 that are not set up",
            short(*per_test),
            more(*others, "further host"),
        ),
    }
}

fn buffers(advised: Advised, w: &BufferWindow, hosts: &[String]) -> String {
    let (needed, allowed) = (size(w.needed_bytes), size(w.allowed_bytes));
    let (ceiling, rtt) = (rate(w.ceiling_bps), duration_us(w.rtt_us));
    let (measured, gives) = (rate(w.measured_bps), rate(w.allowed_bps));
    let BufferWindow { from, to, limit, host, .. } = w;
    let nearest = || {
        format!(
            "of all pairs {from} to {to} comes nearest to its window: {ceiling} over a loaded RTT of {rtt} needs {needed}, and {limit} of {host} \
             allows {allowed}, which is {gives}"
        )
    };
    match advised {
        Advised::Leave => format!("leave the TCP buffers alone: {}", nearest()),
        Advised::Measure => format!(
            "do not raise the buffers yet: {}; but it reaches {measured}, so something else holds it back first",
            nearest()
        ),
        Advised::Change => format!(
            "raise the TCP buffers of {}: {from} to {to} needs {needed} for {ceiling} over a loaded RTT of {rtt}, {limit} of {host} allows \
             {allowed}, and the measured {measured} is what that gives ({gives})",
            names::list(hosts, NAMED_MAX)
        ),
    }
}

/// What others publish about it.
fn reference(reason: &Reason) -> Option<String> {
    match reason {
        Reason::Buffers(window, _) => Some(published(window.link_bps)),
        Reason::Drops { .. } => {
            Some("Red Hat knowledge base, solution 657483: rx_dropped since kernel 2.6.37".to_owned())
        }
        Reason::Retransmits { .. } => None,
    }
}

/// What ESnet publishes for wide-area hosts of this speed (`fasterdata_tuning.py` of 2025, and the 100G
/// page).
fn published(link_bps: f64) -> String {
    // The ceiling is a little below the speed of the link.
    let (class, most, limit) = match link_bps * 1.1 {
        bps if bps >= 40e9 => ("40G and more", 268_435_456_u64, 536_870_912_u64),
        bps if bps >= 10e9 => ("10G and more", 134_217_728, 268_435_456),
        _ => ("less than 10G", 33_554_432, 67_108_864),
    };
    format!(
        "ESnet for wide-area hosts with {class}: tcp_rmem 4096 87380 {most}, tcp_wmem 4096 65536 {most}, rmem_max and wmem_max {limit} \
         (bltierney/fasterdata-tuning; fasterdata.es.net)"
    )
}

fn size(bytes: f64) -> String {
    if bytes >= 1e6 { format!("{} MB", short(bytes / 1e6)) } else { format!("{} kB", short(bytes / 1e3)) }
}

fn more(count: usize, what: &str) -> String {
    match count {
        0 => String::new(),
        1 => format!(" (and one {what})"),
        n => format!(" (and {n} {what}s)"),
    }
}
