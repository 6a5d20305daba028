//! `[[http]]`: what a watch downloads. A table in, a checked spec out.

use std::collections::BTreeSet;

use ::toml::Spanned;
use linerate_model::download::{DownloadSpec, shown_url};
use linerate_model::http::FRONT_ENDS_MAX;

use super::error::{Problem, problem};
use super::tables::RawHttp;
use super::value::millis;
use linerate_input::quoted;

/// URLs of a table at most.
const URLS_MAX: usize = 16;
/// Longest URL or front end, bytes.
const NAME_BYTES_MAX: usize = 1024;
/// From one round to the next: default, least and most, milliseconds.
const EVERY_MS: (u64, u64, u64) = (300_000, 10_000, 86_400_000);
/// Time of a download: default, least and most, milliseconds.
const TIME_MS: (u64, u64, u64) = (10_000, 100, 60_000);
/// Front ends of a URL whose addresses are its front ends.
const ADDRESSES: usize = 8;
/// Time of all downloads of a URL in a round, milliseconds.
const LONGEST_MS: u64 = 900_000;
/// Bytes of a body that are read: default, least and most.
const BYTES: (u64, u64, u64) = (10_000_000, 1, 10_000_000_000);

/// The checked spec; names of hosts and groups are checked with the file.
pub(super) fn downloads(raw: &Spanned<RawHttp>) -> Result<DownloadSpec, Problem> {
    let RawHttp { urls, via, from, every, time, max_bytes } = raw.get_ref();
    if urls.get_ref().is_empty() || urls.get_ref().len() > URLS_MAX {
        let what = format!("urls has {} URLs", urls.get_ref().len());
        return Err(problem(urls, what, format!("1 to {URLS_MAX}; more in another [[http]]")));
    }
    if via.len() > FRONT_ENDS_MAX {
        let what = format!("via has {} front ends, at most {FRONT_ENDS_MAX} are read", via.len());
        return Err(problem(raw, what, "the others in another [[http]]"));
    }
    let bytes_max = max_bytes.as_ref().map_or(BYTES.0, |bytes| *bytes.get_ref());
    if let Some(bytes) = max_bytes.as_ref().filter(|_| !(BYTES.1..=BYTES.2).contains(&bytes_max)) {
        let what = format!("max_bytes is {bytes_max}");
        return Err(problem(bytes, what, format!("{} to {} bytes", BYTES.1, BYTES.2)));
    }
    let spec = DownloadSpec {
        urls: urls.get_ref().iter().map(url).collect::<Result<_, _>>()?,
        via: via.iter().map(front_end).collect::<Result<_, _>>()?,
        from: from.iter().map(|name| name.get_ref().clone()).collect(),
        every_s: (millis("every", every.as_ref(), EVERY_MS)? / 1000) as u32,
        bytes_max,
        timeout_ms: millis("time", time.as_ref(), TIME_MS)? as u32,
    };
    let plan = spec.plan("");
    let longest_ms =
        u64::from(spec.timeout_ms) * u64::from(plan.repeat) * spec.via.len().max(ADDRESSES) as u64;
    if longest_ms > LONGEST_MS {
        let what =
            format!("a URL may take {} s, at most {} s are waited", longest_ms / 1000, LONGEST_MS / 1000);
        return Err(problem(raw, what, "a shorter `time`, or front ends in another [[http]]"));
    }
    Ok(spec)
}

/// Each URL stands in one table: a round would overtake the other's.
pub(super) fn once_each(tables: &[Spanned<RawHttp>]) -> Result<(), Problem> {
    let mut seen = BTreeSet::new();
    for url in tables.iter().flat_map(|table| table.get_ref().urls.get_ref()) {
        if !seen.insert(shown_url(url.get_ref())) {
            let what = format!("URL `{}` is used twice", quoted(&shown_url(url.get_ref())));
            return Err(problem(url, what, "URLs that differ only behind `?` are one"));
        }
    }
    Ok(())
}

fn url(text: &Spanned<String>) -> Result<String, Problem> {
    let url = text.get_ref();
    let rest = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"));
    let authority = rest.map(|rest| rest.split(['/', '?', '#']).next().unwrap_or_default());
    let is_plain = url.len() <= NAME_BYTES_MAX && url.bytes().all(|byte| byte.is_ascii_graphic());
    match authority {
        Some(authority) if is_plain && !authority.is_empty() && !authority.contains('@') => Ok(url.clone()),
        _ => {
            let what = format!("URL `{}` is not allowed", quoted(&shown_url(url)));
            let hint =
                "http:// or https:// with a host, without user and spaces: http://files.example/big.iso";
            Err(problem(text, what, hint))
        }
    }
}

fn front_end(text: &Spanned<String>) -> Result<String, Problem> {
    let name = text.get_ref();
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:[]%".contains(&byte);
    if !name.is_empty() && name.len() <= NAME_BYTES_MAX && name.bytes().all(fits) {
        return Ok(name.clone());
    }
    let what = format!("front end `{}` is not allowed", quoted(name));
    Err(problem(text, what, "a name or address, with a port where it is not the URL's: 192.0.2.11:8080"))
}
