//! The results message: what each end sends when a test is over.
//!
//! What comes in: JSON of a peer of any version, or our own counts. What goes out: plain numbers, or JSON.
//! Kinds of numbers that older versions leave out are `None`. It never judges.

mod read;

use serde_json::{Map, Value, json};

/// One stream, as one end counted it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StreamResult {
    /// Number of the stream: 1, 3, 4, 5, …
    pub id: u32,
    /// Bytes sent (without what was omitted) or received.
    pub bytes: u64,
    /// Segments retransmitted; −1 when not known.
    pub retransmits: i64,
    /// Jitter of datagrams, seconds.
    pub jitter_s: f64,
    /// Datagrams lost, with the omitted ones.
    pub errors: i64,
    /// Of them while omitting.
    pub omitted_errors: Option<i64>,
    /// Datagrams sent, or the highest number received, with the omitted ones.
    pub packets: i64,
    /// Of them while omitting.
    pub omitted_packets: Option<i64>,
    /// End of the stream after its start, seconds; 0 when not given.
    pub end_s: f64,
}

/// What a server printed.
#[derive(Debug, Clone, PartialEq)]
pub enum ServerOutput {
    /// As text.
    Text(String),
    /// As JSON.
    Json(Value),
}

/// Results of one end.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Results {
    /// CPU of the process: all, user, system; percent of one CPU.
    pub cpu_percent: [f64; 3],
    /// 1: retransmissions are counted, 0: not, −1: this end only receives.
    pub sender_has_retransmits: i64,
    /// Congestion control in use.
    pub congestion: Option<String>,
    /// Streams, in order of creation.
    pub streams: Vec<StreamResult>,
    /// The server's output, when it was asked for.
    pub server_output: Option<ServerOutput>,
}

/// The numbers of `count` streams in the order of their creation: 2 is skipped, as in the first versions.
pub fn stream_ids(count: usize) -> Vec<u32> {
    (1..=u32::try_from(count).unwrap_or(u32::MAX)).map(|n| if n == 1 { 1 } else { n + 1 }).collect()
}

impl Results {
    /// The message.
    pub fn to_json(&self) -> Vec<u8> {
        let mut map = Map::new();
        let mut put = |key: &str, value: Value| drop(map.insert(key.to_owned(), value));
        let [total, user, system] = self.cpu_percent;
        put("cpu_util_total", total.into());
        put("cpu_util_user", user.into());
        put("cpu_util_system", system.into());
        put("sender_has_retransmits", self.sender_has_retransmits.into());
        if let Some(name) = &self.congestion {
            put("congestion_used", name.as_str().into());
        }
        match &self.server_output {
            Some(ServerOutput::Text(text)) => put("server_output_text", text.as_str().into()),
            Some(ServerOutput::Json(value)) => put("server_output_json", value.clone()),
            None => {}
        }
        put("streams", self.streams.iter().map(StreamResult::to_value).collect());
        Value::Object(map).to_string().into_bytes()
    }

    /// The stream of this number.
    pub fn stream(&self, id: u32) -> Option<&StreamResult> {
        self.streams.iter().find(|stream| stream.id == id)
    }
}

impl StreamResult {
    fn to_value(&self) -> Value {
        let mut value = json!({
            "id": self.id,
            "bytes": self.bytes,
            "retransmits": self.retransmits,
            "jitter": self.jitter_s,
            "errors": self.errors,
            "packets": self.packets,
            "start_time": 0,
            "end_time": self.end_s,
        });
        if let (Some(errors), Some(packets)) = (self.omitted_errors, self.omitted_packets) {
            value["omitted_errors"] = errors.into();
            value["omitted_packets"] = packets.into();
        }
        value
    }
}
