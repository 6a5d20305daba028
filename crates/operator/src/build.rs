//! Builds over the fleet: looks at volumes and replicas, steps one after the other, and the way back when one
//! of them fails.
//!
//! What comes in: steps with their hosts. What goes out: what the hosts said. It decides nothing and repeats
//! nothing.

use std::time::Duration;

use linerate_model::check::CheckReport;
use linerate_model::drbd::DrbdMove;
use linerate_model::names::natural;
use linerate_model::step::{Contents, DeviceRefusal, HostQuery, QueryOutput, Step};
use linerate_storage::drbd::On;
use linerate_wire::message::{BuildEntry, BuildRequest, Event};

use linerate_fleet::progress::{Progress, ProgressPhase};
use linerate_fleet::{Fleet, LinkError};
use linerate_model::shell::word;

/// A node gives a look 20 s.
const LOOK_WAIT: Duration = Duration::from_secs(25);
/// A node gives a step 900 s, and an undoing each of its commands as much.
const STEP_WAIT: Duration = Duration::from_secs(960);

/// What went wrong in a build, and what became of what was made.
#[derive(Debug, thiserror::Error)]
pub enum Stopped {
    /// There is one of this name, which must neither be added to nor be taken back with this one.
    #[error(
        "{host} has a build `{build}` already that was not taken back\nhint: take that one back first: `{undo}`"
    )]
    Exists {
        /// Host.
        host: String,
        /// Name.
        build: String,
        /// The command that takes it back.
        undo: String,
    },
    /// A host does not say what it has; nothing was begun.
    #[error("{0}")]
    NotBegun(LinkError),
    /// A step failed; everything was taken back.
    #[error("{why}\nhint: everything before it was taken back")]
    TakenBack {
        /// Why.
        why: LinkError,
    },
    /// A step failed, and so did the way back.
    #[error(
        "{why}; and not everything could be taken back: {failures}\nhint: what was done stands in the journals of the hosts: `{undo}` takes the rest back"
    )]
    Left {
        /// Why.
        why: LinkError,
        /// What.
        failures: String,
        /// The command that takes the rest back.
        undo: String,
    },
    /// A host was lost in the middle of a move, so that what it did last is unknown. Nothing was taken back:
    /// a primary made again on the one host beside one on the other would part the data.
    #[error(
        "{why}; the move was stopped there, and nothing was taken back\nhint: `linerate drbd status {hosts}` shows which side is the primary; then give the same command again"
    )]
    Unknown {
        /// Why.
        why: LinkError,
        /// All hosts of the resource.
        hosts: String,
    },
}

/// Name of the build that installs the health checks.
pub const CHECK: &str = "check";
/// First version of the protocol whose nodes refuse a request that they do not know and go on.
const PROTOCOL_OF_CHECKS: u32 = 3;
/// A node ends a check after 40 s.
const HEALTH_WAIT: Duration = Duration::from_secs(45);

/// Begins the name of the build of a volume over drives.
pub const DISK: &str = "disk-";
/// Begins the name of the build of a replica.
pub const DRBD: &str = "drbd-";

/// The command that takes a build on hosts back, which [`Fleet::arguments`] names. A move of a replica is
/// given again instead: its state says what is left to do.
#[must_use]
pub fn undo_command(build: &str, hosts: &str) -> String {
    if build == CHECK {
        return format!("linerate check uninstall --yes {hosts}");
    }
    match (build.strip_prefix(DISK), build.strip_prefix(DRBD)) {
        (Some(name), _) => format!("linerate undo {} {hosts}", word(name)),
        (_, Some(_)) if move_of(build).is_some() => format!("linerate drbd status {hosts}"),
        (_, Some(name)) => format!("linerate undo {} {hosts}", word(name)),
        _ => format!("linerate undo --list {hosts}"),
    }
}

/// Name of a move of a resource; it is done at this time of the operator.
#[must_use]
pub fn move_name(resource: &str, what: DrbdMove, now_ms: u64) -> String {
    format!("{DRBD}{resource}-{}-{now_ms}", what.name())
}

/// The resource and the kind of a move, by its name.
#[must_use]
pub fn move_of(build: &str) -> Option<(&str, DrbdMove)> {
    let (name, time) = build.strip_prefix(DRBD)?.rsplit_once('-')?;
    let (resource, what) = name.rsplit_once('-')?;
    let what = DrbdMove::ALL.into_iter().find(|one| one.name() == what)?;
    time.parse::<u64>().is_ok().then_some((resource, what))
}

/// What becomes of the steps before one whose host was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnLoss {
    /// They are taken back on the hosts that are there.
    TakeBack,
    /// They stay: the lost host may have done its step, and both together are worse than neither.
    Stay,
}

/// One look at a host.
///
/// # Errors
/// The host is lost or refuses.
pub async fn look(fleet: &Fleet, host: &str, look: HostQuery) -> Result<QueryOutput, LinkError> {
    let events = fleet.link(host)?.request(BuildRequest::Look(look), LOOK_WAIT).await?;
    Ok(seen_in(events))
}

/// Whether the node program of a host can be asked about health checks.
///
/// # Errors
/// The host is lost, or its node program is too old.
pub fn knows_checks(fleet: &Fleet, host: &str) -> Result<(), LinkError> {
    let link = fleet.link(host)?;
    let (protocol, version) = (link.hello().protocol, &link.hello().version);
    if protocol >= PROTOCOL_OF_CHECKS {
        return Ok(());
    }
    Err(LinkError::Refused {
        host: host.to_owned(),
        error: format!(
            "its node program (version {version}) speaks protocol {protocol}; health checks need {PROTOCOL_OF_CHECKS}"
        ),
        hint: "install the node program of this version there".to_owned(),
        undo_failed: false,
    })
}

/// The health checks of a host.
///
/// # Errors
/// The host is lost, its node program is too old, or it cannot check.
pub async fn health(fleet: &Fleet, host: &str) -> Result<CheckReport, LinkError> {
    knows_checks(fleet, host)?;
    let events = fleet.link(host)?.request(BuildRequest::Look(HostQuery::Health), HEALTH_WAIT).await?;
    understood(host, "its health", &seen_in(events).out)
}

fn seen_in(events: Vec<Event>) -> QueryOutput {
    let seen = events.into_iter().find_map(|event| match event {
        Event::Seen(seen) => Some(*seen),
        _ => None,
    });
    seen.unwrap_or_default()
}

/// What a device of a host begins with.
///
/// # Errors
/// The host is lost, or cannot read the device.
pub async fn contents(fleet: &Fleet, host: &str, device: &str) -> Result<Contents, LinkError> {
    let seen = look(fleet, host, HostQuery::Contents { device: device.to_owned() }).await?;
    understood(host, device, &seen.out)
}

/// One step on a host.
///
/// # Errors
/// The host is lost, or the step failed there.
pub async fn step(fleet: &Fleet, host: &str, build: &str, step: &Step) -> Result<QueryOutput, LinkError> {
    let request = BuildRequest::Step { build: build.to_owned(), step: step.clone() };
    Ok(seen_in(fleet.link(host)?.request(request, STEP_WAIT).await?))
}

/// Undoes a build on a host; a line for each command. `discard` gives up what stands there and was not made
/// by the build.
///
/// # Errors
/// The host is lost, has no such build, something stands in the way, or a command failed.
pub async fn undo(fleet: &Fleet, host: &str, build: &str, discard: bool) -> Result<Vec<String>, LinkError> {
    let request = BuildRequest::Unbuild { build: build.to_owned(), discard };
    let events = fleet.link(host)?.request(request, STEP_WAIT).await?;
    let lines = events.into_iter().find_map(|event| match event {
        Event::Unbuilt { lines } => Some(lines),
        _ => None,
    });
    Ok(lines.unwrap_or_default())
}

/// Closes the journals of a build: what it did stays.
///
/// # Errors
/// A host is lost.
pub async fn close<'a>(
    fleet: &Fleet,
    hosts: impl Iterator<Item = &'a str>,
    build: &str,
) -> Result<(), LinkError> {
    for host in hosts {
        fleet.link(host)?.request(BuildRequest::Built { build: build.to_owned() }, LOOK_WAIT).await?;
    }
    Ok(())
}

/// Builds of a host that were not taken back.
///
/// # Errors
/// The host is lost.
pub async fn list(fleet: &Fleet, host: &str) -> Result<Vec<BuildEntry>, LinkError> {
    let events = fleet.link(host)?.request(BuildRequest::Builds, LOOK_WAIT).await?;
    let builds = events.into_iter().find_map(|event| match event {
        Event::Builds(builds) => Some(builds),
        _ => None,
    });
    Ok(builds.unwrap_or_default())
}

/// How far a build is on a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Begun {
    /// Steps that ended well.
    pub done: usize,
    /// Whether any step was begun, so that its devices may hold what it wrote.
    pub is_begun: bool,
}

/// How far these steps are in a build that was broken off; nothing when that build is another one.
///
/// # Errors
/// The host is lost.
pub async fn begun_of(
    fleet: &Fleet,
    host: &str,
    build: &str,
    steps: &[Step],
) -> Result<Option<Begun>, LinkError> {
    let open = list(fleet, host).await?;
    let Some(entry) = open.into_iter().find(|entry| entry.build == build) else {
        return Ok(Some(Begun { done: 0, is_begun: false }));
    };
    let begun = entry.steps.len();
    let done = if entry.whole { begun } else { begun.saturating_sub(1) };
    Ok(steps.starts_with(&entry.steps).then_some(Begun { done, is_begun: begun > 0 }))
}

/// Devices of a host that may not be given away, with the reason.
///
/// # Errors
/// The host is lost, or refuses.
pub async fn not_empty(
    fleet: &Fleet,
    host: &str,
    devices: &[String],
) -> Result<Vec<DeviceRefusal>, LinkError> {
    // Drives with rotating discs take seconds, and eight of them are looked at side by side.
    let wait = LOOK_WAIT * (1 + u32::try_from(devices.len() / 16).unwrap_or(0));
    let request = BuildRequest::Look(HostQuery::Empty { devices: devices.to_vec() });
    let seen = seen_in(fleet.link(host)?.request(request, wait).await?);
    let mut refused: Vec<DeviceRefusal> = understood(host, "its drives", &seen.out)?;
    refused.sort_by(|a, b| natural(&a.device, &b.device));
    Ok(refused)
}

fn understood<T: serde::de::DeserializeOwned>(host: &str, what: &str, text: &str) -> Result<T, LinkError> {
    serde_json::from_str(text).map_err(|error| LinkError::Refused {
        host: host.to_owned(),
        error: format!("what it says about {what} is not understood: {error}"),
        hint: "is the node program of the same version?".to_owned(),
        undo_failed: false,
    })
}

/// All hosts of some steps, each once.
pub fn hosts_of(steps: &[On]) -> Vec<&str> {
    let mut hosts: Vec<&str> = Vec::new();
    for on in steps {
        if !hosts.contains(&on.host.as_str()) {
            hosts.push(&on.host);
        }
    }
    hosts
}

/// All steps in order. When one fails everything of this build is taken back, on all hosts, the last one
/// first.
///
/// # Errors
/// Says which step failed and why, and what could not be taken back; or that there is such a build already,
/// and nothing was begun.
pub async fn run(
    fleet: &Fleet,
    build: &str,
    steps: &[On],
    on_loss: OnLoss,
    progress: &dyn Progress,
) -> Result<(), Stopped> {
    let hosts = hosts_of(steps);
    let mut having = Vec::new();
    for host in &hosts {
        let open = list(fleet, host).await.map_err(Stopped::NotBegun)?;
        having.extend(open.iter().any(|entry| entry.build == build).then_some(*host));
    }
    if let Some(host) = having.first() {
        let (host, build) = ((*host).to_owned(), build.to_owned());
        return Err(Stopped::Exists { undo: undo_command(&build, &fleet.arguments(&having)), host, build });
    }
    go_on(fleet, build, steps, 0, on_loss, progress).await
}

/// All steps behind those that are done, in order. When one fails everything of this build is taken back.
///
/// # Errors
/// Says which step failed and why, and what could not be taken back.
pub async fn go_on(
    fleet: &Fleet,
    build: &str,
    steps: &[On],
    done: usize,
    on_loss: OnLoss,
    progress: &dyn Progress,
) -> Result<(), Stopped> {
    progress.begin(&ProgressPhase { name: "building", unit: "steps", total: steps.len(), expected_s: None });
    for (at, on) in steps.iter().enumerate().skip(done) {
        progress.step(at, &format!("{}: {}", on.host, on.step.operation().says()), None);
        if let Err(why) = step(fleet, &on.host, build, &on.step).await {
            progress.end();
            if on_loss == OnLoss::Stay && !matches!(why, LinkError::Refused { .. }) {
                return Err(Stopped::Unknown { why, hosts: fleet.all_arguments() });
            }
            return Err(take_back(fleet, build, &steps[..=at], why).await);
        }
    }
    progress.step(steps.len(), "", None);
    progress.end();
    Ok(())
}

async fn take_back(fleet: &Fleet, build: &str, steps: &[On], why: LinkError) -> Stopped {
    let mut failures = Vec::new();
    for host in hosts_of(steps).into_iter().rev() {
        // A refusal before the first step leaves a host without a journal: nothing is left there.
        let open = list(fleet, host).await.map(|builds| builds.iter().any(|entry| entry.build == build));
        match open {
            Ok(false) => {}
            Ok(true) => {
                failures.extend(undo(fleet, host, build, false).await.err().map(|error| error.to_string()));
            }
            Err(error) => failures.push(error.to_string()),
        }
    }
    if failures.is_empty() {
        Stopped::TakenBack { why }
    } else {
        let undo = undo_command(build, &fleet.arguments(&hosts_of(steps)));
        Stopped::Left { why, failures: failures.join("; "), undo }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use linerate_storage::plan::{CLASSES, Filesystem, Level, VolumeSpec, plan};

    use super::*;
    use crate::fake_node;
    use linerate_fleet::programs::NodePrograms;
    use linerate_fleet::progress::Silent;
    use linerate_inventory as inventory;

    const HOST: &str = "localhost";

    fn steps() -> Vec<On> {
        let spec = VolumeSpec {
            levels: vec![Level::Raid10],
            shelves: vec![(0..4).map(|n| format!("/dev/sd{n}")).collect()],
            drive_bytes: 1 << 30,
            chunk_bytes: 64 << 10,
            class: CLASSES[0],
            volume_bytes: None,
            filesystem: Filesystem::Xfs,
            group: "vg0".to_owned(),
            name: "data".to_owned(),
        };
        let plan = plan(&spec).unwrap();
        let lvm = plan.layouts.into_iter().find(|layout| layout.name == "lvm").unwrap();
        lvm.steps.into_iter().map(|step| On { host: HOST.to_owned(), step }).collect()
    }

    fn with_node(behaviour: &str, work: impl AsyncFnOnce(&Fleet)) {
        let folder = tempfile::tempdir().unwrap();
        let inventory = inventory::named(&[HOST.to_owned()]).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let program = |_: &_| Arc::new(NodePrograms::only(fake_node::program(folder.path(), behaviour)));
            let fleet = Fleet::open_with(&inventory, program, |_| true, &Silent).await;
            assert_eq!(fleet.gaps, []);
            work(&fleet).await;
            fleet.bye().await;
        });
    }

    #[test]
    fn a_build_stands_in_the_journal_until_it_is_closed_or_taken_back() {
        with_node("builds", async |fleet| {
            run(fleet, "b", &steps(), OnLoss::TakeBack, &Silent).await.unwrap();
            let entries = list(fleet, HOST).await.unwrap();
            assert_eq!((entries.len(), entries[0].steps.len()), (1, 4));
            // A second one of this name must not take the first one down when it fails.
            assert!(matches!(
                run(fleet, "b", &steps(), OnLoss::TakeBack, &Silent).await,
                Err(Stopped::Exists { .. })
            ));
            assert_eq!(list(fleet, HOST).await.unwrap(), entries);
            // What was broken off goes on where it was, and only what is the same.
            let all: Vec<Step> = steps().into_iter().map(|on| on.step).collect();
            let whole = Some(Begun { done: 4, is_begun: true });
            assert_eq!(begun_of(fleet, HOST, "b", &all).await.unwrap(), whole);
            let nothing = Some(Begun { done: 0, is_begun: false });
            assert_eq!(begun_of(fleet, HOST, "other", &all).await.unwrap(), nothing);
            assert_eq!(begun_of(fleet, HOST, "b", &all[1..]).await.unwrap(), None);
            close(fleet, [HOST].into_iter(), "b").await.unwrap();
            assert!(list(fleet, HOST).await.unwrap().is_empty());
        });
    }

    #[test]
    fn what_fails_in_the_middle_is_taken_back_the_last_step_first() {
        with_node("makes-no-filesystem", async |fleet| {
            let stopped = run(fleet, "b", &steps(), OnLoss::TakeBack, &Silent).await.unwrap_err();
            assert!(
                matches!(&stopped, Stopped::TakenBack { why } if why.to_string().contains("mkfs.xfs")),
                "{stopped}"
            );
            assert!(list(fleet, HOST).await.unwrap().is_empty(), "nothing is left there");
            for on in &steps()[..3] {
                step(fleet, HOST, "c", &on.step).await.unwrap();
            }
            let lines = undo(fleet, HOST, "c", false).await.unwrap();
            assert!(lines[0].starts_with("lvremove") && lines[2].starts_with("pvremove"), "{lines:?}");
        });
    }

    #[test]
    fn an_older_node_is_not_asked_for_checks_and_its_session_goes_on() {
        with_node("older", async |fleet| {
            let refused = health(fleet, HOST).await.unwrap_err().to_string();
            assert!(refused.contains("speaks protocol 2; health checks need 3\nhint: install"), "{refused}");
            assert!(list(fleet, HOST).await.unwrap().is_empty());
        });
    }

    #[test]
    fn commands_that_take_back_name_their_hosts() {
        let both = "one two";
        assert_eq!(undo_command("disk-data", "store"), "linerate undo data store");
        assert_eq!(undo_command("drbd-r0", both), "linerate undo r0 one two");
        assert_eq!(undo_command(CHECK, both), "linerate check uninstall --yes one two");
        // A resource may be called like a move.
        assert_eq!(undo_command("drbd-r0-failover", both), "linerate undo r0-failover one two");
        let name = move_name("r-0", DrbdMove::Failover, 17);
        let known = (move_of(&name), move_of("drbd-r0-failover"));
        assert_eq!(known, (Some(("r-0", DrbdMove::Failover)), None));
        assert_eq!(undo_command(&name, both), "linerate drbd status one two");
    }
}
