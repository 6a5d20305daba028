//! A small cluster for the tests of what is tried where: hosts `a` to `d`, and a diagnosis of some of their
//! pairs.

use linerate_model::ceiling::Ceiling;
use linerate_model::finding::Diagnosis;
use linerate_model::inventory::Inventory;

/// Four hosts.
pub(super) fn inventory() -> Inventory {
    let mut inventory = Inventory::default();
    for name in ["a", "b", "c", "d"] {
        let host = serde_json::json!({"name": name, "transport": "local", "endpoints": [
            {"address": "10.0.0.1", "layer": "underlay"}]});
        inventory.hosts.push(serde_json::from_value(host).unwrap());
    }
    inventory
}

/// Ordered pairs with the share of their ceiling of 1 Gbit/s.
pub(super) fn diagnosis(cells: &[(&str, &str, f64)]) -> Diagnosis {
    let cell = |(from, to, share): &(&str, &str, f64)| {
        let value = serde_json::json!({"from": from, "to": to, "layer": "underlay",
            "throughput_bps": 1e9 * share, "ceiling": Ceiling::default(), "share": share});
        serde_json::from_value(value).unwrap()
    };
    Diagnosis { run: "r".to_owned(), cells: cells.iter().map(cell).collect(), ..Diagnosis::default() }
}
