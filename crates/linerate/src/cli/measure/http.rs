//! `linerate measure http`: which front end is slow, and in which step.

use std::path::PathBuf;
use std::time::Duration;

use linerate_model::exit::ExitCode;
use linerate_model::http::FRONT_ENDS_MAX;
use linerate_model::inventory::Layer;
use linerate_model::kind::{HttpPlan, TestKind};
use linerate_model::tuning::Tuning;

use crate::cli::place::{self, End};
use crate::cli::targets::InventoryFile;
use crate::cli::{pair, quantity};
use linerate_input as input;

/// Download a URL through each front end: DNS, connect, TLS and first-byte times, and rate.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  linerate measure http https://files.example/big.iso --front-end 192.0.2.11,192.0.2.12\n  linerate measure http http://files.example/big.iso -i cluster.toml --from arc-1,arc-3"
)]
pub(super) struct Args {
    /// URL to download
    #[arg(value_parser = url)]
    url: String,
    /// Front ends or nodes to use, with a port if it differs from the URL's; defaults to all addresses of the
    /// URL's host
    // `--via` is the transport everywhere else.
    #[arg(long = "front-end", alias = "via", value_name = "ADDR", value_delimiter = ',')]
    front_ends: Vec<String>,
    /// Hosts to download from: of the inventory, or reached over ssh; defaults to this machine
    #[arg(long, value_name = "HOST", value_delimiter = ',')]
    from: Vec<String>,
    #[command(flatten)]
    inventory: InventoryFile,
    /// Downloads per front end, interleaved; five distinguish faults from noise
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=100))]
    repeat: u16,
    /// Stop reading a body after this number of bytes
    #[arg(long, value_name = "BYTES", default_value_t = 100_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    max_bytes: u64,
    /// Time limit of a download
    #[arg(short, long, default_value = "20s", value_parser = quantity::duration)]
    time: Duration,
    /// Trust the certificates in this PEM file instead of the host's
    #[arg(long, value_name = "FILE", conflicts_with = "insecure")]
    ca: Option<PathBuf>,
    /// Skip certificate verification; responses may come from any server
    #[arg(long)]
    insecure: bool,
    #[command(flatten)]
    output: pair::Output,
}

fn url(text: &str) -> Result<String, String> {
    if text.starts_with("http://") || text.starts_with("https://") {
        return Ok(text.to_owned());
    }
    Err(format!("it begins with no http:// or https://\nhint: such as http://{text}"))
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    anyhow::ensure!(
        args.front_ends.len() <= FRONT_ENDS_MAX,
        "{} front ends are more than {FRONT_ENDS_MAX}\nhint: measure them in two runs",
        args.front_ends.len()
    );
    let from = if args.from.is_empty() { vec!["local".to_owned()] } else { args.from.clone() };
    let chosen = pair::chosen(&args.inventory, &from)?;
    let trusted_pem = match &args.ca {
        Some(path) => Some(input::text(path, input::CERTIFICATES_BYTES_MAX)?),
        None => None,
    };
    let kind = TestKind::from(HttpPlan {
        url: args.url.clone(),
        via: args.front_ends.clone(),
        repeat: args.repeat,
        max_bytes: args.max_bytes,
        timeout_ms: args.time.as_millis() as u32,
        trusted_pem,
        insecure: args.insecure,
    });
    // A namespace inside a host is one of its overlay.
    let layer = |end: &End| if end.netns.is_some() { Layer::Overlay } else { Layer::Underlay };
    let tests: Vec<_> = chosen
        .ends
        .iter()
        .zip(1..)
        .map(|(end, id)| pair::test(id, &end.host, &args.url, layer(end), kind.clone()))
        .collect();
    let inventory = chosen.ends.iter().fold(chosen.inventory.clone(), |all, end| place::only(&all, end));
    pair::run(inventory, &tests, &Tuning::default(), None, &args.output)
}
