//! Small crates in a temporary folder: what is a circle, what is none, what breaks a layer.

use std::fs;
use std::path::Path;

use tempfile::TempDir;

use super::Found;

const RULE: (&str, &str, &str) = ("operator", "observe", "trial");

/// A crate called `operator` of these files, and what was found in it.
fn found(files: &[(&str, &str)]) -> (TempDir, Found) {
    let folder = tempfile::tempdir().unwrap();
    let package = folder.path().join("operator");
    for (name, text) in files {
        let path = package.join("src").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let found = Found::read(&package).unwrap();
    (folder, found)
}

/// The files of each circle, by their names below `src`.
fn circles(files: &[(&str, &str)]) -> Vec<Vec<String>> {
    let (folder, found) = found(files);
    let below = folder.path().join("operator/src");
    let name = |file: &usize| name_below(&found, *file, &below);
    found.components.iter().map(|c| c.iter().map(name).collect()).collect()
}

fn name_below(found: &Found, file: usize, below: &Path) -> String {
    found.tree.sources[file].path.strip_prefix(below).unwrap().display().to_string()
}

fn layers(files: &[(&str, &str)]) -> Vec<String> {
    let (folder, found) = found(files);
    let root = format!("{}/", folder.path().join("operator/src").display());
    found.layer_lines().iter().map(|l| l.trim().replace(&root, "")).collect()
}

#[test]
fn handing_on_makes_no_circle() {
    let none = circles(&[
        ("lib.rs", "pub mod fleet; pub use fleet::Link;"),
        ("fleet/mod.rs", "mod link; mod pipe; pub use link::*; pub(crate) use pipe::Pipe;"),
        ("fleet/link.rs", "use super::Pipe; pub struct Link(Pipe);"),
        ("fleet/pipe.rs", "pub struct Pipe;"),
    ]);
    assert!(none.is_empty(), "{none:?}");
}

#[test]
fn a_list_beside_its_trait_is_a_circle() {
    let found = circles(&[
        ("lib.rs", "mod readers;"),
        (
            "readers/mod.rs",
            "mod a; mod b; trait Reader {} static READERS: [&dyn Reader; 2] = [&a::A, &b::B];",
        ),
        ("readers/a.rs", "use super::Reader; pub struct A; impl Reader for A {}"),
        ("readers/b.rs", "pub struct B; impl super::Reader for B {}"),
    ]);
    assert_eq!(found, [["readers/mod.rs", "readers/a.rs", "readers/b.rs"]]);
}

#[test]
fn a_trait_in_a_file_of_its_own_is_none() {
    let none = circles(&[
        ("lib.rs", "mod readers;"),
        (
            "readers/mod.rs",
            "mod a; mod reader; use reader::Reader; static READERS: [&dyn Reader; 1] = [&a::A];",
        ),
        ("readers/a.rs", "use super::Reader; pub struct A; impl Reader for A {}"),
        ("readers/reader.rs", "pub trait Reader {}"),
    ]);
    assert!(none.is_empty(), "{none:?}");
}

#[test]
fn what_is_for_tests_only_counts_for_nothing() {
    let none = circles(&[
        ("lib.rs", "mod a; mod b; #[cfg(all(test, unix))] mod no_such_file;"),
        ("a.rs", "pub fn a() { crate::b::b() }"),
        (
            "b.rs",
            "pub fn b() {}
             #[cfg(test)] use crate::a::a;
             #[cfg(test)] mod tests { #[test] fn calls() { crate::a::a() } }
             #[cfg(test)] #[path = \"b_tests.rs\"] mod more;
             #[test] fn again() { crate::a::a() }",
        ),
        ("b_tests.rs", "use crate::a::a;"),
    ]);
    assert!(none.is_empty(), "{none:?}");
}

#[test]
fn code_that_all_builds_have_is_no_test() {
    let found = circles(&[
        ("lib.rs", "mod a; mod b;"),
        ("a.rs", "pub fn a() { crate::b::b() }"),
        ("b.rs", "#[cfg(not(test))] pub fn b() { crate::a::a() }"),
    ]);
    assert_eq!(found, [["a.rs", "b.rs"]]);
}

#[test]
fn paths_inside_of_macros_functions_and_attributes_are_seen() {
    for user in [
        "fn f() { println!(\"{}\", crate::a::a()) }",
        "fn f() { use crate::a as other; vec![other::a()]; }",
        "use super::*; fn f() { assert!(a::a() == 1) }",
        "mod inner { pub fn f() { super::super::a::a() } }",
        "#[derive(Deserialize)] struct S { #[serde(default = \"crate::a::a\")] s: u8 }",
    ] {
        let text = format!("pub fn b() {{}} {user}");
        let found = circles(&[
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", "pub fn a() -> u8 { crate::b::b(); 1 }"),
            ("b.rs", &text),
        ]);
        assert_eq!(found, [["a.rs", "b.rs"]], "{user}");
    }
}

#[test]
fn a_variable_is_not_the_function_of_its_name() {
    let none = circles(&[
        ("lib.rs", "mod a; mod b;"),
        ("a.rs", "pub use crate::b::B; pub fn plan(_: B) {}"),
        ("b.rs", "use crate::a::*; pub struct B; fn f(plan: u8) -> u8 { println!(\"{}\", plan); plan }"),
    ]);
    assert!(none.is_empty(), "{none:?}");
}

#[test]
fn a_way_round_names_each_line_and_item() {
    let (folder, found) = found(&[
        ("lib.rs", "mod a; mod b;"),
        ("a.rs", "\nuse crate::b::B;\npub struct A(B);"),
        ("b.rs", "\n\npub struct B(Option<Box<crate::a::A>>);"),
    ]);
    let src = folder.path().join("operator/src").display().to_string();
    let lines = found.circles(false);
    assert_eq!(lines[4].trim(), format!("{src}/a.rs:2 -> {src}/b.rs (B)"));
    assert_eq!(lines[5].trim(), format!("{src}/b.rs:3 -> {src}/a.rs (A)"));
}

#[test]
fn a_layer_is_broken_by_what_an_item_is_not_by_where_it_was_found() {
    let found = layers(&[
        ("lib.rs", "mod observe; mod trial; pub use trial::Units;"),
        ("observe/mod.rs", "mod machine;\nuse crate::trial::card;\npub(crate) use crate::trial::Page;"),
        ("observe/machine.rs", "\nuse crate::Units;\nfn f(_: Units) { super::card::draw() }"),
        ("trial/mod.rs", "pub mod card; pub struct Units; pub struct Page;"),
        ("trial/card.rs", "pub fn draw() {}"),
    ]);
    assert_eq!(
        found,
        [
            "observe never uses trial: observe/mod.rs:3 takes crate::trial::Page",
            "observe never uses trial: observe/machine.rs:2 takes crate::trial::Units",
            "observe never uses trial: observe/machine.rs:3 takes crate::trial::card::draw",
        ]
    );
}

#[test]
fn a_rule_about_a_module_that_is_gone_is_said() {
    let (_folder, found) = found(&[("lib.rs", "mod observe;"), ("observe.rs", "")]);
    let said = found.stale(&[RULE]);
    assert_eq!(said.len(), 1);
    assert!(said[0].contains("names trial"), "{said:?}");
}

#[test]
fn a_circle_is_refused() {
    let (_folder, fine) =
        found(&[("lib.rs", "mod a; mod b;"), ("a.rs", "pub struct A;"), ("b.rs", "use crate::a::A;")]);
    assert_eq!(fine.breaches(&[]), Vec::<String>::new());
    let (_folder, round) = found(&[
        ("lib.rs", "mod a; mod b;"),
        ("a.rs", "use crate::b::B; pub struct A;"),
        ("b.rs", "use crate::a::A; pub struct B;"),
    ]);
    let refused = round.breaches(&[]).join("\n");
    assert!(
        refused.contains("in a circle") && refused.contains("a.rs") && refused.contains("b.rs"),
        "{refused}"
    );
}
