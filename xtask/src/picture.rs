//! A picture of what a terminal shows: text on stdin, SVG on stdout.
//!
//! In: the output of a command, plain or with colours. Out: an SVG whose text can be searched and read aloud.
//! It changes nothing of the text; colours and bold are those of the terminal.

use std::fmt::Write as _;
use std::io::Read as _;

use anyhow::{Context as _, Result, ensure};

/// Lines and columns beyond which it is no picture of a terminal.
const LINES_MAX: usize = 120;
const COLUMNS_MAX: usize = 140;
/// Of a character and a line, in units of the picture.
pub(crate) const WIDTH: f64 = 7.8;
pub(crate) const HEIGHT: usize = 18;
pub(crate) const MARGIN: usize = 16;

/// Draws stdin, with the command that printed it above.
pub(crate) fn run(command: &str) -> Result<()> {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).context("cannot read stdin")?;
    print!("{}", svg(command, &text)?);
    Ok(())
}

fn svg(command: &str, text: &str) -> Result<String> {
    // Only what stands behind the last clearing of the screen is there to be seen.
    let shown = text.rsplit("\u{1b}[J").next().unwrap_or_default();
    let lines: Vec<Vec<Piece>> = shown.lines().map(pieces).collect();
    let columns = |line: &Vec<Piece>| line.iter().map(|p| p.text.chars().count()).sum::<usize>();
    let wide = lines.iter().map(columns).max().unwrap_or(0).max(command.chars().count() + 2);
    ensure!(lines.len() <= LINES_MAX, "{} lines, at most {LINES_MAX} make a picture", lines.len());
    ensure!(wide <= COLUMNS_MAX, "{wide} columns, at most {COLUMNS_MAX} make a picture");
    let (width, height) =
        (wide as f64 * WIDTH + 2.0 * MARGIN as f64, (lines.len() + 1) * HEIGHT + 2 * MARGIN);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height}\" width=\"{width:.0}\" height=\"{height}\" role=\"img\">\n\
         <rect width=\"100%\" height=\"100%\" rx=\"6\" fill=\"#14181d\"/>\n\
         <g font-family=\"ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace\" font-size=\"13\" fill=\"#d7dde4\">\n"
    );
    let y = |line: usize| MARGIN + HEIGHT * line + 12;
    let _ =
        writeln!(out, "<text x=\"{MARGIN}\" y=\"{}\" fill=\"#7fb4e6\">$ {}</text>", y(0), escaped(command));
    for (number, line) in lines.iter().enumerate() {
        let mut column = 0;
        for piece in line {
            let x = MARGIN as f64 + column as f64 * WIDTH;
            column += piece.text.chars().count();
            let Some(first) = piece.text.find(|c| c != ' ') else { continue };
            let x = x + first as f64 * WIDTH;
            let words = piece.text.trim();
            // Each character has its place, whatever font is there.
            let length = words.chars().count() as f64 * WIDTH;
            let _ = writeln!(
                out,
                "<text x=\"{x:.1}\" y=\"{}\" textLength=\"{length:.1}\" xml:space=\"preserve\"{}>{}</text>",
                y(number + 1),
                piece.style,
                escaped(words)
            );
        }
    }
    out.push_str("</g>\n</svg>\n");
    Ok(out)
}

/// Characters of one style.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Piece {
    /// As they stand.
    pub(crate) text: String,
    /// Attributes of their text.
    pub(crate) style: String,
    /// Colour behind them.
    pub(crate) back: Option<String>,
}

/// A colour of the 256 of a terminal: a cube of 6 x 6 x 6, then grey; the first 16 are the background here.
fn palette(number: u8) -> String {
    let level = |step: u8| if step == 0 { 0 } else { 55 + 40 * step };
    match number {
        0..=15 => "#14181d".to_owned(),
        16..=231 => {
            let n = number - 16;
            format!("#{:02x}{:02x}{:02x}", level(n / 36), level(n / 6 % 6), level(n % 6))
        }
        grey => format!("#{0:02x}{0:02x}{0:02x}", 8 + 10 * (grey - 232)),
    }
}

/// Background and foreground of a code such as `48;5;88;38;5;231`.
fn square(code: &str) -> Option<(String, String)> {
    let numbers: Vec<u8> = code.split(';').map_while(|n| n.parse().ok()).collect();
    let [48, 5, back, 38, 5, front] = numbers[..] else { return None };
    Some((palette(back), palette(front)))
}

/// A line by its styles; other commands to a terminal are left out.
pub(crate) fn pieces(line: &str) -> Vec<Piece> {
    let mut all = Vec::new();
    let (mut style, mut back) = (String::new(), None);
    let mut parts = line.split('\u{1b}');
    let mut add = |text: &str, style: &str, back: &Option<String>| {
        if !text.is_empty() {
            let text = text.chars().filter(|c| !c.is_control()).collect();
            all.push(Piece { text, style: style.to_owned(), back: back.clone() });
        }
    };
    add(parts.next().unwrap_or_default(), "", &None);
    for part in parts {
        let end = part.find(|c: char| c.is_ascii_alphabetic()).map_or(part.len(), |at| at + 1);
        let (code, text) = part.split_at(end);
        if code.ends_with('m') {
            let code = code.trim_start_matches('[').trim_end_matches('m');
            let colours = square(code);
            back = colours.as_ref().map(|(back, _)| back.clone());
            let known = match code {
                "1" => " font-weight=\"bold\"",
                "2" => " fill=\"#8a939d\"",
                "31" | "1;31" | "91" | "1;38;5;160" => " fill=\"#ff7b72\"",
                "32" | "92" | "1;38;5;28" => " fill=\"#7ee787\"",
                "33" | "93" => " fill=\"#e3b341\"",
                "36" | "96" | "1;36" => " fill=\"#7fb4e6\"",
                _ => "",
            };
            style = match colours {
                Some((_, front)) => format!(" fill=\"{front}\""),
                None => String::from(known),
            };
        }
        add(text, &style, &back);
    }
    all
}

pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_drawn_and_nothing_acts() {
        let text = "old\u{1b}[H\u{1b}[Jdevice   r/s\n  sda \u{1b}[31m<slow>\u{1b}[0m &\n";
        let svg = svg("linerate disk watch", text).unwrap();
        assert!(!svg.contains("old") && !svg.contains('\u{1b}'));
        assert!(svg.contains(">$ linerate disk watch</text>") && svg.contains(">device   r/s</text>"));
        assert!(
            svg.contains("fill=\"#ff7b72\">&lt;slow&gt;</text>") && svg.contains(">&amp;</text>"),
            "{svg}"
        );
        assert!(super::svg("x", &"line\n".repeat(LINES_MAX + 1)).is_err());
        assert!(super::svg("x", &"w".repeat(COLUMNS_MAX + 1)).is_err());
    }
}
