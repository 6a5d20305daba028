//! `linerate check HOST …`: the checks of hosts, over their sessions.

use std::ffi::OsString;
use std::pin::Pin;

use clap::Parser as _;
use linerate_fleet::{Fleet, LinkError};
use linerate_model::check::CheckReport;
use linerate_model::exit::ExitCode;
use linerate_model::fact::{Gap, GapSubject};
use linerate_model::inventory::HostName;
use linerate_model::verdict::Verdict;

use crate::cli::documents::{HostCheck, HostChecks};
use crate::cli::hosts::{Hosts, Needs};
use crate::cli::out;
use linerate_operator::build;
use linerate_operator::observe::join;

#[derive(Debug, clap::Parser)]
#[command(name = "linerate check", no_binary_name = true)]
struct OnHosts {
    #[command(flatten)]
    hosts: Hosts,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

type Asked<'a> = Pin<Box<dyn Future<Output = Result<CheckReport, LinkError>> + 'a>>;

pub(super) fn run(words: &[OsString]) -> anyhow::Result<ExitCode> {
    let args = match OnHosts::try_parse_from(words) {
        Ok(args) => args,
        Err(error) => {
            let _ = error.print();
            return Ok(if error.use_stderr() { ExitCode::CouldNotRun } else { ExitCode::Ok });
        }
    };
    args.hosts.with(Needs::Sessions, async |fleet, inventory| {
        let names: Vec<HostName> = inventory.hosts.iter().map(|host| host.name.clone()).collect();
        let checks = all(fleet, &names).await;
        if args.json {
            out::document(verdict(&checks), HostChecks { hosts: &checks })?;
        } else {
            for one in &checks {
                match (&one.report, &one.error) {
                    (Some(report), _) => out::print(&report.text())?,
                    (_, Some(error)) => out::say_error(&anyhow::anyhow!(error.clone())),
                    (None, None) => {}
                }
            }
        }
        Ok(code(&checks))
    })
}

async fn all(fleet: &Fleet, names: &[HostName]) -> Vec<HostCheck> {
    let asked = names.iter().map(|host| -> Asked<'_> { Box::pin(build::health(fleet, host)) });
    let reports = join::all(asked.collect()).await;
    let of = |(host, report): (&HostName, Result<CheckReport, LinkError>)| {
        let (report, error) = match report {
            Ok(report) => (Some(report), None),
            Err(error) => (None, Some(error.to_string())),
        };
        HostCheck { host: host.clone(), report, error }
    };
    names.iter().zip(reports).map(of).collect()
}

/// That of all hosts together; one without a report was not seen.
fn verdict(checks: &[HostCheck]) -> Verdict {
    let mut whole = Verdict::default();
    for one in checks {
        if let Some(report) = &one.report {
            let verdict = report.verdict();
            whole.findings.extend(verdict.findings);
            whole.unseen.gaps.extend(verdict.unseen.gaps);
        }
        whole.unseen.gaps.extend(
            one.error
                .iter()
                .map(|reason| Gap { what: GapSubject::Host(one.host.clone()), reason: reason.clone() }),
        );
    }
    whole
}

/// What fails or warns on any host counts first, then what was not seen.
fn code(checks: &[HostCheck]) -> ExitCode {
    let of = |one: &HostCheck| one.report.as_ref().map_or(ExitCode::PartlyBlind, CheckReport::exit_code);
    let any = |code: ExitCode| checks.iter().any(|one| of(one) == code);
    [ExitCode::Findings, ExitCode::PartlyBlind].into_iter().find(|code| any(*code)).unwrap_or(ExitCode::Ok)
}
