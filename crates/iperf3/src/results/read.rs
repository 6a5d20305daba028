//! Reading a peer's results without keeping more of them than a test can have.
//!
//! What comes in: JSON of a peer of any version. What goes out: [`Results`], or what is wrong with it. A
//! message is a few hundred kilobytes, but a tree of its values would take fifty times as much: unknown keys,
//! nested values in the place of numbers, and streams beyond the largest test are never kept.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

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

impl StreamResult {
    /// What is read of a stream.
    const KEYS: [&str; 9] = [
        "id",
        "bytes",
        "retransmits",
        "jitter",
        "errors",
        "omitted_errors",
        "packets",
        "omitted_packets",
        "end_time",
    ];

    fn from_map(value: &Map<String, Value>) -> Result<Self, String> {
        let need = |key: &str| {
            lenient::integer(value.get(key)).ok_or_else(|| format!("a stream without the number `{key}`"))
        };
        let jitter = lenient::number(value.get("jitter"));
        Ok(Self {
            id: u32::try_from(need("id")?).map_err(|_| "a stream with a negative number".to_owned())?,
            bytes: u64::try_from(need("bytes")?).map_err(|_| "a stream with negative bytes".to_owned())?,
            retransmits: need("retransmits")?,
            jitter_s: jitter.ok_or("a stream without the number `jitter`")?,
            errors: need("errors")?,
            omitted_errors: lenient::integer(value.get("omitted_errors")),
            packets: need("packets")?,
            omitted_packets: lenient::integer(value.get("omitted_packets")),
            end_s: lenient::number(value.get("end_time")).unwrap_or(0.0),
        })
    }
}

/// Reads a message; `output`: the server's own output was asked for, and is kept.
fn read(bytes: &[u8], output: bool) -> Result<Results, String> {
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let draft = Whole { output }.deserialize(&mut reader).map_err(|error| error.to_string())?;
    reader.end().map_err(|error| error.to_string())?;
    draft.finish()
}

/// What was found of a message.
#[derive(Default)]
struct Draft {
    cpu: [Option<Value>; 3],
    retransmits: Option<Value>,
    congestion: Option<Value>,
    streams: Option<Vec<StreamResult>>,
    text: Option<Value>,
    json: Option<Value>,
}

impl Draft {
    fn finish(self) -> Result<Results, String> {
        let without = |key: &str| format!("without the number `{key}`");
        let streams = self.streams.ok_or("without the list `streams`")?;
        let mut seen = BTreeSet::new();
        if let Some(twice) = streams.iter().find(|stream| !seen.insert(stream.id)) {
            return Err(format!("stream {} twice", twice.id));
        }
        let mut cpu_percent = [0.0; 3];
        for ((place, value), key) in cpu_percent.iter_mut().zip(&self.cpu).zip(CPU_KEYS) {
            *place = lenient::number(value.as_ref()).ok_or_else(|| without(key))?;
        }
        let text = || lenient::text(self.text.as_ref()).map(ServerOutput::Text);
        Ok(Results {
            cpu_percent,
            sender_has_retransmits: lenient::integer(self.retransmits.as_ref())
                .ok_or_else(|| without("sender_has_retransmits"))?,
            congestion: lenient::text(self.congestion.as_ref()),
            streams,
            server_output: self.json.filter(Value::is_object).map(ServerOutput::Json).or_else(text),
        })
    }
}

const CPU_KEYS: [&str; 3] = ["cpu_util_total", "cpu_util_user", "cpu_util_system"];

/// The message.
struct Whole {
    output: bool,
}

impl<'de> DeserializeSeed<'de> for Whole {
    type Value = Draft;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Draft, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Whole {
    type Value = Draft;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("results")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Draft, A::Error> {
        let mut draft = Draft::default();
        while let Some(key) = map.next_key::<String>()? {
            let place = match key.as_str() {
                "streams" => {
                    draft.streams = Some(map.next_value_seed(Streams)?);
                    continue;
                }
                "server_output_json" if self.output => {
                    let left = Cell::new(OUTPUT_VALUES_MAX);
                    draft.json = Some(map.next_value_seed(Bounded { left: &left })?);
                    continue;
                }
                "server_output_text" if self.output => &mut draft.text,
                "sender_has_retransmits" => &mut draft.retransmits,
                "congestion_used" => &mut draft.congestion,
                key => {
                    let Some(index) = CPU_KEYS.iter().position(|known| *known == key) else {
                        map.next_value::<IgnoredAny>()?;
                        continue;
                    };
                    &mut draft.cpu[index]
                }
            };
            *place = Some(map.next_value_seed(Scalar)?);
        }
        Ok(draft)
    }
}

/// The list of streams.
struct Streams;

impl<'de> DeserializeSeed<'de> for Streams {
    type Value = Vec<StreamResult>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Streams {
    type Value = Vec<StreamResult>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of streams")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut streams = Vec::new();
        while let Some(stream) = list.next_element_seed(Stream)? {
            if streams.len() == STREAMS_OF_TEST_MAX {
                return Err(A::Error::custom(format!("more than {STREAMS_OF_TEST_MAX} streams")));
            }
            streams.push(stream);
        }
        Ok(streams)
    }
}

/// One stream.
struct Stream;

impl<'de> DeserializeSeed<'de> for Stream {
    type Value = StreamResult;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<StreamResult, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Stream {
    type Value = StreamResult;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a stream")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<StreamResult, A::Error> {
        let mut known = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            if StreamResult::KEYS.contains(&key.as_str()) {
                let value = map.next_value_seed(Scalar)?;
                known.insert(key, value);
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        StreamResult::from_map(&known).map_err(A::Error::custom)
    }
}

/// A number, a text, a boolean; anything with something in it is read over and counts as nothing.
struct Scalar;

impl<'de> DeserializeSeed<'de> for Scalar {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Scalar {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Value::Null)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Value::Null)
    }
}

/// A whole value with a bound on how many are in it.
struct Bounded<'a> {
    left: &'a Cell<usize>,
}

impl Bounded<'_> {
    fn again(&self) -> Self {
        Self { left: self.left }
    }

    fn take<E: Error>(&self) -> Result<(), E> {
        let left = self.left.get().checked_sub(1);
        self.left
            .set(left.ok_or_else(|| E::custom(format!("more than {OUTPUT_VALUES_MAX} values of output")))?);
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for Bounded<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        self.take()?;
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Bounded<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Scalar.visit_bool(value)
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Scalar.visit_i64(value)
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Scalar.visit_u64(value)
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Scalar.visit_f64(value)
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Scalar.visit_str(value)
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = list.next_element_seed(self.again())? {
            values.push(value);
        }
        Ok(values.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut values = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            let value = map.next_value_seed(self.again())?;
            values.insert(key, value);
        }
        Ok(Value::Object(values))
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
        // What follows the first one too many is not even looked at.
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
    fn nested_values_in_the_place_of_numbers_are_nothing() {
        let text = message(1, "").replace(r#""bytes":1"#, r#""bytes":[[1],{"a":2}]"#);
        assert!(read(text.as_bytes(), false).unwrap_err().starts_with("a stream without the number `bytes`"));
        let nested = format!("{}{},", "[".repeat(10_000), "]".repeat(10_000));
        let unknown = message(1, &format!("\"x\":{nested}"));
        assert_eq!(read(unknown.as_bytes(), true).unwrap().streams.len(), 1);
        let output = message(1, &format!("\"server_output_json\":{nested}"));
        assert!(read(output.as_bytes(), true).unwrap_err().starts_with("recursion limit"));
    }
}
