//! `linerate resume`: nodes that this program drained return to Slurm after a run that they passed. Shows
//! what it would do; acts with `--yes`.

use linerate_fleet::clock;
use linerate_model::exit::ExitCode;

use super::drain::{Action, ClusterOf, NodeLine, Shown, evidence, with_machine};

/// Resume nodes that `drain` took out, after a run that they passed (dry run).
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  linerate survey -i cluster.toml\n  linerate resume -i cluster.toml --yes"
)]
pub(super) struct Args {
    #[command(flatten)]
    inventory: ClusterOf,
    /// Act; without it nothing is written
    #[arg(long)]
    yes: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let now_ms = clock::now_ms();
    let evidence = evidence(args.inventory.given(), now_ms)?;
    with_machine(|machine, cluster| {
        let plan = machine.plan_resume(&evidence, now_ms)?;
        let applied = if args.yes { machine.resume(&plan, now_ms)? } else { Vec::new() };
        let released = plan.release.iter().map(|decision| NodeLine::of(decision, Action::Resume, &applied));
        let nodes = released.chain(plan.keep.iter().map(|(node, why)| NodeLine::left(node, why))).collect();
        let breaker = machine.ledger().breaker.clone();
        let held = machine.ledger().holds.len();
        let shown = Shown { cluster, cap: plan.cap, held, breaker, acted: args.yes, nodes };
        shown.print(args.json, None, &args.inventory.command("linerate resume"))?;
        Ok(shown.code())
    })
}
