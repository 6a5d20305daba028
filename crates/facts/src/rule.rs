//! Facts and settings `rule.<priority>.<selectors>`: policy rules in the words of `ip rule`.
//!
//! The words of a setting are those of a fact, or `none` where there is no such rule. They leave out what few
//! people write, and rules of one priority are tried in the order in which they were made:
//! `rule_exact.<priority>` is what the kernel holds at it, in its own messages, journalled and restored
//! beside the words. It is no fact, because people cannot read it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::IpAddr;

use linerate_model::fact::{FactDecl, FactValue};
use linerate_sys::root::{ReadError, Root};
use linerate_sys::rule::{PolicyRule, RULES_MAX};
use linerate_sys::rule_group::{message_of, replace, rule_of, rules_of, with_action};

use super::boot::unit;
use super::fact::Fact;
use super::readings::{Readings, bytes_of, flawed, hex_of, setting, text_of};
use super::view::View;
use crate::change::setting::{Persist, Setting, SettingError};

/// The topic.
pub(super) struct PolicyRules;

const HEAD: &str = "rule.";
const EXACT: &str = "rule_exact.";
/// Value of a rule that is not there.
const NONE: &str = "none";
/// Priorities of the rules that the kernel makes; without them a host reaches nothing.
const OF_KERNEL: [u32; 3] = [0, 32_766, 32_767];
/// Tables that have a name.
const TABLES: [(u32, &str); 3] = [(255, "local"), (254, "main"), (253, "default")];
/// Selectors whose values are not read.
const UNNUMBERED: [&str; 5] = ["l3mdev", "uidrange", "ipproto", "sport", "dport"];
/// What a rule does where it leads to no table.
const ACTIONS: [&str; 4] = ["blackhole", "unreachable", "prohibit", "nop"];

pub(super) fn is_setting(key: &str) -> bool {
    split(key).is_some() || priority_of_exact(key).is_some()
}

/// `rule.100.from-all` -> (100, `100.from-all`).
fn split(key: &str) -> Option<(u32, &str)> {
    let name = key.strip_prefix(HEAD)?;
    let (priority, selectors) = name.split_once('.')?;
    Some((priority.parse().ok()?, name)).filter(|_| !selectors.is_empty())
}

fn priority_of_exact(key: &str) -> Option<u32> {
    key.strip_prefix(EXACT)?.parse().ok()
}

impl Fact for PolicyRules {
    fn declarations(&self) -> Vec<FactDecl> {
        vec![setting(
            "rule.*.*",
            "text",
            "A policy rule in the words of `ip rule`, which chooses the routing table, by its priority and its \
             selectors (` ` and the `/` of a prefix are written `-`, `.` is written `/`); none to remove it. \
             The rules of the kernel itself, at 0, 32766 and 32767, are only read.",
        )]
    }

    fn read(&self, view: &View<'_>, out: &mut Readings) {
        for (name, rule) in named(view.rules()) {
            out.text(format!("{HEAD}{name}"), words(rule));
        }
        if view.rules().len() >= RULES_MAX {
            out.gap("rule.*", &format!("only the first {RULES_MAX} rules are kept"));
        }
    }
}

/// Rules by priority and selectors; further ones with the same are numbered.
fn named<'r>(rules: impl IntoIterator<Item = &'r PolicyRule>) -> Vec<(String, &'r PolicyRule)> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let one = |rule: &'r PolicyRule| {
        let mut name = name_of(rule.priority, &selectors(rule));
        let count = seen.entry(name.clone()).or_default();
        *count += 1;
        if *count > 1 {
            let _ = write!(name, "~{count}");
        }
        (name, rule)
    };
    rules.into_iter().map(one).collect()
}

fn name_of(priority: u32, selectors: &str) -> String {
    format!("{priority}.{}", selectors.replace(['/', ' '], "-").replace('.', "/"))
}

/// Whom a rule selects. Writing into a `String` cannot fail, so that the results are dropped.
fn selectors(rule: &PolicyRule) -> String {
    let mut text = if rule.inverted { "not " } else { "" }.to_owned();
    let everything = if rule.ipv6 { "all6" } else { "all" };
    let _ = match rule.from {
        Some((address, prefix)) => write!(text, "from {address}/{prefix}"),
        None => write!(text, "from {everything}"),
    };
    if let Some((address, prefix)) = rule.to {
        let _ = write!(text, " to {address}/{prefix}");
    }
    if rule.tos != 0 {
        let _ = write!(text, " tos {:#x}", rule.tos);
    }
    if let Some((mark, mask)) = rule.mark {
        let _ = write!(text, " fwmark {mark:#x}/{mask:#x}");
    }
    for (name, device) in [("iif", &rule.incoming), ("oif", &rule.outgoing)] {
        if let Some(device) = device {
            let _ = write!(text, " {name} {device}");
        }
    }
    for selector in &rule.selects {
        let _ = write!(text, " {selector}");
    }
    text
}

fn words(rule: &PolicyRule) -> String {
    let mut text = format!("{}: {}", rule.priority, selectors(rule));
    if let Some(table) = rule.table {
        let _ = match TABLES.iter().find(|(number, _)| *number == table) {
            Some((_, name)) => write!(text, " lookup {name}"),
            None => write!(text, " lookup {table}"),
        };
    }
    if let Some(length) = rule.suppresses {
        let _ = write!(text, " suppress_prefixlength {length}");
    }
    if let Some(priority) = rule.goes_to {
        let _ = write!(text, " goto {priority}");
    }
    if let Some(action) = &rule.action {
        let _ = write!(text, " {action}");
    }
    text
}

/// The rule that words describe.
fn parse(text: &str) -> Option<PolicyRule> {
    let (priority, rest) = text.split_once(':')?;
    let mut rule = PolicyRule { priority: priority.parse().ok()?, ..PolicyRule::default() };
    let network = |word: &str| -> Option<(IpAddr, u8)> {
        let (address, prefix) = word.split_once('/')?;
        let address: IpAddr = address.parse().ok()?;
        let longest = if address.is_ipv6() { 128 } else { 32 };
        Some((address, prefix.parse().ok().filter(|prefix| *prefix <= longest)?))
    };
    let hex = |word: &str| u32::from_str_radix(word.strip_prefix("0x")?, 16).ok();
    let mut words = rest.split_ascii_whitespace();
    while let Some(word) = words.next() {
        match word {
            "not" => rule.inverted = true,
            "from" => match words.next()? {
                "all" => {}
                "all6" => rule.ipv6 = true,
                other => rule.from = Some(network(other)?),
            },
            "to" => rule.to = Some(network(words.next()?)?),
            "tos" => rule.tos = u8::try_from(hex(words.next()?)?).ok()?,
            "fwmark" => {
                let (mark, mask) = words.next()?.split_once('/')?;
                rule.mark = Some((hex(mark)?, hex(mask)?));
            }
            "iif" => rule.incoming = Some(words.next()?.to_owned()),
            "oif" => rule.outgoing = Some(words.next()?.to_owned()),
            "lookup" => {
                let name = words.next()?;
                let known = TABLES.iter().find(|(_, known)| *known == name);
                rule.table = Some(known.map_or_else(|| name.parse().ok(), |(number, _)| Some(*number))?);
            }
            "suppress_prefixlength" => rule.suppresses = Some(words.next()?.parse().ok()?),
            "goto" => rule.goes_to = Some(words.next()?.parse().ok()?),
            action if ACTIONS.contains(&action) => rule.action = Some(action.to_owned()),
            selector if UNNUMBERED.contains(&selector) => rule.selects.push(selector.to_owned()),
            _ => return None,
        }
    }
    rule.ipv6 |= [rule.from, rule.to].iter().flatten().any(|(address, _)| address.is_ipv6());
    Some(rule)
}

/// A priority whose rules may be changed.
fn changeable(priority: u32) -> Result<u32, SettingError> {
    if OF_KERNEL.contains(&priority) {
        return Err(flawed(&priority, "a priority of the rules that the kernel makes"));
    }
    Ok(priority)
}

fn write_words(name: &str, priority: u32, text: &str) -> Result<(), SettingError> {
    let now = rules_of(changeable(priority)?)?;
    let at = named(now.iter().map(|(rule, _)| rule)).iter().position(|(known, _)| known == name);
    let mut messages: Vec<Vec<u8>> = now.iter().map(|(_, message)| message.clone()).collect();
    if text == NONE {
        let Some(at) = at else { return Ok(()) };
        messages.remove(at);
        return Ok(replace(priority, &messages)?);
    }
    let wanted = parse(text).ok_or_else(|| flawed(&text, "not a rule in the words of `ip rule`"))?;
    if words(&wanted) != text || name_of(wanted.priority, &selectors(&wanted)) != name {
        return Err(flawed(&text, "a rule of another priority or with other selectors"));
    }
    let message = match at {
        // Whom it selects is exact, also where the words have only the name of it.
        Some(at) => with_action(&messages[at], &wanted),
        None => message_of(&wanted),
    };
    let message = message.ok_or_else(|| flawed(&text, "not a rule that can be made from words"))?;
    match at {
        Some(at) => messages[at] = message,
        None => messages.push(message),
    }
    Ok(replace(priority, &messages)?)
}

fn write_exact(priority: u32, text: &str) -> Result<(), SettingError> {
    let wanted: Option<Vec<Vec<u8>>> =
        text.split_ascii_whitespace().filter(|hex| *hex != NONE).map(bytes_of).collect();
    let wanted = wanted.ok_or_else(|| flawed(&text, "not hexadecimal"))?;
    if wanted.iter().any(|message| rule_of(message).is_none_or(|rule| rule.priority != priority)) {
        return Err(flawed(&text, "a rule of another priority"));
    }
    Ok(replace(changeable(priority)?, &wanted)?)
}

impl Setting for PolicyRules {
    fn read(&self, root: &Root, key: &str) -> Result<FactValue, SettingError> {
        if let Some(priority) = priority_of_exact(key) {
            let hex: Vec<String> = rules_of(priority)?.iter().map(|(_, message)| hex_of(message)).collect();
            return Ok(FactValue::Text(if hex.is_empty() { NONE.to_owned() } else { hex.join(" ") }));
        }
        let (_, name) = split(key).ok_or(SettingError::NotAKey("not a key of a policy rule"))?;
        let view = View::new(root, None, &[]);
        let found = named(view.rules()).into_iter().find(|(known, _)| known == name);
        Ok(FactValue::Text(found.map_or_else(|| NONE.to_owned(), |(_, rule)| words(rule))))
    }

    fn write(&self, root: &Root, key: &str, value: &FactValue) -> Result<(), SettingError> {
        let text = text_of(value)?;
        if !root.is_live() {
            return Err(ReadError::Recorded.into());
        }
        match (split(key), priority_of_exact(key)) {
            (Some((priority, name)), _) => write_words(name, priority, &text),
            (_, Some(priority)) => write_exact(priority, &text),
            _ => Err(SettingError::NotAKey("not a key of a policy rule")),
        }
    }

    fn check(&self, root: &Root, key: &str, _value: &FactValue) -> Result<(), SettingError> {
        let Some((priority, name)) = split(key) else { return Ok(()) };
        changeable(priority)?;
        // Without one of them another one would have its key.
        let base = name.split('~').next().unwrap_or_default();
        let view = View::new(root, None, &[]);
        if name != base || named(view.rules()).iter().any(|(known, _)| *known == format!("{base}~2")) {
            return Err(flawed(&key, "one of several rules with the same selectors at its priority"));
        }
        Ok(())
    }

    fn related(&self, key: &str) -> Vec<String> {
        split(key).map(|(priority, _)| format!("{EXACT}{priority}")).into_iter().collect()
    }

    fn persist(&self, key: &str, value: &FactValue) -> Persist {
        let impossible = |reason: String| Persist::Impossible { reason };
        let Some((priority, name)) = split(key) else {
            return impossible("only the words of a policy rule can be made to stay".to_owned());
        };
        let text = value.to_string();
        let given = if text == NONE { None } else { Some(text) };
        let Some(selected) = selected_by(name).filter(|rule| rule.selects.is_empty()) else {
            return impossible(format!("the selectors of '{name}' cannot stand in a command"));
        };
        // At boot the first rule that fits is removed.
        let root = Root::live();
        let view = View::new(&root, None, &[]);
        let mut others = view.rules().iter().filter(|rule| rule.priority == priority);
        if others.any(|rule| rule.ipv6 == selected.ipv6 && name_of(priority, &selectors(rule)) != name) {
            return impossible(format!("other rules have the priority {priority}"));
        }
        let family = if selected.ipv6 { "-6 " } else { "" };
        let who = selectors(&selected).replace("all6", "all");
        let ip = format!("/usr/sbin/ip {family}rule");
        // What makes the rule may not have made it this time.
        let removed = format!("{ip} del {who} priority {priority} || true");
        let command = match given {
            None => format!("/bin/sh -c '{removed}'"),
            Some(text) => {
                let Some(rule) = parse(&text).filter(|rule| words(rule) == text && is_plain(&text)) else {
                    return impossible(format!("'{text}' cannot stand in a command"));
                };
                let action = words(&rule).split_off(format!("{priority}: {}", selectors(&rule)).len());
                format!("/bin/sh -c '{removed}; {ip} add {who}{action} priority {priority}'")
            }
        };
        unit(&format!("rule-{name}"), &format!("policy rule {priority}"), command)
    }
}

/// Whether words can stand in a command without quoting.
fn is_plain(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_alphanumeric() || b" .:/-_@".contains(&b))
}

/// The selectors of a name, as a rule that does nothing. In a name `-` stands for three characters: what does
/// not give the same name again is not understood.
fn selected_by(name: &str) -> Option<PolicyRule> {
    let (priority, selectors) = name.split_once('.')?;
    let mut text = format!("{priority}:");
    let mut words = selectors.split('-').peekable();
    while let Some(word) = words.next() {
        let _ = write!(text, " {}", word.replace('/', "."));
        let joint = match word {
            "from" | "to" | "fwmark" => "/",
            "iif" | "oif" => "-",
            _ => continue,
        };
        let _ = write!(text, " {}", words.next()?.replace('/', "."));
        let is_new =
            |word: &&str| ["to", "tos", "fwmark", "iif", "oif"].contains(word) || UNNUMBERED.contains(word);
        while let Some(more) = words.next_if(|word| !is_new(word)) {
            let _ = write!(text, "{joint}{}", more.replace('/', "."));
        }
    }
    let rule = parse(&text)?;
    (is_plain(&text) && name_of(rule.priority, &self::selectors(&rule)) == name).then_some(rule)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule() -> PolicyRule {
        PolicyRule {
            priority: 100,
            from: Some(("10.0.0.1".parse().unwrap(), 32)),
            incoming: Some("br-lan.7".to_owned()),
            mark: Some((16, 255)),
            table: Some(100),
            ..PolicyRule::default()
        }
    }

    #[test]
    fn a_rule_has_the_words_of_the_program() {
        let rule = PolicyRule { selects: vec!["sport".to_owned()], ..rule() };
        assert_eq!(words(&rule), "100: from 10.0.0.1/32 fwmark 0x10/0xff iif br-lan.7 sport lookup 100");
        let refusing =
            PolicyRule { ipv6: true, action: Some("prohibit".to_owned()), ..PolicyRule::default() };
        assert_eq!(words(&refusing), "0: from all6 prohibit");
        for rule in [&rule, &refusing] {
            assert_eq!(parse(&words(rule)).as_ref(), Some(rule));
        }
        for odd in
            ["", "x: from all", "5: from", "5: from 10.0.0.1/33 lookup 1", "5: from all lookup", "5: to x"]
        {
            assert_eq!(parse(odd), None, "{odd}");
        }
    }

    #[test]
    fn rules_are_named_by_whom_they_select() {
        let (rule, main) = (rule(), PolicyRule { table: Some(254), ..rule() });
        let names: Vec<String> = named([&rule, &main]).into_iter().map(|(name, _)| name).collect();
        let name = "100.from-10/0/0/1-32-fwmark-0x10-0xff-iif-br-lan/7";
        assert_eq!(names, [name.to_owned(), format!("{name}~2")]);
        assert_eq!(selected_by(name).map(|rule| selectors(&rule)), Some(selectors(&main)));
        assert_eq!(selected_by("100.from-x"), None);
    }

    #[test]
    fn what_stays_is_a_command_of_ip() {
        let exec = |key: &str, value: &str| match PolicyRules.persist(key, &FactValue::Text(value.to_owned()))
        {
            Persist::Unit { exec, .. } => exec.join("; "),
            other => format!("{other:?}"),
        };
        assert_eq!(
            exec("rule.4321.from-10/9/0/1-32", "none"),
            "/bin/sh -c '/usr/sbin/ip rule del from 10.9.0.1/32 priority 4321 || true'"
        );
        assert_eq!(
            exec("rule.4321.from-all6", "4321: from all6 lookup main suppress_prefixlength 0"),
            "/bin/sh -c '/usr/sbin/ip -6 rule del from all priority 4321 || true; \
             /usr/sbin/ip -6 rule add from all lookup main suppress_prefixlength 0 priority 4321'"
        );
        assert!(exec("rule.4321.from-all-sport", "none").contains("Impossible"));
        assert!(exec("rule.4321.from-all", "4321: from all lookup 7; reboot").contains("Impossible"));
    }
}
