//! Proofs of causes: each cause of the knowledge has one of its own; one of a user's is proven by
//! `linerate knowledge test --lab`, where the programs work together.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::path::Path;
use std::process::Command;

use linerate_knowledge::{Cause, CauseProof, Knowledge};
use linerate_lab::faults;
use linerate_testkit::TestPrograms;

/// The judge as a user's own cause meets it: a cluster, a fault, a survey, a verdict, all by the programs
/// themselves.
#[test]
fn a_cause_of_ones_own_is_proven_by_the_lab() {
    let test = "a_cause_of_ones_own_is_proven_by_the_lab";
    let programs = TestPrograms::beside(env!("CARGO_BIN_EXE_linerate-judge"));
    if let Some(reason) = programs.missing() {
        println!("SKIPPED {test}: {reason}");
        return;
    }
    let text = include_str!("../../../knowledge/tcp/tcp-rmem-small.toml")
        .replace("\"tcp-rmem-small\"", "\"my-small-window\"")
        .replace("prior = \"medium\"", "prior = \"high\"");
    let file = std::env::temp_dir().join(format!("linerate-own-{}.toml", std::process::id()));
    std::fs::write(&file, text).unwrap();
    let output = Command::new(&programs.linerate)
        .args(["knowledge", "test", "--lab", "--json"])
        .arg(&file)
        .env("LINERATE_JUDGE", env!("CARGO_BIN_EXE_linerate-judge"))
        .env("LINERATE_NODE", &programs.node)
        .output();
    std::fs::remove_file(&file).unwrap();
    let output = output.unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    let tested: serde_json::Value =
        serde_json::from_str(&printed).unwrap_or_else(|e| panic!("{e}: {printed}{errors}"));
    assert_eq!(tested["proofs"][0]["name"], "small-rmem", "{printed}");
    assert_eq!(tested["proofs"][0]["found"], true, "{printed}{errors}");
}

/// Whether a proof is of this cause: a fault of the lab whose truth it is, or a recorded case that must name
/// it first. A case that names it second shows that it is not excluded, not that it is found.
fn proves(proof: &CauseProof, cause: &Cause) -> bool {
    match proof {
        CauseProof::Fault(name) => faults::find(name).is_ok_and(|fault| fault.about().cause == cause.id),
        CauseProof::Case(name) => {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../cases");
            let text = std::fs::read_to_string(folder.join(name).with_extension("toml")).unwrap();
            let case = linerate_cases::parse(name, &text).unwrap();
            case.expect.finding.iter().any(|finding| finding.causes.first() == Some(&cause.id))
        }
    }
}

/// Each fault of a name is injected, and each case diagnosed, by tests of their own.
#[test]
fn each_cause_has_a_fault_of_the_lab_or_a_recorded_case() {
    let knowledge = Knowledge::builtin().unwrap();
    let lacks = knowledge.causes().filter(|cause| !cause.proof.iter().any(|proof| proves(proof, cause)));
    let lacks: Vec<&str> = lacks.map(|cause| cause.id.as_str()).collect();
    assert!(lacks.is_empty(), "no proof: {lacks:?}");
    assert!(knowledge.causes().count() > 100);
}
