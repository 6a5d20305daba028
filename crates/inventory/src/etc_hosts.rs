//! `/etc/hosts`: an address, a name, other names. The first name of an address becomes the host.
//!
//! What comes in: a text. What goes out: hosts over ssh with their address as endpoint; names of this machine
//! alone are remarked.

use std::net::IpAddr;

use super::draft::{Draft, Understood, unfit};
use super::error::{Flaw, InventoryError, shown};
use super::reader::{Reader, SourceText};

/// The format.
pub(super) struct EtcHosts;

/// Lines that are probed to recognise it.
const LINES_PROBED: usize = 50;

impl Reader for EtcHosts {
    fn name(&self) -> &'static str {
        "etc-hosts"
    }

    fn describes(&self) -> &'static str {
        "/etc/hosts"
    }

    fn detects(&self, text: &str) -> bool {
        let mut any = false;
        text.lines().map(words).filter(|words| !words.is_empty()).take(LINES_PROBED).all(|words| {
            any = true;
            without_scope(words[0]).parse::<IpAddr>().is_ok()
                && words.get(1).is_some_and(|w| w.parse::<IpAddr>().is_err())
        }) && any
    }

    fn read(&self, source: &SourceText<'_>) -> Result<Understood, InventoryError> {
        let mut draft = Draft::default();
        for (number, line) in source.lines() {
            take(&mut draft, &words(line), number).map_err(|flaw| source.at(number, flaw))?;
        }
        draft.finish(self.name()).map_err(|(line, flaw)| source.at(line, flaw))
    }
}

fn words(line: &str) -> Vec<&str> {
    line.split('#').next().unwrap_or_default().split_whitespace().collect()
}

/// The scope of a link-local address stands behind a `%`.
fn without_scope(address: &str) -> &str {
    address.split('%').next().unwrap_or_default()
}

fn take(draft: &mut Draft, words: &[&str], line: usize) -> Result<(), Flaw> {
    let [address, name, more @ ..] = words else {
        if let Some(word) = words.first() {
            draft.ignore(line, *word, "an address without a name");
        }
        return Ok(());
    };
    let parsed: IpAddr = without_scope(address).parse().map_err(|_| {
        let what = format!("`{}` is not an IP address", shown(address));
        Flaw::new(what, "a line is an address and its names")
    })?;
    if let Some(why) = unfit(parsed) {
        draft.ignore(line, format!("{address} {name}"), why);
        return Ok(());
    }
    if draft.has_host(name) {
        // The other family, or a second address.
        return draft.address(name, parsed, line);
    }
    if let Some(first) = draft.owner(parsed).map(str::to_owned) {
        draft.ignore(line, format!("{address} {name}"), format!("another name of {first}"));
        return Ok(());
    }
    draft.host(name)?;
    draft.address(name, parsed, line)?;
    draft.reach(name)?.address = Some(parsed.to_string());
    if !more.is_empty() {
        draft.note(line, *name, format!("is also called {}", more.join(", ")));
    }
    Ok(())
}
