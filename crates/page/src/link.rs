//! Addresses of pages: names and identifiers in, percent-encoded text out, and back. Names stand in the query
//! and never in the path: a browser resolves a path with the name `..` before it sends it.

use linerate_model::uri::encoded;

/// Bytes of an address that are read at most; longer ones are no page of ours.
pub const TARGET_MAX: usize = 4096;

fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let digits = after.get(..2).and_then(|two| std::str::from_utf8(two).ok());
        let code = digits.filter(|two| two.bytes().all(|b| b.is_ascii_hexdigit()));
        match (byte, code.and_then(|two| u8::from_str_radix(two, 16).ok())) {
            (b'%', Some(code)) => {
                bytes.push(code);
                rest = &after[2..];
                continue;
            }
            (b'+', _) => bytes.push(b' '),
            _ => bytes.push(byte),
        }
        rest = after;
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// What a page is asked for: the query of an address.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Query(Vec<(String, String)>);

impl Query {
    /// Of the part behind the `?`.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let parts = text.split('&').filter(|part| !part.is_empty());
        let pair = |part: &str| {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            (decoded(name), decoded(value))
        };
        Self(parts.map(pair).collect())
    }

    /// The first value of this name; an empty one is none.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(of, _)| of == name);
        found.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    }

    /// Point of a picture that was clicked: a browser sends `?x,y` behind what was there.
    #[must_use]
    pub fn point(&self) -> Option<(usize, usize)> {
        self.0.iter().find_map(|(name, value)| {
            // The address of the picture ends in `at=`, to which some browsers append, others begin anew.
            let text = if name == "at" { value.trim_start_matches('?') } else { name.as_str() };
            let (x, y) = text.split_once(',')?;
            Some((x.parse().ok()?, y.parse().ok()?))
        })
    }
}

/// A path with a query of these names and values; empty values are left out.
#[must_use]
pub fn to(path: &str, query: &[(&str, &str)]) -> String {
    let parts: Vec<String> = query
        .iter()
        .filter(|(_, value)| !value.is_empty())
        .map(|(name, value)| format!("{name}={}", encoded(value)))
        .collect();
    if parts.is_empty() { path.to_owned() } else { format!("{path}?{}", parts.join("&")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_names_come_back_as_they_were() {
        for name in ["a b+c", "../..", "..", "<script>\"'&=", "ä\u{202e}", "%41", &"x".repeat(200)] {
            let address = to("/host", &[("name", name), ("run", "")]);
            assert!(address.bytes().all(|b| b.is_ascii_graphic() && !b"<>\"'".contains(&b)), "{address}");
            let (path, query) = address.split_once('?').unwrap();
            assert_eq!((path, Query::parse(query).get("name")), ("/host", Some(name)));
        }
    }

    #[test]
    fn broken_queries_are_read_as_far_as_they_go() {
        let query = Query::parse("&&a=%4&b=%zz&=x&c&d=%ff&a=2");
        assert_eq!(query.get("a"), Some("%4"));
        assert_eq!((query.get("b"), query.get("c"), query.get("e")), (Some("%zz"), None, None));
        assert_eq!(query.get("d"), Some("\u{fffd}"));
        assert_eq!(Query::parse("layer=underlay&at=?12,345").point(), Some((12, 345)));
        assert_eq!(Query::parse("12,345").point(), Some((12, 345)));
        assert_eq!(Query::parse("at=12,-3").point(), None);
    }
}
