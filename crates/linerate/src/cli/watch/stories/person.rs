//! A person at the page: begins at the overview, follows links that stand there, at most two, and reads.

use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use linerate_model::units;
use linerate_report::names;

use super::page_text::PageText;
use super::story::{Expected, Story};

/// Clicks from the overview to the answer at most.
const CLICKS_MAX: usize = 2;

/// A page that was reached.
pub(super) struct Reached {
    pub(super) clicks: usize,
    pub(super) page: PageText,
    /// Where, and which answers are not on it.
    at: String,
    missing: Vec<String>,
}

/// A page over HTTP.
pub(super) fn get(server: &str, target: &str) -> PageText {
    let mut stream = TcpStream::connect(server).unwrap();
    write!(stream, "GET {target} HTTP/1.1\r\nHost: {server}\r\nConnection: close\r\n\r\n").unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    let (head, html) = response.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 "), "{target}: {head}");
    PageText::parse(html)
}

/// The page with all answers that takes the fewest clicks, or an error with the one that has most of them.
pub(super) fn find(server: &str, story: &Story, expected: &Expected) -> Result<Reached, String> {
    let mut known = BTreeSet::from(["/".to_owned()]);
    let mut waiting = vec![("/".to_owned(), String::new())];
    let mut best: Option<Reached> = None;
    for clicks in 0..=CLICKS_MAX {
        let mut next = Vec::new();
        for (at, link) in waiting {
            let page = get(server, &at);
            let mut missing = missing(&page, story, expected);
            // Of many links a person takes the one that names what is wrong.
            if clicks > 0 && !expected.who.iter().any(|who| words(&link).contains(who.as_str())) {
                missing.push(format!("the suspect in the link `{link}`"));
            }
            for (to, text) in page.links() {
                let to = to.split('#').next().unwrap_or_default().to_owned();
                if !to.is_empty() && known.insert(to.clone()) {
                    next.push((to, text));
                }
            }
            let is_better = best.as_ref().is_none_or(|best| missing.len() < best.missing.len());
            if is_better {
                best = Some(Reached { clicks, page, at, missing });
            }
        }
        if let Some(found) = best.take_if(|best| best.missing.is_empty()) {
            return Ok(found);
        }
        waiting = next;
    }
    Err(best.map_or_else(String::new, |best| {
        format!("{}: not to be read: {}\n{}", best.at, best.missing.join("; "), best.page.text())
    }))
}

/// Which of the five answers are not on a page.
fn missing(page: &PageText, story: &Story, expected: &Expected) -> Vec<String> {
    let mut missing = Vec::new();
    missing.extend(who(page, story, expected));
    let direction = page.beside("Direction");
    if !direction.contains(&expected.direction) {
        missing.push(format!("direction `{}`, found `{direction}`", expected.direction));
    }
    missing.extend(since(page, story, expected));
    missing.extend(changed(page, story, expected));
    if !page.commands().contains(&expected.command) {
        missing.push(format!("command `{}`, found {:?}", expected.command, page.commands()));
    }
    missing
}

fn words(text: &str) -> BTreeSet<&str> {
    text.split(|c: char| c.is_whitespace() || ",:;()".contains(c)).collect()
}

/// All names of the suspect, and no other host.
fn who(page: &PageText, story: &Story, expected: &Expected) -> Option<String> {
    let found = page.beside("Who");
    let named = words(&found);
    let is_own = |host: &str| {
        let is_member = |group: &String| expected.who.contains(group);
        expected.who.iter().any(|who| who == host)
            || story.inventory.groups_of(host).iter().any(|group| is_member(&group.name))
    };
    let others = story.inventory.hosts.iter().filter(|host| !is_own(&host.name));
    let is_right = expected.who.iter().all(|who| named.contains(who.as_str()))
        && others.clone().all(|host| !named.contains(host.name.as_str()));
    (!is_right).then(|| format!("who `{}`, found `{found}`", expected.who.join(" ")))
}

/// The moment that is shown, near the true one.
fn since(page: &PageText, story: &Story, expected: &Expected) -> Option<String> {
    let found = page.beside("Since");
    let (since, within) = expected.since;
    let true_ms = story.start_ms + since.as_millis() as u64;
    let shown: String = found.chars().take("2026-03-02 06:15:00".len()).collect();
    let shown_s = (0..=within.as_secs()).map(|off| off * 1000).find(|off| {
        let at = |ms: u64| units::date(ms).starts_with(&shown);
        at(true_ms + off) || at(true_ms.saturating_sub(*off))
    });
    let is_right = shown.len() == "2026-03-02 06:15:00".len() && shown_s.is_some();
    (!is_right)
        .then(|| format!("since {} within {} s, found `{found}`", units::date(true_ms), within.as_secs()))
}

/// The settings that are the cause come first, each with host and both values, no other before them; where
/// there is none, that nothing changed.
fn changed(page: &PageText, story: &Story, expected: &Expected) -> Vec<String> {
    let found = page.beside("Changed");
    let mut missing = Vec::new();
    let lines: Vec<&str> = found.lines().collect();
    for cause in &expected.causes {
        let key = names::setting(&cause.key);
        let value = cause.from.as_ref().map_or_else(|| "absent".to_owned(), names::fact);
        let is_it = |line: &&str| {
            line.starts_with(&cause.host)
                && line.contains(&format!("{key} {value} -> {}", names::fact(&cause.to)))
        };
        if !lines.iter().take(expected.causes.len()).any(is_it) {
            missing.push(format!("first of what changed: {} {key}, found `{found}`", cause.host));
        }
    }
    if expected.causes.is_empty() && !story.harmless.is_empty() {
        return missing;
    }
    if expected.causes.is_empty() && !found.starts_with("No setting") {
        missing.push(format!("that nothing changed, found `{found}`"));
    }
    missing
}
