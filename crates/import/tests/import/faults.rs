//! Fault lines of pasted texts are judged: logs of disks and USB, power saving of links, packets that are too
//! long, pings and writes that take seconds. None of it is passed as fine, and none is called certain.

use linerate_import::Document;
use linerate_model::fact::FactValue;
use linerate_model::finding::Diagnosis;

use super::{account, fact, read_one};

/// A cause that was only read, without a measured loss, is less likely than this.
const CLAIMED: f64 = 0.7;

fn diagnosed(text: &str) -> Diagnosis {
    let snapshot = read_one(Document::new("mail.txt", text));
    linerate_report::words::written(linerate_diagnose::diagnose(&snapshot, crate::knowledge()))
}

/// The first cause of the first finding, which is possible and no more.
fn possible(text: &str) -> String {
    let diagnosis = diagnosed(text);
    let first = diagnosis.findings.first().and_then(|finding| finding.causes.first());
    let cause = first.unwrap_or_else(|| panic!("{}: {:?}", diagnosis.headline, diagnosis.asked));
    assert!(cause.probability < CLAIMED, "{} {}", cause.id, cause.probability);
    assert!(diagnosis.headline.contains("the cause is not known; possible"), "{}", diagnosis.headline);
    cause.id.clone()
}

/// The first thing that is asked for.
fn asked(diagnosis: &Diagnosis) -> &str {
    diagnosis.asked.first().map_or("", |missing| &missing.command)
}

#[test]
fn a_sata_link_that_does_not_wake_up() {
    let text = "The disk of my laptop hangs after a pause.\n\n\
        [  812.100001] ata3.00: exception Emask 0x10 SAct 0x0 SErr 0x50000 action 0xe frozen\n\
        [  812.100004] ata3: SError: { PHYRdyChg CommWake }\n\
        [  812.100006] ata3.00: failed command: READ DMA EXT\n\
        [  812.100009] ata3.00: cmd 25/00:08:00:10:20/00:00:30:00:00/e0 tag 4 dma 4096 in\n\
        [  812.100009]          res 50/00:00:00:00:00/00:00:00:00:00/40 Emask 0x10 (ATA bus error)\n\
        [  812.100012] ata3.00: status: { DRDY }\n\
        [  812.100015] ata3: hard resetting link\n\
        [  818.100015] ata3: COMRESET failed (errno=-16)\n";
    let read = read_one(Document::new("mail.txt", text));
    assert_eq!(account(&read).unread_lines, 1, "{:?}", account(&read).unread);
    let count = |key: &str| fact(&read, "unnamed-host", key).and_then(|value| value.number(0));
    assert_eq!(count("ata.ata3.log.wake_error"), Some(1.0));
    assert_eq!(count("ata.ata3.log.reset"), Some(1.0));
    assert_eq!(count("kernel.log.sata_resets"), Some(1.0));
    assert_eq!(possible(text), "sata-link-power");
    let asked = diagnosed(text).asked;
    assert!(asked[0].command.contains("link_power_management_policy"), "{asked:?}");
    assert!(!asked.iter().any(|missing| missing.command.contains("ethtool")), "{asked:?}");
    // Damaged bits are those of a cable.
    let cable = text.replace("PHYRdyChg CommWake", "BadCRC Handshk");
    assert_eq!(possible(&cable), "sata-link-errors");
}

#[test]
fn a_bridge_on_usb_that_aborts_commands() {
    let text = "Mar 03 09:00:01 box kernel: sd 4:0:0:0: [sdc] tag#7 uas_eh_abort_handler 0 uas-tag 8 inflight: CMD OUT\n\
        Mar 03 09:00:01 box kernel: sd 4:0:0:0: [sdc] tag#7 CDB: Write(10) 2a 00 00 10 00 00 00 04 00 00\n\
        Mar 03 09:00:01 box kernel: scsi host4: uas_eh_device_reset_handler start\n\
        Mar 03 09:00:01 box kernel: usb 4-1: reset SuperSpeed USB device number 2 using xhci_hcd\n\
        Mar 03 09:00:01 box kernel: scsi host4: uas_eh_device_reset_handler success\n";
    let read = read_one(Document::new("mail.txt", text));
    assert_eq!(account(&read).unread_lines, 0, "{:?}", account(&read).unread);
    assert_eq!(possible(text), "usb-uas-aborts");
    assert!(asked(&diagnosed(text)).contains("lsusb -t"), "{:?}", diagnosed(text).asked);
}

#[test]
fn devices_on_a_port_of_usb_2() {
    let tree = |driver: &str, speed: &str| {
        format!(
            "$ lsusb -t\n/:  Bus 01.Port 1: Dev 1, Class=root_hub, Driver=xhci_hcd/4p, 480M\n    \
             |__ Port 3: Dev 2, If 0, Class=Human Interface Device, Driver=usbhid, 12M\n    \
             |__ Port 4: Dev 3, If 0, Class=Vendor Specific Class, Driver={driver}, {speed}\n"
        )
    };
    assert_eq!(possible(&tree("uas", "480M")), "usb-slow-port");
    assert_eq!(possible(&tree("r8152", "480M")), "usb-slow-port");
    // Enough for its device, and a keyboard needs no more.
    assert!(diagnosed(&tree("uas", "5000M")).findings.is_empty());
    assert!(diagnosed(&tree("usbhid", "480M")).findings.is_empty());
    let nas = "  |__2-1         0b95:1790:0200 00  2.10  480MBit/s 124mA 1IF  (ASIX Gigabit Ethernet 0007)\n";
    assert_eq!(possible(nas), "usb-slow-port");
}

#[test]
fn the_link_power_of_sata_with_and_without_names() {
    let read = read_one(Document::new(
        "mail.txt",
        "# cat /sys/class/scsi_host/host*/link_power_management_policy\nmax_performance\nmin_power\n",
    ));
    assert_eq!(
        fact(&read, "unnamed-host", "ata.host.link_power"),
        Some(&FactValue::Text("min_power".into()))
    );
    // A policy alone harms nothing.
    let alone = "/sys/class/scsi_host/host3/link_power_management_policy:med_power_with_dipm\n";
    let read = read_one(Document::new("mail.txt", alone));
    assert_eq!(fact(&read, "unnamed-host", "ata.host3.power_saving"), Some(&FactValue::Int(1)));
    assert!(diagnosed(alone).findings.is_empty());
}

#[test]
fn a_nic_whose_pcie_link_sleeps() {
    let of = |state: &str| {
        format!(
            "05:00.0 Ethernet controller: Example Corp. Gigabit NIC (rev 02)\n\
             \t\tLnkCap:\tPort #0, Speed 2.5GT/s, Width x1, ASPM L0s L1\n\
             \t\tLnkCtl:\tASPM {state}; RCB 64 bytes, Disabled- CommClk+\n\
             \t\tLnkSta:\tSpeed 2.5GT/s, Width x1\n"
        )
    };
    assert_eq!(possible(&of("L0s L1 Enabled")), "pcie-link-power");
    assert!(diagnosed(&of("Disabled")).findings.is_empty());
}

#[test]
fn packets_that_are_too_long() {
    let refused = "tunnel[77]: peer 4: sendto udp 198.51.100.4:7000: message too long\n";
    assert_eq!(possible(refused), "overlay-mtu-too-large");
    assert!(asked(&diagnosed(refused)).contains("ip -d link"));
    let cut =
        "10:00:00.100000 IP truncated-ip - 64 bytes missing! web.http > me.40000: Flags [.], length 1400\n";
    assert_eq!(possible(cut), "overlay-mtu-too-large");
}

#[test]
fn pings_of_seconds_are_a_symptom() {
    let pings = |to: &str, times: [&str; 3]| {
        let answer =
            |(at, time): (usize, &&str)| format!("64 bytes from {to}: icmp_seq={at} ttl=64 time={time} ms\n");
        let answers: String = times.iter().enumerate().map(answer).collect();
        format!("root@gate:~# ping {to}\nPING {to} ({to}) 56(84) bytes of data.\n{answers}")
    };
    let slow = diagnosed(&pings("192.168.7.20", ["2900", "1800", "740"]));
    assert!(slow.headline.contains("the cause is not known; gate to 192.168.7.20"), "{}", slow.headline);
    assert!(asked(&slow).contains("iw dev") && asked(&slow).contains("tc -s qdisc"), "{:?}", slow.asked);
    let far = diagnosed(&pings("203.0.113.20", ["290", "291", "290"]));
    assert!(!far.headline.contains("a ping takes"), "{}", far.headline);
    assert!(!far.headline.contains("nothing stands out"), "{}", far.headline);
}

#[test]
fn writes_of_seconds_are_a_symptom() {
    let text = "dd if=/dev/zero of=/data/x bs=4k count=20 oflag=dsync\n20+0 records in\n20+0 records out\n\
        81920 bytes (82 kB, 80 KiB) copied, 18.4 s, 4.5 kB/s\n";
    let slow = diagnosed(text);
    assert!(slow.headline.contains("a synchronous write takes 920 ms"), "{}", slow.headline);
    assert!(asked(&slow).contains("iostat -x") && !asked(&slow).contains("iperf3"), "{:?}", slow.asked);
    // The command without a prompt is the command: nothing was cached.
    let notes = read_one(Document::new("mail.txt", text)).imported.unwrap().notes;
    assert!(!notes.iter().any(|note| note.contains("page cache")), "{notes:?}");
    let fine = text.replace("18.4 s, 4.5 kB/s", "0.2 s, 410 kB/s");
    let fine = diagnosed(&fine);
    assert_eq!(fine.headline, "one figure of disks, 410 kB/s; no limit is known to compare with");
}

#[test]
fn a_lone_write_cache_that_is_off_is_possible() {
    assert_eq!(
        possible("# hdparm -W /dev/sdd\n\n/dev/sdd:\n write-caching =  0 (off)\n"),
        "disk-write-cache-off"
    );
}

#[test]
fn a_radio_link_with_retries() {
    let text = |signal: &str, retries: &str, rate: &str| {
        format!(
            "root@ap:~# iw dev wlan1 station dump\nStation 02:00:00:00:00:09 (on wlan1)\n\
             \tinactive time:\t20 ms\n\ttx packets:\t50000\n\ttx retries:\t{retries}\n\ttx failed:\t3\n\
             \tsignal:  \t{signal} [-70, -71] dBm\n\ttx bitrate:\t{rate} MBit/s\n"
        )
    };
    assert_eq!(possible(&text("-83", "31000", "6.5")), "radio-link-poor");
    assert!(diagnosed(&text("-52", "900", "866.7")).findings.is_empty());
}

#[test]
fn a_file_is_no_host_and_the_only_prompt_names_the_nameless() {
    let text = "ifcfg-bond1:\nBONDING_OPTS=\"mode=802.3ad\"\n\n\
        net.core.rmem_max = 212992\n\nroot@db-1:~# sysctl net.core.wmem_max\nnet.core.wmem_max = 212992\n";
    let read = read_one(Document::new("mail.txt", text));
    assert_eq!(read.facts.keys().collect::<Vec<_>>(), ["db-1"]);
}

#[test]
fn what_was_read_is_not_denied() {
    let text = "root@db-1:~# hostname\n# ethtool -i eth0\ndriver: e1000e\nversion: 6.1\nbus-info: 0000:00:19.0\n\nThe NIC is slow.\n";
    let headline = diagnosed(text).headline;
    assert!(!headline.contains("no measurement was read"), "{headline}");
    assert!(diagnosed("The NIC is slow.\n").headline.contains("no measurement was read"));
}

#[test]
fn no_transport_leads_to_a_host_without_a_name() {
    let snapshot = read_one(Document::new(
        "mail.txt",
        "/:  Bus 01.Port 1: Dev 1, Class=root_hub, Driver=xhci_hcd/4p, 480M\n    \
         |__ Port 4: Dev 3, If 0, Class=Mass Storage, Driver=uas, 480M\n",
    ));
    let diagnosis = linerate_diagnose::diagnose(&snapshot, crate::knowledge());
    let verdict = linerate_report::verdict::of(&snapshot, &linerate_report::words::written(diagnosis));
    let check = verdict.findings[0].check.as_ref().unwrap();
    assert_eq!(check.command, "lsusb -t");
}
