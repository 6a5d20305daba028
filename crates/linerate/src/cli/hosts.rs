//! Which hosts a command that builds or takes back is about, how they are opened, and the name that is typed
//! once more.

use std::path::Path;

use linerate_model::exit::ExitCode;
use linerate_model::inventory::Inventory;

use super::targets::{Chosen, Targets};
use super::{open, out};
use linerate_fleet::Fleet;
use linerate_operator::observe::addresses;

/// Where a command in a hint wants the hosts that this command was given: `linerate drbd status HOSTS`.
const PLACE_OF_HOSTS: &str = " HOSTS";

/// What a command has to know of its hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Needs {
    /// How they are reached.
    Sessions,
    /// Their addresses as well.
    Addresses,
}

/// Hosts with the resource or the volume.
#[derive(Debug, clap::Args)]
pub(super) struct Hosts {
    #[command(flatten)]
    targets: Targets,
    /// Never use sudo on hosts
    #[arg(long)]
    no_sudo: bool,
}

impl Hosts {
    /// The inventory file that was given.
    pub(super) fn given(&self) -> Option<&Path> {
        self.targets.given()
    }

    /// Whether neither hosts nor an inventory were named.
    pub(super) fn is_none_named(&self) -> bool {
        self.targets.words().is_empty()
    }

    /// The hosts with more before them.
    pub(super) fn with_first(&self, first: impl Iterator<Item = String>) -> anyhow::Result<Chosen> {
        let mut chosen = self.targets.machines_with(first)?;
        if self.no_sudo {
            chosen.inventory.without_sudo();
        }
        Ok(chosen)
    }

    /// The hosts.
    pub(super) fn chosen(&self) -> anyhow::Result<Chosen> {
        self.with_first(std::iter::empty())
    }

    /// The hosts as words of another command.
    pub(super) fn words(&self) -> String {
        self.targets.words()
    }

    /// Fills the hosts into a command of a hint: `HOSTS` stands for the words that named them to this
    /// command.
    pub(super) fn fill(&self, text: &str) -> String {
        text.replace(PLACE_OF_HOSTS, &format!(" {}", self.words()))
    }

    /// The same error with the hosts in its hints.
    fn filled(&self, error: anyhow::Error) -> anyhow::Error {
        let texts: Vec<String> = error.chain().map(ToString::to_string).collect();
        if !texts.iter().any(|text| text.contains(PLACE_OF_HOSTS)) {
            return error;
        }
        let mut texts = texts.iter().rev().map(|text| self.fill(text));
        let innermost = anyhow::Error::msg(texts.next().unwrap_or_default());
        texts.fold(innermost, anyhow::Error::context)
    }

    /// Opens all hosts and does the work; the sessions end in every case. `needs` says whether the hosts are
    /// asked for addresses that the inventory does not name.
    pub(super) fn with(
        &self,
        needs: Needs,
        work: impl AsyncFnOnce(&Fleet, &Inventory) -> anyhow::Result<ExitCode>,
    ) -> anyhow::Result<ExitCode> {
        let Chosen { mut inventory, file, .. } = self.chosen()?;
        open::runtime()?.block_on(async {
            let Some(mut fleet) = open::unless_interrupted(Fleet::open(&inventory, |_| true)).await else {
                return Ok(open::after_interrupt());
            };
            fleet.named_by(file.as_deref(), &inventory);
            if needs == Needs::Addresses && addresses::is_needed(&inventory) {
                let how = addresses::fill(&mut fleet, &mut inventory, None).await;
                fleet.notes.extend(how);
            }
            fleet.notes.iter().for_each(|note| out::note(note));
            fleet.gaps.iter().for_each(|gap| out::note(&format!("{}: {}", gap.what, gap.reason)));
            let done = open::with_fleet(fleet, async |fleet| work(fleet, &inventory).await).await;
            let done = done.map_err(|error| self.filled(error))?;
            Ok(done.unwrap_or_else(open::after_interrupt))
        })
    }
}

/// The name that was typed once more has to be that of the thing.
pub(super) fn really(asked: &str, typed: Option<&str>, what: &str) -> anyhow::Result<()> {
    use std::io::{IsTerminal, Write};

    let answer = match typed {
        Some(typed) => typed.to_owned(),
        None if std::io::stdin().is_terminal() => {
            let _ = write!(std::io::stderr(), "{what}\ntype `{asked}` to go on: ");
            let _ = std::io::stderr().flush();
            let mut line = String::new();
            std::io::stdin().read_line(&mut line)?;
            line.trim().to_owned()
        }
        None => anyhow::bail!("{what}\nhint: --yes={asked} confirms it"),
    };
    anyhow::ensure!(
        answer == asked,
        "`{answer}` is not `{asked}`: nothing was done\nhint: type the name itself"
    );
    Ok(())
}
