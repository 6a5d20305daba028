//! The metrics of a watch to who asks: `/metrics` on a loopback address of the operator, and a file for the
//! textfile collector of node_exporter.
//!
//! In: requests, bounded in bytes, number and time. Out: the text that the watch makes.

use std::io::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// Requests at a time; more wait.
const AT_ONCE_MAX: usize = 16;
/// Bytes of the head of a request.
const HEAD_MAX: usize = 8192;
/// A request is read and answered within this time.
const REQUEST_WAIT: Duration = Duration::from_secs(10);
/// Name of the file.
const FILE: &str = "linerate.prom";

/// Who asks for the text.
type Ask = oneshot::Sender<String>;

/// The listener.
pub struct MetricsListener {
    asked: mpsc::Receiver<Ask>,
    pub address: SocketAddr,
}

impl MetricsListener {
    /// Listens on a loopback address: the metrics have names of hosts, and no password.
    pub async fn open(address: SocketAddr) -> anyhow::Result<Self> {
        anyhow::ensure!(
            address.ip().is_loopback(),
            "metrics on {address}: not a loopback address\nhint: use 127.0.0.1:{}, and a proxy with a password in front of it",
            address.port()
        );
        let listener = TcpListener::bind(address).await.with_context(|| format!("metrics on {address}"))?;
        let address = listener.local_addr().with_context(|| format!("metrics on {address}"))?;
        let (ask, asked) = mpsc::channel(AT_ONCE_MAX);
        tokio::spawn(async move {
            let free = Arc::new(Semaphore::new(AT_ONCE_MAX));
            while let Ok(permit) = Arc::clone(&free).acquire_owned().await {
                // Without descriptors the next one may fare better.
                let Ok((stream, _)) = listener.accept().await else {
                    tokio::time::sleep(Duration::from_secs(1)).await;
                    continue;
                };
                let ask = ask.clone();
                tokio::spawn(async move {
                    drop(timeout(REQUEST_WAIT, answer(stream, &ask)).await);
                    drop(permit);
                });
            }
        });
        Ok(Self { asked, address })
    }

    /// The next one that wants the text.
    pub async fn next(&mut self) -> Ask {
        match self.asked.recv().await {
            Some(ask) => ask,
            None => std::future::pending().await,
        }
    }
}

async fn answer(mut stream: TcpStream, ask: &mpsc::Sender<Ask>) -> std::io::Result<()> {
    let mut head = Vec::new();
    while head.len() < HEAD_MAX && !head.windows(4).any(|end| end == b"\r\n\r\n") {
        let mut bytes = [0; 1024];
        let read = stream.read(&mut bytes).await?;
        if read == 0 {
            return Ok(());
        }
        head.extend(&bytes[..read]);
    }
    let (status, body) = match asked_for(&head) {
        Ok(Asked::Health) => ("200 OK", "linerate watch runs\n".to_owned()),
        Ok(Asked::Metrics) => {
            let (reply, text) = oneshot::channel();
            // A watch that ends answers no more.
            match (ask.send(reply).await, text.await) {
                (Ok(()), Ok(text)) => ("200 OK", text),
                _ => ("503 Service Unavailable", "the watch ends\n".to_owned()),
            }
        }
        Err(status) => (status, format!("{status}\nmetrics are at /metrics\n")),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\nContent-Length: {}\r\n\
         X-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body.as_bytes()).await?;
    stream.shutdown().await
}

#[derive(Debug, PartialEq, Eq)]
enum Asked {
    Metrics,
    Health,
}

/// What the head of a request asks for, or the status that refuses it.
fn asked_for(head: &[u8]) -> Result<Asked, &'static str> {
    const BAD: &str = "400 Bad Request";
    let text = std::str::from_utf8(head).map_err(|_| BAD)?;
    let (head, _) = text.split_once("\r\n\r\n").ok_or("431 Request Header Fields Too Large")?;
    let mut lines = head.split("\r\n");
    let mut first = lines.next().unwrap_or_default().split(' ');
    let (Some(method), Some(target), Some(version), None) =
        (first.next(), first.next(), first.next(), first.next())
    else {
        return Err(BAD);
    };
    if !version.starts_with("HTTP/1.") {
        return Err(BAD);
    }
    // A page of a stranger in a browser reaches loopback too, but by another name.
    let mut hosts =
        lines.filter_map(|line| line.split_once(':')).filter(|(name, _)| name.eq_ignore_ascii_case("host"));
    let host = hosts.next().map(|(_, host)| host.trim());
    if hosts.next().is_some() || !host.is_some_and(is_own) {
        return Err("421 Misdirected Request");
    }
    if method != "GET" {
        return Err("405 Method Not Allowed");
    }
    match target.split('?').next() {
        Some("/metrics") => Ok(Asked::Metrics),
        Some("/-/healthy" | "/-/ready") => Ok(Asked::Health),
        _ => Err("404 Not Found"),
    }
}

/// Whether a `Host` names this machine's loopback.
fn is_own(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if !port.ends_with(']') => name,
        _ => host,
    };
    let address = name.trim_start_matches('[').trim_end_matches(']').parse::<std::net::IpAddr>();
    name.eq_ignore_ascii_case("localhost") || address.is_ok_and(|address| address.is_loopback())
}

/// The file for the textfile collector.
pub struct TextFile {
    path: PathBuf,
    writing: Option<JoinHandle<std::io::Result<()>>>,
}

impl TextFile {
    /// In this folder.
    pub fn new(folder: &Path) -> Self {
        Self { path: folder.join(FILE), writing: None }
    }

    /// Writes the text, unless the one before it is still being written. An error of the one before.
    pub async fn write(&mut self, text: String) -> Option<String> {
        if self.writing.as_ref().is_some_and(|writing| !writing.is_finished()) {
            return Some(format!("{} is not written: its disk does not answer", self.path.display()));
        }
        let before = match self.writing.take() {
            Some(writing) => writing.await.unwrap_or_else(|lost| Err(std::io::Error::other(lost))),
            None => Ok(()),
        };
        let path = self.path.clone();
        self.writing = Some(tokio::task::spawn_blocking(move || replace(&path, &text)));
        before.err().map(|error| format!("{} is not written: {error}", self.path.display()))
    }

    /// Removes it: values of a watch that has ended are not those of now.
    pub async fn end(self) {
        let path = self.path;
        let last = self.writing;
        let remove = async {
            if let Some(last) = last {
                drop(last.await);
            }
            drop(tokio::task::spawn_blocking(move || std::fs::remove_file(path)).await);
        };
        drop(timeout(REQUEST_WAIT, remove).await);
    }
}

/// A reader sees the old text or the new one.
fn replace(path: &Path, text: &str) -> std::io::Result<()> {
    let new = path.with_extension("prom.new");
    let mut file = std::fs::File::create(&new)?;
    file.write_all(text.as_bytes())?;
    drop(file);
    std::fs::rename(new, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_get_that_names_this_machine_is_answered() {
        let asked =
            |first: &str, host: &str| asked_for(format!("{first}\r\nHost: {host}\r\n\r\n").as_bytes());
        for host in ["localhost:9441", "127.0.0.1:9441", "[::1]:9441", "[::1]", "LOCALHOST"] {
            assert_eq!(asked("GET /metrics HTTP/1.1", host), Ok(Asked::Metrics), "{host}");
        }
        assert_eq!(asked("GET /-/healthy HTTP/1.1", "localhost"), Ok(Asked::Health));
        for (first, host, status) in [
            ("GET /metrics HTTP/1.1", "stranger.example", "421"),
            ("GET /metrics HTTP/1.1", "127.0.0.1.stranger.example:9441", "421"),
            ("GET /metrics HTTP/1.1", "localhost\r\nHost: localhost", "421"),
            ("POST /metrics HTTP/1.1", "localhost", "405"),
            ("GET /../etc/passwd HTTP/1.1", "localhost", "404"),
            ("GET /metrics", "localhost", "400"),
            ("GET /metrics SSH-2.0", "localhost", "400"),
        ] {
            assert!(asked(first, host).unwrap_err().starts_with(status), "{first} {host}");
        }
        assert!(asked_for(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n").is_err());
        assert!(asked_for(b"\xff\r\n\r\n").is_err());
    }

    #[tokio::test]
    async fn metrics_are_served_on_loopback_alone_and_a_silent_client_holds_up_nothing() {
        assert!(MetricsListener::open("192.0.2.1:0".parse().unwrap()).await.is_err());
        let mut listener = MetricsListener::open("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let address = listener.address;
        let _silent = TcpStream::connect(address).await.unwrap();
        let client = tokio::spawn(async move {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.unwrap();
            answer
        });
        listener.next().await.send("a 1\n".to_owned()).unwrap();
        let answer = client.await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("\r\n\r\na 1\n"), "{answer}");
    }

    #[tokio::test]
    async fn the_file_is_replaced_and_goes_with_the_watch() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = TextFile::new(folder.path());
        assert_eq!(file.write("a 1\n".to_owned()).await, None);
        let wrote = file.writing.take().unwrap();
        wrote.await.unwrap().unwrap();
        assert_eq!(std::fs::read_to_string(folder.path().join(FILE)).unwrap(), "a 1\n");
        file.end().await;
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        let mut nowhere = TextFile::new(&folder.path().join("absent"));
        nowhere.write(String::new()).await;
        let wrote = nowhere.writing.take().unwrap();
        assert!(wrote.await.unwrap().is_err());
    }
}
