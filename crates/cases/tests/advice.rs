//! The advice on buffers, retransmissions and drop counters beside the findings, by small cases.
#![allow(clippy::unwrap_used)]

use linerate_knowledge::Knowledge;

use linerate_cases as case;
use linerate_model::advice::{Advice, Advised, Reason};

fn advised(facts: &str, sample: &str) -> Vec<Advice> {
    let text = format!(
        "title = \"x\"\n[[host]]\nname = \"a\"\nlink_mbit = 10000\n[[host]]\nname = \"b\"\nlink_mbit = 10000\n\
         [facts.\"*\"]\n\"nic.eth0.addresses\" = \"192.0.2.*\"\n{facts}\n[[sample]]\nfrom = \"a\"\nto = \"b\"\n{sample}\n"
    );
    let case = case::parse("x.toml", &text).unwrap();
    case::diagnose(&case, &Knowledge::builtin().unwrap()).advice
}

const USUAL: &str = "\"sysctl.net.ipv4.tcp_rmem\" = \"4096 131072 6291456\"\n\"sysctl.net.ipv4.tcp_wmem\" = \"4096 16384 4194304\"";

#[test]
fn buffers_that_are_large_enough_are_left_alone() {
    let advice = advised(USUAL, "throughput_mbit = 5000\nrtt_loaded_us = 210");
    assert_eq!((advice[0].advised, advice[0].about.as_str()), (Advised::Leave, "tcp buffers"));
    let Some(Reason::Buffers(window, _)) = &advice[0].reason else { panic!("{advice:?}") };
    assert!(
        (window.needed_bytes - 247e3).abs() < 1e3 && (window.allowed_bytes - 3_145_728.0).abs() < 1.0,
        "{window:?}"
    );
    assert!((window.link_bps / 1e10 - 0.94).abs() < 0.01, "{window:?}");
}

#[test]
fn a_window_that_binds_asks_for_what_the_path_needs() {
    // 3.1 MB over 20 ms are 1.26 Gbit/s.
    let advice = advised(USUAL, "throughput_mbit = 1200\nrtt_loaded_us = 20000");
    assert_eq!(advice[0].advised, Advised::Change, "{advice:?}");
    // 10 Gbit/s over 20 ms are 23.5 MB; half of tcp_rmem becomes window; the next power of two of one and
    // a half times that.
    assert!(
        advice[0].settings.contains(&"b net.ipv4.tcp_rmem = 4096 131072 134217728".to_owned()),
        "{advice:?}"
    );
    assert!(
        advice[0].settings.contains(&"a net.ipv4.tcp_wmem = 4096 16384 67108864".to_owned()),
        "{advice:?}"
    );
}

#[test]
fn a_small_window_that_does_not_bind_is_not_the_first_thing_to_change() {
    let advice = advised(USUAL, "throughput_mbit = 100\nrtt_loaded_us = 20000");
    assert_eq!(advice[0].advised, Advised::Measure, "{advice:?}");
}

#[test]
fn retransmits_at_the_ceiling_and_drops_without_loss_are_left_alone() {
    let sample = "throughput_mbit = 9400\nretransmits_per_s = 30";
    let advice = advised("", sample);
    assert!(
        matches!(advice[0].reason, Some(Reason::Retransmits { share, .. }) if share > 0.99),
        "{advice:?}"
    );
    let sample =
        "throughput_mbit = 9400\nretransmits_per_s = 1\nrx_counters = { \"nic.eth0.stat.rx_dropped\" = 40 }";
    let advice = advised("", sample);
    assert_eq!((advice.len(), advice[0].about.as_str()), (1, "drop counters"), "{advice:?}");
}
