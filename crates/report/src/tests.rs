//! Tests of all report formats on made-up evidence. Text and Markdown are compared with the files in
//! `golden/`; with LINERATE_BLESS=1 in the environment they are written instead.

use std::path::PathBuf;

use linerate_model::fact::FactValue;
use linerate_model::finding::{Clue, FactHit, Suspect};
use linerate_model::trial::TrialStatus;

use super::heat::Style;
use super::material::Material;
use super::{FORMATS, html, json, sample, text};

/// Where the golden files lie.
fn golden(name: &str) -> PathBuf {
    // Beside this file, wherever the tests run: paths of `file!` are relative to the workspace or absolute.
    let here = PathBuf::from(file!());
    let base = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = here.parent().expect("a file has a folder").join("golden");
    [folder.clone(), base.join("../..").join(&folder), base.join(&folder)]
        .into_iter()
        .find(|f| f.is_dir())
        .unwrap_or(folder)
        .join(name)
}

fn check(name: &str, text: &str) {
    let path = golden(name);
    if std::env::var_os("LINERATE_BLESS").is_some() {
        std::fs::write(&path, text).expect("golden folder is writable");
        return;
    }
    let want = std::fs::read_to_string(&path)
        .unwrap_or_else(|e| panic!("{}: {e}; make it with LINERATE_BLESS=1", path.display()));
    assert!(want == text, "{name} differs; if the new one is right, LINERATE_BLESS=1\n--- now ---\n{text}");
}

#[test]
fn text_is_as_recorded() {
    let (snapshot, diagnosis) = sample::sick();
    check("sick.txt", &text::page(&snapshot, &diagnosis, Style::default()));
    let (snapshot, diagnosis) = sample::healthy();
    check("healthy.txt", &text::page(&snapshot, &diagnosis, Style::default()));
    let (snapshot, diagnosis) = sample::big(40);
    check("big.txt", &text::page(&snapshot, &diagnosis, Style::default()));
    let (snapshot, diagnosis) = sample::big(12);
    check("twelve.txt", &text::page(&snapshot, &diagnosis, Style::default()));
    check("trial.txt", &text::trial(&sample::trial(), Style::default()));
    check("trial-brief.txt", &text::trial_brief(&sample::trial(), Style::default()));
}

#[test]
fn the_verdict_is_last_on_the_screen_and_short() {
    let (snapshot, diagnosis) = sample::sick();
    let screen = text::screen(&snapshot, &diagnosis, "`-v` lists them", Style::default());
    check("sick-screen.txt", &screen);
    let (snapshot, diagnosis) = sample::healthy();
    check("healthy-screen.txt", &text::screen(&snapshot, &diagnosis, "`-v` lists them", Style::default()));
    let colour = Style { colour: true, ..Style::default() };
    let (snapshot, diagnosis) = sample::sick();
    assert!(text::screen(&snapshot, &diagnosis, "", colour).contains("\x1b[1;36mlinerate try"));
}

#[test]
fn a_cause_that_was_named_is_not_named_again() {
    let (snapshot, mut diagnosis) = sample::sick();
    diagnosis.findings.push(diagnosis.findings[0].clone());
    diagnosis.findings.extend(vec![diagnosis.findings[0].clone(); 9]);
    let screen = text::screen(&snapshot, &diagnosis, "`-v` lists them", Style::default());
    assert_eq!(screen.matches("   Cause  as in 1\n").count(), super::verdict::FINDINGS_MAX - 1, "{screen}");
    assert!(screen.contains("\nand 6 more findings: `-v` lists them\n"), "{screen}");
}

#[test]
fn a_screen_counts_what_it_does_not_list() {
    let (snapshot, mut diagnosis) = sample::sick();
    diagnosis.refused = (1..=8).map(|n| format!("test {n} waited for a CPU")).collect();
    let text = text::page(&snapshot, &diagnosis, Style::default());
    assert!(text.contains("test 5 waited") && !text.contains("test 6 waited"), "{text}");
    assert!(text.contains("and 3 more; the JSON report has all"), "{text}");
    let html = html::page(&snapshot, &diagnosis, &[], None);
    assert!(html.contains("test 8 waited"));
}

#[test]
fn markdown_is_as_recorded() {
    let (snapshot, diagnosis) = sample::sick();
    let trials = [sample::trial()];
    let material =
        Material { snapshot: &snapshot, diagnosis: &diagnosis, trials: &trials, reveal: Some("gro on vs-4") };
    check("sick.md", &super::format("md").expect("in the list").render(&material));
}

#[test]
fn text_fits_the_terminal_and_is_plain_without_colour() {
    for (snapshot, diagnosis) in
        [sample::sick(), sample::healthy(), sample::big(12), sample::big(13), sample::big(100)]
    {
        let page = text::page(&snapshot, &diagnosis, Style::default());
        assert!(!page.contains('\x1b'));
        for line in page.lines() {
            assert!(line.chars().count() <= 100, "{} columns: {line}", line.chars().count());
        }
    }
}

#[test]
fn colour_adds_codes_and_nothing_else() {
    let (snapshot, diagnosis) = sample::sick();
    let plain = text::page(&snapshot, &diagnosis, Style::default());
    let colour = text::page(&snapshot, &diagnosis, Style { colour: true, ..Style::default() });
    assert!(colour.contains("\x1b[1;48;5;217"));
    let mut stripped = String::new();
    let mut rest = colour.as_str();
    while let Some(at) = rest.find('\x1b') {
        stripped += &rest[..at];
        rest = rest[at..].split_once('m').map_or("", |(_, r)| r);
    }
    assert_eq!(stripped + rest, plain);
}

#[test]
fn the_page_loads_nothing() {
    let (snapshot, diagnosis) = sample::sick();
    let page = html::page(&snapshot, &diagnosis, &[sample::trial()], Some("gro on vs-4"));
    // A link within the page loads nothing.
    let lower = page.to_lowercase().replace("href=\"#", "");
    for bad in
        ["http://", "https://", "src=", "href=", "@import", "url(", "<script", "<link", "<img", "<iframe"]
    {
        assert!(!lower.contains(bad), "{bad} in the page");
    }
    assert!(page.contains("prefers-color-scheme:dark") && page.contains("@media print"));
    assert!(page.contains("gro on vs-4"));
}

#[test]
fn a_page_names_the_next_command_and_what_is_cured() {
    let (snapshot, diagnosis) = sample::sick();
    let page = |trials: &[linerate_model::trial::Trial]| html::page(&snapshot, &diagnosis, trials, None);
    let first = |page: &str| page.split("class=\"more\"").next().unwrap_or_default().to_owned();
    let before = first(&page(&[]));
    assert!(before.contains("<pre class=\"cmd\">linerate try ") && !before.contains("Proof"), "{before}");
    let mut trial = sample::trial();
    let proven = first(&page(std::slice::from_ref(&trial)));
    assert!(proven.contains(&format!("<pre class=\"cmd\">linerate keep {}", trial.id)), "{proven}");
    assert!(proven.contains("fix proven") && !proven.contains("linerate try"), "{proven}");
    trial.status = TrialStatus::Kept;
    let cured = first(&page(std::slice::from_ref(&trial)));
    assert!(
        cured.contains(&format!("cured by trial {}", trial.id)) && cured.contains("verdict good"),
        "{cured}"
    );
    assert!(cured.contains(&format!("<pre class=\"cmd\">linerate undo {}", trial.id)), "{cured}");
    // A kept change without an effect, and the fix of another cause, cure nothing.
    trial.remedy.id = "another".to_owned();
    assert!(!first(&page(std::slice::from_ref(&trial))).contains("cured by"));
    let mut trial = sample::trial();
    trial.status = TrialStatus::Kept;
    if let Some(effect) = &mut trial.effect {
        effect.effect = linerate_model::trial::Effect::NoEffect;
    }
    assert!(!first(&page(&[trial])).contains("cured by"));
}

#[test]
fn a_page_without_a_finding_names_what_was_not_seen() {
    let (snapshot, mut diagnosis) = sample::healthy();
    diagnosis.blind.clear();
    diagnosis.summary.unmeasured.clear();
    let page = |diagnosis: &linerate_model::finding::Diagnosis| html::page(&snapshot, diagnosis, &[], None);
    assert!(page(&diagnosis).contains("<b class=\"state\">no finding</b>"));
    diagnosis.summary.unmeasured.push((linerate_model::inventory::Layer::Overlay, 22, 30));
    let page = page(&diagnosis);
    assert!(page.contains("no finding, not all seen") && page.contains("22 of 30 pairs (overlay)"));
}

#[test]
fn the_suspect_is_in_a_bracket_and_groups_stand_together() {
    let (snapshot, diagnosis) = sample::sick();
    let page = html::page(&snapshot, &diagnosis, &[], None);
    let first = page.split("class=\"more\"").next().unwrap_or_default();
    let heads: Vec<&str> =
        first.split("scope=\"col\"").skip(1).filter_map(|rest| rest.split('"').nth(1)).collect();
    assert_eq!(heads, ["arc-1", "arc-2", "arc-4", "arc-3", "arc-5", "arc-6"]);
    // What vs-4 receives: three rows of three columns, closed on all four sides.
    for (edge, squares) in [(" bt", 3), (" bb", 3), (" bl", 3), (" br", 3)] {
        let has = |class: &&str| {
            class.split('"').next().is_some_and(|class| format!("{class} ").contains(&format!("{edge} ")))
        };
        assert_eq!(first.split("<td class=\"").filter(has).count(), squares, "{edge}");
    }
    assert_eq!(first.matches("class=\"legend\"").count(), 1);
}

#[test]
fn names_from_hosts_cannot_break_out() {
    let evil = r#""><script>alert('x')</script>|*_[a](b)"#;
    let (mut snapshot, mut diagnosis) = sample::sick();
    for host in &mut snapshot.inventory.hosts {
        if host.name == "arc-1" {
            evil.clone_into(&mut host.name);
        }
    }
    evil.clone_into(&mut snapshot.inventory.name);
    for cell in &mut diagnosis.cells {
        for name in [&mut cell.from, &mut cell.to] {
            if name == "arc-1" {
                evil.clone_into(name);
            }
        }
    }
    diagnosis.headline = evil.to_owned();
    let finding = &mut diagnosis.findings[0];
    finding.places[0].suspect = Suspect::Host(evil.to_owned());
    finding.causes[0].evidence.push(evil.to_owned());
    finding.affected.push((evil.to_owned(), evil.to_owned()));
    let mut trial = sample::trial();
    trial.pair.0 = evil.to_owned();
    trial.notes.push(evil.to_owned());
    let trials = [trial];
    let material =
        Material { snapshot: &snapshot, diagnosis: &diagnosis, trials: &trials, reveal: Some(evil) };
    for format in FORMATS.iter().filter(|f| ["html", "md"].contains(&f.name())) {
        let page = format.render(&material);
        assert!(!page.contains("<script"), "{} lets a name through", format.name());
        if format.name() == "html" {
            assert!(!page.contains(r#"title=""><"#) && page.contains("&lt;script&gt;"));
        }
    }
}

#[test]
fn terminal_codes_from_hosts_are_not_passed_on() {
    let (mut snapshot, mut diagnosis) = sample::sick();
    diagnosis.findings[0].causes[0].evidence.push("driver \x1b]0;evil\x07 \x1b[31mred".to_owned());
    "arc\x1b[2J".clone_into(&mut snapshot.inventory.groups[0].name);
    let evil = FactHit {
        host: "vs-4".to_owned(),
        key: "nic.up0.driver".to_owned(),
        value: FactValue::Text("\x1b[31m".to_owned()),
        peers: None,
    };
    diagnosis.findings[0].causes[0].supports = vec![Clue::Read(evil)];
    let page = text::page(&snapshot, &diagnosis, Style::default())
        + &text::screen(&snapshot, &diagnosis, "all", Style::default());
    assert!(!page.contains('\x1b') && !page.contains('\x07'));
}

#[test]
fn json_is_read_back_equal() {
    let (snapshot, diagnosis) = sample::sick();
    let page = json::page(&snapshot, &diagnosis, Some("run.json"));
    let value: serde_json::Value = serde_json::from_str(&page).expect("valid");
    assert_eq!(value["schema"], 1);
    assert_eq!(value["run"], diagnosis.run.as_str());
    assert_eq!(value["snapshot_path"], "run.json");
    let back: linerate_model::finding::Diagnosis =
        serde_json::from_value(value["diagnosis"].clone()).expect("shape");
    assert_eq!(back, diagnosis);
}

#[test]
fn every_format_renders_an_empty_run_and_names_are_unique() {
    let material = Material {
        snapshot: &linerate_model::snapshot::Snapshot::default(),
        diagnosis: &linerate_model::finding::Diagnosis::default(),
        trials: &[],
        reveal: None,
    };
    let mut names: Vec<&str> = FORMATS.iter().map(|f| f.name()).collect();
    for format in FORMATS {
        let _ = format.render(&material);
    }
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), FORMATS.len());
}

/// Writes the pages for a person to look at, where LINERATE_PAGES names a folder.
#[test]
fn pages_to_look_at() {
    let Some(folder) = std::env::var_os("LINERATE_PAGES").map(PathBuf::from) else { return };
    let (snapshot, diagnosis) = sample::sick();
    let sick = html::page(&snapshot, &diagnosis, &[sample::trial()], Some("gro-overlay on vs-4"));
    std::fs::write(folder.join("sick.html"), sick).expect("folder is writable");
    let (snapshot, diagnosis) = sample::healthy();
    std::fs::write(folder.join("healthy.html"), html::page(&snapshot, &diagnosis, &[], None))
        .expect("writable");
    let (snapshot, diagnosis) = sample::big(40);
    std::fs::write(folder.join("big.html"), html::page(&snapshot, &diagnosis, &[], None)).expect("writable");
}

#[test]
fn a_long_instruction_is_broken_into_lines_and_its_remark_stays_one_for_a_shell() {
    let told = |line: &str| super::text::instruction(line, 40);
    assert_eq!(told("sysctl -w a=1   # on n1"), ["sysctl -w a=1   # on n1"]);
    assert_eq!(
        told("sysctl -w net.core.netdev_budget=600   # on n1; the kernel's own value is 300 at 1000 Hz"),
        ["sysctl -w net.core.netdev_budget=600", "# on n1; the kernel's own value is 300", "# at 1000 Hz"]
    );
    assert_eq!(
        told("on n1: look at the load of the machine, and move it"),
        ["on n1: look at the load of the", "  machine, and move it"]
    );
}
