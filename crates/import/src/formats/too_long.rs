//! Lines of programs whose packets did not fit: `sendmsg: message too long`, `EMSGSIZE`, and those of
//! `tcpdump` about packets that arrived cut. Lines come in, counts `socket.…` go out.

use crate::reader::{Block, Reader};
use crate::sink::Sink;

/// The format.
pub(crate) struct TooLong;

/// Words beside "message too long" that make it an answer of the kernel.
const OF_KERNEL: [&str; 6] = ["send", "write", "udp", "mtu", "errno", "socket"];

/// What a line counts, if anything.
fn event(line: &str) -> Option<&'static str> {
    let lower = line.to_lowercase();
    if lower.contains("truncated-ip") && lower.contains("bytes missing") {
        return Some("socket.packets_cut");
    }
    let is_refused = lower.contains("message too long") && OF_KERNEL.iter().any(|word| lower.contains(word));
    (is_refused || line.contains("EMSGSIZE")).then_some("socket.message_too_long")
}

impl Reader for TooLong {
    fn name(&self) -> &'static str {
        "too-long"
    }

    fn describes(&self) -> &'static str {
        "logs, tcpdump: message too long (EMSGSIZE), truncated-ip"
    }

    // The line may be a sentence, whose words count too.
    fn is_prose(&self) -> bool {
        true
    }

    fn begins(&self, block: &Block<'_>) -> bool {
        event(block.first()).is_some()
    }

    fn read(&self, block: &Block<'_>, out: &mut Sink) -> usize {
        if let Some(key) = event(block.first()) {
            out.add(key.to_owned(), 1);
        }
        1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refused_and_cut_packets() {
        let too_long = Some("socket.message_too_long");
        assert_eq!(event("tunnel: send to peer 3: Message too long"), too_long);
        assert_eq!(event("write udp [::]:7000: sendmmsg: message too long"), too_long);
        assert_eq!(event("sendto() fails with EMSGSIZE"), too_long);
        assert_eq!(
            event("IP truncated-ip - 42 bytes missing! a.http > b.4000: Flags [.]"),
            Some("socket.packets_cut")
        );
        assert_eq!(event("Sorry, this message is too long"), None);
        assert_eq!(event("552 message too long"), None);
    }
}
