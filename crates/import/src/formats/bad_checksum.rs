//! Packets that `tcpdump -v` or the kernel saw with a wrong checksum: `[bad udp cksum 0x1c2d -> 0x0a4f!]`.
//! Lines come in, a count `socket.bad_checksums` goes out. At the host that sends them it may mean nothing:
//! its NIC fills the checksum in behind the capture.

use crate::reader::{Block, Reader};
use crate::sink::Sink;

/// The format.
pub(crate) struct BadChecksum;

/// What tcpdump prints of it, for UDP, TCP and the header of IP.
const SIGNS: [&str; 3] = ["bad udp cksum", "bad cksum", "(incorrect ->"];

fn is_bad(line: &str) -> bool {
    // The kernel of the receiver: `UDP: bad checksum. From 192.0.2.1:27503 to 192.0.2.2:8472 ulen 75`
    line.contains("UDP: bad checksum. From ")
        || SIGNS.iter().any(|sign| line.contains(sign)) && line.contains("0x")
        || line.contains("bad cksum") && line.contains("(->")
}

impl Reader for BadChecksum {
    fn name(&self) -> &'static str {
        "tcpdump-cksum"
    }

    fn describes(&self) -> &'static str {
        "tcpdump -v, dmesg: packets with a wrong checksum"
    }

    fn begins(&self, block: &Block<'_>) -> bool {
        is_bad(block.first())
    }

    fn read(&self, _block: &Block<'_>, out: &mut Sink) -> usize {
        out.add("socket.bad_checksums".to_owned(), 1);
        1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_checksums_of_udp_tcp_and_ip() {
        for line in [
            "    10.4.0.7.8472 > 10.4.0.9.8472: [bad udp cksum 0x1c2d -> 0x0a4f!] OTV, flags [I] (0x08)",
            "    10.4.0.7.443 > 10.4.0.9.5000: Flags [S.], cksum 0x5f21 (incorrect -> 0x4a1e), seq 1",
            "IP (tos 0x0, ttl 64, proto UDP (17), length 78, bad cksum 0 (->e2a1)!)",
            "[ 1423.03] UDP: bad checksum. From 192.0.2.1:27503 to 192.0.2.2:8472 ulen 75",
        ] {
            assert!(is_bad(line), "{line}");
        }
        for line in ["cksum 0x5f21 (correct), seq 1", "[udp sum ok] 4 words", "it was a bad cksum, I think"] {
            assert!(!is_bad(line), "{line}");
        }
    }
}
