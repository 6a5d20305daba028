//! `linerate measure …`: one measurement by itself. One file per kind beside this one.

mod connections;
mod disk;
mod http;
mod latency;
mod mtu;
mod tcp;
mod udp;

use linerate_model::exit::ExitCode;

/// Measure one thing in detail: tcp, udp, latency, mtu, connections, http, disk
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  linerate measure tcp arc-1 arc-2\n  linerate measure latency local\n  linerate measure disk --in /srv store-1"
)]
pub(super) struct Args {
    #[command(subcommand)]
    kind: Kind,
}

#[derive(Debug, clap::Subcommand)]
enum Kind {
    // Much larger than the others.
    Tcp(Box<tcp::Args>),
    Udp(udp::Args),
    Latency(latency::Args),
    Mtu(mtu::Args),
    Connections(connections::Args),
    Http(http::Args),
    Disk(Box<disk::Args>),
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    match &args.kind {
        Kind::Tcp(args) => tcp::run(args),
        Kind::Udp(args) => udp::run(args),
        Kind::Latency(args) => latency::run(args),
        Kind::Mtu(args) => mtu::run(args),
        Kind::Connections(args) => connections::run(args),
        Kind::Http(args) => http::run(args),
        Kind::Disk(args) => disk::run(args),
    }
}
