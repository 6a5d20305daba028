//! Classes of the heat map, and their colours on a terminal; those of a page have the same names in
//! `html/style.css`. Colour is never the only carrier: every square has its number too.
//!
//! The lightness is monotone from class to class, away from the background: the worst is what stands out
//! most, also to the colour-blind and in grey.

use std::io::IsTerminal;

/// How bad a square is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Heat {
    /// 88 % of what it should be, and more: what TCP loses to its ramp and to other traffic is not worth a
    /// colour.
    #[default]
    Fine,
    /// Down to half.
    Low,
    /// Below half.
    Bad,
    /// Below 5 %, or nothing.
    Dead,
}

impl Heat {
    /// All classes, the best first.
    pub const ALL: [Self; 4] = [Self::Fine, Self::Low, Self::Bad, Self::Dead];

    /// Class of an effect size, 0 (none) to 1 (dead).
    #[must_use]
    pub fn of(effect: f64) -> Self {
        match effect {
            e if e >= 0.95 => Self::Dead,
            e if e >= 0.5 => Self::Bad,
            e if e >= 0.12 => Self::Low,
            _ => Self::Fine,
        }
    }

    /// Its name, in a legend and in a style sheet.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Fine => "fine",
            Self::Low => "low",
            Self::Bad => "bad",
            Self::Dead => "dead",
        }
    }

    /// What it means of a share of the ceiling.
    #[must_use]
    pub fn of_ceiling(self) -> &'static str {
        match self {
            Self::Fine => "88 % and more",
            Self::Low => "50 to 88 %",
            Self::Bad => "5 to 50 %",
            Self::Dead => "below 5 %",
        }
    }

    /// What it means of lost datagrams: 1 % already breaks TCP, 5 % everything.
    #[must_use]
    pub fn of_loss(self) -> &'static str {
        match self {
            Self::Fine => "below 0.1 %",
            Self::Low => "0.1 to 1.3 %",
            Self::Bad => "1.3 to 4.5 %",
            Self::Dead => "4.5 % and more",
        }
    }

    /// A sign beside the number, for a page without colours.
    #[must_use]
    pub fn sign(self) -> &'static str {
        match self {
            Self::Fine => "",
            Self::Low => "\u{25bf}",
            Self::Bad => "\u{25bc}",
            Self::Dead => "\u{2716}",
        }
    }
}

/// Background of a terminal.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Background {
    /// Black, or close to it.
    #[default]
    Dark,
    /// White, or close to it.
    Light,
}

impl Background {
    /// Of the variable that terminals set: `15;0` is white on black.
    fn of(colorfgbg: &str) -> Self {
        match colorfgbg.rsplit(';').next() {
            Some("7" | "15") => Self::Light,
            _ => Self::Dark,
        }
    }
}

/// How text may look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// Colours and bold.
    pub colour: bool,
    /// Columns.
    pub width: usize,
    /// Behind the text.
    pub background: Background,
}

impl Default for Style {
    fn default() -> Self {
        Self::PLAIN
    }
}

impl Style {
    /// Without colour, 100 columns.
    pub const PLAIN: Self = Self { colour: false, width: 100, background: Background::Dark };

    /// Colour only when standard output is a terminal that can show it and nobody asked for none
    /// (<https://no-color.org>).
    pub fn detect() -> Self {
        let refused = std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|v| v == "dumb");
        let background = std::env::var("COLORFGBG").map_or(Background::Dark, |value| Background::of(&value));
        // A program that shows our output on its own terminal asks for colours (bixense.com/clicolors).
        let forced = std::env::var_os("CLICOLOR_FORCE").is_some_and(|v| !v.is_empty() && v != "0");
        let can = forced || std::io::stdout().is_terminal() && !dumb;
        Self { colour: can && !refused, background, width: columns() }
    }

    /// Text on the background of a heat class. What is fine has that of the terminal.
    pub fn square(self, text: &str, heat: Heat) -> String {
        match code(self.background, heat) {
            Some(code) => self.wrap(text, code),
            None => text.to_owned(),
        }
    }

    /// Headings.
    pub fn bold(self, text: &str) -> String {
        self.wrap(text, "1")
    }

    /// What matters less.
    pub fn dim(self, text: &str) -> String {
        self.wrap(text, "2")
    }

    /// Something is wrong.
    pub fn alarm(self, text: &str) -> String {
        self.wrap(text, "1;38;5;160")
    }

    /// All is well.
    pub fn fine(self, text: &str) -> String {
        self.wrap(text, "1;38;5;28")
    }

    /// A command to type.
    pub fn command(self, text: &str) -> String {
        self.wrap(text, "1;36")
    }

    /// The colour code of ours with which a text begins.
    pub fn code_at(text: &str) -> Option<&str> {
        let inner = text.strip_prefix("\x1b[")?;
        let (code, _) = inner.split_once('m')?;
        let is_square = || {
            let both = [Background::Dark, Background::Light].into_iter();
            both.flat_map(|back| Heat::ALL.map(|heat| self::code(back, heat))).any(|of| of == Some(code))
        };
        let ours = matches!(code, "0" | "1" | "2" | "1;38;5;160" | "1;38;5;28" | "1;36") || is_square();
        ours.then(|| &text[..code.len() + 3])
    }

    fn wrap(self, text: &str, code: &str) -> String {
        if self.colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

/// Columns of the terminal, within what people read and what a matrix needs; 100 elsewhere.
fn columns() -> usize {
    const NARROWEST: usize = 60;
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok();
    let columns = size.map(|size| usize::from(size.ws_col)).filter(|columns| *columns > 0);
    columns.map_or(Style::PLAIN.width, |columns| columns.clamp(NARROWEST, Style::PLAIN.width))
}

/// Background and foreground in the 256 colours of terminals: olive, orange, light red on a dark background;
/// amber, orange, dark red on a light one.
fn code(background: Background, heat: Heat) -> Option<&'static str> {
    Some(match (background, heat) {
        (_, Heat::Fine) => return None,
        (Background::Dark, Heat::Low) => "48;5;58;38;5;231",
        (Background::Dark, Heat::Bad) => "48;5;172;38;5;16",
        (Background::Dark, Heat::Dead) => "1;48;5;217;38;5;16",
        (Background::Light, Heat::Low) => "48;5;222;38;5;16",
        (Background::Light, Heat::Bad) => "48;5;208;38;5;16",
        (Background::Light, Heat::Dead) => "1;48;5;88;38;5;231",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_style_adds_nothing() {
        let plain = Style::default();
        assert_eq!(plain.square("97", Heat::Low) + &plain.bold("x") + &plain.alarm("y"), "97xy");
    }

    #[test]
    fn colours_are_closed_again() {
        let colour = Style { colour: true, ..Style::default() };
        let text = colour.square("0", Heat::Dead);
        assert!(text.starts_with("\x1b[1;48;5;217") && text.ends_with("\x1b[0m"));
        assert_eq!(colour.square("97", Heat::Fine), "97");
        assert_eq!(Style::code_at(&text), Some("\x1b[1;48;5;217;38;5;16m"));
    }

    /// Relative luminance of a colour of the 6 x 6 x 6 cube (WCAG 2).
    fn luminance(colour: u8) -> f64 {
        let level = |n: u8| if n == 0 { 0.0 } else { f64::from(55 + 40 * u16::from(n)) / 255.0 };
        let linear = |c: f64| if c <= 0.04045 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) };
        let n = colour - 16;
        let [r, g, b] = [n / 36, n / 6 % 6, n % 6].map(|n| linear(level(n)));
        0.2126 * r + 0.7152 * g + 0.0722 * b
    }

    #[test]
    fn lightness_is_monotone_and_text_is_legible() {
        for (background, start) in [(Background::Dark, 0.0), (Background::Light, 1.0)] {
            let mut before: f64 = start;
            for heat in Heat::ALL {
                let Some(code) = code(background, heat) else { continue };
                let numbers: Vec<u8> = code.split(';').filter_map(|n| n.parse().ok()).collect();
                let at = numbers.len() - 6;
                let (back, front) = (luminance(numbers[at + 2]), luminance(numbers[at + 5]));
                let contrast = (back.max(front) + 0.05) / (back.min(front) + 0.05);
                assert!(contrast >= 4.5, "{background:?} {heat:?}: text has a contrast of {contrast}");
                let further = if start < 0.5 { back - before } else { before - back };
                assert!(further > 0.05, "{background:?} {heat:?}: lightness {back} after {before}");
                before = back;
            }
        }
    }

    #[test]
    fn the_background_is_what_the_terminal_reports() {
        assert_eq!(["15;0", "0;15", "0;default;15", "x"].map(Background::of), {
            use Background::{Dark, Light};
            [Dark, Light, Light, Dark]
        });
    }
}
