//! One answer of a web server with its body: an interface that is asked, not a download that is measured.
//!
//! What comes in: a URL, bounds of bytes and time. What goes out: the status and the body, or what failed.
//! Redirects are not followed: what is asked for is at the URL that the user gave.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use linerate_model::kind::{HttpPlan, TestKind};
use linerate_model::load::{LoadSpec, Role};
use thiserror::Error;

use super::dial::{self, Until};
use super::message::{Body, Incoming, Length};
use super::tls;
use super::url::{Failure, Url};
use crate::job::{Job, LoadControl};

/// What may be asked of a server.
#[derive(Debug, Clone)]
pub struct GetLimits {
    /// Most bytes of a body.
    pub bytes: u64,
    /// For the whole answer.
    pub time: Duration,
    /// Certificates to trust, PEM; those of this host where none are given.
    pub trusted_pem: Option<String>,
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GetAnswer {
    /// Status of HTTP.
    pub status: u16,
    /// All of its body.
    pub body: Vec<u8>,
}

/// Why there is no answer: a sentence without the URL.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum GetError {
    /// The server was not reached, or did not answer as one of HTTP does.
    #[error("{0}")]
    Failed(String),
    /// Its answer is beyond the bound.
    #[error("the answer is longer than {} MB", .bytes_max >> 20)]
    TooLong {
        /// Most bytes of a body.
        bytes_max: u64,
    },
}

impl From<Failure> for GetError {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// Gets a URL.
pub fn get(url: &str, limits: &GetLimits) -> Result<GetAnswer, GetError> {
    let url = Url::parse(url)?;
    let plan = HttpPlan {
        url: String::new(),
        via: Vec::new(),
        repeat: 1,
        max_bytes: limits.bytes,
        timeout_ms: u32::try_from(limits.time.as_millis()).unwrap_or(u32::MAX),
        trusted_pem: limits.trusted_pem.clone(),
        insecure: false,
    };
    let spec = LoadSpec {
        kind: TestKind::from(plan.clone()),
        role: Role::Sender { peer: SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), 0) },
        bind: Ipv4Addr::UNSPECIFIED.into(),
        netns: None,
        token: [0; 16],
        deadline_ms: plan.timeout_ms,
        same_host: false,
        tuning: Box::default(),
    };
    let control = LoadControl { stop: Arc::new(AtomicBool::new(false)), listening: Box::new(|_| {}) };
    let job = Job::new(&spec, &control);
    answer(&url, &plan, &Until::new(&job, limits.time))
}

fn answer(url: &Url, plan: &HttpPlan, until: &Until<'_>) -> Result<GetAnswer, GetError> {
    let stream = dial::connect_any(&dial::resolve(&url.host, url.port, until)?, until)?;
    let mut stream: Box<dyn dial::Stream + '_> = if url.https {
        Box::new(tls::shake_hands(&tls::config(plan)?, &url.host, stream)?.0)
    } else {
        Box::new(stream)
    };
    let sent = stream.write_all(super::request(url).as_bytes()).and_then(|()| stream.flush());
    sent.map_err(|e| until.words("send the request", &e))?;
    let mut incoming = Incoming::new(stream);
    let head = incoming.head().map_err(|e| until.words("read the answer's head", &e))?;
    if matches!(head.body, Length::Bytes(bytes) if bytes > plan.max_bytes) {
        return Err(GetError::TooLong { bytes_max: plan.max_bytes });
    }
    let read = incoming.kept_body(head.body, plan.max_bytes);
    match read.map_err(|e| until.words("read the answer", &e))? {
        (Body::Whole, body) => Ok(GetAnswer { status: head.status, body }),
        (Body::Cut, _) => Err(GetError::TooLong { bytes_max: plan.max_bytes }),
    }
}
