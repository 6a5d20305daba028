//! URLs and front ends as text. Pure.
//!
//! What comes in: what a user or a server wrote. What goes out: scheme, host, port and path that are safe to
//! put into a request, or a sentence about what is wrong.
//!
//! The crate `url` would save five lines and bring eight packages, or thirty with Unicode; without it hosts
//! that are not ASCII panic in debug builds (`idna_adapter` 1.0.0), also written as %XX.

/// Error of a step: a sentence for the download's line.
pub(super) type Failure = String;

const LENGTH_MAX: usize = 4096;

/// A URL of HTTP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Url {
    pub(super) https: bool,
    /// In lower case, without the brackets of an IPv6 address.
    pub(super) host: String,
    pub(super) port: u16,
    /// Path and query, beginning with `/`.
    pub(super) path: String,
}

/// A host with or without a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Authority {
    pub(super) host: String,
    pub(super) port: Option<u16>,
}

impl Authority {
    /// Reads `name`, `name:80`, `192.0.2.1:80`, `2001:db8::1`, `[2001:db8::1]:80`.
    pub(super) fn parse(text: &str) -> Result<Self, Failure> {
        let wrong = |why: &str| format!("`{}`: {why}", shown(text));
        let (host, port) = if let Some(rest) = text.strip_prefix('[') {
            let (host, rest) = rest.split_once(']').ok_or_else(|| wrong("the bracket is not closed"))?;
            host.parse::<std::net::Ipv6Addr>().map_err(|_| wrong("not an IPv6 address"))?;
            let port = match rest.strip_prefix(':') {
                Some(port) => Some(port),
                None if rest.is_empty() => None,
                None => return Err(wrong("something stands behind the bracket")),
            };
            (host, port)
        } else if text.parse::<std::net::Ipv6Addr>().is_ok() {
            (text, None)
        } else {
            text.split_once(':').map_or((text, None), |(host, port)| (host, Some(port)))
        };
        let fine = |c: char| c.is_ascii_alphanumeric() || "-._:%".contains(c);
        if host.is_empty() || host.len() > 255 || !host.chars().all(fine) {
            return Err(wrong("not a host name or address"));
        }
        let port = match port {
            None => None,
            Some(port) => Some(port.parse().ok().filter(|p| *p > 0).ok_or_else(|| wrong("not a port"))?),
        };
        Ok(Self { host: host.to_ascii_lowercase(), port })
    }
}

/// Something that may be hostile, for an error text; without a user and password.
fn shown(text: &str) -> String {
    let text = match text.rsplit_once('@') {
        Some((head, host)) => {
            let scheme = head.split_once("://").map_or("", |(scheme, _)| scheme);
            format!("{scheme}{}…@{host}", if scheme.is_empty() { "" } else { "://" })
        }
        None => text.to_owned(),
    };
    text.chars().take(80).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

impl Url {
    pub(super) fn parse(text: &str) -> Result<Self, Failure> {
        let wrong = |why: &str| format!("`{}`: {why}", shown(text));
        if text.len() > LENGTH_MAX {
            return Err(wrong("longer than 4096 bytes"));
        }
        if !text.bytes().all(|b| b.is_ascii_graphic()) {
            return Err(wrong("spaces, control or other characters must be written as %XX"));
        }
        let (scheme, rest) = text.split_once("://").ok_or_else(|| wrong("it begins with no http://"))?;
        let https = match scheme.to_ascii_lowercase().as_str() {
            "http" => false,
            "https" => true,
            _ => return Err(wrong("only http:// and https:// are known")),
        };
        let rest = rest.split('#').next().unwrap_or_default();
        let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        if authority.contains('@') {
            return Err(wrong("a URL with a password is not taken"));
        }
        let authority = Authority::parse(authority)?;
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        Ok(Self {
            https,
            host: authority.host,
            port: authority.port.unwrap_or(if https { 443 } else { 80 }),
            path,
        })
    }

    /// The URL that a `Location` leads to.
    pub(super) fn join(&self, location: &str) -> Result<Self, Failure> {
        let scheme = if self.https { "https" } else { "http" };
        if location.contains("://") {
            return Self::parse(location);
        }
        if let Some(rest) = location.strip_prefix("//") {
            return Self::parse(&format!("{scheme}://{rest}"));
        }
        let base = format!("{scheme}://{}:{}", self.bracketed(), self.port);
        if location.starts_with('/') {
            return Self::parse(&format!("{base}{location}"));
        }
        let folder = self.path.split('?').next().unwrap_or("/");
        let folder = folder.rsplit_once('/').map_or("", |(folder, _)| folder);
        Self::parse(&format!("{base}{folder}/{location}"))
    }

    fn bracketed(&self) -> String {
        if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() }
    }

    /// For the header `Host`.
    pub(super) fn host_header(&self) -> String {
        let usual = if self.https { 443 } else { 80 };
        if self.port == usual { self.bracketed() } else { format!("{}:{}", self.bracketed(), self.port) }
    }
}

impl std::fmt::Display for Url {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}://{}{}", if self.https { "https" } else { "http" }, self.host_header(), self.path)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn words(text: &str) -> String {
        Url::parse(text).map_or_else(|e| e, |url| url.to_string())
    }

    #[test]
    fn urls_are_taken_apart() {
        assert_eq!(words("http://Files.Example/a/b?c=d#e"), "http://files.example/a/b?c=d");
        assert_eq!(words("HTTPS://x:8443"), "https://x:8443/");
        assert_eq!(words("http://x?q"), "http://x/?q");
        assert_eq!(words("http://[2001:db8::1]:81/a"), "http://[2001:db8::1]:81/a");
        for wrong in
            ["x", "ftp://x", "http://", "http://a b/", "http://a/\r\nX: y", "http://u:p@x/", "http://x:0/"]
        {
            assert!(Url::parse(wrong).is_err(), "{wrong}");
        }
        for secret in ["http://u:secret@x/", "u:secret@x", "http://u:secret@x y/", "ftp://u:secret@x@y"] {
            let error = Url::parse(secret).unwrap_err();
            assert!(!error.contains("secret") && error.contains("…@"), "{error}");
        }
    }

    #[test]
    fn locations_are_followed_as_a_browser_does() {
        let url = Url::parse("https://x:8443/a/b?c").unwrap();
        let to = |location: &str| url.join(location).unwrap().to_string();
        assert_eq!(to("/z"), "https://x:8443/z");
        assert_eq!(to("z"), "https://x:8443/a/z");
        assert_eq!(to("//y/z"), "https://y/z");
        assert_eq!(to("http://y/"), "http://y/");
        assert!(url.join("/a\r\nEvil: 1").is_err());
    }

    #[test]
    fn front_ends_are_names_or_addresses() {
        let authority = |text: &str| Authority::parse(text).map(|p| (p.host, p.port));
        assert_eq!(authority("web-1"), Ok(("web-1".into(), None)));
        assert_eq!(authority("192.0.2.1:8080"), Ok(("192.0.2.1".into(), Some(8080))));
        assert_eq!(authority("2001:db8::1"), Ok(("2001:db8::1".into(), None)));
        assert_eq!(authority("[2001:db8::1]:80"), Ok(("2001:db8::1".into(), Some(80))));
        assert!(["", "a b", "x:99999", "[::1", "[::1]x", "[x]"].iter().all(|t| authority(t).is_err()));
    }

    proptest! {
        #[test]
        fn whatever_is_written_becomes_no_second_header(text in "\\PC{0,60}", location in any::<String>()) {
            let url = Url::parse("http://x/").unwrap();
            let tried = [Url::parse(&text), Url::parse(&format!("http://{text}")), url.join(&location)];
            for url in tried.into_iter().flatten() {
                let all = format!("{}{}", url.path, url.host_header());
                prop_assert!(all.bytes().all(|b| b.is_ascii_graphic()));
            }
        }
    }
}
