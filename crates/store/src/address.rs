//! Which database the operator configured: `LINERATE_STORE`, else `store` of the configuration file, else
//! none, which is the SQLite file. In: an address as PostgreSQL writes it. Out: where to connect, with the
//! password, and a name of the server without it.
//!
//! A password is read only from where it is the user's alone, and is in no text that is printed.

use std::io::Read as _;
use std::net::IpAddr;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use linerate_model::{shell, uri};
use serde::Deserialize;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};

use super::error::{StoreError, unusable};
use super::paths;

/// The address that names the SQLite file.
const SQLITE: &str = "sqlite";
/// Bytes of the configuration file, and of a file with passwords.
const BYTES_MAX: u64 = 64 << 10;
const PORT: u16 = 5432;
/// Where Debian, Fedora and SUSE have the socket.
const SOCKETS: &str = "/run/postgresql";
/// Names of that folder as files with passwords write them.
const USUAL_SOCKETS: [&str; 3] = [SOCKETS, "/var/run/postgresql", "/tmp"];

/// Where to connect.
pub(super) struct Address {
    /// With the password.
    pub(super) config: Config,
    /// Server and database as errors name them.
    pub(super) server: String,
}

/// The configuration file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Configuration {
    store: Option<String>,
}

/// The configured server; `None` for the SQLite file of the data folder.
pub(super) fn configured() -> Result<Option<Address>, StoreError> {
    let text = match std::env::var("LINERATE_STORE") {
        Ok(text) if !text.is_empty() => Some(text),
        _ => paths::config_file().map(|file| from_file(&file)).transpose()?.flatten(),
    };
    text.filter(|text| text != SQLITE).map(|text| parse(&text)).transpose()
}

/// `store` of a configuration file; `None` where it has none, or is not there.
fn from_file(file: &Path) -> Result<Option<String>, StoreError> {
    let Some((text, mode)) = read(file)? else { return Ok(None) };
    // The source of the error quotes the line, which may have a password.
    let read: Configuration = toml::from_str(&text).map_err(|error| {
        let line = error.span().map_or(1, |span| text[..span.start].matches('\n').count() + 1);
        unusable(
            format!("{}:{line} is no configuration: {}", file.display(), error.message()),
            EXAMPLE.to_owned(),
        )
    })?;
    let Some(address) = read.store else { return Ok(None) };
    if mode & 0o077 != 0 && has_password(&address) {
        return Err(readable(file, mode));
    }
    Ok(Some(address))
}

/// An address that is right.
const EXAMPLE: &str = "LINERATE_STORE=postgres://linerate@localhost/linerate linerate runs";

fn has_password(address: &str) -> bool {
    address.parse::<Config>().is_ok_and(|config| config.get_password().is_some())
}

/// The text of a file of the user with its mode; `None` where there is none.
fn read(file: &Path) -> Result<Option<(String, u32)>, StoreError> {
    if !file.exists() {
        return Ok(None);
    }
    let opened = linerate_input::open(file)?;
    let failed = |source| StoreError::Configuration { path: file.to_owned(), source };
    let found = opened.metadata().map_err(failed)?;
    let own = rustix::process::geteuid().as_raw();
    if ![own, 0].contains(&found.uid()) {
        return Err(unusable(
            format!("{} belongs to another user (uid {}; you are uid {own})", file.display(), found.uid()),
            format!("ls -l {}", shell::path(file)),
        ));
    }
    let mode = found.mode() & 0o7777;
    if mode & 0o022 != 0 {
        return Err(unusable(
            format!("{} can be written by other users (mode {mode:04o})", file.display()),
            format!("chmod go-w {}", shell::path(file)),
        ));
    }
    if found.len() > BYTES_MAX {
        return Err(failed(std::io::Error::other(format!("{} bytes, limit {BYTES_MAX}", found.len()))));
    }
    let mut text = String::new();
    opened.take(BYTES_MAX).read_to_string(&mut text).map_err(failed)?;
    Ok(Some((text, mode)))
}

fn readable(file: &Path, mode: u32) -> StoreError {
    unusable(
        format!("{} has a password and can be read by other users (mode {mode:04o})", file.display()),
        format!("chmod 0600 {}", shell::path(file)),
    )
}

/// Where an address leads, with the password of the user's files where it has none.
pub(super) fn parse(text: &str) -> Result<Address, StoreError> {
    let is_address = text.starts_with("postgres://") || text.starts_with("postgresql://");
    // Why is not printed: it may quote a password.
    let Some(mut config) = text.parse::<Config>().ok().filter(|_| is_address) else {
        let what = "the address of the store cannot be parsed, or has an option that is not known";
        return Err(unusable(what.to_owned(), EXAMPLE.to_owned()));
    };
    if config.get_ssl_mode() == SslMode::Require {
        let what = "the address of the store demands TLS (sslmode=require), which is not supported";
        return Err(unusable(what.to_owned(), forward(&config)));
    }
    config.ssl_mode(SslMode::Disable);
    if let Some(host) = remote(&config) {
        let what = format!("the store on {host} would be reached without TLS");
        return Err(unusable(what, forward(&config)));
    }
    if config.get_hosts().is_empty() {
        // An address without a name is the name.
        let addresses: Vec<IpAddr> = config.get_hostaddrs().to_vec();
        for address in &addresses {
            config.host(address.to_string());
        }
        if addresses.is_empty() {
            config.host_path(SOCKETS);
        }
    }
    let user = match config.get_user() {
        Some(user) => user.to_owned(),
        None => std::env::var("PGUSER").or_else(|_| std::env::var("USER")).unwrap_or_else(|_| "root".into()),
    };
    config.user(&user);
    if config.get_dbname().is_none() {
        config.dbname(&user);
    }
    if config.get_password().is_none()
        && let Some(password) = password(&config)?
    {
        config.password(password);
    }
    let server = server(&config);
    Ok(Address { config, server })
}

/// The first host or address (`hostaddr` has priority over the name) that is not this machine.
fn remote(config: &Config) -> Option<String> {
    let host = config.get_hosts().iter().find(|host| !is_local(host)).map(name_of);
    let address = || config.get_hostaddrs().iter().find(|ip| !ip.is_loopback()).map(ToString::to_string);
    host.or_else(address)
}

/// A command that forwards the port of a server to this machine, and ends where the server is not reached any
/// more: a connection through it ends with it.
fn forward(config: &Config) -> String {
    match remote(config) {
        Some(host) => format!(
            "ssh -o ServerAliveInterval=5 -o ServerAliveCountMax=3 -N -L {0}:localhost:{0} {1}",
            port(config),
            shell::word(&host)
        ),
        None => "leave sslmode out: the address does not leave this machine".to_owned(),
    }
}

fn is_local(host: &Host) -> bool {
    match host {
        Host::Tcp(name) => name == "localhost" || name.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback()),
        Host::Unix(_) => true,
    }
}

fn name_of(host: &Host) -> String {
    match host {
        Host::Tcp(name) => name.clone(),
        Host::Unix(folder) => folder.display().to_string(),
    }
}

fn port(config: &Config) -> u16 {
    config.get_ports().first().copied().unwrap_or(PORT)
}

/// Server, database and user as PostgreSQL's programs read them.
fn server(config: &Config) -> String {
    let user = uri::encoded(config.get_user().unwrap_or_default());
    let database = uri::encoded(config.get_dbname().unwrap_or_default());
    let port = port(config);
    match config.get_hosts().first() {
        Some(Host::Unix(folder)) => {
            format!(
                "postgres:///{database}?host={}&port={port}&user={user}",
                uri::encoded_path(folder.as_os_str().as_bytes())
            )
        }
        Some(Host::Tcp(name)) if name.contains(':') => {
            format!("postgres://{user}@[{name}]:{port}/{database}")
        }
        Some(Host::Tcp(name)) => format!("postgres://{user}@{name}:{port}/{database}"),
        None => String::new(),
    }
}

/// The password of `PGPASSWORD`, or of the file of `PGPASSFILE` or `~/.pgpass`.
fn password(config: &Config) -> Result<Option<Vec<u8>>, StoreError> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    if let Some(password) = variable("PGPASSWORD") {
        return Ok(Some(password.as_bytes().to_vec()));
    }
    let file = variable("PGPASSFILE")
        .map(PathBuf::from)
        .or_else(|| variable("HOME").map(|home| Path::new(&home).join(".pgpass")));
    let Some(file) = file else { return Ok(None) };
    let Some((text, mode)) = read(&file)? else { return Ok(None) };
    if mode & 0o077 != 0 {
        return Err(readable(&file, mode));
    }
    Ok(text.lines().find_map(|line| password_in(line, config)).map(String::into_bytes))
}

/// The password of a line `host:port:database:user:password`, where it is of this server. `*` stands for any
/// value, `\` takes the meaning from the next character.
fn password_in(line: &str, config: &Config) -> Option<String> {
    if line.starts_with('#') {
        return None;
    }
    let mut fields = vec![String::new()];
    let mut chars = line.chars();
    while let Some(char) = chars.next() {
        if char == ':' && fields.len() < 5 {
            fields.push(String::new());
        } else {
            fields.last_mut()?.extend(if char == '\\' { chars.next() } else { Some(char) });
        }
    }
    let [host, at_port, database, user, password] = <[String; 5]>::try_from(fields).ok()?;
    let is = |field: &str, value: &str| field == "*" || field == value;
    let named = config.get_hosts().first().map(name_of).unwrap_or_default();
    let is_host = is(&host, &named) || host == "localhost" && USUAL_SOCKETS.contains(&named.as_str());
    let fits = is_host
        && is(&at_port, &port(config).to_string())
        && is(&database, config.get_dbname().unwrap_or_default())
        && is(&user, config.get_user().unwrap_or_default());
    (fits && !password.is_empty()).then_some(password)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn problem(text: &str) -> String {
        parse(text).err().unwrap().to_string()
    }

    #[test]
    fn an_address_is_named_without_its_password_and_refused_where_it_would_be_sent_in_the_clear() {
        let of = |text: &str| parse(text).unwrap().server;
        assert_eq!(of("postgres://ann:s3cret@localhost/team"), "postgres://ann@localhost:5432/team");
        assert_eq!(
            of("postgresql:///team?user=ann&host=/run/a b&password=s3cret"),
            "postgres:///team?host=/run/a%20b&port=5432&user=ann"
        );
        assert_eq!(of("postgres://ann@/team"), "postgres:///team?host=/run/postgresql&port=5432&user=ann");
        assert_eq!(of("postgres://ann@/team?hostaddr=127.0.0.1"), "postgres://ann@127.0.0.1:5432/team");
        assert_eq!(of("postgres://ann:s3cret?s3cret@localhost/team"), "postgres://ann@localhost:5432/team");
        // What is printed is an address again.
        for text in [
            "postgres://a%40b%2F@[::1]:6432/te%20am%3F",
            "postgres:///te%2Fam?host=/run/a%20b&port=1&user=%C3%BC",
        ] {
            assert_eq!(of(text), text);
        }
        for text in [
            "postgres://ann:s3cret@db.example.org/team",
            "postgres://ann:s3cret@10.0.0.5/team",
            "postgres://ann:s3cret@localhost,db.example.org/team",
            "postgres://ann:s3cret@localhost/team?sslmode=require",
            "postgres://ann:s3cret@localhost/team?sslmode=verify-full",
            "postgres://ann:s3cret@localhost/team?s3cret=1",
            "postgres://ann:s3cret@localhost/team?hostaddr=10.0.0.5",
            "postgres://ann:s3cret@localhost/team?hostaddr=2001:db8::1",
            "postgres://ann:s3cret@localhost,localhost/team?hostaddr=127.0.0.1,10.0.0.5",
            "postgres:///team?user=ann&password=s3cret&host=/run/postgresql&hostaddr=10.0.0.5",
            "postgres:///team?user=ann&password=s3cret&hostaddr=10.0.0.5",
            "host=localhost user=ann password=s3cret",
            "mysql://ann:s3cret@localhost/team",
        ] {
            let error = problem(text);
            assert!(!error.contains("s3cret") && error.contains("hint: "), "{error}");
        }
        assert!(
            problem("postgres://db.example.org:6432/x").ends_with("-N -L 6432:localhost:6432 db.example.org")
        );
        assert!(
            problem("postgres://localhost/x?hostaddr=10.0.0.5")
                .ends_with("-N -L 5432:localhost:5432 10.0.0.5")
        );
    }

    #[test]
    fn the_configuration_is_private_where_it_has_a_password() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config.toml");
        let write = |text: &str, mode: u32| {
            std::fs::write(&file, text).unwrap();
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
            from_file(&file).map_err(|error| error.to_string())
        };
        let plain = "store = \"postgres://ann@localhost/team\"";
        let secret = "store = \"postgres://ann:s3cret@localhost/team\"";
        assert_eq!(from_file(&folder.path().join("none")).unwrap(), None);
        assert_eq!(write("", 0o644).unwrap(), None);
        assert!(write(plain, 0o644).unwrap().unwrap().ends_with("localhost/team"));
        assert!(write(secret, 0o600).unwrap().unwrap().contains("s3cret"));
        for (text, mode, word) in [
            (secret, 0o640, "chmod 0600"),
            (plain, 0o664, "chmod go-w"),
            ("store = \"postgres://ann:s3cret", 0o600, "is no configuration"),
            ("\nstores = \"s3cret\"", 0o600, "config.toml:2"),
        ] {
            let error = write(text, mode).unwrap_err();
            assert!(error.contains(word) && !error.contains("s3cret"), "{error}");
        }
    }

    #[test]
    fn a_line_of_a_password_file_is_used_for_its_server_alone() {
        let tcp = parse("postgres://ann:-@localhost:6432/team").unwrap().config;
        let unix = parse("postgres://ann:-@/team").unwrap().config;
        let of = |line: &str, config: &Config| password_in(line, config);
        assert_eq!(of(r"localhost:6432:team:ann:a\:b\\c", &tcp).as_deref(), Some(r"a:b\c"));
        assert_eq!(of("*:*:*:*:p:q", &tcp).as_deref(), Some("p:q"));
        assert_eq!(of("localhost:*:team:*:p", &unix).as_deref(), Some("p"));
        assert_eq!(of("/run/postgresql:5432:team:ann:p", &unix).as_deref(), Some("p"));
        for line in ["", "#*:*:*:*:p", "localhost:5432:team:ann:p", "*:*:other:*:p", "*:*:*:bob:p", "*:*:*:*"]
        {
            assert_eq!(of(line, &tcp), None, "{line}");
        }
    }
}
