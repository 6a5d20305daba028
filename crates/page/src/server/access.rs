//! Who may read the pages beside the user who started the program: TLS and users of a web-config file, which
//! is read again when it or what it names changes. While a file is wrong no connection is accepted.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use linerate_model::shell;
use linerate_sys::ancestors::{self, Trusted};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::ParsedCertificate;
use rustls::{ServerConfig, version};
use tokio_rustls::TlsAcceptor;

use super::users::Users;
use super::web_config::{BYTES_MAX, Flaw, TlsFiles, parse};

/// Why a web-config file does not do.
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    /// A line of it.
    #[error(
        "{}:{line}: {problem}\nhint: read are tls_server_config (cert_file, key_file, min_version) and basic_auth_users (htpasswd -nB NAME)",
        path.display()
    )]
    Line {
        /// File.
        path: PathBuf,
        /// Line, from 1.
        line: usize,
        /// What is wrong there.
        problem: String,
    },
    /// A file cannot be read.
    #[error(transparent)]
    Input(#[from] linerate_input::InputError),
    /// The file, or one that it names.
    #[error("{}: {problem}\nhint: {hint}", path.display())]
    File {
        /// File.
        path: PathBuf,
        /// What is wrong.
        problem: String,
        /// What to type, or to write.
        hint: String,
    },
}

/// What a file allows.
pub(super) struct Rules {
    pub(super) tls: Option<Tls>,
    pub(super) users: Option<Users>,
    files: Vec<Seen>,
}

/// The end of the server.
pub(super) struct Tls {
    pub(super) acceptor: TlsAcceptor,
    certificate: CertificateDer<'static>,
}

impl Tls {
    /// Whether the certificate is for this name.
    pub(super) fn is_for(&self, name: &str) -> bool {
        let Ok(name) = ServerName::try_from(name) else { return false };
        ParsedCertificate::try_from(&self.certificate)
            .is_ok_and(|certificate| rustls::client::verify_server_name(&certificate, &name).is_ok())
    }
}

/// A file as it was read.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    path: PathBuf,
    /// Device, number, length and time of change.
    state: Option<(u64, u64, u64, i64, i64)>,
}

impl Seen {
    fn now(path: &Path) -> Self {
        let of = |found: std::fs::Metadata| {
            (found.dev(), found.ino(), found.len(), found.ctime(), found.ctime_nsec())
        };
        Self { path: path.to_owned(), state: path.metadata().ok().map(of) }
    }
}

/// A web-config file that is followed.
pub(super) struct Access {
    path: PathBuf,
    /// Others than users of this machine reach the server.
    is_public: bool,
    rules: Mutex<Option<Arc<Rules>>>,
    /// Receives why a file that was right is wrong now.
    pub(super) note: fn(&str),
}

impl Access {
    /// Reads the file. With `is_public` it has to set TLS and users.
    ///
    /// # Errors
    /// A flaw of the file, or of the certificate or the key that it names.
    pub(super) fn open(path: &Path, is_public: bool) -> Result<Self, AccessError> {
        let rules = load(path, is_public)?;
        Ok(Self { path: path.to_owned(), is_public, rules: Mutex::new(Some(Arc::new(rules))), note: |_| {} })
    }

    /// What is allowed now; `None` where the file is wrong. Blocks.
    pub(super) fn now(&self) -> Option<Arc<Rules>> {
        let mut rules = self.rules.lock().unwrap_or_else(PoisonError::into_inner);
        let is_same = |rules: &Arc<Rules>| rules.files.iter().all(|file| *file == Seen::now(&file.path));
        if !rules.as_ref().is_some_and(is_same) {
            let was_right = rules.is_some();
            *rules = match load(&self.path, self.is_public) {
                Ok(new) => Some(Arc::new(new)),
                Err(error) => {
                    if was_right {
                        (self.note)(&format!("the page accepts no connection: {error}"));
                    }
                    None
                }
            };
        }
        rules.clone()
    }

    pub(super) fn has_tls(&self) -> bool {
        self.rules
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .as_ref()
            .is_some_and(|rules| rules.tls.is_some())
    }
}

fn load(path: &Path, is_public: bool) -> Result<Rules, AccessError> {
    let mut files = Vec::new();
    let text = read(path, 0o022, &mut files)?;
    let text = String::from_utf8(text).map_err(|_| AccessError::File {
        path: path.to_owned(),
        problem: "is not UTF-8".to_owned(),
        hint: format!("file {}", shell::path(path)),
    })?;
    let config = parse(&text).map_err(|Flaw { line, problem }| AccessError::Line {
        path: path.to_owned(),
        line,
        problem,
    })?;
    let lacks = |what: &str| AccessError::File {
        path: path.to_owned(),
        problem: format!("has no {what}: other machines reach the page"),
        hint: format!("add {what}, or listen on a loopback address and use ssh -L"),
    };
    if is_public && config.tls.is_none() {
        return Err(lacks("tls_server_config"));
    }
    if is_public && config.users.is_empty() {
        return Err(lacks("basic_auth_users"));
    }
    let folder = path.parent().unwrap_or(Path::new(""));
    let tls = config.tls.map(|of| tls(folder, &of, &mut files)).transpose()?;
    Ok(Rules { tls, users: Users::new(config.users), files })
}

/// A file that others than its owner cannot change or, of a key, read.
fn read(path: &Path, forbidden: u32, files: &mut Vec<Seen>) -> Result<Vec<u8>, AccessError> {
    files.push(Seen::now(path));
    let failed = |problem: String, hint: String| AccessError::File { path: path.to_owned(), problem, hint };
    let shown = shell::path(path);
    // A folder that another user can exchange makes the checks below void.
    if let Some(above) = path.canonicalize().ok().as_deref().and_then(Path::parent) {
        ancestors::reach(above, &Trusted::new())
            .map_err(|error| failed(error.to_string(), format!("ls -ld {}", shell::path(above))))?;
    }
    let bytes = linerate_input::bytes(path, BYTES_MAX)?;
    let found = path.metadata().map_err(|error| failed(error.to_string(), format!("ls -l {shown}")))?;
    let own = rustix::process::geteuid().as_raw();
    if found.uid() != 0 && found.uid() != own {
        return Err(failed("belongs to another user".to_owned(), format!("ls -l {shown}")));
    }
    if found.mode() & forbidden != 0 {
        let can = if forbidden & 0o004 != 0 { "read or change" } else { "change" };
        let hint = if forbidden & 0o004 != 0 { "chmod g-w,o=" } else { "chmod go-w" };
        return Err(failed(format!("other users can {can} it"), format!("{hint} {shown}")));
    }
    Ok(bytes)
}

fn tls(folder: &Path, of: &TlsFiles, files: &mut Vec<Seen>) -> Result<Tls, AccessError> {
    let (cert_path, key_path) = (folder.join(&of.cert_file), folder.join(&of.key_file));
    let failed = |path: &Path, problem: &str, hint: &str| AccessError::File {
        path: path.to_owned(),
        problem: problem.to_owned(),
        hint: format!("{hint} {}", shell::path(path)),
    };
    let no_certificate =
        || failed(&cert_path, "has no certificate in PEM", "openssl x509 -noout -subject -in");
    let pem = read(&cert_path, 0o022, files)?;
    let chain: Result<Vec<CertificateDer<'static>>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    let chain = chain.map_err(|_| no_certificate())?;
    let certificate = chain.first().ok_or_else(no_certificate)?.clone();
    if ParsedCertificate::try_from(&certificate).is_err() {
        return Err(failed(
            &cert_path,
            "has a certificate that cannot be read",
            "openssl x509 -noout -text -in",
        ));
    }
    let pem = read(&key_path, 0o027, files)?;
    let key = PrivateKeyDer::from_pem_slice(&pem).map_err(|_| {
        failed(&key_path, "has no private key in PEM, or an encrypted one", "openssl pkey -noout -in")
    })?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let versions: &[&rustls::SupportedProtocolVersion] =
        if of.is_new_only { &[&version::TLS13] } else { &[&version::TLS13, &version::TLS12] };
    let refused =
        |error: rustls::Error| failed(&key_path, &error.to_string(), "openssl pkey -noout -text -in");
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(versions)
        .map_err(refused)?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(refused)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Tls { acceptor: TlsAcceptor::from(Arc::new(config)), certificate })
}
