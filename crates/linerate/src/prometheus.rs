//! Asks a Prometheus server what it stored of hosts: a URL and a range come in, a snapshot goes out.
//!
//! Every answer is bounded in bytes and time, every metric in series, the whole in time. A metric that cannot
//! be read is a gap; a server that does not answer, or is none, is an error. A URL with a password is refused
//! before anything of it is printed. What the answers mean is read by `linerate-import`.

use std::fmt::{self, Write as _};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{anyhow, bail};
use linerate_fleet::progress::{Progress, ProgressPhase};
use linerate_import::prometheus::{self, METRICS, MetricQuery, StoredMetrics, StoredRange, failure};
use linerate_load::{GetError, GetLimits, get};
use linerate_model::inventory::Inventory;
use linerate_model::snapshot::Snapshot;
use linerate_model::{shell, uri};

/// Most bytes of an answer.
const ANSWER_BYTES_MAX: u64 = 64 << 20;
/// How long an answer may take.
const ANSWER_TIME: Duration = Duration::from_secs(60);
/// Most series of one metric: a thousand hosts with a hundred CPUs.
const SERIES_MAX: f64 = 100_000.0;
/// For all metrics together; those that are left then are gaps.
const READ_TIME: Duration = Duration::from_secs(600);
/// Requests in a row without any answer: the server went away.
const SILENT_MAX: usize = 3;

/// Certificates to trust, and where they were read.
pub(crate) struct Trusted {
    pub(crate) path: PathBuf,
    pub(crate) pem: String,
}

/// A server.
struct Server {
    /// Without a slash at its end.
    base: String,
    trusted: Option<Trusted>,
    end: Instant,
}

/// Why something was not read.
enum AskError {
    /// No answer came.
    Silent(String),
    /// The time for all metrics is over.
    Late,
    /// The answer is of no use.
    Answer(String),
}

impl From<String> for AskError {
    fn from(reason: String) -> Self {
        Self::Answer(reason)
    }
}

impl fmt::Display for AskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Silent(reason) | Self::Answer(reason) => f.write_str(reason),
            Self::Late => write!(f, "not read within {} s for all metrics", READ_TIME.as_secs()),
        }
    }
}

impl Server {
    /// A server that is asked for at most so long.
    fn new(url: &str, trusted: Option<Trusted>, time: Duration) -> anyhow::Result<Self> {
        // What stands there may be a secret: it is not printed.
        if let Some(sign) = ['@', '?', '#'].into_iter().find(|sign| url.contains(*sign)) {
            bail!(
                "the URL of --prometheus has `{sign}`: a user, password or query is not taken\n\
                 hint: linerate diagnose --prometheus http://localhost:9090"
            );
        }
        Ok(Self { base: url.trim_end_matches('/').to_owned(), trusted, end: Instant::now() + time })
    }

    /// The body of an answer.
    fn ask(&self, path: &str, parameters: &[(&str, &str)]) -> Result<Vec<u8>, AskError> {
        let left = self.end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(AskError::Late);
        }
        let mut url = format!("{}/api/v1/{path}", self.base);
        for (number, (name, value)) in parameters.iter().enumerate() {
            let sign = if number == 0 { '?' } else { '&' };
            let _ = write!(url, "{sign}{}={}", uri::encoded(name), uri::encoded(value));
        }
        let limits = GetLimits {
            bytes: ANSWER_BYTES_MAX,
            time: ANSWER_TIME.min(left),
            trusted_pem: self.trusted.as_ref().map(|trusted| trusted.pem.clone()),
        };
        let answer = get(&url, &limits).map_err(|error| match error {
            GetError::Failed(reason) => AskError::Silent(reason),
            error @ GetError::TooLong { .. } => AskError::Answer(error.to_string()),
        })?;
        match answer.status {
            200 => Ok(answer.body),
            status => Err(AskError::Answer(match failure(&answer.body) {
                Some(error) => format!("status {status}: {error}"),
                None => format!("status {status}"),
            })),
        }
    }

    /// An error of the server as a whole.
    fn failed(&self, error: &dyn fmt::Display) -> anyhow::Error {
        let url = shell::word(&format!("{}/api/v1/query", self.base));
        let trusted = self.trusted.as_ref();
        let trusted = trusted.map_or(String::new(), |of| format!("--cacert {} ", shell::path(&of.path)));
        anyhow!(
            "cannot read {}: {error}\nhint: curl -sG {trusted}{url} --data-urlencode query=up",
            linerate_model::printable::clean(&self.base)
        )
    }

    /// The series of a metric over a range.
    fn series(&self, query: &str, range: StoredRange) -> Result<Vec<u8>, AskError> {
        let (start, end) = (range.start_s.to_string(), range.end_s().to_string());
        let count = prometheus::series_count(
            &self.ask("query", &[("query", &format!("count({query})")), ("time", &end)])?,
        )?;
        if count > SERIES_MAX {
            return Err(AskError::Answer(format!("{count} series, at most {SERIES_MAX} are read")));
        }
        let step = range.step_s.to_string();
        self.ask("query_range", &[("query", query), ("start", &start), ("end", &end), ("step", &step)])
    }
}

/// Reads what a server stored in a range into a snapshot without a name.
pub(crate) fn read(
    url: &str,
    range: StoredRange,
    trusted: Option<Trusted>,
    inventory: Option<Inventory>,
    progress: &dyn Progress,
) -> anyhow::Result<Snapshot> {
    let server = Server::new(url, trusted, READ_TIME)?;
    let (start, end) = (range.start_s.to_string(), range.end_s().to_string());
    let matching = [("match[]", METRICS), ("start", &start), ("end", &end)];
    let names = server
        .ask("label/__name__/values", &matching)
        .and_then(|body| Ok(prometheus::metric_names(&body)?))
        .map_err(|error| server.failed(&error))?;
    let queries = prometheus::queries(&names);
    if queries.is_empty() {
        return Err(server.failed(&"it stored no metric of node_exporter in this range"));
    }
    let mut stored = StoredMetrics::new(&server.base, range, names, inventory);
    let phase = ProgressPhase { name: "reading", unit: "metrics", total: queries.len(), expected_s: None };
    progress.begin(&phase);
    let read = read_all(&server, &queries, range, &mut stored, progress);
    progress.end();
    read.map_err(|error| server.failed(&error))?;
    Ok(stored.into_snapshot())
}

/// Reads all metrics. One that fails is a gap; an error where none could be read, or answers end.
fn read_all(
    server: &Server,
    queries: &[MetricQuery],
    range: StoredRange,
    stored: &mut StoredMetrics,
    progress: &dyn Progress,
) -> Result<(), AskError> {
    let (mut failures, mut silent) = (0, 0);
    for (number, query) in queries.iter().enumerate() {
        progress.step(number, &query.name, None);
        let read = server.series(&query.query, range).and_then(|body| Ok(stored.add(query, &body)?));
        silent = if matches!(read, Err(AskError::Silent(_))) { silent + 1 } else { 0 };
        if let Err(why) = read {
            failures += 1;
            if silent == SILENT_MAX || failures == queries.len() {
                return Err(why);
            }
            stored.left_out(&query.name, why.to_string());
        }
    }
    progress.step(queries.len(), "", None);
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;

    use linerate_fleet::progress::Silent;

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
        let read = read(&url, range(), None, None, &Silent).map_err(|error| error.to_string());
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
        for url in ["prom:9090", "ftp://prom", "http://prom'; id'"] {
            let error = read(url, range(), None, None, &Silent).unwrap_err().to_string();
            assert!(error.contains("hint: curl -sG "), "{error}");
        }
        // Certificates that were given are part of the hint.
        let trusted = Trusted { path: "my ca.pem".into(), pem: String::new() };
        let error = read("https://127.0.0.1:1", range(), Some(trusted), None, &Silent).unwrap_err();
        let hint = "curl -sG --cacert 'my ca.pem' https://127.0.0.1:1/api";
        assert!(error.to_string().contains(hint), "{error}");
    }

    #[test]
    fn a_secret_in_a_url_is_refused_and_not_printed() {
        for url in [
            "http://user:secret@prom",
            "user:secret@prom:9090",
            "http:/user:secret@prom/",
            "http://user:secret@prom /x",
            "http://prom/?token=secret",
            "http://prom/#secret",
        ] {
            let error = format!("{:#}", read(url, range(), None, None, &Silent).unwrap_err());
            assert!(!error.contains("secret") && error.contains("is not taken\nhint: linerate "), "{error}");
        }
    }

    /// Names of so many metrics of netstat.
    fn names(count: usize) -> String {
        let names: Vec<String> = (0..count).map(|n| format!("\"node_netstat_Tcp_X{n}\"")).collect();
        answer(200, &format!(r#"{{"status":"success","data":[{}]}}"#, names.join(",")))
    }

    #[test]
    fn metrics_beyond_a_limit_are_gaps_and_silence_is_an_error() {
        let count = |n: u32| {
            let sample = format!(r#"{{"value":[1,"{n}"]}}"#);
            let data = format!(r#"{{"resultType":"vector","result":[{sample}]}}"#);
            answer(200, &format!(r#"{{"status":"success","data":{data}}}"#))
        };
        let empty = answer(200, r#"{"status":"success","data":{"resultType":"matrix","result":[]}}"#);
        let long = format!("HTTP/1.1 200 X\r\nContent-Length: {}\r\n\r\n", ANSWER_BYTES_MAX + 1);
        // Most of them are beyond a limit, and the server answers each time.
        let mut answers = vec![names(40)];
        answers.extend((0..37).map(|_| count(200_000)));
        answers.extend([count(1), empty.clone(), count(1), long, "not HTTP\r\n\r\n".to_owned()]);
        let gaps = read_from(answers).unwrap().gaps;
        let of = |reason: &str| gaps.iter().filter(|gap| gap.reason.contains(reason)).count();
        assert_eq!((of("200000 series"), of("not HTTP"), of("longer than 64 MB")), (37, 1, 1), "{gaps:?}");
        // It went away: three in a row are enough.
        let answers = vec![names(40), count(1), empty, String::new(), String::new(), String::new()];
        let gone = read_from(answers).unwrap_err();
        assert!(gone.starts_with("cannot read http://127.0.0.1:"), "{gone}");
        // None was read.
        assert!(read_from(vec![names(1), count(200_000)]).unwrap_err().contains("200000 series"));
    }

    #[test]
    fn what_is_not_read_in_time_is_a_gap() {
        let server = Server::new("http://127.0.0.1:1", None, Duration::ZERO).unwrap();
        let late = server.ask("query", &[]).err().map(|error| error.to_string());
        assert_eq!(late.as_deref(), Some("not read within 600 s for all metrics"));
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
}
