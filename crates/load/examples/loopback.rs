//! Both ends of one TCP load on the loopback of this machine, to measure the cost of the load itself.
//!
//! What comes in: number of streams and milliseconds as arguments. What goes out: one line of JSON. It is not
//! part of the product and measures nothing but itself:
//! `cargo run --release -p linerate-load --example loopback -- 1 3000`.
#![allow(clippy::print_stdout)]

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::mpsc;
use std::sync::{Arc, atomic::AtomicBool};
use std::time::Duration;

use linerate_load::{LoadControl, run};
use linerate_model::kind::TcpPlan;
use linerate_model::load::{LoadSpec, Role};

const LOCALHOST: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

fn main() {
    let argument = |at| std::env::args().nth(at).and_then(|text| text.parse().ok());
    let (streams, duration_ms) = (argument(1).unwrap_or(1_u32), argument(2).unwrap_or(1000));
    let end = |role| LoadSpec {
        kind: TcpPlan { streams: streams as u16, duration_ms }.into(),
        role,
        bind: LOCALHOST,
        netns: None,
        token: [42; 16],
        deadline_ms: 3 * duration_ms + 5000,
        same_host: false,
        tuning: Box::default(),
    };
    let (port_out, port_in) = mpsc::channel();
    let listening = Box::new(move |port| port_out.send(port).unwrap_or_default());
    let control = LoadControl { stop: Arc::new(AtomicBool::new(false)), listening };
    let receiving = end(Role::Receiver);
    let receiver = std::thread::spawn(move || run(&receiving, &control));
    let Ok(port) = port_in.recv_timeout(Duration::from_secs(10)) else {
        println!("{{\"stopped\":\"the receiver does not listen\"}}");
        return;
    };
    let control = LoadControl { stop: Arc::new(AtomicBool::new(false)), listening: Box::new(|_| {}) };
    let sent = run(&end(Role::Sender { peer: SocketAddr::new(LOCALHOST, port) }), &control);
    let Ok(received) = receiver.join() else { return };
    let gigabytes = received.bytes as f64 / 1e9;
    println!(
        "{{\"gbps\":{:.2},\"tx_cpu_s_per_gb\":{:.4},\"rx_cpu_s_per_gb\":{:.4},\"wait_s\":{:.3},\"bytes\":{},\
         \"points\":{},\"retransmits\":{},\"stopped\":\"{}\"}}",
        gigabytes * 8.0 / received.elapsed_s.max(1e-9),
        sent.cpu_s / gigabytes.max(1e-9),
        received.cpu_s / gigabytes.max(1e-9),
        sent.wait_s + received.wait_s,
        received.bytes,
        sent.series.len(),
        sent.tcp.map_or(0, |end| end.retransmits),
        sent.stopped.or(received.stopped).unwrap_or_default(),
    );
}
