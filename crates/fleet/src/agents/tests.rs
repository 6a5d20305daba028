//! Agents over real connections on the loopback, with nodes in memory: who comes in, which of two sessions of
//! a host counts, and what the folder of keys has to be.
#![allow(clippy::unwrap_used)]

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use linerate_model::inventory::TransportSpec;
use linerate_wire::agent::AgentFile;
use linerate_wire::message::{Event, Hello, PROTOCOL};
use linerate_wire::sealed::{Caller, Sealed, SealedHandshake};
use linerate_wire::session::{NodeEvent, NodeSession};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::*;

/// A free port a moment ago, at an address that only one test uses.
fn free(last: u8) -> SocketAddr {
    std::net::TcpListener::bind((std::net::Ipv4Addr::new(127, 0, 9, last), 0)).unwrap().local_addr().unwrap()
}

fn inventory(keys: &Path, listen: SocketAddr, names: &[&str]) -> Inventory {
    let host = |name: &&str| Host {
        name: (*name).to_owned(),
        transport: TransportSpec::Local,
        groups: vec![],
        endpoints: vec![],
        state_dir: None,
        etc_dir: None,
        cache_dir: None,
    };
    Inventory {
        hosts: names.iter().map(host).collect(),
        agents: Some(AgentsSpec { listen: vec![listen], keys: keys.to_owned(), hosts: vec![] }),
        ..Inventory::default()
    }
}

fn file(keys: &Path, host: &str) -> AgentFile {
    AgentFile::parse(&std::fs::read_to_string(keys.join(format!("{host}.toml"))).unwrap()).unwrap()
}

/// Dials as an agent of this build does, and serves until the operator ends the session.
async fn agent(file: AgentFile, build: &str) {
    let mut stream = TcpStream::connect(file.operators[0]).await.unwrap();
    let mut handshake = SealedHandshake::dial_as(&file.key, &file.name).unwrap();
    stream.write_all(&handshake.take_output()).await.unwrap();
    let mut buffer = [0; 4096];
    let Sealed { mut sealer, mut opener } = loop {
        let count = stream.read(&mut buffer).await.unwrap();
        assert!(count > 0, "the operator does not know this key");
        if let Some(sealed) = handshake.received(&buffer[..count]).unwrap() {
            break sealed;
        }
    };
    let mut bytes = Vec::new();
    sealer.seal(&Caller { node: file.name, pid: 7 }.record(), &mut bytes).unwrap();
    let hello = Hello {
        protocol: PROTOCOL,
        version: "fake".into(),
        build: build.into(),
        facts: vec![],
        loads: vec![],
        root: false,
        wall_ms: None,
        boot_id: None,
    };
    let mut session = NodeSession::new(hello);
    let begun = Instant::now();
    loop {
        let now_ms = begun.elapsed().as_millis() as u64;
        session.tick(now_ms);
        while let Some(event) = session.poll_event() {
            match event {
                NodeEvent::Request { id, .. } => session.respond(now_ms, id, Event::Done),
                NodeEvent::OperatorLost { .. } => return,
            }
        }
        sealer.seal(&session.take_output(), &mut bytes).unwrap();
        if stream.write_all(&bytes).await.is_err() {
            return;
        }
        bytes.clear();
        // It has to send signs of life as well.
        let count = match timeout(Duration::from_millis(100), stream.read(&mut buffer)).await {
            Ok(Ok(count @ 1..)) => count,
            Ok(_) => return,
            Err(_) => continue,
        };
        opener.push(&buffer[..count]);
        while let Some(record) = opener.next_record().unwrap() {
            session.received(now_ms, &record);
        }
    }
}

fn run(body: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(body);
}

#[test]
fn the_last_session_of_a_host_counts_and_ends_the_one_before() {
    let folder = tempfile::tempdir().unwrap();
    let (keys, listen) = (folder.path().join("agents"), free(1));
    make_keys(&keys, &[listen], &["n1", "n2"]).unwrap();
    run(async {
        let agents = Agents::open(&inventory(&keys, listen, &["n1", "n2"])).await.unwrap().unwrap();
        let mut notes = agents.notes().unwrap();
        let first = tokio::spawn(agent(file(&keys, "n1"), linerate_wire::BUILD));
        let before = agents.next("n1").await;
        assert_eq!((before.host(), before.lost()), ("n1", None));
        tokio::spawn(agent(file(&keys, "n1"), "another-build"));
        let after = agents.next("n1").await;
        // Its end is the end of the first agent as well.
        first.await.unwrap();
        before.bye().await;
        let reason = before.lost().unwrap();
        assert!(reason.contains("its agent opened another session, from 127."), "{reason}");
        assert_eq!(after.lost(), None);
        let note = notes.recv().await.unwrap();
        assert!(note.contains("host n1: its agent is of the build another-build"), "{note}");
        assert!(note.contains(linerate_wire::BUILD) && note.contains("hint: "), "{note}");
        // One without another before it.
        tokio::spawn(agent(file(&keys, "n2"), linerate_wire::BUILD));
        assert_eq!(agents.next("n2").await.host(), "n2");
        drop(agents);
        // Tasks end when they are next run.
        tokio::task::yield_now().await;
        assert!(TcpStream::connect(listen).await.is_err(), "nothing listens when the watch is over");
    });
}

#[test]
fn a_stranger_is_noted_with_address_and_reason() {
    let folder = tempfile::tempdir().unwrap();
    let (keys, listen) = (folder.path().join("agents"), free(2));
    make_keys(&keys, &[listen], &["n1"]).unwrap();
    run(async {
        let agents = Agents::open(&inventory(&keys, listen, &["n1"])).await.unwrap().unwrap();
        let mut notes = agents.notes().unwrap();
        let mut stream = TcpStream::connect(listen).await.unwrap();
        let from = stream.local_addr().unwrap();
        stream.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
        let note = notes.recv().await.unwrap();
        assert!(note.starts_with("1 connections") && note.contains(&from.to_string()), "{note}");
    });
}

#[test]
fn one_watch_at_a_time_has_the_port() {
    let folder = tempfile::tempdir().unwrap();
    let keys = folder.path().join("agents");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let listen = taken.local_addr().unwrap();
    make_keys(&keys, &[listen], &["n1"]).unwrap();
    run(async {
        let error = Agents::open(&inventory(&keys, listen, &["n1"])).await.unwrap_err().to_string();
        assert!(
            error.contains(&listen.to_string()) && error.contains("hint: one watch at a time"),
            "{error}"
        );
        let none = Inventory { agents: None, ..inventory(&keys, listen, &["n1"]) };
        assert!(Agents::open(&none).await.unwrap().is_none());
    });
}

#[test]
fn keys_are_made_once_and_are_private() {
    let folder = tempfile::tempdir().unwrap();
    let (keys, listen) = (folder.path().join("agents"), free(3));
    let made = make_keys(&keys, &[listen], &["n1"]).unwrap();
    assert_eq!((made.new.len(), made.old.len(), made.unused.len()), (1, 0, 0));
    let before = file(&keys, "n1");
    let made = make_keys(&keys, &[listen], &["n1", "n2"]).unwrap();
    assert_eq!((made.new, made.old), (vec![keys.join("n2.toml")], vec![keys.join("n1.toml")]));
    assert_eq!(file(&keys, "n1"), before);
    assert_ne!(file(&keys, "n2").key, before.key);
    assert_eq!(make_keys(&keys, &[listen], &["n2"]).unwrap().unused, [keys.join("n1.toml")]);
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&keys), mode(&keys.join("n1.toml"))), (0o700, 0o600));
    for name in ["..", ".n1", "a/b", "a\nb", ""] {
        assert!(matches!(make_keys(&keys, &[listen], &[name]), Err(AgentKeysError::Name { .. })), "{name:?}");
    }
}

#[test]
fn keys_that_are_missing_readable_or_of_another_host_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (keys, listen) = (folder.path().join("agents"), free(4));
    make_keys(&keys, &[listen], &["n1", "n2"]).unwrap();
    let refused = |hosts: &[&str]| keys::read(&keys, hosts.iter().copied()).unwrap_err().to_string();
    let mode = |path: &Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    assert!(keys::read(&keys, ["n1", "n2"].into_iter()).is_ok());
    let words = refused(&["n1", "n3"]);
    assert!(words.contains("host n3: no key at ") && words.contains("--make-keys"), "{words}");
    mode(&keys.join("n1.toml"), 0o644);
    assert!(refused(&["n1"]).contains("mode 0644"));
    mode(&keys.join("n1.toml"), 0o600);
    mode(&keys, 0o755);
    assert!(refused(&["n1"]).contains("mode 0755"));
    mode(&keys, 0o700);
    // A copy under another name, and the same key under two names.
    let text = std::fs::read_to_string(keys.join("n1.toml")).unwrap();
    std::fs::write(keys.join("n2.toml"), &text).unwrap();
    assert!(refused(&["n1", "n2"]).contains("it is the file of host n1, not of n2"));
    std::fs::write(keys.join("n2.toml"), text.replace("\"n1\"", "\"n2\"")).unwrap();
    assert!(refused(&["n1", "n2"]).contains("it has the key of another host"));
    std::fs::write(keys.join("n2.toml"), text.replace("key = \"", "key = \"0")).unwrap();
    let words = refused(&["n2"]);
    assert!(words.contains("n2.toml: line 4: key is not 96 hexadecimal digits"), "{words}");
}
