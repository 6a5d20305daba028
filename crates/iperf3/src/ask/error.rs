//! Why a test of a client ended early.

use std::io;
use std::net::SocketAddr;

use crate::auth::AuthError;
use crate::client::ClientFailure;
use crate::parameters::Unfit;

/// Why a test ended early.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// The name has no address.
    #[error("cannot find an address of {host}: {why}")]
    Resolve {
        /// Name.
        host: String,
        /// Why.
        why: String,
    },
    /// No connection.
    #[error("cannot connect to {peer}: {source}")]
    Connect {
        /// Server.
        peer: SocketAddr,
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
    /// The server's end of it.
    #[error(transparent)]
    Failed(#[from] ClientFailure),
    /// Nothing happened for too long.
    #[error("nothing came for {waited_s} s while waiting for {what}")]
    Silence {
        /// What was waited for.
        what: &'static str,
        /// How long, seconds.
        waited_s: u64,
    },
    /// A stream broke.
    #[error("{0}")]
    Stream(String),
    /// No token.
    #[error(transparent)]
    Auth(#[from] AuthError),
    /// The spec itself.
    #[error(transparent)]
    Unfit(#[from] Unfit),
}

impl AskError {
    /// Whether asking again a little later may help.
    pub(super) fn is_passing(&self) -> bool {
        match self {
            Self::Failed(ClientFailure::Busy) => true,
            Self::Connect { source, .. } => source.kind() == io::ErrorKind::ConnectionRefused,
            _ => false,
        }
    }
}

pub(crate) fn io_error(what: &'static str) -> impl Fn(io::Error) -> AskError {
    move |source| AskError::Io { what, source }
}
