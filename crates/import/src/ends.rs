//! The two ends of a test: the tool, its command line and the file's name come in, two names go out.

use crate::context::{Context, is_host};
use crate::limits::NAMES_MAX;
use crate::sink::{Sink, is_loopback, plain_address};

/// Why a test without ends cannot be used.
pub(crate) const WHO: &str =
    "between which hosts? keep the prompt and the command, or name the file A-to-B.txt";

/// Ends of a test whose tool prints none: the host of the prompt and the one that the command names.
/// Sender first; `reversed` when the far end sends.
pub(crate) fn of_command(context: &Context, peer: Option<&str>, reversed: bool) -> Option<(String, String)> {
    let here = context.host.clone()?;
    let there = peer.map(str::to_owned).or_else(|| context.peer.clone())?;
    let there = plain_address(&there).to_owned();
    if !is_host(&there) || here == there || is_loopback(&there) {
        return None;
    }
    Some(if reversed { (there, here) } else { (here, there) })
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
    if is_loopback(remote) || !is_host(local) || !is_host(remote) {
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
