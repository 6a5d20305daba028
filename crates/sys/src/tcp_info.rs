//! Kernel statistics of a TCP connection: `TCP_INFO` and the name of its congestion control.
//!
//! In: a connected socket. Out: plain numbers. The structure is read by its length: an older kernel returns a
//! shorter one, and the missing fields are `None`. It never interprets a value.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// Buffer for the structure of a kernel newer than this program; its new fields are ignored.
const ROOM_BYTES: usize = 512;

/// `TCPI_OPT_*` of the kernel's `tcp.h`.
const OPTION_TIMESTAMPS: u8 = 1;
const OPTION_SACK: u8 = 2;
const OPTION_WINDOW_SCALE: u8 = 4;
const OPTION_ECN: u8 = 8;

/// State of a connection. Counts since it was made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TcpInfo {
    /// Window scale shifts: ours and the peer's; `None` when scaling was not agreed.
    pub window_scale: Option<(u8, u8)>,
    /// Whether timestamps were agreed.
    pub timestamps: bool,
    /// Whether selective acknowledgements were agreed.
    pub sack: bool,
    /// Whether explicit congestion notification was agreed.
    pub ecn: bool,
    /// Largest segment that we send, bytes.
    pub snd_mss: u32,
    /// Largest segment that we saw, bytes.
    pub rcv_mss: u32,
    /// Segments sent and not yet acknowledged.
    pub unacked: u32,
    /// Path MTU that the kernel knows, bytes.
    pub pmtu: u32,
    /// Smoothed RTT, microseconds.
    pub rtt_us: u32,
    /// Its mean deviation, microseconds.
    pub rttvar_us: u32,
    /// Congestion window, segments.
    pub snd_cwnd: u32,
    /// Slow-start threshold, segments; `None` while it was never set.
    pub snd_ssthresh: Option<u32>,
    /// Pacing rate, bytes per second; `None` when the stream is not paced.
    pub pacing_rate: Option<u64>,
    /// Segments retransmitted.
    pub total_retrans: u32,
    /// Bytes acknowledged by the peer.
    pub bytes_acked: Option<u64>,
    /// Bytes received.
    pub bytes_received: Option<u64>,
    /// Bytes in the send queue that were never sent.
    pub notsent_bytes: Option<u32>,
    /// Minimum RTT, microseconds.
    pub min_rtt_us: Option<u32>,
    /// Latest estimate of the delivery rate, bytes per second.
    pub delivery_rate: Option<u64>,
    /// Time with something to send, microseconds.
    pub busy_time_us: Option<u64>,
    /// Of it held up by the peer's window.
    pub rwnd_limited_us: Option<u64>,
    /// Of it held up by the send buffer.
    pub sndbuf_limited_us: Option<u64>,
    /// Segments delivered to the peer.
    pub delivered: Option<u32>,
    /// Of them reported as marked by a queue on the path (CE).
    pub delivered_ce: Option<u32>,
    /// Bytes sent, with retransmissions.
    pub bytes_sent: Option<u64>,
    /// Bytes retransmitted.
    pub bytes_retrans: Option<u64>,
    /// Segments that the peer reported as received twice (DSACK).
    pub dsack_dups: Option<u32>,
    /// Reordering events seen.
    pub reord_seen: Option<u32>,
    /// Segments received out of order.
    pub rcv_ooopack: Option<u32>,
    /// Window that the peer offers now, bytes.
    pub snd_wnd: Option<u32>,
}

impl TcpInfo {
    /// Bytes sent and not yet acknowledged. Two counts, and the smaller one holds: the count of bytes grows
    /// too large when a queue of this host refused segments that were then sent again; segments times their
    /// size, when they are not full.
    pub fn in_flight_bytes(&self) -> u64 {
        let segments = u64::from(self.unacked) * u64::from(self.snd_mss);
        match (self.bytes_sent, self.bytes_retrans, self.bytes_acked) {
            (Some(sent), Some(again), Some(acked)) => {
                segments.min(sent.saturating_sub(again).saturating_sub(acked))
            }
            _ => segments,
        }
    }

    /// Reads the structure from its bytes; offsets after the kernel's `tcp.h`, which only ever grows at the
    /// end.
    fn parse(bytes: &[u8]) -> Self {
        let byte = |at: usize| bytes.get(at).copied().unwrap_or(0);
        let short = |at: usize| {
            let field = bytes.get(at..at + 4)?;
            Some(u32::from_ne_bytes(field.try_into().ok()?))
        };
        let long = |at: usize| {
            let field = bytes.get(at..at + 8)?;
            Some(u64::from_ne_bytes(field.try_into().ok()?))
        };
        // Two bit fields share a byte: the lower half comes first on little-endian machines.
        let (first, second) = (byte(6) & 0x0f, byte(6) >> 4);
        let (snd_wscale, rcv_wscale) =
            if cfg!(target_endian = "little") { (first, second) } else { (second, first) };
        let agreed = |option: u8| byte(5) & option != 0;
        let scaled = agreed(OPTION_WINDOW_SCALE);
        Self {
            timestamps: agreed(OPTION_TIMESTAMPS),
            sack: agreed(OPTION_SACK),
            ecn: agreed(OPTION_ECN),
            delivered: short(192),
            delivered_ce: short(196),
            window_scale: scaled.then_some((rcv_wscale, snd_wscale)),
            snd_mss: short(16).unwrap_or(0),
            rcv_mss: short(20).unwrap_or(0),
            unacked: short(24).unwrap_or(0),
            pmtu: short(60).unwrap_or(0),
            rtt_us: short(68).unwrap_or(0),
            rttvar_us: short(72).unwrap_or(0),
            snd_cwnd: short(80).unwrap_or(0),
            // The kernel returns 2^31 - 1 as long as nothing was lost, and "all ones" without pacing.
            snd_ssthresh: short(76).filter(|&value| value < i32::MAX as u32),
            pacing_rate: long(104).filter(|&value| value != u64::MAX),
            total_retrans: short(100).unwrap_or(0),
            bytes_acked: long(120),
            bytes_received: long(128),
            notsent_bytes: short(144),
            // The kernel returns "all ones" as long as it has no sample.
            min_rtt_us: short(148).filter(|&value| value != u32::MAX),
            delivery_rate: long(160),
            busy_time_us: long(168),
            rwnd_limited_us: long(176),
            sndbuf_limited_us: long(184),
            bytes_sent: long(200),
            bytes_retrans: long(208),
            dsack_dups: short(216),
            reord_seen: short(220),
            rcv_ooopack: short(224),
            snd_wnd: short(228),
        }
    }
}

fn option(socket: &impl AsFd, name: libc::c_int, room: &mut [u8]) -> io::Result<usize> {
    let mut length = libc::socklen_t::try_from(room.len()).map_err(io::Error::other)?;
    // SAFETY: the kernel writes at most `length` bytes into `room` and sets `length` to what it wrote.
    let result = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::IPPROTO_TCP,
            name,
            room.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok((length as usize).min(room.len()))
}

/// Reads the state of a connection.
pub fn read(socket: &impl AsFd) -> io::Result<TcpInfo> {
    let mut room = [0_u8; ROOM_BYTES];
    let length = option(socket, libc::TCP_INFO, &mut room)?;
    Ok(TcpInfo::parse(&room[..length]))
}

/// Name of the congestion control of a connection.
pub fn congestion(socket: &impl AsFd) -> io::Result<String> {
    let mut room = [0_u8; 32];
    let length = option(socket, libc::TCP_CONGESTION, &mut room)?;
    let name = room[..length].split(|&byte| byte == 0).next().unwrap_or_default();
    Ok(String::from_utf8_lossy(name).into_owned())
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn a_short_structure_of_an_old_kernel_leaves_the_new_fields_out() {
        let mut bytes = [0_u8; 104];
        bytes[5] = OPTION_WINDOW_SCALE | OPTION_SACK;
        bytes[6] = 0x7a;
        bytes[16..20].copy_from_slice(&1448_u32.to_ne_bytes());
        bytes[24..28].copy_from_slice(&10_u32.to_ne_bytes());
        let info = TcpInfo::parse(&bytes);
        if cfg!(target_endian = "little") {
            assert_eq!(info.window_scale, Some((7, 10)));
        }
        assert_eq!((info.sack, info.ecn, info.timestamps), (true, false, false));
        assert_eq!((info.bytes_acked, info.snd_wnd, info.min_rtt_us), (None, None, None));
        assert_eq!((info.delivered, info.delivered_ce), (None, None));
        assert_eq!(info.in_flight_bytes(), 14_480);
    }

    #[test]
    fn an_empty_structure_is_all_zero() {
        assert_eq!(TcpInfo::parse(&[]), TcpInfo::default());
    }

    #[test]
    fn a_real_connection_is_described() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        client.write_all(&[7; 1000]).unwrap();
        let mut room = [0; 1000];
        server.read_exact(&mut room).unwrap();
        let info = read(&client).unwrap();
        assert!(info.snd_mss > 500, "{info:?}");
        assert!(info.bytes_acked.is_some_and(|bytes| bytes >= 1000), "{info:?}");
        assert_eq!(info.delivered_ce.unwrap_or(0), 0, "nothing marks on the loopback: {info:?}");
        let switch =
            |name: &str| std::fs::read_to_string(format!("/proc/sys/net/ipv4/{name}")).unwrap_or_default();
        assert_eq!(info.sack, switch("tcp_sack").trim() != "0", "{info:?}");
        assert_eq!(read(&server).unwrap().bytes_received, Some(1000));
        assert!(!congestion(&client).unwrap().is_empty());
    }
}
