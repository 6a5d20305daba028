//! Drives of steps and undos that were killed, and that others have used since, on real loop devices.

use linerate_model::step::{MdLevel, MdStep};

use super::*;

/// How much of a drive is compared.
const HEAD: usize = 6 << 20;

impl Volume {
    fn head(&self) -> Vec<u8> {
        let mut head = vec![0; HEAD];
        let file = File::open(&self.device).unwrap();
        linerate_sys::block::forget(&file).unwrap();
        file.read_exact_at(&mut head, 0).unwrap();
        head
    }

    /// A superblock of md (1.2) with a name.
    fn array(&self, name: &str) {
        let mut superblock = vec![0; 256];
        superblock[..4].copy_from_slice(b"\xfc\x4e\x2b\xa9");
        superblock[16..32].fill(7);
        superblock[32..32 + name.len()].copy_from_slice(name.as_bytes());
        self.write(4096, &superblock);
        Self::settle();
    }

    /// A physical volume of LVM in no group: its label, and the header of an area without metadata.
    fn physical(&self) {
        let label = [b"LABELONE".as_slice(), &[1; 24], b"an identifier of 32 characters ."].concat();
        self.write(512, &label);
        self.write(4096, &[&[1, 2, 3, 4], b" LVM2 x[5A%r0N*>".as_slice()].concat());
        Self::settle();
    }
}

/// A step, what it leaves, what others make, and the mark of that.
type Case<'a> = (&'a Step, fn(&Volume), fn(&Volume), &'a str);

fn killed(step: Step) -> Journal {
    let mut journal = Journal::new("here", "disk-data", 1);
    journal.steps.push(Done { step, before: None, was_there: false, whole: false, stamps: BTreeMap::new() });
    journal
}

fn obstacles(journal: &Journal) -> Vec<Obstacle> {
    remains::obstacles(journal, &|_| None, &|_| None)
}

/// Killed between its journal and its program; others make an array on the drives and stop it, or a volume
/// group. Nothing of theirs goes, in an undo, in the same step once more, and when it is given up.
#[test]
fn what_others_made_on_the_drives_of_a_killed_step_stays() {
    const NAME: &str = "what_others_made_on_the_drives_of_a_killed_step_stays";
    let (Some(one), Some(other)) = (Volume::new(NAME), Volume::new(NAME)) else { return };
    let devices = vec![one.device.clone(), other.device.clone()];
    let (name, level) = ("linerate-test".to_owned(), MdLevel::Raid10);
    let array = Step::Md(MdStep { name, level, chunk_kib: 64, devices: devices.clone() });
    let drives = Step::Lvm(LvmStep::Drives { devices, align_kib: None });
    let builds = builds(one.folder.path());
    let cases: [Case<'_>; 2] = [
        (
            &array,
            |v| v.array("host:linerate-test"),
            |v| v.array("host:theirs"),
            "md array (1.2) at byte 4096",
        ),
        (&drives, Volume::physical, |v| v.write(4608, b"keep {\nid = \"x\"\n}\n"), "LVM at byte 512"),
    ];
    for (step, make_own, make_other, mark) in cases {
        let journal = killed(step.clone());
        assert_eq!(obstacles(&journal), [], "the program had not begun");
        make_own(&one);
        assert_eq!(obstacles(&journal), [], "the program was killed");
        make_other(&one);
        Volume::settle();
        let before = one.head();
        builds.journals.write(&journal).unwrap();
        let refused = builds.undo("disk-data", false).unwrap_err();
        assert!(
            matches!(refused, BuildError::Stands { .. }) && refused.to_string().contains(mark),
            "{refused}"
        );
        assert!(refused.to_string().ends_with("--discard data"), "{refused}");
        let refused = builds.step("disk-data", step).unwrap_err();
        assert!(matches!(refused, BuildError::InTheWay { .. }), "{refused}");
        assert!(before == one.head(), "{mark}: it is left");
        let lines = builds.undo("disk-data", true).unwrap();
        assert!(lines.len() == 1 && lines[0].starts_with("left as it is: "), "{lines:?}");
        assert!(
            before == one.head() && builds.journals.list().unwrap().is_empty(),
            "{mark}: the journal is closed"
        );
        one.empty();
    }
}

/// `--zero-superblock` is for drives that `--stop` was to free.
#[test]
fn a_command_of_an_undo_that_fails_is_the_last_one() {
    const NAME: &str = "a_command_of_an_undo_that_fails_is_the_last_one";
    let (Some(one), Some(other)) = (Volume::new(NAME), Volume::new(NAME)) else { return };
    let devices = vec![one.device.clone(), other.device.clone()];
    let (name, level) = ("linerate-test".to_owned(), MdLevel::Raid10);
    let step = Step::Md(MdStep { name, level, chunk_kib: 64, devices });
    let builds = builds(one.folder.path());
    if builds.is_listed(step.operation()) == Some(false) {
        println!(
            "SKIPPED {NAME}: mdadm knows that there is no such array, so that the next command is right"
        );
        return;
    }
    builds.journals.write(&killed(step)).unwrap();
    assert_eq!(builds.undo("disk-data", false).unwrap(), ["mdadm --stop /dev/md/linerate-test"]);
}

/// An undo was killed when it had taken the label away; the drive was given to a program that writes to it
/// raw.
#[test]
fn a_drive_that_was_used_since_an_undo_was_killed_is_not_zeroed() {
    let Some(drive) = Volume::new("a_drive_that_was_used_since_an_undo_was_killed_is_not_zeroed") else {
        return;
    };
    let step = LvmStep::Drives { devices: vec![drive.device.clone()], align_kib: None };
    drive.physical();
    drive.write(4608, b"vg {\nid = \"x\"\n}\n");
    drive.write(2 << 20, &[0xff; 512]);
    let stamps = stamps::read(&step.stamp().unwrap());
    assert_eq!(stamps.len(), 1);
    let what = step.clear().remove(0);
    let done = Done { step: Step::Lvm(step), before: None, was_there: false, whole: true, stamps };
    let unlabelled = || {
        drive.write(512, &[0; 512]);
        Volume::settle();
    };
    // In one go: what stood on the drive while it had its identifier is known.
    let before = Before::of(std::slice::from_ref(&done), false);
    unlabelled();
    assert!(clear::clear(&what, true, &before).unwrap().is_empty());
    assert!(drive.head().iter().all(|byte| *byte == 0));
    // Killed behind pvremove, and used since: text, and any bytes.
    drive.write(8192, b"a table, of text alone\n");
    drive.write(2 << 20, &[0xfe; 512]);
    Volume::settle();
    let theirs = drive.head();
    let before = Before::of(std::slice::from_ref(&done), false);
    let lines = clear::clear(&what, true, &before).unwrap();
    assert!(lines.len() == 1 && lines[0].contains("bytes 8192 to 12288, 2097152 to 2101248"), "{lines:?}");
    assert!(theirs == drive.head(), "it is left");
    // Killed behind pvremove, and not used since: the text behind LVM's header is LVM's.
    drive.empty();
    drive.physical();
    drive.write(4608, b"vg {\nid = \"x\"\n}\n");
    drive.write(12288, b"vg {\nid = \"y\"\n}\n");
    unlabelled();
    let before = Before::of(std::slice::from_ref(&done), false);
    assert!(clear::clear(&what, true, &before).unwrap().is_empty());
    assert!(drive.head().iter().all(|byte| *byte == 0));
}
