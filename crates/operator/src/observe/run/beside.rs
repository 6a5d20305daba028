//! What a survey learns beside its matrix: what the tool itself reaches on fast hosts, and what cannot be
//! seen of devices without a node program.
//!
//! What comes in: the samples so far, the inventory. What goes out: a figure in the facts of a host, gaps.

use linerate_model::fact::Gap;
use linerate_model::inventory::HostName;
use linerate_model::sample::Outcome;
use linerate_model::tuning::Tuning;

use super::{Survey, boxed};
use crate::observe::measure::{self, Patience};
use crate::observe::{join, own_limit};
use linerate_fleet::progress::ProgressPhase;
use linerate_store::StoreError;

impl Survey<'_> {
    /// What the tool reaches on the hosts where it may be what binds: machines of their own at the same time,
    /// hosts on this one after the other.
    pub(super) async fn own_limits(&mut self) -> Result<(), StoreError> {
        if self.order.share.is_some() {
            // A loopback at full speed takes CPUs from whatever runs there.
            return Ok(());
        }
        let inventory = self.order.inventory;
        let all = own_limit::hosts_in_question(inventory, &self.snapshot.facts, &self.snapshot.samples);
        let (here, there): (Vec<HostName>, Vec<HostName>) =
            all.into_iter().partition(|host| own_limit::is_here(inventory, host));
        if here.len() > own_limit::HERE_MAX {
            let what = format!("the tool's own limit on {} hosts", here.len() - own_limit::HERE_MAX);
            let reason =
                format!("they are on this machine, of which {} hosts were asked", own_limit::HERE_MAX);
            self.gap(Gap { what: what.into(), reason })?;
        }
        let here = &here[..here.len().min(own_limit::HERE_MAX)];
        let total = here.len() + there.len();
        if total > 0 {
            let name = "measuring the tool's own limit";
            self.progress.begin(&ProgressPhase { name, unit: "hosts", total, expected_s: None });
            let mut done = 0;
            for hosts in here.chunks(1).chain(there.chunks(own_limit::AT_ONCE)) {
                self.own_limits_of(hosts).await?;
                done += hosts.len();
                self.progress.step(done, "", None);
            }
            self.progress.end();
        }
        self.lost_hosts().await.map(|_| ())
    }

    async fn own_limits_of(&mut self, hosts: &[HostName]) -> Result<(), StoreError> {
        let inventory = self.order.inventory;
        let tests: Vec<_> = hosts
            .iter()
            .map(|host| own_limit::test_of(inventory, host))
            .filter(|(_, test)| {
                self.left().is_none_or(|left| left >= test.kind.plan().time_max()) && self.alive(test)
            })
            .collect();
        let fleet = self.fleet;
        let plain = Tuning::default();
        let tunings: Vec<Tuning> = tests.iter().map(|(_, test)| self.own_tuning(&test.from)).collect();
        let run =
            |own, test, tuning| boxed(measure::or_plain(fleet, own, test, Patience::Usual, tuning, &plain));
        let running =
            tests.iter().zip(&tunings).map(|((own, test), tuning)| run(own, test, tuning)).collect();
        for sample in join::all(running).await {
            let host = &sample.test.from;
            let reason = match sample.outcome {
                Outcome::Measured(m) => {
                    if let (Some(facts), Some(bps)) =
                        (self.snapshot.facts.get_mut(host), own_limit::tool_bps(&m))
                    {
                        facts.tool_bps = Some(bps);
                        self.store.add_facts(&self.snapshot.id, [(host, &*facts)])?;
                    }
                    continue;
                }
                Outcome::NothingThrough { reason }
                | Outcome::Invalid { reason }
                | Outcome::Gap { reason } => reason,
            };
            self.gap(Gap { what: format!("the tool's own limit on {host}").into(), reason })?;
        }
        Ok(())
    }

    /// What cannot be seen of devices that only have iperf3.
    pub(super) fn plain_hosts(&mut self) -> Result<(), StoreError> {
        let inventory = self.order.inventory;
        let plain: Vec<&HostName> =
            inventory.hosts.iter().map(|h| &h.name).filter(|h| self.is_plain(h)).collect();
        for (index, host) in plain.iter().enumerate() {
            let reason = "it has only an iperf3 server: no facts and no counters can be read there, and neither idle RTT \
                          nor path MTU is measured with it";
            self.gap(Gap { what: format!("facts of {host}").into(), reason: reason.to_owned() })?;
            for other in &plain[index + 1..] {
                let reason = "both have only an iperf3 server, and one end must ask".to_owned();
                self.gap(Gap { what: format!("tests between {host} and {other}").into(), reason })?;
            }
        }
        Ok(())
    }
}
