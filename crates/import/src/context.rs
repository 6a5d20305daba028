//! Context of a piece of text: its host, command and heading. Prompt lines and file names come in, answers
//! for the readers go out.

use linerate_model::inventory::Layer;

use crate::condition::Condition;

/// Tools whose output is read, and common wrappers in front of them. A bare `$` or `#` is only taken for a
/// prompt before one of these, because comments begin like that too.
pub(crate) const TOOLS: [&str; 74] = [
    "iperf",
    "iperf2",
    "iperf3",
    "nuttcp",
    "netperf",
    "ethtool",
    "sysctl",
    "ip",
    "ss",
    "ping",
    "ping6",
    "iostat",
    "fio",
    "tiotest",
    "tiobench",
    "drbdadm",
    "cat",
    "grep",
    "sudo",
    "ssh",
    "nsenter",
    "docker",
    "kubectl",
    "hostname",
    "uname",
    "for",
    "dd",
    "lspci",
    "mpstat",
    "time",
    "numactl",
    "taskset",
    "head",
    "egrep",
    "wget",
    "curl",
    "sinfo",
    "scontrol",
    "lvs",
    "vgs",
    "lvdisplay",
    "modinfo",
    "netstat",
    "nstat",
    "ifconfig",
    "tcpretrans",
    "nft",
    "iptables",
    "iptables-save",
    "dmesg",
    "sar",
    "drbdsetup",
    "journalctl",
    "tail",
    "smartctl",
    "hdparm",
    "nvme",
    "storcli",
    "storcli64",
    "perccli",
    "megacli",
    "cpupower",
    "findmnt",
    "nfsstat",
    "arping",
    "tc",
    "iw",
    "lsusb",
    "conntrack",
    "btrfs",
    "ssacli",
    "hpssacli",
    "hpacucli",
    "omreport",
];

/// Words in front of the command that is really run.
const CARRIERS: [&str; 6] = ["sudo", "time", "nice", "env", "stdbuf", "timeout"];

/// Options of a load that change what it can reach.
const OPTIONS: [&[&str]; 4] =
    [&["-w", "--window"], &["-l", "--len"], &["-M", "--set-mss"], &["-C", "--congestion"]];

/// A command line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Command {
    /// As it stands there.
    pub whole: String,
    /// Words of the tool whose output follows, the tool's bare name first.
    pub words: Vec<String>,
    /// Host that `ssh` in front of it names.
    pub ssh: Option<String>,
    /// It enters the network of a container.
    pub overlay: bool,
}

impl Command {
    /// Reads a command line, as far as its first `|`, `;` or `&&`.
    pub(crate) fn parse(text: &str) -> Self {
        let first = text.split(['|', ';', '>']).next().unwrap_or("").split("&&").next().unwrap_or("");
        let first = first.split(" #").next().unwrap_or("");
        let mut words: Vec<String> = first
            .split_whitespace()
            .map(|w| w.trim_matches(['"', '\'', '`']).to_owned())
            .filter(|w| !w.is_empty())
            .collect();
        let mut command = Self { whole: text.trim().to_owned(), ..Self::default() };
        // Each turn takes words away, so this ends.
        while let Some(carried) = command.unwrap_one(&words) {
            words = carried;
        }
        if let Some(tool) = words.first_mut() {
            *tool = tool.rsplit('/').next().unwrap_or_default().to_owned();
        }
        command.words = words;
        command
    }

    /// The words without one carrier in front; `None` when the first word is the tool itself.
    fn unwrap_one(&mut self, words: &[String]) -> Option<Vec<String>> {
        let first = words.first()?.rsplit('/').next()?;
        let rest = &words[1..];
        if first.contains('=') && !first.starts_with('-') {
            return Some(rest.to_vec());
        }
        if CARRIERS.contains(&first) {
            let number = |w: &String| w.starts_with('-') || w.parse::<f64>().is_ok();
            return Some(rest.iter().skip_while(|w| number(w)).cloned().collect());
        }
        let is_tool = |w: &String| {
            let name = w.rsplit('/').next().unwrap_or_default();
            TOOLS.contains(&name) && !["ssh", "docker", "nsenter"].contains(&name)
        };
        match first {
            "ssh" => {
                let host = rest.iter().find(|w| !w.starts_with('-') && w.parse::<u16>().is_err())?;
                self.ssh = host.rsplit('@').next().filter(|h| is_host(h)).map(str::to_owned);
                let at = rest.iter().position(|w| w == host)?;
                Some(rest[at + 1..].to_vec())
            }
            "nsenter" | "docker" | "kubectl" => {
                self.overlay = true;
                let at = rest.iter().position(is_tool)?;
                Some(rest[at..].to_vec())
            }
            "numactl" | "taskset" => {
                let at = rest.iter().position(is_tool)?;
                Some(rest[at..].to_vec())
            }
            // `ip netns exec NAME tool`: a namespace alone does not imply a layer.
            "ip" if rest.first().is_some_and(|w| w == "netns") && rest.len() > 3 => Some(rest[3..].to_vec()),
            _ => None,
        }
    }

    /// The tool is one of these.
    pub(crate) fn is(&self, tools: &[&str]) -> bool {
        self.words.first().is_some_and(|w| tools.contains(&w.as_str()))
    }

    /// Word after an option: `-c HOST`, also `-cHOST` and `--client=HOST`.
    pub(crate) fn value(&self, options: &[&str]) -> Option<&str> {
        let words = self.words.get(1..)?;
        words.iter().enumerate().find_map(|(i, word)| {
            options.iter().find_map(|option| {
                if word == *option {
                    return words.get(i + 1).map(String::as_str);
                }
                let rest = word.strip_prefix(option)?;
                let long = option.starts_with("--");
                if long { rest.strip_prefix('=') } else { Some(rest).filter(|r| !r.starts_with('-')) }
            })
        })
    }

    /// Variables and options of a command.
    pub(crate) fn conditions(&self) -> (String, String) {
        let variable = |w: &&str| {
            w.split_once('=').is_some_and(|(name, _)| {
                !name.is_empty() && name.chars().all(|c| c.is_ascii_uppercase() || c == '_')
            })
        };
        let environment: Vec<&str> = self.whole.split_whitespace().take_while(variable).collect();
        let option = |names: &&[&str]| Some(format!("{} {}", names[0], self.value(names)?));
        let options: Vec<String> = OPTIONS.iter().filter_map(option).collect();
        (environment.join(" "), options.join(" "))
    }

    /// An option without a value stands there.
    pub(crate) fn has(&self, options: &[&str]) -> bool {
        self.words.iter().skip(1).any(|w| options.contains(&w.as_str()))
    }

    /// The last word that is no option.
    pub(crate) fn last_plain(&self) -> Option<&str> {
        self.words.iter().skip(1).rev().find(|w| !w.starts_with('-')).map(String::as_str)
    }
}

/// Context of the lines that follow.
#[derive(Debug, Clone, Default)]
pub(crate) struct Context {
    /// File.
    pub file: String,
    /// Host whose prompt came last; else of `--host`, else of the file's name.
    pub host: Option<String>,
    /// The host is only a word of the file's name: perhaps it names something else.
    pub weak: bool,
    /// The other host that the file's name contains: `arc-1-to-arc-2.json`.
    pub peer: Option<String>,
    /// The command whose output this is, if a prompt or the file's name has it.
    pub command: Command,
    /// Device of the last command or heading that named one.
    pub nic: Option<String>,
    /// The last lines that were no output, since the last prompt.
    pub label: String,
    /// The last line of the text, where it announces what follows, such as `DRBD over SDP:`; prompts and
    /// output do not end it.
    pub title: String,
    /// Layer of measurements.
    pub layer: Option<Layer>,
    /// The text somewhere speaks of an overlay.
    pub speaks_of_overlay: bool,
    /// The text somewhere names the network of the machines themselves.
    pub speaks_of_underlay: bool,
    /// The state in which a test ran, as far as the text shows what changed.
    pub state: Condition,
}

impl Context {
    /// Layer of a measurement that follows.
    pub(crate) fn layer(&self) -> Layer {
        // A table has no command of its own.
        let of_table = self.state.table > 0 && self.speaks_of_overlay;
        let of_command = self.command.overlay || names_overlay(&self.command.whole);
        let inside = of_table || of_command || self.label_names_layer();
        self.layer.unwrap_or(if inside { Layer::Overlay } else { Layer::Underlay })
    }

    /// The heading names an overlay.
    pub(crate) fn label_names_layer(&self) -> bool {
        names_overlay(&self.label)
    }

    /// Whether the file's name, the heading or the command has a word with this prefix (`drbd`, `ipoib`).
    pub(crate) fn mentions(&self, word: &str) -> bool {
        [&self.file, &self.label, &self.command.whole].iter().any(|text| {
            let text = text.to_lowercase();
            text.split(|c: char| !c.is_alphanumeric()).any(|w| w.starts_with(word))
        })
    }
}

/// Whether a text names the network of the machines themselves.
pub(crate) fn names_underlay(text: &str) -> bool {
    let text = text.to_lowercase();
    ["underlay", "without overlay", "physical network"].iter().any(|w| text.contains(w))
}

/// Whether a text speaks of an overlay.
pub(crate) fn names_overlay(text: &str) -> bool {
    let text = text.to_lowercase().replace("without overlay", "");
    ["overlay", "vxlan", "ingress_sbox", "ingress network", "/docker/netns/"].iter().any(|w| text.contains(w))
}

/// Whether a word can be the name of a host or an address.
pub(crate) fn is_host(word: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-._:%".contains(c);
    (1..=253).contains(&word.len())
        && word.chars().all(plain)
        && word.starts_with(|c: char| c.is_ascii_alphanumeric() || c == ':')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_unwrapped() {
        let read = |text: &str| Command::parse(text).words.join(" ");
        assert_eq!(read("sudo /usr/sbin/ethtool -k em1 | grep gro"), "ethtool -k em1");
        assert_eq!(read("LC_ALL=C sudo -n time iostat -x 1"), "iostat -x 1");
        assert_eq!(read("ip netns exec blue ping -c 3 a"), "ping -c 3 a");
        assert_eq!(read("numactl -N 0 iperf3 -c b"), "iperf3 -c b");
        let inside = Command::parse("nsenter --net=/run/docker/netns/ingress_sbox iperf3 -c 10.0.0.4");
        assert_eq!((inside.words[0].as_str(), inside.overlay), ("iperf3", true));
        let far = Command::parse("ssh -p 22 root@arc-2 'sysctl -a'");
        assert_eq!((far.ssh.as_deref(), far.words.join(" ")), (Some("arc-2"), "sysctl -a".to_owned()));
        assert_eq!(Command::parse("ssh $h uptime").ssh, None);
        assert_eq!(read(""), "");
    }

    #[test]
    fn variables_and_options_that_change_a_load() {
        let command = Command::parse("LD_PRELOAD=libsdp.so iperf -c b -w 256k -t 10");
        assert_eq!(command.conditions(), ("LD_PRELOAD=libsdp.so".to_owned(), "-w 256k".to_owned()));
        assert_eq!(Command::parse("iperf3 -c b -t 10").conditions(), (String::new(), String::new()));
    }

    #[test]
    fn options_in_all_their_forms() {
        let command = Command::parse("iperf3 -c arc-2 -P4 --time=10 -R");
        assert_eq!(command.value(&["-c", "--client"]), Some("arc-2"));
        assert_eq!(command.value(&["-P"]), Some("4"));
        assert_eq!(command.value(&["--time"]), Some("10"));
        assert!(command.has(&["-R"]) && !command.has(&["-u"]));
        assert_eq!(command.value(&["-t"]), None);
    }
}
