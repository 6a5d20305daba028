//! Data folders of Hadoop and Gluster, made here, with every kind of damage that a power cut leaves; and what
//! every kind of data has to fulfil.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::fs;
use std::path::Path;

use linerate_sys::xattr;

use super::*;

fn request(folder: &Path) -> AuditRequest {
    AuditRequest { folder: folder.into(), kind: None, sums: false, after: None, budget_ms: 60_000 }
}

fn whole(request: &AuditRequest) -> AuditPart {
    run(request, &AtomicBool::new(false)).unwrap()
}

/// Count of every class, and its first example.
fn classes(part: &AuditPart) -> Vec<(&str, u64, &str)> {
    part.classes
        .iter()
        .map(|(name, c)| (name.as_str(), c.count, c.examples.first().map_or("", String::as_str)))
        .collect()
}

/// A block with its metadata, as a data node writes them.
fn block(folder: &Path, number: i64, bytes: &[u8], kind: u8) {
    fs::create_dir_all(folder).unwrap();
    fs::write(folder.join(format!("blk_{number}")), bytes).unwrap();
    let mut meta = vec![0, 1, kind, 0, 0, 2, 0];
    for piece in bytes.chunks(512) {
        let sum = if kind == 1 { crc32fast::hash(piece) } else { crc32c::crc32c(piece) };
        meta.extend_from_slice(&sum.to_be_bytes());
    }
    fs::write(folder.join(format!("blk_{number}_1001.meta")), meta).unwrap();
}

/// A data node with a block of every class.
fn hadoop(folder: &Path) {
    let pool = folder.join("current/BP-1-10.0.0.1-1/current");
    let (good, bad) = (pool.join("finalized/subdir0/subdir0"), pool.join("finalized/subdir0/subdir1"));
    fs::create_dir_all(folder.join("current")).unwrap();
    fs::write(folder.join("current/VERSION"), "storageType=DATA_NODE\nlayoutVersion=-57\n").unwrap();
    let data: Vec<u8> = (0..5000_u32).map(|n| (n * 7) as u8).collect();
    for number in 0..50 {
        block(&good, 1_073_741_824 + number, &data[..4000 + number as usize], 1 + (number % 2) as u8);
    }
    for number in 1..10 {
        block(&bad, number, &data, 2);
    }
    let change = |name: &str, bytes: &[u8]| fs::write(bad.join(name), bytes).unwrap();
    change("blk_1", b"");
    fs::remove_file(bad.join("blk_2_1001.meta")).unwrap();
    fs::remove_file(bad.join("blk_3")).unwrap();
    change("blk_4_1001.meta", b"");
    change("blk_5_1001.meta", &[9; 47]);
    change("blk_6", &data[..4000]);
    let mut flipped = data.clone();
    flipped[2000] ^= 4;
    change("blk_7", &flipped);
    change("blk_8", b"");
    fs::remove_file(bad.join("blk_8_1001.meta")).unwrap();
    fs::copy(bad.join("blk_9_1001.meta"), bad.join("blk_9_1000.meta")).unwrap();
    block(&bad, 10, b"", 2);
    block(&pool.join("rbw"), 77, &data, 2);
    fs::write(pool.join("rbw/blk_78"), "").unwrap();
}

#[test]
fn every_damage_of_a_data_node_is_counted_and_named() {
    let folder = tempfile::tempdir().unwrap();
    hadoop(folder.path());
    let part = whole(&request(folder.path()));
    assert_eq!((part.kind, part.next.as_deref(), part.gaps.len()), (AuditKind::Hadoop, None, 0));
    let at = "current/BP-1-10.0.0.1-1/current/finalized/subdir0/subdir1/blk";
    let expected = [
        ("block-missing", 1, format!("{at}_3: only blk_3_1001.meta")),
        ("empty", 1, format!("{at}_1: 0 bytes, about 5120 by its metadata")),
        ("empty-alone", 1, format!("{at}_8: no metadata")),
        ("empty-by-intent", 1, format!("{at}_10: 0 bytes")),
        ("length", 1, format!("{at}_6: 4000 bytes need 39 bytes of metadata, there are 47")),
        ("meta-damaged", 1, format!("{at}_5: blk_5_1001.meta begins with [09, 09, 09, 09, 09, 09, 09]")),
        ("meta-empty", 1, format!("{at}_4: blk_4_1001.meta beside 5000 bytes")),
        ("meta-missing", 1, format!("{at}_2: 5000 bytes")),
        ("meta-older", 1, format!("{at}_9: 1 of them")),
        ("open", 2, String::new()),
        // Its data are changed, which nobody sees who does not read them.
        ("whole", 52, String::new()),
    ];
    let expected: Vec<(&str, u64, &str)> = expected.iter().map(|(n, c, e)| (*n, *c, e.as_str())).collect();
    assert_eq!(classes(&part), expected);
    assert_eq!(part.losses(), 7);
    let read = whole(&AuditRequest { sums: true, ..request(folder.path()) });
    assert_eq!(read.classes["verified"].count, 51);
    assert_eq!(read.classes["sums"].examples, [format!("{at}_7: differs from byte 1536 on")]);
}

#[test]
fn pieces_together_are_the_whole_and_change_nothing() {
    let folder = tempfile::tempdir().unwrap();
    hadoop(folder.path());
    let state = |folder: &Path| {
        let list =
            std::process::Command::new("find").arg(folder).args(["-printf", "%p %s %T@ %C@ %m\n"]).output();
        let mut lines: Vec<String> =
            linerate_testkit::text(&list.unwrap().stdout).lines().map(Into::into).collect();
        lines.sort();
        lines
    };
    let before = state(folder.path());
    let all = whole(&request(folder.path()));
    let (mut together, mut after, mut pieces) = (AuditPart::new(all.kind), None::<String>, 0);
    loop {
        let piece = whole(&AuditRequest { after: after.take(), budget_ms: 0, ..request(folder.path()) });
        after.clone_from(&piece.next);
        together.merge(piece);
        pieces += 1;
        if after.is_none() {
            break;
        }
    }
    assert!(pieces > 5);
    assert_eq!(together, all);
    assert_eq!(state(folder.path()), before);
}

const GFIDS: [&str; 4] = ["aa", "ab", "ac", "ad"];

/// A brick with files and folders; `false` when this process may not set the attributes of Gluster.
fn brick(folder: &Path) -> bool {
    let gfid = |first: &str| {
        let mut bytes = [0x11_u8; 16];
        bytes[0] = u8::from_str_radix(first, 16).unwrap();
        bytes
    };
    let name = |first: &str| format!("{first}111111-1111-1111-1111-111111111111");
    let links = |first: &str| {
        let links = folder.join(".glusterfs").join(first).join("11");
        fs::create_dir_all(&links).unwrap();
        links
    };
    for first in GFIDS {
        fs::write(folder.join(first), "data").unwrap();
        fs::hard_link(folder.join(first), links(first).join(name(first))).unwrap();
    }
    for first in ["ba", "bb", "bc", "bd", "be"] {
        links(first);
    }
    fs::write(links("ba").join(name("ba")), "").unwrap();
    fs::write(links("bb").join(name("bb")), "data").unwrap();
    fs::create_dir(folder.join("there")).unwrap();
    std::os::unix::fs::symlink("../../../there", links("bc").join(name("bc"))).unwrap();
    std::os::unix::fs::symlink("../../../gone", links("bd").join(name("bd"))).unwrap();
    fs::write(folder.join("pointer"), "").unwrap();
    fs::hard_link(folder.join("pointer"), links("be").join(name("be"))).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o1000);
    fs::set_permissions(folder.join("pointer"), mode).unwrap();
    fs::write(folder.join("there/alone"), "data").unwrap();
    fs::write(folder.join("there/taken"), "data").unwrap();
    fs::create_dir_all(folder.join(".glusterfs/indices/xattrop")).unwrap();
    fs::write(folder.join(".glusterfs/indices/xattrop/x"), "").unwrap();
    let mut set = vec![(folder.to_path_buf(), gfid("00")), (folder.join("pointer"), gfid("be"))];
    set.push((folder.join("there/taken"), gfid("ad")));
    set.extend(GFIDS.iter().map(|first| (folder.join(first), gfid(first))));
    if let Err(error) = set.iter().try_for_each(|(path, gfid)| xattr::set(path, "trusted.gfid", gfid)) {
        println!("SKIPPED the identifiers of a brick: {error}");
        return false;
    }
    // Another file took the link, the link went, the attribute went.
    fs::remove_file(links("ab").join(name("ab"))).unwrap();
    fs::hard_link(folder.join("aa"), links("ab").join(name("ab"))).unwrap();
    fs::hard_link(folder.join("ab"), folder.join("ab-too")).unwrap();
    fs::remove_file(links("ac").join(name("ac"))).unwrap();
    fs::hard_link(folder.join("ac"), folder.join("there/ac-too")).unwrap();
    true
}

#[test]
fn every_damage_of_a_brick_is_counted_and_named() {
    let folder = tempfile::tempdir().unwrap();
    let with_gfids = brick(folder.path());
    let part = whole(&request(folder.path()));
    assert_eq!(part.kind, AuditKind::Gluster);
    let count = |class: &str| part.classes.get(class).map_or(0, |c| c.count);
    let common = ["empty-orphan", "orphan", "dangling", "folder", "pointer"].map(count);
    assert_eq!(common, [1, 1, 1, 1, 1], "{part:#?}");
    assert!(part.classes["dangling"].examples[0].contains(" -> ../../../gone: "), "{part:#?}");
    if with_gfids {
        // aa, ad and the pointer are as they should be; ab has two names; ac too. `taken` has one and the
        // identifier of ad, `alone` has none.
        let own = ["named", "link-other", "link-missing", "no-gfid", "unread-gfid"].map(count);
        assert_eq!(own, [3, 3, 2, 1, 0], "{part:#?}");
        assert_eq!((part.losses(), part.gaps.len()), (9, 0), "{part:#?}");
    } else {
        assert_eq!((count("link-missing"), part.gaps.len()), (2, 1), "{part:#?}");
    }
}

#[test]
fn what_is_no_data_is_refused_in_words_and_a_stop_ends_it() {
    let folder = tempfile::tempdir().unwrap();
    let words = |request: &AuditRequest| run(request, &AtomicBool::new(false)).unwrap_err().to_string();
    assert!(words(&request(folder.path())).contains("looks like no data that is known: hadoop, gluster"));
    assert!(words(&request(Path::new("x"))).contains("not named from the root on"));
    assert!(words(&request(&folder.path().join("no"))).starts_with("cannot look at"));
    for kind in AuditKind::ALL {
        let empty = whole(&AuditRequest { kind: Some(*kind), ..request(folder.path()) });
        assert_eq!((empty.losses(), empty.folders, empty.next), (0, 1, None), "{kind}");
    }
    hadoop(folder.path());
    let stopped = run(&request(folder.path()), &AtomicBool::new(true));
    assert!(matches!(stopped, Err(AuditError::Stopped)), "{stopped:?}");
}
