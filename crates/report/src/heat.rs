//! Colours of the heat map, for a terminal and for a page. A heat class (0 to 5) in, colour codes out. Colour
//! is never the only carrier: every square has its number too.

use std::io::IsTerminal;

/// How text may look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// Colours and bold.
    pub colour: bool,
    /// Columns.
    pub width: usize,
}

impl Default for Style {
    fn default() -> Self {
        Self { colour: false, width: 100 }
    }
}

impl Style {
    /// Colour only when standard output is a terminal that can show it and nobody asked for none
    /// (<https://no-color.org>).
    pub fn detect() -> Self {
        let refused = std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|v| v == "dumb");
        Self { colour: std::io::stdout().is_terminal() && !refused && !dumb, ..Self::default() }
    }

    /// Text on the background of a heat class.
    pub fn square(self, text: &str, heat: u8) -> String {
        let (back, front) = TERMINAL[usize::from(heat.min(5))];
        self.wrap(text, &format!("48;5;{back};38;5;{front}"))
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
        let square =
            |code: &str| TERMINAL.iter().any(|(back, front)| code == format!("48;5;{back};38;5;{front}"));
        let ours = matches!(code, "0" | "1" | "2" | "1;38;5;160" | "1;38;5;28" | "1;36")
            || (code.len() < 32 && square(code));
        ours.then(|| &text[..code.len() + 3])
    }

    fn wrap(self, text: &str, code: &str) -> String {
        if self.colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

/// Background and foreground of the 256-colour palette: pale green, yellow, amber, orange, red, dark red. The
/// lightness falls from class to class, so that the order also shows to the colour-blind and in grey.
const TERMINAL: [(u8, u8); 6] = [(151, 16), (229, 16), (222, 16), (215, 16), (167, 231), (88, 231)];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_style_adds_nothing() {
        let plain = Style::default();
        assert_eq!(plain.square("97", 0) + &plain.bold("x") + &plain.alarm("y"), "97xy");
    }

    #[test]
    fn colours_are_closed_again() {
        let colour = Style { colour: true, width: 100 };
        let text = colour.square("0", 5);
        assert!(text.starts_with("\x1b[48;5;88") && text.ends_with("\x1b[0m"));
    }
}
