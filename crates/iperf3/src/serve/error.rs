//! Why a server or one of its tests ended, and what it sends to its client.

use std::io;
use std::net::SocketAddr;

use crate::auth::AuthError;
use crate::parameters::Unfit;
use crate::protocol::number;
use crate::server::ServerFailure;

/// Why a server or one of its tests ended.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// It cannot listen.
    #[error("cannot listen on {at}: {source}")]
    Listen {
        /// Where.
        at: SocketAddr,
        /// The kernel's answer.
        source: io::Error,
    },
    /// A step failed.
    #[error("cannot {what}: {source}")]
    Io {
        /// Step.
        what: &'static str,
        /// The kernel's answer.
        source: io::Error,
    },
    /// The client's end of it.
    #[error(transparent)]
    Failed(#[from] ServerFailure),
    /// The client wants what is not to be had.
    #[error("refused: {0}")]
    Unfit(#[from] Unfit),
    /// More than the server allows.
    #[error("refused: {what} is {value}, allowed is {limit}")]
    Limit {
        /// What.
        what: &'static str,
        /// Wanted.
        value: u64,
        /// Allowed.
        limit: u64,
    },
    /// Not let in.
    #[error("refused: {0}")]
    Auth(#[from] AuthError),
    /// Nothing happened for too long.
    #[error("the client sent nothing for {waited_s} s while {what} was expected")]
    Silence {
        /// What.
        what: &'static str,
        /// How long, seconds.
        waited_s: u64,
    },
}

impl ServeError {
    /// iperf3's number for the client, where one is sent.
    pub(super) fn number(&self) -> i32 {
        match self {
            Self::Auth(_) => number::AUTHORISATION,
            Self::Limit { what: "the time", .. } => number::SERVER_DURATION,
            Self::Limit { .. } => number::TOTAL_RATE,
            Self::Silence { what: "data", .. } => number::NO_DATA,
            Self::Silence { .. } => number::DURATION_EXPIRED,
            Self::Unfit(_) | Self::Failed(_) => number::PARAMETERS,
            Self::Io { .. } | Self::Listen { .. } => number::STREAM_LISTEN,
        }
    }
}

pub(super) fn io_error(what: &'static str) -> impl Fn(io::Error) -> ServeError {
    move |source| ServeError::Io { what, source }
}
