//! A test as JSON of iperf3's own schema, so that whatever reads iperf3's output reads ours.
//!
//! What comes in: a [`TestRecord`]. What goes out: one JSON object. Keys and units are those of iperf3 3.12;
//! a key is there exactly where iperf3 writes it. It does no I/O.

use std::net::SocketAddr;

use serde_json::{Map, Value, json};

use super::parameters::{DataDirection, VERSION};
use super::protocol::cookie_text;
use super::record::{Lane, LaneEnd, RecordInterval, StreamCount, StreamInterval, TestRecord};
use super::results::ServerOutput;

/// The document of a test.
pub fn document(record: &TestRecord) -> Value {
    let mut document = Map::new();
    document.insert("start".to_owned(), start(record));
    document.insert("intervals".to_owned(), record.intervals.iter().map(|i| interval(record, i)).collect());
    document.insert("end".to_owned(), end(record));
    match &record.server_output {
        // A server's own document has no copy of itself.
        Some(ServerOutput::Json(value)) if !record.server => {
            document.insert("server_output_json".to_owned(), value.clone());
        }
        Some(ServerOutput::Text(text)) if !record.server => {
            document.insert("server_output_text".to_owned(), text.as_str().into());
        }
        _ => {}
    }
    if let Some(title) = &record.parameters.title {
        document.insert("title".to_owned(), title.as_str().into());
    }
    if let Some(extra) = &record.parameters.extra_data {
        document.insert("extra_data".to_owned(), extra.as_str().into());
    }
    if let Some(error) = &record.error {
        document.insert("error".to_owned(), error.as_str().into());
    }
    Value::Object(document)
}

/// `start` of the document.
pub(super) fn start(record: &TestRecord) -> Value {
    let parameters = &record.parameters;
    let mut start = json!({
        "connected": record.lanes.iter().map(connected).collect::<Vec<_>>(),
        "version": VERSION,
        "system_info": system(),
        "timestamp": { "time": http_date(record.start_unix_ms / 1000), "timesecs": record.start_unix_ms / 1000,
            "timemillisecs": record.start_unix_ms % 1000 },
        "cookie": cookie_text(&record.cookie),
        "target_bitrate": parameters.rate_bps,
        "fq_rate": parameters.fq_rate_bps,
        "sock_bufsize": parameters.window.unwrap_or(0),
        "sndbuf_actual": record.buffers.0,
        "rcvbuf_actual": record.buffers.1,
        "test_start": {
            "protocol": if record.is_udp() { "UDP" } else { "TCP" },
            "num_streams": parameters.parallel,
            "blksize": record.block,
            "omit": parameters.omit_s,
            "duration": parameters.time_s,
            "bytes": parameters.bytes,
            "blocks": parameters.blocks,
            "reverse": i32::from(parameters.direction == DataDirection::Reverse),
            "tos": parameters.tos,
            "target_bitrate": parameters.rate_bps,
            "bidir": i32::from(parameters.direction == DataDirection::Both),
            "fqrate": parameters.fq_rate_bps,
            "interval": record.interval_s,
            // Trains (GSO, GRO) are not offered here, so they were not asked for.
            "gso": 0,
            "gro": 0,
        },
    });
    let (host, port) = &record.target;
    let key = if record.server { "accepted_connection" } else { "connecting_to" };
    start[key] = json!({ "host": host, "port": port });
    if let (false, Some(mss)) = (record.is_udp(), parameters.mss) {
        start["tcp_mss"] = mss.into();
    } else if !record.is_udp() {
        start["tcp_mss_default"] = record.mss.into();
    }
    start
}

fn host(address: SocketAddr) -> String {
    address.ip().to_canonical().to_string()
}

fn connected(lane: &Lane) -> Value {
    json!({
        "socket": lane.socket,
        "local_host": host(lane.local),
        "local_port": lane.local.port(),
        "remote_host": host(lane.peer),
        "remote_port": lane.peer.port(),
    })
}

/// The output of `uname -a`, as far as `/proc` shows it.
fn system() -> String {
    let read = |name: &str| {
        let text = std::fs::read_to_string(format!("/proc/sys/kernel/{name}")).unwrap_or_default();
        text.trim().to_owned()
    };
    let parts = [read("ostype"), read("hostname"), read("osrelease"), read("version")];
    format!("{} {}", parts.join(" "), std::env::consts::ARCH)
}

/// `Sat, 21 Nov 2026 12:36:17 GMT`.
pub(super) fn http_date(unix_s: u64) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let (days, second) = (unix_s / 86_400, unix_s % 86_400);
    let leap = |year: u64| year.is_multiple_of(4) && !year.is_multiple_of(100) || year.is_multiple_of(400);
    let (mut year, mut rest) = (1970, days);
    while rest >= 365 + u64::from(leap(year)) {
        rest -= 365 + u64::from(leap(year));
        year += 1;
    }
    let lengths = [31, 28 + u64::from(leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 0;
    while rest >= lengths[month] {
        rest -= lengths[month];
        month += 1;
    }
    format!(
        "{}, {:02} {} {year} {:02}:{:02}:{:02} GMT",
        DAYS[(days % 7) as usize],
        rest + 1,
        MONTHS[month],
        second / 3600,
        second / 60 % 60,
        second % 60
    )
}

/// The fields that every row of numbers begins with.
fn row(start_s: f64, end_s: f64, bytes: u64) -> Value {
    let seconds = (end_s - start_s).max(0.0);
    let rate = if seconds > 0.0 { bytes as f64 * 8.0 / seconds } else { 0.0 };
    json!({ "start": start_s, "end": end_s, "seconds": seconds, "bytes": bytes, "bits_per_second": rate })
}

fn lost_percent(lost: i64, packets: u64) -> f64 {
    if packets == 0 { 0.0 } else { lost as f64 * 100.0 / packets as f64 }
}

/// One of its intervals.
pub(super) fn interval(record: &TestRecord, interval: &RecordInterval) -> Value {
    let streams: Vec<Value> = record
        .lanes
        .iter()
        .zip(&interval.streams)
        .map(|(lane, stream)| stream_interval(record, interval, lane, stream))
        .collect();
    let mut value = json!({ "streams": streams });
    for (key, sends) in ["sum", "sum_bidir_reverse"].iter().zip(record.directions()) {
        value[*key] = interval_sum(record, interval, sends);
    }
    value
}

fn stream_interval(
    record: &TestRecord,
    interval: &RecordInterval,
    lane: &Lane,
    stream: &StreamInterval,
) -> Value {
    let mut value = row(interval.start_s, interval.end_s, stream.bytes);
    value["socket"] = lane.socket.into();
    if let Some(tcp) = &stream.tcp {
        value["retransmits"] = tcp.retransmits.into();
        value["snd_cwnd"] = tcp.cwnd_bytes.into();
        value["snd_wnd"] = tcp.send_window.into();
        value["rtt"] = tcp.rtt_us.into();
        value["rttvar"] = tcp.rttvar_us.into();
        value["pmtu"] = tcp.pmtu.into();
        // iperf3, too, writes -1 where the kernel does not count.
        value["reorder"] = tcp.reorder.map_or(-1, i64::from).into();
    }
    datagrams(record, &mut value, stream, lane.sends);
    value["omitted"] = interval.omitted.into();
    value["sender"] = lane.sends.into();
    value
}

fn datagrams(record: &TestRecord, value: &mut Value, stream: &StreamInterval, sends: bool) {
    if !record.is_udp() {
        return;
    }
    if !sends {
        value["jitter_ms"] = (stream.jitter_s * 1e3).into();
        value["lost_packets"] = stream.lost.into();
        value["lost_percent"] = lost_percent(stream.lost, stream.packets).into();
    }
    value["packets"] = stream.packets.into();
}

/// One direction of an interval, all streams.
pub(super) fn summed(record: &TestRecord, interval: &RecordInterval, sends: bool) -> StreamInterval {
    let mut sum = StreamInterval::default();
    let mut lanes = 0.0;
    for (_, stream) in record.lanes.iter().zip(&interval.streams).filter(|(lane, _)| lane.sends == sends) {
        lanes += 1.0;
        sum.bytes += stream.bytes;
        sum.packets += stream.packets;
        sum.lost = sum.lost.saturating_add(stream.lost);
        sum.out_of_order += stream.out_of_order;
        sum.jitter_s += stream.jitter_s;
        if let Some(tcp) = &stream.tcp {
            sum.tcp.get_or_insert_default().retransmits += tcp.retransmits;
        }
    }
    if lanes > 0.0 {
        sum.jitter_s /= lanes;
    }
    sum
}

fn interval_sum(record: &TestRecord, interval: &RecordInterval, sends: bool) -> Value {
    let sum = summed(record, interval, sends);
    let mut value = row(interval.start_s, interval.end_s, sum.bytes);
    if let Some(tcp) = &sum.tcp {
        value["retransmits"] = tcp.retransmits.into();
    }
    datagrams(record, &mut value, &sum, sends);
    value["omitted"] = interval.omitted.into();
    value["sender"] = sends.into();
    value
}

fn side_row(side: &StreamCount) -> Value {
    row(0.0, side.seconds, side.bytes)
}

/// Its `end`.
pub(super) fn end(record: &TestRecord) -> Value {
    if record.ends.is_empty() {
        return json!({});
    }
    let lanes = record.lanes.iter().zip(&record.ends);
    let udp = record.is_udp();
    let streams: Vec<Value> =
        lanes.map(|(lane, end)| if udp { udp_stream(lane, end) } else { tcp_stream(lane, end) }).collect();
    let mut value = json!({ "streams": streams });
    for (suffix, sends) in ["", "_bidir_reverse"].iter().zip(record.directions()) {
        let (sent, received) = record.sums(sends);
        if udp {
            value[format!("sum{suffix}")] = udp_sum(&sent, &received, sends);
        }
        let (mut sent_row, mut received_row) = (side_row(&sent), side_row(&received));
        if udp {
            put_loss(&mut sent_row, 0.0, 0, sent.packets);
            put_loss(&mut received_row, received.jitter_s, received.lost, received.packets);
            sent_row["sender"] = true.into();
            received_row["sender"] = false.into();
        } else {
            if let Some(retransmits) = sent.retransmits {
                sent_row["retransmits"] = retransmits.into();
            }
            sent_row["sender"] = sends.into();
            received_row["sender"] = sends.into();
        }
        value[format!("sum_sent{suffix}")] = sent_row;
        value[format!("sum_received{suffix}")] = received_row;
    }
    let [total, user, system] = record.cpu_percent;
    let [remote_total, remote_user, remote_system] = record.cpu_percent_remote;
    value["cpu_utilization_percent"] = json!({
        "host_total": total, "host_user": user, "host_system": system,
        "remote_total": remote_total, "remote_user": remote_user, "remote_system": remote_system,
    });
    if !udp {
        // In a test of both directions, as in iperf3, the sender is this end.
        let sends = record.directions().first() == Some(&true);
        let (ours, theirs) = (&record.congestion, &record.congestion_remote);
        let (sender, receiver) = if sends { (ours, theirs) } else { (theirs, ours) };
        for (key, name) in [("sender_tcp_congestion", sender), ("receiver_tcp_congestion", receiver)] {
            if let Some(name) = name {
                value[key] = name.as_str().into();
            }
        }
    }
    value
}

fn tcp_stream(lane: &Lane, end: &LaneEnd) -> Value {
    let (mut sender, mut receiver) = (side_row(&end.sent), side_row(&end.received));
    if let Some(retransmits) = end.sent.retransmits {
        sender["retransmits"] = retransmits.into();
        // iperf3 writes them at either end; only the sending one has values.
        sender["max_snd_cwnd"] = end.extremes.cwnd_bytes.into();
        sender["max_snd_wnd"] = end.extremes.send_window.into();
        sender["reorder"] = end.info.as_ref().and_then(|info| info.reord_seen).map_or(-1, i64::from).into();
        sender["max_rtt"] = end.extremes.rtt_max_us.into();
        sender["min_rtt"] = end.extremes.rtt_min_us.into();
        sender["mean_rtt"] = end.extremes.rtt_mean_us.into();
    }
    for row in [&mut sender, &mut receiver] {
        row["socket"] = lane.socket.into();
        row["sender"] = lane.sends.into();
    }
    json!({ "sender": sender, "receiver": receiver })
}

fn put_loss(value: &mut Value, jitter_s: f64, lost: i64, packets: u64) {
    value["jitter_ms"] = (jitter_s * 1e3).into();
    value["lost_packets"] = lost.into();
    value["packets"] = packets.into();
    value["lost_percent"] = lost_percent(lost, packets).into();
}

/// What was sent, with the receiver's view of it.
fn udp_sum(sent: &StreamCount, received: &StreamCount, sends: bool) -> Value {
    let mut value = side_row(sent);
    put_loss(&mut value, received.jitter_s, received.lost, sent.packets.max(received.packets));
    value["sender"] = sends.into();
    value
}

fn udp_stream(lane: &Lane, end: &LaneEnd) -> Value {
    let mut row = udp_sum(&end.sent, &end.received, lane.sends);
    row["socket"] = lane.socket.into();
    row["out_of_order"] = end.received.out_of_order.into();
    json!({ "udp": row })
}

#[cfg(test)]
mod tests {
    use super::http_date;

    #[test]
    fn dates_are_those_of_http() {
        assert_eq!(http_date(0), "Thu, 01 Jan 1970 00:00:00 GMT");
        assert_eq!(http_date(951_782_400), "Tue, 29 Feb 2000 00:00:00 GMT");
        assert_eq!(http_date(1_795_264_577), "Sat, 21 Nov 2026 12:36:17 GMT");
    }
}
