//! Answers of the HTTP API of Prometheus (`/api/v1`). Bytes that may be hostile come in, checked series go
//! out.

use std::collections::BTreeMap;
use std::fmt;

use linerate_model::printable;
use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer, Visitor};

/// Most characters of a text of the server in an error.
const TEXT_MAX: usize = 200;

/// What the API puts around every answer.
#[derive(Deserialize)]
struct Envelope<T> {
    #[serde(default)]
    status: String,
    #[serde(default)]
    error: String,
    data: Option<T>,
}

/// Data of a query.
#[derive(Deserialize)]
struct QueryData<T> {
    #[serde(rename = "resultType")]
    kind: String,
    result: Vec<T>,
}

/// A series with its points.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct Series {
    /// Names and values of its labels.
    #[serde(default)]
    pub(super) metric: BTreeMap<String, String>,
    /// Unix seconds with a value.
    values: Vec<(f64, Number)>,
}

/// A value now.
#[derive(Deserialize)]
struct Sample {
    value: (f64, Number),
}

/// A number in quotes: also `NaN` and `+Inf`, which are no values here.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Number(f64);

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Text;
        impl Visitor<'_> for Text {
            type Value = Number;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number in quotes")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Number, E> {
                text.parse().map(Number).map_err(|_| E::custom("a value is not a number"))
            }
        }
        from.deserialize_str(Text)
    }
}

impl Series {
    /// The value of a label; empty where it has none.
    pub(super) fn label(&self, name: &str) -> &str {
        self.metric.get(name).map_or("", String::as_str)
    }

    /// Points with a finite value: Unix seconds and value.
    pub(super) fn points(&self) -> impl DoubleEndedIterator<Item = (f64, f64)> + '_ {
        self.values.iter().map(|(at, value)| (*at, value.0)).filter(|(at, v)| at.is_finite() && v.is_finite())
    }

    /// The last value.
    pub(super) fn last(&self) -> Option<f64> {
        self.points().next_back().map(|(_, value)| value)
    }

    /// Times of the last and the first value, as a key to sort by: of two series of one thing, whose labels
    /// changed in between, the later one has the larger key.
    fn age(&self) -> (f64, f64) {
        let mut times = self.points().map(|(at, _)| at);
        let first = times.next().unwrap_or(f64::NEG_INFINITY);
        (times.next_back().unwrap_or(first), first)
    }

    /// Labels that could do something to a terminal, or to a key.
    pub(super) fn is_plain(&self) -> bool {
        let texts = self.metric.iter().flat_map(|(name, value)| [name, value]);
        texts.into_iter().all(|text| text.len() <= TEXT_MAX && !text.chars().any(printable::is_control))
    }
}

fn data<T: DeserializeOwned>(body: &[u8]) -> Result<T, String> {
    let envelope: Envelope<T> = serde_json::from_slice(body)
        .map_err(|error| format!("the answer is not one of Prometheus: {}", cut(&error.to_string())))?;
    match envelope.data {
        Some(data) if envelope.status == "success" => Ok(data),
        _ if envelope.error.is_empty() => {
            Err("the answer is not one of Prometheus: it has no data".to_owned())
        }
        _ => Err(format!("Prometheus reports: {}", cut(&envelope.error))),
    }
}

/// The error in an answer.
pub(super) fn failure(body: &[u8]) -> Option<String> {
    let envelope: Envelope<serde::de::IgnoredAny> = serde_json::from_slice(body).ok()?;
    (!envelope.error.is_empty()).then(|| cut(&envelope.error))
}

/// A text of the server as it may be printed.
fn cut(text: &str) -> String {
    printable::clean(&text.chars().take(TEXT_MAX).collect::<String>())
}

fn results<T: DeserializeOwned>(body: &[u8], kind: &str) -> Result<Vec<T>, String> {
    let data: QueryData<T> = data(body)?;
    if data.kind == kind {
        Ok(data.result)
    } else {
        Err(format!("the answer is a {} where a {kind} was asked for", cut(&data.kind)))
    }
}

/// Series over a range, the newest first: what is read first counts.
pub(super) fn series(body: &[u8]) -> Result<Vec<Series>, String> {
    let mut series: Vec<Series> = results(body, "matrix")?;
    let later = |(a, b): (f64, f64), (c, d): (f64, f64)| c.total_cmp(&a).then(d.total_cmp(&b));
    series.sort_by(|one, other| later(one.age(), other.age()));
    Ok(series)
}

/// The sum of a query such as `count(…)`; 0 where there is nothing.
pub(super) fn count(body: &[u8]) -> Result<f64, String> {
    let results: Vec<Sample> = results(body, "vector")?;
    Ok(results.iter().map(|sample| sample.value.1.0).filter(|value| value.is_finite()).sum())
}

/// Values of a label.
pub(super) fn names(body: &[u8]) -> Result<Vec<String>, String> {
    data(body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_of_all_kinds_and_what_is_none() {
        let one = br#"{"status":"success","data":{"resultType":"matrix","result":[
            {"metric":{"instance":"a:9100"},"values":[[1,"1"],[2,"NaN"],[3,"+Inf"],[4.5,"2e3"]]}]}}"#;
        let read = series(one).unwrap();
        assert_eq!(read[0].points().collect::<Vec<_>>(), [(1.0, 1.0), (4.5, 2000.0)]);
        assert_eq!(
            (read[0].label("instance"), read[0].label("job"), read[0].last()),
            ("a:9100", "", Some(2e3))
        );
        let vector = br#"{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1,"12"]}]}}"#;
        assert_eq!(count(vector), Ok(12.0));
        assert_eq!(names(br#"{"status":"success","data":["up"]}"#), Ok(vec!["up".to_owned()]));
        let other = br#"{"status":"success","data":{"resultType":"scalar","result":[]}}"#;
        assert!(series(other).unwrap_err().contains("a scalar where a matrix") && series(vector).is_err());
        let failed = br#"{"status":"error","errorType":"bad_data","error":"parse \u001b[31m error"}"#;
        let error = series(failed).unwrap_err();
        assert!(error.starts_with("Prometheus reports: parse ") && !error.contains('\u{1b}'), "{error:?}");
    }

    #[test]
    fn hostile_answers_are_errors() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        let wrong: [&[u8]; 9] = [
            b"",
            b"<html>",
            b"[]",
            b"{}",
            b"{\"status\":\"success\"}",
            b"{\"status\":\"success\",\"data\":{\"resultType\":\"matrix\",\"result\":{}}}",
            b"{\"status\":\"success\",\"data\":{\"resultType\":\"matrix\",\"result\":[{\"values\":[[1,2]]}]}}",
            b"{\"status\":\"success\",\"data\":{\"resultType\":\"matrix\",\"result\":[{\"values\":[[1,\"x\"]]}]}}",
            deep.as_bytes(),
        ];
        for body in wrong {
            assert!(series(body).is_err(), "{}", String::from_utf8_lossy(&body[..body.len().min(80)]));
        }
    }

    #[test]
    fn labels_with_control_characters_are_not_plain() {
        let of = |label: &str| {
            let labels = serde_json::json!({ "device": label });
            Series { metric: serde_json::from_value(labels).unwrap(), values: Vec::new() }.is_plain()
        };
        assert!(of("eth0") && of("Größe"));
        assert!(!of("eth\u{1b}[2J") && !of("a\nb") && !of("\u{202e}") && !of(&"x".repeat(500)));
    }
}
