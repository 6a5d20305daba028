//! Bulk transfer from sender to receiver over one or more streams, in one direction or both.
//!
//! What comes in: number of streams, time, options. What goes out: bytes, which both ends counted and
//! compared, the series of short intervals, the inside of each connection, and the end state. One thread per
//! stream, and one that samples all of them and keeps the time. Unless a window is asked for, neither end
//! sets a buffer size: the host's own autotuning and limits are what is measured.
//!
//! When the time is over, the sender closes its direction. The receiver reads to the end and sends its count
//! and checksum on the same stream. Then the sender resets the stream, so that neither end keeps a TIME_WAIT.
//!
//! Streams are numbered: first those to the receiver, then those back, last the control stream of a
//! calibration.

mod accept;
mod calibrate;
mod choose;
mod connect;
mod crew;
mod inside;
mod methods;
mod options;
mod placement;
mod plan;
mod proof;
mod receive;
mod receiver;
mod send;
mod sender;
mod stream_end;

use std::io;
use std::net::TcpStream;

use linerate_model::kind::TcpPlan;
use linerate_model::load::{LoadReport, Role, Turn};
use linerate_sys::affinity;

use self::methods::Methods;
use self::plan::Plan;
use crate::job::{Job, LoadError};
use crate::load::Load;

/// The load `tcp`.
pub(crate) struct Tcp;

impl Load for Tcp {
    type Plan = TcpPlan;

    fn run(&self, job: &Job<'_>, plan: &TcpPlan, report: &mut LoadReport) -> Result<(), LoadError> {
        let plan = Plan::new(job, *plan)?;
        if plan.connections() > 64 {
            // With fewer the limit does not matter; if it cannot be raised, opening the streams fails with
            // the reason.
            let _ = affinity::raise_open_files();
        }
        let all = match job.spec.role {
            Role::Receiver => accept::accept(job, plan)?,
            Role::Sender { peer } => connect::connect(job, plan, peer)?,
        };
        let (forward, back, control) = plan.split(&all);
        let mut methods = Methods::asked_for(&job.spec.tuning)?;
        let sends = matches!(job.spec.role, Role::Sender { .. });
        if let Some(control) = control {
            let mut turns: Vec<Turn> = Vec::new();
            methods = if sends {
                calibrate::lead(job, plan, forward, control, &mut turns)?
            } else {
                calibrate::follow(job, plan, forward, control)?
            };
            report.calibration = turns;
            // What the turns cost is in their table, not in the test's figures.
            job.restart();
        }
        if sends {
            both(job, report, &|report| sender::send(job, plan, forward, &methods, report), back, &|report| {
                receiver::receive(job, plan, back, &methods, report)
            })
        } else {
            both(
                job,
                report,
                &|report| receiver::receive(job, plan, forward, &methods, report),
                back,
                &|report| sender::send(job, plan, back, &methods, report),
            )
        }
    }
}

type Half<'a> = &'a (dyn Fn(&mut LoadReport) -> Result<(), LoadError> + Sync);

/// Runs one direction, and at the same time the other when there are streams for it.
fn both(
    job: &Job<'_>,
    report: &mut LoadReport,
    there: Half<'_>,
    streams_back: &[TcpStream],
    back: Half<'_>,
) -> Result<(), LoadError> {
    if streams_back.is_empty() {
        return there(report);
    }
    job.check("starting")?;
    std::thread::scope(|scope| {
        let other = std::thread::Builder::new().name("load-back".into()).spawn_scoped(scope, || {
            let mut report = LoadReport::default();
            let result = back(&mut report);
            report.stopped = result.as_ref().err().map(ToString::to_string);
            (report, result)
        });
        let result = there(report);
        let other = other.map_err(LoadError::io("start a thread"))?;
        let (other_report, other_result) = other.join().map_err(|_| {
            LoadError::io("run the reverse direction")(io::Error::other("its thread panicked"))
        })?;
        report.back = Some(Box::new(other_report));
        result.and(other_result)
    })
}

#[cfg(test)]
mod tests;
