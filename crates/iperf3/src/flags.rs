//! The command line, with iperf3's own flags. Pure.
//!
//! What comes in: arguments. What goes out: what is to be done, or an error that names the flag and its
//! limits. A flag that iperf3 has and this program has not is named as such, never ignored.

mod table;

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use lexopt::{Arg, ValueExt};
use linerate_sys::socket_options::KeepAlive;

use super::ask::{self, AddressFamily, Credentials};
use super::auth::{Padding, Rsa};
use super::parameters::{CPU_MAX, DataDirection, FLOW_LABEL_MAX, Iperf3Protocol};
use super::serve::{self, AccessPolicy};
use super::text::RateUnit;

pub use table::HELP;
use table::{CLIENT_VALUES, SERVER_VALUES, is_in, takes_value, unknown};

/// What is to be done.
#[derive(Debug, Clone)]
pub enum Iperf3Command {
    /// A test.
    Ask(Box<ask::ClientSpec>),
    /// Serve.
    Serve(Box<serve::ServerSpec>),
    /// Print [`HELP`].
    Help,
    /// Print the version.
    Version,
}

/// How it is shown, and where.
// Each is a flag.
#[allow(clippy::struct_excessive_bools)]
#[derive(Debug, Clone, Default)]
pub struct OutputStyle {
    /// As JSON.
    pub json: bool,
    /// As a line of JSON for each thing that happens.
    pub json_stream: bool,
    /// Then the whole document too.
    pub json_stream_full: bool,
    /// A time before each line of text, in this format of `strftime`.
    pub timestamps: Option<String>,
    /// A file that the output is added to.
    pub logfile: Option<PathBuf>,
    /// A file for the process id.
    pub pidfile: Option<PathBuf>,
    /// Details at the end.
    pub verbose: bool,
    /// Unit of rates.
    pub unit: RateUnit,
}

/// Everything, before it is known which end we are.
struct Draft {
    server: bool,
    client: Option<String>,
    ask: ask::ClientSpec,
    serve: serve::ServerSpec,
    show: OutputStyle,
    rate: Option<u64>,
    ends: u32,
    port: u16,
    pkcs1: bool,
    user: Option<String>,
    public_key: Option<PathBuf>,
    private_key: Option<PathBuf>,
    users: Option<PathBuf>,
    skew_s: u64,
    /// The first flag that only one of the ends has.
    only_client: Option<String>,
    only_server: Option<String>,
}

/// Reads the arguments. `password` is asked for only where it is needed.
pub fn parse(
    arguments: impl IntoIterator<Item = String>,
    password: impl FnOnce() -> Option<String>,
) -> Result<(Iperf3Command, OutputStyle), String> {
    let mut draft = Draft {
        server: false,
        client: None,
        ask: ask::ClientSpec::new(""),
        serve: serve::ServerSpec::default(),
        show: OutputStyle::default(),
        rate: None,
        ends: 0,
        port: super::protocol::PORT,
        pkcs1: false,
        user: None,
        public_key: None,
        private_key: None,
        users: None,
        skew_s: 10,
        only_client: None,
        only_server: None,
    };
    let mut parser = lexopt::Parser::from_args(arguments);
    while let Some(argument) = parser.next().map_err(|e| e.to_string())? {
        if let Arg::Long(name @ ("timestamps" | "cntl-ka" | "debug")) = argument {
            let flag = format!("--{name}");
            let value =
                parser.optional_value().map(ValueExt::string).transpose().map_err(|e| e.to_string())?;
            draft.optional(&flag, value.as_deref())?;
            continue;
        }
        if argument == Arg::Short('d') {
            let value =
                parser.optional_value().map(ValueExt::string).transpose().map_err(|e| e.to_string())?;
            draft.optional("-d", value.as_deref())?;
            continue;
        }
        let flag = match argument {
            Arg::Short('h') | Arg::Long("help") => return Ok((Iperf3Command::Help, draft.show)),
            Arg::Short('v') | Arg::Long("version") => return Ok((Iperf3Command::Version, draft.show)),
            Arg::Short(letter) => format!("-{letter}"),
            Arg::Long(name) => format!("--{name}"),
            Arg::Value(_) => return Err(format!("{}\nhint: --help", argument.unexpected())),
        };
        if draft.switch(&flag) {
            continue;
        }
        if !takes_value(&flag) {
            return Err(unknown(&flag));
        }
        let value = parser.value().and_then(ValueExt::string).map_err(|e| e.to_string())?;
        draft.value(&flag, &value)?;
    }
    draft.order(password)
}

impl Draft {
    /// A flag without a value; `false` when it is none.
    fn switch(&mut self, flag: &str) -> bool {
        let parameters = &mut self.ask.parameters;
        let mut client = true;
        match flag {
            "-u" | "--udp" => parameters.protocol = Iperf3Protocol::Udp,
            "-R" | "--reverse" => parameters.direction = DataDirection::Reverse,
            "--bidir" => parameters.direction = DataDirection::Both,
            "-N" | "--no-delay" => parameters.nodelay = true,
            "--get-server-output" => parameters.get_server_output = true,
            "--udp-counters-64bit" => parameters.udp_counters_64bit = true,
            "--dont-fragment" => parameters.dont_fragment = true,
            "-Z" | "--zerocopy" => parameters.zerocopy = true,
            // Our receivers never copy; a server of iperf3 gets the flag.
            "--skip-rx-copy" => parameters.skip_rx_copy = true,
            "--gsro" => parameters.gsro = true,
            "-m" | "--mptcp" => parameters.mptcp = true,
            // It does nothing any more in iperf3 either: --fq-rate has the kernel pace.
            // The payload of ours always is repeating.
            "--no-fq-socket-pacing" | "--repeating-payload" => {}
            _ => client = false,
        }
        if client {
            self.only_client.get_or_insert_with(|| flag.to_owned());
            return true;
        }
        match flag {
            "-s" | "--server" => self.server = true,
            "-1" | "--one-off" => {
                self.serve.one_off = true;
                self.only_server.get_or_insert_with(|| flag.to_owned());
            }
            "-D" | "--daemon" => {
                self.serve.daemon = true;
                self.only_server.get_or_insert_with(|| flag.to_owned());
            }
            "-J" | "--json" => self.show.json = true,
            "--json-stream" => (self.show.json, self.show.json_stream) = (true, true),
            "--json-stream-full-output" => {
                (self.show.json, self.show.json_stream, self.show.json_stream_full) = (true, true, true);
            }
            "-V" | "--verbose" => self.show.verbose = true,
            "-4" | "--version4" => self.family(AddressFamily::V4),
            "-6" | "--version6" => self.family(AddressFamily::V6),
            "--use-pkcs1-padding" => self.pkcs1 = true,
            // Every line is.
            "--forceflush" => {}
            _ => return false,
        }
        true
    }

    fn family(&mut self, family: AddressFamily) {
        (self.ask.family, self.serve.family) = (family, family);
    }

    /// A flag that may have a value behind `=`.
    fn optional(&mut self, flag: &str, value: Option<&str>) -> Result<(), String> {
        if flag == "--timestamps" {
            self.show.timestamps = Some(value.unwrap_or(TIMESTAMP_FORMAT).to_owned());
            return Ok(());
        }
        if flag == "--debug" || flag == "-d" {
            let level = value.map_or(Some(DEBUG_LEVEL_MAX), |text| text.parse().ok());
            let level = level.filter(|level| (1..=DEBUG_LEVEL_MAX).contains(level)).ok_or_else(|| {
                format!("{flag} is `{}`, allowed is 1 to {DEBUG_LEVEL_MAX}", value.unwrap_or_default())
            })?;
            (self.ask.debug, self.serve.debug) = (level, level);
            return Ok(());
        }
        let wrong = || format!("{flag} is `{}`, allowed is IDLE/INTERVAL/COUNT", value.unwrap_or_default());
        let mut parts = value.unwrap_or_default().split('/').map(|part| match part {
            "" => Ok(0),
            part => part.parse::<u32>().map_err(|_| wrong()),
        });
        let mut next = || parts.next().unwrap_or(Ok(0));
        let probes = KeepAlive { idle_s: next()?, interval_s: next()?, count: next()? };
        // As iperf3 has it: the kernel would probe once only.
        if probes.idle_s > 0
            && u64::from(probes.idle_s) <= u64::from(probes.count) * u64::from(probes.interval_s)
        {
            return Err(format!("{flag}: the idle time is not above the time of all probes"));
        }
        (self.ask.keep_alive, self.serve.keep_alive) = (Some(probes), Some(probes));
        Ok(())
    }

    fn device(&mut self, name: Option<&str>) {
        if let Some(name) = name {
            (self.ask.device, self.serve.device) = (Some(name.to_owned()), Some(name.to_owned()));
        }
    }

    /// `N`, or `N,M` with the server's CPU.
    fn cpus(&mut self, value: &str) -> Result<(), String> {
        let wrong = || format!("-A is `{value}`, allowed is N or N,M with numbers of CPUs up to {CPU_MAX}");
        let number = |text: &str| text.parse::<u32>().ok().filter(|n| *n <= CPU_MAX).ok_or_else(wrong);
        let (own, server) = value.split_once(',').map_or((value, None), |(own, server)| (own, Some(server)));
        let own = Some(number(own)?);
        (self.ask.cpu, self.serve.cpu) = (own, own);
        if let Some(server) = server {
            self.ask.parameters.server_cpu = Some(number(server)?);
            self.only_client.get_or_insert_with(|| "-A N,M".to_owned());
        }
        Ok(())
    }

    fn value(&mut self, flag: &str, value: &str) -> Result<(), String> {
        if is_in(CLIENT_VALUES, flag) {
            self.only_client.get_or_insert_with(|| flag.to_owned());
        }
        if is_in(SERVER_VALUES, flag) {
            self.only_server.get_or_insert_with(|| flag.to_owned());
        }
        let wrong = |limit: &str| format!("{flag} is `{value}`, allowed is {limit}");
        match flag {
            "-c" | "--client" => {
                let (host, device) = with_device(value);
                self.device(device);
                self.client = Some(host.to_owned());
            }
            "--bind-dev" => self.device(Some(value)),
            "-A" | "--affinity" => self.cpus(value)?,
            "-I" | "--pidfile" => self.show.pidfile = Some(value.into()),
            "--logfile" => self.show.logfile = Some(value.into()),
            "--snd-timeout" => {
                let ms = value.parse().ok().filter(|ms| *ms <= 86_400_000);
                let ms = ms.ok_or_else(|| wrong("0 to 86400000 ms"))?;
                let ms = Some(ms).filter(|ms| *ms > 0);
                (self.ask.send_timeout_ms, self.serve.send_timeout_ms) = (ms, ms);
            }
            "-p" | "--port" => {
                self.port =
                    value.parse().ok().filter(|port| *port != 0).ok_or_else(|| wrong("1 to 65535"))?;
            }
            "-B" | "--bind" => {
                let (address, device) = with_device(value);
                self.device(device);
                let address: IpAddr = address.parse().map_err(|_| wrong("an address of this host"))?;
                (self.ask.bind, self.serve.bind) = (Some(address), Some(address));
            }
            "-i" | "--interval" => {
                let seconds = value.parse().ok().filter(|s: &f64| *s == 0.0 || (0.1..=60.0).contains(s));
                let every = Duration::from_secs_f64(seconds.ok_or_else(|| wrong("0, or 0.1 to 60 s"))?);
                (self.ask.interval, self.serve.interval) = (every, every);
            }
            "-f" | "--format" => {
                self.show.unit = RateUnit::of(value).ok_or_else(|| wrong("one of k m g t K M G T"))?;
            }
            "--rcv-timeout" => {
                let wait = milliseconds(value).ok_or_else(|| wrong("100 to 86400000 ms"))?;
                (self.ask.silence, self.serve.silence) = (wait, wait);
            }
            // A server that serves on has nothing to restart.
            "--idle-timeout" | "--pacing-timer" => {}
            "--rsa-private-key-path" => self.private_key = Some(value.into()),
            "--authorized-users-path" => self.users = Some(value.into()),
            "--time-skew-threshold" => {
                self.skew_s = value.parse().map_err(|_| wrong("a number of seconds"))?;
            }
            "--server-bitrate-limit" => {
                let rate = value.split('/').next().unwrap_or(value);
                self.serve.rate_bps_max = scaled(rate, 1000).ok_or_else(|| wrong("a rate such as 100M"))?;
            }
            "--server-max-duration" => {
                self.serve.duration_s_max = value.parse().map_err(|_| wrong("a number of seconds"))?;
            }
            "--username" => self.user = Some(value.to_owned()),
            "--rsa-public-key-path" => self.public_key = Some(value.into()),
            _ => return self.test(flag, value),
        }
        Ok(())
    }

    /// What a test is.
    fn test(&mut self, flag: &str, value: &str) -> Result<(), String> {
        let wrong = |limit: &str| format!("{flag} is `{value}`, allowed is {limit}");
        let whole = |limit: &str| value.parse::<u32>().map_err(|_| wrong(limit));
        let size = || scaled(value, 1024).ok_or_else(|| wrong("a number of bytes such as 128K"));
        let small = |bytes: u64| u32::try_from(bytes).map_err(|_| wrong("below 4 GiB"));
        let parameters = &mut self.ask.parameters;
        match flag {
            "-t" | "--time" => {
                // 0 is until it is interrupted.
                parameters.time_s = whole("0 to 86400 s")?;
                self.ends += 1;
            }
            "-n" | "--bytes" => {
                parameters.bytes = size()?.max(1);
                self.ends += 1;
            }
            "-k" | "--blockcount" => {
                parameters.blocks = size()?.max(1);
                self.ends += 1;
            }
            "-b" | "--bitrate" | "--bandwidth" => {
                let (rate, burst) = value.split_once('/').map_or((value, None), |(r, b)| (r, Some(b)));
                self.rate = Some(scaled(rate, 1000).ok_or_else(|| wrong("a rate such as 100M"))?);
                if let Some(burst) = burst {
                    parameters.burst = burst
                        .parse()
                        .ok()
                        .filter(|b| (1..=1000).contains(b))
                        .ok_or_else(|| wrong("a burst of 1 to 1000"))?;
                }
            }
            "--fq-rate" => {
                parameters.fq_rate_bps = scaled(value, 1000).ok_or_else(|| wrong("a rate such as 100M"))?;
            }
            "-l" | "--length" => parameters.len = Some(small(size()?)?),
            "-P" | "--parallel" => parameters.parallel = whole("1 to 128")?,
            "-O" | "--omit" => parameters.omit_s = whole("0 to 600 s")?,
            "-w" | "--window" => parameters.window = Some(small(size()?)?),
            "-M" | "--set-mss" => parameters.mss = Some(whole("88 to 32767 bytes")?),
            "-C" | "--congestion" | "--linux-congestion" => parameters.congestion = Some(value.to_owned()),
            "-S" | "--tos" => parameters.tos = number(value).ok_or_else(|| wrong("0 to 255"))?,
            "--dscp" => {
                parameters.tos =
                    dscp(value).ok_or_else(|| wrong("0 to 63, or a name such as cs1, af11, ef"))?;
            }
            "--cport" => self.ask.client_port = value.parse().map_err(|_| wrong("1 to 65535"))?,
            "--connect-timeout" => {
                self.ask.connect_wait = milliseconds(value).ok_or_else(|| wrong("100 to 86400000 ms"))?;
            }
            "-L" | "--flowlabel" => {
                let label = flow_label(value).ok_or_else(|| wrong("1 to 0xfffff"))?;
                parameters.flow_label = Some(label);
            }
            "-T" | "--title" => parameters.title = Some(value.to_owned()),
            "--extra-data" => parameters.extra_data = Some(value.to_owned()),
            _ => return Err(unknown(flag)),
        }
        Ok(())
    }

    fn order(
        mut self,
        password: impl FnOnce() -> Option<String>,
    ) -> Result<(Iperf3Command, OutputStyle), String> {
        let padding = if self.pkcs1 { Padding::Pkcs1 } else { Padding::Oaep };
        match (self.server, self.client) {
            (true, Some(_)) => Err("either -s or -c".to_owned()),
            (false, None) => Err("neither -s nor -c\nhint: --help".to_owned()),
            (true, None) => {
                if let Some(flag) = self.only_client {
                    return Err(format!("{flag} is a client's flag"));
                }
                self.serve.port = self.port;
                self.serve.listener = match (self.private_key, self.users) {
                    (Some(key), Some(users)) => {
                        Some(AccessPolicy { rsa: Rsa { key, padding }, users, skew_s: self.skew_s })
                    }
                    (None, None) => None,
                    _ => {
                        return Err(
                            "--rsa-private-key-path and --authorized-users-path go together".to_owned()
                        );
                    }
                };
                Ok((Iperf3Command::Serve(Box::new(self.serve)), self.show))
            }
            (false, Some(host)) => {
                if let Some(flag) = self.only_server {
                    return Err(format!("{flag} is a server's flag"));
                }
                if self.ends > 1 {
                    return Err("only one of -t, -n and -k".to_owned());
                }
                self.ask.host = host;
                self.ask.port = self.port;
                let parameters = &mut self.ask.parameters;
                if !parameters.by_time() {
                    parameters.time_s = 0;
                }
                // iperf3's own default: no flood of a network by mistake.
                let default = if parameters.protocol == Iperf3Protocol::Udp { 1 << 20 } else { 0 };
                parameters.rate_bps = self.rate.unwrap_or(default);
                parameters.check().map_err(|unfit| unfit.to_string())?;
                self.ask.credentials = match (self.user, self.public_key) {
                    (Some(user), Some(key)) => {
                        let password = password().ok_or("no password in IPERF3_PASSWORD")?;
                        Some(Credentials { user, password, rsa: Rsa { key, padding } })
                    }
                    (None, None) => None,
                    _ => return Err("--username and --rsa-public-key-path go together".to_owned()),
                };
                Ok((Iperf3Command::Ask(Box::new(self.ask)), self.show))
            }
        }
    }
}

/// Highest level of `--debug`.
const DEBUG_LEVEL_MAX: u8 = 4;

/// `%c ` of iperf3.
const TIMESTAMP_FORMAT: &str = "%c ";

/// `host%device` or `host`. A link-local address of IPv6 keeps its scope, which is the same device.
fn with_device(text: &str) -> (&str, Option<&str>) {
    match text.split_once('%') {
        Some((host, device)) if !device.is_empty() => (host, Some(device)),
        _ => (text, None),
    }
}

/// Decimal, `0x…` or `0…` (octal), of 20 bits.
fn flow_label(text: &str) -> Option<u32> {
    whole_number(text).filter(|label| (1..=FLOW_LABEL_MAX).contains(label))
}

/// A number with K, M, G or T behind it.
fn scaled(text: &str, step: u64) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let power = match text[digits.len()..].to_ascii_lowercase().as_str() {
        "" => 0,
        "k" => 1,
        "m" => 2,
        "g" => 3,
        "t" => 4,
        _ => return None,
    };
    let value: f64 = digits.parse().ok().filter(|v: &f64| v.is_finite() && *v >= 0.0)?;
    let scaled = value * step.pow(power) as f64;
    (scaled <= 1e18).then_some(scaled as u64)
}

fn milliseconds(text: &str) -> Option<Duration> {
    text.parse().ok().filter(|ms| (100..=86_400_000).contains(ms)).map(Duration::from_millis)
}

/// Decimal, `0x…` or `0…` (octal), as in C, of 8 bits.
fn number(text: &str) -> Option<u32> {
    whole_number(text).filter(|value| *value <= 255)
}

fn whole_number(text: &str) -> Option<u32> {
    let lower = text.to_ascii_lowercase();
    if let Some(hex) = lower.strip_prefix("0x") {
        u32::from_str_radix(hex, 16).ok()
    } else if lower.len() > 1 && lower.starts_with('0') {
        u32::from_str_radix(&lower[1..], 8).ok()
    } else {
        lower.parse().ok()
    }
}

/// The type of service of a DSCP name (RFC 2474, 2597, 3246, 5865, 8622) or number.
fn dscp(text: &str) -> Option<u32> {
    let lower = text.to_ascii_lowercase();
    let class = |digits: &str| digits.parse::<u32>().ok();
    let point = match lower.as_str() {
        "ef" => Some(46),
        "va" => Some(44),
        "le" => Some(1),
        "be" | "default" => Some(0),
        name => {
            if let Some(number) = name.strip_prefix("cs") {
                class(number).filter(|n| *n <= 7).map(|n| n * 8)
            } else if let Some(number) = name.strip_prefix("af") {
                let (number, drop) = class(number).map(|n| (n / 10, n % 10))?;
                ((1..=4).contains(&number) && (1..=3).contains(&drop)).then_some(number * 8 + drop * 2)
            } else {
                number(name)
            }
        }
    };
    point.filter(|point| *point <= 63).map(|point| point << 2)
}

#[cfg(test)]
#[path = "flags_tests.rs"]
mod tests;
