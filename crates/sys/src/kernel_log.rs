//! The newest lines of the kernel's log, by `syslog(2)`: one call, whatever the size of the log. Needs root
//! where `kernel.dmesg_restrict` is set. Nothing is cleared or consumed.
//!
//! In: nothing. Out: text, `<4>[  123.456789] message` a line; the first line may be cut.

use std::io;

/// Bytes that are read: some thousand lines.
const TEXT_BYTES: usize = 128 << 10;
/// `SYSLOG_ACTION_READ_ALL`
const READ_ALL: libc::c_int = 3;

/// Reads the end of the log.
pub fn newest() -> io::Result<String> {
    let mut bytes = vec![0_u8; TEXT_BYTES];
    // SAFETY: the buffer is as long as the length that is given.
    let read = unsafe { libc::klogctl(READ_ALL, bytes.as_mut_ptr().cast(), TEXT_BYTES as libc::c_int) };
    let length = usize::try_from(read).map_err(|_| io::Error::last_os_error())?;
    bytes.truncate(length);
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Seconds since boot and message of a line; `None` for a line without a stamp (`printk.time=0`).
pub fn stamped(line: &str) -> Option<(f64, &str)> {
    let line = line.strip_prefix('<').and_then(|rest| rest.split_once('>')).map_or(line, |(_, rest)| rest);
    let (stamp, message) = line.strip_prefix('[')?.split_once("] ")?;
    // `[  12.345678][ T123]` with the caller's number.
    let stamp = stamp.split(']').next().unwrap_or_default();
    Some((stamp.trim().parse().ok().filter(|s: &f64| s.is_finite())?, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_with_a_stamp_are_read() {
        assert_eq!(stamped("<6>[   12.500000] eth0: up"), Some((12.5, "eth0: up")));
        assert_eq!(stamped("[12.5][   T1] a] b"), Some((12.5, "a] b")));
        for none in ["<6>eth0: up", "<6>[x] y", "", "[", "<", "[nan] x"] {
            assert_eq!(stamped(none), None, "{none}");
        }
    }
}
