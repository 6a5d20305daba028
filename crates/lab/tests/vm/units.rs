//! The units of a watch under a real systemd: the operator as a service with a user of its own, agents on two
//! hosts that dial it. The commands are those of the guide.

use std::fs::File;
use std::process::{Command, Stdio};

use linerate_testkit::run;

use crate::persistence::{SERVERS, check, servers};
use crate::{Scene, wait_for};

/// The one with the watch.
const OPERATOR: &str = SERVERS[0];
const OTHER: &str = SERVERS[1];
/// Where agents dial.
const PORT: u16 = 9442;
/// Where the watch shows metrics.
const METRICS: u16 = 9441;

/// Puts the operator's program on a guest, without what only debuggers read.
fn bring(scene: &Scene) {
    let light = scene.lab.folder().join("linerate");
    let from = scene.programs.linerate.to_str().unwrap();
    run("strip", &["-o", light.to_str().unwrap(), from]);
    let into = "mkdir -p /usr/local/bin; cat >/usr/local/bin/linerate; chmod 755 /usr/local/bin/linerate";
    let status = Command::new("ssh")
        .arg("-F")
        .arg(scene.lab.folder().join("ssh/config"))
        .args(["-T", "-o", "BatchMode=yes", "--", OPERATOR, into])
        .stdin(Stdio::from(File::open(light).unwrap()))
        .status()
        .unwrap();
    assert!(status.success(), "{status}");
}

/// Inventory, keys, user and unit of the watch.
fn begin_watch(scene: &Scene) {
    let address = |guest: &str| scene.lab.guest(guest).unwrap().address.to_string();
    let host = |guest: &str| {
        let address = address(guest);
        format!("[[host]]\nname = \"{guest}\"\n[[host.endpoint]]\naddress = \"{address}\"\n")
    };
    let listen = address(OPERATOR);
    let hosts: String = SERVERS.iter().map(|guest| host(guest)).collect();
    let inventory = format!(
        "name = \"two\"\n{hosts}[agents]\nlisten = [\"{listen}:{PORT}\"]\nkeys = \"/etc/linerate/agents\"\n"
    );
    scene.sh(OPERATOR, &format!("mkdir -p /etc/linerate; echo '{inventory}' >/etc/linerate/cluster.toml"));
    let words = format!(
        "linerate watch --make-keys -i /etc/linerate/cluster.toml
         mkdir -p /etc/sysusers.d
         linerate watch --print sysusers >/etc/sysusers.d/linerate-watch.conf
         systemd-sysusers
         linerate watch -i /etc/linerate/cluster.toml --metrics 127.0.0.1:{METRICS} --print unit >/etc/systemd/system/linerate-watch.service
         systemd-analyze verify --man=no linerate-watch.service
         chown -R linerate /etc/linerate/agents
         systemctl daemon-reload
         systemctl -q enable --now linerate-watch"
    );
    scene.sh(OPERATOR, &words);
}

/// File and unit of an agent.
fn begin_agent(scene: &Scene, guest: &str) {
    let file = scene.sh(OPERATOR, &format!("cat /etc/linerate/agents/{guest}.toml"));
    let unit = scene.sh(OPERATOR, "linerate watch --print agent-unit");
    let words = format!(
        "umask 077
         mkdir -p /etc/linerate
         echo '{file}' >/etc/linerate/agent.toml
         echo '{unit}' >/etc/systemd/system/linerate-agent.service
         systemd-analyze verify --man=no linerate-agent.service
         systemctl daemon-reload
         systemctl -q enable --now linerate-agent"
    );
    scene.sh(guest, &words);
}

/// Until the journal of the watch has these words.
fn until(scene: &Scene, words: &str) {
    let journal = || scene.sh(OPERATOR, "journalctl -q -o cat -u linerate-watch");
    wait_for(words, journal, |log| log.contains(words));
}

/// Until the metrics of the watch name both as watched.
fn both_are_watched(scene: &Scene) {
    let ask = format!(
        "exec 3<>/dev/tcp/127.0.0.1/{METRICS}; printf 'GET /metrics HTTP/1.0\\r\\nHost: localhost\\r\\n\\r\\n' >&3; \
         cat <&3 | grep '^linerate_host_watched{{' || true"
    );
    let metrics = || scene.sh(OPERATOR, &ask);
    wait_for("both are watched", metrics, |lines| {
        lines.lines().filter(|line| line.ends_with(" 1")).count() == 2
    });
}

#[test]
fn a_watch_and_its_agents_run_as_services() {
    let Some(scene) = Scene::of("a_watch_and_its_agents_run_as_services", &servers()) else { return };
    for guest in SERVERS {
        assert_eq!(scene.exec(guest, &["systemctl", "is-system-running", "--wait"]), "running\n");
    }
    bring(&scene);
    check(&scene, &SERVERS, &["install"]);
    begin_watch(&scene);
    for guest in SERVERS {
        begin_agent(&scene, guest);
    }
    both_are_watched(&scene);

    scene.sh(OTHER, "sysctl -q net.ipv4.tcp_sack=0");
    until(&scene, "net.ipv4.tcp_sack");
    scene.sh(OTHER, "systemctl restart linerate-agent");
    until(&scene, &format!("{OTHER}: watched again after"));
    both_are_watched(&scene);

    let of_watch = "systemctl show linerate-watch -p User --value; stat -c '%U %a' /var/lib/linerate-watch; \
                    systemctl is-failed linerate-watch linerate-agent || true";
    assert_eq!(scene.sh(OPERATOR, of_watch), "linerate\nlinerate 700\nactive\nactive\n");
    let end = format!(
        "systemctl stop linerate-watch; systemctl show linerate-watch -p Result --value; ss -Hltn 'sport = :{PORT}'"
    );
    assert_eq!(scene.sh(OPERATOR, &end), "success\n", "it listens on nothing any more");
}
