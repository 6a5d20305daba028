//! Downloads from servers made here: plain and with TLS, slow, redirecting, lying.
//!
//! What comes in: loopback addresses, certificates made on the spot. What goes out: nothing. Times are
//! compared only with waits that the servers insist on.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use linerate_model::http::HttpFetch;
use linerate_model::kind::{HttpPlan, TestKind};
use linerate_model::load::{LoadReport, LoadSpec, Role};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::{GetError, GetLimits, LoadControl, get, run};

const LOCAL: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// No download that goes well takes as long.
const LONG: Duration = Duration::from_secs(60);

/// Answers every connection by a function of the request's first line, until it is dropped.
struct Server {
    address: SocketAddr,
    over: Arc<AtomicBool>,
    seen: Arc<AtomicUsize>,
    thread: Option<thread::JoinHandle<()>>,
}

trait Both: Read + Write {}
impl<T: Read + Write> Both for T {}

impl Server {
    fn start(tls: Option<Arc<ServerConfig>>, answer: impl Fn(&str, &mut dyn Both) + Send + 'static) -> Self {
        let listener = TcpListener::bind((LOCAL, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let (over, seen) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let thread = thread::spawn({
            let (over, seen) = (over.clone(), seen.clone());
            move || {
                for stream in listener.incoming() {
                    if over.load(Ordering::Relaxed) {
                        return;
                    }
                    seen.fetch_add(1, Ordering::Relaxed);
                    let Ok(stream) = stream else { continue };
                    stream.set_read_timeout(Some(LONG)).unwrap();
                    stream.set_write_timeout(Some(LONG)).unwrap();
                    match &tls {
                        None => talk(stream, &answer),
                        Some(config) => {
                            let connection = ServerConnection::new(config.clone()).unwrap();
                            talk(StreamOwned::new(connection, stream), &answer);
                        }
                    }
                }
            }
        });
        Self { address, over, seen, thread: Some(thread) }
    }

    /// Serves this body to everyone.
    fn of(body: Vec<u8>) -> Self {
        Self::start(None, move |_, stream| {
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
            let _ = stream.write_all(&[head.as_bytes(), &body].concat());
        })
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(self.address);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn talk(mut stream: impl Read + Write, answer: &impl Fn(&str, &mut dyn Both)) {
    let mut request = Vec::new();
    let mut byte = [0; 1];
    while !request.ends_with(b"\r\n\r\n") && request.len() < 10_000 {
        match stream.read(&mut byte) {
            Ok(1..) => request.push(byte[0]),
            _ => return,
        }
    }
    let request = String::from_utf8(request).unwrap();
    assert!(
        request.contains("\r\nHost: ") && request.contains("\r\nAccept-Encoding: identity\r\n"),
        "{request}"
    );
    answer(request.lines().next().unwrap(), &mut stream);
    let _ = stream.flush();
}

fn plan(url: String) -> HttpPlan {
    HttpPlan {
        url,
        via: vec![],
        repeat: 1,
        max_bytes: 1 << 20,
        timeout_ms: LONG.as_millis() as u32,
        trusted_pem: None,
        insecure: false,
    }
}

fn fetch_all(plan: HttpPlan) -> LoadReport {
    let spec = LoadSpec {
        kind: TestKind::from(plan),
        role: Role::Sender { peer: SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), 0) },
        bind: Ipv4Addr::UNSPECIFIED.into(),
        netns: None,
        token: [1; 16],
        deadline_ms: 300_000,
        same_host: false,
        tuning: Box::default(),
    };
    let control = LoadControl {
        stop: Arc::new(AtomicBool::new(false)),
        listening: Box::new(|_| panic!("it does not listen")),
    };
    run(&spec, &control)
}

fn fetch(plan: HttpPlan) -> HttpFetch {
    let mut report = fetch_all(plan);
    assert_eq!((report.http.len(), &report.stopped), (1, &None), "{report:?}");
    report.http.remove(0)
}

#[test]
fn a_download_has_its_steps() {
    let server = Server::of(vec![b'x'; 100_000]);
    let mut by_name = plan(server.url("/file").replace("127.0.0.1", "localhost"));
    by_name.via = vec![format!("localhost:{}", server.address.port())];
    let got = fetch(by_name);
    assert_eq!((&got.error, got.status, got.bytes, got.cut), (&None, Some(200), 100_000, false));
    assert!(got.dns_ms.is_some() && got.connect_ms.is_some() && got.tls_ms.is_none());
    assert!(got.first_byte_ms.is_some() && got.body_ms.is_some() && got.address == Some(server.address));
    // An address needs no resolving.
    let got = fetch(plan(server.url("/file")));
    assert!(got.dns_ms.is_none() && got.error.is_none() && got.via == "127.0.0.1", "{got:?}");
    // What is more than allowed is left.
    let got = fetch(HttpPlan { max_bytes: 1000, ..plan(server.url("/file")) });
    assert_eq!((got.bytes, got.cut, got.error), (1000, true, None));
}

#[test]
fn front_ends_take_turns() {
    let (a, b) = (Server::of(b"same".to_vec()), Server::of(b"same".to_vec()));
    let via = vec![a.address.to_string(), b.address.to_string()];
    let report = fetch_all(HttpPlan { via: via.clone(), repeat: 3, ..plan("http://files.example/f".into()) });
    let order: Vec<&str> = report.http.iter().map(|f| f.via.as_str()).collect();
    let [a_name, b_name] = [via[0].as_str(), via[1].as_str()];
    assert_eq!(order, [a_name, b_name, b_name, a_name, a_name, b_name]);
    assert!(report.http.iter().all(|f| f.error.is_none() && f.bytes == 4), "{:?}", report.http);
    assert_eq!((a.seen.load(Ordering::Relaxed), b.seen.load(Ordering::Relaxed)), (3, 3));
}

#[test]
fn a_slow_front_end_shows_in_the_step_that_is_slow() {
    const WAIT: Duration = Duration::from_millis(120);
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n";
    let thinks = Server::start(None, move |_, stream| {
        thread::sleep(WAIT);
        let _ = stream.write_all(format!("{head}ok").as_bytes());
    });
    // Far more than the kernel keeps for a reader: when the server has written it, the client is in the
    // middle of the body.
    let most = vec![b'o'; 32 << 20];
    let length = most.len() + 1;
    let trickles = Server::start(None, move |_, stream| {
        let _ = stream.write_all(format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n").as_bytes());
        let _ = stream.write_all(&most);
        thread::sleep(WAIT);
        let _ = stream.write_all(b"k");
    });
    let wait_ms = WAIT.as_secs_f64() * 1e3;
    let got = fetch(plan(thinks.url("/")));
    assert!(got.first_byte_ms.unwrap() >= wait_ms && got.error.is_none(), "{got:?}");
    let got = fetch(HttpPlan { max_bytes: length as u64, ..plan(trickles.url("/")) });
    assert!(got.body_ms.unwrap() >= wait_ms && got.bytes == length as u64, "{got:?}");
}

#[test]
fn redirects_are_followed_and_listed_but_not_for_ever() {
    let server = Server::start(None, |line, stream| {
        let number: u32 = line.split(['/', ' ']).nth(2).and_then(|n| n.parse().ok()).unwrap_or(0);
        let answer = if number == 0 {
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok".to_owned()
        } else {
            format!("HTTP/1.1 302 Found\r\nLocation: /{}\r\nContent-Length: 0\r\n\r\n", number - 1)
        };
        let _ = stream.write_all(answer.as_bytes());
    });
    let got = fetch(plan(server.url("/2")));
    assert_eq!((got.redirects, got.bytes, got.error), (vec![server.url("/1"), server.url("/0")], 2, None));
    let got = fetch(plan(server.url("/9")));
    assert_eq!(got.redirects.len(), 5);
    assert!(got.error.unwrap().contains("more than 5 redirects"));
}

fn certificate(name: &str) -> (String, Arc<ServerConfig>) {
    let made = rcgen::generate_simple_self_signed(vec![name.to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let chain = vec![CertificateDer::from(made.cert.der().to_vec())];
    let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    (made.cert.pem(), Arc::new(config))
}

#[test]
fn tls_is_verified_by_default() {
    let (pem, config) = certificate("files.example");
    let server = Server::start(Some(config), |_, stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello");
    });
    let via = vec![server.address.to_string()];
    let good = HttpPlan { via, trusted_pem: Some(pem), ..plan("https://files.example/f".into()) };
    let got = fetch(good.clone());
    assert_eq!((&got.error, got.bytes, got.tls.as_deref()), (&None, 5, Some("TLS 1.3")));
    assert!(got.tls_ms.is_some());
    // The certificate is for another name, or of an untrusted CA.
    let other = fetch(HttpPlan { url: "https://other.example/f".into(), ..good.clone() });
    assert!(other.error.as_ref().unwrap().contains("certificate") && other.status.is_none(), "{other:?}");
    let (stranger, _) = certificate("files.example");
    let unknown = fetch(HttpPlan { trusted_pem: Some(stranger), ..good.clone() });
    assert!(unknown.error.as_ref().unwrap().contains("certificate"), "{unknown:?}");
    let got = fetch(HttpPlan { url: "https://other.example/f".into(), insecure: true, ..good.clone() });
    assert_eq!((got.error, got.bytes), (None, 5));
    // An invalid certificate is reported before anything is sent.
    let report = fetch_all(HttpPlan { trusted_pem: Some("nothing".into()), ..good });
    assert!(report.stopped.unwrap().contains("--ca"));
}

#[test]
fn hostile_servers_are_left() {
    let endless = Server::start(None, |_, stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n");
        while stream.write_all(&b"X: yyyyyyyyyyyyyyyyyyyyyyyy\r\n".repeat(100)).is_ok() {}
    });
    let flood = Server::start(None, |_, stream| {
        let _ =
            stream.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n");
        while stream.write_all(&[0; 8192]).is_ok() {}
    });
    let early = Server::start(None, |_, stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nonly this");
    });
    let silent = Server::start(None, |_, stream| {
        // Until the other end closes.
        let _ = stream.read_exact(&mut [0; 1]);
    });
    assert!(fetch(plan(endless.url("/"))).error.unwrap().contains("64 kB"));
    let got = fetch(plan(flood.url("/")));
    assert_eq!((got.bytes, got.cut), (1 << 20, true));
    let got = fetch(plan(early.url("/")));
    assert!(got.error.unwrap().contains("90 bytes too early") && got.bytes == 9);
    let begun = Instant::now();
    let got = fetch(HttpPlan { timeout_ms: 200, ..plan(silent.url("/")) });
    assert!(got.error.unwrap().contains("within 0.2 s"));
    assert!(begun.elapsed() < LONG);
    let closed = TcpListener::bind((LOCAL, 0)).unwrap().local_addr().unwrap();
    let got = fetch(plan(format!("http://{closed}/")));
    assert!(got.error.unwrap().contains("connect to") && got.connect_ms.is_none());
}

#[test]
fn senseless_plans_are_values() {
    for (wrong, words) in [
        (plan("nothing".into()), "read the URL"),
        (HttpPlan { via: vec!["a b".into()], ..plan("http://x/".into()) }, "front end"),
        (HttpPlan { repeat: 0, ..plan("http://x/".into()) }, "allowed"),
        (HttpPlan { via: vec!["x".into(); 65], ..plan("http://x/".into()) }, "allowed"),
    ] {
        let report = fetch_all(wrong);
        assert!(report.stopped.as_ref().unwrap().contains(words) && report.http.is_empty(), "{report:?}");
    }
}

#[test]
fn one_answer_comes_with_its_body_and_within_its_bounds() {
    let (pem, config) = certificate("127.0.0.1");
    let hello = |line: &str, stream: &mut dyn Both| {
        let status = if line.starts_with("GET /a?b=c ") { "200 OK" } else { "404 No" };
        let _ = stream.write_all(format!("HTTP/1.1 {status}\r\nContent-Length: 5\r\n\r\nhello").as_bytes());
    };
    let (plain, sealed) = (Server::start(None, hello), Server::start(Some(config), hello));
    let limits = |bytes, trusted_pem| GetLimits { bytes, time: LONG, trusted_pem };
    let got = get(&plain.url("/a?b=c"), &limits(5, None)).unwrap();
    assert_eq!((got.status, got.body.as_slice()), (200, b"hello".as_slice()));
    assert_eq!(get(&plain.url("/x"), &limits(5, None)).unwrap().status, 404);
    assert_eq!(get(&plain.url("/a"), &limits(4, None)), Err(GetError::TooLong { bytes_max: 4 }));
    let url = format!("https://{}/a?b=c", sealed.address);
    assert_eq!(get(&url, &limits(100, Some(pem))).unwrap().body, b"hello");
    let (other, _) = certificate("127.0.0.1");
    assert!(get(&url, &limits(100, Some(other))).unwrap_err().to_string().contains("certificate"));
}
