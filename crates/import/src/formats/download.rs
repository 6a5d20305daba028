//! Downloads: what `wget` and `curl` print. Lines come in, downloads through a front end, the host of the
//! URL, go out. Rates of both are binary: `KB/s` of wget and `k` of curl are 1024 bytes.

use linerate_model::http::HttpFetch;

use crate::context::is_host;
use crate::reader::{Block, Reader};
use crate::sink::{Download, Sink};
use crate::units::number;

/// The format.
pub(crate) struct Downloads;

/// Host of a URL, without its port.
fn host_of(url: &str) -> Option<&str> {
    let rest = url.split("://").nth(1)?.trim_start_matches(['\'', '"']);
    let rest = rest.split(['/', '?', '\'', '"', ' ']).next()?;
    let host = rest.rsplit('@').next()?.split(':').next()?;
    is_host(host).then_some(host)
}

/// `--2022-04-18 10:00:00--  http://arc-1/file`: the URL.
fn begin(line: &str) -> Option<&str> {
    let (clock, url) = line.trim().strip_prefix("--")?.split_once("--")?;
    let is_clock = clock.bytes().all(|b| b.is_ascii_digit() || b": -".contains(&b));
    (is_clock && url.contains("://")).then(|| url.trim())
}

/// Bytes per second of `32.0 KB/s`, and of `32.0k`.
fn rate(value: &str, unit: &str) -> Option<f64> {
    let power = match unit.trim_end_matches("/s").trim_end_matches('B') {
        "" => 0,
        "K" | "k" => 1,
        "M" => 2,
        "G" => 3,
        _ => return None,
    };
    Some(number(value)? * 1024_f64.powi(power)).filter(|bytes| *bytes > 0.0)
}

/// `2022-04-18 10:00:10 (32.0 KB/s) - ‘file’ saved [104857600/104857600]`: rate and bytes.
fn saved(line: &str) -> Option<(f64, f64)> {
    let (_, rest) = line.split_once(" (")?;
    let (speed, rest) = rest.split_once(") - ")?;
    let (value, unit) = speed.split_once(' ')?;
    let bytes = rest.split_once(" saved [")?.1.split([']', '/']).next()?;
    Some((rate(value, unit)?, number(bytes)?))
}

/// `100  100M  100  100M    0     0  32.0k      0  0:53:20  0:53:20 --:--:-- 31.9k`: the mean rate and the
/// bytes received.
fn meter(line: &str) -> Option<(f64, f64)> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [percent, _, _, received, _, _, speed, _, time, ..] = words[..] else { return None };
    number(percent)?;
    time.contains(':').then_some(())?;
    let scaled = |text: &str| {
        let end = text.find(|c: char| c.is_alphabetic()).unwrap_or(text.len());
        rate(&text[..end], &text[end..])
    };
    Some((scaled(speed)?, scaled(received).unwrap_or(0.0)))
}

impl Reader for Downloads {
    fn name(&self) -> &'static str {
        "download"
    }

    fn describes(&self) -> &'static str {
        "wget, curl: rates of downloads"
    }

    fn names_hosts(&self) -> bool {
        true
    }

    fn begins(&self, block: &Block<'_>) -> bool {
        let line = block.first();
        begin(line).is_some()
            || saved(line).is_some()
            || line.contains("% Total") && line.contains("% Received")
            || block.at.command.is(&["curl"]) && meter(line).is_some()
    }

    fn read(&self, block: &Block<'_>, out: &mut Sink) -> usize {
        let asked = block.at.command.words.iter().find(|word| word.contains("://"));
        let mut url = asked.map(String::as_str);
        let mut last = None;
        let (mut taken, mut put_any) = (0, false);
        for (at, line) in block.lines.iter().enumerate() {
            if let Some(named) = begin(line) {
                url = Some(named);
            } else if let Some(found) = saved(line) {
                put(url, found, block, at, out);
                put_any = true;
            } else if let Some(found) = meter(line) {
                last = Some((at, found));
            } else if let Some(why) = failure(line) {
                failed(url, why, block, out);
                put_any = true;
            } else if !is_beside(line) {
                break;
            }
            if !line.trim().is_empty() {
                taken = at + 1;
            }
        }
        if let Some((at, found)) = last {
            put(url, found, block, at, out);
            put_any = true;
        }
        if !put_any {
            out.unread(0, "a download without its rate");
        }
        taken.max(1)
    }
}

/// Why there was none.
fn failure(line: &str) -> Option<&str> {
    let why = ["Connection timed out", "Connection refused", "No route to host", "Read error"];
    why.into_iter().find(|why| line.contains(why))
}

/// Lines without figures.
fn is_beside(line: &str) -> bool {
    let line = line.trim();
    let begins = [
        "Resolving ",
        "Connecting to ",
        "HTTP request sent",
        "Length: ",
        "Saving to: ",
        "Reusing ",
        "Location: ",
        "% Total",
        "Dload",
        "Giving up",
        "Retrying",
    ];
    line.is_empty()
        || begins.iter().any(|begin| line.starts_with(begin))
        || line.contains('%') && (line.contains('[') || line.contains("....")) && line.len() < 300
        || line.contains(".......... ..........")
}

fn fetch(url: Option<&str>, block: &Block<'_>) -> Option<(String, HttpFetch)> {
    let named = url.and_then(host_of).map(str::to_owned);
    let label = || block.at.label.lines().rev().find_map(titled).map(str::to_owned);
    // A heading that is a name, without any command, is the front end.
    let heading = || block.at.host.clone().filter(|_| !block.at.weak && is_heading(block));
    let via = named.or_else(label).or_else(heading)?;
    Some((url.unwrap_or_default().to_owned(), HttpFetch { via, ..HttpFetch::default() }))
}

/// No command stands above: the name of a host is a heading, not that of a client.
fn is_heading(block: &Block<'_>) -> bool {
    !block.at.command.is(&["wget", "curl"])
}

/// A title that is one name: `arc-1:`.
fn titled(line: &str) -> Option<&str> {
    let word = line.trim().trim_end_matches(':');
    (is_host(word) && word.contains(|c: char| c.is_ascii_digit())).then_some(word)
}

fn put(url: Option<&str>, (bytes_per_s, bytes): (f64, f64), block: &Block<'_>, at: usize, out: &mut Sink) {
    let Some((url, fetch)) = fetch(url, block) else {
        return out.unread(at, "a download from where? keep the command or the line with the URL");
    };
    // A rate alone is kept as the time that some bytes take.
    let bytes = if bytes >= 1.0 { bytes } else { bytes_per_s };
    let ms = 1000.0 * bytes / bytes_per_s;
    let fetch =
        HttpFetch { body_ms: Some(ms), total_ms: ms, bytes: bytes as u64, status: Some(200), ..fetch };
    let client = block.at.host.clone().filter(|_| !is_heading(block));
    out.download(Download { client, url, fetch });
}

fn failed(url: Option<&str>, why: &str, block: &Block<'_>, out: &mut Sink) {
    if let Some((url, fetch)) = fetch(url, block) {
        let fetch = HttpFetch { error: Some(why.to_owned()), ..fetch };
        let client = block.at.host.clone().filter(|_| !is_heading(block));
        out.download(Download { client, url, fetch });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_binary() {
        let line = "2022-04-18 10:53:20 (32.0 KB/s) - ‘file.fits’ saved [104857600/104857600]";
        assert_eq!(saved(line), Some((32_768.0, 104_857_600.0)));
        let line = "100  100M  100  100M    0     0  32.0k      0  0:53:20  0:53:20 --:--:-- 31.9k";
        assert_eq!(meter(line), Some((32_768.0, 104_857_600.0)));
        assert_eq!(host_of("https://u@arc-1:8080/x"), Some("arc-1"));
    }
}
