//! Requests over raw sockets: who may ask, what may be asked, and what every response carries.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::sync::Arc;

use linerate_page::live;
use linerate_page::server::{Listen, Server};
use linerate_store::Store;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::served::{get, raw, request, start};
use super::{filled, world};

const POLICY: &str = "content-security-policy: default-src 'none'; style-src 'self'; script-src 'self'; \
                      img-src 'self' data:; connect-src 'self'; base-uri 'none'; frame-ancestors 'none'; form-action 'none'";

#[test]
fn a_host_name_from_elsewhere_is_refused() {
    let (_folder, source) = filled(&str::to_owned);
    let address = start(&source);
    let status =
        |lines: &str| raw(&address, format!("GET / HTTP/1.1\r\n{lines}Connection: close\r\n\r\n").as_bytes());
    for hosts in
        ["Host: evil.example\r\n", "", "Host: localhost\r\nHost: evil.example\r\n", "Host: 10.0.0.1:7788\r\n"]
    {
        let response = status(hosts);
        assert!(
            response.starts_with("HTTP/1.1 421 ") || response.starts_with("HTTP/1.1 400 "),
            "{hosts:?}: {response}"
        );
        assert!(!response.contains("arc-3"), "{response}");
    }
    let other = format!("GET http://evil.example/ HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    assert!(raw(&address, other.as_bytes()).starts_with("HTTP/1.1 421 "));
    assert!(status("Host: localhost:1234\r\n").starts_with("HTTP/1.1 200 "));
}

#[test]
fn nothing_but_reading_is_answered() {
    let (_folder, source) = filled(&str::to_owned);
    let address = start(&source);
    for method in ["POST", "PUT", "DELETE", "OPTIONS", "TRACE", "PATCH"] {
        let (head, _) = request(&address, method, "/", "Content-Length: 0\r\n");
        assert!(head.starts_with("http/1.1 405 ") && head.contains("allow: get, head"), "{method}: {head}");
    }
    let (head, content) = request(&address, "HEAD", "/", "");
    assert!(
        head.starts_with("http/1.1 200 ") && head.contains("content-length: ") && content.is_empty(),
        "{head}"
    );
}

#[test]
fn addresses_are_no_paths_of_files() {
    let (_folder, source) = filled(&str::to_owned);
    let address = start(&source);
    for target in [
        "/nothing",
        "/../../../../etc/passwd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/style.css/..",
        "//etc/passwd",
        "/.git/config",
    ] {
        let (head, content) = request(&address, "GET", target, "");
        assert!(head.starts_with("http/1.1 404 "), "{target}: {head}");
        assert!(content.contains("No such page") && !content.contains("root:"), "{target}: {content}");
    }
    let (head, _) = request(&address, "GET", &format!("/?{}", "x".repeat(5000)), "");
    assert!(head.starts_with("http/1.1 414 "), "{head}");
}

#[test]
fn every_response_forbids_code_frames_and_other_servers() {
    let (_folder, source) = filled(&str::to_owned);
    let address = start(&source);
    let style =
        get(&address, "/").split("href=\"/style.css").nth(1).unwrap().split('"').next().unwrap().to_owned();
    for target in [
        "/",
        "/nothing",
        "/page.js",
        &format!("/style.css{style}"),
        "/matrix/picture?layer=underlay",
        "/host?name=arc-3",
    ] {
        let (head, _) = request(&address, "GET", target, "");
        for line in [
            POLICY,
            "x-content-type-options: nosniff",
            "referrer-policy: no-referrer",
            "cross-origin-resource-policy: same-origin",
        ] {
            assert!(head.contains(line), "{target} lacks {line}: {head}");
        }
        assert!(!head.contains("set-cookie") && !head.contains("access-control"), "{head}");
    }
}

#[test]
fn what_a_reader_has_is_not_sent_again_and_texts_are_compressed() {
    let (_folder, source) = filled(&str::to_owned);
    let address = start(&source);
    let (head, _) = request(&address, "GET", "/", "");
    let tag = head.lines().find_map(|line| line.strip_prefix("etag: w/")).unwrap().to_owned();
    let (head, content) = request(&address, "GET", "/", &format!("If-None-Match: W/{tag}\r\n"));
    assert!(head.starts_with("http/1.1 304 ") && content.is_empty(), "{head}");
    let (head, _) = request(&address, "GET", "/", "Accept-Encoding: gzip, br\r\n");
    assert!(head.contains("content-encoding: gzip"), "{head}");
}

#[test]
fn a_long_head_is_refused() {
    let (_folder, source) = filled(&str::to_owned);
    let address = start(&source);
    let line = format!("X: {}\r\n", "x".repeat(20_000));
    let (head, _) = request(&address, "GET", "/", &line);
    assert!(head.starts_with("http/1.1 431 ") || head.is_empty(), "{head}");
    let (head, _) = request(&address, "GET", "/", &"X: x\r\n".repeat(100));
    assert!(head.starts_with("http/1.1 431 "), "{head}");
    assert!(raw(&address, b"\x16\x03\x01 this is no request\r\n\r\n").starts_with("HTTP/1.1 400 "));
    get(&address, "/");
}

/// The clock of the server runs when all wait.
#[tokio::test(start_paused = true)]
async fn a_slow_head_ends_its_connection_alone() {
    let (folder, source) = filled(&str::to_owned);
    let socket = folder.path().join("page.sock");
    let server = Server::bind(&Listen::Unix(socket.clone()), None).unwrap();
    let views = live::follow(Arc::clone(&source)).unwrap();
    tokio::spawn(server.run(source, views));
    let mut slow = tokio::net::UnixStream::connect(&socket).await.unwrap();
    slow.write_all(b"GET / HTTP/1.1\r\nHost: loc").await.unwrap();
    let started = tokio::time::Instant::now();
    let mut rest = Vec::new();
    slow.read_to_end(&mut rest).await.unwrap();
    let text = String::from_utf8_lossy(&rest);
    assert!(!text.starts_with("HTTP/1.1 200"), "{text}");
    assert!(started.elapsed().as_secs() >= 9, "{:?}", started.elapsed());
    let mut other = tokio::net::UnixStream::connect(&socket).await.unwrap();
    other.write_all(b"GET /page.js HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").await.unwrap();
    let mut whole = Vec::new();
    other.read_to_end(&mut whole).await.unwrap();
    assert!(whole.starts_with(b"HTTP/1.1 200"));
}

#[tokio::test]
async fn a_socket_is_private_and_a_left_one_is_replaced() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("page.sock");
    let bind = || Server::bind(&Listen::Unix(path.clone()), None);
    let server = bind().unwrap();
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let error = bind().err().unwrap().to_string();
    assert!(error.contains("another program listens there"), "{error}");
    drop(server);
    assert!(!path.exists());
    // Left behind by a program that was killed.
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    assert!(StdUnixStream::connect(&path).is_err());
    drop(bind().unwrap());
    std::fs::write(&path, "mine").unwrap();
    assert!(bind().err().unwrap().to_string().contains("something else lies there"));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "mine");
}

#[test]
fn without_a_web_config_only_loopback_addresses_are_listened_on() {
    for text in ["0.0.0.0:7788", "10.1.2.3:7788", "[::]:7788", "[fe80::1]:7788"] {
        let listen: Listen = text.parse().unwrap();
        let error = Server::bind(&listen, None).err().unwrap().to_string();
        assert!(error.contains("not a loopback address") && error.contains("ssh -L"), "{error}");
    }
    assert!("7788".parse::<Listen>().is_err() && "evil.example:1".parse::<Listen>().is_err());
    assert_eq!("localhost:7788".parse::<Listen>().unwrap(), Listen::Tcp("127.0.0.1:7788".parse().unwrap()));
    assert!(matches!("./x.sock".parse::<Listen>().unwrap(), Listen::Unix(_)));
}

#[test]
fn another_user_of_this_host_is_refused() {
    let name = "another_user_of_this_host_is_refused";
    if !linerate_testkit::is_root() {
        linerate_testkit::skip(name, "needs root, to ask as another user");
        return;
    }
    if !linerate_testkit::has(name, "setpriv", "util-linux") || !linerate_testkit::has(name, "curl", "curl") {
        return;
    }
    let (_folder, source) = filled(&str::to_owned);
    let address = start(&source);
    let ask = |user: &str| {
        let user = format!("--reuid={user}");
        let url = format!("http://{address}/");
        linerate_testkit::run("setpriv", &[&user, "--clear-groups", "curl", "-s", "--max-time", "60", &url])
    };
    assert_eq!(ask("65534"), "only the user who started this program may connect");
    assert!(ask("0").contains("arc-3"));
}

#[test]
fn events_follow_what_another_program_writes() {
    let (folder, source) = filled(&str::to_owned);
    let address = start(&source);
    let mut stream = TcpStream::connect(&address).unwrap();
    stream.write_all(format!("GET /events HTTP/1.1\r\nHost: {address}\r\n\r\n").as_bytes()).unwrap();
    let mut text = String::new();
    let mut until = |what: &str| {
        let mut byte = [0];
        while !text.contains(what) {
            assert_eq!(stream.read(&mut byte).unwrap(), 1, "{text}");
            text.push(char::from(byte[0]));
        }
    };
    until("data: 1\n\n");
    let mut store = Store::open(&folder.path().join("linerate.sqlite")).unwrap();
    let recorded = world::recorded(&str::to_owned);
    world::add_run(&mut store, &recorded, 99, (source.now_ms)() - 1000);
    until("data: 2\n\n");
    world::open_another(folder.path(), &recorded);
    until("data: 3\n\n");
    assert!(text.contains("text/event-stream") && text.contains("no-store"), "{text}");
    assert!(get(&address, "/alarms").contains("3 open alarms"));
    // A page that is opened now has the new run.
    linerate_testkit::wait_until("the new run", || get(&address, "/runs").contains("20261126-035599-aaaa"));
}
