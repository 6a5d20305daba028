//! `linerate serve`: read-only pages of the store, for a browser on this machine or behind `ssh -L`,
//! elsewhere with TLS and users. `linerate watch --page` serves the same.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use linerate_fleet::clock;
use linerate_history::History;
use linerate_kept::{KeptSet, Known};
use linerate_model::drift::DriftRow;
use linerate_model::exit::ExitCode;
use linerate_model::fact_change::FactChange;
use linerate_page::server::{Listen, Server};
use linerate_page::view::{DriftView, RunView, SiteView};
use linerate_page::{Source, live};
use linerate_store::Store;
use tokio::sync::watch;

use super::drift::{ChosenProfiles, KeptLocation};
use super::{open, out};

/// Serve read-only pages of the store to your browser, until Ctrl-C.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  linerate serve\n  linerate serve --listen 127.0.0.1:0          a free port\n  linerate serve --listen ./linerate.sock      a unix socket, for ssh -L\n  linerate serve --listen 10.1.2.3:7788 --web-config web.yml\n\nFrom another machine: ssh -L 7788:127.0.0.1:7788 THIS-HOST, then http://localhost:7788/.\nOnly the user who started it and root can connect, or the users of the web-config file."
)]
pub(super) struct Args {
    /// Address with its port, or the path of a unix socket
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7788")]
    listen: Listen,
    /// TLS and users, as the exporters of Prometheus read them; needed beside loopback addresses
    #[arg(long, value_name = "FILE")]
    web_config: Option<PathBuf>,
    /// Kept set; defaults to kept.toml beside the inventory of the run, else the one in PostgreSQL
    #[arg(long, value_name = "FILE")]
    kept: Option<PathBuf>,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    open::runtime()?.block_on(async {
        let page = Page::open(&args.listen, args.web_config.as_deref(), args.kept.clone())?;
        out::print(&page.server.address())?;
        out::note("read-only; Ctrl-C ends it");
        // The usual end.
        open::unless_interrupted(page.run()).await;
        Ok(ExitCode::Ok)
    })
}

/// A page that can be served.
pub(super) struct Page {
    pub(super) server: Server,
    source: Arc<Source>,
    views: watch::Receiver<Arc<SiteView>>,
}

impl Page {
    /// Binds, and reads the store.
    pub(super) fn open(
        listen: &Listen,
        web_config: Option<&Path>,
        kept: Option<PathBuf>,
    ) -> anyhow::Result<Self> {
        let source = Arc::new(Source {
            store: Box::new(Store::open_to_read),
            history: Box::new(History::open_to_read),
            run: Box::new(open::snapshot_of),
            drift: Box::new(move |run, log| drift(kept.as_deref(), run, log)),
            now_ms: clock::now_ms,
        });
        let server = Server::bind(listen, web_config)?.noting(out::note);
        let views = live::follow(Arc::clone(&source))?;
        Ok(Self { server, source, views })
    }

    /// Serves until it is dropped.
    pub(super) async fn run(self) {
        self.server.run(self.source, self.views).await;
    }
}

/// The kept set beside the facts of a run. The files of hosts are not among them.
fn drift(named: Option<&Path>, run: &RunView, log: &[FactChange]) -> DriftView {
    let read = || {
        let inventory = run.row.inventory_path.as_deref();
        let set = KeptLocation::find(named, inventory, &run.snapshot.inventory.name)?.load()?;
        let rows = rows(&set, run, log)?;
        anyhow::Ok(DriftView::Rows { file: set.file, rows })
    };
    read().unwrap_or_else(|error| DriftView::Absent(format!("{error:#}")))
}

fn rows(set: &KeptSet, run: &RunView, changes: &[FactChange]) -> anyhow::Result<Vec<DriftRow>> {
    let inventory = &run.snapshot.inventory;
    let profiles = ChosenProfiles(inventory);
    let mut rows = Vec::new();
    for host in &inventory.hosts {
        let facts = run.snapshot.facts.get(&host.name);
        let kept = linerate_kept::of_host(set, inventory, &host.name, facts, &profiles)?;
        rows.extend(match facts {
            Some(facts) => linerate_kept::compare(
                kept,
                Known { facts, changes, put_back: &[], now_ms: run.row.start_ms },
            ),
            None => linerate_kept::unreachable(kept, "its facts were not read in this run"),
        });
    }
    Ok(rows)
}
