//! The server of the pages: GET and HEAD for the user who started it, on a loopback address or a unix socket;
//! elsewhere with TLS and for the users of a web-config file alone.
//!
//! `listen` binds, `access` has what the file allows (`web_config` reads it, `users` checks passwords),
//! `answer` turns requests into responses, `events` reports newer data. Heads, times and connections are
//! bounded, and nothing of a request is kept.

mod access;
mod answer;
mod events;
mod listen;
mod users;
mod web_config;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Semaphore, watch};

use super::load::Source;
use super::view::SiteView;
use access::Access;
pub use access::AccessError;
use answer::{Site, Visitor};
pub use listen::{Listen, ListenError};
use listen::{Listener, Peer, Stream};

/// Connections at a time; more wait to be accepted.
const CONNECTIONS_MAX: usize = 64;
/// Longest head of a request, bytes, and its lines.
const HEAD_MAX: usize = 16 * 1024;
const HEADERS_MAX: usize = 64;
/// A head has to be whole after this time, also that of a next request.
const HEAD_WAIT: Duration = Duration::from_secs(10);
/// A connection ends after this time; what follows events connects again.
const CONNECTION_MAX: Duration = Duration::from_secs(600);
/// Pause after a failed accept: without descriptors the next one fails too.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A bound server.
pub struct Server {
    listener: Listener,
    access: Option<Arc<Access>>,
}

impl Server {
    /// Binds. `web_config` is a file with TLS and users.
    ///
    /// # Errors
    /// The address is not a loopback address and there is no such file, the file does not do, or the address
    /// cannot be bound.
    pub fn bind(listen: &Listen, web_config: Option<&Path>) -> Result<Self, ListenError> {
        if let (Listen::Tcp(address), None, true) = (listen, web_config, listen.is_public()) {
            return Err(ListenError::NotLoopback(address.ip()));
        }
        let access = web_config.map(|path| Access::open(path, listen.is_public())).transpose()?;
        Ok(Self { listener: Listener::bind(listen)?, access: access.map(Arc::new) })
    }

    /// Reports to `note` why a web-config file that was right is wrong, once each time.
    #[must_use]
    pub fn noting(mut self, note: fn(&str)) -> Self {
        if let Some(access) = self.access.as_mut().and_then(Arc::get_mut) {
            access.note = note;
        }
        self
    }

    /// Where it is reached: an address for a browser, or the path of the socket.
    pub fn address(&self) -> String {
        let has_tls = self.access.as_ref().is_some_and(|access| access.has_tls());
        self.listener.address(if has_tls { "https" } else { "http" })
    }

    /// Serves until it is dropped.
    pub async fn run(self, source: Arc<Source>, views: watch::Receiver<Arc<SiteView>>) {
        let free = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        let site = Arc::new(Site::new(source, views));
        loop {
            let Ok(permit) = Arc::clone(&free).acquire_owned().await else { return };
            let accepted = self.listener.accept().await;
            let Ok((peer, stream)) = accepted else {
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            };
            let (site, access) = (Arc::clone(&site), self.access.clone());
            tokio::spawn(async move {
                accepted_from(peer, stream, site, access).await;
                drop(permit);
            });
        }
    }
}

/// Serves a connection by what the file allows now.
async fn accepted_from(peer: Peer, stream: Stream, site: Arc<Site>, access: Option<Arc<Access>>) {
    let rules = match access {
        Some(access) => {
            let read = tokio::task::spawn_blocking(move || access.now()).await;
            // While the file is wrong no connection is accepted.
            let Ok(Some(rules)) = read else { return };
            Some(rules)
        }
        None => None,
    };
    let mut visitor = Visitor { is_own: false, rules };
    visitor.is_own = !visitor.has_users() && peer.is_own().await;
    let visitor = Arc::new(visitor);
    let Some(tls) = visitor.rules.as_ref().and_then(|rules| rules.tls.as_ref()) else {
        return connection(stream, site, visitor).await;
    };
    let shaken = tokio::time::timeout(HEAD_WAIT, tls.acceptor.accept(stream)).await;
    if let Ok(Ok(stream)) = shaken {
        connection(stream, site, Arc::clone(&visitor)).await;
    }
}

/// Answers the requests of one connection.
async fn connection(stream: impl AsyncRead + AsyncWrite + Unpin, site: Arc<Site>, visitor: Arc<Visitor>) {
    let service = service_fn(move |request| {
        let (site, visitor) = (Arc::clone(&site), Arc::clone(&visitor));
        async move { site.answer(&request, &visitor).await }
    });
    let serve = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_WAIT)
        .max_buf_size(HEAD_MAX)
        .max_headers(HEADERS_MAX)
        .serve_connection(TokioIo::new(stream), service);
    // Who reads slowly, or breaks off, does no harm to others.
    let _ = tokio::time::timeout(CONNECTION_MAX, serve).await;
}
