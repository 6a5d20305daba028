//! Downloads of a URL through chosen front ends, each step timed apart.
//!
//! What comes in: a URL, front ends, how often. What goes out: one line per download: name, connection, TLS,
//! first byte, body, or why it ended. HTTP/1.1 without compression, one connection per download. Front ends
//! take turns, each round beginning with another one, so that a slow minute does not fall on one of them. It
//! verifies certificates by default, follows at most 5 redirects, and is bounded in bytes and time whatever
//! the server sends.

mod dial;
mod get;
mod message;
mod tls;
mod url;

use std::io::Write;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use linerate_model::http::{HttpFetch, REDIRECTS_MAX};
use linerate_model::kind::HttpPlan;
use linerate_model::load::LoadReport;

use self::dial::Until;
pub use self::get::{GetAnswer, GetError, GetLimits, get};
use self::message::{Body, Incoming};
use self::url::{Authority, Failure, Url};
use crate::job::{Job, LoadError};
use crate::load::Load;

/// The load `http`.
pub(crate) struct Http;

/// Addresses of a name that count as front ends when none are named.
const ADDRESSES_MAX: usize = 8;

/// A front end.
struct FrontEnd {
    /// As it was named.
    name: String,
    authority: Authority,
    /// The address to use, when the front end is one of the addresses of the URL's own host.
    fixed: Option<IpAddr>,
}

impl Load for Http {
    type Plan = HttpPlan;

    fn run(&self, job: &Job<'_>, plan: &HttpPlan, report: &mut LoadReport) -> Result<(), LoadError> {
        let result = job.whole(report, |report| all(job, plan, report));
        report.bytes = report.http.iter().map(|fetch| fetch.bytes).sum();
        result
    }
}

/// A reason outside the kernel's as an error of a load.
fn failed(what: &'static str) -> impl Fn(Failure) -> LoadError {
    move |reason| LoadError::Io { what, source: std::io::Error::other(reason) }
}

fn all(job: &Job<'_>, plan: &HttpPlan, report: &mut LoadReport) -> Result<(), LoadError> {
    let url = Url::parse(&plan.url).map_err(failed("read the URL"))?;
    // Also for plain HTTP: a redirect may lead to HTTPS. Without roots that only matters then.
    let tls = tls::config(plan);
    if url.https
        && let Err(reason) = &tls
    {
        return Err(failed("prepare TLS")(reason.clone()));
    }
    let fronts = front_ends(job, plan, &url)?;
    for repeat in 0..plan.repeat {
        for turn in 0..fronts.len() {
            job.check("downloading")?;
            let front = &fronts[(turn + usize::from(repeat)) % fronts.len()];
            let mut fetch = HttpFetch { via: front.name.clone(), repeat, ..HttpFetch::default() };
            let begun = Instant::now();
            let until = Until::new(job, Duration::from_millis(plan.timeout_ms.into()));
            if let Err(reason) = follow(plan, &url, front, tls.as_ref(), &until, &mut fetch) {
                fetch.error = Some(reason);
            }
            fetch.total_ms = ms(begun);
            report.http.push(fetch);
        }
    }
    job.check("downloading")
}

fn front_ends(job: &Job<'_>, plan: &HttpPlan, url: &Url) -> Result<Vec<FrontEnd>, LoadError> {
    if !plan.via.is_empty() {
        return plan
            .via
            .iter()
            .map(|name| Ok(FrontEnd { name: name.clone(), authority: Authority::parse(name)?, fixed: None }))
            .collect::<Result<_, Failure>>()
            .map_err(failed("read a front end"));
    }
    let until = Until::new(job, Duration::from_millis(plan.timeout_ms.into()));
    let authority = Authority { host: url.host.clone(), port: None };
    let found = dial::resolve(&url.host, url.port, &until).map_err(failed("find the host of the URL"))?;
    let mut addresses: Vec<IpAddr> = Vec::new();
    for address in found {
        let fits = job.spec.bind.is_unspecified() || job.spec.bind.is_ipv4() == address.is_ipv4();
        if fits && !addresses.contains(&address.ip()) && addresses.len() < ADDRESSES_MAX {
            addresses.push(address.ip());
        }
    }
    Ok(addresses
        .into_iter()
        .map(|ip| FrontEnd { name: ip.to_string(), authority: authority.clone(), fixed: Some(ip) })
        .collect())
}

fn ms(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e3
}

/// One download with its redirects.
fn follow(
    plan: &HttpPlan,
    first: &Url,
    front: &FrontEnd,
    tls: Result<&Arc<rustls::ClientConfig>, &Failure>,
    until: &Until<'_>,
    fetch: &mut HttpFetch,
) -> Result<(), Failure> {
    let mut url = first.clone();
    loop {
        // A redirect to another host leaves the front end.
        let through = (url.host == first.host).then_some(front);
        let Some(next) = one(plan, &url, first, through, tls, until, fetch)? else { return Ok(()) };
        if fetch.redirects.len() >= REDIRECTS_MAX {
            return Err(format!("more than {REDIRECTS_MAX} redirects"));
        }
        url = url.join(&next)?;
        fetch.redirects.push(url.to_string());
    }
}

/// The request for a URL.
fn request(url: &Url) -> String {
    format!(
        "GET {} HTTP/1.1\r\nHost: {}\r\nUser-Agent: linerate/{}\r\nAccept: */*\r\nAccept-Encoding: identity\r\n\
         Connection: close\r\n\r\n",
        url.path,
        url.host_header(),
        env!("CARGO_PKG_VERSION")
    )
}

/// One request. Returns where it leads when it is a redirect.
fn one(
    plan: &HttpPlan,
    url: &Url,
    first: &Url,
    front: Option<&FrontEnd>,
    tls: Result<&Arc<rustls::ClientConfig>, &Failure>,
    until: &Until<'_>,
    fetch: &mut HttpFetch,
) -> Result<Option<String>, Failure> {
    (fetch.dns_ms, fetch.tls_ms, fetch.tls) = (None, None, None);
    (fetch.connect_ms, fetch.first_byte_ms, fetch.body_ms, fetch.status) = (None, None, None, None);
    let own = Authority { host: url.host.clone(), port: None };
    let authority = front.map_or(&own, |front| &front.authority);
    // A port that was named is that of the first URL's scheme.
    let port = authority.port.filter(|_| url.https == first.https).unwrap_or(url.port);
    let begun = Instant::now();
    let addresses = dial::resolve(&authority.host, port, until)?;
    if authority.host.parse::<IpAddr>().is_err() {
        fetch.dns_ms = Some(ms(begun));
    }
    let fixed = front.and_then(|front| front.fixed).map(|ip| SocketAddr::new(ip, port));
    let peer = fixed.or_else(|| addresses.iter().copied().find(|a| until.reaches(*a)));
    let peer = peer.ok_or_else(|| format!("{} has no address of the family of our own", authority.host))?;
    fetch.address = Some(peer);
    let begun = Instant::now();
    let stream = dial::connect(peer, until)?;
    fetch.connect_ms = Some(ms(begun));
    let mut stream: Box<dyn dial::Stream + '_> = if url.https {
        let begun = Instant::now();
        let (stream, version) = tls::shake_hands(tls.map_err(Clone::clone)?, &url.host, stream)?;
        fetch.tls_ms = Some(ms(begun));
        fetch.tls = Some(version);
        Box::new(stream)
    } else {
        Box::new(stream)
    };
    let begun = Instant::now();
    stream
        .write_all(request(url).as_bytes())
        .and_then(|()| stream.flush())
        .map_err(|e| until.words("send the request", &e))?;
    let mut incoming = Incoming::new(stream);
    incoming.first().map_err(|e| until.words("wait for the answer", &e))?;
    fetch.first_byte_ms = Some(ms(begun));
    let begun = Instant::now();
    let head = incoming.head().map_err(|e| until.words("read the answer's head", &e))?;
    fetch.status = Some(head.status);
    if let Some(location) = head.location.filter(|_| matches!(head.status, 301 | 302 | 303 | 307 | 308)) {
        return Ok(Some(location));
    }
    let body = incoming.body(head.body, plan.max_bytes, &mut fetch.bytes);
    fetch.body_ms = Some(ms(begun));
    match body.map_err(|e| until.words("read the body", &e))? {
        Body::Whole => {}
        Body::Cut => fetch.cut = true,
    }
    if (200..300).contains(&head.status) { Ok(None) } else { Err(format!("status {}", head.status)) }
}

#[cfg(test)]
mod tests;
