//! What is in the image of the guests with systemd: the lists of packages, kernel modules, links and files.
//!
//! In: nothing. Out: lists. Its services are those of a server on which every owner of settings is at work:
//! sysctl.d, `.link` files, udev, ifupdown, NetworkManager, netplan with systemd-networkd, tuned. Slurm and
//! munge are there and start nowhere: a test that needs them writes their files and enables them.

use std::hash::Hash;

/// Packages with everything that they need; taken without recommendations.
pub(super) const PACKAGES: &[&str] = &[
    "linux-image-cloud-amd64",
    "bash",
    "busybox-static",
    "coreutils",
    "dbus",
    "dropbear-bin",
    "e2fsprogs",
    "ethtool",
    "findutils",
    "grep",
    "ifupdown",
    "iproute2",
    "kmod",
    "mdadm",
    "mount",
    "munge",
    "netplan.io",
    "network-manager",
    "nftables",
    "procps",
    "sed",
    "slurm-client",
    "slurmctld",
    "slurmd",
    "systemd",
    "systemd-sysv",
    "tuned",
    "udev",
    "util-linux",
];

/// Beginnings of the names of packages that are needed by name alone.
pub(super) const LEFT_OUT: &[&str] = &[
    "perl",
    "libperl",
    "python3-rich",
    "python3-pygments",
    "python3-markdown",
    "python3-mdurl",
    "dpkg",
    "apt",
    "initramfs",
];

/// Folders of the packages that no guest reads.
pub(super) const LEFT_OUT_FILES: &[&str] = &[
    "lib/modules",
    "lib/firmware",
    "lib/udev/hwdb.d",
    "usr/lib/udev/hwdb.d",
    "usr/lib/x86_64-linux-gnu/gconv",
    "usr/lib/x86_64-linux-gnu/perl-base",
    "usr/lib/python3.11/lib2to3",
    "usr/lib/python3.11/test",
    "usr/lib/python3.13/test",
    "usr/share/doc",
    "usr/share/i18n",
    "usr/share/info",
    "usr/share/locale",
    "usr/share/man",
    "usr/share/zoneinfo",
    // They belong to a system that was installed.
    "etc/init.d",
    "etc/rcS.d",
    "etc/rc2.d",
    "etc/cron.d",
    "etc/cron.daily",
];

/// Kernel modules of the guests; what they need comes with them.
pub(super) const MODULES: &[&str] = &[
    "acpi-cpufreq",
    "bonding",
    "brd",
    "bridge",
    "dummy",
    "nf_conntrack",
    "nf_tables",
    "nft_ct",
    "nft_limit",
    "nft_numgen",
    "raid1",
    "sch_fq",
    "sch_tbf",
    "sd_mod",
    "tcp_bbr",
    "veth",
    "virtio_net",
    "virtio_pci",
    "virtio_rng",
    "virtio_scsi",
    "vxlan",
];

/// Modules that are loaded before the root file system is there.
pub(super) const FIRST_MODULES: &[&str] = &["virtio_pci", "virtio_blk", "virtio_scsi", "sd_mod", "overlay"];
/// The first program of the guest.
pub(super) const INIT: &str = include_str!("guest/systemd/init.sh");
/// Size of the drive with the root file system: 240 MB of files, and what ext4 needs.
pub(super) const ROOT_BYTES: u64 = 400 << 20;

/// Services that start at boot.
const STARTED: [&str; 4] = ["NetworkManager", "networking", "systemd-networkd", "tuned"];
/// Units of a server that set nothing which can be kept, and that cost a boot time.
const MASKED: [&str; 30] = [
    "NetworkManager-dispatcher.service",
    "NetworkManager-wait-online.service",
    "dev-hugepages.mount",
    "dev-mqueue.mount",
    "e2scrub_reap.service",
    "getty.target",
    "kmod-static-nodes.service",
    "mdmonitor.service",
    "modprobe@configfs.service",
    "modprobe@dm_mod.service",
    "modprobe@drm.service",
    "modprobe@efi_pstore.service",
    "modprobe@fuse.service",
    "modprobe@loop.service",
    "polkit.service",
    "proc-sys-fs-binfmt_misc.automount",
    "sys-fs-fuse-connections.mount",
    "sys-kernel-config.mount",
    "sys-kernel-debug.mount",
    "sys-kernel-tracing.mount",
    "systemd-binfmt.service",
    "systemd-hostnamed.service",
    "systemd-logind.service",
    "systemd-machine-id-commit.service",
    "systemd-networkd-wait-online.service",
    "systemd-random-seed.service",
    "systemd-sysusers.service",
    "systemd-update-utmp-runlevel.service",
    "systemd-update-utmp.service",
    "systemd-user-sessions.service",
];
/// Generators of units that the guest lacks; each start of a program costs an emulated CPU a tenth of
/// a second.
const NO_GENERATORS: [&str; 12] = [
    "systemd-cryptsetup-generator",
    "systemd-debug-generator",
    "systemd-fstab-generator",
    "systemd-getty-generator",
    "systemd-gpt-auto-generator",
    "systemd-hibernate-resume-generator",
    "systemd-integritysetup-generator",
    "systemd-rc-local-generator",
    "systemd-run-generator",
    "systemd-system-update-generator",
    "systemd-sysv-generator",
    "systemd-veritysetup-generator",
];

/// Programs that Debian names by a link that it makes when it installs them.
const SLURM: [&str; 3] = ["slurmctld", "slurmd", "slurmstepd"];

/// Links, with their targets.
pub(super) fn links() -> Vec<(String, String)> {
    let system = "etc/systemd/system";
    let unit = |name: &str| format!("/usr/lib/systemd/system/{name}");
    let mut links = vec![
        ("usr/bin/sh".to_owned(), "bash".to_owned()),
        ("var/run".to_owned(), "/run".to_owned()),
        ("var/lock".to_owned(), "/run/lock".to_owned()),
        (format!("{system}/default.target"), unit("linerate-lab.target")),
    ];
    // The alternatives of Debian: no script of a package is run.
    links.extend(SLURM.iter().map(|name| (format!("usr/sbin/{name}"), format!("{name}-wlm"))));
    links.extend(STARTED.iter().map(|name| {
        let name = format!("{name}.service");
        (format!("{system}/multi-user.target.wants/{name}"), unit(&name))
    }));
    let nothing = "/dev/null".to_owned();
    links.extend(MASKED.iter().map(|name| (format!("{system}/{name}"), nothing.clone())));
    let generators = "etc/systemd/system-generators";
    links.extend(NO_GENERATORS.iter().map(|name| (format!("{generators}/{name}"), nothing.clone())));
    links
}

/// Files that are ours: path in the guest, mode, contents.
pub(super) const FILES: &[(&str, u32, &str)] = &[
    ("usr/lib/linerate-lab.sh", 0o755, include_str!("guest/systemd/lab.sh")),
    ("usr/lib/systemd/system/linerate-lab.service", 0o644, include_str!("guest/systemd/lab.service")),
    ("usr/lib/systemd/system/linerate-lab.target", 0o644, include_str!("guest/systemd/lab.target")),
    ("etc/passwd", 0o644, include_str!("guest/systemd/passwd")),
    ("etc/group", 0o644, include_str!("guest/systemd/group")),
    ("etc/shadow", 0o600, "root:*:19000:0:99999:7:::\n"),
    ("etc/shells", 0o644, "/bin/bash\n/bin/sh\n"),
    ("etc/nsswitch.conf", 0o644, "passwd: files\ngroup: files\nshadow: files\nhosts: files\n"),
    // The devices of CPUs are sent no events either.
    ("etc/modules-load.d/lab.conf", 0o644, "acpi-cpufreq\n"),
    // Settings are those of NICs and drives: udev is sent no events of the hundreds of other devices.
    (
        "etc/systemd/system/systemd-udev-trigger.service.d/lab.conf",
        0o644,
        "[Service]\nExecStart=\nExecStart=-udevadm trigger --type=devices --action=add --subsystem-match=net \
         --subsystem-match=block --subsystem-match=scsi --subsystem-match=virtio\n",
    ),
    (
        "etc/systemd/journald.conf.d/lab.conf",
        0o644,
        "[Journal]\nStorage=volatile\nForwardToConsole=no\nReadKMsg=no\n",
    ),
    // Without it systemd takes every boot for the first one.
    ("etc/machine-id", 0o644, "4c79000000000000000000000000004c\n"),
    // eth2 is ifupdown's, eth3 NetworkManager's, eth4 netplan's; eth0 and eth1 are the lab's.
    (
        "etc/network/interfaces",
        0o644,
        "auto lo\niface lo inet loopback\n\nauto eth2\niface eth2 inet static\n    address 10.80.2.1/24\n",
    ),
    (
        "etc/NetworkManager/conf.d/10-lab.conf",
        0o644,
        "[main]\nno-auto-default=*\nplugins=keyfile\n[keyfile]\nunmanaged-devices=interface-name:eth0;interface-name:eth1;\
         interface-name:eth2;interface-name:eth4\n",
    ),
    (
        "etc/NetworkManager/system-connections/storage.nmconnection",
        0o600,
        "[connection]\nid=storage\nuuid=4c790000-0000-4000-8000-000000000003\ntype=ethernet\ninterface-name=eth3\n\n\
         [ipv4]\nmethod=manual\naddress1=10.80.3.1/24\n\n[ipv6]\nmethod=disabled\n",
    ),
    (
        "etc/netplan/10-lab.yaml",
        0o600,
        "network:\n  version: 2\n  renderer: networkd\n  ethernets:\n    eth4:\n      addresses: [10.80.4.1/24]\n",
    ),
    ("etc/tuned/active_profile", 0o644, "network-throughput\n"),
    ("etc/tuned/profile_mode", 0o644, "manual\n"),
    // The profile counts after sysctl.d.
    ("etc/tuned/tuned-main.conf", 0o644, "daemon = 1\ndynamic_tuning = 0\nreapply_sysctl = 0\n"),
    (
        "etc/sysctl.conf",
        0o644,
        "# A file of old, read through a link in sysctl.d.\nnet.ipv4.tcp_fin_timeout = 50\n",
    ),
];

/// Everything that the image is made of, but for the versions of the packages.
pub(super) fn hash(hasher: &mut impl std::hash::Hasher) {
    (PACKAGES, LEFT_OUT, LEFT_OUT_FILES, MODULES, FIRST_MODULES, INIT, FILES, links()).hash(hasher);
}
