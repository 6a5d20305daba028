//! The record of own drains, and the machine that continues from it over the real Slurm. In: work for the
//! machine. Out: its result; the record is saved in the operator's data folder before each write to Slurm.

use anyhow::Context as _;
use linerate_drain::{Ledger, Machine};
use linerate_fleet::slurm::Scontrol;
use linerate_store::{LockedFile, StoreError};

/// What saves the record.
pub(in crate::cli) type SaveLedger<'r> = Box<dyn FnMut(&Ledger) -> Result<(), StoreError> + 'r>;

/// Does work with the machine of the cluster that Slurm's clients find. No other command has it meanwhile.
pub(in crate::cli) fn with_machine<T>(
    work: impl FnOnce(&mut Machine<'_, Scontrol, SaveLedger<'_>>, String) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let mut slurm = Scontrol::new(None).context("cannot start the runtime")?;
    let cluster = slurm.cluster()?;
    let record = LockedFile::open(&format!("drain-{cluster}"))?;
    let ledger: Ledger = match record.read()? {
        Some(text) => {
            serde_json::from_str(&text).context("the record of own drains is damaged; nothing is written")?
        }
        None => Ledger::default(),
    };
    let keep = |ledger: &Ledger| {
        // Its keys are texts.
        let text = serde_json::to_string_pretty(ledger).unwrap_or_default();
        record.write(&text)
    };
    let mut machine = Machine::new(&mut slurm, ledger, Box::new(keep) as SaveLedger<'_>);
    work(&mut machine, cluster)
}
