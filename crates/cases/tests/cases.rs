//! Every file in `cases/`: the evidence gives the verdict that the file expects.

use std::path::Path;

use linerate_cases as case;
use linerate_knowledge::Knowledge;

#[test]
fn every_case_gives_its_verdict() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../cases");
    let knowledge = Knowledge::builtin().unwrap();
    let mut wrong = Vec::new();
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|e| e != "toml") {
            continue;
        }
        count += 1;
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let case = case::parse(&name, &std::fs::read_to_string(&path).unwrap()).unwrap();
        let diagnosis = linerate_report::words::written(case::diagnose(&case, &knowledge));
        println!("{name}: {}", diagnosis.headline);
        for finding in &diagnosis.findings {
            println!("    {}", finding.sentence);
        }
        wrong.extend(case::check(&case, &diagnosis).into_iter().map(|w| format!("{name}: {w}")));
    }
    assert!(count >= 50, "only {count} cases");
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn bad_cases_are_errors_with_a_line() {
    let error = case::parse("x.toml", "title = \"x\"\n[[host]]\nname = 3\n").unwrap_err();
    assert_eq!(error.line, 3);
    let table = "title = \"x\"\n[[host]]\nname = \"a\"\n[[matrix]]\ntable = \"\"\"\nfrom a\nb 1\n\"\"\"\n";
    let error = case::parse("x.toml", table).unwrap_err();
    assert!(error.problem.contains("`b` is no host") && error.line == 7, "{error}");
}
