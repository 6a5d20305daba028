//! TLS and users by a web-config file: real clients, right and wrong passwords, names of the certificate,
//! files that change meanwhile, and files that do not do.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine as _;
use linerate_page::server::{Listen, Server};
use linerate_testkit::TestEnvironment;
use rustls::pki_types::{CertificateDer, ServerName};

use super::{filled, served};

const NAME: &str = "page.example";
const ADDRESS: &str = "192.0.2.7";

/// A folder with a certificate, its key and the file that names them.
struct Files {
    folder: tempfile::TempDir,
    certificate: CertificateDer<'static>,
}

impl Files {
    fn new(users: &[(&str, &str)]) -> Self {
        let made = rcgen::generate_simple_self_signed(vec![NAME.to_owned(), ADDRESS.to_owned()]).unwrap();
        let files = Self { folder: tempfile::tempdir().unwrap(), certificate: made.cert.der().clone() };
        files.write("server.crt", &made.cert.pem(), 0o644);
        files.write("server.key", &made.signing_key.serialize_pem(), 0o600);
        files.write("web.yml", &text(users), 0o600);
        files
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// As a text editor does: another file with the same name.
    fn write(&self, name: &str, text: &str, mode: u32) {
        let new = self.path("new");
        std::fs::write(&new, text).unwrap();
        std::fs::set_permissions(&new, std::fs::Permissions::from_mode(mode)).unwrap();
        std::fs::rename(new, self.path(name)).unwrap();
    }
}

fn text(users: &[(&str, &str)]) -> String {
    let tls = "tls_server_config:\n  cert_file: server.crt\n  key_file: server.key\nbasic_auth_users:\n";
    let user =
        |(name, password): &(&str, &str)| format!("  {name}: {}\n", bcrypt::hash(password, 4).unwrap());
    tls.to_owned() + &users.iter().map(user).collect::<String>()
}

fn authorization(text: &str) -> String {
    format!("Authorization: Basic {}\r\n", base64::engine::general_purpose::STANDARD.encode(text))
}

/// What a request over TLS is answered; an error where the handshake fails.
fn ask(files: &Files, address: &str, host: &str, headers: &str) -> std::io::Result<String> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(files.certificate.clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from(NAME).unwrap();
    let connection = rustls::ClientConnection::new(Arc::new(config), name).unwrap();
    let mut stream = rustls::StreamOwned::new(connection, TcpStream::connect(address)?);
    let request = format!("GET /hosts HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{headers}\r\n");
    stream.write_all(request.as_bytes())?;
    let mut answer = Vec::new();
    // A server that closes without a last record has sent all.
    let _ = stream.read_to_end(&mut answer);
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

fn status(answer: &str) -> &str {
    answer.split(' ').nth(1).unwrap_or(answer)
}

fn refused(listen: &str, web_config: Option<&Path>) -> String {
    let listen: Listen = listen.parse().unwrap();
    Server::bind(&listen, web_config).err().map_or_else(|| panic!("{listen:?} is served"), |e| e.to_string())
}

#[test]
fn another_address_is_served_with_tls_to_users_alone() {
    let name = "access::another_address_is_served_with_tls_to_users_alone";
    if !linerate_testkit::inside(name, TestEnvironment::Network) {
        return;
    }
    linerate_testkit::run("ip", &["link", "set", "lo", "up"]);
    linerate_testkit::run("ip", &["address", "add", &format!("{ADDRESS}/32"), "dev", "lo"]);
    let files = Files::new(&[("alice", "secret"), ("bob", "other")]);
    let (_folder, source) = filled(&str::to_owned);
    let listen = format!("{ADDRESS}:0");
    let address = served::start_on(&source, &listen, Some(&files.path("web.yml")));
    let of = |host: &str, headers: &str| ask(&files, &address, host, headers).unwrap();
    let right = authorization("alice:secret");
    for (headers, expected) in [
        (String::new(), "401"),
        (authorization("alice:wrong"), "401"),
        (authorization("mallory:secret"), "401"),
        (authorization("bob:secret"), "401"),
        ("Authorization: Bearer x\r\n".to_owned(), "401"),
        (right.clone(), "200"),
        (authorization("bob:other"), "200"),
    ] {
        let answer = of(NAME, &headers);
        assert_eq!(status(&answer), expected, "{headers}: {answer}");
        assert_eq!(answer.contains("arc-3"), expected == "200", "{answer}");
        assert_eq!(answer.contains("www-authenticate: Basic realm"), expected == "401", "{answer}");
        assert!(answer.contains("content-security-policy: default-src 'none'"), "{answer}");
    }
    // The names of the certificate are those of the page.
    for (host, expected) in [(ADDRESS, "200"), ("page.example:7788", "200"), ("evil.example", "421")] {
        assert_eq!(status(&of(host, &right)), expected, "{host}");
    }
    // Without TLS nothing is answered but the alert.
    let plain = served::raw(&address, format!("GET / HTTP/1.1\r\nHost: {NAME}\r\n\r\n").as_bytes());
    assert!(!plain.contains("HTTP/1.1"), "{plain}");
    if linerate_testkit::has(name, "curl", "curl") {
        let port = address.rsplit(':').next().unwrap();
        let (resolve, url) = (format!("{NAME}:{port}:{ADDRESS}"), format!("https://{NAME}:{port}/hosts"));
        let ca = files.path("server.crt");
        let base = ["-sS", "--max-time", "60", "--cacert", ca.to_str().unwrap(), "--resolve", &resolve];
        let curl = |more: &[&str]| linerate_testkit::run("curl", &[&base[..], more, &[&url]].concat());
        assert!(curl(&["-u", "alice:secret"]).contains("arc-3"));
        assert!(curl(&["-u", "alice:secret", "--tls-max", "1.2"]).contains("arc-3"));
        assert!(curl(&["-u", "alice:wrong"]).contains("a name and a password"));
    }
}

#[test]
fn another_address_without_tls_or_users_is_refused() {
    let listen = format!("{ADDRESS}:7788");
    let files = Files::new(&[("alice", "secret")]);
    let web = files.path("web.yml");
    let error = refused(&listen, None);
    assert!(error.contains("not a loopback address") && error.contains("--web-config"), "{error}");
    files.write("web.yml", &text(&[]).replace("basic_auth_users:\n", ""), 0o600);
    let error = refused(&listen, Some(&web));
    assert!(error.contains("has no basic_auth_users") && error.contains("hint: "), "{error}");
    let users = text(&[("alice", "secret")]);
    files.write(
        "web.yml",
        users
            .split_once("basic_auth_users")
            .map(|(_, rest)| format!("basic_auth_users{rest}"))
            .unwrap()
            .as_str(),
        0o600,
    );
    assert!(refused(&listen, Some(&web)).contains("has no tls_server_config"));
    files.write("web.yml", "basic_auth_users:\n  alice: secret\n", 0o600);
    let error = refused("127.0.0.1:0", Some(&web));
    assert!(
        error.contains("web.yml:2: ") && error.contains("bcrypt") && !error.contains("secret"),
        "{error}"
    );
}

#[test]
fn files_that_others_can_change_or_that_do_not_fit_are_refused() {
    let files = Files::new(&[("alice", "secret")]);
    let web = files.path("web.yml");
    let listen: Listen = "127.0.0.1:0".parse().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let _context = runtime.enter();
    let refused = |what: &str| {
        let error = Server::bind(&listen, Some(&web)).err().map(|error| error.to_string());
        assert!(error.as_ref().is_some_and(|error| error.contains(what)), "{what}: {error:?}");
    };
    assert!(Server::bind(&listen, Some(&web)).is_ok());
    let mode = |name: &str, mode| {
        std::fs::set_permissions(files.path(name), std::fs::Permissions::from_mode(mode)).unwrap();
    };
    mode("server.key", 0o644);
    refused("other users can read or change it");
    mode("server.key", 0o600);
    mode("web.yml", 0o666);
    refused("other users can change it");
    mode("web.yml", 0o600);
    let other = rcgen::generate_simple_self_signed(vec![NAME.to_owned()]).unwrap();
    files.write("server.key", &other.signing_key.serialize_pem(), 0o600);
    refused("server.key");
    files.write("server.key", "nothing", 0o600);
    refused("has no private key in PEM");
    files.write("server.crt", "nothing", 0o644);
    refused("has no certificate in PEM");
    std::fs::remove_file(files.path("server.crt")).unwrap();
    refused("server.crt");
}

#[test]
fn a_changed_file_counts_from_the_next_connection_on() {
    let files = Files::new(&[("alice", "secret")]);
    let (_folder, source) = filled(&str::to_owned);
    let address = served::start_on(&source, "127.0.0.1:0", Some(&files.path("web.yml")));
    let of = |user: &str| ask(&files, &address, NAME, &authorization(user));
    assert_eq!(status(&of("alice:secret").unwrap()), "200");
    files.write("web.yml", &text(&[("bob", "other")]), 0o600);
    assert_eq!(status(&of("alice:secret").unwrap()), "401");
    assert_eq!(status(&of("bob:other").unwrap()), "200");
    files.write("web.yml", "basic_auth_users: [\n", 0o600);
    // No connection is accepted, not even without a password.
    for user in ["bob:other", "alice:secret", ""] {
        assert!(of(user).map_or(true, |answer| answer.is_empty()), "{user}");
    }
    files.write("web.yml", &text(&[("bob", "other")]), 0o600);
    assert_eq!(status(&of("bob:other").unwrap()), "200");
}
