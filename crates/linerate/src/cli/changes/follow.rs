//! `linerate changes --follow`: what hosts report of changes as they happen, printed and logged.

use std::time::Duration;

use linerate_fleet::{Fleet, LinkError, clock};
use linerate_model::exit::ExitCode;
use linerate_model::fact::{FactKey, HostFacts};
use linerate_model::fact_change::SeenBy;
use linerate_model::inventory::{HostName, Inventory};
use linerate_model::notice::{FactNotice, Writer};
use linerate_model::printable::{lines_of_error, one_line};
use linerate_report::changes;
use linerate_report::heat::Style;
use linerate_store::{FactReading, ReadScope, Store};
use linerate_wire::message::{Event, ObserveRequest};
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::cli::documents::NoticeOfHost;
use crate::cli::{open, out};

/// Notices that wait to be printed; a host that reports more waits.
const WAITING_MAX: usize = 256;

/// Reading all facts may take this long.
const READ_WAIT: Duration = Duration::from_secs(60);
/// A host answers after half a minute, with or without a notice.
const ANSWER_WAIT: Duration = Duration::from_secs(60);

/// What one host reports, or why it reports nothing more.
type Reported = (HostName, Result<Event, String>);

/// Follows hosts until Ctrl-C, or for a time; keys with one of these prefixes; all without prefixes.
pub(super) async fn run(
    inventory: &Inventory,
    keys: Vec<FactKey>,
    time: Option<Duration>,
    json: bool,
) -> anyhow::Result<ExitCode> {
    let Some(fleet) = open::unless_interrupted(Fleet::open(inventory, |_| true)).await else {
        return Ok(open::after_interrupt());
    };
    fleet.notes.iter().for_each(|note| out::note(note));
    fleet.gaps.iter().for_each(|gap| out::note(&format!("{}: {}", gap.what, gap.reason)));
    let mut reported = start(&fleet, &keys);
    let mut log = Log::new(&inventory.name, keys);
    let until = time.map(|time| Instant::now() + time);
    // The usual end is Ctrl-C.
    let ended = tokio::select! {
        ended = log.all(&mut reported, json) => ended,
        () = open::interrupted() => Ok(()),
        () = open::passed(until) => Ok(()),
    };
    let is_whole = fleet.gaps.is_empty();
    fleet.bye().await;
    ended?;
    anyhow::ensure!(log.hosts > 0, "no host can be followed\nhint: the lines above name the reasons");
    out::note(&format!("{} changes seen on {} hosts; `linerate changes` lists them", log.seen, log.hosts));
    Ok(if is_whole { ExitCode::Ok } else { ExitCode::PartlyBlind })
}

/// Asks all hosts; their events come out until the sessions end.
fn start(fleet: &Fleet, keys: &[FactKey]) -> mpsc::Receiver<Reported> {
    let (to_printer, reported) = mpsc::channel(WAITING_MAX);
    for host in fleet.hosts() {
        let (to_printer, link, keys) = (to_printer.clone(), fleet.link(&host), keys.to_vec());
        tokio::spawn(async move {
            let follow = async {
                let link = link?;
                for event in link.request(ObserveRequest::Follow { prefixes: keys }, READ_WAIT).await? {
                    let _ = to_printer.send((host.clone(), Ok(event))).await;
                }
                loop {
                    for event in link.request(ObserveRequest::Notices, ANSWER_WAIT).await? {
                        if to_printer.send((host.clone(), Ok(event))).await.is_err() {
                            return Ok::<(), LinkError>(());
                        }
                    }
                }
            };
            if let Err(error) = follow.await {
                let _ = to_printer.send((host.clone(), Err(error.to_string()))).await;
            }
        });
    }
    reported
}

/// What was seen, and where it is logged.
pub(in crate::cli) struct Log {
    cluster: String,
    keys: Vec<FactKey>,
    seen: usize,
    hosts: usize,
}

impl Log {
    /// Of a cluster, keys with one of these prefixes; all without prefixes.
    pub(in crate::cli) fn new(cluster: &str, keys: Vec<FactKey>) -> Self {
        Self { cluster: cluster.to_owned(), keys, seen: 0, hosts: 0 }
    }

    /// Prints and logs until no host reports anything more.
    async fn all(&mut self, reported: &mut mpsc::Receiver<Reported>, json: bool) -> anyhow::Result<()> {
        while let Some((host, event)) = reported.recv().await {
            match event {
                Ok(Event::Facts(facts)) => self.begin(&host, &facts),
                Ok(Event::Noticed(notices)) => {
                    for notice in notices {
                        if json {
                            out::document_line(NoticeOfHost { host: &host, notice: &notice })?;
                        } else {
                            out::print(&changes::notice(&host, &notice, Style::detect().width))?;
                        }
                        self.notice(&host, notice);
                    }
                }
                Ok(_) => {}
                Err(reason) => out::note(&lines_of_error(&reason)),
            }
        }
        Ok(())
    }

    /// A host is followed from now on. What changed since it was read last is logged too.
    pub(in crate::cli) fn begin(&mut self, host: &HostName, facts: &HostFacts) {
        self.hosts += 1;
        let gaps = facts.gaps.iter().filter(|gap| gap.what.to_string().starts_with("notices of "));
        for gap in gaps {
            let (what, reason) = (one_line(&gap.what.to_string()), lines_of_error(&gap.reason));
            out::note(&format!("{host}: no {what}: {reason}; such changes are seen every 15 minutes"));
        }
        let scope = if self.keys.is_empty() { ReadScope::All } else { ReadScope::Below(&self.keys) };
        self.write(host, facts, scope, None);
    }

    /// A change that a host has reported.
    pub(in crate::cli) fn notice(&mut self, host: &HostName, notice: FactNotice) {
        self.seen += notice.changes.len();
        let keys: Vec<FactKey> = notice.changes.iter().map(|change| change.key.clone()).collect();
        let mut facts = HostFacts::default();
        facts.readings.extend(notice.changes.into_iter().filter_map(|one| Some((one.key, one.to?))));
        let who = notice.writer.as_ref().map(Writer::name);
        if !keys.is_empty() {
            self.write(host, &facts, ReadScope::Below(&keys), who.as_deref());
        }
    }

    fn write(&self, host: &HostName, facts: &HostFacts, scope: ReadScope<'_>, who: Option<&str>) {
        let now_ms = clock::now_ms();
        let reading = FactReading {
            cluster: &self.cluster,
            started_ms: now_ms,
            ended_ms: now_ms,
            seen_by: SeenBy::Facts,
            scope,
            who,
        };
        // What was reported is printed in any case.
        if let Err(error) = Store::open_default().and_then(|mut s| s.log_facts(&reading, [(host, facts)])) {
            out::note(&format!("changes are not recorded: {error}"));
        }
    }
}
