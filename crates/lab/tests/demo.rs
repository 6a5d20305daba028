//! The demo from beginning to end: as long as its screens may be, and nothing left.
//!
//! In: the programs `linerate` and `linerate-node`, as in the other tests. How well it is right depends on
//! what else the machine does, how much it prints does not.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::process::Command;

use linerate_testkit::{self as testkit, TestPrograms};

/// Lines of `script/demo` on a pipe, and of a screen.
const LINES_MAX: usize = 70;
const SCREEN_MAX: usize = 12;

#[test]
fn the_demo_is_five_short_screens() {
    const NAME: &str = "the_demo_is_five_short_screens";
    let programs = TestPrograms::built();
    if let Some(why) = programs.missing() {
        testkit::skip(NAME, &why);
        return;
    }
    let report = std::env::temp_dir().join(format!("linerate-demo-{}.html", std::process::id()));
    let ended = Command::new(env!("CARGO_BIN_EXE_linerate-lab"))
        .args(["demo", "--seed", "1", "--report"])
        .arg(&report)
        .env("LINERATE", &programs.linerate)
        .env("LINERATE_NODE", &programs.node)
        .output()
        .unwrap();
    let text = testkit::text(&ended.stdout);
    println!("{text}");
    assert!(text.ends_with("nothing of the cluster is left.\n"), "{}", testkit::text(&ended.stderr));
    assert!(text.lines().count() <= LINES_MAX, "{} lines", text.lines().count());
    let screens: Vec<&str> = text.split("\n\n").collect();
    for screen in &screens {
        assert!(screen.lines().count() <= SCREEN_MAX, "{} lines: {screen}", screen.lines().count());
    }
    for number in [1, 2, 5] {
        assert!(
            screens.iter().any(|screen| screen.starts_with(&format!("[{number}/5]"))),
            "{number}: {text}"
        );
    }
    std::fs::remove_file(&report).unwrap();
}
