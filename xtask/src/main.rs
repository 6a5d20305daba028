//! `cargo xtask`: what CI runs, in the same order, and the making of generated files.
//!
//! In: the checkout. Out: an exit code and plain lines. It never touches anything outside the checkout.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod bench;
mod book;
mod ci;
mod circles;
mod dist;
mod docs;
mod durability;
mod fuzz;
mod knowledge;
mod lab;
mod node;
mod picture;
mod prose;
mod recording;
mod rules;
mod scale;
mod script;
mod shell;
mod test_programs;
mod tests;
mod tidy;
mod type_names;
mod words;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;

/// Tasks of the linerate workspace.
#[derive(Parser)]
enum Task {
    /// Everything that CI checks: format, tidy, clippy, tests, docs, licences, knowledge, generated files,
    /// the book.
    Ci {
        /// Leave the tests out, because they have just run.
        #[arg(long)]
        skip_tests: bool,
    },
    /// All tests; says how many ran and what was skipped and why.
    Test {
        /// Only tests whose name contains this.
        filter: Option<String>,
        /// Only what answers within three minutes: unit tests, cases, synthetic clusters, the command line.
        #[arg(long)]
        quick: bool,
    },
    /// Throw mutated input at a parser or state machine; `all` for each of them in turn.
    Fuzz {
        /// Which; an unknown name lists them.
        target: String,
        /// How long in all, such as 60s, 5m, 1h.
        #[arg(long, default_value = "60s")]
        time: String,
        /// The same seed gives the same inputs.
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
    /// Compare with the tools that people use now, interleaved, as ratios with ranges.
    #[command(subcommand)]
    Bench(bench::Bench),
    /// Build a static node program for a machine, beside `linerate`, to be copied to hosts over ssh.
    Node {
        /// As `uname -m` says it: x86_64 or aarch64.
        #[arg(long, default_value = std::env::consts::ARCH)]
        arch: String,
    },
    /// Build and pack what users install, in `target/dist/`: tar.gz, Debian package, RPM, OCI image, list of
    /// what is linked, checksums.
    Dist {
        /// Machines, by their names of `uname -m`; this one has to be among them.
        #[arg(long, value_delimiter = ',', default_values_t = node::names())]
        arch: Vec<String>,
        /// Without optimisation: to see that the packages work.
        #[arg(long)]
        debug: bool,
        /// Install the Debian package in an empty folder and survey two namespaces with it (root).
        #[arg(long)]
        check: bool,
    },
    /// Surveys and watches at full size: simulated nodes in virtual time, and real node programs in network
    /// namespaces (root).
    Scale {
        /// Simulated nodes.
        #[arg(long, default_value_t = 10_000)]
        nodes: usize,
        /// Real ones.
        #[arg(long, default_value_t = 300)]
        hosts: usize,
        /// Time of the survey of the real ones, and of their watch.
        #[arg(long, default_value = "60s")]
        time: String,
    },
    /// The table of what power cuts leave: file systems, kinds of drives, ways of writing, with real cuts in
    /// an emulated guest (minutes).
    Durability {
        /// Records of each case before its cut.
        #[arg(long, default_value_t = 1500)]
        records: u32,
        /// Of what survives by chance.
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// Only this file system
        #[arg(long)]
        filesystem: Option<String>,
        /// File for the report of every case, a line of JSON each.
        #[arg(long, default_value = "target/durability.jsonl")]
        reports: PathBuf,
    },
    /// Draw what a terminal shows as SVG: `linerate … | cargo xtask picture 'linerate …' > docs/….svg`.
    Picture {
        /// The command that printed it, as it stands above.
        command: String,
    },
    /// Run the demo and write its recording, an animated SVG: docs/demo.svg (two minutes, root).
    Recording,
    /// The long matrices of the lab.
    #[command(subcommand)]
    Lab(lab::Lab),
    /// House rules that no compiler checks.
    Tidy,
    /// Files of one crate that use each other in a circle, and modules that use one they must not use.
    Circles {
        /// Only this crate, by the name of its folder.
        name: Option<String>,
    },
    /// Build `docs/` as a book with mdBook, and check all links and anchors.
    Book,
    /// Halve and double every number of the reasoning, and write the verdicts that change into
    /// `docs/dev/rules.md` (minutes).
    Rules {
        /// Also use the runs kept by `linerate-judge run --keep` in these folders, separated by commas.
        #[arg(long)]
        kept: Option<String>,
        /// Instead judge all evidence once for each cause, without its file, and print what is claimed then.
        #[arg(long)]
        leave_out: bool,
    },
    /// Compile the script of the pages, `crates/page/src/assets/page.ts` (package node-typescript).
    Script {
        /// Change nothing; fail when the compiled file would change.
        #[arg(long)]
        check: bool,
    },
    /// Write `docs/reference/` anew.
    Docs {
        /// Change nothing; fail when a file would change.
        #[arg(long)]
        check: bool,
    },
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    std::env::set_current_dir(shell::workspace())?;
    match Task::parse() {
        Task::Ci { skip_tests } => ci::run(skip_tests),
        Task::Test { filter, quick } => {
            tests::run(test_programs::Choice { filter: filter.as_deref(), is_quick: quick })
        }
        Task::Fuzz { target, time, seed } => fuzz::run(&target, &time, seed),
        Task::Bench(bench) => bench::run(&bench),
        Task::Node { arch } => node::run(&arch),
        Task::Dist { arch, debug, check } => dist::run(&arch, debug, check),
        Task::Scale { nodes, hosts, time } => scale::run(nodes, hosts, &time),
        Task::Durability { records, seed, filesystem, reports } => {
            durability::run(records, seed, filesystem.as_deref(), &reports)
        }
        Task::Picture { command } => picture::run(&command),
        Task::Recording => recording::run(),
        Task::Lab(lab) => lab::run(&lab),
        Task::Tidy => tidy::run(),
        Task::Circles { name } => circles::print(name.as_deref()),
        Task::Book => book::run(),
        Task::Rules { kept, leave_out } => rules::run(kept.as_deref(), leave_out),
        Task::Script { check } => script::run(check),
        Task::Docs { check } => docs::run(check),
    }
}
