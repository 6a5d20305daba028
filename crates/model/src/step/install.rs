//! Steps that install the health checks on a host: the node program, units of systemd, a script for Slurm,
//! the kept set.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::check::{StepError, shown};
use super::operation::{Act, Argv, Listing, Need, StepOperation, argv};

/// The installed node program: a folder that is in every distribution and in no package.
pub const CHECK_PROGRAM: &str = "/usr/local/sbin/linerate-node";
/// The kept settings of the host, as `linerate check install` writes them: a list of `KeptSetting` in JSON.
pub const KEPT_FILE: &str = "/etc/linerate/kept.json";
/// Longest file, bytes: 10,000 settings of a kept set.
const TEXT_BYTES_MAX: usize = 4 << 20;
/// Digits of a SHA-256.
const HASH_DIGITS: usize = 64;

/// One step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum InstallStep {
    /// systemd reads its units. As the first step of a build it is undone last, when the units are gone.
    Reload,
    /// The node program that does this step is copied, if it is this one.
    Program {
        /// SHA-256 of the program, hexadecimal.
        sha256: String,
    },
    /// A file is written.
    File {
        /// Which one.
        file: InstalledFile,
        /// All of the file.
        text: String,
    },
    /// A unit is enabled; a timer is started too.
    Enable {
        /// Unit.
        unit: InstalledUnit,
    },
}

/// Files of an installation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum InstalledFile {
    /// The unit that checks.
    CheckService,
    /// The timer of that unit.
    CheckTimer,
    /// The unit that compares the kept set before slurmd starts.
    KeptService,
    /// What `HealthCheckProgram` of Slurm names.
    SlurmCheck,
    /// [`KEPT_FILE`].
    KeptSet,
}

/// Units that are enabled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum InstalledUnit {
    /// [`InstalledFile::CheckTimer`].
    CheckTimer,
    /// [`InstalledFile::KeptService`].
    KeptService,
}

impl InstalledFile {
    /// Where it is written.
    #[must_use]
    pub fn path(self) -> &'static str {
        match self {
            Self::CheckService => "/etc/systemd/system/linerate-check.service",
            Self::CheckTimer => "/etc/systemd/system/linerate-check.timer",
            Self::KeptService => "/etc/systemd/system/linerate-kept.service",
            Self::SlurmCheck => "/etc/linerate/slurm-check",
            Self::KeptSet => KEPT_FILE,
        }
    }
}

impl InstalledUnit {
    fn name(self) -> &'static str {
        match self {
            Self::CheckTimer => "linerate-check.timer",
            Self::KeptService => "linerate-kept.service",
        }
    }

    /// `--now` where it may run at once: the unit before slurmd is for the next boot.
    fn switch(self) -> &'static [&'static str] {
        match self {
            Self::CheckTimer => &["--now"],
            Self::KeptService => &[],
        }
    }
}

impl InstalledUnit {
    /// The units that are installed with it, as systemctl(1) matches the ones in memory: none is no error.
    fn all(self) -> &'static str {
        match self {
            Self::CheckTimer => "linerate-check*",
            Self::KeptService => "linerate-kept*",
        }
    }
}

fn systemctl(command: &str, unit: InstalledUnit) -> Argv {
    let words: Vec<&str> = std::iter::once(command).chain(unit.switch().iter().copied()).collect();
    argv("systemctl", &words, &[unit.name().to_owned()])
}

impl StepOperation for InstallStep {
    fn says(&self) -> String {
        match self {
            Self::Reload => "have systemd read its units".to_owned(),
            Self::Program { sha256 } => {
                format!("copy the node program to {CHECK_PROGRAM} (SHA-256 {sha256})")
            }
            Self::File { file, .. } => format!("write {}", file.path()),
            Self::Enable { unit } => format!("enable {}", unit.name()),
        }
    }

    fn act(&self) -> Act {
        match self {
            Self::Reload => Act::Run(argv("systemctl", &["daemon-reload"], &[])),
            Self::Program { sha256 } => Act::Copy { path: CHECK_PROGRAM.to_owned(), sha256: sha256.clone() },
            Self::File { file, text } => Act::Write {
                path: file.path().to_owned(),
                text: text.clone(),
                is_program: *file == InstalledFile::SlurmCheck,
            },
            Self::Enable { unit } => Act::Run(systemctl("enable", *unit)),
        }
    }

    fn undo(&self) -> Vec<Argv> {
        match self {
            Self::Reload => vec![argv("systemctl", &["daemon-reload"], &[])],
            // A unit that ended stays in memory, well or failed, also without its file. What stops one that
            // slurmd requires stops slurmd: `disable` has undone that.
            Self::Enable { unit } => vec![
                systemctl("disable", *unit),
                argv("systemctl", &["stop", unit.all()], &[]),
                argv("systemctl", &["reset-failed", unit.all()], &[]),
            ],
            Self::Program { .. } | Self::File { .. } => Vec::new(),
        }
    }

    /// A unit that the site had enabled, a program that it had installed.
    fn may_be_there(&self) -> bool {
        matches!(self, Self::Enable { .. } | Self::Program { .. })
    }

    /// It succeeds whatever the state of the unit is.
    fn listing(&self) -> Option<Listing> {
        let Self::Enable { unit } = self else { return None };
        Some(Listing {
            argv: argv("systemctl", &["show", "--property=UnitFileState"], &[unit.name().to_owned()]),
            names: vec!["UnitFileState=enabled".to_owned()],
        })
    }

    fn needs(&self) -> Vec<Need> {
        match self {
            Self::Program { sha256 } => {
                vec![Need::NoOtherProgram { path: CHECK_PROGRAM.to_owned(), sha256: sha256.clone() }]
            }
            Self::File { file, text } => {
                vec![Need::NoOtherFile { path: file.path().to_owned(), text: text.clone() }]
            }
            Self::Reload | Self::Enable { .. } => Vec::new(),
        }
    }

    /// A unit or script runs nothing but the installed program with its check.
    fn check(&self) -> Result<(), StepError> {
        let wrong = |what, seen: &str, allowed| Err(StepError { what, seen: shown(seen), allowed });
        match self {
            Self::Program { sha256 } => {
                let is_digit = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
                if sha256.len() == HASH_DIGITS && sha256.bytes().all(is_digit) {
                    return Ok(());
                }
                wrong("the hash", sha256, "64 hexadecimal digits")
            }
            Self::File { text, .. } if text.len() > TEXT_BYTES_MAX => {
                wrong("the length of the file", &text.len().to_string(), "at most 4 MiB")
            }
            Self::Reload | Self::Enable { .. } | Self::File { file: InstalledFile::KeptSet, .. } => Ok(()),
            Self::File { file, text } => match text.split('\n').find(|line| !is_own(*file, line)) {
                Some(line) => wrong("the line", line, "a line of an installation of the checks"),
                None => Ok(()),
            },
        }
    }
}

/// Keys of the units that this program writes, each with what its value may be; empty: plain words.
const KEYS: [(&str, &[&str]); 13] = [
    ("Description", &[]),
    ("After", &[]),
    ("Before", &["slurmd.service"]),
    ("Type", &["oneshot"]),
    ("RemainAfterExit", &["yes"]),
    ("SuccessExitStatus", &["3"]),
    ("KillMode", &["process"]),
    ("TimeoutStartSec", &["60", "120"]),
    ("Nice", &["10"]),
    ("OnBootSec", &["2min"]),
    ("OnUnitActiveSec", &["5min"]),
    ("WantedBy", &["timers.target"]),
    ("RequiredBy", &["slurmd.service"]),
];
/// What a check may be called with.
const WORDS: [&str; 6] = ["--enforce", "--as", "slurm", "boot", "--jitter", "60"];

/// Whether a line is one that an installation has: whatever else runs a program is refused, also what systemd
/// takes for the end of a line and this program does not.
fn is_own(file: InstalledFile, line: &str) -> bool {
    let is_plain = |text: &str| text.bytes().all(|b| b.is_ascii_alphanumeric() || b" -._".contains(&b));
    let runs_check = |start: &str| {
        let words = line.strip_prefix(start).and_then(|rest| rest.strip_prefix(CHECK_PROGRAM));
        let words = words.and_then(|rest| rest.strip_prefix(" check"));
        words.is_some_and(|words| words.split(' ').skip(1).all(|word| WORDS.contains(&word)))
            && words.is_some_and(|words| words.is_empty() || words.starts_with(' '))
    };
    let is_remark = line.starts_with("# ") && line.bytes().all(|b| (b' '..=b'~').contains(&b) && b != b'\\');
    if line.is_empty() || is_remark {
        return true;
    }
    if file == InstalledFile::SlurmCheck {
        let guard = line.strip_prefix("[ -x ").and_then(|rest| rest.strip_suffix(" ] || exit 0"));
        return line == "#!/bin/sh" || guard == Some(CHECK_PROGRAM) || runs_check("exec ");
    }
    let is_key = |(key, values): &(&str, &[&str])| {
        let value = line.strip_prefix(key).and_then(|rest| rest.strip_prefix('='));
        value.is_some_and(|value| if values.is_empty() { is_plain(value) } else { values.contains(&value) })
    };
    let is_section = ["[Unit]", "[Service]", "[Timer]", "[Install]"].contains(&line);
    is_section || runs_check("ExecStart=") || KEYS.iter().any(is_key)
}

/// A step of each kind.
#[cfg(test)]
pub(super) fn examples() -> Vec<InstallStep> {
    let exec = |start: &str| format!("{start}{CHECK_PROGRAM} check --enforce\n");
    vec![
        InstallStep::Reload,
        InstallStep::Program { sha256: "0f".repeat(32) },
        InstallStep::File { file: InstalledFile::CheckService, text: exec("[Service]\nExecStart=") },
        InstallStep::File { file: InstalledFile::SlurmCheck, text: exec("#!/bin/sh\nexec ") },
        InstallStep::File { file: InstalledFile::KeptSet, text: "[]\n".to_owned() },
        InstallStep::Enable { unit: InstalledUnit::CheckTimer },
        InstallStep::Enable { unit: InstalledUnit::KeptService },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_runs_nothing_but_a_check() {
        for text in [
            "ExecStart=/bin/sh\n".to_owned(),
            format!("ExecStart={CHECK_PROGRAM} check --as slurm\nExecStop=/bin/x\n"),
            format!("  exec {CHECK_PROGRAM} check; reboot\n"),
            format!("ExecStart={CHECK_PROGRAM} build\n"),
            format!("ExecStart={CHECK_PROGRAM} check --to /etc/shadow\n"),
            format!("ExecStart={CHECK_PROGRAM} checks\n"),
            "Type=oneshot\rExecStart=/bin/sh -c id\n".to_owned(),
            "# a remark\\\nExecStart=/bin/sh\n".to_owned(),
            "Unit=reboot.target\n".to_owned(),
            "#!/bin/sh\nid >/root/x\n".to_owned(),
        ] {
            for file in [InstalledFile::CheckService, InstalledFile::CheckTimer, InstalledFile::SlurmCheck] {
                let step = InstallStep::File { file, text: text.clone() };
                assert!(step.check().is_err(), "{file:?} {text}");
            }
        }
        for sha256 in ["", "0F", "../x"] {
            assert!(InstallStep::Program { sha256: sha256.to_owned() }.check().is_err(), "{sha256}");
        }
    }

    #[test]
    fn a_timer_is_started_at_once_and_the_unit_before_slurmd_at_the_next_boot() {
        let lines = |unit| {
            let step = InstallStep::Enable { unit };
            let Act::Run(argv) = step.act() else { panic!("{step:?}") };
            let words = |argv: Argv| argv[1..].join(" ");
            [vec![argv], step.undo()].concat().into_iter().map(words).collect::<Vec<_>>()
        };
        assert_eq!(
            lines(InstalledUnit::CheckTimer),
            [
                "enable --now linerate-check.timer",
                "disable --now linerate-check.timer",
                "stop linerate-check*",
                "reset-failed linerate-check*"
            ]
        );
        assert_eq!(
            lines(InstalledUnit::KeptService),
            [
                "enable linerate-kept.service",
                "disable linerate-kept.service",
                "stop linerate-kept*",
                "reset-failed linerate-kept*"
            ]
        );
    }
}
