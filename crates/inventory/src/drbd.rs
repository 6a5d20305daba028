//! Resource files of DRBD, versions 8.4 and 9: which hosts replicate to each other, over which addresses,
//! onto which devices.
//!
//! What comes in: a text. What goes out: hosts over ssh with the address of the replication as endpoint, a
//! group for each resource; its devices are remarked.

use super::draft::{Draft, Understood};
use super::error::{Flaw, InventoryError, shown};
use super::reader::{Reader, SourceText};

/// The format.
pub(super) struct Drbd;

/// Deepest nesting of braces.
const DEPTH_MAX: usize = 16;

impl Reader for Drbd {
    fn name(&self) -> &'static str {
        "drbd"
    }

    fn describes(&self) -> &'static str {
        "resource files of DRBD 8.4 and 9"
    }

    fn detects(&self, text: &str) -> bool {
        let tokens: Vec<Token<'_>> = tokens(text).take(4000).collect();
        tokens
            .windows(3)
            .any(|w| w[0].text == "resource" && !w[0].quoted && (w[1].text == "{" || w[2].text == "{"))
    }

    fn read(&self, source: &SourceText<'_>) -> Result<Understood, InventoryError> {
        let mut reading = Reading::default();
        let mut statement: Vec<Token<'_>> = Vec::new();
        for token in tokens(source.text) {
            let line = token.line;
            let done = match (token.quoted, token.text) {
                (false, "{") => reading.open(&statement, line),
                (false, "}") => reading.close(line),
                (false, ";") => reading.statement(&statement),
                _ => {
                    statement.push(token);
                    continue;
                }
            };
            done.map_err(|flaw| source.at(line, flaw))?;
            statement.clear();
        }
        if let Some(open) = reading.open.last() {
            let flaw = Flaw::new(format!("the `{{` of `{}` has no `}}`", open.word), "was the file cut?");
            return Err(source.at(open.line, flaw));
        }
        reading.draft.finish(self.name()).map_err(|(line, flaw)| source.at(line, flaw))
    }
}

/// A word, a text in quotes, or one of `{`, `}`, `;`.
struct Token<'a> {
    text: &'a str,
    quoted: bool,
    line: usize,
}

fn tokens(text: &str) -> impl Iterator<Item = Token<'_>> {
    let mut rest = text;
    let mut line = 1;
    std::iter::from_fn(move || {
        loop {
            let trimmed = rest.trim_start();
            line += rest[..rest.len() - trimmed.len()].matches('\n').count();
            rest = trimmed;
            if !rest.starts_with('#') {
                break;
            }
            rest = rest.find('\n').map_or("", |end| &rest[end..]);
        }
        let begun = line;
        let token = |text, quoted| Some(Token { text, quoted, line: begun });
        if let Some(inside) = rest.strip_prefix('"') {
            let end = inside.find('"').unwrap_or(inside.len());
            let (text, after) = inside.split_at(end);
            line += text.matches('\n').count();
            rest = after.strip_prefix('"').unwrap_or(after);
            return token(text, true);
        }
        if rest.is_empty() {
            return None;
        }
        let end = match rest.find(|c: char| c.is_whitespace() || "{};\"#".contains(c)) {
            // A brace or a semicolon by itself; a quote is no first character here.
            Some(0) => 1,
            Some(end) => end,
            None => rest.len(),
        };
        let (text, after) = rest.split_at(end);
        rest = after;
        token(text, false)
    })
}

/// An open brace: the first word before it and the names behind that.
struct Open {
    word: String,
    names: Vec<String>,
    line: usize,
}

#[derive(Default)]
struct Reading {
    draft: Draft,
    open: Vec<Open>,
}

impl Reading {
    fn resource(&self) -> Option<&str> {
        self.open
            .iter()
            .find(|open| open.word == "resource")
            .and_then(|open| open.names.first())
            .map(String::as_str)
    }

    fn open(&mut self, before: &[Token<'_>], line: usize) -> Result<(), Flaw> {
        if self.open.len() >= DEPTH_MAX {
            return Err(Flaw::new(
                format!("braces more than {DEPTH_MAX} deep"),
                "is it a resource file of DRBD?",
            ));
        }
        let Some((word, names)) = before.split_first() else {
            return Err(Flaw::new("a `{` without a word before it", "such as `resource r0 {`"));
        };
        let names: Vec<String> = names.iter().map(|token| token.text.to_owned()).collect();
        let (word, names) = (word.text.to_owned(), names);
        match word.as_str() {
            "resource" => {
                let name = names
                    .first()
                    .ok_or_else(|| Flaw::new("a resource without a name", "`resource NAME {`"))?;
                self.draft.group(name, "drbd", line)?;
            }
            "on" => {
                if names.is_empty() {
                    return Err(Flaw::new("`on` without a host", "`on HOST {`"));
                }
                for host in &names {
                    self.member(host, line)?;
                }
            }
            // The host behind an address is unknown: the address stands for it.
            "floating" => {
                let host = self.floating(&names, line)?;
                self.open.push(Open { word: "on".to_owned(), names: vec![host], line });
                return Ok(());
            }
            "stacked-on-top-of" => {
                self.draft.ignore(
                    line,
                    format!("stacked-on-top-of {}", names.join(" ")),
                    "its hosts stand in the lower resource",
                );
            }
            _ => {}
        }
        self.open.push(Open { word, names, line });
        Ok(())
    }

    fn floating(&mut self, names: &[String], line: usize) -> Result<String, Flaw> {
        let words: Vec<&str> = names.iter().map(String::as_str).collect();
        let address = address(&words)?;
        let host = address.to_string();
        self.member(&host, line)?;
        self.draft.address(&host, address, line)?;
        Ok(host)
    }

    /// A host of the resource that is open.
    fn member(&mut self, host: &str, line: usize) -> Result<(), Flaw> {
        self.draft.host(host)?;
        match self.resource().map(str::to_owned) {
            Some(resource) => self.draft.join(host, &resource, "drbd", line),
            None => Ok(()),
        }
    }

    fn close(&mut self, line: usize) -> Result<(), Flaw> {
        let _ = line;
        match self.open.pop() {
            Some(_) => Ok(()),
            None => Err(Flaw::new("a `}` without its `{`", "one too many?")),
        }
    }

    fn statement(&mut self, tokens: &[Token<'_>]) -> Result<(), Flaw> {
        let [word, values @ ..] = tokens else { return Ok(()) };
        let line = word.line;
        let values: Vec<&str> = values.iter().map(|token| token.text).collect();
        match word.text {
            "address" => {
                let hosts = self.on().map_or(Vec::new(), |open| open.names.clone());
                let address = address(&values)?;
                for host in hosts {
                    self.draft.address(&host, address, line)?;
                }
                Ok(())
            }
            // Inside of `connection` and `path`: `host NAME address ADDRESS;`.
            "host" => {
                let Some(name) = values.first() else { return Ok(()) };
                self.member(name, line)?;
                match values.iter().position(|value| *value == "address") {
                    Some(at) => self.draft.address(name, address(&values[at + 1..])?, line),
                    None => Ok(()),
                }
            }
            "hosts" => values.iter().try_for_each(|host| self.member(host, line)),
            "device" | "disk" => {
                if let (Some(resource), Some(value)) = (self.resource().map(str::to_owned), values.first()) {
                    let hosts =
                        self.on().map_or(String::new(), |open| format!(" on {}", open.names.join(", ")));
                    let volume = self.volume().map_or(String::new(), |volume| format!(" volume {volume}"));
                    // `device minor 1` and `device /dev/drbd1 minor 1` have more words.
                    let value = if *value == "minor" { values.join(" ") } else { (*value).to_owned() };
                    self.draft.note(
                        line,
                        format!("{resource}{volume}{hosts}"),
                        format!("{} {value}", word.text),
                    );
                }
                Ok(())
            }
            "include" => {
                let what = format!("include {}", values.join(" "));
                self.draft.ignore(
                    line,
                    what,
                    "not followed: name the files themselves, `cat /etc/drbd.d/*.res`",
                );
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn on(&self) -> Option<&Open> {
        self.open.iter().rev().find(|open| open.word == "on")
    }

    fn volume(&self) -> Option<&str> {
        self.open.iter().rev().find(|open| open.word == "volume")?.names.first().map(String::as_str)
    }
}

/// `10.0.0.1:7788`, `ipv6 [fd00::1]:7788`, `sdp 10.0.0.1:7788`.
fn address(words: &[&str]) -> Result<std::net::IpAddr, Flaw> {
    let word = words.iter().find(|word| word.contains([':', '.'])).copied().unwrap_or_default();
    let parsed = match word.parse::<std::net::SocketAddr>() {
        Ok(both) => Ok(both.ip()),
        Err(_) => word.parse(),
    };
    parsed.map_err(|_| {
        let what = format!("`{}` is not an address", shown(&words.join(" ")));
        Flaw::new(what, "such as `address 10.0.0.1:7788;` or `address ipv6 [fd00::1]:7788;`")
    })
}
