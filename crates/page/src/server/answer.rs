//! A request in, a response out: who may ask what, by which name, and what every response carries.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io::Write as _;
use std::net::IpAddr;
use std::sync::Arc;

use flate2::Compression;
use flate2::write::GzEncoder;
use hyper::body::{Bytes, Incoming};
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::http::response::Builder;
use hyper::{Method, Request, Response, StatusCode};
use tokio::sync::{Mutex, Semaphore, watch};

use super::access::Rules;
use super::events::Reply;
use crate::link::{Query, TARGET_MAX};
use crate::load::{self, Source};
use crate::site::{self, Answer, Moment, digest};
use crate::view::{RunView, SiteView};

/// Pages that receive events at a time.
const EVENTS_MAX: usize = 32;
/// Earlier runs that are kept once they were asked for.
const RUNS_MAX: usize = 3;
/// Shorter texts are not compressed, bytes.
const GZIP_MIN: usize = 1024;

/// Nothing from elsewhere, no code or style in a page, in no frame, no form.
const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; \
                      connect-src 'self'; base-uri 'none'; frame-ancestors 'none'; form-action 'none'";
/// Headers of every response.
const ALWAYS: [(HeaderName, &str); 6] = [
    (header::CONTENT_SECURITY_POLICY, POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (header::VARY, "Accept-Encoding"),
];

/// Who is at the other end of a connection.
pub(super) struct Visitor {
    /// The user who started the program, or root.
    pub(super) is_own: bool,
    /// Those of the web-config file, where there is one.
    pub(super) rules: Option<Arc<Rules>>,
}

impl Visitor {
    /// Whether a password is asked for; then it does not matter which user of this machine asks.
    pub(super) fn has_users(&self) -> bool {
        self.rules.as_ref().is_some_and(|rules| rules.users.is_some())
    }

    /// Whether this is a name of the server.
    fn names(&self, host: &str) -> bool {
        let tls = self.rules.as_ref().and_then(|rules| rules.tls.as_ref());
        is_local(host) || tls.is_some_and(|tls| tls.is_for(bare(host)))
    }

    /// Whether the password of a request is right, where one is needed.
    async fn is_admitted(&self, headers: &HeaderMap) -> bool {
        let Some(users) = self.rules.as_ref().and_then(|rules| rules.users.as_ref()) else { return true };
        users.admits(headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok())).await
    }
}

/// What all connections share.
pub(super) struct Site {
    source: Arc<Source>,
    views: watch::Receiver<Arc<SiteView>>,
    events: Arc<Semaphore>,
    /// Earlier runs, the last one that was asked for in front. One is read at a time.
    runs: Mutex<VecDeque<Arc<RunView>>>,
}

impl Site {
    pub(super) fn new(source: Arc<Source>, views: watch::Receiver<Arc<SiteView>>) -> Self {
        let events = Arc::new(Semaphore::new(EVENTS_MAX));
        Self { source, views, events, runs: Mutex::new(VecDeque::new()) }
    }

    /// Never fails: a request that is refused gets a response too.
    pub(super) async fn answer(
        &self,
        request: &Request<Incoming>,
        visitor: &Visitor,
    ) -> Result<Response<Reply>, Infallible> {
        let refused = match refusal(request.method(), request.uri(), request.headers(), visitor) {
            None if !visitor.is_admitted(request.headers()).await => {
                Some((StatusCode::UNAUTHORIZED, "a name and a password of the web-config file are needed"))
            }
            refused => refused,
        };
        let Some((status, text)) = refused else { return Ok(self.allowed(request).await) };
        // A stranger has no connection for longer than one request.
        let mut builder =
            response(status).header(header::ALLOW, "GET, HEAD").header(header::CONNECTION, "close");
        if status == StatusCode::UNAUTHORIZED {
            builder = builder.header(header::WWW_AUTHENTICATE, "Basic realm=\"linerate\", charset=\"UTF-8\"");
        }
        Ok(whole(builder, "text/plain; charset=utf-8", text.as_bytes().to_vec(), request))
    }

    async fn allowed(&self, request: &Request<Incoming>) -> Response<Reply> {
        let path = request.uri().path().to_owned();
        let query = Query::parse(request.uri().query().unwrap_or_default());
        if path == "/events" {
            return self.events(request);
        }
        if let Some(file) = site::file(&path) {
            return respond(file, request);
        }
        let view = Arc::clone(&self.views.borrow());
        let run = self.run(&view, query.get("run")).await;
        let source = Arc::clone(&self.source);
        let rendered = tokio::task::spawn_blocking(move || {
            let cluster = run.as_ref().map_or("", |run| run.row.cluster.as_str());
            let minutes = load::minutes(&source, cluster, &site::watched(&view, &path, &query));
            let now_ms = (source.now_ms)();
            let moment = Moment { view, run, minutes: Arc::new(minutes), now_ms };
            site::answer(&moment, &path, &query)
        });
        if let Ok(answer) = rendered.await {
            return respond(answer, request);
        }
        let builder = response(StatusCode::INTERNAL_SERVER_ERROR);
        whole(builder, "text/plain; charset=utf-8", b"this page cannot be shown".to_vec(), request)
    }

    /// The run that is asked for by its identifier; the newest one without it, or where there is no such run.
    async fn run(&self, view: &Arc<SiteView>, wanted: Option<&str>) -> Option<Arc<RunView>> {
        let newest = view.run.clone();
        let Some(wanted) = wanted.filter(|id| newest.as_ref().is_none_or(|run| run.row.id != **id)) else {
            return newest;
        };
        let Some(row) = view.runs.iter().find(|row| row.id == wanted && row.finished).cloned() else {
            return newest;
        };
        let mut runs = self.runs.lock().await;
        if let Some(at) = runs.iter().position(|run| run.row.id == wanted) {
            let run = runs.remove(at)?;
            runs.push_front(Arc::clone(&run));
            return Some(run);
        }
        let source = Arc::clone(&self.source);
        let read = tokio::task::spawn_blocking(move || {
            let store = (source.store)()?;
            load::read_run(&source, &store, row)
        });
        let run = Arc::new(read.await.ok().and_then(Result::ok).flatten()?);
        runs.push_front(Arc::clone(&run));
        runs.truncate(RUNS_MAX);
        Some(run)
    }

    fn events(&self, request: &Request<Incoming>) -> Response<Reply> {
        let kind = "text/event-stream";
        let Ok(permit) = Arc::clone(&self.events).try_acquire_owned() else {
            let text = b"too many pages are open".to_vec();
            return whole(
                response(StatusCode::SERVICE_UNAVAILABLE),
                "text/plain; charset=utf-8",
                text,
                request,
            );
        };
        if request.method() == Method::HEAD {
            return whole(response(StatusCode::OK), kind, Vec::new(), request);
        }
        let builder = response(StatusCode::OK)
            .header(header::CONTENT_TYPE, kind)
            .header(header::CACHE_CONTROL, "no-store");
        built(builder, Reply::events(self.views.clone(), permit))
    }
}

/// Why a request is refused.
fn refusal(
    method: &Method,
    uri: &hyper::Uri,
    headers: &HeaderMap,
    visitor: &Visitor,
) -> Option<(StatusCode, &'static str)> {
    let mut hosts = headers.get_all(header::HOST).iter();
    let host = (hosts.next().and_then(|host| host.to_str().ok()), hosts.next());
    let is_ours = matches!(host, (Some(host), None) if visitor.names(host)) && uri.authority().is_none();
    match () {
        () if !visitor.is_own && !visitor.has_users() => {
            Some((StatusCode::FORBIDDEN, "only the user who started this program may connect"))
        }
        // The name of another site that leads here would make its pages ours (DNS rebinding).
        () if !is_ours => Some((
            StatusCode::MISDIRECTED_REQUEST,
            "ask by localhost, a loopback address or a name of the certificate",
        )),
        () if method != Method::GET && method != Method::HEAD => {
            Some((StatusCode::METHOD_NOT_ALLOWED, "these pages are only read"))
        }
        () if uri.path_and_query().is_some_and(|target| target.as_str().len() > TARGET_MAX) => {
            Some((StatusCode::URI_TOO_LONG, "the address is too long"))
        }
        () => None,
    }
}

/// A name without its port and its brackets.
fn bare(host: &str) -> &str {
    match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    }
}

/// Whether a name is one of this host, with any port: `ssh -L` may lead here from another one.
fn is_local(host: &str) -> bool {
    let name = bare(host);
    name.eq_ignore_ascii_case("localhost") || name.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
}

fn response(status: StatusCode) -> Builder {
    ALWAYS.into_iter().fold(Response::builder().status(status), |builder, (name, value)| {
        builder.header(name, HeaderValue::from_static(value))
    })
}

fn built(builder: Builder, reply: Reply) -> Response<Reply> {
    // All headers are of this program, or encoded by it.
    builder.body(reply).unwrap_or_else(|_| Response::new(Reply::Whole(None)))
}

fn respond(answer: Answer, request: &Request<Incoming>) -> Response<Reply> {
    let again = |status| response(status).header(header::CACHE_CONTROL, "no-cache");
    match answer {
        Answer::Page { text, is_missing } => {
            let status = if is_missing { StatusCode::NOT_FOUND } else { StatusCode::OK };
            whole(again(status), "text/html; charset=utf-8", text.into_bytes(), request)
        }
        Answer::File { kind, bytes } => {
            let builder = response(StatusCode::OK);
            let builder = builder.header(header::CACHE_CONTROL, "max-age=31536000, immutable");
            whole(builder, kind, bytes, request)
        }
        Answer::Picture(bytes) => whole(again(StatusCode::OK), "image/png", bytes, request),
        Answer::Text(text) => {
            whole(again(StatusCode::OK), "text/plain; charset=utf-8", text.into_bytes(), request)
        }
        Answer::To(to) => {
            built(again(StatusCode::SEE_OTHER).header(header::LOCATION, to), Reply::Whole(None))
        }
    }
}

/// A response with its content: compressed where the reader can, left out where the reader has it.
fn whole(builder: Builder, kind: &str, bytes: Vec<u8>, request: &Request<Incoming>) -> Response<Reply> {
    let headers = request.headers();
    let has = |name: HeaderName, what: &str| {
        headers.get(name).and_then(|value| value.to_str().ok()).is_some_and(|value| value.contains(what))
    };
    let tag = format!("W/\"{}\"", digest(&bytes));
    let mut builder = builder.header(header::ETAG, tag.as_str()).header(header::CONTENT_TYPE, kind);
    if has(header::IF_NONE_MATCH, &tag) {
        return built(builder.status(StatusCode::NOT_MODIFIED), Reply::Whole(None));
    }
    let mut bytes = bytes;
    if kind.starts_with("text/") && bytes.len() >= GZIP_MIN && has(header::ACCEPT_ENCODING, "gzip") {
        bytes = gzip(&bytes);
        builder = builder.header(header::CONTENT_ENCODING, "gzip");
    }
    builder = builder.header(header::CONTENT_LENGTH, bytes.len());
    let is_head = request.method() == Method::HEAD;
    built(builder, Reply::Whole((!is_head && !bytes.is_empty()).then(|| Bytes::from(bytes))))
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(bytes.len() / 4), Compression::new(5));
    // Into memory: it cannot fail.
    let _ = encoder.write_all(bytes);
    encoder.finish().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_this_host_are_ours() {
        for host in
            ["localhost", "LOCALHOST:7788", "127.0.0.1", "127.0.0.1:80", "127.1.2.3:1", "[::1]", "[::1]:7788"]
        {
            assert!(is_local(host), "{host}");
        }
        for host in [
            "",
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "10.0.0.1",
            "[::2]",
            "[",
            "0.0.0.0",
        ] {
            assert!(!is_local(host), "{host}");
        }
    }
}
