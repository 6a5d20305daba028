//! A watch of clusters as large as they come, on simulated nodes in virtual time: every host is watched, no
//! host is blamed, and what the operator needs is printed. `LINERATE_SCALE_NODES` sets the size
//! (`cargo xtask scale`).

use std::sync::Arc;
use std::time::Duration;

use linerate_fleet::simulated::{self, SimulatedFleet};
use linerate_model::watch::WatchEvent;
use linerate_testkit::cost::{cpu_s, memory_mb};
use tokio::time::{Instant, timeout_at};

use super::{Output, Watch};

/// Hosts of the test; a scale run sets more.
const NODES: usize = 300;
/// Time that is watched once all hosts are, of the virtual clock.
const TIME: Duration = Duration::from_secs(120);

/// Set for the program of its own that watches: its history is not the user's, its memory is its own.
const ALONE: &str = "LINERATE_TEST_ALONE";

#[test]
fn many_hosts_are_watched_and_none_is_blamed() {
    if std::env::var_os(ALONE).is_some() {
        return watch();
    }
    let folder = tempfile::tempdir().unwrap();
    let name = "watch::scale_tests::many_hosts_are_watched_and_none_is_blamed";
    let status = std::process::Command::new(std::env::current_exe().unwrap())
        .args([name, "--exact", "--nocapture"])
        .env(ALONE, "1")
        .env("LINERATE_DATA", folder.path())
        .env("LINERATE_STORE", "sqlite")
        .status()
        .unwrap();
    assert!(status.success(), "{status}");
}

fn watch() {
    let nodes = std::env::var("LINERATE_SCALE_NODES").ok().and_then(|n| n.parse().ok()).unwrap_or(NODES);
    let inventory = simulated::inventory(nodes);
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let world = SimulatedFleet::healthy(nodes, 3);
        let mut watch = Watch::begin(&Arc::new(world.open().await), &inventory).unwrap();
        let mut watched = 0;
        while watched < nodes {
            for output in watch.next().await {
                let Output::Event(event) = output else { continue };
                assert!(matches!(*event, WatchEvent::Watched { .. }), "{event:?}");
                watched += 1;
            }
        }
        println!("{nodes} simulated hosts are watched: {:.2} s of CPU so far", cpu_s());
        let (before_s, of_nodes_s) = (cpu_s(), world.spent().as_secs_f64());
        let end = Instant::now() + TIME;
        while let Ok(outputs) = timeout_at(end, watch.next()).await {
            for output in outputs {
                if let Output::Event(event) = output {
                    panic!("nothing happens in this cluster: {event:?}");
                }
            }
        }
        let all_s = cpu_s() - before_s;
        let own_s = all_s - (world.spent().as_secs_f64() - of_nodes_s);
        println!(
            "{:.0} s: {all_s:.2} s of CPU, {own_s:.2} of them of the operator: {:.1} % of a core; peak {} MB",
            TIME.as_secs_f64(),
            own_s * 100.0 / TIME.as_secs_f64(),
            memory_mb("VmHWM:")
        );
        assert!(watch.totals().probes > 0);
    });
}
