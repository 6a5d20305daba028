//! Names in a release build the commit it is made from, for `linerate --version`. A build for development
//! does not: it would be linked anew for each commit.

use std::env;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let mut commit = String::new();
    if env::var("PROFILE").is_ok_and(|profile| profile == "release") {
        println!("cargo::rerun-if-changed=../../.git/logs/HEAD");
        let shown = Command::new("git").args(["log", "-1", "--format= (%h, %cs)"]).output();
        // A source archive has no commits.
        if let Some(out) = shown.ok().filter(|out| out.status.success()) {
            String::from_utf8_lossy(&out.stdout).trim_end().clone_into(&mut commit);
        }
    }
    println!("cargo::rustc-env=LINERATE_COMMIT={commit}");
}
