//! What scripts set that are run when a device comes up: of the site, and of packages, which are silent.
#![allow(clippy::unwrap_used)]

use linerate_model::fact::FactValue;

use super::tests::Site;

const MTU: &str = "nic.lo.mtu";
const GRO: &str = "nic.lo.feature.generic-receive-offload";
const RING: &str = "nic.lo.ring.rx";
const RMEM: &str = "sysctl.net.core.rmem_max";
const FILTER: &str = "sysctl.net.ipv4.conf.lo.rp_filter";

const SERVICE: (&str, &str) = ("etc/systemd/system/multi-user.target.wants/networking.service", "");
const INTERFACES: (&str, &str) = (
    "etc/network/interfaces",
    "auto lo\niface lo inet static\n    mtu 9000\n    offload-gro off\n    ip-rp-filter 2\n\niface eth9 inet manual\n",
);

fn now() -> [(&'static str, FactValue); 5] {
    [
        (MTU, FactValue::Int(1500)),
        (GRO, FactValue::Flag(true)),
        (RING, FactValue::Int(256)),
        (RMEM, FactValue::Int(1)),
        (FILTER, FactValue::Int(1)),
    ]
}

/// A host on which all of these scripts may be executed.
fn site(files: &[(&str, &str)]) -> Site {
    let site = Site::new(files);
    files.iter().filter(|(_, text)| text.starts_with("#!")).for_each(|(path, _)| site.make_executable(path));
    site
}

#[test]
fn scripts_of_ifupdown_count_for_the_devices_that_they_are_for() {
    let up = "#!/bin/sh\n# Ring and offload of the storage NIC\n\
        case \"$IFACE\" in\n  lo)\n    /sbin/ethtool -G \"$IFACE\" rx 4096\n    ;;\n  eth9)\n    sysctl -w net.core.rmem_max=9\n    ;;\nesac\n\
        [ \"$METHOD\" = static ] || exit 0\nip link set $IFACE mtu 8000\n";
    let pre = "#!/bin/bash\nset -e\nif [ \"$PHASE\" = pre-up -a x = x ]; then /opt/site/prepare $IFACE; fi\n\
        if [ \"$IFACE\" = eth1 ]; then\n  /opt/site/never\nfi\necho 7 > /proc/sys/net/core/rmem_max\n";
    let site = site(&[
        SERVICE,
        INTERFACES,
        ("etc/network/if-up.d/50-storage", up),
        ("etc/network/if-up.d/storage.dpkg-old", "#!/bin/sh\nip link set lo mtu 1\n"),
        ("etc/network/if-up.d/lib", "ip link set lo mtu 2\n"),
        ("etc/network/if-up.d/tune", "#!/usr/bin/python3\nimport os\n"),
        ("etc/network/if-pre-up.d/site", pre),
        ("etc/network/if-down.d/x", "#!/bin/sh\nip link set lo mtu 3\n"),
    ]);
    let (lines, gaps) = site.read(&now());
    let at = "ifupdown etc/network";
    let expected = [
        format!("{at}/if-pre-up.d/site:7 {RMEM} 7"),
        format!("{at}/interfaces:4 {GRO} off"),
        format!("{at}/interfaces:3 {MTU} 9000"),
        format!("{at}/if-up.d/50-storage:5 {RING} 4096"),
        format!("{at}/if-up.d/50-storage:12 {MTU} 8000"),
    ];
    assert_eq!(lines, expected);
    let gap = |what: &str| format!("boot.*: etc/network/{what}");
    assert_eq!(
        gaps,
        [
            gap("if-pre-up.d/site:3 cannot be read: /opt/site/prepare"),
            gap("if-up.d/tune:1 cannot be read: it is no script of a shell"),
        ]
    );
}

/// Texts as those of Debian's packages are built: options of the stanza decide, or a service is reloaded.
#[test]
fn scripts_of_packages_that_set_nothing_are_silent() {
    let ethtool = "#!/bin/sh\nETHTOOL=/sbin/ethtool\ntest -x $ETHTOOL || exit 0\n[ \"$IFACE\" != \"lo0\" ] || exit 0\n\
        settings () {\n  set | sed -n \"s/^IF_$1//p\"\n}\nSETTINGS=\"${IF_LINK_SPEED:+ speed $IF_LINK_SPEED}\"\n\
        [ -z \"$SETTINGS\" ] || $ETHTOOL --change \"$IFACE\" $SETTINGS\n\
        SETTINGS=\"$(settings OFFLOAD_)\"\n[ -z \"$SETTINGS\" ] || $ETHTOOL --offload \"$IFACE\" $SETTINGS\n";
    let postfix = "#!/bin/sh -e\nif [ \"$IFACE\" = \"lo1\" ]; then\n\texit 0\nfi\n\
        if [ -f /var/spool/postfix/pid/master.pid ]; then\n\tservice postfix reload\nfi\n";
    let bond = "#!/bin/sh\nsysfs() {\n  echo \"$2\" > \"/sys/class/net/$IFACE/bonding/$1\"\n}\n\
        [ \"$IF_BOND_MODE\" ] || exit 0\nsysfs mode \"$IF_BOND_MODE\"\nip link set $IFACE mtu $IF_MTU\n";
    let wpa = "#!/bin/sh\n[ \"$IFACE\" != \"lo0\" ] || exit 0\n. /etc/wpa_supplicant/functions.sh\nwpa_supplicant_up\n";
    let packages = [
        SERVICE,
        INTERFACES,
        ("etc/network/if-up.d/ethtool", ethtool),
        ("etc/network/if-pre-up.d/ethtool", ethtool),
        ("etc/network/if-up.d/postfix", postfix),
        ("etc/network/if-pre-up.d/ifenslave", bond),
        ("etc/network/if-up.d/wpasupplicant", wpa),
    ];
    let (lines, gaps) = site(&packages).read(&now());
    let at = "ifupdown etc/network/interfaces";
    assert_eq!((lines, gaps), (vec![format!("{at}:4 {GRO} off"), format!("{at}:3 {MTU} 9000")], Vec::new()));

    // What a person has added to one counts, and one of the site by that name is no package's.
    let edited = format!("{ethtool}[ \"$IFACE\" = lo ] && ethtool -G lo rx 4096\n");
    let mut files = packages.to_vec();
    files[2].1 = &edited;
    files[4].1 = "#!/bin/sh\n/opt/mail/restart\n";
    let (lines, gaps) = site(&files).read(&now());
    assert_eq!(lines.last().unwrap(), &format!("ifupdown etc/network/if-up.d/ethtool:12 {RING} 4096"));
    assert_eq!(gaps, ["boot.*: etc/network/if-up.d/postfix:2 cannot be read: /opt/mail/restart"]);
}

#[test]
fn options_of_a_stanza_decide_what_a_script_does() {
    let filter = "#!/bin/sh\nif [ -n \"$IF_IP_RP_FILTER\" ]; then\n\
        if [ \"$IF_IP_RP_FILTER\" -eq 0 ]; then\n\
        echo 0 > \"/proc/sys/net/ipv4/conf/$IFACE/rp_filter\"\nelse\n\
        echo $IF_IP_RP_FILTER > \"/proc/sys/net/ipv4/conf/$IFACE/rp_filter\"\nfi\nfi\n";
    let mut files = [SERVICE, INTERFACES, ("etc/network/if-up.d/ip", filter)];
    let (lines, gaps) = site(&files).read(&now());
    assert_eq!(lines.last().unwrap(), &format!("ifupdown etc/network/if-up.d/ip:6 {FILTER} 2"));
    assert_eq!(gaps, [""; 0]);
    files[1].1 = "auto lo\niface lo inet static\n";
    assert_eq!(site(&files).read(&now()), (Vec::new(), Vec::new()));
    files[1].1 = "auto lo\nno-scripts l*\niface lo inet static\n  ip-rp-filter 2\n";
    assert_eq!(site(&files).read(&now()), (Vec::new(), Vec::new()));
}

#[test]
fn scripts_of_dispatchers_count_for_the_devices_of_their_owner() {
    let profile = "[connection]\nid=lo\ntype=ethernet\ninterface-name=lo\n";
    let tune = "#!/bin/bash\ninterface=$1\nevent=$2\n\
        if [[ \"$interface\" == lo* && \"$event\" == up ]]; then\n  ethtool -K \"$interface\" gro off\nfi\n\
        if [ \"$event\" = down ]; then /opt/site/down; fi\n";
    let files = [
        ("etc/systemd/system/multi-user.target.wants/NetworkManager.service", ""),
        ("etc/NetworkManager/system-connections/lo.nmconnection", profile),
        ("etc/NetworkManager/dispatcher.d/50-tune", tune),
        ("etc/NetworkManager/dispatcher.d/50-tune.rpmsave", tune),
        (
            "etc/NetworkManager/dispatcher.d/pre-up.d/10-mtu",
            "#!/bin/sh\n[ $2 = pre-up ] && ip link set $DEVICE_IFACE mtu 8000\n/opt/site/x\n",
        ),
        ("usr/lib/NetworkManager/dispatcher.d/20-chrony", "#!/bin/sh\n/usr/bin/unknown-to-us online\n"),
        ("usr/lib/NetworkManager/dispatcher.d/50-tune", "#!/bin/sh\nip link set lo mtu 4\n"),
    ];
    let of_host = site(&files);
    let (lines, gaps) = of_host.read(&now());
    let at = "NetworkManager dispatcher etc/NetworkManager/dispatcher.d";
    let expected = [format!("{at}/pre-up.d/10-mtu:2 {MTU} 8000"), format!("{at}/50-tune:5 {GRO} off")];
    assert_eq!(lines, expected);
    let gap = "boot.*: etc/NetworkManager/dispatcher.d/pre-up.d/10-mtu:3 cannot be read: /opt/site/x";
    assert_eq!(gaps, [gap]);
    of_host.link("/dev/null", "etc/systemd/system/NetworkManager-dispatcher.service");
    assert_eq!(of_host.read(&now()), (Vec::new(), Vec::new()), "masked");

    let mut files = vec![
        ("etc/systemd/system/multi-user.target.wants/systemd-networkd.service", ""),
        ("etc/systemd/network/10-lo.network", "[Match]\nName=lo\n"),
        ("etc/networkd-dispatcher/routable.d/50-gro", "#!/bin/sh\nethtool -K $IFACE gro off\n"),
        ("etc/networkd-dispatcher/off.d/50-gro", "#!/bin/sh\nethtool -K $IFACE gro on\n"),
        ("usr/lib/networkd-dispatcher/routable.d/postfix", "#!/bin/sh\nservice postfix reload\n"),
    ];
    assert_eq!(site(&files).read(&now()), (Vec::new(), Vec::new()), "nothing runs them");
    files.push(("etc/systemd/system/multi-user.target.wants/networkd-dispatcher.service", ""));
    let line = format!("networkd-dispatcher etc/networkd-dispatcher/routable.d/50-gro:2 {GRO} off");
    assert_eq!(site(&files).read(&now()), (vec![line], Vec::new()));
}
