//! The two ends of a test: the tool, its command line, the file's name and the line above come in, two names
//! go out. A test of a host with itself has the same name twice.

use crate::context::{Context, is_host};
use crate::limits::NAMES_MAX;
use crate::sink::{CLIENT, NAMELESS, Sink, is_loopback, plain_address};

/// The far end of a transfer that names none, until all of the text was read.
pub(crate) const UNNAMED: &str = "unnamed-server";
/// Its name where nothing else names it.
pub(crate) const SERVER: &str = "server";

/// Why a test without ends cannot be used.
pub(crate) const WHO: &str =
    "between which hosts? keep the prompt and the command, or name the file A-to-B.txt";

/// Ends of a test whose tool prints none: the host of the prompt and the one that the command names.
/// Sender first; `reversed` when the far end sends.
pub(crate) fn of_command(context: &Context, peer: Option<&str>, reversed: bool) -> Option<(String, String)> {
    let titled = || titled(&context.label).map(|(from, to)| (from.to_owned(), to.to_owned()));
    let Some(here) =
        context.host.clone().filter(|_| !context.weak || context.peer.is_some() || peer.is_some())
    else {
        return match peer {
            Some(peer) if is_loopback(peer) => Some((NAMELESS.to_owned(), NAMELESS.to_owned())),
            // A title names the sender first.
            _ => titled(),
        };
    };
    let Some(there) = peer.map(str::to_owned).or_else(|| context.peer.clone()) else { return titled() };
    let there = plain_address(&there).to_owned();
    if is_loopback(&there) {
        return Some((here.clone(), here));
    }
    if !is_host(&there) {
        return None;
    }
    Some(if reversed { (there, here) } else { (here, there) })
}

/// Ends of a test whose text names none: the host of the prompt, or a client, and a server.
pub(crate) fn unnamed(context: &Context) -> (String, String) {
    let here = context.host.clone().filter(|_| !context.weak).unwrap_or_else(|| CLIENT.to_owned());
    (here, UNNAMED.to_owned())
}

/// Sender and receiver that a title above names: `arc-1 -> arc-2`, `from arc-1 to arc-2:`.
pub(crate) fn titled(label: &str) -> Option<(&str, &str)> {
    let line = label.lines().rev().find(|line| !line.trim().is_empty())?;
    let line =
        line.trim().trim_start_matches(['#', '*', '=', '-', ' ']).trim_end_matches([':', '*', '=', ' ']);
    for sign in ["->", "=>", "→", "-->", "==>"] {
        if let Some((from, to)) = line.split_once(sign) {
            return both(last_word(from)?, first_word(to)?);
        }
    }
    let words: Vec<&str> = line.split_whitespace().collect();
    let at = words.iter().position(|w| w.eq_ignore_ascii_case("to"))?;
    let from = words.get(at.checked_sub(1)?)?;
    let to = words.get(at + 1)?.trim_end_matches([',', ':', '.', ')']);
    let is_titled =
        words.len() <= 3 || at >= 2 && words[at - 2].trim_start_matches('(').eq_ignore_ascii_case("from");
    both(from, to).filter(|_| is_titled)
}

fn last_word(text: &str) -> Option<&str> {
    text.split_whitespace().next_back().map(|w| w.trim_matches(['*', '`', '"', '(', '[', '-', '=']))
}

fn first_word(text: &str) -> Option<&str> {
    let word = text.split_whitespace().next()?;
    Some(word.trim_matches(['*', '`', '"', ')', ']', ',', ':', '>']))
}

/// Two different names that can be hosts: one of them has a digit, as no two words of a sentence have.
fn both<'l>(from: &'l str, to: &'l str) -> Option<(&'l str, &'l str)> {
    let has_digit = [from, to].iter().any(|name| name.contains(|c: char| c.is_ascii_digit()));
    (from != to && is_host(from) && is_host(to) && has_digit).then_some((from, to))
}

/// Ends of a connection whose addresses the tool prints. Known names are kept as aliases: the local address
/// belongs to the host of the prompt, the remote one to the name in the command.
pub(crate) fn of_connection(
    context: &Context,
    sink: &mut Sink,
    local: &str,
    remote: &str,
) -> Option<(String, String)> {
    let (local, remote) = (plain_address(local), plain_address(remote));
    if is_loopback(remote) || local == remote {
        let own = if is_loopback(remote) { NAMELESS } else { local };
        let here = context.host.clone().unwrap_or_else(|| own.to_owned());
        return Some((here.clone(), here));
    }
    if !is_host(local) || !is_host(remote) {
        return None;
    }
    let here = context.host.as_ref().filter(|_| !context.weak);
    match (here, &context.host) {
        (Some(here), _) => sink.alias(local, here),
        (None, Some(perhaps)) => {
            if sink.has_capacity("addresses of hosts", sink.weak.len(), NAMES_MAX) {
                sink.weak.insert(local.to_owned(), perhaps.clone());
            }
        }
        (None, None) => {}
    }
    let named =
        context.command.value(&["-c", "--client", "-H"]).map(str::to_owned).or_else(|| context.peer.clone());
    if let Some(name) = named.filter(|name| is_host(name)) {
        sink.alias(remote, &name);
    }
    Some((here.cloned().unwrap_or_else(|| local.to_owned()), remote.to_owned()))
}
