//! Places on recorded trees of every engine, real processes in namespaces of their own, and no panic on any
//! content.

use std::fs;
use std::io::Read as _;
use std::process::{Command, Stdio};

use proptest::prelude::*;

use super::*;

/// A tree with a container of each engine. Processes 11 to 15 are there.
fn tree() -> tempfile::TempDir {
    let tree = tempfile::tempdir().unwrap();
    let put = |path: &str, text: &str| {
        let path = tree.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    let docker = |id: &str, name: &str, running: bool, pid: u32| {
        let config = format!(
            r#"{{"ID":"{id}","Name":"/{name}","Config":{{"Env":["SECRET=x"]}},"State":{{"Running":{running},"Pid":{pid}}}}}"#
        );
        put(&format!("srv/docker/containers/{id}/config.v2.json"), &config);
    };
    put("etc/docker/daemon.json", r#"{"data-root":"/srv/docker/"}"#);
    docker("aaaaaaaaaaaa1111", "web", true, 11);
    docker("bbbbbbbbbbbb2222", "old", false, 0);
    let podman = "containers/storage/overlay-containers";
    put(
        &format!("var/lib/{podman}/containers.json"),
        r#"[{"id":"cccc3333","names":["db"]},{"id":"dddd4444","names":["gone"]},{"id":"../x","names":["evil"]}]"#,
    );
    put(&format!("run/{podman}/cccc3333/userdata/pidfile"), "12");
    put(&format!("run/{podman}/dddd4444/userdata/pidfile"), "999");
    let task = "run/containerd/io.containerd.runtime.v2.task/k8s.io";
    put(&format!("{task}/eeee5555/init.pid"), "13\n");
    put(
        &format!("{task}/eeee5555/config.json"),
        r#"{"annotations":{"io.kubernetes.cri.container-type":"sandbox","io.kubernetes.cri.sandbox-name":"nginx-1",
            "io.kubernetes.cri.sandbox-namespace":"default"}}"#,
    );
    put(&format!("{task}/ffff6666/init.pid"), "14");
    put(
        &format!("{task}/ffff6666/config.json"),
        r#"{"annotations":{"io.kubernetes.cri.container-type":"container","io.kubernetes.cri.sandbox-name":"nginx-1",
            "io.kubernetes.cri.container-name":"side"}}"#,
    );
    put("proc/15/cgroup", "0::/lxc.payload.box/init.scope\n");
    put("run/netns/blue", "");
    put("run/docker/netns/ingress_sbox", "");
    let links: Vec<String> = (11..=15).map(|pid| format!(r#""/proc/{pid}/ns/net":"net:[1]""#)).collect();
    put("linerate/files.json", &format!(r#"{{"links":{{{}}}}}"#, links.join(",")));
    tree
}

#[test]
fn containers_of_every_engine_are_found_by_name_and_id() {
    let tree = tree();
    let root = Root::recorded(tree.path());
    for (place, pid) in [
        ("container:web", 11),
        ("container:aaaaaaaaaaaa", 11),
        ("container:db", 12),
        ("container:nginx-1", 13),
        ("container:default/nginx-1", 13),
        ("container:nginx-1/side", 14),
        ("container:box", 15),
        ("pid:12", 12),
    ] {
        let path = PathBuf::from(format!("/proc/{pid}/ns/net"));
        assert_eq!(resolve(&root, Path::new(place)).unwrap(), path, "{place}");
    }
    for (place, path) in [
        ("blue", "/run/netns/blue"),
        ("netns:blue", "/run/netns/blue"),
        ("ingress_sbox", "/run/docker/netns/ingress_sbox"),
        ("netns:/run/docker/netns/x", "/run/docker/netns/x"),
        ("/proc/17/fd/9", "/proc/17/fd/9"),
    ] {
        assert_eq!(resolve(&root, Path::new(place)).unwrap(), Path::new(path), "{place}");
    }
}

#[test]
fn what_is_not_there_is_told_with_what_is() {
    let tree = tree();
    let root = Root::recorded(tree.path());
    for (place, parts) in [
        (
            "container:wbe",
            &["no container is called `wbe`", "running are: box, db, default/nginx-1, nginx-1/side, web"][..],
        ),
        ("container:old", &["container `old` does not run"]),
        ("container:gone", &["container `gone` does not run"]),
        ("container:../x", &["no container is called"]),
        ("pid:99", &["no process has the id 99"]),
        ("pid:1;2", &["is no process id"]),
        ("pid:", &["is no process id"]),
        ("green", &["no namespace is called `green`; there are: blue, ingress_sbox"]),
    ] {
        let why = resolve(&root, Path::new(place)).unwrap_err().to_string();
        assert!(parts.iter().all(|part| why.contains(part)), "{place}: {why}");
    }
    let empty = tempfile::tempdir().unwrap();
    let why = resolve(&Root::recorded(empty.path()), Path::new("container:web")).unwrap_err().to_string();
    assert!(why.contains("running are none (looked at docker, podman, containerd, control groups)"), "{why}");
}

/// A real process in a namespace of its own: `pid:N` leads to it, and to nothing after its end.
#[test]
fn a_real_process_is_entered_by_its_id() {
    let test = "a_real_process_is_entered_by_its_id";
    let child = Command::new("unshare")
        .args(["--net", "sh", "-c", "echo ready; exec cat"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    let Ok(mut child) = child else { return println!("SKIPPED {test}: no unshare here") };
    let mut ready = [0; 6];
    let begun = child.stdout.as_mut().unwrap().read_exact(&mut ready).is_ok();
    let place = PathBuf::from(format!("pid:{}", child.id()));
    let found = resolve(&Root::live(), &place);
    let theirs = std::fs::read_link(format!("/proc/{}/ns/net", child.id()));
    let entered = found.ok().map(|path| {
        std::thread::spawn(move || {
            crate::netns::enter(&path).map(|()| std::fs::read_link("/proc/thread-self/ns/net").unwrap())
        })
        .join()
        .unwrap()
    });
    drop(child.stdin.take());
    child.wait().unwrap();
    if !begun {
        return println!("SKIPPED {test}: no right to make a network namespace");
    }
    assert_eq!(entered.unwrap().unwrap(), theirs.unwrap());
    let why = resolve(&Root::live(), &place);
    assert!(matches!(why, Err(PlaceError::NoProcess(_))), "{why:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_content_and_no_name_makes_it_panic(name in "\\PC{0,40}", content in "\\PC{0,200}", which in 0..5_usize) {
        let tree = tree();
        let files = [
            "etc/docker/daemon.json",
            "srv/docker/containers/aaaaaaaaaaaa1111/config.v2.json",
            "var/lib/containers/storage/overlay-containers/containers.json",
            "run/containerd/io.containerd.runtime.v2.task/k8s.io/eeee5555/config.json",
            "proc/15/cgroup",
        ];
        fs::write(tree.path().join(files[which]), content).unwrap();
        let root = Root::recorded(tree.path());
        for kind in ["", "pid:", "container:", "netns:"] {
            let _ = resolve(&root, Path::new(&format!("{kind}{name}")));
        }
        let _ = resolve(&root, Path::new("container:web"));
    }
}
