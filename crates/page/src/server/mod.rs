//! The server of the pages: GET and HEAD for the user who started it, on a loopback address or a unix
//! socket.
//!
//! `listen` binds and refuses all others, `answer` turns requests into responses, `events` reports newer
//! data. Heads, times and connections are bounded, and nothing of a request is kept.

mod answer;
mod events;
mod listen;

use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Semaphore, watch};

use super::load::Source;
use super::view::View;
use answer::Site;
use listen::Listener;
pub use listen::{Listen, ServeError};

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
}

impl Server {
    /// Binds.
    ///
    /// # Errors
    /// The address is not a loopback address, or cannot be bound.
    pub fn bind(listen: &Listen) -> Result<Self, ServeError> {
        Ok(Self { listener: Listener::bind(listen)? })
    }

    /// Where it is reached: an address for a browser, or the path of the socket.
    pub fn address(&self) -> String {
        self.listener.address()
    }

    /// Serves until it is dropped.
    pub async fn run(self, source: Arc<Source>, views: watch::Receiver<Arc<View>>) {
        let free = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        let site = Arc::new(Site::new(source, views));
        loop {
            let Ok(permit) = Arc::clone(&free).acquire_owned().await else { return };
            let accepted = self.listener.accept().await;
            let Ok((peer, stream)) = accepted else {
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            };
            let site = Arc::clone(&site);
            tokio::spawn(async move {
                let is_own = peer.is_own().await;
                connection(stream, site, is_own).await;
                drop(permit);
            });
        }
    }
}

/// Answers the requests of one connection.
async fn connection(stream: impl AsyncRead + AsyncWrite + Unpin, site: Arc<Site>, is_own: bool) {
    let service = service_fn(move |request| {
        let site = Arc::clone(&site);
        async move { site.answer(&request, is_own).await }
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
