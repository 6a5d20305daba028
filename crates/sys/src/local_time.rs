//! The time of day as the user's locale and time zone have it, in a format of the C library.
//!
//! In: a format of `strftime`. Out: text. It reads the clock and the time zone, nothing else.

use std::ffi::CString;
use std::mem::zeroed;

/// Longest text, bytes.
const TEXT_BYTES_MAX: usize = 512;

/// The time now; empty where the format has a zero byte or gives more than fits.
pub fn now(format: &str) -> String {
    let Ok(format) = CString::new(format) else { return String::new() };
    // SAFETY: time takes no pointer here.
    let now = unsafe { libc::time(std::ptr::null_mut()) };
    // SAFETY: all zero bytes are a valid tm.
    let mut parts: libc::tm = unsafe { zeroed() };
    // SAFETY: both point at values of this function.
    if unsafe { libc::localtime_r(&raw const now, &raw mut parts) }.is_null() {
        return String::new();
    }
    let mut text = [0_u8; TEXT_BYTES_MAX];
    // SAFETY: at most the size of the buffer is written; the format ends with a zero byte.
    let length =
        unsafe { libc::strftime(text.as_mut_ptr().cast(), text.len(), format.as_ptr(), &raw const parts) };
    String::from_utf8_lossy(&text[..length.min(TEXT_BYTES_MAX)]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::now;

    #[test]
    fn a_format_is_filled_in() {
        assert_eq!(now("%%"), "%");
        let year = now("%Y");
        assert!(year.len() == 4 && year.parse::<u32>().unwrap() >= 2024, "{year}");
        assert_eq!(now("a\0b"), "");
    }
}
