//! What the kernel knows of how well its clock is kept (`adjtimex`). Only read, never set.
//!
//! In: nothing. Out: whether something keeps the clock, and the error that it admits.

use std::io;

use serde::{Deserialize, Serialize};

/// State of the clock.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockState {
    /// A daemon keeps it, and has not lost its sources.
    pub is_synchronised: bool,
    /// Largest error that the daemon admits, microseconds; grows while it has no source.
    pub max_error_us: i64,
}

/// Asks the kernel.
pub fn state() -> io::Result<ClockState> {
    // SAFETY: an all-zero timex is a valid value of that plain C struct: no mode is set, so that it is only
    // read.
    let mut timex: libc::timex = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is valid for the call.
    if unsafe { libc::adjtimex(&raw mut timex) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(ClockState { is_synchronised: timex.status & libc::STA_UNSYNC == 0, max_error_us: timex.maxerror })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_of_this_machine_has_a_state() {
        assert!(state().unwrap().max_error_us >= 0);
    }
}
