//! What the programs that people write into boot scripts do to settings: `sysctl`, `ip`, `ifconfig`,
//! `ethtool`, `tc`, `blockdev`, and what is written into files of the kernel. Pure.
//!
//! A program that is not known may set anything; an option that is not known may set anything of its device.

use super::super::view::key_name;
use super::flow::{ShellCommand, program};
use super::nic_words;

/// What a command does to settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Effect {
    /// Sets a fact to a value, both as a fact has them.
    Sets(String, String),
    /// Writes a value into a file of the kernel.
    Writes(String, String),
    /// Applies a file of sysctls.
    Applies(String),
    /// May set what this pattern of keys fits; it cannot be known from here.
    Unclear(String),
}

/// Programs that change no setting of the kernel.
const HARMLESS: [&str; 83] = [
    ":",
    "[",
    "[[",
    "awk",
    "basename",
    "break",
    "cat",
    "cd",
    "chmod",
    "chown",
    "chronyc",
    "command",
    "continue",
    "cp",
    "cut",
    "date",
    "declare",
    "dirname",
    "dmesg",
    "egrep",
    "exec",
    "exit",
    "export",
    "expr",
    "false",
    "fgrep",
    "find",
    "flock",
    "getent",
    "grep",
    "hash",
    "head",
    "hostname",
    "id",
    "kill",
    "let",
    "ln",
    "local",
    "logger",
    "ls",
    "lscpu",
    "lspci",
    "mkdir",
    "mkswap",
    "mount",
    "mv",
    "nproc",
    "pgrep",
    "pidof",
    "printenv",
    "pwd",
    "read",
    "readlink",
    "readonly",
    "resolvectl",
    "return",
    "rm",
    "rmdir",
    "sed",
    "set",
    "shift",
    "sleep",
    "sort",
    "stat",
    "swapon",
    "systemd-cat",
    "systemd-notify",
    "tail",
    "test",
    "touch",
    "tr",
    "trap",
    "true",
    "type",
    "typeset",
    "ulimit",
    "umask",
    "uname",
    "uniq",
    "unset",
    "wait",
    "wc",
    "which",
];
/// Beginnings of files of the kernel, with the keys that they are about; the first that fits counts.
const FILES: [(&str, &str); 7] = [
    ("/proc/irq/", "nic.*.irq.*"),
    ("/sys/devices/system/cpu/", "cpu.*"),
    ("/sys/devices/system/clocksource/", "cpu.clocksource"),
    ("/sys/block/", "disk.*"),
    ("/sys/class/block/", "disk.*"),
    ("/sys/class/net/", "nic.*"),
    ("/sys/kernel/mm/", ""),
];

/// What a command does.
pub(super) fn effects(command: &ShellCommand) -> Vec<Effect> {
    let words: Vec<&str> = command.words.iter().skip(1).map(String::as_str).collect();
    let program = program(&command.words);
    let into = command.into.as_deref().filter(|path| is_of_kernel(path));
    let mut found = match program {
        "echo" | "printf" => into.map_or_else(Vec::new, |path| written(program, &words, path)),
        "sysctl" => sysctl(&words),
        "ip" => ip(&words),
        "ifconfig" => words.split_first().map_or_else(Vec::new, |(nic, rest)| link(nic, rest, &IFCONFIG)),
        "ethtool" => ethtool(&words),
        "tc" => tc(&words),
        "blockdev" => blockdev(&words),
        "modprobe" if !words.iter().any(|word| word.contains('=')) => Vec::new(),
        "iptables" | "ip6tables" | "nft" => vec![unclear("firewall.*")],
        "route" => vec![unclear("route*")],
        "bridge" => bridge(&words),
        "arp" => vec![unclear("nic.*.neighbour.*")],
        "cpupower" => vec![unclear("cpu.*")],
        "tee" => words.iter().filter(|path| is_of_kernel(path)).map(|path| of_file(path)).collect(),
        name if HARMLESS.contains(&name) || is_assignment(&command.words) => Vec::new(),
        _ => vec![unclear("*")],
    };
    if !["echo", "printf"].contains(&program) {
        found.extend(into.map(of_file));
    }
    found.retain(|effect| *effect != unclear(""));
    if !command.is_certain {
        found = found.into_iter().map(doubted).collect();
    }
    found
}

fn unclear(keys: &str) -> Effect {
    Effect::Unclear(keys.to_owned())
}

/// Sets a value that is known, else may set it.
fn sets(key: String, value: &str) -> Effect {
    if key.contains('*') || value.contains('*') {
        return Effect::Unclear(key);
    }
    Effect::Sets(key, value.to_owned())
}

fn nic_key(nic: &str, field: &str) -> String {
    format!("nic.{}.{field}", key_name(nic))
}

/// The effect of a command that may not be run.
fn doubted(effect: Effect) -> Effect {
    match effect {
        Effect::Sets(key, _) => Effect::Unclear(key),
        Effect::Writes(path, _) => of_file(&path),
        Effect::Applies(_) => unclear("sysctl.*"),
        Effect::Unclear(keys) => Effect::Unclear(keys),
    }
}

fn is_assignment(words: &[String]) -> bool {
    matches!(words, [word] if word.contains('='))
}

fn is_of_kernel(path: &str) -> bool {
    ["/proc/", "/sys/", "*"].iter().any(|start| path.starts_with(start))
}

/// The keys that a file of the kernel may be.
pub(super) fn of_file(path: &str) -> Effect {
    if let Some(name) = path.strip_prefix("/proc/sys/") {
        let key = sysctl_key(name);
        return Effect::Unclear(key);
    }
    if let Some(nic) = path.strip_prefix("/sys/class/net/").and_then(|rest| rest.split('/').next()) {
        return Effect::Unclear(nic_key(nic, "*"));
    }
    unclear(FILES.iter().find(|(start, _)| path.starts_with(start)).map_or("*", |(_, keys)| keys))
}

/// `net/ipv4/conf/eth0.5/mtu` as a key has it.
fn sysctl_key(path: &str) -> String {
    let swap = |c| match c {
        '/' => '.',
        '.' => '/',
        other => other,
    };
    format!("sysctl.{}", path.trim_matches('/').chars().map(swap).collect::<String>())
}

fn written(program: &str, words: &[&str], path: &str) -> Vec<Effect> {
    let words: Vec<&str> = words.iter().copied().filter(|word| !["-n", "-e", "-ne"].contains(word)).collect();
    let text = words.join(" ");
    let is_format = program == "printf" && text.contains('%');
    if is_format || text.contains('*') || path.contains('*') {
        return vec![of_file(path)];
    }
    vec![match path.strip_prefix("/proc/sys/") {
        Some(name) => Effect::Sets(sysctl_key(name), text.split_whitespace().collect::<Vec<_>>().join(" ")),
        None => Effect::Writes(path.to_owned(), text),
    }]
}

/// What is in a file of settings.
fn applies(path: &str) -> Effect {
    if path.contains('*') { unclear("sysctl.*") } else { Effect::Applies(path.to_owned()) }
}

fn sysctl(words: &[&str]) -> Vec<Effect> {
    let mut found = Vec::new();
    let mut words = words.iter().copied().peekable();
    while let Some(word) = words.next() {
        match word {
            "-p" | "--load" | "-f" => {
                let is_path = |word: &&str| !word.starts_with('-') && !word.contains('=');
                found.push(applies(words.next_if(is_path).unwrap_or("/etc/sysctl.conf")));
                found.extend(std::iter::from_fn(|| words.next_if(is_path)).map(applies));
            }
            "--system" => found.push(unclear("sysctl.*")),
            word if word.starts_with("-p") || word.starts_with("--load=") => {
                let path = word.strip_prefix("--load=").unwrap_or(&word[2..]);
                found.push(applies(path));
            }
            // Letters together: one of them may name files.
            word if word.starts_with('-') && !word.starts_with("--") && word.contains(['p', 'f']) => {
                found.push(unclear("sysctl.*"));
            }
            word => {
                let Some((name, value)) = word.split_once('=') else { continue };
                let value = value.split_whitespace().collect::<Vec<_>>().join(" ");
                found.push(sets(format!("sysctl.{}", super::sysctl_d::dotted(name)), &value));
            }
        }
    }
    found
}

/// Options of a device with a value that are settings, and those that are none.
struct LinkWords {
    settings: &'static [(&'static str, &'static str)],
    others: &'static [&'static str],
    alone: &'static [&'static str],
}

const IP_LINK: LinkWords = LinkWords {
    settings: &[
        ("mtu", "mtu"),
        ("txqueuelen", "txqueuelen"),
        ("txqlen", "txqueuelen"),
        ("qlen", "txqueuelen"),
        ("gso_max_segs", "gso_max_segs"),
    ],
    others: &[
        "address",
        "alias",
        "arp",
        "allmulticast",
        "broadcast",
        "brd",
        "group",
        "master",
        "multicast",
        "promisc",
    ],
    alone: &["up", "down", "nomaster"],
};

const IFCONFIG: LinkWords = LinkWords {
    settings: &[("mtu", "mtu"), ("txqueuelen", "txqueuelen")],
    others: &["netmask", "broadcast", "hw", "ether", "metric", "add", "del", "pointopoint"],
    alone: &["up", "down", "promisc", "-promisc", "arp", "-arp", "allmulti", "-allmulti", "multicast"],
};

/// Options of a device; an address of `ifconfig` is none.
fn link(nic: &str, mut words: &[&str], known: &LinkWords) -> Vec<Effect> {
    let mut found = Vec::new();
    let is_address = |word: &str| word.contains('.') || word.contains(':');
    while let Some((word, rest)) = words.split_first() {
        words = rest;
        if known.alone.contains(word) || is_address(word) {
            continue;
        }
        let setting = known.settings.iter().find(|(name, _)| name == word);
        match (setting, rest.first()) {
            (Some((_, field)), Some(value)) => found.push(sets(nic_key(nic, field), value)),
            (None, Some(_)) if known.others.contains(word) => {}
            _ => {
                found.push(unclear(&nic_key(nic, "*")));
                return found;
            }
        }
        words = &rest[1..];
    }
    found
}

fn ip(words: &[&str]) -> Vec<Effect> {
    let mut words = words;
    while let Some(rest) = words.split_first().filter(|(word, _)| word.starts_with('-')).map(|(_, rest)| rest)
    {
        if ["-n", "-netns", "-b", "-batch", "-f", "-family"].contains(&words[0]) {
            return vec![unclear("*")];
        }
        words = rest;
    }
    let Some((object, words)) = words.split_first() else { return Vec::new() };
    match *object {
        "link" | "l" => {}
        "route" | "r" | "ro" => return changes(words, "route*"),
        "neigh" | "neighbour" | "neighbor" | "n" => return changes(words, "nic.*.neighbour.*"),
        "rule" | "ru" => return changes(words, "rule*"),
        "addr" | "address" | "a" | "maddress" | "tunnel" | "xfrm" => return Vec::new(),
        _ => return vec![unclear("*")],
    }
    let Some((verb, words)) = words.split_first() else { return Vec::new() };
    match *verb {
        "show" | "list" | "ls" => return Vec::new(),
        "set" | "s" => {}
        _ => {
            let named = words.iter().position(|word| ["name", "dev"].contains(word)).map_or(0, |at| at + 1);
            return vec![unclear(&nic_key(words.get(named).unwrap_or(&"*"), "*"))];
        }
    }
    let mut words = words.to_vec();
    // `dev NIC` may stand behind options.
    if let Some(at) = words.iter().position(|word| *word == "dev").filter(|at| at + 1 < words.len()) {
        words.remove(at);
        words[..=at].rotate_right(1);
    }
    words.split_first().map_or_else(Vec::new, |(nic, rest)| link(nic, rest, &IP_LINK))
}

fn bridge(words: &[&str]) -> Vec<Effect> {
    match words {
        ["fdb", words @ ..] => changes(words, "nic.*.fdb.*"),
        _ => vec![unclear("*")],
    }
}

/// What a command changes that is none when it only lists.
fn changes(words: &[&str], keys: &str) -> Vec<Effect> {
    let only_lists = words.first().is_none_or(|verb| ["show", "list", "ls", "get"].contains(verb));
    if only_lists { Vec::new() } else { vec![unclear(keys)] }
}

/// Options of ethtool(8) that set pairs of names and values, with the family of the settings.
const PAIRS: [(&[&str], &str); 7] = [
    (&["-K", "--offload", "--features"], "feature"),
    (&["-G", "--set-ring"], "ring"),
    (&["-C", "--coalesce"], "coalesce"),
    (&["-A", "--pause"], "pause"),
    (&["-L", "--set-channels"], "channels"),
    (&["--set-priv-flags"], "private"),
    (&["--set-eee"], "eee"),
];
/// Options that change settings by something else than pairs.
const OTHERS: [&str; 12] = [
    "-N",
    "-U",
    "--config-nfc",
    "--config-ntuple",
    "-X",
    "--set-rxfh-indir",
    "--rxfh",
    "-Q",
    "--per-queue",
    "--set-phy-tunable",
    "--set-tunable",
    "--set-fec",
];

/// What `ethtool` does with these arguments.
pub(super) fn ethtool(words: &[&str]) -> Vec<Effect> {
    let [option, nic, pairs @ ..] = words else { return Vec::new() };
    if OTHERS.contains(option) {
        return vec![unclear(&nic_key(nic, "*"))];
    }
    let family = PAIRS.iter().find(|(options, _)| options.contains(option)).map(|(_, family)| *family);
    let is_change = ["-s", "--change"].contains(option);
    if family.is_none() && !is_change {
        // It only shows something.
        return Vec::new();
    }
    let mut found = Vec::new();
    for pair in pairs.chunks(2) {
        let [name, value] = pair else {
            found.push(unclear(&nic_key(nic, "*")));
            break;
        };
        let field = match family {
            Some("feature") => format!("feature.{}", nic_words::long(name)),
            Some("ring") => format!("ring.{}", name.replace('-', "_")),
            Some("eee") => format!("eee.{}", eee(name)),
            Some(family) => format!("{family}.{name}"),
            None => match *name {
                "autoneg" => "autoneg".to_owned(),
                "wol" | "msglvl" | "sopass" => continue,
                _ => {
                    found.push(unclear(&nic_key(nic, "link_exact")));
                    continue;
                }
            },
        };
        found.push(sets(nic_key(nic, &field), value));
    }
    found
}

fn eee(name: &str) -> &str {
    match name {
        "eee" => "enabled",
        "tx-lpi" => "tx_lpi_enabled",
        "tx-timer" => "tx_lpi_timer",
        other => other,
    }
}

/// The root discipline of a device; filters and classes are no settings.
fn tc(words: &[&str]) -> Vec<Effect> {
    let words: Vec<&str> = words.iter().copied().skip_while(|word| word.starts_with('-')).collect();
    let ["qdisc", verb, rest @ ..] = &words[..] else { return Vec::new() };
    if ["show", "list", "ls"].contains(verb) || !rest.contains(&"root") {
        return Vec::new();
    }
    let at = |wanted: &str| rest.iter().position(|word| *word == wanted);
    let nic = at("dev").and_then(|at| rest.get(at + 1)).copied().unwrap_or("*");
    let known = ["dev", "handle", "root"];
    let is_value = |at: usize| at > 0 && known[..2].contains(&rest[at - 1]);
    let kind = (0..rest.len()).find(|at| !known.contains(&rest[*at]) && !is_value(*at));
    let (Some(kind), true) = (kind, ["add", "replace", "change"].contains(verb)) else {
        return vec![unclear(&nic_key(nic, "qdisc*"))];
    };
    // Its options are more than the kind.
    let has_more = kind + 1 < rest.len();
    let mut found = vec![sets(nic_key(nic, "qdisc"), rest[kind])];
    found.extend(has_more.then(|| unclear(&nic_key(nic, "qdisc_*"))));
    found
}

/// Read-ahead, in sectors of 512 bytes.
fn blockdev(words: &[&str]) -> Vec<Effect> {
    let ["--setra", sectors, drives @ ..] = words else {
        let only_shows = words.first().is_none_or(|word| word.starts_with("--get") || *word == "--report");
        return if only_shows { Vec::new() } else { vec![unclear("disk.*")] };
    };
    let of = |drive: &&str| {
        let name = drive.rsplit('/').next().unwrap_or_default();
        let key = format!("disk.{name}.read_ahead_kb");
        match sectors.parse::<u64>() {
            Ok(sectors) => sets(key, &(sectors / 2).to_string()),
            Err(_) => Effect::Unclear(key),
        }
    };
    drives.iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::super::flow::{Variables, commands};
    use super::*;

    fn shown(text: &str) -> Vec<String> {
        let word = |effect| match effect {
            Effect::Sets(key, value) => format!("{key}={value}"),
            Effect::Writes(path, value) => format!("{value} > {path}"),
            Effect::Applies(path) => format!("apply {path}"),
            Effect::Unclear(keys) => format!("? {keys}"),
        };
        commands(text, &Variables::default()).iter().flat_map(effects).map(word).collect()
    }

    #[test]
    fn what_people_write_into_boot_scripts_is_understood() {
        let rows: [(&str, &[&str]); 26] = [
            (
                "/sbin/sysctl -q -w net.core.rmem_max=7 net/ipv4/tcp_sack=0",
                &["sysctl.net.core.rmem_max=7", "sysctl.net.ipv4.tcp_sack=0"],
            ),
            ("sysctl -w \"net.ipv4.tcp_rmem=4096  87380 7\"", &["sysctl.net.ipv4.tcp_rmem=4096 87380 7"]),
            ("sysctl -p; sysctl -p /etc/x.conf", &["apply /etc/sysctl.conf", "apply /etc/x.conf"]),
            ("sysctl -p a.conf b.conf -w vm.x=1", &["apply a.conf", "apply b.conf", "sysctl.vm.x=1"]),
            ("sysctl -a", &[]),
            ("echo 4096 87380 7 > /proc/sys/net/ipv4/tcp_rmem", &["sysctl.net.ipv4.tcp_rmem=4096 87380 7"]),
            ("echo none > /sys/block/sda/queue/scheduler", &["none > /sys/block/sda/queue/scheduler"]),
            ("echo 'hello world' >/dev/console", &[]),
            (
                "ip link set dev eth0.5 mtu 9000 txqlen 5000 up",
                &["nic.eth0/5.mtu=9000", "nic.eth0/5.txqueuelen=5000"],
            ),
            ("ip link set eth0 up", &[]),
            ("ip link set mtu 9000 dev eth0 up", &["nic.eth0.mtu=9000"]),
            ("ip link set up dev eth0", &[]),
            ("ifconfig eth0 10.0.0.1 netmask 255.0.0.0 mtu 9000 up", &["nic.eth0.mtu=9000"]),
            ("ethtool -G eth0 rx 4096 rx-jumbo 8", &["nic.eth0.ring.rx=4096", "nic.eth0.ring.rx_jumbo=8"]),
            (
                "/usr/sbin/ethtool -K eth0 gro off rx-gro-hw on",
                &["nic.eth0.feature.generic-receive-offload=off", "nic.eth0.feature.rx-gro-hw=on"],
            ),
            (
                "ethtool -C eth0 adaptive-rx off rx-usecs 8",
                &["nic.eth0.coalesce.adaptive-rx=off", "nic.eth0.coalesce.rx-usecs=8"],
            ),
            ("ethtool -A eth0 rx off", &["nic.eth0.pause.rx=off"]),
            ("ethtool -s eth0 autoneg off speed 100", &["nic.eth0.autoneg=off", "? nic.eth0.link_exact"]),
            ("ethtool -k eth0; ethtool eth0", &[]),
            ("tc qdisc replace dev eth0 root handle 1: fq", &["nic.eth0.qdisc=fq"]),
            ("tc qdisc add dev eth0 root tbf rate 1mbit", &["nic.eth0.qdisc=tbf", "? nic.eth0.qdisc_*"]),
            ("blockdev --setra 8192 /dev/sda", &["disk.sda.read_ahead_kb=4096"]),
            ("touch /var/lock/subsys/local; modprobe bonding; mount -a\nX=1\nexit 0\nfoo", &[]),
            (
                "iptables -A INPUT -j DROP; ip route add 10.0.0.0/8 via 10.0.0.1",
                &["? firewall.*", "? route*"],
            ),
            ("ip link add br0 type bridge; ip addr add 10.0.0.1/8 dev br0", &["? nic.br0.*"]),
            (
                "ip rule add from 10.0.0.1 lookup 7; ip rule; bridge fdb show; bridge fdb del 2:: dev vx0",
                &["? rule*", "? nic.*.fdb.*"],
            ),
        ];
        for (text, effects) in rows {
            assert_eq!(shown(text), effects, "{text}");
        }
    }

    #[test]
    fn what_is_not_understood_is_unclear_as_narrowly_as_it_can_be_known() {
        let rows: [(&str, &[&str]); 17] = [
            ("/opt/site/tune.sh", &["? *"]),
            ("tuned-adm profile x", &["? *"]),
            ("for i in eth0 eth1; do ethtool -G $i rx 4096; done", &["? nic.*.ring.rx"]),
            (
                "[ -x /sbin/ethtool ] && ethtool -K eth0 gro off",
                &["? nic.eth0.feature.generic-receive-offload"],
            ),
            ("sysctl -w net.core.rmem_max=$MAX", &["? sysctl.net.core.rmem_max"]),
            ("sysctl --system", &["? sysctl.*"]),
            ("sysctl -qp /etc/x.conf", &["? sysctl.*"]),
            ("sysctl --load=/etc/$X.conf", &["? sysctl.*"]),
            ("if [ -e /x ]; then sysctl -p; fi", &["? sysctl.*"]),
            ("echo 4096 | tee /proc/sys/net/core/rmem_max", &["? sysctl.net.core.rmem_max"]),
            ("for f in /sys/block/sd*/queue/scheduler; do echo none > $f; done", &["? *"]),
            ("echo f > /sys/class/net/eth0/queues/*/rps_cpus", &["? nic.eth0.*"]),
            ("echo performance | tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor", &["? cpu.*"]),
            ("ip link set eth0 name lan0", &["? nic.eth0.*"]),
            ("ethtool -X eth0 equal 4", &["? nic.eth0.*"]),
            ("cat /opt/x > /proc/sys/vm/swappiness", &["? sysctl.vm.swappiness"]),
            ("[ -e /x ] && echo 1 > /proc/sys/vm/swappiness", &["? sysctl.vm.swappiness"]),
        ];
        for (text, effects) in rows {
            assert_eq!(shown(text), effects, "{text}");
        }
    }
}
