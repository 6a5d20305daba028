//! What is refused in a profile, and that the built-in ones load.

use super::*;

fn good() -> String {
    let file = BUILTIN.get_file("profiles/esnet-transfer-10g.toml").unwrap();
    file.contents_utf8().unwrap().to_owned()
}

#[test]
fn the_builtin_profiles_are_sound_and_named_as_their_files() {
    let profiles = Profiles::builtin().unwrap();
    for speed in [10, 25, 40, 100, 200, 400] {
        for role in ["measurement", "transfer"] {
            let profile = profiles.get(&format!("esnet-{role}-{speed}g")).unwrap();
            let (least, most) = profile.speed_gbits.unwrap();
            assert!((least..=most).contains(&f64::from(speed)), "{}", profile.id);
            assert_eq!(profile.role.word(), role);
        }
    }
    for id in ["tuned-network-throughput", "tuned-network-latency", "casebook-storage-node"] {
        assert!(profiles.get(id).is_some(), "{id}");
    }
    let files = BUILTIN.get_dir(FOLDER).unwrap().files().filter(|f| f.path().extension().unwrap() == "toml");
    let mut names: Vec<&str> = files.map(|f| f.path().file_stem().unwrap().to_str().unwrap()).collect();
    names.sort_unstable();
    assert_eq!(profiles.iter().map(|p| p.id.as_str()).collect::<Vec<_>>(), names);
}

/// The window that a profile asks for is at least what its link needs at the RTT from which it applies.
#[test]
fn the_buffers_of_the_esnet_profiles_fit_their_condition() {
    for profile in Profiles::builtin().unwrap().iter().filter(|p| p.id.starts_with("esnet-")) {
        let buffers = profile.groups.iter().find(|g| g.group == SettingGroup::Buffers).unwrap();
        let receive = buffers.set.iter().find(|s| s.key.ends_with("tcp_rmem")).unwrap();
        let [HostCondition::RttUsMin(rtt_us)] = receive.when.as_slice() else { panic!("{}", profile.id) };
        let gbits: f64 = profile.id.rsplit('-').next().unwrap().trim_end_matches('g').parse().unwrap();
        let needed = gbits * 1e9 / 8.0 * rtt_us / 1e6;
        // Half of the default maximum of 6 MiB is window: from here on it is too small.
        let default = f64::from(6 << 20) / 2.0;
        assert!((needed / default - 1.0).abs() < 0.01, "{}: {needed} at {rtt_us} us", profile.id);
        assert!(receive.to.as_ref().unwrap().number(2).unwrap() / 2.0 > needed, "{}", profile.id);
    }
}

#[test]
fn a_flaw_is_reported_with_its_line() {
    let good = good();
    for (old, new, problem) in [
        ("id = \"esnet-transfer-10g\"", "id = \"ESnet\"", "invalid id"),
        ("date = \"2026-01-27\"\nspeed", "date = \"soon\"\nspeed", "invalid date"),
        ("speed_gbits = [5.0, 24.0]", "speed_gbits = [24.0, 5.0]", "invalid range"),
        ("role = \"transfer\"", "role = \"fast\"", "unknown variant `fast`"),
        ("group = \"tcp\"", "group = \"buffers\"", "twice or empty"),
        ("key = \"cpu.governor\"", "key = \"cpu.smt\"", "`cpu.smt` is no setting that may be written"),
        (
            "key = \"cpu.governor\"",
            "key = \"sysctl.net.ipv4.conf.all.rp_filter\"",
            "`sysctl.net.ipv4.conf.all.rp_filter` is dangerous",
        ),
        ("key = \"cpu.governor\"", "key = \"sysctl.net.ipv4.tcp_sack\"", "twice"),
        ("to = \"performance\"\n", "", "has no value or several"),
        ("to = 9000\n", "to = 9000\nto_fact = \"nic.*.max_mtu\"\n", "has no value or several"),
        ("source = \"fasterdata_tuning.py\"", "source = \"folklore\"", "is no source of this file"),
        ("rtt-us-min", "rtt-ms-min", "unknown variant `rtt-ms-min`"),
        ("to_fact = \"nic.*.ring.rx_max\"", "to_fact = \"ring\"", "`ring` is no key of a fact"),
    ] {
        assert!(good.contains(old), "{old}");
        let error = Profiles::default().add("x.toml", &good.replacen(old, new, 1)).unwrap_err();
        assert!(error.problem.contains(problem), "{error}");
        assert!(error.line > 0 && !error.hint.is_empty(), "{error}");
    }
    let mut profiles = Profiles::default();
    profiles.add("x.toml", &good).unwrap();
    let error = profiles.add("y.toml", &good).unwrap_err();
    assert_eq!((error.line, error.file.as_str()), (1, "y.toml"));
    assert!(error.problem.contains("is taken"), "{error}");
}
