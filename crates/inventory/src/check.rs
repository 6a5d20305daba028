//! What an inventory must be beyond its format: names are unique and known, groups are a forest, addresses
//! are addresses.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::IpAddr;
use std::path::PathBuf;

use ::toml::Spanned;
use linerate_model::download::DownloadSpec;
use linerate_model::fact::decimal;
use linerate_model::inventory::{
    Endpoint, Group, Host, Inventory, Layer, SlurmSpec, SshSpec, TransportSpec, check_folder,
};

use super::agents;
use super::draft::{HOSTS_MAX, name_fits};
use super::error::{Problem, did_you_mean, problem};
use super::http;
use super::notify;
use super::place;
use super::tables::{File, RawEndpoint, RawGroup, RawHost};
use super::throughput;
use linerate_input::quoted;

const TRANSPORTS: [&str; 4] = ["local", "netns", "ssh", "slurm"];
const KINDS: [&str; 2] = ["node", "iperf3"];
const IPERF3_PORT: u16 = 5201;
/// Most groups: there is no use for more than hosts.
const GROUPS_MAX: usize = HOSTS_MAX;
/// Names of a cycle of groups that are shown.
const CYCLE_SHOWN: usize = 12;

/// What is wrong with a file, as it is found.
#[derive(Default)]
struct Problems(Vec<Problem>);

impl Problems {
    /// The value, or nothing where it is wrong.
    fn keep<T>(&mut self, checked: Result<T, Problem>) -> Option<T> {
        checked.map_err(|problem| self.0.push(problem)).ok()
    }
}

/// The checked inventory of a file, or everything that is wrong with it, in the order of the file.
pub(super) fn checked(file: File) -> Result<Inventory, Vec<Problem>> {
    for (kind, number, limit) in
        [("group", file.groups.len(), GROUPS_MAX), ("host", file.hosts.len(), HOSTS_MAX)]
    {
        if number > limit {
            let what = format!("{number} {kind}s, at most {limit} are read");
            return Err(vec![Problem { at: 0, what, hint: "survey a part of the cluster".to_owned() }]);
        }
    }
    let mut problems = Problems::default();
    unique("group", file.groups.iter().map(|g| &g.name), &mut problems);
    unique("host", file.hosts.iter().map(|h| &h.name), &mut problems);
    if file.hosts.is_empty() {
        problems.0.push(Problem {
            at: 0,
            what: "no [[host]] in the inventory".to_owned(),
            hint: "add at least one table [[host]] with `name`".to_owned(),
        });
    }
    let groups = Names::of(file.groups.iter().map(|g| &g.name));
    let hosts = Names::of(file.hosts.iter().map(|h| &h.name));
    for group in &file.groups {
        problems.keep(known("group", group.parent.as_ref(), &groups));
        problems.keep(known("host", group.machine.as_ref(), &hosts));
    }
    for group in file.hosts.iter().flat_map(|host| &host.groups) {
        problems.keep(known("group", Some(group), &groups));
    }
    problems.keep(no_cycle(&file.groups));
    let mut owner = BTreeMap::new();
    let checked_groups: Vec<Group> = file.groups.iter().filter_map(|raw| problems.keep(group(raw))).collect();
    let checked_hosts: Vec<Host> =
        file.hosts.iter().filter_map(|raw| host(raw, &mut owner, &mut problems)).collect();
    let downloads: Vec<DownloadSpec> =
        file.http.iter().filter_map(|raw| problems.keep(http::downloads(raw))).collect();
    let of_agents = file.agents.iter().flat_map(|raw| &raw.get_ref().hosts);
    for name in file.http.iter().flat_map(|raw| &raw.get_ref().from).chain(of_agents) {
        if !groups.all.contains(name.get_ref().as_str()) {
            problems.keep(known("host", Some(name), &hosts));
        }
    }
    problems.keep(http::once_each(&file.http));
    let targets = file.notify.iter().filter_map(|raw| problems.keep(notify::target(raw))).collect();
    let rounds = file.throughput.as_ref().and_then(|raw| problems.keep(throughput::rounds(raw)));
    let of_watch = file.agents.as_ref().and_then(|raw| problems.keep(agents::agents(raw)));
    let inventory = Inventory {
        name: file.name,
        groups: checked_groups,
        hosts: checked_hosts,
        disturbances: file.disturbances,
        notify: targets,
        downloads,
        throughput: rounds,
        agents: of_watch,
        ..Inventory::default()
    };
    if let Some(raw) = &file.agents {
        problems.keep(agents::with_addresses(raw, &inventory));
    }
    if problems.0.is_empty() {
        return Ok(inventory);
    }
    problems.0.sort_by_key(|problem| problem.at);
    Err(problems.0)
}

fn unique<'a>(kind: &str, names: impl Iterator<Item = &'a Spanned<String>>, problems: &mut Problems) {
    let mut seen = std::collections::BTreeSet::new();
    for name in names {
        let text = name.get_ref().as_str();
        if let Err(flaw) = name_fits(kind, text) {
            problems.0.push(problem(name, flaw.what, flaw.hint));
        }
        if !seen.insert(text) {
            let what = format!("duplicate {kind} name `{text}`");
            problems.0.push(problem(name, what, format!("each {kind} has one table")));
        }
    }
}

/// Names in the order of the file, and the same for lookups.
struct Names<'a> {
    list: Vec<&'a str>,
    all: HashSet<&'a str>,
}

impl<'a> Names<'a> {
    fn of(names: impl Iterator<Item = &'a Spanned<String>>) -> Self {
        let list: Vec<&str> = names.map(|name| name.get_ref().as_str()).collect();
        Self { all: list.iter().copied().collect(), list }
    }
}

fn known(kind: &str, name: Option<&Spanned<String>>, names: &Names<'_>) -> Result<(), Problem> {
    match name {
        Some(name) if !names.all.contains(name.get_ref().as_str()) => Err(problem(
            name,
            format!("unknown {kind} `{}`", quoted(name.get_ref())),
            did_you_mean(name.get_ref(), names.list.iter().copied()),
        )),
        _ => Ok(()),
    }
}

/// Groups are a forest. Each chain of parents is climbed up to a group that is known to end, so that every
/// group is visited once, however long the chains are.
fn no_cycle(groups: &[RawGroup]) -> Result<(), Problem> {
    let at: HashMap<&str, usize> =
        groups.iter().enumerate().map(|(at, group)| (group.name.get_ref().as_str(), at)).collect();
    let parent = |group: usize| at.get(groups[group].parent.as_ref()?.get_ref().as_str()).copied();
    // The climb that came by first; 0 where none did.
    let mut climbed = vec![0; groups.len()];
    for climb in 1..=groups.len() {
        let mut next = Some(climb - 1);
        while let Some(group) = next.filter(|group| climbed[*group] == 0) {
            climbed[group] = climb;
            next = parent(group);
        }
        if let Some(group) = next.filter(|group| climbed[*group] == climb) {
            return Err(cycle(groups, group, parent));
        }
    }
    Ok(())
}

/// What is wrong with a group that contains itself.
fn cycle(groups: &[RawGroup], start: usize, parent: impl Fn(usize) -> Option<usize>) -> Problem {
    let name = |group: usize| groups[group].name.get_ref().as_str();
    let round: Vec<&str> =
        std::iter::successors(parent(start), |group| parent(*group).filter(|_| *group != start))
            .map(name)
            .collect();
    let mut shown: Vec<&str> = std::iter::once(name(start)).chain(round.iter().copied()).collect();
    if shown.len() > CYCLE_SHOWN {
        shown.truncate(CYCLE_SHOWN);
        shown.push("…");
    }
    let what = format!("group `{}` contains itself: {}", name(start), shown.join(" in "));
    problem(&groups[start].name, what, "remove one `parent`")
}

fn mbit(value: Option<&Spanned<f64>>, key: &str) -> Result<Option<f64>, Problem> {
    match value {
        None => Ok(None),
        Some(v) if v.get_ref().is_finite() && *v.get_ref() > 0.0 && *v.get_ref() <= 1e8 => {
            Ok(Some(v.get_ref() * 1e6))
        }
        Some(v) => Err(problem(
            v,
            format!("{key} is {}", decimal(*v.get_ref())),
            "a rate in Mbit/s, above 0 and at most 1e8",
        )),
    }
}

fn group(raw: &RawGroup) -> Result<Group, Problem> {
    let text = |v: &Option<Spanned<String>>| v.as_ref().map(|v| v.get_ref().clone());
    Ok(Group {
        name: raw.name.get_ref().clone(),
        kind: if raw.kind.is_empty() { "group".to_owned() } else { raw.kind.clone() },
        parent: text(&raw.parent),
        uplink_bps: mbit(raw.uplink_mbit.as_ref(), "uplink_mbit")?,
        machine: text(&raw.machine),
    })
}

/// The host, or `None` where something is wrong with it.
fn host(raw: &RawHost, owner: &mut BTreeMap<IpAddr, String>, problems: &mut Problems) -> Option<Host> {
    let name = raw.name.get_ref();
    let mut endpoints: Vec<Endpoint> = Vec::new();
    for raw in &raw.endpoints {
        let Some(endpoint) = problems.keep(endpoint(raw)) else { continue };
        if let Some(other) = owner.insert(endpoint.address, name.clone()) {
            let what =
                format!("address {} is used twice, by host `{other}` and host `{name}`", endpoint.address);
            problems.0.push(problem(&raw.address, what, "each endpoint has its own address"));
        }
        if endpoints.iter().any(|e| e.layer == endpoint.layer) {
            let what = format!("host `{name}` has two endpoints in the {}", endpoint.layer);
            let hint = "one endpoint per layer; set `layer = \"overlay\"` for the other";
            problems.0.push(problem(&raw.address, what, hint));
        }
        endpoints.push(endpoint);
    }
    let transport = problems.keep(iperf3(raw).and_then(|own| own.map_or_else(|| transport(raw), Ok)));
    let state_dir = problems.keep(folder("state_dir", raw.state_dir.as_ref()));
    let etc_dir = problems.keep(folder("etc_dir", raw.etc_dir.as_ref()));
    let cache_dir = problems.keep(cache_dir(raw));
    Some(Host {
        name: name.clone(),
        transport: transport?,
        groups: raw.groups.iter().map(|g| g.get_ref().clone()).collect(),
        endpoints,
        state_dir: state_dir?,
        etc_dir: etc_dir?,
        cache_dir: cache_dir?,
    })
}

/// A folder on the host, which has to be the same one for every process there.
fn folder(key: &str, raw: Option<&Spanned<PathBuf>>) -> Result<Option<PathBuf>, Problem> {
    let Some(raw) = raw else { return Ok(None) };
    check_folder(raw.get_ref()).map_err(|wrong| {
        let path = raw.get_ref().display().to_string();
        let what = format!("{key} `{}` {wrong}", path.escape_debug());
        problem(raw, what, format!("the whole path on that host, such as `{key} = \"/srv/linerate\"`"))
    })?;
    Ok(Some(raw.get_ref().clone()))
}

/// Longest `cache_dir`, bytes: the kernel takes no longer path.
const CACHE_DIR_BYTES_MAX: usize = 4000;

/// The folder for the node program of a host over ssh. It goes to a shell of the host, as a line of data.
fn cache_dir(raw: &RawHost) -> Result<Option<PathBuf>, Problem> {
    let Some(given) = &raw.cache_dir else { return Ok(None) };
    let path = folder("cache_dir", Some(given))?;
    let refuse = |what: String, hint: &str| Err(problem(given, what, hint));
    if !(raw.ssh.is_some() || raw.transport.as_ref().is_some_and(|t| t.get_ref() == "ssh")) {
        let what = "`cache_dir` for a host that is not reached over ssh".to_owned();
        return refuse(what, "nothing is copied there: remove `cache_dir`");
    }
    let bytes = given.get_ref().as_os_str().len();
    if bytes > CACHE_DIR_BYTES_MAX || given.get_ref().to_string_lossy().chars().any(char::is_control) {
        let what = format!("cache_dir has {bytes} bytes or control characters");
        return refuse(what, "a path of at most 4000 bytes on one line");
    }
    Ok(path)
}

/// How a host with endpoints of the kind `iperf3` is reached; `None` when it has none.
fn iperf3(raw: &RawHost) -> Result<Option<TransportSpec>, Problem> {
    let mut found = None;
    for endpoint in &raw.endpoints {
        let kind = endpoint.kind.as_ref().map_or("node", |kind| kind.get_ref().as_str());
        if !KINDS.contains(&kind) {
            let at = endpoint.kind.as_ref().map_or(0, |kind| kind.span().start);
            let what = format!("unknown kind of endpoint `{}`", quoted(kind));
            return Err(Problem { at, what, hint: did_you_mean(kind, KINDS) });
        }
        let port = match &endpoint.port {
            Some(port) if kind != "iperf3" => {
                return Err(problem(
                    port,
                    "`port` without `kind = \"iperf3\"`",
                    "a node program chooses its ports",
                ));
            }
            Some(port) if *port.get_ref() == 0 => return Err(problem(port, "port is 0", "1 to 65535")),
            port => port.as_ref().map_or(IPERF3_PORT, |port| *port.get_ref()),
        };
        let this = (kind == "iperf3").then_some(port);
        if *found.get_or_insert(this) != this {
            let what = format!("the endpoints of host `{}` differ in kind or port", raw.name.get_ref());
            return Err(problem(
                &endpoint.address,
                what,
                "a host has a node program or an iperf3 server, not both",
            ));
        }
    }
    let Some(port) = found.flatten() else { return Ok(None) };
    if let Some(table) = &raw.ssh {
        let what = "`ssh` for a host that only has iperf3";
        return Err(problem(table, what, "nothing is started there: remove `ssh`"));
    }
    if let Some(key) = raw.transport.as_ref().or(raw.netns.as_ref()) {
        let what = format!("`{}` for a host that only has iperf3", quoted(key.get_ref()));
        return Err(problem(key, what, "nothing is started there: remove `transport` and `netns`"));
    }
    Ok(Some(TransportSpec::Iperf3 { port }))
}

/// How a host with `transport = "ssh"` or a table `ssh` is reached.
fn ssh(raw: &RawHost) -> Result<TransportSpec, Problem> {
    let given = raw.ssh.as_ref().map(Spanned::get_ref);
    let spec = SshSpec {
        host: given.and_then(|s| s.host.clone()).unwrap_or_else(|| raw.name.get_ref().clone()),
        user: given.and_then(|s| s.user.clone()),
        port: given.and_then(|s| s.port),
        sudo: given.and_then(|s| s.sudo).unwrap_or(true),
    };
    let at = raw.ssh.as_ref().map_or(raw.name.span().start, |s| s.span().start);
    spec.check().map_err(|what| Problem { at, what, hint: "a name that `ssh` takes".to_owned() })?;
    if spec.port == Some(0) {
        return Err(Problem { at, what: "ssh port is 0".to_owned(), hint: "1 to 65535".to_owned() });
    }
    Ok(TransportSpec::Ssh(spec))
}

fn transport(raw: &RawHost) -> Result<TransportSpec, Problem> {
    let given = raw.transport.as_ref().map(|t| t.get_ref().as_str());
    match (given, &raw.ssh, &raw.netns) {
        (Some("ssh"), _, None) | (None, Some(_), None) => return ssh(raw),
        (Some("ssh") | None, Some(_), Some(netns)) | (Some("ssh"), None, Some(netns)) => {
            return Err(problem(
                netns,
                "`netns` beside `ssh`",
                "the namespace of an endpoint is the `netns` of its table [[host.endpoint]]",
            ));
        }
        (Some(other), Some(table), _) => {
            let what = format!("a table `ssh` beside `transport = \"{}\"`", quoted(other));
            return Err(problem(table, what, "set `transport = \"ssh\"` or remove the table"));
        }
        _ => {}
    }
    match (given, &raw.netns) {
        (Some("local"), Some(netns)) => {
            Err(problem(netns, "`netns` beside `transport = \"local\"`", "set `transport = \"netns\"`"))
        }
        (Some("netns"), None) => Err(problem(
            &raw.name,
            format!("host `{}` has `transport = \"netns\"` but no `netns`", raw.name.get_ref()),
            "add `netns = \"/run/netns/NAME\"`",
        )),
        (None | Some("local"), None) => Ok(TransportSpec::Local),
        (Some("slurm"), None) => {
            let node = raw.name.get_ref().clone();
            Ok(TransportSpec::Slurm(SlurmSpec { node, ..SlurmSpec::default() }))
        }
        (Some("slurm"), Some(netns)) => {
            Err(problem(netns, "`netns` beside `transport = \"slurm\"`", "put it into the endpoint"))
        }
        (None | Some("netns"), Some(netns)) => {
            let path = place::parse(netns.get_ref()).map_err(|flaw| problem(netns, flaw.what, flaw.hint))?;
            Ok(TransportSpec::Netns { path })
        }
        (Some(other), _) => {
            let at = raw.transport.as_ref().map_or(0, |t| t.span().start);
            let what = format!("unknown transport `{}`", quoted(other));
            Err(Problem { at, what, hint: did_you_mean(other, TRANSPORTS) })
        }
    }
}

fn endpoint(raw: &RawEndpoint) -> Result<Endpoint, Problem> {
    let text = raw.address.get_ref();
    let address: IpAddr = text.parse().map_err(|_| {
        let hint = if text.contains('/') {
            "without the prefix length: 10.0.0.1"
        } else {
            "an address such as 10.0.0.1"
        };
        problem(&raw.address, format!("`{}` is not an IP address", quoted(text)), hint)
    })?;
    if address.is_unspecified() || address.is_multicast() {
        return Err(problem(
            &raw.address,
            format!("{address} is not the address of one host"),
            "a unicast address",
        ));
    }
    let netns = match &raw.netns {
        Some(text) => Some(place::parse(text.get_ref()).map_err(|flaw| problem(text, flaw.what, flaw.hint))?),
        None => None,
    };
    Ok(Endpoint {
        address,
        layer: raw.layer.unwrap_or(Layer::Underlay),
        netns,
        link_bps: mbit(raw.link_mbit.as_ref(), "link_mbit")?,
    })
}
