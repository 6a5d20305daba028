//! Asks a Prometheus server what it stored of hosts: a URL and a range come in, a snapshot goes out.
//!
//! Every answer is bounded in bytes and time, every metric in series. A metric that cannot be read is a gap; a
//! server that does not answer, or is none, is an error. What the answers mean is read by `linerate-import`.

use std::fmt::Write as _;
use std::time::Duration;

use anyhow::anyhow;
use linerate_import::prometheus::{self, METRICS, StoredMetrics, StoredRange, failure};
use linerate_load::{GetLimits, get};
use linerate_model::inventory::Inventory;
use linerate_model::shell;
use linerate_model::snapshot::Snapshot;

/// Most bytes of an answer.
const ANSWER_BYTES_MAX: u64 = 64 << 20;
/// How long an answer may take.
const ANSWER_TIME: Duration = Duration::from_secs(60);
/// Most series of one metric: a thousand hosts with a hundred CPUs.
const SERIES_MAX: f64 = 100_000.0;
/// Metrics that may fail before the server counts as failed.
const FAILURES_MAX: usize = 20;

/// A server.
struct Server {
    /// Without a slash at its end.
    base: String,
    limits: GetLimits,
}

impl Server {
    /// The body of an answer; an error is a sentence.
    fn ask(&self, path: &str, parameters: &[(&str, &str)]) -> Result<Vec<u8>, String> {
        let mut url = format!("{}/api/v1/{path}", self.base);
        for (number, (name, value)) in parameters.iter().enumerate() {
            let sign = if number == 0 { '?' } else { '&' };
            let _ = write!(url, "{sign}{}={}", encoded(name), encoded(value));
        }
        let answer = get(&url, &self.limits)?;
        match answer.status {
            200 => Ok(answer.body),
            status => Err(match failure(&answer.body) {
                Some(error) => format!("status {status}: {error}"),
                None => format!("status {status}"),
            }),
        }
    }

    /// An error of the server as a whole.
    fn failed(&self, error: &str) -> anyhow::Error {
        let url = shell::word(&format!("{}/api/v1/query", self.base));
        anyhow!(
            "cannot read {}: {error}\nhint: curl -sG {url} --data-urlencode query=up",
            linerate_model::printable::clean(&self.base)
        )
    }

    /// The series of a metric over a range.
    fn series(&self, query: &str, range: StoredRange) -> Result<Vec<u8>, String> {
        let (start, end) = (range.start_s.to_string(), range.end_s().to_string());
        let count = prometheus::series_count(
            &self.ask("query", &[("query", &format!("count({query})")), ("time", &end)])?,
        )?;
        if count > SERIES_MAX {
            return Err(format!("{count} series, at most {SERIES_MAX} are read"));
        }
        let step = range.step_s.to_string();
        self.ask("query_range", &[("query", query), ("start", &start), ("end", &end), ("step", &step)])
    }
}

/// A part of a query of a URL.
fn encoded(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

/// Reads what a server stored in a range into a snapshot without a name.
pub(crate) fn read(
    url: &str,
    range: StoredRange,
    trusted_pem: Option<String>,
    inventory: Option<Inventory>,
) -> anyhow::Result<Snapshot> {
    let limits = GetLimits { bytes: ANSWER_BYTES_MAX, time: ANSWER_TIME, trusted_pem };
    let server = Server { base: url.trim_end_matches('/').to_owned(), limits };
    let (start, end) = (range.start_s.to_string(), range.end_s().to_string());
    let matching = [("match[]", METRICS), ("start", &start), ("end", &end)];
    let names = server
        .ask("label/__name__/values", &matching)
        .and_then(|body| prometheus::metric_names(&body))
        .map_err(|error| server.failed(&error))?;
    let queries = prometheus::queries(&names);
    if queries.is_empty() {
        return Err(server.failed("it stored no metric of node_exporter in this range"));
    }
    let mut stored = StoredMetrics::new(&server.base, range, names, inventory);
    let mut failures = 0;
    for query in &queries {
        let read = server.series(&query.query, range).and_then(|body| stored.add(query, &body));
        if let Err(why) = read {
            failures += 1;
            // A server that went away is not asked for all the others.
            if failures == queries.len().min(FAILURES_MAX) {
                return Err(server.failed(&why));
            }
            stored.left_out(&query.name, why);
        }
    }
    Ok(stored.into_snapshot())
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;

    use super::*;

    fn range() -> StoredRange {
        StoredRange::new(1_795_000_000_000 - 3_600_000, 1_795_000_000_000).unwrap()
    }

    /// What comes of a server that answers each request with the next of these, then is gone.
    fn read_from(answers: Vec<String>) -> Result<Snapshot, String> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let server = std::thread::spawn(move || {
            for answer in answers {
                let (mut stream, _) = listener.accept().unwrap();
                let mut request = Vec::new();
                let mut byte = [0];
                while !request.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap() > 0 {
                    request.push(byte[0]);
                }
                assert!(request.starts_with(b"GET /api/v1/"), "{}", String::from_utf8_lossy(&request));
                drop(stream.write_all(answer.as_bytes()));
            }
        });
        let read = read(&url, range(), None, None).map_err(|error| error.to_string());
        server.join().unwrap();
        read
    }

    fn answer(status: u16, body: &str) -> String {
        format!("HTTP/1.1 {status} X\r\nContent-Length: {}\r\n\r\n{body}", body.len())
    }

    #[test]
    fn errors_name_the_url_the_failure_and_a_command_that_runs() {
        let html = read_from(vec![answer(200, "<html>")]).unwrap_err();
        assert!(
            html.starts_with("cannot read http://127.0.0.1:") && html.contains("not one of Prometheus"),
            "{html}"
        );
        let hint = "/api/v1/query --data-urlencode query=up";
        assert!(html.contains("\nhint: curl -sG http://127.0.0.1:") && html.ends_with(hint), "{html}");
        let bad = r#"{"status":"error","errorType":"bad_data","error":"no \u001b[2Jmatch"}"#;
        let bad = read_from(vec![answer(400, bad)]).unwrap_err();
        assert!(bad.contains("status 400: no ") && !bad.contains('\u{1b}'), "{bad:?}");
        let moved = read_from(vec![answer(302, "")]).unwrap_err();
        assert!(moved.contains("status 302\n"), "{moved}");
        let none = read_from(vec![answer(200, r#"{"status":"success","data":["up"]}"#)]).unwrap_err();
        assert!(none.contains("no metric of node_exporter"), "{none}");
        let long = format!("HTTP/1.1 200 X\r\nContent-Length: {}\r\n\r\n", 1_u64 << 40);
        assert!(read_from(vec![long]).is_err());
        for url in ["prom:9090", "ftp://prom", "http://user:secret@prom", "http://prom'; id'"] {
            let error = read(url, range(), None, None).unwrap_err().to_string();
            assert!(error.contains("hint: curl -sG "), "{error}");
        }
    }

    #[test]
    fn a_metric_that_fails_is_a_gap() {
        let names = r#"{"status":"success","data":["node_uname_info","node_netstat_Tcp_OutSegs"]}"#;
        let count = |n: u32| {
            format!(
                r#"{{"status":"success","data":{{"resultType":"vector","result":[{{"value":[1,"{n}"]}}]}}}}"#
            )
        };
        let uname = r#"{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"instance":"a:9100","nodename":"a","release":"6.1"},"values":[[1795000000,"1"]]}]}}"#;
        let answers = vec![
            answer(200, names),
            answer(200, &count(1)),
            answer(200, uname),
            answer(200, &count(200_000)),
        ];
        let snapshot = read_from(answers).unwrap();
        assert_eq!(snapshot.facts["a"].readings["kernel.release"].to_string(), "6.1");
        let gap = &snapshot.gaps[0];
        assert_eq!(gap.what.to_string(), "metric node_netstat_Tcp_OutSegs");
        assert_eq!(gap.reason, "200000 series, at most 100000 are read");
    }

    #[test]
    fn queries_are_encoded() {
        assert_eq!(encoded("a{b=~\"c|d\"} ü&"), "a%7Bb%3D~%22c%7Cd%22%7D%20%C3%BC%26");
    }
}
