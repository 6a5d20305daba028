//! How a term of a ceiling was computed, in one line.

use linerate_model::finding::TermBasis;
use linerate_model::units::{duration_us, percent, rate};

/// The line.
pub(super) fn why(basis: &TermBasis) -> String {
    match basis {
        TermBasis::Link { host, nic, bps, payload } => {
            let nic = nic.as_deref().unwrap_or("(inventory)");
            format!("{host} {nic}: {} x {payload:.3} framing", rate(*bps))
        }
        TermBasis::Uplink { of, nic, bps, payload } => {
            let nic = nic.as_ref().map_or(String::new(), |nic| format!(" {nic}"));
            format!("uplink of {of}{nic}: {} x {payload:.3} framing", rate(*bps))
        }
        TermBasis::Pcie { host, nic, lanes, gts } => {
            format!("{host} {nic}: {lanes} PCIe lanes of {gts} GT/s")
        }
        TermBasis::Pace(bps) => format!("the tests were paced to {}", rate(*bps)),
        TermBasis::Peers => "no link or uplink rate is known: what pairs of the same kind reach".to_owned(),
        TermBasis::Tool { host, bps } => {
            format!("the tool's own load reaches {} over the loopback of {host}", rate(*bps))
        }
        TermBasis::Window { host, key, bytes, rtt_us } => {
            format!("{host} {key}: {bytes:.0} bytes of window over {}", duration_us(*rtt_us))
        }
        TermBasis::Core { sends, busy, bps } => {
            let end = if *sends { "sender" } else { "receiver" };
            format!("busiest CPU of the {end} at {} carried {}", percent(*busy), rate(*bps))
        }
    }
}
