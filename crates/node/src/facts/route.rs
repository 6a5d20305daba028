//! Facts `route.<n>` and `table.<table>.<n>`: routes of the main table and of all others, in the words of
//! `ip route`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use linerate_model::fact::FactDecl;
use linerate_sys::rtnetlink::{MAIN_TABLE, ROUTES_MAX, Route, TABLE_ROUTES_MAX};

use super::fact::Fact;
use super::readings::{Readings, fact};
use super::view::View;

/// The topic.
pub(super) struct Routes;

impl Fact for Routes {
    fn declarations(&self) -> Vec<FactDecl> {
        vec![
            fact(
                "route.*",
                "text",
                "A route of the main table in the words of `ip route`, numbered in their order.",
            ),
            fact(
                "table.*",
                "text",
                "table.NUMBER.N: a route of another routing table, which only traffic that a policy rule sends there takes.",
            ),
        ]
    }

    fn read(&self, view: &View<'_>, out: &mut Readings) {
        let mut numbers: BTreeMap<u32, usize> = BTreeMap::new();
        for route in view.routes() {
            let number = numbers.entry(route.table).or_default();
            let key = if route.table == MAIN_TABLE {
                format!("route.{number}")
            } else {
                format!("table.{}.{number}", route.table)
            };
            out.text(key, words(view, route));
            *number += 1;
        }
        let main = numbers.get(&MAIN_TABLE).copied().unwrap_or_default();
        if main >= ROUTES_MAX {
            out.gap("route.*", &format!("only the first {ROUTES_MAX} routes are kept"));
        }
        if view.routes().len() - main >= TABLE_ROUTES_MAX {
            out.gap("table.*", &format!("only the first {TABLE_ROUTES_MAX} routes of other tables are kept"));
        }
    }
}

/// Writing into a `String` cannot fail, so that the results are dropped.
fn words(view: &View<'_>, route: &Route) -> String {
    let mut text = route.refuses.as_ref().map(|refuses| format!("{refuses} ")).unwrap_or_default();
    let _ = match route.destination {
        Some(address) => write!(text, "{address}/{}", route.prefix),
        None if route.ipv6 => write!(text, "default6"),
        None => write!(text, "default"),
    };
    let device = |index: u32| view.name_of(index).map_or_else(|| format!("#{index}"), String::from);
    if let Some(gateway) = route.gateway {
        let _ = write!(text, " via {gateway}");
    }
    if let Some(link) = route.link {
        let _ = write!(text, " dev {}", device(link));
    }
    if let Some(source) = route.source {
        let _ = write!(text, " src {source}");
    }
    if let Some(metric) = route.metric {
        let _ = write!(text, " metric {metric}");
    }
    // A locked MTU is not lowered by what the path reports; the bit is the number of the attribute.
    let mtu_locked = route.limits.get("lock").is_some_and(|bits| bits & (1 << 2) != 0);
    for (name, value) in route.limits.iter().filter(|(name, _)| *name != "lock") {
        let lock = if mtu_locked && name == "mtu" { " lock" } else { "" };
        let _ = write!(text, " {name}{lock} {value}");
    }
    for (gateway, link) in &route.next_hops {
        text.push_str(" nexthop");
        if let Some(gateway) = gateway {
            let _ = write!(text, " via {gateway}");
        }
        let _ = write!(text, " dev {}", device(*link));
    }
    text
}
