//! What can go wrong while a virtual cluster is built, broken or healed.

use std::io;
use std::path::PathBuf;

/// An error of the lab; names the step, the thing and the observed value.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// The file of a lab cannot be used.
    #[error("lab file {path}: {what}\nhint: the labs in labs/ show every key")]
    BadLab {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// A program that the lab needs is not installed.
    #[error("program {program} is missing\nhint: install the package {package} (apt-get install {package})")]
    MissingProgram {
        /// What was to be run.
        program: String,
        /// Debian package that holds it.
        package: &'static str,
    },
    /// A program failed.
    #[error("{command}: {message}")]
    Command {
        /// What was run, with the name of the namespace before it.
        command: String,
        /// Its error output.
        message: String,
    },
    /// The kernel refused something.
    #[error("{step}: {source}")]
    Kernel {
        /// What was tried.
        step: String,
        /// Cause.
        #[source]
        source: io::Error,
    },
    /// The cluster was built and does not carry traffic.
    #[error(
        "{what} after {seconds} s\nhint: another firewall or policy of this machine may reach into namespaces"
    )]
    NotReady {
        /// What is missing.
        what: String,
        /// Time waited, s.
        seconds: u64,
    },
    /// Neither root nor user namespaces.
    #[error(
        "the lab needs root, or user namespaces, and this system refuses both: {source}\nhint: run it as root"
    )]
    NoRights {
        /// Error of the kernel.
        #[source]
        source: io::Error,
    },
    /// Wires need TAP devices, which are not available.
    #[error(
        "/dev/net/tun cannot be opened: {source}\nhint: run it as root, or have root open it: modprobe tun; chmod 666 /dev/net/tun"
    )]
    NoTun {
        /// Error of the kernel.
        #[source]
        source: io::Error,
    },
    /// Ctrl-C, or a signal to stop.
    #[error("interrupted; everything was cleaned up")]
    Interrupted,
    /// A fault, target or lab that does not exist or is not available here.
    #[error("{0}")]
    Unknown(String),
}

impl LabError {
    /// An error of the kernel at a step, for `map_err`.
    pub fn at(step: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let step = step.into();
        move |source| Self::Kernel { step, source }
    }
}

/// Result of a step of the lab.
pub type Result<T, E = LabError> = std::result::Result<T, E>;
