//! Reading a peer's results without keeping more of them than a test can have.
//!
//! What comes in: JSON of a peer of any version. What goes out: [`Results`], or what is wrong with it. A
//! message is a few hundred kilobytes, but a tree of its values would take fifty times as much: unknown keys,
//! nested values instead of numbers, and streams beyond the largest test are never kept.

use std::collections::BTreeSet;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, SeqAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use super::{Results, ServerOutput, StreamResult};
use crate::lenient;
use crate::protocol::{STREAMS_MAX, Violation};

/// Streams of the largest test, both directions.
const STREAMS_OF_TEST_MAX: usize = 2 * STREAMS_MAX as usize;

/// Values of the output of a server, with everything in it: a test of an hour has about a hundred thousand.
const OUTPUT_VALUES_MAX: usize = 1 << 20;

impl Results {
    /// Reads the peer's message, with the server's output.
    pub fn from_json(bytes: &[u8]) -> Result<Self, Violation> {
        read(bytes, true).map_err(|why| Violation::Message { what: "results", why })
    }

    /// Reads the peer's message without the server's output, which was not asked for.
    pub fn from_json_plain(bytes: &[u8]) -> Result<Self, Violation> {
        read(bytes, false).map_err(|why| Violation::Message { what: "results", why })
    }
}

/// A message, its values still as texts.
#[derive(Deserialize)]
struct Whole<'a> {
    #[serde(borrow)]
    cpu_util_total: Option<&'a RawValue>,
    cpu_util_user: Option<&'a RawValue>,
    cpu_util_system: Option<&'a RawValue>,
    sender_has_retransmits: Option<&'a RawValue>,
    congestion_used: Option<&'a RawValue>,
    server_output_text: Option<&'a RawValue>,
    server_output_json: Option<&'a RawValue>,
    streams: Option<Streams>,
}

/// A stream, its values still as texts.
#[derive(Deserialize)]
struct Stream<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    bytes: Option<&'a RawValue>,
    retransmits: Option<&'a RawValue>,
    jitter: Option<&'a RawValue>,
    errors: Option<&'a RawValue>,
    omitted_errors: Option<&'a RawValue>,
    packets: Option<&'a RawValue>,
    omitted_packets: Option<&'a RawValue>,
    end_time: Option<&'a RawValue>,
}

/// A number, a text, a boolean; anything with something in it counts as nothing.
fn scalar(raw: Option<&RawValue>) -> Option<Value> {
    raw.filter(|raw| !raw.get().starts_with(['[', '{'])).and_then(|raw| serde_json::from_str(raw.get()).ok())
}

fn integer(raw: Option<&RawValue>) -> Option<i64> {
    lenient::integer(scalar(raw).as_ref())
}

fn number(raw: Option<&RawValue>) -> Option<f64> {
    lenient::number(scalar(raw).as_ref())
}

fn text(raw: Option<&RawValue>) -> Option<String> {
    lenient::text(scalar(raw).as_ref())
}

/// A whole value with a bound on how many are in it.
fn bounded(raw: &RawValue) -> Result<Value, String> {
    // Each value but the first follows one of these.
    if raw.get().bytes().filter(|byte| b",[{".contains(byte)).count() >= OUTPUT_VALUES_MAX {
        return Err(format!("more than {OUTPUT_VALUES_MAX} values of output"));
    }
    serde_json::from_str(raw.get()).map_err(|error| error.to_string())
}

/// Reads a message; `output`: the server's own output was asked for, and is kept.
fn read(bytes: &[u8], output: bool) -> Result<Results, String> {
    let whole: Whole<'_> = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    let without = |key: &str| format!("without the number `{key}`");
    let streams = whole.streams.ok_or("without the list `streams`")?.0;
    let mut seen = BTreeSet::new();
    if let Some(twice) = streams.iter().find(|stream| !seen.insert(stream.id)) {
        return Err(format!("stream {} twice", twice.id));
    }
    let json = whole.server_output_json.filter(|_| output).map(bounded).transpose()?;
    let plain = || text(whole.server_output_text.filter(|_| output)).map(ServerOutput::Text);
    Ok(Results {
        cpu_percent: [
            number(whole.cpu_util_total).ok_or_else(|| without("cpu_util_total"))?,
            number(whole.cpu_util_user).ok_or_else(|| without("cpu_util_user"))?,
            number(whole.cpu_util_system).ok_or_else(|| without("cpu_util_system"))?,
        ],
        sender_has_retransmits: integer(whole.sender_has_retransmits)
            .ok_or_else(|| without("sender_has_retransmits"))?,
        congestion: text(whole.congestion_used),
        streams,
        server_output: json.filter(Value::is_object).map(ServerOutput::Json).or_else(plain),
    })
}

impl Stream<'_> {
    fn read(&self) -> Result<StreamResult, String> {
        let need = |raw: Option<&RawValue>, key: &str| {
            integer(raw).ok_or_else(|| format!("a stream without the number `{key}`"))
        };
        Ok(StreamResult {
            id: u32::try_from(need(self.id, "id")?).map_err(|_| "a stream with a negative number")?,
            bytes: u64::try_from(need(self.bytes, "bytes")?).map_err(|_| "a stream with negative bytes")?,
            retransmits: need(self.retransmits, "retransmits")?,
            jitter_s: number(self.jitter).ok_or("a stream without the number `jitter`")?,
            errors: need(self.errors, "errors")?,
            omitted_errors: integer(self.omitted_errors),
            packets: need(self.packets, "packets")?,
            omitted_packets: integer(self.omitted_packets),
            end_s: number(self.end_time).unwrap_or(0.0),
        })
    }
}

/// The list of streams.
struct Streams(Vec<StreamResult>);

impl<'de> Deserialize<'de> for Streams {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct List;
        impl<'de> Visitor<'de> for List {
            type Value = Streams;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of streams")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Streams, A::Error> {
                let mut streams = Vec::new();
                while let Some(stream) = list.next_element::<Stream<'de>>()? {
                    if streams.len() == STREAMS_OF_TEST_MAX {
                        return Err(A::Error::custom(format!("more than {STREAMS_OF_TEST_MAX} streams")));
                    }
                    streams.push(stream.read().map_err(A::Error::custom)?);
                }
                Ok(Streams(streams))
            }
        }
        deserializer.deserialize_seq(List)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: &str = r#"{"id":N,"bytes":1,"retransmits":0,"jitter":0,"errors":0,"packets":0}"#;

    fn message(streams: usize, rest: &str) -> String {
        let list: Vec<String> = (1..=streams).map(|n| STREAM.replace('N', &n.to_string())).collect();
        let numbers =
            r#""cpu_util_total":1,"cpu_util_user":1,"cpu_util_system":1,"sender_has_retransmits":0"#;
        format!("{{{numbers},{rest}\"streams\":[{}]}}", list.join(","))
    }

    #[test]
    fn streams_beyond_the_largest_test_are_not_kept() {
        assert_eq!(read(message(256, "").as_bytes(), false).unwrap().streams.len(), 256);
        // What follows the first one too many is not even parsed.
        let cut = message(300, "");
        let cut = &cut[..cut.len() - 400];
        assert!(read(cut.as_bytes(), false).unwrap_err().starts_with("more than 256 streams"));
    }

    #[test]
    fn output_that_was_not_asked_for_is_read_over() {
        let output = r#""server_output_json":{"start":[1,2]},"server_output_text":"x","extra":[[[{}]]],"#;
        let text = message(1, output);
        assert_eq!(read(text.as_bytes(), false).unwrap().server_output, None);
        let kept = read(text.as_bytes(), true).unwrap().server_output;
        assert_eq!(kept, Some(ServerOutput::Json(serde_json::json!({"start": [1, 2]}))));
    }

    #[test]
    fn output_of_too_many_values_is_refused() {
        let output = format!(r#""server_output_json":{{"a":[{}0]}},"#, "0,".repeat(OUTPUT_VALUES_MAX));
        assert!(
            read(message(1, &output).as_bytes(), true).unwrap_err().starts_with("more than 1048576 values")
        );
        assert_eq!(read(message(1, &output).as_bytes(), false).unwrap().streams.len(), 1);
    }

    #[test]
    fn nested_values_instead_of_numbers_are_nothing() {
        let text = message(1, "").replace(r#""bytes":1"#, r#""bytes":[[1],{"a":2}]"#);
        assert!(read(text.as_bytes(), false).unwrap_err().starts_with("a stream without the number `bytes`"));
        let nested = format!("{}{},", "[".repeat(10_000), "]".repeat(10_000));
        let unknown = message(1, &format!("\"x\":{nested}"));
        assert_eq!(read(unknown.as_bytes(), true).unwrap().streams.len(), 1);
        let output = message(1, &format!("\"server_output_json\":{nested}"));
        assert!(read(output.as_bytes(), true).unwrap_err().starts_with("recursion limit"));
    }
}
