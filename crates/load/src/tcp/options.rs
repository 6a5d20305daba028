//! The options of a transfer: checked, and put on sockets.
//!
//! What comes in: what was asked for. What goes out: sockets that have it, or the value that cannot be had
//! and why.

use std::io;
use std::net::TcpStream;
use std::os::fd::{AsFd, OwnedFd};

use linerate_model::tuning::{Pin, Protocol, SAMPLE_HZ_MAX, Tuning};
use linerate_sys::socket_options;
use linerate_sys::stream::{self, StreamKind};

use super::{placement, receive, send};
use crate::job::LoadError;

/// Bytes of one call.
const CALL_BYTES_MAX: u32 = 16 << 20;

/// What the kernel calls the protocol.
pub(super) fn kind(protocol: Protocol) -> StreamKind {
    match protocol {
        Protocol::Tcp => StreamKind::Tcp,
        Protocol::Mptcp => StreamKind::Mptcp,
        Protocol::Unix => StreamKind::Unix,
        Protocol::Vsock { cid } => StreamKind::Vsock { cid },
    }
}

/// Returns the first option that is outside its limits.
pub(super) fn check(tuning: &Tuning) -> Result<(), LoadError> {
    let number =
        |what: &'static str, value: Option<f64>, allowed: std::ops::RangeInclusive<f64>, limit| match value {
            Some(value) if !allowed.contains(&value) => Err(LoadError::Spec { what, value, limit }),
            _ => Ok(()),
        };
    number("the code point (DSCP)", tuning.dscp.map(f64::from), 0.0..=63.0, "0 to 63")?;
    number("the largest segment", tuning.mss.map(f64::from), 88.0..=65_483.0, "88 to 65483 bytes")?;
    number(
        "the window",
        tuning.window_bytes.map(f64::from),
        4096.0..=1_073_741_824.0,
        "4096 to 1073741824 bytes",
    )?;
    number("the pacing rate", tuning.pacing_bps, 8000.0..=1e13, "8 kbit/s to 10 Tbit/s")?;
    let hz = f64::from(tuning.sample_hz);
    number("the readings per second", Some(hz), 1.0..=f64::from(SAMPLE_HZ_MAX), "1 to 100")?;
    let call = f64::from(CALL_BYTES_MAX);
    number("the bytes of one write", tuning.write_bytes.map(f64::from), 1.0..=call, "1 to 16777216")?;
    let known = |what, value: &Option<String>, names: Vec<&str>| match value {
        Some(name) if !names.contains(&name.as_str()) => Err(LoadError::Option {
            what,
            value: name.clone(),
            reason: format!("known are {}", names.join(", ")),
        }),
        _ => Ok(()),
    };
    known("send method", &tuning.send, send::names())?;
    known("receive method", &tuning.receive, receive::names())?;
    let inet = matches!(tuning.protocol, Protocol::Tcp | Protocol::Mptcp);
    let asked = [
        ("congestion control", tuning.congestion.is_some()),
        ("code point (DSCP)", tuning.dscp.is_some()),
        ("largest segment", tuning.mss.is_some()),
        ("pacing rate", tuning.pacing_bps.is_some()),
        ("no-delay", tuning.no_delay),
    ];
    if let Some((what, _)) = asked.iter().find(|(_, asked)| *asked && !inet) {
        let reason = "only TCP and MPTCP streams have it".to_owned();
        return Err(LoadError::Option { what, value: tuning.protocol.name().to_owned(), reason });
    }
    match &tuning.pin {
        Pin::Cpus(cpus) => placement::check(cpus),
        Pin::Auto | Pin::None => Ok(()),
    }
}

/// A socket with everything that has to be there before it connects or listens.
pub(super) fn socket(tuning: &Tuning, ipv6: bool) -> Result<OwnedFd, LoadError> {
    let kind = kind(tuning.protocol);
    let refused = |what: &'static str, value: String| {
        move |error: io::Error| LoadError::Option { what, value, reason: error.to_string() }
    };
    let socket = stream::open(kind, ipv6).map_err(refused("protocol", tuning.protocol.name().to_owned()))?;
    if let Some(bytes) = tuning.mss {
        socket_options::set_segment(&socket, bytes).map_err(refused("largest segment", bytes.to_string()))?;
    }
    if let Some(code) = tuning.dscp {
        socket_options::set_type_of_service(&socket, u32::from(code) << 2, ipv6)
            .map_err(refused("code point (DSCP)", code.to_string()))?;
    }
    if let Some(name) = &tuning.congestion {
        socket_options::set_congestion(&socket, name).map_err(|error| {
            let reason = format!("{error}\nhint: see net.ipv4.tcp_available_congestion_control; ordinary users may use the allowed ones");
            LoadError::Option { what: "congestion control", value: name.clone(), reason }
        })?;
    }
    if let Some(bytes) = tuning.window_bytes {
        let got =
            socket_options::force_buffers(&socket, bytes).map_err(refused("window", bytes.to_string()))?;
        if got < u64::from(bytes) {
            let reason =
                format!("the kernel gives {got} bytes\nhint: net.core.rmem_max and wmem_max limit it");
            return Err(LoadError::Option { what: "window", value: bytes.to_string(), reason });
        }
    }
    if let Some(bps) = tuning.pacing_bps {
        socket_options::set_pacing_rate(&socket, (bps / 8.0) as u64)
            .map_err(refused("pacing rate", bps.to_string()))?;
    }
    Ok(socket)
}

/// What a connected stream gets.
pub(super) fn finish(tuning: &Tuning, stream: &TcpStream) -> io::Result<()> {
    if tuning.no_delay {
        stream.set_nodelay(true)?;
    }
    if let Some(bps) = tuning.pacing_bps {
        // An accepted stream does not inherit it everywhere.
        socket_options::set_pacing_rate(&stream.as_fd(), (bps / 8.0) as u64)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(change: impl Fn(&mut Tuning)) -> String {
        let mut tuning = Tuning::default();
        change(&mut tuning);
        check(&tuning).unwrap_err().to_string()
    }

    #[test]
    fn bad_values_are_named_with_their_limit() {
        check(&Tuning::default()).unwrap();
        assert!(refused(|t| t.dscp = Some(64)).contains("64, allowed is 0 to 63"));
        assert!(refused(|t| t.mss = Some(1)).contains("88"));
        assert!(refused(|t| t.window_bytes = Some(1)).contains("window"));
        assert!(refused(|t| t.pacing_bps = Some(f64::NAN)).contains("pacing"));
        assert!(refused(|t| t.sample_hz = 0).contains("1 to 100"));
        assert!(refused(|t| t.write_bytes = Some(0)).contains("write"));
        assert!(refused(|t| t.send = Some("pigeon".into())).contains("known are write"));
        assert!(refused(|t| t.receive = Some("owl".into())).contains("truncate"));
        assert!(refused(|t| t.pin = Pin::Cpus(Vec::new())).contains("CPU"));
        let unix = refused(|t| (t.protocol, t.no_delay) = (Protocol::Unix, true));
        assert!(unix.contains("only TCP"), "{unix}");
    }

    #[test]
    fn what_the_kernel_refuses_is_named() {
        let tuning = Tuning { congestion: Some("nosuch".into()), ..Tuning::default() };
        let error = socket(&tuning, false).unwrap_err().to_string();
        assert!(error.contains("congestion control `nosuch`"), "{error}");
    }
}
