//! `linerate drain`: nodes with a fault of their own leave Slurm. Shows what it would do; acts with `--yes`.

mod evidence;
mod held;
mod shown;

use clap::ValueEnum;
use linerate_drain::{Applied, DrainPlan, HoldMeans};
use linerate_fleet::clock;
use linerate_model::exit::ExitCode;

use super::out;
pub(super) use evidence::{ClusterOf, evidence};
pub(super) use held::with_machine;
pub(super) use shown::{Action, NodeLine, Shown};

/// Drain nodes of Slurm with a fault of their own, found in two runs (dry run).
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  linerate drain -i cluster.toml\n  linerate drain -i cluster.toml --yes")]
pub(super) struct Args {
    #[command(flatten)]
    inventory: ClusterOf,
    /// Keep work off nodes by their state (DRAIN) or by a reservation
    #[arg(long, value_enum, default_value_t = By::State)]
    by: By,
    /// Act; without it nothing is written
    #[arg(long)]
    yes: bool,
    /// Close the circuit breaker, after checking why it opened
    #[arg(long, conflicts_with = "yes")]
    reset_breaker: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// By which means work is kept off a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum By {
    State,
    Reservation,
}

impl From<By> for HoldMeans {
    fn from(by: By) -> Self {
        match by {
            By::State => Self::State,
            By::Reservation => Self::Reservation,
        }
    }
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let now_ms = clock::now_ms();
    if args.reset_breaker {
        return with_machine(|machine, _| {
            match machine.ledger().breaker.clone() {
                Some(trip) => out::note(&format!("circuit breaker closed; it was open: {}", trip.cause)),
                None => out::note("the circuit breaker was closed"),
            }
            machine.reset()?;
            Ok(ExitCode::Ok)
        });
    }
    let evidence = evidence(args.inventory.given(), now_ms)?;
    with_machine(|machine, cluster| {
        let plan = machine.plan_drain(&evidence, now_ms)?;
        let applied = if args.yes { machine.drain(&plan, args.by.into(), now_ms)? } else { Vec::new() };
        let breaker = machine.ledger().breaker.clone();
        let shown = lines(&plan, &applied);
        let shown = Shown { cluster, cap: plan.cap, held: plan.held, breaker, acted: args.yes, nodes: shown };
        shown.print(args.json, plan.trip.as_ref(), &args.inventory.command("linerate drain"))?;
        Ok(shown.code())
    })
}

fn lines(plan: &DrainPlan, applied: &[Applied]) -> Vec<NodeLine> {
    let held = plan.hold.iter().map(|decision| NodeLine::of(decision, Action::Drain, applied));
    held.chain(plan.leave.iter().map(|(node, why)| NodeLine::left(node, why))).collect()
}
