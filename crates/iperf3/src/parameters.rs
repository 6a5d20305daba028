//! What a client asks a server for: the parameter message.
//!
//! What comes in: JSON of a client of any version, or our own specs. What goes out: checked parameters, or
//! JSON that every version understands. Flags travel only when they are set, because a server takes the mere
//! presence of a boolean for "yes". It never accepts a number beyond iperf3's own limits.

use serde_json::{Map, Value};

use super::lenient;
use super::protocol::{STREAMS_MAX, Violation};

/// How this program names itself to peers: the shape that iperf3 uses, so that parsers do not fail.
pub const VERSION: &str = concat!("linerate ", env!("CARGO_PKG_VERSION"));

/// Protocol of the streams.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Iperf3Protocol {
    /// TCP.
    #[default]
    Tcp,
    /// UDP.
    Udp,
}

/// Direction of the data.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum DataDirection {
    /// The client sends.
    #[default]
    Forward,
    /// The server sends.
    Reverse,
    /// Both do.
    Both,
}

/// Longest start-up that may be left out, seconds.
pub const OMIT_S_MAX: u32 = 600;
/// Longest test, seconds.
pub const TIME_S_MAX: u32 = 86_400;
/// Largest segment size, bytes.
pub const MSS_MAX: u32 = 32_767;
/// Largest socket buffer, bytes.
pub const WINDOW_MAX: u32 = 512 << 20;
/// Smallest and largest UDP payload, bytes.
pub const UDP_LEN: (u32, u32) = (16, 65_507);
/// Largest number of a CPU.
pub const CPU_MAX: u32 = 1024;
/// Largest IPv6 flow label: 20 bits.
pub const FLOW_LABEL_MAX: u32 = 0xf_ffff;
/// Most bytes of a train of datagrams, and what a receiver of trains has ready, as iperf3 has them.
pub const GSO_BYTES_MAX: u32 = 65_507;
/// See [`GSO_BYTES_MAX`].
pub const GRO_BYTES: u32 = 65_535;
/// Largest block of a stream, bytes.
pub const BLOCK_MAX: u32 = 1 << 20;

/// What a test is.
// Each flag is one of the protocol's.
#[allow(clippy::struct_excessive_bools)]
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Parameters {
    /// Protocol of the streams.
    pub protocol: Iperf3Protocol,
    /// Direction of the data.
    pub direction: DataDirection,
    /// Start-up that is left out, seconds.
    pub omit_s: u32,
    /// Length, seconds; 0 when bytes or blocks end it.
    pub time_s: u32,
    /// Bytes that end it; 0 for none.
    pub bytes: u64,
    /// Blocks that end it; 0 for none.
    pub blocks: u64,
    /// Streams per direction.
    pub parallel: u32,
    /// Largest segment, bytes.
    pub mss: Option<u32>,
    /// TCP sends small segments at once.
    pub nodelay: bool,
    /// Socket buffers, bytes.
    pub window: Option<u32>,
    /// Block of a write, payload of a datagram, bytes.
    pub len: Option<u32>,
    /// Rate of each stream, bit/s; 0 for as fast as it goes.
    pub rate_bps: u64,
    /// Blocks that are sent at once when a rate is set.
    pub burst: u32,
    /// Rate that the kernel paces each stream to, bit/s; 0 for none.
    pub fq_rate_bps: u64,
    /// Type of service byte.
    pub tos: u32,
    /// Congestion control of TCP.
    pub congestion: Option<String>,
    /// Free text, repeated in outputs.
    pub title: Option<String>,
    /// Free text, repeated in outputs.
    pub extra_data: Option<String>,
    /// The server's output is wanted with its results.
    pub get_server_output: bool,
    /// Sequence numbers of 64 bits in datagrams.
    pub udp_counters_64bit: bool,
    /// Datagrams are not fragmented.
    pub dont_fragment: bool,
    /// CPU of the server's threads.
    pub server_cpu: Option<u32>,
    /// IPv6 flow label of what the client sends.
    pub flow_label: Option<u32>,
    /// Senders of TCP hand pages of a file in memory to the kernel.
    pub zerocopy: bool,
    /// Receivers need not copy.
    pub skip_rx_copy: bool,
    /// Datagrams go to the kernel and come from it in trains (GSO and GRO).
    pub gsro: bool,
    /// Multipath TCP.
    pub mptcp: bool,
    /// Proof of who the client is.
    pub authtoken: Option<String>,
    /// What the client calls itself.
    pub client_version: String,
}

/// Parameters that a server does not take.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// A number beyond its limit.
    #[error("{what} is {value}, allowed is {limit}")]
    Limit {
        /// Which.
        what: &'static str,
        /// Its value.
        value: i64,
        /// What is allowed.
        limit: &'static str,
    },
    /// Something that is not offered here.
    #[error("{what} is not offered here")]
    Missing {
        /// What.
        what: &'static str,
    },
}

impl Parameters {
    /// Streams of the whole test: twice as many when both ends send.
    pub fn streams(&self) -> usize {
        self.parallel as usize * if self.direction == DataDirection::Both { 2 } else { 1 }
    }

    /// Whether a time ends the test.
    pub fn by_time(&self) -> bool {
        self.bytes == 0 && self.blocks == 0
    }

    /// Sizes of trains of datagrams, which a server of iperf3 takes from the message.
    fn trains(&self) -> Vec<(&'static str, u32)> {
        let datagram = self.len.unwrap_or(UDP_LEN.0).max(1);
        let train = GSO_BYTES_MAX / datagram * datagram;
        let sizes = vec![("gso_dg_size", datagram), ("gso_bf_size", train), ("gro_bf_size", GRO_BYTES)];
        if self.gsro { sizes } else { Vec::new() }
    }

    /// The message of a client.
    pub fn to_json(&self) -> Vec<u8> {
        let mut map = Map::new();
        let protocol = if self.protocol == Iperf3Protocol::Udp { "udp" } else { "tcp" };
        let mut put = |key: &str, value: Value| drop(map.insert(key.to_owned(), value));
        put(protocol, true.into());
        put("omit", self.omit_s.into());
        put("time", self.time_s.into());
        put("num", self.bytes.into());
        put("blockcount", self.blocks.into());
        put("parallel", self.parallel.into());
        for (key, set) in [
            ("nodelay", self.nodelay),
            ("reverse", self.direction == DataDirection::Reverse),
            ("bidirectional", self.direction == DataDirection::Both),
            ("mptcp", self.mptcp),
        ] {
            if set {
                put(key, true.into());
            }
        }
        for (key, set) in [
            ("get_server_output", self.get_server_output),
            ("udp_counters_64bit", self.udp_counters_64bit),
            ("dont_fragment", self.dont_fragment),
            ("zerocopy", self.zerocopy),
            ("skip_rx_copy", self.skip_rx_copy),
            ("gso", self.gsro),
            ("gro", self.gsro),
        ] {
            if set {
                put(key, 1.into());
            }
        }
        for (key, bytes) in self.trains() {
            put(key, bytes.into());
        }
        for (key, number) in [
            ("MSS", self.mss),
            ("window", self.window),
            ("len", self.len),
            ("server_affinity", self.server_cpu),
            ("flowlabel", self.flow_label),
        ] {
            if let Some(number) = number {
                put(key, number.into());
            }
        }
        for (key, number) in [
            ("bandwidth", self.rate_bps),
            ("burst", self.burst.into()),
            ("fqrate", self.fq_rate_bps),
            ("TOS", self.tos.into()),
        ] {
            if number != 0 {
                put(key, number.into());
            }
        }
        put("pacing_timer", 1000.into());
        for (key, text) in [
            ("congestion", &self.congestion),
            ("title", &self.title),
            ("extra_data", &self.extra_data),
            ("authtoken", &self.authtoken),
        ] {
            if let Some(text) = text {
                put(key, text.as_str().into());
            }
        }
        put("client_version", self.client_version.as_str().into());
        Value::Object(map).to_string().into_bytes()
    }

    /// Reads a client's message. What is unknown, missing or of the wrong type is left at its default;
    /// whether a server takes the rest is a question for [`Self::check`].
    pub fn from_json(bytes: &[u8]) -> Result<(Self, Option<Unfit>), Violation> {
        let unusable = |why: String| Violation::Message { what: "parameters", why };
        let value: Value = serde_json::from_slice(bytes).map_err(|error| unusable(error.to_string()))?;
        let map = value.as_object().ok_or_else(|| unusable("no JSON object".to_owned()))?;
        let get = |key: &str| map.get(key);
        let flag = |key: &str| lenient::flag(get(key));
        let small = |key: &str| lenient::small(get(key)).filter(|number| *number != 0);
        let mut unfit = None;
        let protocol = if flag("udp") { Iperf3Protocol::Udp } else { Iperf3Protocol::Tcp };
        if flag("sctp") {
            unfit = Some(Unfit::Missing { what: "SCTP" });
        }
        let direction = match (flag("bidirectional"), flag("reverse")) {
            (true, _) => DataDirection::Both,
            (false, true) => DataDirection::Reverse,
            (false, false) => DataDirection::Forward,
        };
        let parameters = Self {
            protocol,
            direction,
            omit_s: lenient::small(get("omit")).unwrap_or(0),
            time_s: lenient::small(get("time")).unwrap_or(0),
            bytes: lenient::count(get("num")).unwrap_or(0),
            blocks: lenient::count(get("blockcount")).unwrap_or(0),
            parallel: lenient::small(get("parallel")).unwrap_or(1),
            mss: small("MSS"),
            nodelay: flag("nodelay"),
            window: small("window"),
            len: small("len"),
            rate_bps: lenient::count(get("bandwidth")).unwrap_or(0),
            burst: small("burst").unwrap_or(0),
            fq_rate_bps: lenient::count(get("fqrate")).unwrap_or(0),
            tos: small("TOS").unwrap_or(0),
            congestion: lenient::text(get("congestion")),
            title: lenient::text(get("title")),
            extra_data: lenient::text(get("extra_data")),
            get_server_output: flag("get_server_output"),
            udp_counters_64bit: flag("udp_counters_64bit"),
            dont_fragment: flag("dont_fragment"),
            server_cpu: lenient::small(get("server_affinity")),
            flow_label: small("flowlabel"),
            zerocopy: flag("zerocopy"),
            skip_rx_copy: flag("skip_rx_copy"),
            gsro: flag("gso"),
            mptcp: flag("mptcp"),
            authtoken: lenient::text(get("authtoken")),
            client_version: lenient::text(get("client_version")).unwrap_or_default(),
        };
        let unfit = unfit.or_else(|| parameters.check().err());
        Ok((parameters, unfit))
    }

    /// Compares the numbers with iperf3's own limits.
    pub fn check(&self) -> Result<(), Unfit> {
        let over = |what, value: u64, fits: bool, limit| {
            let value = i64::try_from(value).unwrap_or(i64::MAX);
            if fits { Ok(()) } else { Err(Unfit::Limit { what, value, limit }) }
        };
        let most = |what, value: Option<u32>, most: u32, limit| {
            over(what, value.unwrap_or(0).into(), value.unwrap_or(0) <= most, limit)
        };
        over(
            "the number of streams",
            self.parallel.into(),
            (1..=STREAMS_MAX).contains(&self.parallel),
            "1 to 128",
        )?;
        most("the start-up to leave out", Some(self.omit_s), OMIT_S_MAX, "0 to 600 s")?;
        most("the time", Some(self.time_s), TIME_S_MAX, "0 to 86400 s")?;
        most("the segment size", self.mss, MSS_MAX, "up to 32767 bytes")?;
        most("the window", self.window, WINDOW_MAX, "up to 512 MiB")?;
        most("the type of service", Some(self.tos), 255, "0 to 255")?;
        most("the CPU of the server", self.server_cpu, CPU_MAX, "0 to 1024")?;
        most("the flow label", self.flow_label, FLOW_LABEL_MAX, "1 to 1048575")?;
        most("the burst", Some(self.burst), 1000, "up to 1000 blocks")?;
        let len = u64::from(self.len.unwrap_or(UDP_LEN.0));
        match self.protocol {
            Iperf3Protocol::Tcp => over("the length of a block", len, len <= BLOCK_MAX.into(), "up to 1 MiB"),
            Iperf3Protocol::Udp => {
                let fits = (u64::from(UDP_LEN.0)..=u64::from(UDP_LEN.1)).contains(&len);
                over("the length of a datagram", len, fits, "16 to 65507 bytes")
            }
        }
    }
}
