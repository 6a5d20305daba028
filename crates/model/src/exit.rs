//! The exit codes of all programs: one documented list.

/// What a finished command tells the shell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum ExitCode {
    /// Everything was seen and is at its ceiling, or the command did what was asked.
    Ok = 0,
    /// There are findings (survey, diagnose, diff), or a trial did not show an improvement.
    Findings = 1,
    /// The command could not run: bad arguments, bad inventory, missing right.
    CouldNotRun = 2,
    /// Nothing was found, but part of the cluster could not be seen.
    PartlyBlind = 3,
    /// A change was taken back.
    RolledBack = 4,
    /// A change could not be taken back. The message says by hand what to restore.
    RollbackFailed = 5,
    /// Interrupted (Ctrl-C); everything was cleaned up.
    Interrupted = 130,
}

impl ExitCode {
    /// All codes with their one-line meaning, for the help, the man page and the reference.
    pub const ALL: &'static [(ExitCode, &'static str)] = &[
        (ExitCode::Ok, "at ceiling, or done as asked"),
        (ExitCode::Findings, "there are findings, or the trial showed no improvement"),
        (ExitCode::CouldNotRun, "could not run: arguments, inventory, rights"),
        (ExitCode::PartlyBlind, "nothing found, but part of the cluster could not be seen"),
        (ExitCode::RolledBack, "a change was taken back"),
        (ExitCode::RollbackFailed, "a change could not be taken back"),
        (ExitCode::Interrupted, "interrupted; everything was cleaned up"),
    ];
}

impl From<ExitCode> for std::process::ExitCode {
    fn from(code: ExitCode) -> Self {
        Self::from(code as u8)
    }
}
