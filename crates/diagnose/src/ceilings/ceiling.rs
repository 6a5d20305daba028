//! What a pair should reach, from the hardware: the smallest of link x framing, uplink of the groups, PCIe
//! lanes; where nothing is known, what peers of the same kind reach. Window and core terms are listed beside
//! them but never lower the ceiling: a setting that binds is a finding, not an excuse. What the tool itself
//! reaches on the hosts does: beyond it nothing can be said about the network.

use linerate_model::finding::{Ceiling, CeilingTerm, TermBasis, TermName};
use linerate_model::inventory::Layer;

use crate::evidence::{CellEvidence, Facts};
use crate::rules::CeilingRules;

/// Payload share of a link for TCP at the MTU of the machines' network.
pub(crate) fn framing(mtu: f64, layer: Layer, rules: &CeilingRules) -> f64 {
    let tunnel = if layer == Layer::Overlay { rules.vxlan_bytes } else { 0.0 };
    (mtu - rules.tcp_bytes - tunnel) / (mtu + rules.ethernet_bytes)
}

/// Ceiling of a cell. `peers` is what cells of the same kind reach.
pub(crate) fn of(facts: &Facts<'_>, cell: &CellEvidence<'_>, peers: Option<f64>) -> Ceiling {
    let mut hardware = links(facts, cell);
    hardware.extend(uplinks(facts, cell));
    hardware.extend(pcie(facts, cell));
    if hardware.is_empty() {
        hardware.extend(peers.map(|bps| term(TermName::Peers, bps, TermBasis::Peers)));
    }
    hardware.extend(tool(facts, cell));
    hardware.extend(pace(cell));
    hardware.sort_by(|a, b| a.bps.total_cmp(&b.bps));
    let (bps, binding) = hardware.first().map_or((None, TermName::Unknown), |t| (Some(t.bps), t.name));
    let mut terms = hardware;
    terms.extend(window(facts, cell));
    terms.extend(core(cell));
    terms.sort_by(|a, b| a.bps.total_cmp(&b.bps));
    Ceiling { bps, binding, terms }
}

/// MTU of the machines' network on the path of a cell: the smaller of the ends, 1500 where it was not read.
fn mtu(facts: &Facts<'_>, cell: &CellEvidence<'_>) -> f64 {
    let end = |host: &str| {
        let nic = facts.nic(host, Layer::Underlay).or_else(|| facts.fastest_nic(host).map(|(nic, _)| nic))?;
        facts.number(host, &format!("nic.{nic}.mtu"))
    };
    let known = [end(cell.from), end(cell.to)].into_iter().flatten().fold(f64::INFINITY, f64::min);
    let rules = &facts.rules.ceilings;
    if known.is_finite() && known >= rules.mtu_min { known } else { rules.mtu_usual }
}

fn links(facts: &Facts<'_>, cell: &CellEvidence<'_>) -> Vec<CeilingTerm> {
    let payload = framing(mtu(facts, cell), cell.layer, &facts.rules.ceilings);
    let link = |host: &str| {
        let declared = [cell.layer, Layer::Underlay]
            .into_iter()
            .find_map(|layer| facts.snapshot.inventory.endpoint(host, layer)?.link_bps)
            .map(|bps| (None, bps));
        let read = || {
            let nic = facts.nic(host, Layer::Underlay).or_else(|| facts.nic(host, cell.layer))?;
            let bps = facts.number(host, &format!("nic.{nic}.speed_mbit"))? * 1e6;
            (bps > 0.0 && !facts.is_virtual(host, nic)).then(|| (Some(nic.to_owned()), bps))
        };
        let (nic, bps) = declared.or_else(read)?;
        let basis = TermBasis::Link { host: host.to_owned(), nic, bps, payload };
        Some(term(TermName::Link, bps * payload, basis))
    };
    [cell.from, cell.to].into_iter().filter_map(link).collect()
}

fn uplinks(facts: &Facts<'_>, cell: &CellEvidence<'_>) -> Vec<CeilingTerm> {
    let payload = framing(mtu(facts, cell), cell.layer, &facts.rules.ceilings);
    let inventory = &facts.snapshot.inventory;
    let (from, to) = (inventory.groups_of(cell.from), inventory.groups_of(cell.to));
    let crossed = from
        .iter()
        .filter(|g| !to.iter().any(|o| o.name == g.name))
        .chain(to.iter().filter(|g| !from.iter().any(|o| o.name == g.name)));
    crossed
        .filter_map(|group| {
            let machine = || {
                let machine = group.machine.as_ref()?;
                let (nic, bps) = facts.fastest_nic(machine)?;
                Some((machine, Some(nic.to_owned()), bps))
            };
            let (of, nic, bps) = group.uplink_bps.map(|bps| (&group.name, None, bps)).or_else(machine)?;
            let basis = TermBasis::Uplink { of: of.clone(), nic, bps, payload };
            Some(term(TermName::Uplink, bps * payload, basis))
        })
        .collect()
}

/// Bit/s of PCIe lanes after the coding of the line and before all headers: 8b/10b, from 8 GT/s on 128b/130b
/// (PCIe 3.0).
pub(crate) fn lanes_bps(gts: f64, width: f64, rules: &CeilingRules) -> f64 {
    let is_new = gts >= rules.pcie_coding_change_gts;
    let coding = if is_new { rules.pcie_coding_new } else { rules.pcie_coding_old };
    gts * 1e9 * width * coding
}

fn pcie(facts: &Facts<'_>, cell: &CellEvidence<'_>) -> Vec<CeilingTerm> {
    let lanes = |host: &str| {
        let nic = facts.nic(host, Layer::Underlay)?;
        let gts = facts.number(host, &format!("nic.{nic}.pcie.speed_gts"))?;
        let lanes = facts.number(host, &format!("nic.{nic}.pcie.width"))?;
        let rules = &facts.rules.ceilings;
        let bps = lanes_bps(gts, lanes, rules) * rules.pcie_share;
        let basis = || TermBasis::Pcie { host: host.to_owned(), nic: nic.to_owned(), lanes, gts };
        (gts > 0.0 && lanes > 0.0).then(|| term(TermName::Pcie, bps, basis()))
    };
    [cell.from, cell.to].into_iter().filter_map(lanes).collect()
}

/// Window over RTT: what the buffers allow. Uses the loaded RTT, for that is the one the window has to span.
fn window(facts: &Facts<'_>, cell: &CellEvidence<'_>) -> Vec<CeilingTerm> {
    let Some(rtt_us) = cell.rtt_loaded_us.or(cell.rtt_idle_us).filter(|us| *us > 0.0) else {
        return Vec::new();
    };
    let limit = |host: &str, key: &str, share: f64| {
        let bytes = facts.get(host, key)?.number(2)? * share;
        let basis = TermBasis::Window { host: host.to_owned(), key: key.to_owned(), bytes, rtt_us };
        Some(term(TermName::Window, bytes * 8.0 / (rtt_us / 1e6), basis))
    };
    [
        limit(cell.to, "sysctl.net.ipv4.tcp_rmem", facts.rules.ceilings.receive_window_share),
        limit(cell.from, "sysctl.net.ipv4.tcp_wmem", 1.0),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// One core: what the busiest CPU would carry if it were busy all the time.
fn core(cell: &CellEvidence<'_>) -> Option<CeilingTerm> {
    let (sends, busy) = [(true, cell.core_busy_tx), (false, cell.core_busy_rx)]
        .into_iter()
        .filter_map(|(sends, busy)| Some((sends, busy.filter(|b| *b > cell.rules.ceilings.core_busy_min)?)))
        .max_by(|a, b| a.1.total_cmp(&b.1))?;
    let bps = cell.throughput_bps?;
    Some(term(TermName::Core, bps / busy.min(1.0), TermBasis::Core { sends, busy, bps }))
}

/// What the transfers were paced to: what is faster cannot show.
fn pace(cell: &CellEvidence<'_>) -> Option<CeilingTerm> {
    let bps = cell.pace_bps?;
    Some(term(TermName::Pace, bps.max(cell.throughput_bps.unwrap_or(0.0)), TermBasis::Pace(bps)))
}

/// What the tool's own load reaches over the loopback of the weaker host, where that was measured. A pair
/// that did better shows that it can do at least that.
fn tool(facts: &Facts<'_>, cell: &CellEvidence<'_>) -> Option<CeilingTerm> {
    let own = |host: &str| Some((host.to_owned(), facts.of(host)?.tool_bps?));
    let (host, bps) =
        [own(cell.from), own(cell.to)].into_iter().flatten().min_by(|a, b| a.1.total_cmp(&b.1))?;
    let reached = bps.max(cell.throughput_bps.unwrap_or(0.0));
    Some(term(TermName::Tool, reached, TermBasis::Tool { host, bps }))
}

fn term(name: TermName, bps: f64, basis: TermBasis) -> CeilingTerm {
    CeilingTerm { name, bps, basis: Some(basis), why: String::new() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::Rules;
    use linerate_model::kind::TcpPlan;
    use linerate_model::sample::Outcome;

    fn framing(mtu: f64, layer: Layer) -> f64 {
        super::framing(mtu, layer, &Rules::DEFAULT.ceilings)
    }

    #[test]
    fn framing_of_the_usual_mtus() {
        assert!((framing(1500.0, Layer::Underlay) - 1448.0 / 1538.0).abs() < 1e-9);
        assert!((framing(9000.0, Layer::Underlay) - 8948.0 / 9038.0).abs() < 1e-9);
        assert!((framing(1500.0, Layer::Overlay) - 1398.0 / 1538.0).abs() < 1e-9);
    }

    fn fast_pair(tool_bps: Option<f64>) -> linerate_model::snapshot::Snapshot {
        use linerate_model::fact::HostFacts;
        use linerate_model::inventory::{Endpoint, Host, Inventory, TransportSpec};
        use linerate_model::plan::Test;
        use linerate_model::sample::{Measurement, Sample};
        let host = |name: &str, last: u8| Host {
            name: name.to_owned(),
            transport: TransportSpec::Local,
            groups: Vec::new(),
            endpoints: vec![Endpoint {
                address: [10, 0, 0, last].into(),
                layer: Layer::Underlay,
                netns: None,
                link_bps: Some(100e9),
            }],
            state_dir: None,
            etc_dir: None,
            cache_dir: None,
        };
        let test =
            Test { id: 1, ..Test::new("a".into(), "b".into(), Layer::Underlay, TcpPlan::single(400).into()) };
        let measured = Measurement { throughput_bps: Some(28e9), ..Measurement::default() };
        linerate_model::snapshot::Snapshot {
            inventory: Inventory { hosts: vec![host("a", 1), host("b", 2)], ..Inventory::default() },
            facts: [("b".to_owned(), HostFacts { tool_bps, ..HostFacts::default() })].into(),
            samples: vec![Sample::new(test, 0, Outcome::Measured(Box::new(measured)))],
            ..Default::default()
        }
    }

    fn ceiling_of(tool_bps: Option<f64>) -> Ceiling {
        let snapshot = fast_pair(tool_bps);
        let cells = crate::evidence::collect(&snapshot, &Rules::DEFAULT);
        of(&Facts::new(&snapshot, &Rules::DEFAULT), &cells[0], None)
    }

    #[test]
    fn a_transfer_is_held_against_its_pace() {
        let mut snapshot = fast_pair(None);
        let Outcome::Measured(measured) = &mut snapshot.samples[0].outcome else { panic!() };
        (measured.asked_bps, measured.throughput_bps) = (Some(8e9), Some(7.9e9));
        let cells = crate::evidence::collect(&snapshot, &Rules::DEFAULT);
        let ceiling = of(&Facts::new(&snapshot, &Rules::DEFAULT), &cells[0], None);
        assert_eq!((ceiling.binding, ceiling.bps), (TermName::Pace, Some(8e9)));
        let knowledge = linerate_knowledge::Knowledge::builtin().unwrap();
        let diagnosis = crate::diagnose(&snapshot, &knowledge);
        assert_eq!(diagnosis.findings.len(), 0, "{:?}", diagnosis.findings);
    }

    #[test]
    fn the_tool_binds_where_it_is_slower_than_the_link() {
        assert_eq!(ceiling_of(None).binding, TermName::Link);
        let bound = ceiling_of(Some(30e9));
        assert_eq!((bound.binding, bound.bps), (TermName::Tool, Some(30e9)));
        let basis = TermBasis::Tool { host: "b".to_owned(), bps: 30e9 };
        assert_eq!(bound.terms[0].basis, Some(basis));
        assert_eq!(ceiling_of(Some(200e9)).binding, TermName::Link);
        // A pair that did better than the loopback shows that the tool can do that much.
        assert_eq!(ceiling_of(Some(20e9)).bps, Some(28e9));
    }
}
