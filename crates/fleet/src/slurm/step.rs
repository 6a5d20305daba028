//! The command line of a step, and where the node program goes on its node.

use std::ffi::OsString;
use std::path::PathBuf;

use linerate_model::inventory::SlurmSpec;

/// Variables of an allocation that would shape a step otherwise than its options say.
pub(super) const SHAPING: [&str; 7] = [
    "SLURM_NTASKS_PER_NODE",
    "SLURM_CPUS_PER_TASK",
    "SLURM_DISTRIBUTION",
    "SLURM_CPU_BIND",
    "SLURM_LABELIO",
    "SLURM_STEP_KILLED_MSG_NODE_ID",
    "SLURM_OPEN_MODE",
];

/// Runs the node program on a node.
pub(super) const RUN: &str = concat!(include_str!("drop.sh"), include_str!("run.sh"));

/// The step of one node.
pub(super) fn step(spec: &SlurmSpec) -> Vec<OsString> {
    let job = spec.job.clone().unwrap_or_default();
    let mut argv: Vec<OsString> = vec!["env".into()];
    argv.extend(SHAPING.iter().flat_map(|name| ["-u".into(), (*name).into()]));
    argv.extend(
        ["srun", "--quiet", "--unbuffered", "--overlap", "--nodes=1", "--ntasks=1", "--cpu-bind=none"]
            .map(OsString::from),
    );
    argv.push(format!("--jobid={}", job.id).into());
    argv.push(format!("--nodelist={}", spec.node).into());
    argv.extend(["sh", "-c", RUN].map(OsString::from));
    argv.push(job.program.into());
    argv.push(job.hash.into());
    argv
}

/// Where a copy of the node program goes on a node: into a folder that is made for it and is ours alone. Its
/// name is random, so that no other user takes it by chance; it is no secret, for it stands in the list of
/// processes. The number of the job is in it so that what ends the job finds what a killed operator left.
pub(super) fn place_on_node(id: u32) -> std::io::Result<PathBuf> {
    let random = u64::from_ne_bytes(crate::clock::random::<8>()?);
    Ok(PathBuf::from(format!("/tmp/linerate-node-{id}-{random:016x}/linerate-node")))
}

#[cfg(test)]
mod tests {
    use linerate_model::inventory::SlurmJob;

    use super::*;

    #[test]
    fn a_step_is_for_one_node_unbuffered_and_cleans_up() {
        let job = SlurmJob { id: 7, program: "/tmp/f/p".into(), hash: "ab".into() };
        let spec = SlurmSpec { node: "n3".into(), job: Some(job), ..SlurmSpec::default() };
        let line = step(&spec).join(std::ffi::OsStr::new(" ")).into_string().unwrap();
        for part in ["--unbuffered", "--nodes=1", "--ntasks=1", "--jobid=7", "--nodelist=n3", "--overlap"] {
            assert!(line.contains(part), "{part} in {line}");
        }
        assert!(line.ends_with("/tmp/f/p ab") && line.contains("drop \"$0\""), "{line}");
    }
}
