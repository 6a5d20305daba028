//! A test of a survey against a plain iperf3 server: both ends' reports from one client.
//!
//! What comes in: a spec. What goes out: this end's report with the server's in `far`, always: what went
//! wrong stands in `stopped`. Of the server is known what its results say, and nothing else.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use linerate_iperf3::ask::{self, ClientSpec, Nobody};
use linerate_iperf3::parameters::{DataDirection, Iperf3Protocol};
use linerate_iperf3::record::{RecordInterval, StreamCount, TestRecord};
use linerate_load::{INTERVAL, LoadError};
use linerate_model::iperf3::{Iperf3Spec, NAME};
use linerate_model::kind::{TcpPlan, UdpPlan};
use linerate_model::load::{Interval, LoadReport, TcpEnd, UdpEnd};

/// A server closes and opens its listener between tests: it is asked again for so long.
const PATIENCE: Duration = Duration::from_millis(1500);

/// Makes the whole test on threads of its own, in the namespace that the spec names. Returns when it is over,
/// at `deadline_ms`, or soon after `stop` was set. The report has the server's in `far`.
pub(crate) fn run(spec: &Iperf3Spec, stop: &AtomicBool) -> LoadReport {
    linerate_load::run_external(NAME, || test(spec, stop))
}

fn test(spec: &Iperf3Spec, stop: &AtomicBool) -> LoadReport {
    let deadline = Instant::now() + Duration::from_millis(spec.deadline_ms.into());
    let stopped = |error: LoadError| LoadReport { stopped: Some(error.to_string()), ..LoadReport::default() };
    let client = match client(spec) {
        Ok(client) => client,
        Err(error) => return stopped(error),
    };
    if let Some(place) = &spec.netns
        && let Err(error) = linerate_load::enter(place)
    {
        return stopped(error);
    }
    let is_over = || stop.load(Ordering::Relaxed) || Instant::now() >= deadline;
    let record = ask::run(&client, &is_over, &mut Nobody);
    let mut report = reports(&record, spec.sends);
    if report.stopped.is_some() && Instant::now() >= deadline {
        let limit_ms = spec.deadline_ms;
        report.stopped =
            Some(LoadError::Deadline { what: "testing against an iperf3 server", limit_ms }.to_string());
    }
    report
}

fn client(spec: &Iperf3Spec) -> Result<ClientSpec, LoadError> {
    if spec.peer.is_ipv4() != spec.bind.is_ipv4() {
        return Err(LoadError::Family { bind: spec.bind, peer: spec.peer });
    }
    let mut client = ClientSpec::new(&spec.peer.ip().to_string());
    client.port = spec.peer.port();
    client.bind = Some(spec.bind);
    client.interval = INTERVAL;
    client.patience = PATIENCE;
    let parameters = &mut client.parameters;
    parameters.direction = if spec.sends { DataDirection::Forward } else { DataDirection::Reverse };
    let duration_ms = if let Some(tcp) = spec.kind.get::<TcpPlan>() {
        parameters.parallel = tcp.streams.into();
        tcp.duration_ms
    } else if let Some(udp) = spec.kind.get::<UdpPlan>() {
        parameters.protocol = Iperf3Protocol::Udp;
        // A rate of 0 would mean "as fast as it goes".
        parameters.rate_bps = (udp.rate_bps as u64).max(1);
        parameters.len = Some(udp.payload_bytes.into());
        udp.duration_ms
    } else {
        return Err(LoadError::Unknown { name: "a test of this kind against an iperf3 server" });
    };
    parameters.time_s = duration_ms.div_ceil(1000).max(1);
    client.time = Some(Duration::from_millis(duration_ms.into()));
    Ok(client)
}

/// This end's report, with the other's in `far`.
fn reports(record: &TestRecord, sends: bool) -> LoadReport {
    let (sent, received) = record.sums(sends);
    let (own, theirs) = if sends { (sent, received) } else { (received, sent) };
    let mut near = report(record, &own, sends);
    near.cpu_s = record.costs.running.as_secs_f64();
    near.wait_s = record.costs.waiting.as_secs_f64();
    near.series = series(record, sends);
    near.tcp = (sends && !record.is_udp()).then(|| tcp_end(record));
    near.stopped.clone_from(&record.error);
    let mut far = report(record, &theirs, !sends);
    far.cpu_s = record.cpu_percent_remote[0] / 100.0 * theirs.seconds;
    near.far = Some(Box::new(far));
    near
}

fn report(record: &TestRecord, side: &StreamCount, sends: bool) -> LoadReport {
    let arrived = side.packets.saturating_sub(u64::try_from(side.lost).unwrap_or(0));
    let udp = record.is_udp().then_some(UdpEnd {
        datagrams: if sends { side.packets } else { arrived },
        reordered: side.out_of_order,
        duplicates: 0,
        kernel_drops: None,
    });
    LoadReport { bytes: side.bytes, elapsed_s: side.seconds, udp, ..LoadReport::default() }
}

fn series(record: &TestRecord, sends: bool) -> Vec<Interval> {
    let point = |interval: &RecordInterval| {
        let width_s = interval.end_s - interval.start_s;
        let bytes: u64 = interval.streams.iter().map(|s| s.acknowledged.unwrap_or(s.bytes)).sum();
        let first = interval.streams.first().and_then(|stream| stream.tcp).filter(|_| sends);
        let retransmits = interval.streams.iter().filter_map(|s| s.tcp).map(|tcp| tcp.retransmits).sum();
        Interval {
            at_ms: interval.end_s * 1e3,
            throughput_bps: if width_s > 0.0 { bytes as f64 * 8.0 / width_s } else { 0.0 },
            rtt_us: first.map_or(0.0, |tcp| tcp.rtt_us.into()),
            retransmits,
            cwnd: first.map_or(0, |tcp| tcp.cwnd),
            ..Interval::default()
        }
    };
    record.intervals.iter().map(point).collect()
}

fn tcp_end(record: &TestRecord) -> TcpEnd {
    let mut end = TcpEnd::default();
    for info in record.ends.iter().filter_map(|end| end.info) {
        let rtt_min_us = info.min_rtt_us.unwrap_or(info.rtt_us).into();
        end.rtt_min_us = if end.rtt_min_us > 0.0 { end.rtt_min_us.min(rtt_min_us) } else { rtt_min_us };
        end.retransmits += u64::from(info.total_retrans);
        end.busy_us += info.busy_time_us.unwrap_or(0);
        end.rwnd_limited_us += info.rwnd_limited_us.unwrap_or(0);
        end.sndbuf_limited_us += info.sndbuf_limited_us.unwrap_or(0);
        end.reord_seen += u64::from(info.reord_seen.unwrap_or(0));
        end.dsack_dups += u64::from(info.dsack_dups.unwrap_or(0));
        end.mss = info.snd_mss;
        end.wscale = info.window_scale.unwrap_or((0, 0));
        end.unacked_bytes_max = end.unacked_bytes_max.max(info.in_flight_bytes());
        end.snd_wnd_max = end.snd_wnd_max.max(info.snd_wnd.unwrap_or(0).into());
    }
    end.congestion = record.congestion.clone().unwrap_or_default();
    end.sndbuf_bytes = record.buffers.0;
    end
}
