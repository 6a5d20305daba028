//! Facts `rule.<n>`: policy rules in the words of `ip rule`, in the order in which they are tried.

use std::fmt::Write as _;

use linerate_model::fact::FactDecl;
use linerate_sys::rule::{PolicyRule, RULES_MAX};

use super::fact::Fact;
use super::readings::{Readings, fact};
use super::view::View;

/// The topic.
pub(super) struct PolicyRules;

impl Fact for PolicyRules {
    fn declarations(&self) -> Vec<FactDecl> {
        vec![fact(
            "rule.*",
            "text",
            "A policy rule in the words of `ip rule`, which chooses the routing table; numbered in their order.",
        )]
    }

    fn read(&self, view: &View<'_>, out: &mut Readings) {
        for (number, rule) in view.rules().iter().enumerate() {
            out.text(format!("rule.{number}"), words(rule));
        }
        if view.rules().len() >= RULES_MAX {
            out.gap("rule.*", &format!("only the first {RULES_MAX} rules are kept"));
        }
    }
}

/// Writing into a `String` cannot fail, so that the results are dropped.
fn words(rule: &PolicyRule) -> String {
    let mut text = format!("{}:", rule.priority);
    if rule.inverted {
        text.push_str(" not");
    }
    let everything = if rule.ipv6 { "all6" } else { "all" };
    let _ = match rule.from {
        Some((address, prefix)) => write!(text, " from {address}/{prefix}"),
        None => write!(text, " from {everything}"),
    };
    if let Some((address, prefix)) = rule.to {
        let _ = write!(text, " to {address}/{prefix}");
    }
    if rule.tos != 0 {
        let _ = write!(text, " tos {}", rule.tos);
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
    if let Some(table) = rule.table {
        let _ = match table {
            255 => write!(text, " lookup local"),
            254 => write!(text, " lookup main"),
            253 => write!(text, " lookup default"),
            table => write!(text, " lookup {table}"),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_has_the_words_of_the_program() {
        let rule = PolicyRule {
            priority: 100,
            from: Some(("10.0.0.1".parse().unwrap(), 32)),
            incoming: Some("lo".to_owned()),
            mark: Some((16, 255)),
            selects: vec!["sport".to_owned()],
            table: Some(100),
            ..PolicyRule::default()
        };
        assert_eq!(words(&rule), "100: from 10.0.0.1/32 fwmark 0x10/0xff iif lo sport lookup 100");
        let refusing =
            PolicyRule { ipv6: true, action: Some("prohibit".to_owned()), ..PolicyRule::default() };
        assert_eq!(words(&refusing), "0: from all6 prohibit");
    }
}
