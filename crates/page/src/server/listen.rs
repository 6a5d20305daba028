//! Where the server listens, and which user of this machine connects. On a loopback address the kernel's
//! table of sockets has the user of the other end, on a unix socket the socket itself.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::str::FromStr;
use std::task::{Context, Poll};

use linerate_model::printable::one_line;
use linerate_sys::socket_owner;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};

use super::access::AccessError;

/// Why nothing is served.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// Not for this host alone.
    #[error(
        "{0} is not a loopback address: it needs TLS and users (--web-config FILE)\nhint: serve on a loopback address here, and reach it with ssh -L 7788:127.0.0.1:7788 THIS-HOST"
    )]
    NotLoopback(IpAddr),
    /// The file with TLS and users does not do.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// Neither an address nor a path.
    #[error(
        "`{0}` is neither an address nor the path of a socket\nhint: such as 127.0.0.1:7788, [::1]:7788, /run/user/1000/linerate.sock"
    )]
    NotAnAddress(String),
    /// Another program has it, or it is not of this host.
    #[error(
        "cannot listen on {address}: {source}\nhint: `linerate serve --listen 127.0.0.1:0` takes a free port"
    )]
    Bind {
        /// Where.
        address: String,
        /// Why.
        source: io::Error,
    },
    /// Something else lies there.
    #[error("{path}: {what}\nhint: name a path that is free")]
    Taken {
        /// Path of the socket.
        path: String,
        /// What lies there.
        what: String,
    },
}

/// Where to listen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Listen {
    /// An address; beside a loopback one only with TLS and users.
    Tcp(SocketAddr),
    /// The path of a unix socket.
    Unix(PathBuf),
}

impl FromStr for Listen {
    type Err = ListenError;

    /// `127.0.0.1:7788`, `[::1]:7788`, or a path with a `/`.
    fn from_str(text: &str) -> Result<Self, ListenError> {
        if text.contains('/') {
            return Ok(Self::Unix(PathBuf::from(text)));
        }
        let address = text.replacen("localhost:", "127.0.0.1:", 1);
        address.parse().map(Self::Tcp).map_err(|_| ListenError::NotAnAddress(one_line(text)))
    }
}

impl Listen {
    /// Whether other machines reach it.
    #[must_use]
    pub fn is_public(&self) -> bool {
        matches!(self, Self::Tcp(address) if !address.ip().is_loopback())
    }
}

/// What is bound.
pub(super) enum Listener {
    Tcp(TcpListener, SocketAddr),
    Unix(UnixListener, PathBuf),
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Self::Unix(_, path) = self {
            let _ = std::fs::remove_file(path);
        }
    }
}

impl Listener {
    pub(super) fn bind(listen: &Listen) -> Result<Self, ListenError> {
        let failed = |address: String| move |source| ListenError::Bind { address, source };
        match listen {
            Listen::Tcp(address) => {
                let bind = || {
                    let listener = std::net::TcpListener::bind(address)?;
                    listener.set_nonblocking(true)?;
                    let own = listener.local_addr()?;
                    Ok((TcpListener::from_std(listener)?, own))
                };
                let (listener, own) = bind().map_err(failed(address.to_string()))?;
                Ok(Self::Tcp(listener, own))
            }
            Listen::Unix(path) => {
                make_free(path)?;
                let name = one_line(&path.to_string_lossy());
                let listener = UnixListener::bind(path).map_err(failed(name.clone()))?;
                std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))
                    .map_err(failed(name))?;
                Ok(Self::Unix(listener, path.clone()))
            }
        }
    }

    pub(super) fn address(&self, scheme: &str) -> String {
        match self {
            Self::Tcp(_, own) => format!("{scheme}://{own}/"),
            Self::Unix(_, path) => path.display().to_string(),
        }
    }

    pub(super) async fn accept(&self) -> io::Result<(Peer, Stream)> {
        match self {
            Self::Tcp(listener, _) => {
                let (stream, peer) = listener.accept().await?;
                let own = stream.local_addr()?;
                Ok((Peer::Tcp { peer, own }, Stream::Tcp(stream)))
            }
            Self::Unix(listener, _) => {
                let (stream, _) = listener.accept().await?;
                Ok((Peer::Unix(stream.peer_cred()?.uid()), Stream::Unix(stream)))
            }
        }
    }
}

/// Removes a socket of this user that no program has any more.
fn make_free(path: &Path) -> Result<(), ListenError> {
    let taken =
        |what: &str| ListenError::Taken { path: one_line(&path.to_string_lossy()), what: what.to_owned() };
    let Ok(found) = path.symlink_metadata() else { return Ok(()) };
    if !found.file_type().is_socket() || found.uid() != rustix::process::geteuid().as_raw() {
        return Err(taken("something else lies there"));
    }
    match std::os::unix::net::UnixStream::connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            std::fs::remove_file(path).map_err(|error| taken(&error.to_string()))
        }
        _ => Err(taken("another program listens there")),
    }
}

/// Who connected.
pub(super) enum Peer {
    /// Both ends of the connection.
    Tcp { peer: SocketAddr, own: SocketAddr },
    /// The user, as the kernel knows it.
    Unix(u32),
}

impl Peer {
    /// Whether it is the user of this program, or root.
    pub(super) async fn is_own(&self) -> bool {
        let user = match *self {
            Self::Unix(user) => Some(user),
            Self::Tcp { peer, own } => {
                let found = tokio::task::spawn_blocking(move || socket_owner::owner(peer, own)).await;
                found.ok().and_then(Result::ok).flatten()
            }
        };
        user.is_some_and(|user| user == 0 || user == rustix::process::geteuid().as_raw())
    }
}

/// A connection of either kind.
pub(super) enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl AsyncRead for Stream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_read(cx, buf),
            Self::Unix(stream) => Pin::new(stream).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_write(cx, buf),
            Self::Unix(stream) => Pin::new(stream).poll_write(cx, buf),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_flush(cx),
            Self::Unix(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Unix(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
