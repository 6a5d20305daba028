//! `linerate-lab vm …`: the command line of labs of guests.
//!
//! In: arguments. Out: a running lab, or requests to one that runs. It never does the work itself.

use std::ffi::OsString;
use std::io::Write;
use std::os::fd::AsFd;
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::time::Duration;

use clap::Subcommand;
use linerate_model::exit::ExitCode;
use linerate_sys::interrupt::Interrupt;
use linerate_sys::sched;

use super::disk::Keep;
use super::lab::VmLab;
use super::request::{DriveChange, GuestRequest, LinkChange, SOCKET};
use super::switch::TrafficDirection;
use super::topology::VmTopology;
use super::{faults, guest, judge, reach};
use crate::control;
use crate::error::{LabError, Result};
use crate::{folder, supervisor};

const POLL_INTERVAL_NS: u64 = 1_000_000_000;

/// Run emulated machines with drive and link faults injected at run time.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  linerate-lab vm up --lab vm-pair --background\n  linerate-lab vm exec one -- lsblk\n  linerate-lab vm drive one data1 --ops-per-s 20\n  linerate-lab vm link two --loss 100\n  linerate-lab vm cut one --keep half && linerate-lab vm boot one\n  linerate-lab vm down\n\n`vm up` and `vm status` print the inventory and environment that linerate needs to reach the guests."
)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Boot guests and keep them running.
    Up {
        /// Lab file, or the name of a built-in lab: vm-pair, vm-replica, vm-36, vm-systemd.
        #[arg(long, default_value = "vm-pair")]
        lab: String,
        /// Return when the guests are ready; stop them with `down`.
        #[arg(long)]
        background: bool,
    },
    /// Run a program in a guest as root, and exit with its exit code.
    Exec {
        /// Guest name.
        guest: String,
        /// Program and its arguments.
        #[arg(required = true, last = true)]
        command: Vec<OsString>,
        #[command(flatten)]
        which: Which,
    },
    /// Show or change the behaviour of a guest's drive.
    Drive {
        /// Guest name.
        guest: String,
        /// Drive name, which is also the serial number that the guest sees.
        drive: String,
        #[command(flatten)]
        change: DriveChange,
        #[command(flatten)]
        which: Which,
    },
    /// Delay, drop or cut traffic on a guest's link.
    Link {
        /// Guest name.
        guest: String,
        /// Direction, as seen from the guest.
        #[arg(long = "way", value_enum, default_value = "both")]
        direction: TrafficDirection,
        #[command(flatten)]
        change: LinkChange,
        #[command(flatten)]
        which: Which,
    },
    /// Cut the power of a guest.
    Cut {
        /// Guest name.
        guest: String,
        /// Unflushed writes that survive, on drives with a volatile cache.
        #[arg(long, value_enum, default_value = "nothing")]
        keep: Keep,
        /// Seed; repeats the same choice of surviving writes.
        #[arg(long, default_value_t = 1)]
        seed: u64,
        #[command(flatten)]
        which: Which,
    },
    /// Power a guest on again, with its drives.
    Boot {
        /// Guest name.
        guest: String,
        #[command(flatten)]
        which: Which,
    },
    /// Show the state of the running lab.
    Status {
        /// Print JSON with the counters of all drives.
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        which: Which,
    },
    /// Stop the running lab.
    Down(Which),
    /// List the faults that `judge` injects.
    Faults,
    /// Inject drive faults at random and report linerate's accuracy.
    Judge(judge::GuestJudgeOptions),
}

#[derive(Debug, clap::Args)]
struct Which {
    /// Folder of the lab; required if more than one is running.
    #[arg(long)]
    folder: Option<PathBuf>,
}

impl Which {
    fn folder(&self) -> Result<PathBuf> {
        self.folder.clone().map_or_else(|| folder::running_with(SOCKET, "linerate-lab vm up"), Ok)
    }

    fn ask(&self, request: &GuestRequest, print: &mut dyn FnMut(&str)) -> Result<ExitCode> {
        // A boot takes longest.
        let within = guest::BOOT_WITHIN + Duration::from_secs(30);
        let answer = control::ask_at(&self.folder()?.join(SOCKET), request, within)?;
        if answer.done {
            print(answer.text.trim_end());
            return Ok(ExitCode::Ok);
        }
        Err(LabError::Unknown(answer.text))
    }
}

/// Runs the command.
///
/// # Errors
/// The step that failed.
pub fn run(args: Args, print: &mut dyn FnMut(&str), progress: &mut dyn FnMut(&str)) -> Result<ExitCode> {
    match args.command {
        Command::Up { lab, background: true } => {
            print(supervisor::start_in_background(&["vm", "up", "--lab", &lab])?.trim_end());
            Ok(ExitCode::Ok)
        }
        Command::Up { lab, background: false } => up(&lab, progress),
        Command::Exec { guest, command, which } => {
            let error = reach::command(&which.folder()?, &guest, &command).exec();
            Err(LabError::Kernel { step: "running ssh".into(), source: error })
        }
        Command::Drive { guest, drive, change, which } => {
            which.ask(&GuestRequest::Drive { guest, drive, change }, print)
        }
        Command::Link { guest, direction, change, which } => {
            which.ask(&GuestRequest::Link { guest, direction, change }, print)
        }
        Command::Cut { guest, keep, seed, which } => {
            which.ask(&GuestRequest::Cut { guest, keep, seed }, print)
        }
        Command::Boot { guest, which } => which.ask(&GuestRequest::Boot { guest }, print),
        Command::Status { json, which } => which.ask(&GuestRequest::Status { json }, print),
        Command::Down(which) => which.ask(&GuestRequest::Down, print),
        Command::Faults => {
            for fault in faults::ALL {
                print(&format!("{:14} {:10} {}", fault.name(), fault.stage().name(), fault.summary()));
            }
            Ok(ExitCode::Ok)
        }
        Command::Judge(options) => {
            let interrupt = Interrupt::new().map_err(LabError::at("blocking the stop signals"))?;
            let mut report = |record: &judge::GuestRun| {
                print(&if options.json {
                    serde_json::to_string(record).unwrap_or_default()
                } else {
                    record.line()
                });
            };
            let records = judge::judge(&options, &interrupt, &mut report, progress)?;
            if !options.json {
                print(judge::table(&records).trim_end());
            }
            Ok(if records.iter().all(judge::GuestRun::exact) { ExitCode::Ok } else { ExitCode::Findings })
        }
    }
}

fn up(lab: &str, progress: &mut dyn FnMut(&str)) -> Result<ExitCode> {
    let topology = VmTopology::load(lab)?;
    // Before any thread is started: threads inherit what is blocked.
    let interrupt = Interrupt::new().map_err(LabError::at("blocking the stop signals"))?;
    let mut lab = VmLab::up(topology, Some(&interrupt), progress)?;
    let by_signal = serve(&mut lab, &interrupt)?;
    Ok(if by_signal { ExitCode::Interrupted } else { ExitCode::Ok })
}

/// Serves requests until one of them or a signal ends the lab. Returns whether it was a signal.
fn serve(lab: &mut VmLab, interrupt: &Interrupt) -> Result<bool> {
    let path = lab.folder().join(SOCKET);
    let step = || format!("listening at {}", path.display());
    let listener = UnixListener::bind(&path).map_err(LabError::at(step()))?;
    listener.set_nonblocking(true).map_err(LabError::at(step()))?;
    // The reader may be gone: a background start exits after the line.
    let _ = writeln!(std::io::stdout(), "{}{}", lab.status(), supervisor::READY);
    loop {
        let until = sched::monotonic_ns() + POLL_INTERVAL_NS;
        let waited = sched::wait_readable([listener.as_fd(), interrupt.as_fd()], until);
        let [asked, _] = waited.map_err(LabError::at("waiting for requests"))?;
        if interrupt.taken() {
            return Ok(true);
        }
        // A caller that hung up is no reason to end the lab.
        if asked
            && let Ok(Some(GuestRequest::Down)) =
                control::serve_one(&listener, |request: &GuestRequest| lab.answer(request))
        {
            return Ok(false);
        }
    }
}
