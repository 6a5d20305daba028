//! Who a client is: the token that it shows, and the list of users that a server has.
//!
//! What comes in: names, passwords, tokens, the text of a users file. What goes out: tokens, yes or no with
//! the reason. The RSA itself is done by the `openssl` program of the host (see [`Rsa`] and
//! `docs/dev/decisions/`), because iperf3's scheme needs the decryption of what strangers send, for which the
//! Rust libraries that are small enough leak time. The scheme knows no nonce: within the allowed clock
//! difference a token can be shown again, and nothing after it is protected.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use linerate_sys::bounded;
use sha2::{Digest, Sha256};

/// Longest token, as text: the RSA block of a key of 16384 bits in base64.
const TOKEN_BYTES_MAX: usize = 2732;
/// The program, by its path: a server often runs as root, and neither `PATH` nor a variable of OpenSSL
/// chooses what it starts.
const OPENSSL: &str = "/usr/bin/openssl";
/// Longest users file, bytes.
const USERS_BYTES_MAX: usize = 1 << 20;

/// Padding of the RSA block. Versions on either side of 3.17 do not understand each other by default.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Padding {
    /// Since 3.17.
    #[default]
    Oaep,
    /// Before, and with `--use-pkcs1-padding`.
    Pkcs1,
}

/// Why a user is rejected, or a token cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum AuthError {
    /// The client shows no token.
    #[error("the client shows no token, and this server wants one")]
    NoToken,
    /// What it shows is none.
    #[error("the client's token cannot be read: {why}")]
    Unreadable {
        /// Why.
        why: String,
    },
    /// User or password is wrong. Which of them is not reported.
    #[error("user `{user}` is not known with this password")]
    Unknown {
        /// As the client names it.
        user: String,
    },
    /// The token is old, or a clock is wrong.
    #[error("the client's clock differs by {by_s} s, allowed are {limit_s} s")]
    Clock {
        /// Difference, seconds.
        by_s: u64,
        /// Allowed, seconds.
        limit_s: u64,
    },
    /// `openssl` cannot do it.
    #[error("cannot {what} with the key {}: {why}\nhint: authentication needs the program /usr/bin/openssl and an RSA key in PEM", key.display())]
    Rsa {
        /// Step.
        what: &'static str,
        /// Key file.
        key: PathBuf,
        /// The program's words.
        why: String,
    },
    /// The users file cannot be read.
    #[error("cannot read the users file {}: {why}", path.display())]
    Users {
        /// The file.
        path: PathBuf,
        /// Why.
        why: String,
    },
}

/// Content of a token.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Claim {
    user: String,
    password: String,
    unix_s: u64,
}

impl Claim {
    fn to_text(&self) -> String {
        format!("user: {}\npwd:  {}\nts:   {}", self.user, self.password, self.unix_s)
    }

    fn from_text(text: &str) -> Option<Self> {
        let mut lines = text.trim_end_matches('\0').split('\n');
        let mut field = |name: &str| Some(lines.next()?.strip_prefix(name)?.trim_start().to_owned());
        let (user, password) = (field("user:")?, field("pwd:")?);
        let unix_s = field("ts:")?.trim_end().parse().ok()?;
        Some(Self { user, password, unix_s })
    }
}

/// Who may test, and how far clocks may differ.
#[derive(Debug, Clone)]
pub struct Users {
    entries: Vec<(String, String)>,
    skew_s: u64,
}

impl Users {
    /// Lines `user,hash`, where hash is the SHA-256 of `{user}password` in hex. Empty lines and those that
    /// start with `#` are passed over, as is what is no such line.
    pub fn parse(text: &str, skew_s: u64) -> Self {
        let entries = text
            .lines()
            .map(str::trim)
            .filter(|line| !line.starts_with('#'))
            .filter_map(|line| line.split_once(','))
            .map(|(user, hash)| (user.trim().to_owned(), hash.trim().to_ascii_lowercase()))
            .collect();
        Self { entries, skew_s }
    }

    /// From a file.
    pub fn load(path: &Path, skew_s: u64) -> Result<Self, AuthError> {
        let cannot = |why: String| AuthError::Users { path: path.to_owned(), why };
        let bytes = bounded::read(path, USERS_BYTES_MAX).map_err(|e| cannot(e.to_string()))?;
        let text = String::from_utf8(bytes).map_err(|_| cannot("not UTF-8 text".to_owned()))?;
        Ok(Self::parse(&text, skew_s))
    }

    fn judge(&self, claim: &Claim, now_unix_s: u64) -> Result<String, AuthError> {
        let by_s = claim.unix_s.abs_diff(now_unix_s);
        if by_s > self.skew_s {
            return Err(AuthError::Clock { by_s, limit_s: self.skew_s });
        }
        let shown = hash(&claim.user, &claim.password);
        let known = self
            .entries
            .iter()
            .any(|(user, hash)| *user == claim.user && same(hash.as_bytes(), shown.as_bytes()));
        if known { Ok(claim.user.clone()) } else { Err(AuthError::Unknown { user: claim.user.clone() }) }
    }
}

/// The hash of a users file.
pub fn hash(user: &str, password: &str) -> String {
    let digest = Sha256::digest(format!("{{{user}}}{password}"));
    digest.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}

/// Compares in constant time.
fn same(a: &[u8], b: &[u8]) -> bool {
    let difference = a.iter().zip(b).fold(0_u8, |sum, (a, b)| std::hint::black_box(sum | (a ^ b)));
    a.len() == b.len() && std::hint::black_box(difference) == 0
}

/// A key file, and what is done with it.
#[derive(Debug, Clone)]
pub struct Rsa {
    /// PEM file: a public key for clients, a private one for servers.
    pub key: PathBuf,
    /// Padding.
    pub padding: Padding,
}

impl Rsa {
    /// The token of a client.
    pub fn token(&self, user: &str, password: &str, now_unix_s: u64) -> Result<String, AuthError> {
        let claim = Claim { user: user.to_owned(), password: password.to_owned(), unix_s: now_unix_s };
        let block = self
            .openssl("encrypt", &["-encrypt", "-pubin"], claim.to_text().as_bytes())
            .map_err(|why| AuthError::Rsa { what: "encrypt the token", key: self.key.clone(), why })?;
        Ok(STANDARD.encode(block))
    }

    /// The user behind a client's token, when a server lets him in.
    pub fn user(&self, token: Option<&str>, users: &Users, now_unix_s: u64) -> Result<String, AuthError> {
        let token = token.ok_or(AuthError::NoToken)?;
        let unreadable = |why: &str| AuthError::Unreadable { why: why.to_owned() };
        if token.len() > TOKEN_BYTES_MAX {
            return Err(unreadable("it is too long"));
        }
        let block = STANDARD.decode(token.trim()).map_err(|_| unreadable("it is not base64"))?;
        // What exactly is wrong with a block that does not decrypt is not for strangers.
        let text = self.openssl("decrypt", &["-decrypt"], &block).map_err(|why| {
            if self.key.is_file() {
                unreadable("it was made for another key or padding\nhint: --use-pkcs1-padding")
            } else {
                AuthError::Rsa { what: "decrypt the token", key: self.key.clone(), why }
            }
        })?;
        let text = String::from_utf8(text).map_err(|_| unreadable("it is not text"))?;
        let claim = Claim::from_text(&text).ok_or_else(|| unreadable("its fields are not user, pwd, ts"))?;
        users.judge(&claim, now_unix_s)
    }

    fn openssl(&self, what: &str, flags: &[&str], input: &[u8]) -> Result<Vec<u8>, String> {
        let padding = match self.padding {
            Padding::Oaep => "rsa_padding_mode:oaep",
            Padding::Pkcs1 => "rsa_padding_mode:pkcs1",
        };
        let mut child = Command::new(OPENSSL)
            .env_clear()
            .arg("pkeyutl")
            .args(flags)
            .arg("-inkey")
            .arg(&self.key)
            .args(["-pkeyopt", padding])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("cannot start {OPENSSL}: {error}"))?;
        // Both are far smaller than a pipe; the password travels here and nowhere else.
        let wrote = child.stdin.take().map_or(Ok(()), |mut stdin| stdin.write_all(input));
        let output = child.wait_with_output().map_err(|error| error.to_string())?;
        if output.status.success() && wrote.is_ok() {
            return Ok(output.stdout);
        }
        let stderr = String::from_utf8_lossy(&output.stderr);
        Err(format!("openssl could not {what}: {}", stderr.trim().lines().last().unwrap_or_default()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// `{mario}rossi`, from the manual page of iperf3; checked with `sha256sum`.
    const MARIO: &str = "mario,bf7a49a846d44b454a5d11e7acfaf13d138bbe0b7483aa3e050879700572709b";

    #[test]
    fn the_hash_is_that_of_the_manual_page() {
        assert_eq!(format!("mario,{}", hash("mario", "rossi")), MARIO);
    }

    #[test]
    fn a_claim_is_judged() {
        let users = Users::parse(&format!("# people\n\n{MARIO}\nnonsense\n"), 10);
        let claim =
            |password: &str, unix_s| Claim { user: "mario".into(), password: password.into(), unix_s };
        assert_eq!(users.judge(&claim("rossi", 1000), 1010).unwrap(), "mario");
        assert!(matches!(users.judge(&claim("rossi", 1000), 1011), Err(AuthError::Clock { by_s: 11, .. })));
        assert!(matches!(users.judge(&claim("verdi", 1000), 1000), Err(AuthError::Unknown { .. })));
        let text = claim("pass word", 5).to_text();
        assert_eq!(text, "user: mario\npwd:  pass word\nts:   5");
        assert_eq!(Claim::from_text(&text), Some(claim("pass word", 5)));
    }

    #[test]
    fn a_users_file_without_an_end_or_a_writer_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let fifo = folder.path().join("fifo");
        assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        let long = folder.path().join("long");
        std::fs::File::create(&long).unwrap().set_len(USERS_BYTES_MAX as u64 + 1).unwrap();
        for (path, why) in [
            (fifo.as_path(), "not a regular file"),
            (Path::new("/dev/zero"), "not a regular file"),
            (&long, "longer than 1048576 bytes"),
        ] {
            let error = Users::load(path, 10).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn a_token_goes_through_openssl_and_back() {
        if Command::new(OPENSSL).arg("version").output().is_err() {
            println!("SKIPPED a_token_goes_through_openssl_and_back: no {OPENSSL}");
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let (private, public) = (folder.path().join("private.pem"), folder.path().join("public.pem"));
        let run = |arguments: &[&std::ffi::OsStr]| {
            assert!(Command::new(OPENSSL).args(arguments).output().unwrap().status.success());
        };
        run(&["genrsa".as_ref(), "-out".as_ref(), private.as_ref(), "2048".as_ref()]);
        run(&["rsa", "-in"]
            .map(std::ffi::OsStr::new)
            .into_iter()
            .chain([private.as_ref()])
            .chain(["-outform", "PEM", "-pubout", "-out"].map(std::ffi::OsStr::new))
            .chain([public.as_ref()])
            .collect::<Vec<_>>());
        let users = Users::parse(MARIO, 10);
        for padding in [Padding::Oaep, Padding::Pkcs1] {
            let rsa = |key: &Path| Rsa { key: key.to_owned(), padding };
            let token = rsa(&public).token("mario", "rossi", 1000).unwrap();
            assert_eq!(rsa(&private).user(Some(&token), &users, 1003).unwrap(), "mario");
            assert!(matches!(rsa(&private).user(None, &users, 1003), Err(AuthError::NoToken)));
            let other = Rsa { key: private.clone(), padding: Padding::Oaep };
            if padding == Padding::Pkcs1 {
                assert!(matches!(other.user(Some(&token), &users, 1003), Err(AuthError::Unreadable { .. })));
            }
            assert!(matches!(
                rsa(&private).user(Some("!!"), &users, 1003),
                Err(AuthError::Unreadable { .. })
            ));
        }
        let missing = Rsa { key: folder.path().join("none.pem"), padding: Padding::Oaep };
        assert!(missing.token("a", "b", 1).unwrap_err().to_string().contains("none.pem"));
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in any::<String>()) {
            let _ = Claim::from_text(&text);
            let _ = Users::parse(&text, 10);
        }
    }
}
