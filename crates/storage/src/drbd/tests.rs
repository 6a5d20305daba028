//! Output of real hosts (8.4.11, two guests), and what has to be reported about it.

use std::net::IpAddr;

use linerate_model::drbd::{DrbdTrouble, Replica};
use linerate_model::step::{Act, Contents, Need, Step};

use super::alarms::KnownGenerations;
use super::*;

/// `drbdadm get-gi` of both sides after each was written to alone, before they met again.
const SPLIT_N1: &str = "CCB35D9FCE94622B:59150AF399144599:74BB57AABA49FA89:74BA57AABA49FA89:1:1:1:0:0:0:0\n";
const SPLIT_N2: &str = "5C31760E89EAA365:59150AF399144598:74BB57AABA49FA88:74BA57AABA49FA89:1:1:1:0:0:0:0\n";
const NEW: &str = "0000000000000004:0000000000000000:0000000000000000:0000000000000000:0:0:0:0:0:0:0\n";

fn generation(text: &str) -> Generation {
    Generation::parse(text).unwrap()
}

#[test]
fn a_split_brain_is_foreseen_before_the_sides_meet() {
    let (n1, n2) = (generation(SPLIT_N1), generation(SPLIT_N2));
    // The kernel logged later: uuid_compare()=100 by rule 90.
    assert_eq!(n1.forecast(&n2), Forecast::SplitBrain { common: 0x5915_0AF3_9914_4598 });
    assert_eq!(n2.forecast(&n1), n1.forecast(&n2));
}

#[test]
fn the_kernels_own_verdicts_are_foreseen() {
    let of = |ids: &str, crashed: u8| generation(&format!("{ids}:1:1:1:1:0:0:{crashed}"));
    // drbd1 of the same capture: "self B06A… peer F43F…: uuid_compare()=1 by rule 70", and =-1 by rule 50 on
    // the other side.
    let left = of("B06AB46A03D87A9B:F43F76E0BA4D7157:3645D21EFC10A4B7:0000000000000004", 0);
    let right = of("F43F76E0BA4D7156:0000000000000000:3645D21EFC10A4B6:0000000000000004", 0);
    assert_eq!(left.forecast(&right), Forecast::FirstToSecond { all: false });
    assert_eq!(right.forecast(&left), Forecast::SecondToFirst { all: false });
    assert_eq!(generation(NEW).forecast(&generation(NEW)), Forecast::BothNew);
    assert_eq!(generation(NEW).forecast(&left), Forecast::SecondToFirst { all: true });
    assert_eq!(left.forecast(&left), Forecast::Same);
    let same = |crashed| of("CCB35D9FCE94622B:0000000000000000:59160AF399144599:59150AF399144599", crashed);
    assert_eq!(same(1).forecast(&same(0)), Forecast::FirstToSecond { all: false });
    assert_eq!(same(1).forecast(&same(1)), Forecast::EitherWay);
    // Rules 34 and 36: the same data, and one side missed the end of a synchronisation.
    let unheard = of("CCB35D9FCE94622B:59160AF399144599:59150AF399144599:0000000000000000", 0);
    assert_eq!(unheard.forecast(&same(0)), Forecast::FirstToSecond { all: false });
    assert_eq!(same(0).forecast(&unheard), Forecast::SecondToFirst { all: false });
    // Rule 100: a generation further back; also two unused entries.
    let further =
        |last: &str, before: &str| of(&format!("{last}{last}:{last}00000001:{before}:0000000000000000"), 0);
    let (one, other) = (further("11111111", "AAAAAAAAAAAAAAAA"), further("33333333", "AAAAAAAAAAAAAAAA"));
    assert_eq!(one.forecast(&other), Forecast::SplitBrain { common: 0xAAAA_AAAA_AAAA_AAAA });
    let young = further("33333333", "BBBBBBBBBBBBBBBB");
    assert_eq!(one.forecast(&young), Forecast::SplitBrain { common: 0 });
    let stranger = of("1111111111111110:2222222222222222:3333333333333332:4444444444444442", 0);
    assert_eq!(left.forecast(&stranger), Forecast::Unrelated);
    // Messages stand around the line.
    assert_eq!(
        Generation::parse(&format!("{SPLIT_N1}Found meta data is \"unclean\"\n")),
        Some(generation(SPLIT_N1))
    );
    assert_eq!(Generation::parse("No valid meta data found"), None);
}

fn state(host: &str, text: &str) -> Vec<Replica> {
    read_state(host, text)
}

const ALONE: &str = "exists resource name:r0 role:Primary suspended:no write-ordering:flush\nexists device name:r0 volume:0 minor:0 disk:UpToDate size:409548\nexists -\n";

#[test]
fn both_sides_alone_are_a_split_brain_with_what_each_would_lose() {
    let replicas = [state("n1", ALONE), state("n2", ALONE)].concat();
    let known: KnownGenerations = [("n1", SPLIT_N1, 4100), ("n2", SPLIT_N2, 6144)]
        .map(|(host, ids, kib)| ((host.to_owned(), "r0".to_owned()), (Generation::parse(ids), kib)))
        .into();
    let found = alarms(&replicas, &known, &[]);
    assert_eq!(found.iter().map(|a| a.what).collect::<Vec<_>>(), [DrbdTrouble::SplitBrain], "{found:?}");
    for part in ["4100 KiB", "6144 KiB", "59150AF399144598", "n1 (Primary)"] {
        assert!(found[0].sentence.contains(part), "{}", found[0].sentence);
    }
    let steps = repair(&replicas, "r0", "n2").unwrap();
    let got: Vec<String> = steps.iter().map(typed).collect();
    assert_eq!(
        got,
        ["n2: drbdadm secondary r0", "n2: drbdadm connect --discard-my-data r0", "n1: drbdadm connect r0"]
    );
    // n1 waits already: another connect would fail with "address in use".
    let waits = state(
        "n1",
        &format!(
            "{ALONE}exists connection name:r0 conn-name:peer connection:Connecting role:Unknown congested:no\n"
        ),
    );
    let replicas = [waits, state("n2", ALONE)].concat();
    assert_eq!(repair(&replicas, "r0", "n2").unwrap().len(), 2);
}

fn typed(on: &On) -> String {
    match on.step.operation().act() {
        Act::Run(argv) => format!("{}: {}", on.host, argv.join(" ")),
        Act::Write { path, .. } | Act::Copy { path, .. } => format!("{}: {path}", on.host),
    }
}

fn connected(role: &str, oos: u64) -> String {
    let peer = if role == "Primary" { "Secondary" } else { "Primary" };
    format!(
        "exists resource name:r0 role:{role} suspended:no\nexists connection name:r0 peer-node-id:0 conn-name:peer connection:Connected role:{peer} congested:no\nexists device name:r0 volume:0 minor:0 disk:UpToDate size:409548\nexists peer-device name:r0 peer-node-id:0 conn-name:peer volume:0 replication:Established peer-disk:UpToDate resync-suspended:no received:0 sent:0 out-of-sync:{oos} pending:0 unacked:0\nexists -\n"
    )
}

#[test]
fn up_to_date_on_both_sides_is_no_proof() {
    let healthy = [state("n1", &connected("Primary", 0)), state("n2", &connected("Secondary", 0))].concat();
    assert_eq!(alarms(&healthy, &KnownGenerations::new(), &[]), []);
    let planted = [state("n1", &connected("Primary", 64)), state("n2", &connected("Secondary", 64))].concat();
    let found = alarms(&planted, &KnownGenerations::new(), &[]);
    assert_eq!(found.iter().map(|a| a.what).collect::<Vec<_>>(), [DrbdTrouble::OutOfSync]);
    assert!(found[0].sentence.contains("64 KiB"), "{}", found[0].sentence);
    assert!(failover(&planted, "r0", "n2").is_err());
    let steps: Vec<String> = failover(&healthy, "r0", "n2").unwrap().iter().map(typed).collect();
    assert_eq!(steps, ["n1: drbdadm secondary r0", "n2: drbdadm primary r0"]);
    assert!(matches!(failover(&healthy, "r0", "n1"), Err(MoveError::Already { .. })));
    assert!(matches!(failover(&healthy, "r0", "n3"), Err(MoveError::NoReplica { .. })));
    // A primary that answers cannot be declared dead.
    assert!(matches!(failover_of_the_dead(&healthy, "r0", "n2"), Err(MoveError::NotReady { .. })));
    // Also over a path other than that of the replication, whose cable may be cut.
    let lost = connected("Secondary", 0).replace("connection:Connected", "connection:Connecting");
    let alone = state("n2", &lost);
    assert!(failover_of_the_dead(&alone, "r0", "n2").is_ok());
    let cut = [state("n1", &connected("Primary", 0)), alone].concat();
    let refused = failover_of_the_dead(&cut, "r0", "n2").unwrap_err().to_string();
    assert!(refused.starts_with("n1: ") && refused.contains("is not dead"), "{refused}");
}

#[test]
fn events_of_a_whole_story_end_in_its_last_state() {
    // From nothing through sync, reconnection, failover and split brain to the repaired end.
    let text = include_str!("fixtures/events2-story.txt");
    let replicas = state("n1", text);
    let r0 = replicas.iter().find(|r| r.resource == "r0").unwrap();
    assert!(r0.is_connected() && r0.is_up_to_date() && r0.out_of_sync_kib() == 0, "{r0:?}");
    let until = |what: &str| -> String {
        text.split_inclusive('\n').take_while(|line| !line.contains(what)).collect()
    };
    // While both sides stand alone the peer is no more.
    let split = until("2026-11-21T05:52:18.990454");
    let r0 = state("n1", &split).into_iter().find(|r| r.resource == "r0").unwrap();
    assert!(r0.peers.is_empty() && r0.role == "Primary", "{r0:?}");
}

#[test]
fn remaining_times_are_true_where_the_kernels_are_not() {
    // The first synchronisation of 400 MiB under its cap of 12 MiB/s took 34 s; the kernel began with 203 s.
    let mut pace = SyncMeter::new(409_548);
    let mut got = Vec::new();
    for line in include_str!("fixtures/sync-left.txt").lines().filter(|line| !line.starts_with('#')) {
        let (at, left) = line.split_once(' ').unwrap();
        pace.add(at.parse().unwrap(), left.parse().unwrap());
        got.extend(pace.now().unwrap().left_s.map(|left| (at.parse::<f64>().unwrap(), left)));
    }
    let end = 34.0;
    assert!(got.len() > 10 && got[0].0 < 5.0, "{got:?}");
    for (at, left) in got {
        let truth: f64 = end - at;
        assert!((left - truth).abs() < 0.25 * truth + 2.0, "at {at} s: {left} s, it was {truth} s");
    }
}

#[test]
fn a_synchronisation_that_stands_still_has_no_remaining_time() {
    let mut pace = SyncMeter::new(1000);
    (0..5).for_each(|s| pace.add(f64::from(s), 900 - 100 * u64::try_from(s).unwrap()));
    assert!(pace.now().unwrap().left_s.is_some());
    (5..20).for_each(|s| pace.add(f64::from(s), 500));
    let now = pace.now().unwrap();
    assert!(now.stuck_s.is_some_and(|s| s > 14.0) && now.left_s.is_none(), "{now:?}");
}

#[test]
fn how_far_a_comparison_is_stands_in_proc_alone() {
    let text = " 0: cs:VerifyS ro:Primary/Secondary ds:UpToDate/UpToDate A r-----\n    ns:312916 nr:0 dw:857576 dr:503572 al:83 bm:0 lo:0 pe:0 ua:535 ap:0 ep:1 wo:f oos:64\n\t[====>...............] verified: 26.0% (303768/409548)K\n\tfinish: 0:00:08 speed: 35,260 (35,260) want: 63,520 K/sec\n";
    let devices = read_proc(text);
    assert_eq!(devices.len(), 1);
    assert_eq!((devices[0].state.as_str(), devices[0].out_of_sync_kib), ("VerifyS", 64));
    assert_eq!(devices[0].left_of_kib, Some((303_768, 409_548)));
}

fn side(host: &str, last: u8, size_bytes: u64) -> ReplicaSide {
    ReplicaSide {
        host: host.to_owned(),
        node_name: host.to_owned(),
        address: IpAddr::from([10, 77, 0, last]),
        disk: "/dev/vda".to_owned(),
        contents: Contents { size_bytes, ..Contents::default() },
        meta: MetadataLocation::Internal,
    }
}

fn spec() -> ResourceSpec {
    ResourceSpec {
        resource: "r0".to_owned(),
        release: Release::V84,
        sides: [side("n1", 1, 400 << 20), side("n2", 2, 400 << 20)],
        from: Some("n1".to_owned()),
        minor: 0,
        port: 7789,
        protocol: 'C',
        resync_max_kib_per_s: None,
    }
}

#[test]
fn metadata_sizes_are_those_of_the_real_tools() {
    // drbdadm dump-md: md_size_sect 104 of 400 MiB; the device had 409548 KiB then.
    assert_eq!(metadata_bytes(400 << 20, 1), 104 * 512);
    let plan = plan(&spec()).unwrap();
    assert_eq!(plan.data_bytes, 409_548 << 10);
    // LINBIT's example: 1 TiB has about 32 MiB of metadata.
    assert_eq!(metadata_bytes(1 << 40, 1), 32 * (1 << 20) + 36_864);
    let got: Vec<String> = plan.steps.iter().chain(&plan.first).map(typed).collect();
    assert_eq!(
        got,
        [
            "n1: /etc/drbd.d/r0.res",
            "n1: drbdadm create-md r0",
            "n1: drbdadm up r0",
            "n2: /etc/drbd.d/r0.res",
            "n2: drbdadm create-md r0",
            "n2: drbdadm up r0",
            "n1: drbdadm primary --force r0",
        ]
    );
}

#[test]
fn the_end_of_a_filesystem_is_never_overwritten() {
    let with = |kind: &str, filesystem_bytes: u64| {
        let mut spec = spec();
        spec.sides[0].contents.filesystem = Some(kind.to_owned());
        spec.sides[0].contents.filesystem_bytes = Some(filesystem_bytes);
        spec
    };
    let error = plan(&with("ext", 400 << 20)).unwrap_err();
    assert!(
        error.to_string().contains("53248 of metadata")
            && error.to_string().contains("resize2fs /dev/vda 409548K"),
        "{error}"
    );
    let error = plan(&with("xfs", 400 << 20)).unwrap_err();
    assert!(error.to_string().contains("cannot be shrunk"), "{error}");
    // Shrunk to the last byte it is taken, and the node checks again before it writes.
    let plan_ok = plan(&with("ext", 409_548 << 10)).unwrap();
    assert!(plan_ok.steps.iter().any(|on| matches!(&on.step,
        Step::Drbd(linerate_model::step::DrbdStep::Metadata { filesystem_max_bytes: Some(bytes), .. }) if *bytes == 409_548 << 10)));
    // External metadata leave all of the device.
    let mut external = with("xfs", 400 << 20);
    let own = |device: &str, size_bytes| MetadataLocation::External {
        device: device.to_owned(),
        size_bytes,
        number: Some(size_bytes),
        filesystem: None,
    };
    external.sides[0].meta = own("/dev/vdb", 8 << 20);
    external.sides[1].meta = external.sides[0].meta.clone();
    // The data of the good side stay as they are, those of the other are checked on its host before anything
    // is attached to them.
    let planned = plan(&external).unwrap();
    let empty = |host: &str| {
        let of_host = planned.steps.iter().filter(|on| on.host == host);
        let needs: Vec<Need> = of_host.flat_map(|on| on.step.operation().needs()).collect();
        ["/dev/vda", "/dev/vdb"].map(|device| needs.contains(&Need::Empty { device: device.to_owned() }))
    };
    assert_eq!((empty("n1"), empty("n2")), ([false, true], [true, true]));
    external.sides[1].meta = own("/dev/vdb", 4096);
    assert!(matches!(plan(&external), Err(SetupError::MetadataDevice { .. })));
    // Neither the data's device, by its name or another one, nor one with a filesystem.
    for meta in [
        own(&external.sides[1].disk, 8 << 20),
        own("/dev/disk/by-id/x", 4242),
        MetadataLocation::External {
            device: "/dev/vdb".to_owned(),
            size_bytes: 8 << 20,
            number: None,
            filesystem: Some("xfs".to_owned()),
        },
    ] {
        external.sides[1].contents.number = Some(4242);
        external.sides[1].meta = meta;
        let error = plan(&external).unwrap_err();
        assert!(matches!(error, SetupError::MetadataOver { .. }), "{error}");
    }
    // The first synchronisation must not run over data.
    let other = ResourceSpec { from: Some("n2".to_owned()), ..with("ext", 1 << 20) };
    assert!(matches!(plan(&other), Err(SetupError::Overwritten { .. })));
    let mut small = with("ext", 300 << 20);
    small.sides[1].contents.size_bytes = 200 << 20;
    assert!(matches!(plan(&small), Err(SetupError::Smaller { .. })));
}

#[test]
fn what_is_no_resource_is_refused() {
    for bad in [
        ResourceSpec { resource: "all".to_owned(), ..spec() },
        ResourceSpec { resource: "-r".to_owned(), ..spec() },
        ResourceSpec { protocol: 'D', ..spec() },
        ResourceSpec { from: Some("n3".to_owned()), ..spec() },
        ResourceSpec { sides: [side("n1", 1, 400 << 20), side("n1", 2, 400 << 20)], ..spec() },
        ResourceSpec { sides: [side("n1", 1, 400 << 20), side("n2", 1, 400 << 20)], ..spec() },
        ResourceSpec { sides: [side("n1", 1, 4096), side("n2", 2, 4096)], ..spec() },
    ] {
        assert!(plan(&bad).is_err(), "{bad:?}");
    }
}

#[test]
fn files_are_in_the_words_of_their_release() {
    let old = file_text(&spec());
    assert_eq!(old, include_str!("fixtures/r0-8.4.res"));
    let new =
        file_text(&ResourceSpec { release: Release::V9, resync_max_kib_per_s: Some(102_400), ..spec() });
    assert!(new.contains("node-id 1;") && new.contains("c-max-rate 102400k;"), "{new}");
    let printed = "DRBDADM_API_VERSION=1\nDRBD_KERNEL_VERSION_CODE=0x08040b\nDRBDADM_VERSION_CODE=0x091600\nDRBDADM_VERSION=9.22.0\n";
    assert_eq!(Release::parse(printed), Some(Release::V84));
    assert_eq!(Release::parse(&printed.replace("0x08040b", "0x090104")), Some(Release::V9));
    assert_eq!(Release::parse(&printed.replace("0x08040b", "0x000000")), None);
    assert_eq!(Release::parse("DRBDADM_VERSION=9.22.0\n"), None);
}
