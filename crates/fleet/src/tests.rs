//! Conformance of every transport and of the sessions behind it: a member of the list needs no test code of
//! its own.

use std::path::Path;
use std::time::Duration;

use linerate_model::inventory::{SshSpec, TransportSpec};
use linerate_wire::message::{Event, ObserveRequest};

use super::open::start;
use super::programs::NodePrograms;
use super::transports::TRANSPORTS;
use super::*;
use crate::fake_node;

/// Far above what an answer takes.
const PATIENCE: Duration = Duration::from_secs(180);

/// One host per transport of the list.
fn hosts() -> Vec<Host> {
    let specs = [
        TransportSpec::Local,
        TransportSpec::Netns { path: "/proc/self/ns/net".into() },
        TransportSpec::Ssh(SshSpec { sudo: false, ..SshSpec::parse("lab").unwrap() }),
    ];
    // A step of Slurm needs a cluster: the test `slurm` of the lab. It is last in the list.
    assert_eq!(specs.len() + 1, TRANSPORTS.len(), "a new transport needs a host here");
    specs
        .into_iter()
        .map(|transport| Host {
            name: transport.kind().to_string(),
            transport,
            groups: vec![],
            endpoints: vec![],
            state_dir: None,
            etc_dir: None,
            cache_dir: None,
        })
        .collect()
}

/// Runs `check` with a link to a node of this behaviour over every transport.
fn over_every_transport(behaviour: &str, check: impl AsyncFn(Result<NodeLink, LinkError>)) {
    let folder = tempfile::tempdir().unwrap();
    let programs = NodePrograms::only(fake_node::program(folder.path(), behaviour));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    for host in hosts() {
        if matches!(host.transport, TransportSpec::Ssh(_))
            && let Err(reason) = ssh::test_sshd::use_in_this_thread(folder.path())
        {
            println!("SKIPPED the transport ssh with a node that is {behaviour}: {reason}");
            continue;
        }
        runtime.block_on(async { check(start(&host, &programs, 0).await).await });
    }
}

fn facts() -> ObserveRequest {
    ObserveRequest::Facts { prefixes: vec![], netns: vec![] }
}

#[test]
fn a_healthy_node_says_hello_answers_and_leaves() {
    over_every_transport("healthy", async |link| {
        let link = link.unwrap();
        assert_eq!(link.hello().version, "fake");
        let events = link.request(facts(), PATIENCE).await.unwrap();
        assert!(matches!(events.as_slice(), [Event::Facts(_), Event::Done]), "{events:?}");
        let pid = link.pid();
        link.bye().await;
        assert!(!Path::new(&format!("/proc/{pid}")).exists(), "the node is reaped");
    });
}

#[test]
fn a_slow_peer_is_waited_for() {
    over_every_transport("slow", async |link| {
        let link = link.unwrap();
        link.request(facts(), PATIENCE).await.unwrap();
        link.bye().await;
    });
}

#[test]
fn a_frame_of_100_mb_is_refused() {
    over_every_transport("huge", async |link| {
        // The hello may have been seen before the frame was.
        let error = match link {
            Ok(link) => link.request(facts(), PATIENCE).await.unwrap_err(),
            Err(error) => error,
        };
        let LinkError::Lost { reason, .. } = &error else { panic!("{error}") };
        assert!(reason.contains("100000000"), "{reason}");
    });
}

#[test]
fn a_killed_peer_is_noticed_at_once() {
    over_every_transport("healthy", async |link| {
        let link = link.unwrap();
        let killed =
            std::process::Command::new("kill").args(["-9", &link.pid().to_string()]).status().unwrap();
        assert!(killed.success());
        let error = link.request(facts(), PATIENCE).await.unwrap_err();
        assert!(matches!(error, LinkError::Lost { .. }), "{error}");
        // By its end, not by its silence, which is noticed later.
        assert!(error.to_string().contains("signal: 9"), "{error}");
        assert!(link.lost().is_some());
    });
}

#[test]
fn a_lost_stdout_ends_the_session_though_the_program_lives() {
    over_every_transport("mute", async |link| {
        let error = match link {
            Ok(link) => link.request(facts(), PATIENCE).await.unwrap_err(),
            Err(error) => error,
        };
        assert!(matches!(error, LinkError::Lost { .. }), "{error}");
    });
}

#[test]
fn a_peer_that_falls_silent_is_given_up() {
    over_every_transport("silent", async |link| {
        let link = link.unwrap();
        let error = link.request(facts(), PATIENCE).await.unwrap_err();
        assert!(matches!(&error, LinkError::Lost { .. }), "{error}");
        assert!(error.to_string().contains("no data for"), "{error}");
    });
}

#[test]
fn a_program_that_is_no_node_is_quoted() {
    over_every_transport("crash", async |link| {
        let error = link.unwrap_err().to_string();
        assert!(error.contains("cannot enter the namespace"), "{error}");
        assert!(error.contains("exit status: 7"), "{error}");
    });
    over_every_transport("garbage", async |link| {
        assert!(link.unwrap_err().to_string().contains("login banner"));
    });
}

#[test]
fn a_program_that_is_not_there_is_a_reason() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let host = hosts().remove(0);
    let programs = NodePrograms::only("/nonexistent/node".into());
    let error = runtime.block_on(start(&host, &programs, 0)).unwrap_err();
    assert!(error.to_string().contains("/nonexistent/node"), "{error}");
}
