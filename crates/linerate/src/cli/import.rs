//! What the tools of others printed, for `linerate diagnose`; with `--save` it becomes a stored run.

use std::path::PathBuf;

use linerate_import::ImportOptions;
use linerate_knowledge::Knowledge;
use linerate_model::finding::Diagnosis;
use linerate_model::inventory::{Inventory, Layer};
use linerate_model::snapshot::Snapshot;

use super::{open, out};
use crate::import;
use linerate_report as report;
use linerate_store::Store;

/// Options for reading output of other tools.
#[derive(Debug, Default, clap::Args)]
pub(super) struct Reading {
    /// Host name for input without a prompt that names one
    #[arg(long, value_name = "NAME")]
    host: Option<String>,
    /// Read every file as this format instead of detecting it; `--as help` lists them
    // More than a screen of them.
    #[arg(long = "as", value_name = "FORMAT", hide_possible_values = true, value_parser = clap::builder::PossibleValuesParser::new(linerate_import::formats().map(|(name, _)| name)))]
    format: Option<String>,
    /// Network that was measured; defaults to the underlay, except where a command enters a container's
    /// network
    #[arg(long, value_parser = layer)]
    layer: Option<Layer>,
    /// Inventory file with groups and addresses
    #[arg(short, long, value_name = "FILE")]
    inventory: Option<PathBuf>,
}

impl Reading {
    /// The inventory that was named.
    pub(super) fn known(&self) -> anyhow::Result<Option<Inventory>> {
        self.inventory.as_deref().map(|path| open::inventory(path, &[])).transpose()
    }
}

fn layer(text: &str) -> Result<Layer, String> {
    match text {
        "underlay" => Ok(Layer::Underlay),
        "overlay" => Ok(Layer::Overlay),
        _ => Err("underlay or overlay".to_owned()),
    }
}

/// Fewest words of a text that describes something.
const WORDS_MIN: usize = 5;

/// What is understood, for the help.
pub(super) const INPUTS: &str = "\
Supported input:
  iperf 2 and iperf3 (text, JSON, CSV), nuttcp, netperf, ping (also -M do), ss -ti
  ethtool, -k -g -c -i -S -l; ip -s -j link, ip addr, ifconfig; sysctl -a; /etc/hosts
  /proc/net/softnet_stat, /proc/interrupts, /proc/diskstats, /proc/drbd
  iostat -x, fio JSON, tiotest; a matrix as Markdown, CSV or columns; an unpacked sosreport
Host names are taken from prompts and file names. Unrecognised input is quoted.

";

/// Stores what `read` returns as a run; the store is opened first, so that nothing is read in vain.
pub(super) fn save(
    read: impl FnOnce() -> anyhow::Result<Snapshot>,
    reading: &Reading,
    parent: Option<&str>,
    knowledge: &Knowledge,
) -> anyhow::Result<(Snapshot, Diagnosis)> {
    let mut store = Store::open_default()?;
    let mut snapshot = read()?;
    snapshot.id = linerate_operator::run_id::new_id();
    snapshot.start_ms = linerate_fleet::clock::now_ms();
    snapshot.parent = parent.map(|id| store.find_run(Some(id))).transpose()?.map(|run| run.id);
    let diagnosis = linerate_report::words::diagnose(&snapshot, knowledge);
    store.begin_run(&snapshot, reading.inventory.as_deref().map(open::absolute).as_deref())?;
    store.add_facts(&snapshot.id, &snapshot.facts)?;
    store.add_samples(&snapshot.id, &snapshot.samples)?;
    for gap in &snapshot.gaps {
        store.add_gap(&snapshot.id, gap)?;
    }
    store.finish(&snapshot, &diagnosis)?;
    Ok((snapshot, diagnosis))
}

/// Reads files into a snapshot without a name; an error when nothing in them is evidence.
pub(super) fn read(files: &[PathBuf], reading: &Reading) -> anyhow::Result<Snapshot> {
    let collected = import::collect(files)?;
    for remark in &collected.remarks {
        out::note(&format!("left out: {remark}"));
    }
    let known = reading.known()?;
    let options = ImportOptions {
        host: reading.host.clone(),
        format: reading.format.clone(),
        layer: reading.layer,
        inventory: known,
    };
    let snapshot = linerate_import::read(&collected.documents, &options);
    let account = snapshot.imported.as_deref();
    // Words alone are enough to know what to measure next.
    if account.is_none_or(|account| account.pieces.is_empty() && account.words.len() < WORDS_MIN) {
        let first = account.and_then(|a| a.unread.first()).map_or(String::new(), |unread| {
            format!("; the first line is {}", report::imported::quoted(unread))
        });
        let files = match collected.documents.len() {
            1 => collected.documents[0].name.clone(),
            many => format!("{many} files"),
        };
        anyhow::bail!(
            "nothing in {files} is evidence that is understood{first}\nhint: `linerate diagnose --help` lists the formats; --as names one"
        );
    }
    Ok(snapshot)
}
