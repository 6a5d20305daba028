//! `linerate keep --dry-run`: what would be written where. Each host plans its files itself; nothing is
//! written.

use std::fmt::Write as _;

use linerate_fleet::Fleet;
use linerate_fleet::changes::FleetChanges;
use linerate_model::change::Change;
use linerate_model::exit::ExitCode;
use linerate_model::inventory::Inventory;
use linerate_model::trial::Trial;
use linerate_report::card;

use super::super::documents::{KeepPlan, KeepPlanOfHost};
use super::super::{open, out};

pub(super) fn run(
    trial: &Trial,
    inventory: &Inventory,
    kept: Option<&str>,
    json: bool,
) -> anyhow::Result<ExitCode> {
    let hosts = open::runtime()?.block_on(async {
        let changed = |name: &str| trial.remedy.changes.iter().any(|change| change.host == name);
        let fleet = Fleet::open(inventory, |host| changed(&host.name)).await;
        open::with_fleet(fleet, async |fleet| of_hosts(fleet, inventory, trial).await).await
    })?;
    let Some(hosts) = hosts else { return Ok(open::after_interrupt()) };
    let plan = KeepPlan { trial: &trial.id, hosts, kept };
    if json {
        out::listing(plan)?;
    } else {
        out::print(&text(&plan, trial))?;
    }
    Ok(ExitCode::Ok)
}

async fn of_hosts(
    fleet: &Fleet,
    inventory: &Inventory,
    trial: &Trial,
) -> anyhow::Result<Vec<KeepPlanOfHost>> {
    let mut changes = FleetChanges::new(fleet, inventory);
    let mut all = Vec::new();
    for host in trial.remedy.hosts() {
        let own = |change: &&Change| change.host == host;
        let own: Vec<Change> = trial.remedy.changes.iter().filter(own).cloned().collect();
        let files = changes.plan_keep(&host, &own).await.map_err(|e| anyhow::Error::msg(e.error))?;
        all.push(KeepPlanOfHost { host, files });
    }
    changes.bye().await;
    Ok(all)
}

fn text(plan: &KeepPlan<'_>, trial: &Trial) -> String {
    // Writing into a `String` cannot fail.
    let mut text = format!("linerate keep {} would write this; nothing was written.\n", plan.trial);
    for change in &trial.remedy.changes {
        let _ = writeln!(text, "  now         {}", card::change(change));
    }
    for KeepPlanOfHost { host, files } in &plan.hosts {
        for file in files {
            let new = if file.is_new { " (new)" } else { "" };
            let _ = writeln!(text, "  at a boot   {host}: {}{new}", file.path.display());
            for line in &file.lines {
                let _ = writeln!(text, "                {line}");
            }
        }
    }
    if let Some(kept) = plan.kept {
        let _ = writeln!(text, "  kept set    {kept}");
    }
    text
}
