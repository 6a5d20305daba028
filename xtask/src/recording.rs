//! A recording of the demo as an animated SVG: what it printed, line by line, with its long pauses shortened.
//!
//! In: the built programs; the demo runs once. Out: `docs/demo.svg`, a terminal that scrolls. The animation
//! is CSS alone. A viewer without it, or a reader who wants no motion, sees the end of the recording.

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};

use crate::picture::{HEIGHT, MARGIN, Piece, WIDTH, escaped, pieces};
use crate::shell::{sh, target_debug, workspace};

const FILE: &str = "docs/demo.svg";
/// A recording is a part of the first page that a reader loads.
const BYTES_MAX: usize = 150_000;
const LINES_MAX: usize = 70;
const COLUMNS: usize = 100;
/// Lines of the terminal.
const ROWS: usize = 23;
/// A longer pause is shortened to this time, which is enough to read the screen before it.
const PAUSE_S: f64 = 4.0;
/// Between two lines of one screen.
const LINE_S: f64 = 0.08;
/// The end stands for so long before the recording starts again.
const END_S: f64 = 9.0;

/// Runs the demo and writes its recording.
pub(crate) fn run() -> Result<()> {
    sh("cargo", &["build", "--locked", "-p", "linerate", "-p", "linerate-node", "-p", "linerate-lab"])?;
    let begun = Instant::now();
    let report = std::env::temp_dir().join("linerate-recording.html");
    let mut demo = Command::new(target_debug().join("linerate"))
        .args(["demo", "--report"])
        .arg(&report)
        .env("CLICOLOR_FORCE", "1")
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot start the demo")?;
    let mut lines = Vec::new();
    for line in BufReader::new(demo.stdout.take().context("the demo has no output")?).lines() {
        let line = line?;
        println!("{line}");
        lines.push((begun.elapsed().as_secs_f64(), line));
    }
    let status = demo.wait()?;
    ensure!(status.success(), "the demo ended with {status}: nothing is recorded");
    let path = report.display().to_string();
    let short = |line: String| without_folder(&line.replace(&path, "linerate-demo.html"));
    let lines: Vec<(f64, String)> = lines.into_iter().map(|(at_s, line)| (at_s, short(line))).collect();
    let svg = svg(&lines)?;
    std::fs::write(workspace().join(FILE), &svg).with_context(|| format!("cannot write {FILE}"))?;
    println!("{FILE}: {} lines, {} bytes", lines.len(), svg.len());
    Ok(())
}

/// A line without the folder of the lab, whose name is another one in each run and longer than all else.
fn without_folder(line: &str) -> String {
    let mut parts = line.split("/tmp/linerate-lab-");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        text += part.trim_start_matches(|c: char| c.is_ascii_digit()).trim_start_matches('/');
    }
    text
}

/// When each line appears in the recording, seconds.
fn times(lines: &[(f64, String)]) -> Vec<f64> {
    let mut at_s = 0.4;
    let mut before_s = lines.first().map_or(0.0, |line| line.0);
    let mut all = Vec::new();
    for (real_s, _) in lines {
        at_s += (real_s - before_s).clamp(LINE_S, PAUSE_S);
        before_s = *real_s;
        all.push(at_s);
    }
    all
}

/// Lines of at most the columns of the terminal.
fn folded(lines: &[(f64, String)]) -> Vec<(f64, Vec<Piece>)> {
    let mut all = Vec::new();
    for (at_s, line) in lines {
        let mut row = Vec::new();
        let mut column = 0;
        for piece in pieces(line) {
            let mut rest: Vec<char> = piece.text.chars().collect();
            while column + rest.len() > COLUMNS {
                let tail = rest.split_off(COLUMNS - column);
                row.push(Piece { text: rest.into_iter().collect(), ..piece.clone() });
                all.push((*at_s, std::mem::take(&mut row)));
                (rest, column) = (tail, 0);
            }
            column += rest.len();
            row.push(Piece { text: rest.into_iter().collect(), ..piece });
        }
        all.push((*at_s, row));
    }
    all
}

fn svg(lines: &[(f64, String)]) -> Result<String> {
    ensure!(lines.len() <= LINES_MAX, "{} lines, at most {LINES_MAX} make a recording", lines.len());
    let timed: Vec<(f64, String)> =
        times(lines).into_iter().zip(lines).map(|(at_s, (_, line))| (at_s, line.clone())).collect();
    let rows = folded(&timed);
    let all_s = timed.last().map_or(0.0, |line| line.0) + END_S;
    let (width, height) = (COLUMNS as f64 * WIDTH + 2.0 * MARGIN as f64, ROWS * HEIGHT + 2 * MARGIN);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height}\" width=\"{width:.0}\" height=\"{height}\" role=\"img\">\n\
         <title>linerate demo: a fault is found, fixed, proven; pauses are shortened</title>\n{}\
         <rect width=\"100%\" height=\"100%\" rx=\"6\" fill=\"#14181d\"/>\n\
         <svg x=\"0\" y=\"{MARGIN}\" width=\"{width:.0}\" height=\"{}\">\n\
         <g class=\"s\" transform=\"translate(0 -{})\" font-family=\"ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace\" font-size=\"13\" fill=\"#d7dde4\">\n",
        style(&rows, all_s),
        ROWS * HEIGHT,
        rows.len().saturating_sub(ROWS) * HEIGHT
    );
    for (number, (_, row)) in rows.iter().enumerate() {
        let _ = write!(out, "<g class=\"l{number}\">");
        // The commands of the screens stand out.
        let is_command = row.first().is_some_and(|piece| piece.text.starts_with('['));
        draw(&mut out, number, row, if is_command { " fill=\"#7fb4e6\"" } else { "" });
        out.push_str("</g>\n");
    }
    out.push_str("</g>\n</svg>\n</svg>\n");
    ensure!(out.len() <= BYTES_MAX, "{} bytes, at most {BYTES_MAX} make a recording", out.len());
    Ok(out)
}

/// Each line appears at its time, and the terminal scrolls when it is full.
fn style(rows: &[(f64, Vec<Piece>)], all_s: f64) -> String {
    let percent = |at_s: f64| at_s / all_s * 100.0;
    let mut css = format!(
        "<style>@media (prefers-reduced-motion:no-preference){{g g,.s{{animation:{all_s:.1}s infinite step-end}}"
    );
    let mut scroll = "@keyframes s{0%{transform:translateY(0)}".to_owned();
    let mut frames = String::new();
    for (number, (at_s, _)) in rows.iter().enumerate() {
        let at = percent(*at_s);
        let _ = write!(css, ".l{number}{{animation-name:l{number}}}");
        let _ = write!(frames, "@keyframes l{number}{{0%{{opacity:0}}{at:.2}%{{opacity:1}}}}");
        if number >= ROWS {
            let _ = write!(scroll, "{at:.2}%{{transform:translateY(-{}px)}}", (number + 1 - ROWS) * HEIGHT);
        }
    }
    let _ = writeln!(css, ".s{{animation-name:s}}}}{scroll}}}{frames}</style>");
    css
}

fn draw(out: &mut String, number: usize, row: &[Piece], style: &str) {
    let y = HEIGHT * number + 13;
    let mut column = 0;
    for piece in row {
        let length = piece.text.chars().count();
        let start = column;
        column += length;
        if let Some(back) = &piece.back {
            let (x, top) = (MARGIN as f64 + start as f64 * WIDTH, HEIGHT * number);
            let wide = length as f64 * WIDTH;
            let _ = write!(
                out,
                "<rect x=\"{x:.1}\" y=\"{top}\" width=\"{wide:.1}\" height=\"{HEIGHT}\" fill=\"{back}\"/>"
            );
        }
        let words = piece.text.trim();
        if words.is_empty() {
            continue;
        }
        let before = piece.text.chars().take_while(|c| *c == ' ').count();
        let x = MARGIN as f64 + (start + before) as f64 * WIDTH;
        let long = words.chars().count() as f64 * WIDTH;
        let _ = write!(
            out,
            "<text x=\"{x:.1}\" y=\"{y}\" textLength=\"{long:.1}\" xml:space=\"preserve\"{}>{}</text>",
            if piece.style.is_empty() { style } else { &piece.style },
            escaped(words)
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(at_s: f64, text: &str) -> (f64, String) {
        (at_s, text.to_owned())
    }

    #[test]
    fn pauses_are_shortened_and_lines_of_one_moment_follow_each_other() {
        let shown = times(&[line(0.0, "a"), line(0.0, "b"), line(30.0, "c"), line(31.0, "d")]);
        let steps: Vec<f64> =
            shown.windows(2).map(|two| ((two[1] - two[0]) * 100.0).round() / 100.0).collect();
        assert_eq!(steps, [LINE_S, PAUSE_S, 1.0]);
    }

    #[test]
    fn a_viewer_without_animation_sees_the_end() {
        let lines: Vec<_> = (0..40)
            .map(|n| line(f64::from(n), &format!("\u{1b}[48;5;88;38;5;231mrow {n}\u{1b}[0m")))
            .collect();
        let svg = svg(&lines).unwrap();
        assert!(svg.contains(&format!("translate(0 -{})", (40 - ROWS) * HEIGHT)), "{svg}");
        assert!(svg.contains("prefers-reduced-motion") && svg.contains(">row 39</text>"));
        assert!(svg.contains("fill=\"#870000\"") && !svg.contains('\u{1b}'));
        assert!(super::svg(&vec![line(0.0, "x"); LINES_MAX + 1]).is_err());
    }

    #[test]
    fn long_lines_are_folded_and_lose_nothing() {
        let rows = folded(&[line(1.0, &"abcde".repeat(50))]);
        assert_eq!(rows.len(), 3);
        let text: String = rows.iter().flat_map(|(_, row)| row).map(|piece| piece.text.as_str()).collect();
        assert_eq!(text, "abcde".repeat(50));
        assert_eq!(without_folder("-i /tmp/linerate-lab-77/inventory.toml -q"), "-i inventory.toml -q");
    }
}
