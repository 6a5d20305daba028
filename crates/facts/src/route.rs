//! Facts and settings `route.<destination>`, routes of the main table, and facts `table.<table>.<n>`, those
//! of all other tables, in the words of `ip route`.
//!
//! The words of a setting are those of a fact, or `none` where there is no such route. They leave out what
//! few people write (scope, protocol): `route_exact.<destination>` is the kernel's message, journalled and
//! restored beside the words. It is no fact, because people cannot read it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::IpAddr;

use linerate_model::fact::{FactDecl, FactValue};
use linerate_sys::root::{ReadError, Root};
use linerate_sys::route::{delete, message_of, put, routes_with_messages, with_limits};
use linerate_sys::rtnetlink::{MAIN_TABLE, ROUTES_MAX, Route, TABLE_ROUTES_MAX};

use super::boot::unit;
use super::fact::Fact;
use super::readings::{Readings, bytes_of, fact, flawed, hex_of, setting, text_of};
use super::view::{View, key_name};
use crate::change::setting::{Persist, Setting, SettingError};

/// The topic.
pub(super) struct Routes;

const HEAD: &str = "route.";
const EXACT: &str = "route_exact.";
/// Value of a route that is not there.
const NONE: &str = "none";
/// Bit of a locked MTU: the number of its attribute. Such an MTU is not lowered by what the path reports.
const MTU_LOCK: u32 = 1 << 2;

pub(super) fn is_setting(key: &str) -> bool {
    [HEAD, EXACT].iter().any(|head| key.strip_prefix(head).is_some_and(|rest| !rest.is_empty()))
}

impl Fact for Routes {
    fn declarations(&self) -> Vec<FactDecl> {
        let what = "A route of the main table in the words of `ip route`, by its destination with the length of the \
                    prefix (`.` is written `/`), its metric and, with IPv6, its device; none to remove it.";
        let main = ["route.*", "route.*.*", "route.*.*.*"].map(|pattern| setting(pattern, "text", what));
        let others = fact(
            "table.*",
            "text",
            "table.NUMBER.N: a route of another routing table, which only traffic that a policy rule sends there takes.",
        );
        main.into_iter().chain([others]).collect()
    }

    fn read(&self, view: &View<'_>, out: &mut Readings) {
        for (key, route) in keyed(view, main_table(view)) {
            out.text(format!("{HEAD}{key}"), words(view, route));
        }
        let mut numbers: BTreeMap<u32, usize> = BTreeMap::new();
        for route in view.routes().iter().filter(|route| route.table != MAIN_TABLE) {
            let number = numbers.entry(route.table).or_default();
            out.text(format!("table.{}.{number}", route.table), words(view, route));
            *number += 1;
        }
        let main = main_table(view).count();
        if main >= ROUTES_MAX {
            out.gap("route.*", &format!("only the first {ROUTES_MAX} routes are kept"));
        }
        if view.routes().len() - main >= TABLE_ROUTES_MAX {
            out.gap("table.*", &format!("only the first {TABLE_ROUTES_MAX} routes of other tables are kept"));
        }
    }
}

fn main_table<'v>(view: &'v View<'_>) -> impl Iterator<Item = &'v Route> {
    view.routes().iter().filter(|route| route.table == MAIN_TABLE)
}

/// Routes by the keys that the kernel separates them by; further ones of the same key are numbered.
fn keyed<'r>(view: &View<'_>, routes: impl IntoIterator<Item = &'r Route>) -> Vec<(String, &'r Route)> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let one = |route: &'r Route| {
        let mut key = match route.destination {
            Some(address) => format!("{}-{}", address.to_string().replace('.', "/"), route.prefix),
            None if route.ipv6 => "default6".to_owned(),
            None => "default".to_owned(),
        };
        if let Some(metric) = route.metric {
            let _ = write!(key, ".{metric}");
        }
        if let Some(device) = route.link.filter(|_| route.ipv6).and_then(|link| view.name_of(link)) {
            let _ = write!(key, ".{}", key_name(device));
        }
        let count = seen.entry(key.clone()).or_default();
        *count += 1;
        (if *count > 1 { format!("{key}~{count}") } else { key }, route)
    };
    routes.into_iter().map(one).collect()
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
    let mtu_locked = route.limits.get("lock").is_some_and(|bits| bits & MTU_LOCK != 0);
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

/// The route that words describe; next hops are not taken from words.
fn parse(view: &View<'_>, text: &str) -> Result<Route, SettingError> {
    let flaw = || flawed(&text, "not a route in the words of `ip route`");
    let mut words = text.split_ascii_whitespace().peekable();
    let mut route = Route { table: MAIN_TABLE, ..Route::default() };
    route.refuses =
        words.next_if(|w| ["blackhole", "unreachable", "prohibit"].contains(w)).map(str::to_owned);
    match words.next().ok_or_else(flaw)? {
        "default" => {}
        "default6" => route.ipv6 = true,
        network => {
            let (address, prefix) = network.split_once('/').ok_or_else(flaw)?;
            let address: IpAddr = address.parse().map_err(|_| flaw())?;
            route.ipv6 = address.is_ipv6();
            route.prefix = prefix.parse().map_err(|_| flaw())?;
            route.destination = Some(address);
        }
    }
    while let Some(word) = words.next() {
        let is_locked = words.next_if_eq(&"lock").is_some();
        let value = words.next().ok_or_else(flaw)?;
        match word {
            "via" => route.gateway = Some(value.parse().map_err(|_| flaw())?),
            "src" => route.source = Some(value.parse().map_err(|_| flaw())?),
            "metric" => route.metric = Some(value.parse().map_err(|_| flaw())?),
            "dev" => {
                let link = view.links().iter().find(|l| l.name == value);
                route.link = Some(link.ok_or_else(|| SettingError::NoDevice(value.to_owned()))?.index);
            }
            "nexthop" => {
                return Err(flawed(&text, "a route over several next hops, which is not made from words"));
            }
            name => {
                route.limits.insert(name.to_owned(), value.parse().map_err(|_| flaw())?);
                if is_locked && name == "mtu" {
                    route.limits.insert("lock".to_owned(), MTU_LOCK);
                }
            }
        }
    }
    Ok(route)
}

/// The words without their limits: what a change of limits leaves as it is.
fn without_limits(view: &View<'_>, route: &Route) -> String {
    words(view, &Route { limits: BTreeMap::new(), next_hops: Vec::new(), ..route.clone() })
}

/// The route of a key with its message.
fn find(view: &View<'_>, name: &str) -> Result<Option<(Route, Vec<u8>)>, SettingError> {
    let all = routes_with_messages()?;
    let keyed = keyed(view, all.iter().map(|(route, _)| route));
    let at = keyed.iter().position(|(key, _)| key == name);
    Ok(at.map(|at| all[at].clone()))
}

fn write_words(view: &View<'_>, name: &str, text: &str) -> Result<(), SettingError> {
    let now = find(view, name)?;
    if text == NONE {
        return now.map_or(Ok(()), |(_, message)| Ok(delete(&message)?));
    }
    let wanted = parse(view, text)?;
    if keyed(view, [&wanted])[0].0 != name {
        return Err(flawed(&text, "a route to another destination, with another metric or device"));
    }
    let message = match now {
        // Only the limits differ: scope, protocol and the rest stay.
        Some((route, message)) if without_limits(view, &route) == without_limits(view, &wanted) => {
            with_limits(&message, &wanted.limits)
        }
        _ => message_of(&wanted),
    };
    Ok(put(&message.ok_or_else(|| flawed(&text, "not a route that can be written"))?)?)
}

fn write_exact(view: &View<'_>, name: &str, hex: &str) -> Result<(), SettingError> {
    let wanted =
        if hex == NONE { None } else { Some(bytes_of(hex).ok_or_else(|| flawed(&hex, "not hexadecimal"))?) };
    let now = find(view, name)?.map(|(_, message)| message);
    match (now, wanted) {
        (now, Some(wanted)) if now.as_ref() != Some(&wanted) => Ok(put(&wanted)?),
        (Some(now), None) => Ok(delete(&now)?),
        _ => Ok(()),
    }
}

impl Setting for Routes {
    fn read(&self, root: &Root, key: &str) -> Result<FactValue, SettingError> {
        let view = View::new(root, None, &[]);
        let none = || FactValue::Text(NONE.to_owned());
        if let Some(name) = key.strip_prefix(EXACT) {
            let found = find(&view, name)?;
            return Ok(found.map_or_else(none, |(_, message)| FactValue::Text(hex_of(&message))));
        }
        let name = key.strip_prefix(HEAD).ok_or(SettingError::NotAKey("not a key of a route"))?;
        let keyed = keyed(&view, main_table(&view));
        let found = keyed.iter().find(|(key, _)| key == name);
        Ok(found.map_or_else(none, |(_, route)| FactValue::Text(words(&view, route))))
    }

    fn write(&self, root: &Root, key: &str, value: &FactValue) -> Result<(), SettingError> {
        let text = text_of(value)?;
        if !root.is_live() {
            return Err(ReadError::Recorded.into());
        }
        let view = View::new(root, None, &[]);
        match (key.strip_prefix(HEAD), key.strip_prefix(EXACT)) {
            (Some(name), _) => write_words(&view, name, &text),
            (_, Some(name)) => write_exact(&view, name, &text),
            _ => Err(SettingError::NotAKey("not a key of a route")),
        }
    }

    fn related(&self, key: &str) -> Vec<String> {
        key.strip_prefix(HEAD).map(|name| format!("{EXACT}{name}")).into_iter().collect()
    }

    fn persist(&self, key: &str, value: &FactValue) -> Persist {
        let impossible = |reason: String| Persist::Impossible { reason };
        let Some(name) = key.strip_prefix(HEAD) else {
            return impossible("only the words of a route can be made to stay".to_owned());
        };
        let text = value.to_string();
        let is_word = |w: &str| w.bytes().all(|b| b.is_ascii_alphanumeric() || b".:/-_@".contains(&b));
        if !text.split(' ').all(is_word) || text.contains("nexthop") {
            return impossible(format!("'{text}' cannot stand in a command"));
        }
        let command = if text == NONE {
            // What makes the route may not have made it this time.
            let (family, target, metric) = target_of(name);
            format!("/bin/sh -c '/usr/sbin/ip {family}route del {target}{metric} || true'")
        } else if let Some(rest) = text.strip_prefix("default6") {
            format!("/usr/sbin/ip -6 route replace default{rest}")
        } else {
            format!("/usr/sbin/ip route replace {text}")
        };
        unit(&format!("route-{name}"), &format!("route {}", name.replace('/', ".")), command)
    }
}

/// Family, destination and metric of a key, as `ip` wants them.
fn target_of(name: &str) -> (&'static str, String, String) {
    let mut parts = name.split('.');
    let destination = parts.next().unwrap_or_default();
    let target = match destination {
        "default6" => "default".to_owned(),
        other => match other.rsplit_once('-') {
            Some((address, prefix)) => format!("{}/{prefix}", address.replace('/', ".")),
            None => other.to_owned(),
        },
    };
    let metric = parts.next().filter(|m| m.bytes().all(|b| b.is_ascii_digit()));
    let family = if destination == "default6" || destination.contains(':') { "-6 " } else { "" };
    (family, target, metric.map(|metric| format!(" metric {metric}")).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stays_is_a_command_of_ip() {
        let exec = |key: &str, value: &str| match Routes.persist(key, &FactValue::Text(value.to_owned())) {
            Persist::Unit { exec, .. } => exec.join("; "),
            other => format!("{other:?}"),
        };
        assert_eq!(
            exec("route.10/9/7/0-24.50", "none"),
            "/bin/sh -c '/usr/sbin/ip route del 10.9.7.0/24 metric 50 || true'"
        );
        assert_eq!(
            exec("route.10/9/0/0-24", "10.9.0.0/24 dev eth0 src 10.9.0.1"),
            "/usr/sbin/ip route replace 10.9.0.0/24 dev eth0 src 10.9.0.1"
        );
        assert_eq!(
            exec("route.default6.1024.eth0", "default6 via fe80::1 dev eth0 metric 1024"),
            "/usr/sbin/ip -6 route replace default via fe80::1 dev eth0 metric 1024"
        );
        assert!(exec("route.default", "default; reboot").contains("Impossible"));
    }
}
