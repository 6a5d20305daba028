//! `linerate drbd verify`: both sides are compared block by block; what differs is an alarm, whatever the
//! states say.

use linerate_model::drbd::{DrbdMove, DrbdTrouble, Replica};
use linerate_model::exit::ExitCode;
use linerate_model::step::{DrbdStep, Step};
use linerate_storage::drbd::{On, alarms};

use super::super::hosts::{Hosts, Needs};
use super::super::{out, progress};
use super::{moves, wait};
use crate::cli::documents::DrbdVerified;
use linerate_operator::observe::drbd as seen;
use linerate_report::drbd as shown;
use linerate_report::heat::Style;

/// Compare both sides block by block, with an ETA; report differing blocks as a finding
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  linerate drbd verify r0 store-1 store-2\n\nThe resource stays online. It requires a verify-alg, which files written by `linerate drbd up` have."
)]
pub(in crate::cli) struct Args {
    /// Name of the resource
    resource: String,
    #[command(flatten)]
    hosts: Hosts,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// How a comparison ended.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Outcome {
    /// All of it was compared.
    Whole,
    /// It ended before; the share that was compared.
    BrokenOff(f64),
    /// It was never seen under way.
    NotSeen,
}

impl Outcome {
    fn of(ended: &wait::Ended, host: &str, resource: &str) -> Self {
        let goes_on = ended.now.of(host, resource).is_some_and(Replica::is_connected);
        match ended.broken_off_at(goes_on) {
            Some(share) => Self::BrokenOff(share),
            None if ended.was_busy => Self::Whole,
            None => Self::NotSeen,
        }
    }

    /// What is said, if anything is left to say. Blocks that differ are said already.
    fn says(self, differs: bool) -> Option<String> {
        match self {
            Self::Whole => (!differs).then(|| "both sides hold the same".to_owned()),
            Self::BrokenOff(share) => Some(format!(
                "the comparison was broken off at {:.0} %: of the rest nothing is known\nhint: once both sides are connected, begin again",
                share * 100.0
            )),
            Self::NotSeen => Some(
                "whether anything was compared is not known: the comparison was not seen under way\nhint: the kernel's log says \"Online verify done\" when it was; a volume of some MiB takes less than a second"
                    .to_owned(),
            ),
        }
    }

    fn for_programs(self) -> (&'static str, Option<f64>) {
        match self {
            Self::Whole => ("whole", Some(1.0)),
            Self::BrokenOff(share) => ("broken-off", Some(share)),
            Self::NotSeen => ("not-seen", None),
        }
    }
}

pub(in crate::cli) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let progress = progress::start(false, args.json);
    args.hosts.with(Needs::Sessions, async |fleet, inventory| {
        let now = seen::look(fleet).await;
        let side = now.all.iter().filter(|r| r.resource == args.resource);
        // The primary reads anyway what it compares.
        let Some(side) = side.max_by_key(|r| r.role == "Primary") else {
            anyhow::bail!(
                "no host has {} in use\nhint: `linerate drbd status HOSTS` shows what there is",
                args.resource
            );
        };
        anyhow::ensure!(
            side.is_connected(),
            "{}: {} is not connected, so that there is nothing to compare with\nhint: `linerate drbd status HOSTS`",
            side.host,
            args.resource
        );
        let step = Step::Drbd(DrbdStep::Verify { resource: args.resource.clone() });
        let steps = [On { host: side.host.clone(), step }];
        let what = (args.resource.as_str(), DrbdMove::Verify);
        if let Some(code) = moves::make(fleet, what, &steps, progress.as_ref()).await? {
            return Ok(code);
        }
        let host = side.host.clone();
        let ended = wait::until_done(fleet, "comparing", progress.as_ref()).await?;
        let outcome = Outcome::of(&ended, &host, &args.resource);
        let end = ended.now;
        let mut found = alarms(&end.all, &end.known, &end.not_up);
        found.retain(|alarm| alarm.resource == args.resource);
        let typed = inventory.typed.as_deref();
        shown::name_inventory(&mut found, typed);
        if args.json {
            let (compared, share) = outcome.for_programs();
            let document =
                DrbdVerified { compared, compared_share: share, replicas: &end.all, alarms: &found };
            let summary = linerate_report::verdict::of_replicas(&found, &end.all, &end.gaps, typed);
            out::document(summary, document)?;
        } else {
            let style = Style::detect();
            out::print(&(shown::table(&end.all, style) + &shown::alarms(&found, style)))?;
            let differs = found.iter().any(|alarm| alarm.what == DrbdTrouble::OutOfSync);
            if let Some(words) = outcome.says(differs) {
                out::print(&words)?;
            }
        }
        Ok(match (found.is_empty(), outcome) {
            (false, _) => ExitCode::Findings,
            (true, Outcome::Whole) => ExitCode::Ok,
            (true, _) => ExitCode::PartlyBlind,
        })
    })
}
