//! The file with TLS and users, in the format of Prometheus' exporters (exporter-toolkit,
//! `--web.config.file`). A text in, what it sets out, or its flaw with the line. What this server cannot do
//! is refused by name: a setting that is ignored protects nothing.

use std::str::FromStr as _;

use linerate_inventory::yaml::{self, Value, Yaml};

/// Largest file.
pub(super) const BYTES_MAX: usize = 1 << 20;
/// Longest password that bcrypt reads, bytes.
pub(super) const PASSWORD_MAX: usize = 72;
/// Above this a check of a password takes more than a second.
const COST_MAX: u32 = 14;

/// What the file sets.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct WebConfig {
    pub(super) tls: Option<TlsFiles>,
    /// Names and bcrypt hashes.
    pub(super) users: Vec<(String, String)>,
}

/// Paths as they are written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TlsFiles {
    pub(super) cert_file: String,
    pub(super) key_file: String,
    /// TLS 1.2 is refused.
    pub(super) is_new_only: bool,
}

/// What is wrong, and where.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Flaw {
    pub(super) line: usize,
    pub(super) problem: String,
}

fn flaw<T>(line: usize, problem: impl Into<String>) -> Result<T, Flaw> {
    Err(Flaw { line, problem: problem.into() })
}

/// What a text sets.
pub(super) fn parse(text: &str) -> Result<WebConfig, Flaw> {
    let mut config = WebConfig::default();
    // A file without a value sets nothing.
    if text.lines().all(|line| line.trim().is_empty() || line.trim_start().starts_with('#')) {
        return Ok(config);
    }
    let tree = yaml::parse(text).map_err(|(line, problem)| Flaw { line, problem })?;
    for (name, part) in entries(&tree, "the file")? {
        match name.as_str() {
            "tls_server_config" => config.tls = Some(tls(part)?),
            "basic_auth_users" => config.users = users(part)?,
            "http_server_config" => http(part)?,
            other => return flaw(part.line, format!("unknown section `{other}`")),
        }
    }
    Ok(config)
}

/// The entries of a map, each once.
fn entries<'t>(tree: &'t Yaml, what: &str) -> Result<&'t [(String, Yaml)], Flaw> {
    let Some(all) = tree.entries() else { return flaw(tree.line, format!("{what} is not a map")) };
    for (number, (name, value)) in all.iter().enumerate() {
        if all[..number].iter().any(|(other, _)| other == name) {
            return flaw(value.line, format!("`{name}` stands twice"));
        }
    }
    Ok(all)
}

fn text<'t>(name: &str, value: &'t Yaml) -> Result<&'t str, Flaw> {
    match &value.value {
        Value::Text(text) if !text.is_empty() => Ok(text),
        _ => flaw(value.line, format!("`{name}` has no text")),
    }
}

fn tls(part: &Yaml) -> Result<TlsFiles, Flaw> {
    let (mut cert_file, mut key_file, mut is_new_only) = (None, None, false);
    for (name, value) in entries(part, "tls_server_config")? {
        match (name.as_str(), text(name, value)?) {
            ("cert_file", path) => cert_file = Some(path.to_owned()),
            ("key_file", path) => key_file = Some(path.to_owned()),
            ("min_version", "TLS12") | ("max_version", "TLS13") | ("client_auth_type", "NoClientCert") => {}
            ("min_version", "TLS13") => is_new_only = true,
            ("min_version" | "max_version" | "client_auth_type", other) => {
                return flaw(value.line, format!("{name} `{other}` is not supported here"));
            }
            (name, _) => {
                return flaw(value.line, format!("`{name}` of tls_server_config is not supported here"));
            }
        }
    }
    match (cert_file, key_file) {
        (Some(cert_file), Some(key_file)) => Ok(TlsFiles { cert_file, key_file, is_new_only }),
        (None, _) => flaw(part.line, "tls_server_config has no cert_file"),
        (_, None) => flaw(part.line, "tls_server_config has no key_file"),
    }
}

/// HTTP/1.1 is spoken whatever is allowed.
fn http(part: &Yaml) -> Result<(), Flaw> {
    for (name, value) in entries(part, "http_server_config")? {
        if name != "http2" {
            return flaw(value.line, format!("`{name}` of http_server_config is not supported here"));
        }
    }
    Ok(())
}

fn users(part: &Yaml) -> Result<Vec<(String, String)>, Flaw> {
    let mut users = Vec::new();
    for (name, value) in entries(part, "basic_auth_users")? {
        if name.is_empty() || name.contains(':') || name.chars().any(char::is_control) {
            return flaw(value.line, "a name of a user is empty, or has a colon or a control character");
        }
        let hash = text(name, value)?;
        let Ok(parts) = bcrypt::HashParts::from_str(hash) else {
            return flaw(value.line, format!("the password of `{name}` is not a bcrypt hash"));
        };
        if parts.get_cost() > COST_MAX {
            let cost = parts.get_cost();
            return flaw(value.line, format!("the hash of `{name}` has cost {cost}; at most {COST_MAX}"));
        }
        users.push((name.clone(), hash.to_owned()));
    }
    Ok(users)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HASH: &str = "$2y$10$X0h1gDsPszWURQaxFh.zoubFi6DXncSjhoQNJgRrnGs7EsimhC7zG";

    #[test]
    fn the_sections_of_exporter_toolkit_are_read() {
        let text = format!(
            "# of the exporters\ntls_server_config:\n  cert_file: server.crt\n  key_file: 'server.key'\n  \
             min_version: TLS13\nhttp_server_config:\n  http2: true\nbasic_auth_users:\n  alice: {HASH}\n  bob: {HASH}\n"
        );
        let tls = TlsFiles {
            cert_file: "server.crt".to_owned(),
            key_file: "server.key".to_owned(),
            is_new_only: true,
        };
        let users = vec![("alice".to_owned(), HASH.to_owned()), ("bob".to_owned(), HASH.to_owned())];
        assert_eq!(parse(&text), Ok(WebConfig { tls: Some(tls), users }));
        assert_eq!(parse("# nothing\n\n"), Ok(WebConfig::default()));
    }

    #[test]
    fn a_flaw_has_its_line() {
        let user = |hash: &str| format!("basic_auth_users:\n  alice: {hash}\n");
        let costly = HASH.replacen("10", "31", 1);
        for (text, line, what) in [
            ("users:\n  a: b\n", 2, "unknown section `users`"),
            ("tls_server_config:\n  cert_file: a\n", 2, "no key_file"),
            ("tls_server_config:\n  cert_file: a\n  key_file:\n", 3, "`key_file` has no text"),
            ("tls_server_config:\n  cert_file: a\n  cert_file: b\n", 3, "stands twice"),
            ("tls_server_config:\n  client_ca_file: a\n", 2, "`client_ca_file` of tls_server_config"),
            ("tls_server_config:\n  min_version: TLS10\n", 2, "min_version `TLS10` is not supported"),
            ("tls_server_config:\n  client_auth_type: RequireAndVerifyClientCert\n", 2, "not supported"),
            ("http_server_config:\n  headers:\n    X: y\n", 3, "`headers`"),
            ("tls_server_config: [a]\n", 1, "is not a map"),
            ("a: b: c\n", 1, ""),
            ("basic_auth_users:\n  alice: secret\n", 2, "`alice` is not a bcrypt hash"),
            (&user(&costly), 2, "cost 31; at most 14"),
            (&user("~"), 2, "`alice` has no text"),
            ("basic_auth_users:\n  'a:b': x\n", 2, "colon"),
            ("basic_auth_users:\n  a: &x y\n  b: *x\n", 2, "not a bcrypt hash"),
        ] {
            let found = parse(text).unwrap_err();
            assert!(found.line == line && found.problem.contains(what), "{text}: {found:?}");
            assert!(!found.problem.contains("secret"), "a password is never repeated: {found:?}");
        }
    }
}
