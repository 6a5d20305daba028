//! `linerate disk plan`: layouts of a striped volume with copies or parity over many drives side by side, and
//! the exact commands of one; with `--apply` that one is built.

mod apply;
mod args;
mod host;
mod measure;
mod sync;

use linerate_model::exit::ExitCode;

pub(in crate::cli) use args::Args;

pub(in crate::cli) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    if let Some(host) = &args.live.host {
        return host::on_host(args, host);
    }
    let (plan, chosen) = args.plan(None)?;
    args.show(&plan, &chosen)?;
    Ok(ExitCode::Ok)
}
