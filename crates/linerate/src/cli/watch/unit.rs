//! The systemd unit of a watch with a user of its own, and that user; that of an agent. In: the words of the
//! watch. Out: texts;
//! nothing is written.

use std::path::Path;

use linerate_model::inventory::Inventory;
use linerate_model::notify::NotifyVia;
use linerate_model::step::CHECK_PROGRAM;

/// Its user, and its folder below `/var/lib`: not that of the nodes, which is root's.
const USER: &str = "linerate";
const FOLDER: &str = "linerate-watch";
/// What the unit cannot read, for the users' files are none of its business.
const HIDDEN: [&str; 3] = ["/home", "/root", "/run/user"];

/// Whether the unit cannot see a path.
pub(super) fn is_hidden(path: &Path) -> bool {
    HIDDEN.iter().any(|hidden| path.starts_with(hidden))
}

/// What the unit may do: talk to hosts, and write into its own folder.
const SANDBOX: &str = "\
NoNewPrivileges=yes
CapabilityBoundingSet=
AmbientCapabilities=
ProtectSystem=strict
ProtectHome=yes
PrivateTmp=yes
PrivateDevices=yes
ProtectClock=yes
ProtectControlGroups=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
ProtectProc=invisible
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
LockPersonality=yes
MemoryDenyWriteExecute=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service
";

/// The file for `sysusers.d`, with what makes the user and starts the unit.
pub(super) fn sysusers() -> String {
    format!(
        "# Made by `linerate watch --print sysusers`. As root:\n\
         #   mkdir -p /etc/sysusers.d\n\
         #   linerate watch --print sysusers > /etc/sysusers.d/{FOLDER}.conf && systemd-sysusers\n\
         #   linerate watch --print unit -i /etc/linerate/cluster.toml > /etc/systemd/system/{FOLDER}.service\n\
         #   systemctl daemon-reload && systemctl enable --now {FOLDER}\n\
         u {USER} - \"linerate watch\" /var/lib/{FOLDER}\n"
    )
}

/// The unit; `arguments` are those of the command, `textfile` is the folder of its metrics.
///
/// # Errors
/// A path that the unit could not use.
pub(super) fn unit(
    program: &Path,
    arguments: &[String],
    inventory: (&Path, &Inventory),
    textfile: Option<&Path>,
) -> anyhow::Result<String> {
    let (file, inventory) = inventory;
    let keys = inventory.agents.as_ref().map(|agents| agents.keys.as_path());
    for path in [Some(file), textfile, keys].into_iter().flatten() {
        anyhow::ensure!(
            !is_hidden(path),
            "{}: the unit cannot read what belongs to a user\nhint: use /etc/linerate for such files",
            path.display()
        );
    }
    let words: Vec<String> =
        std::iter::once(program.display().to_string()).chain(arguments.iter().cloned()).collect();
    let command = words.iter().map(|word| quoted(word)).collect::<anyhow::Result<Vec<String>>>()?.join(" ");
    let written = match textfile {
        // node_exporter reads it.
        Some(folder) => format!("ReadWritePaths={}\nUMask=0022\n", quoted(&folder.display().to_string())?),
        None => "UMask=0077\n".to_owned(),
    };
    let is_mail = |via: &NotifyVia| matches!(via, NotifyVia::Mail { .. });
    let mail = if inventory.notify.iter().any(|target| is_mail(&target.via)) {
        "# A sendmail with rights of its own (setgid) cannot deliver from here: use `command` with an SMTP client.\n"
    } else {
        ""
    };
    Ok(format!(
        "# Made by `linerate watch --print unit`; its user is made by `linerate watch --print sysusers`.\n\
         [Unit]\n\
         Description=Watch of a cluster by linerate\n\
         Documentation=man:linerate-watch(1)\n\
         Wants=network-online.target\n\
         After=network-online.target\n\n\
         [Service]\n\
         ExecStart={command}\n\
         # 1: there were alarms; 3: sessions were lost.\n\
         SuccessExitStatus=1 3\n\
         Restart=always\n\
         RestartSec=10\n\
         TimeoutStopSec=30\n\
         User={USER}\n\
         Group={USER}\n\
         StateDirectory={FOLDER}\n\
         StateDirectoryMode=0700\n\
         WorkingDirectory=%S/{FOLDER}\n\
         Environment=HOME=%S/{FOLDER} LINERATE_DATA=%S/{FOLDER}\n\
         {mail}{SANDBOX}{written}\n\
         [Install]\n\
         WantedBy=multi-user.target\n"
    ))
}

/// What an agent does without. What would give it a view of files of its own (`ProtectSystem` and all that
/// needs a mount namespace) is left out: mounts and sysctls are what it reports.
const AGENT_SANDBOX: &str = "\
NoNewPrivileges=yes
CapabilityBoundingSet=~CAP_SYS_MODULE CAP_SYS_BOOT CAP_SYS_TIME CAP_SYS_TTY_CONFIG CAP_SYS_PACCT CAP_MKNOD \\
    CAP_CHOWN CAP_FSETID CAP_SETFCAP CAP_SETPCAP CAP_SETUID CAP_SETGID CAP_KILL CAP_LINUX_IMMUTABLE CAP_LEASE \\
    CAP_MAC_ADMIN CAP_MAC_OVERRIDE CAP_AUDIT_CONTROL CAP_AUDIT_WRITE CAP_AUDIT_READ CAP_WAKE_ALARM
RestrictRealtime=yes
RestrictSUIDSGID=yes
LockPersonality=yes
MemoryDenyWriteExecute=yes
SystemCallArchitectures=native
UMask=0077
";

/// The unit of an agent on a host. Its program is that of `linerate check install`, its file is private.
pub(super) fn agent_unit() -> String {
    format!(
        "# Made by `linerate watch --print agent-unit`: /etc/systemd/system/linerate-agent.service on a host.\n\
         [Unit]\n\
         Description=Agent of linerate watch: dials the operator and serves it; listens on nothing\n\
         Documentation=man:linerate-watch(1)\n\
         Wants=network-online.target\n\
         After=network-online.target\n\
         ConditionPathExists=/etc/linerate/agent.toml\n\
         # It waits by itself, longer after each failure; it ends only where its file is refused.\n\
         StartLimitIntervalSec=0\n\n\
         [Service]\n\
         ExecStart={CHECK_PROGRAM} agent\n\
         Restart=always\n\
         RestartSec=30\n\
         {AGENT_SANDBOX}\n\
         [Install]\n\
         WantedBy=multi-user.target\n"
    )
}

/// A word of a unit: what systemd would expand or split stays as it is.
fn quoted(word: &str) -> anyhow::Result<String> {
    anyhow::ensure!(!word.chars().any(char::is_control), "`{}` has control characters", word.escape_debug());
    let word = word.replace('%', "%%").replace('$', "$$");
    let is_plain = |c: char| c.is_alphanumeric() || "-_./:=@%$+,".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return Ok(word);
    }
    Ok(format!("\"{}\"", word.replace('\\', "\\\\").replace('"', "\\\"")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn systemd_takes_each_argument_for_one_word() {
        assert_eq!(quoted("/etc/linerate/a-b.toml").unwrap(), "/etc/linerate/a-b.toml");
        assert_eq!(quoted("100% of $HOME").unwrap(), "\"100%% of $$HOME\"");
        assert_eq!(quoted("a\"b\\").unwrap(), "\"a\\\"b\\\\\"");
        assert!(quoted("a\nExecStart=/bin/sh").is_err());
    }

    #[test]
    fn what_a_user_owns_is_no_inventory_of_a_service() {
        let of = |file: &str| {
            unit(Path::new("/usr/bin/linerate"), &[], (Path::new(file), &Inventory::default()), None)
        };
        assert!(of("/home/a/cluster.toml").unwrap_err().to_string().contains("hint: use /etc/linerate"));
        assert!(of("/etc/linerate/cluster.toml").unwrap().contains("User=linerate\n"));
    }
}
