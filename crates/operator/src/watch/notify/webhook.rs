//! A POST of alerts to a webhook: HTTP/1.1, one request a connection, no redirects.

use linerate_model::notify::{Alert, WebhookUrl};
use linerate_report::watch as words;
use linerate_watch::rules::{RESEND_MS, RESENDS_MISSED};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// Bytes of an answer that are read: the status stands at its begin.
const ANSWER_MAX: usize = 512;

/// Posts alerts; those that last end by themselves when they are not posted again.
pub(super) async fn post(url: &WebhookUrl, alerts: &[Alert], now_ms: u64) -> Result<(), String> {
    let until = now_ms + RESENDS_MISSED * RESEND_MS;
    let bounded = |alert: &Alert| {
        if alert.ends_at.is_some() { alert.clone() } else { words::until(alert, until) }
    };
    let alerts: Vec<Alert> = alerts.iter().map(bounded).collect();
    let body = serde_json::to_vec(&alerts).map_err(|error| error.to_string())?;
    let failed = |error: std::io::Error| error.to_string();
    let mut stream = TcpStream::connect((url.host.as_str(), url.port)).await.map_err(failed)?;
    let head = format!(
        "POST {} HTTP/1.1\r\nHost: {}\r\nUser-Agent: linerate/{}\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n",
        url.path,
        url.authority,
        env!("CARGO_PKG_VERSION"),
        body.len()
    );
    stream.write_all(head.as_bytes()).await.map_err(failed)?;
    stream.write_all(&body).await.map_err(failed)?;
    let mut answer = Vec::new();
    while answer.len() < ANSWER_MAX && !answer.contains(&b'\n') {
        let mut bytes = [0; ANSWER_MAX];
        let read = stream.read(&mut bytes).await.map_err(failed)?;
        if read == 0 {
            break;
        }
        answer.extend(&bytes[..read]);
    }
    match status(&answer) {
        Some(200..=299) => Ok(()),
        Some(status) => Err(format!("it answered {status}")),
        None => Err("it answered with no HTTP status".to_owned()),
    }
}

fn status(answer: &[u8]) -> Option<u16> {
    let line = answer.split(|byte| *byte == b'\n').next()?;
    let line = std::str::from_utf8(line).ok()?.trim_end();
    line.strip_prefix("HTTP/1.")?.split(' ').nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::Value;
    use tokio::net::TcpListener;

    use super::*;

    fn alert(ends_at: Option<&str>) -> Alert {
        Alert {
            labels: BTreeMap::from([("alertname".to_owned(), words::ALERT.to_owned())]),
            annotations: BTreeMap::new(),
            starts_at: "2026-05-28T20:26:40Z".to_owned(),
            ends_at: ends_at.map(str::to_owned),
        }
    }

    /// Posts to a listener that answers with this; what it received.
    async fn posted(answer: &'static [u8]) -> (Result<(), String>, String) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let text = format!("http://{}/api/v2/alerts?a=b", listener.local_addr().unwrap());
        let url = WebhookUrl::parse(&text).unwrap();
        let server = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut all = Vec::new();
            // The body is the end of the request: a list.
            while !all.ends_with(b"}]") {
                assert!(stream.read_buf(&mut all).await.unwrap() > 0);
            }
            stream.write_all(answer).await.unwrap();
            String::from_utf8(all).unwrap()
        };
        let alerts = [alert(None), alert(Some("2026-05-28T20:30:00Z"))];
        tokio::join!(post(&url, &alerts, 1_780_000_000_000), server)
    }

    #[tokio::test]
    async fn a_post_is_one_list_whose_alerts_all_end() {
        let (result, request) = posted(b"HTTP/1.1 200 OK\r\n\r\n").await;
        assert_eq!(result, Ok(()));
        let (head, body) = request.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("POST /api/v2/alerts?a=b HTTP/1.1\r\nHost: 127.0.0.1:"), "{head}");
        assert!(head.contains(&format!("Content-Length: {}", body.len())), "{head}");
        let alerts: Value = serde_json::from_str(body).unwrap();
        // Four minutes ahead while it lasts.
        assert_eq!(alerts[0]["endsAt"], "2026-05-28T20:30:40Z");
        assert_eq!(alerts[1]["endsAt"], "2026-05-28T20:30:00Z");
        assert_eq!(alerts[0]["labels"]["alertname"], "LinerateLoss");
    }

    #[tokio::test]
    async fn what_is_no_success_is_a_failure() {
        assert_eq!(posted(b"HTTP/1.1 500 no\r\n").await.0, Err("it answered 500".to_owned()));
        assert_eq!(
            posted(b"HTTP/1.1 302 Found\r\nLocation: /x\r\n").await.0,
            Err("it answered 302".to_owned())
        );
        assert!(posted(b"SSH-2.0-x\r\n").await.0.unwrap_err().contains("no HTTP status"));
        assert!(posted(b"").await.0.is_err());
    }

    #[test]
    fn only_a_status_line_is_one() {
        assert_eq!(status(b"HTTP/1.1 200 OK\r\nx"), Some(200));
        assert_eq!(status(b"HTTP/1.0 503\r\n"), Some(503));
        for wrong in [&b""[..], b"HTTP/1.1", b"HTTP/2 200", b"SSH-2.0-x\r\n", b"\xff 200"] {
            assert_eq!(status(wrong), None);
        }
    }
}
