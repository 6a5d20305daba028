//! Files of kept sets: what is understood, what is refused and where, what is added.
#![allow(clippy::unwrap_used)]

use super::*;

const FILE: &str = r#"
[[cohort]]
group = "storage"
driver = "mlx5_core"
speed = "25G"
policy = "propose"

[[cohort.setting]]
key = "nic.*.ring.rx"
value = 8192
trial = "20261121-083015-4f2a"

[[cohort.setting]]
key = "sysctl.net.ipv4.tcp_rmem"
value = "4096 131072 33554432"
policy = "put-back"

# of one host alone
[[cohort]]
hosts = ["vs-1"]

[[cohort.setting]]
key = "nic.eth0.feature.rx-gro-hw"
value = true
"#;

#[test]
fn cohorts_have_conditions_settings_and_policies() {
    let set = KeptSet::parse("kept.toml", FILE).unwrap();
    let [storage, one] = &set.cohorts[..] else { panic!("{set:?}") };
    assert_eq!(
        (storage.group.as_deref(), storage.speed_mbit, storage.line),
        (Some("storage"), Some(25_000), 2)
    );
    let policies: Vec<_> = storage.settings.iter().map(|s| (s.policy, s.line)).collect();
    assert_eq!(policies, [(DriftPolicy::Propose, 9), (DriftPolicy::PutBack, 14)]);
    assert_eq!(
        (one.hosts.as_slice(), &one.settings[0].value),
        (&["vs-1".to_owned()][..], &FactValue::Flag(true))
    );
}

#[test]
fn all_that_is_wrong_is_named_at_once_in_the_order_of_the_file() {
    let text =
        "[[cohort]]\nspeed = 'fast'\n[[cohort]]\n[[cohort.setting]]\nkey = 'nic.*.colour'\nvalue = 1\n";
    let error = KeptSet::parse("kept.toml", text).unwrap_err().to_string();
    let lines: Vec<&str> = error.lines().filter(|line| !line.starts_with("hint: ")).collect();
    assert_eq!(
        lines,
        [
            "kept.toml:2: `fast` is not a speed",
            "kept.toml:3: a cohort that chooses no hosts",
            "kept.toml:5: `nic.*.colour` is not a setting that can be kept",
        ]
    );
}

#[test]
fn what_is_wrong_is_named_with_its_line() {
    for (text, line, what) in [
        ("[[cohort]]\nhosts = ['a']\nrole = 'x'\n", 3, "unknown field `role`"),
        ("\n[[cohort]]\n[[cohort.setting]]\nkey = 'nic.*.mtu'\nvalue = 1\n", 2, "chooses no hosts"),
        ("[[cohort]]\ngroup = 'a'\nspeed = 'fast'\n", 3, "`fast` is not a speed"),
        (
            "[[cohort]]\ngroup = 'a'\n[[cohort.setting]]\nkey = 'sysctl.kernel.core_pattern'\nvalue = 1\n",
            4,
            "core_pattern",
        ),
        (
            "[[cohort]]\ngroup = 'a'\n[[cohort.setting]]\nkey = 'nic.*.mtu'\nvalue = 1\npolicy = 'fix'\n",
            6,
            "unknown variant `fix`",
        ),
        ("[[cohort]\n", 1, ""),
    ] {
        let error = KeptSet::parse("kept.toml", text).unwrap_err();
        assert_eq!(error.line, line, "{error}");
        assert!(error.problem.contains(what) && error.to_string().starts_with("kept.toml:"), "{error}");
    }
}

#[test]
fn an_addition_keeps_what_a_person_wrote() {
    let value = FactValue::Text("4096 131072 33554432".into());
    let of = |host, key, value| Addition { host, key, value, trial: "t-1" };
    let rmem = "sysctl.net.ipv4.tcp_rmem";
    let text = add("k", FILE, &[of("vs-1", rmem, &value), of("vs-2", rmem, &value)]).unwrap();
    let set = KeptSet::parse("k", &text).unwrap();
    assert_eq!(
        (set.cohorts[1].settings.len(), set.cohorts[2].hosts.as_slice()),
        (2, &["vs-2".to_owned()][..])
    );
    assert!(FILE.lines().all(|line| text.lines().any(|other| other == line)), "{text}");
    // The same setting again gets the new value, once.
    let other = FactValue::Int(7);
    let text = add("k", &text, &[of("vs-1", "nic.eth0.feature.rx-gro-hw", &other), of("vs-2", rmem, &other)])
        .unwrap();
    let set = KeptSet::parse("k", &text).unwrap();
    assert_eq!(set.cohorts[1].settings.len() + set.cohorts[2].settings.len(), 3);
    let setting = &set.cohorts[1].settings[0];
    assert_eq!((&setting.value, setting.trial.as_deref()), (&other, Some("t-1")));
    assert_eq!(set.cohorts[2].settings[0].value, other);
    // A file that is not there yet.
    let fresh = add("k", "", &[of("a\"b", rmem, &value)]).unwrap();
    assert_eq!(KeptSet::parse("k", &fresh).unwrap().cohorts[0].hosts, ["a\"b"]);
}
