//! Running containers, from the files of their engines. In: a root. Out: names and the id of the first
//! process of each. Nothing else of those files is kept: they contain secrets.

use serde_json::Value;

use super::PlaceError;
use crate::root::{ReadError, Root};

/// Most containers read per engine.
const CONTAINERS_MAX: usize = 4096;
/// Fewest characters of an id that mean it.
const ID_MIN: usize = 8;

/// A container.
#[derive(Debug, Default)]
struct Container {
    names: Vec<String>,
    id: String,
    /// Of its first process; `None` when it does not run.
    pid: Option<u32>,
}

impl Container {
    fn is_called(&self, name: &str) -> bool {
        let by_id = name.len() >= ID_MIN && self.id.starts_with(name);
        by_id || self.names.iter().any(|own| own == name)
    }

    fn shown(&self) -> String {
        self.names.first().unwrap_or(&self.id).clone()
    }
}

/// Containers found, and folders that could not be read.
#[derive(Default)]
struct Found {
    containers: Vec<Container>,
    denied: Vec<&'static str>,
}

/// A source of containers.
type Source = fn(&Root, &mut Found);

/// All of them, in the order in which they are believed. To add one: a function and a line.
const SOURCES: [(&str, Source); 4] =
    [("docker", docker), ("podman", podman), ("containerd", containerd), ("control groups", control_groups)];

/// The first process of the container of this name.
pub(super) fn find(root: &Root, name: &str) -> Result<u32, PlaceError> {
    let mut seen = Vec::new();
    let mut denied = Vec::new();
    for (_, source) in SOURCES {
        let mut found = Found::default();
        source(root, &mut found);
        denied.extend(found.denied);
        let fits: Vec<&Container> = found.containers.iter().filter(|c| c.is_called(name)).collect();
        let running: Vec<&Container> = fits.iter().copied().filter(|c| c.pid.is_some()).collect();
        if running.len() > 1 && running.iter().any(|c| c.pid != running[0].pid) {
            let ids = running.iter().map(|c| c.id.chars().take(12).collect()).collect();
            return Err(PlaceError::Several { name: name.to_owned(), ids });
        }
        if let Some(pid) = running.first().and_then(|c| c.pid) {
            return Ok(pid);
        }
        if let Some(stopped) = fits.first() {
            return Err(PlaceError::Stopped(stopped.shown()));
        }
        seen.extend(found.containers.iter().filter(|c| c.pid.is_some()).map(Container::shown));
    }
    seen.sort();
    seen.dedup();
    let engines = SOURCES.iter().map(|(engine, _)| *engine).collect();
    Err(PlaceError::NoContainer { name: name.to_owned(), running: seen, engines, denied })
}

/// Names in a folder; one that may not be read is added to `denied`.
fn list(root: &Root, folder: &str, what: &'static str, found: &mut Found) -> Vec<String> {
    match root.list(folder) {
        Ok(mut names) => {
            names.truncate(CONTAINERS_MAX);
            names
        }
        Err(ReadError::Denied) => {
            found.denied.push(what);
            Vec::new()
        }
        Err(_) => Vec::new(),
    }
}

fn json(root: &Root, path: &str) -> Option<Value> {
    serde_json::from_str(&root.read(path).ok()?).ok()
}

fn text(value: &Value, key: &str) -> Option<String> {
    value.get(key)?.as_str().map(str::to_owned)
}

fn pid_of(number: Option<u64>) -> Option<u32> {
    number.and_then(|pid| u32::try_from(pid).ok()).filter(|pid| *pid > 0)
}

/// `/var/lib/docker/containers/ID/config.v2.json`, or below the data root that the daemon was given.
fn docker(root: &Root, found: &mut Found) {
    let moved = json(root, "/etc/docker/daemon.json").and_then(|settings| text(&settings, "data-root"));
    let base = moved.unwrap_or_else(|| "/var/lib/docker".to_owned());
    let folder = format!("{}/containers", base.trim_end_matches('/'));
    for id in list(root, &folder, "docker's containers", found) {
        let Some(config) = json(root, &format!("{folder}/{id}/config.v2.json")) else { continue };
        let state = config.get("State");
        let running = state.and_then(|s| s.get("Running")).and_then(Value::as_bool) == Some(true);
        let pid = pid_of(state.and_then(|s| s.get("Pid")).and_then(Value::as_u64)).filter(|_| running);
        let name = text(&config, "Name").map(|name| name.trim_start_matches('/').to_owned());
        found.containers.push(Container { names: name.into_iter().collect(), id, pid });
    }
}

/// `containers.json` of the storage has the names, `pidfile` of each container its process.
fn podman(root: &Root, found: &mut Found) {
    let base = "/var/lib/containers/storage/overlay-containers";
    // Whether the folder is readable distinguishes "none" from "not seen".
    if list(root, base, "podman's containers", found).is_empty() {
        return;
    }
    let all = json(root, &format!("{base}/containers.json"));
    for container in all.as_ref().and_then(Value::as_array).into_iter().flatten().take(CONTAINERS_MAX) {
        let Some(id) = text(container, "id").filter(|id| id.bytes().all(|b| b.is_ascii_alphanumeric()))
        else {
            continue;
        };
        let names = container.get("names").and_then(Value::as_array).into_iter().flatten();
        let names = names.filter_map(Value::as_str).map(str::to_owned).collect();
        let state = format!("/run/containers/storage/overlay-containers/{id}/userdata/pidfile");
        let pid = pid_of(root.number(&state).ok().and_then(|pid| u64::try_from(pid).ok()));
        // A pid file outlives its container.
        let pid = pid.filter(|pid| root.link(&format!("/proc/{pid}/ns/net")).is_ok());
        found.containers.push(Container { names, id, pid });
    }
}

/// Tasks of containerd, as Kubernetes and nerdctl have them: the id of the process and the annotations with
/// the names.
fn containerd(root: &Root, found: &mut Found) {
    let base = "/run/containerd/io.containerd.runtime.v2.task";
    for space in list(root, base, "containerd's tasks", found) {
        for id in list(root, &format!("{base}/{space}"), "containerd's tasks", found) {
            let folder = format!("{base}/{space}/{id}");
            let pid = root.number(&format!("{folder}/init.pid")).ok().and_then(|pid| u64::try_from(pid).ok());
            let config = json(root, &format!("{folder}/config.json")).unwrap_or_default();
            let notes = config.get("annotations").unwrap_or(&Value::Null);
            let note = |key: &str| text(notes, key);
            let pod = note("io.kubernetes.cri.sandbox-name");
            let mut names: Vec<String> = Vec::new();
            // All containers of a pod share its namespace: the pod is meant by its sandbox alone.
            match (note("io.kubernetes.cri.container-type").as_deref(), pod) {
                (Some("sandbox"), Some(pod)) => {
                    let space = note("io.kubernetes.cri.sandbox-namespace");
                    names.extend(space.map(|space| format!("{space}/{pod}")));
                    names.push(pod);
                }
                (_, Some(pod)) => {
                    let name = note("io.kubernetes.cri.container-name");
                    names.extend(name.map(|name| format!("{pod}/{name}")));
                }
                _ => names.extend(note("nerdctl/name")),
            }
            found.containers.push(Container { names, id, pid: pid_of(pid) });
        }
    }
}

/// What the control groups of processes are called after: ids of containers, machines of systemd, containers
/// of LXC. The process with the smallest number stands for the others.
fn control_groups(root: &Root, found: &mut Found) {
    let mut pids: Vec<u32> =
        root.list("/proc").unwrap_or_default().iter().filter_map(|n| n.parse().ok()).collect();
    pids.sort_unstable();
    for pid in pids {
        let Ok(groups) = root.read(&format!("/proc/{pid}/cgroup")) else { continue };
        let Some(name) = groups.lines().find_map(container_of) else { continue };
        if found.containers.len() < CONTAINERS_MAX && !found.containers.iter().any(|c| c.id == name) {
            found.containers.push(Container { names: vec![name.clone()], id: name, pid: Some(pid) });
        }
    }
}

/// The container in a line of `/proc/PID/cgroup`. Only the manager of the system, or an engine that runs as
/// root, can have made the groups that are looked at: below a service, a session or the slice of a user that
/// user may make groups and call them what he likes, so that a name there proves nothing. Rootless containers
/// are named by `pid:N`.
fn container_of(line: &str) -> Option<String> {
    let path = line.splitn(3, ':').nth(2)?;
    let of_root = path.starts_with("/user.slice/user-0.slice/");
    let mut before = "";
    for part in path.split('/') {
        let scope = part.strip_suffix(".scope").unwrap_or(part);
        let is_id = |text: &str| text.len() == 64 && text.bytes().all(|b| b.is_ascii_hexdigit());
        let id = scope.rsplit('-').next().unwrap_or_default();
        if is_id(id) {
            return Some(id.to_owned());
        }
        if let Some(name) = scope.strip_prefix("lxc.payload.").or_else(|| scope.strip_prefix("machine-")) {
            return Some(name.replace("\\x2d", "-"));
        }
        if before == "lxc" && !part.is_empty() {
            return Some(part.to_owned());
        }
        let of_a_user =
            part == "user.slice" || [".service", ".scope"].iter().any(|unit| part.ends_with(unit));
        if of_a_user && !of_root {
            return None;
        }
        before = part;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_groups_tell_their_container() {
        let id = "4f".repeat(32);
        for line in [
            format!("0::/system.slice/docker-{id}.scope"),
            format!("5:cpu:/docker/{id}"),
            format!("0::/kubepods.slice/kubepods-pod1.slice/cri-containerd-{id}.scope"),
            format!("0::/machine.slice/libpod-{id}.scope/container"),
        ] {
            assert_eq!(container_of(&line).as_ref(), Some(&id), "{line}");
        }
        assert_eq!(container_of("0::/lxc.payload.web/init.scope"), Some("web".to_owned()));
        assert_eq!(container_of("3:cpu:/lxc/web"), Some("web".to_owned()));
        assert_eq!(container_of("0::/machine.slice/machine-a\\x2db.scope"), Some("a-b".to_owned()));
        for none in ["0::/", "", "0", "0::/user.slice/session-1.scope", "0::/system.slice/docker.service"] {
            assert_eq!(container_of(none), None, "{none}");
        }
        let of_root = "0::/user.slice/user-0.slice/session-1.scope/lxc.payload.web";
        assert_eq!(container_of(of_root), Some("web".to_owned()));
    }

    #[test]
    fn a_group_that_a_user_can_make_is_no_container() {
        let id = "4f".repeat(32);
        for group in ["machine-web.scope", "lxc.payload.web", "lxc/web", &format!("docker-{id}.scope"), &id] {
            for above in [
                "user.slice/user-1000.slice/user@1000.service",
                "user.slice/user-1000.slice/user@1000.service/app.slice",
                "user.slice/user-1000.slice/session-3.scope",
                "user.slice/user-1000.slice",
                "system.slice/web.service",
                "system.slice/web.service/user.slice/user-0.slice",
            ] {
                let line = format!("0::/{above}/{group}");
                assert_eq!(container_of(&line), None, "{line}");
            }
            assert!(container_of(&format!("0::/machine.slice/{group}")).is_some(), "{group}");
        }
    }
}
