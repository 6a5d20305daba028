//! What a volume is made of, what it should reach and what holds it back, in words.

use std::fmt::Write as _;

use linerate_diagnose::disks::{
    self, AlsoSafe, Arithmetic, Beside, Class, DiskExpectation, DiskLimit, DriveBus, VolumeMembers,
};
use linerate_diagnose::rules::Rules;
use linerate_model::disk_load::{DiskPhase, DiskResult};
use linerate_model::units::{percent, short};
use linerate_storage::plan::ROTATING_BYTES_PER_S;

use super::disks::counted;

/// In a few words: `36 drives with rotating discs, each block twice, pieces of 64 KiB`.
#[must_use]
pub fn members(volume: &VolumeMembers) -> String {
    let class = match volume.class {
        Class::Rotating => "with rotating discs",
        Class::Solid => "solid state (SATA or SAS)",
        Class::Nvme => "NVMe",
        Class::Virtual => "of a hypervisor",
        Class::Controller => "of a RAID controller or storage array",
        Class::Made => "made of a file or memory",
    };
    let mut words = match volume.drives {
        1 => format!("a drive {class}"),
        drives => format!("{drives} drives {class}"),
    };
    match volume.copies {
        0 | 1 => {}
        2 => words += ", each block twice",
        n => {
            let _ = write!(words, ", each block {n} times");
        }
    }
    if volume.reads_one {
        words += ", reads from the first copy alone";
    }
    if volume.parity > 0 {
        let _ = write!(words, ", parity of {}", volume.parity);
    }
    if let Some(chunk) = volume.chunk_bytes.filter(|_| volume.drives > 1) {
        let _ = write!(words, ", pieces of {} KiB", chunk >> 10);
    }
    if let Some(link) = &volume.link {
        let _ = write!(words, ", {}", bus(link.bus));
    }
    // Of what a hypervisor shows it says nothing of the drive.
    match volume.write_back.filter(|_| !matches!(volume.class, Class::Virtual | Class::Made)) {
        Some(true) => words += ", with a write cache",
        Some(false) => words += ", without a write cache",
        None => {}
    }
    if !volume.layers.is_empty() {
        let _ = write!(words, " ({})", volume.layers.join(", "));
    }
    words
}

fn bus(bus: DriveBus) -> String {
    match bus {
        DriveBus::Pcie { gts, lanes } => format!("PCIe at {gts} GT/s x {lanes}"),
        DriveBus::Sata(gbit) => format!("SATA at {gbit} Gbit/s"),
        DriveBus::Sas(gbit) => format!("SAS at {gbit} Gbit/s"),
    }
}

/// A measured phase beside what should be reached, and what binds, in words too.
#[must_use]
pub fn beside(volume: Option<&VolumeMembers>, result: &DiskResult) -> Beside {
    let mut beside = disks::beside(volume, result);
    if let Some(should) = &mut beside.should {
        should.sentence = arithmetic(should, &result.phase);
    }
    let (binds, sentence) = limit(&beside, result);
    Beside { binds: binds.to_owned(), sentence, ..beside }
}

fn arithmetic(should: &DiskExpectation, phase: &DiskPhase) -> String {
    let revolution = short(Rules::DEFAULT.disks.revolution_ms);
    let requests = short(should.requests_per_s);
    let (threads, in_flight) = (phase.threads, phase.outstanding());
    match &should.arithmetic {
        Arithmetic::Seeks { busy, each_per_s, cost, shortage } => {
            let mut text = format!("{} x {} a second", counted(*busy), short(*each_per_s));
            if (cost - 1.0).abs() > 1e-9 {
                let _ = write!(text, ", {} requests to drives for each", short(*cost));
            }
            let _ = write!(text, " = {requests} requests a second");
            if let Some((drives, needed)) = shortage {
                let _ = write!(
                    text,
                    "; {in_flight} under way leave {} little choice or nothing to do, {} would keep them \
                     busy (--depth)",
                    counted(f64::from(*drives)),
                    short(*needed)
                );
            }
            text
        }
        Arithmetic::Row { reached, drives, in_flight } => {
            let mb = |drives: f64| short(drives * ROTATING_BYTES_PER_S / 1e6);
            let (all, each) = (mb(*reached), mb(1.0));
            let text = format!(
                "{} x {each} MB/s = {all} MB/s in a row, where neighbours are merged",
                counted(*reached)
            );
            if reached >= drives {
                return text;
            }
            let (kib, reached, drives) = (short(in_flight / 1024.0), short(*reached), short(*drives));
            format!("{text}; {kib} KiB under way reach {reached} of {drives} drives")
        }
        Arithmetic::Flush { by_itself, also } => {
            let what = if *by_itself { "without a write cache a write" } else { "a flush" };
            let (turns, of) = match also {
                None => ("a revolution", ""),
                Some(AlsoSafe::Journal) => {
                    ("two revolutions", ", once for the data and once for the record in the journal")
                }
                Some(AlsoSafe::Tree) => {
                    ("two revolutions", ", once for the data and once for the tree of btrfs")
                }
            };
            format!(
                "{what} waits for {turns}, {revolution} ms each at 7,200 a minute{of}: {requests} safe \
                 writes a second of {threads} threads"
            )
        }
        Arithmetic::Missed => format!(
            "without a write cache each write waits for a revolution, {revolution} ms at 7,200 a minute: \
             {requests} writes a second of {threads} threads; more under way would not miss their place \
             (--depth)"
        ),
        Arithmetic::Wire(drives, link) => format!(
            "{} x {} MB/s of {}: no drive can be faster than its wire, many are slower",
            counted(*drives),
            short(link.bytes_per_s / 1e6),
            bus(link.bus)
        ),
    }
}

/// What binds, in a word for a column and in a sentence.
fn limit(beside: &Beside, result: &DiskResult) -> (&'static str, String) {
    let in_flight = result.phase.outstanding();
    let (binds, sentence) = match beside.limit {
        DiskLimit::Unknown(doubt) => return ("no evidence", result.reason(doubt)),
        DiskLimit::Cpu(busy) => {
            let (busy, threads) = (percent(busy), result.phase.threads);
            let text = format!(
                "the CPU is what limits: {busy} of a CPU for {threads} threads; more --threads would show"
            );
            return ("CPU", text);
        }
        DiskLimit::Flush(flush, whole) => {
            ("flush", format!("the flush takes {} of the {} ms of a safe write", short(flush), short(whole)))
        }
        DiskLimit::Cache => {
            let (last, all) = (short(result.last_flush_s * 1e3), short(result.elapsed_s * 1e3));
            ("cache", format!("writes ended in memory; the flush at the end took {last} of {all} ms"))
        }
        DiskLimit::Expected => {
            let should = beside.should.as_ref();
            (should.map_or("", |s| s.binds.word()), should.map_or(String::new(), |s| s.sentence.clone()))
        }
        DiskLimit::Latency(us) => {
            ("latency", format!("one request at a time: each takes {} us on average", short(us)))
        }
        DiskLimit::Busy => {
            ("device", format!("the device has always something to do at {in_flight} requests under way"))
        }
        DiskLimit::Device => {
            ("device", format!("the device answers no faster at {in_flight} requests under way"))
        }
    };
    let merged = beside.merged.map_or(String::new(), |(asked, reached)| {
        let (asked, reached) = (short(asked), short(reached));
        format!("; of {asked} requests {reached} reached the device, for neighbours were merged")
    });
    (binds, sentence + &merged)
}

#[cfg(test)]
mod tests {
    use linerate_diagnose::disks::DriveLink;
    use linerate_model::disk_load::{DeviceShare, DiskRequests, Doubt, Durable};
    use linerate_model::histogram::Histogram;

    use super::*;

    fn of_36() -> VolumeMembers {
        let drive = VolumeMembers::drive(Class::Rotating);
        VolumeMembers { drives: 36, copies: 2, chunk_bytes: Some(64 << 10), ..drive }
    }

    fn phase(random: bool, block_bytes: u32, depth: u16) -> DiskPhase {
        DiskPhase {
            random,
            reads: if random { 100 } else { 0 },
            block_bytes,
            depth,
            threads: 1,
            direct: true,
            durable: Durable::Never,
            batch: 1,
        }
    }

    fn result(phase: DiskPhase, requests: u64, took_ns: u64) -> DiskResult {
        let mut histogram = Histogram::default();
        histogram.record_many(took_ns, requests);
        DiskResult {
            phase,
            read: DiskRequests::default(),
            write: DiskRequests { requests, bytes: requests * 4096, took_ns: histogram },
            flush_ns: Histogram::default(),
            elapsed_s: 1.0,
            last_flush_s: 0.0,
            cpu_s: 0.1,
            series: Vec::new(),
            way: "io_uring".into(),
            remark: None,
            device: None,
            doubts: Vec::new(),
        }
    }

    #[test]
    fn a_volume_is_described_by_what_it_is_made_of() {
        let layers = ["DRBD", "partition", "md raid10"].map(str::to_owned).to_vec();
        let volume = VolumeMembers { drives: 4, write_back: Some(true), layers, ..of_36() };
        assert_eq!(
            members(&volume),
            "4 drives with rotating discs, each block twice, pieces of 64 KiB, with a write cache (DRBD, partition, md raid10)"
        );
        let link = Some(DriveLink { bytes_per_s: 3e8, bus: DriveBus::Sata(3.0) });
        let drive = VolumeMembers { link, ..VolumeMembers::drive(Class::Solid) };
        assert_eq!(members(&drive), "a drive solid state (SATA or SAS), SATA at 3 Gbit/s");
    }

    #[test]
    fn what_should_be_reached_has_its_arithmetic() {
        let text = |volume: &VolumeMembers, phase: DiskPhase| {
            beside(Some(volume), &result(phase, 1000, 200_000)).should.unwrap().sentence
        };
        assert_eq!(
            text(&of_36(), phase(true, 4096, 256)),
            "36 drives x 150 a second = 5400 requests a second"
        );
        assert!(text(&of_36(), phase(true, 4096, 18)).ends_with(
            " leave 36 drives little choice or nothing to do, 144 would keep them busy (--depth)"
        ));
        assert!(text(&of_36(), phase(false, 4096, 32)).ends_with(" reach 2 of 18 drives"));
        let safe = DiskPhase { durable: Durable::Full(1), ..phase(false, 4096, 1) };
        assert_eq!(
            text(&of_36().under("xfs"), safe),
            "a flush waits for two revolutions, 8.33 ms each at 7,200 a minute, once for the data and once for the record in the journal: 60 safe writes a second of 1 threads"
        );
        let without = VolumeMembers { write_back: Some(false), ..VolumeMembers::drive(Class::Rotating) };
        assert!(text(&without, phase(false, 1 << 20, 1)).starts_with(
            "without a write cache each write waits for a revolution, 8.33 ms at 7,200 a minute: 120"
        ));
        let link = DriveLink { bytes_per_s: 1_969_230_769.0, bus: DriveBus::Pcie { gts: 8.0, lanes: 2.0 } };
        let nvme = VolumeMembers { link: Some(link), ..VolumeMembers::drive(Class::Nvme) };
        assert_eq!(
            text(&nvme, phase(false, 1 << 20, 8)),
            "1 drive x 1969 MB/s of PCIe at 8 GT/s x 2: no drive can be faster than its wire, many are slower"
        );
    }

    #[test]
    fn what_binds_has_a_word_and_a_sentence() {
        let text = |volume: Option<&VolumeMembers>, result: &DiskResult| {
            let beside = beside(volume, result);
            (beside.binds, beside.sentence)
        };
        let is = |binds: &str, sentence: &str| (binds.to_owned(), sentence.to_owned());
        let all = result(phase(true, 4096, 256), 2700, 5_000_000);
        assert_eq!(text(Some(&of_36()), &all).0, "seeks");
        let cached = DiskResult { doubts: vec![Doubt::FromCache], ..all };
        let (binds, sentence) = text(None, &cached);
        assert_eq!(binds, "no evidence");
        assert!(sentence.starts_with("the kernel's cache answered"), "{sentence}");
        let one = result(phase(false, 4096, 1), 5000, 200_000);
        let latency = "one request at a time: each takes 200 us on average";
        assert_eq!(text(None, &one), is("latency", latency));
        let mut safe = result(phase(false, 4096, 1), 400, 2_500_000);
        safe.flush_ns.record_many(2_000_000, 400);
        assert_eq!(text(None, &safe), is("flush", "the flush takes 2 of the 2.5 ms of a safe write"));
        let merged = DeviceShare { requests: 1000, merged: 63_000, ..DeviceShare::default() };
        let row = DiskResult { device: Some(merged), ..result(phase(false, 4096, 32), 64_000, 400_000) };
        let sentence = "the device answers no faster at 32 requests under way; of 64000 requests 1000 reached the device, for neighbours were merged";
        assert_eq!(text(None, &row), is("device", sentence));
        let full = DiskResult { cpu_s: 0.97, ..row };
        let sentence = "the CPU is what limits: 97 % of a CPU for 1 threads; more --threads would show";
        assert_eq!(text(None, &full), is("CPU", sentence));
    }
}
