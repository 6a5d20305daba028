//! `linerate clean`: removes from hosts what was copied there over ssh, and says what.

use std::fmt::Write as _;
use std::path::Path;

use linerate_model::exit::ExitCode;
use linerate_model::fact::{Gap, GapSubject};
use linerate_model::inventory::{SshSpec, TransportKind, TransportSpec};
use linerate_model::verdict::{Verdict, VerdictItem};

use super::targets::Targets;
use super::{open, out, progress};
use crate::cli::documents::{CleanedHost, CleanedHosts};
use linerate_fleet::progress::ProgressPhase;
use linerate_fleet::ssh::{self, Cleaned};

/// Hosts that are cleaned at the same time.
const CLEANING_MAX: usize = 16;

/// Remove the node programs that were copied to hosts.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  linerate clean arc-1 arc-2\n  linerate clean -i cluster.toml")]
pub(super) struct Args {
    #[command(flatten)]
    targets: Targets,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let progress = progress::start(false, args.json);
    let inventory = args.targets.machines()?.inventory;
    let hosts = open::runtime()?.block_on(async {
        let places = std::sync::Arc::new(tokio::sync::Semaphore::new(CLEANING_MAX));
        let mut tasks = tokio::task::JoinSet::new();
        let mut done = Vec::new();
        for host in &inventory.hosts {
            let name = host.name.clone();
            match &host.transport {
                TransportSpec::Ssh(spec) => {
                    let (spec, places) = (spec.clone(), std::sync::Arc::clone(&places));
                    let cache_dir = host.cache_dir.clone();
                    tasks.spawn(async move {
                        // Never closed.
                        let _place = places.acquire().await;
                        one(name, &spec, cache_dir.as_deref()).await
                    });
                }
                // What is copied to a node of a Slurm cluster goes with its session.
                TransportSpec::Local
                | TransportSpec::Netns { .. }
                | TransportSpec::Slurm(_)
                | TransportSpec::Iperf3 { .. } => {
                    let over = host.transport.kind();
                    done.push(CleanedHost { host: name, over, cleaned: Cleaned::default(), error: None });
                }
            }
        }
        progress.begin(&ProgressPhase {
            name: "cleaning",
            unit: "hosts",
            total: tasks.len(),
            expected_s: None,
        });
        let mut cleaned = 0;
        while let Some(joined) = tasks.join_next().await {
            cleaned += 1;
            progress.step(cleaned, "", None);
            done.extend(joined);
        }
        progress.end();
        done.sort_by(|a, b| a.host.cmp(&b.host));
        done
    });
    if args.json {
        out::document(verdict(&hosts), CleanedHosts { hosts: &hosts })?;
    } else {
        out::print(&text(&hosts))?;
    }
    let failed = hosts.iter().any(|h| h.error.is_some() || !h.cleaned.kept.is_empty());
    Ok(if failed { ExitCode::PartlyBlind } else { ExitCode::Ok })
}

async fn one(host: String, spec: &SshSpec, cache_dir: Option<&Path>) -> CleanedHost {
    let (cleaned, error) = match ssh::clean(spec, cache_dir).await {
        Ok(cleaned) => (cleaned, None),
        Err(error) => (Cleaned::default(), Some(error.to_string())),
    };
    CleanedHost { host, over: TransportKind::Ssh, cleaned, error }
}

/// What is still there, and hosts that were not reached.
fn verdict(hosts: &[CleanedHost]) -> Verdict {
    let kept = hosts.iter().flat_map(|one| one.cleaned.kept.iter().map(move |why| (&one.host, why)));
    let item = |(host, why): (&String, &String)| {
        VerdictItem::stated(Some(host), "copied programs", format!("{host}: still there: {why}"))
    };
    let gap = |one: &CleanedHost| {
        Some(Gap { what: GapSubject::Host(one.host.clone()), reason: one.error.clone()? })
    };
    Verdict::stating(kept.map(item), hosts.iter().filter_map(gap).collect())
}

fn text(hosts: &[CleanedHost]) -> String {
    let mut text = String::new();
    for CleanedHost { host, over, cleaned, error } in hosts {
        // Writing into a `String` cannot fail.
        let mut line = |words: &str| {
            let _ = writeln!(text, "{host}: {words}");
        };
        match error {
            Some(error) => line(&format!("not cleaned: {error}")),
            None if *over != TransportKind::Ssh => line("is not reached over ssh: nothing was copied there"),
            None if cleaned.removed.is_empty() && cleaned.kept.is_empty() => line("nothing of ours is there"),
            None => {}
        }
        for (path, bytes) in &cleaned.removed {
            line(&match bytes {
                0 => format!("removed {path}"),
                bytes => format!("removed {path} ({:.1} MiB)", *bytes as f64 / f64::from(1 << 20)),
            });
        }
        cleaned.kept.iter().for_each(|why| line(&format!("still there: {why}")));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_host_has_a_line() {
        let host = |name: &str, cleaned: Cleaned, error: Option<&str>| CleanedHost {
            host: name.into(),
            over: TransportKind::Ssh,
            cleaned,
            error: error.map(str::to_owned),
        };
        let removed = vec![("/c/linerate-node-ab".to_owned(), 3 << 20), ("/c".to_owned(), 0)];
        let hosts = [
            host("a", Cleaned { removed, kept: vec![] }, None),
            host("b", Cleaned::default(), None),
            host("c", Cleaned::default(), Some("the session ended")),
            CleanedHost { over: TransportKind::Local, ..host("here", Cleaned::default(), None) },
            host("d", Cleaned { removed: vec![], kept: vec!["not empty".into()] }, None),
        ];
        let expected = "a: removed /c/linerate-node-ab (3.0 MiB)\na: removed /c\nb: nothing of ours is there\n\
                        c: not cleaned: the session ended\nhere: is not reached over ssh: nothing was copied there\nd: still there: not empty\n";
        assert_eq!(text(&hosts), expected);
    }
}
