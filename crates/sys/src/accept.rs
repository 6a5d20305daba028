//! Error handling of `accept`, shared by every listener of the project.
//!
//! In: the kernel's error. Out: whether to continue at once, to free descriptors or pause first, or to close
//! the listener. It does no I/O and never waits.

use std::io;

/// Why `accept` returned no connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AcceptFailure {
    /// No connection is in the queue.
    Empty,
    /// A connection was taken from the queue, and it is gone already: the next one can be accepted at once.
    Gone,
    /// Descriptors or memory are used up, or a policy forbids it. The connection stays in the queue and the
    /// listener readable: close something, or pause, before the next accept.
    Exhausted,
    /// The listener itself is unusable.
    Broken,
}

impl AcceptFailure {
    /// The meaning of an error of `accept`, after accept(2): on Linux it also passes on errors of the
    /// connection's network, after which the listener is as good as before.
    pub fn of(error: &io::Error) -> Self {
        if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) {
            return Self::Empty;
        }
        match error.raw_os_error() {
            // Not of the kernel: unknown, so that a pause is the safe choice.
            None => Self::Exhausted,
            Some(libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM | libc::EPERM | libc::EACCES) => {
                Self::Exhausted
            }
            Some(libc::EBADF | libc::EFAULT | libc::EINVAL | libc::ENOTSOCK) => Self::Broken,
            // ECONNABORTED, EPROTO, ENETDOWN, EHOSTUNREACH, ENETUNREACH, EHOSTDOWN, ENONET, ENOPROTOOPT,
            // EOPNOTSUPP, ETIMEDOUT, ECONNRESET and what other protocols may add: errors of one connection.
            Some(_) => Self::Gone,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(number: i32) -> AcceptFailure {
        AcceptFailure::of(&io::Error::from_raw_os_error(number))
    }

    #[test]
    fn every_error_of_accept_has_its_meaning() {
        for number in [libc::EAGAIN, libc::EWOULDBLOCK, libc::EINTR] {
            assert_eq!(of(number), AcceptFailure::Empty, "{number}");
        }
        for number in [libc::EMFILE, libc::ENFILE, libc::ENOBUFS, libc::ENOMEM, libc::EPERM] {
            assert_eq!(of(number), AcceptFailure::Exhausted, "{number}");
        }
        for number in [
            libc::ECONNABORTED,
            libc::ECONNRESET,
            libc::EPROTO,
            libc::ENETDOWN,
            libc::EHOSTUNREACH,
            libc::ENETUNREACH,
            libc::EHOSTDOWN,
            libc::ENONET,
            libc::ENOPROTOOPT,
            libc::EOPNOTSUPP,
            libc::ETIMEDOUT,
        ] {
            assert_eq!(of(number), AcceptFailure::Gone, "{number}");
        }
        for number in [libc::EBADF, libc::EINVAL, libc::ENOTSOCK, libc::EFAULT] {
            assert_eq!(of(number), AcceptFailure::Broken, "{number}");
        }
    }
}
