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
