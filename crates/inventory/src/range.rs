//! Names with ranges, such as `n[001-128,200]-ib` (Slurm, pdsh, ClusterShell) and `web[01:50]` (Ansible), to
//! lists of names.
//!
//! What comes in: one expression and a limit. What goes out: names in the order of the expression, or a flaw.
//! The number of names is known before the first is made, so that a range of a billion hosts costs nothing.

use super::error::{Flaw, shown};

/// Two notations of ranges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    /// `[1-4,7]`, `[0-8/2]`.
    Dash,
    /// `[1:4]`, `[0:8:2]`, `[a:f]`.
    Colon,
}

/// Digits of a number in a range: more would not fit into 64 bits.
const DIGITS_MAX: usize = 18;

/// A part of an expression.
enum Part<'a> {
    Text(&'a str),
    Spans(Vec<Span<'a>>),
}

/// What stands between two commas.
enum Span<'a> {
    Numbers { from: u64, to: u64, step: u64, width: usize },
    Letters { from: u8, to: u8 },
    Word(&'a str),
}

impl Span<'_> {
    fn count(&self) -> u64 {
        match self {
            Self::Numbers { from, to, step, .. } => (to - from) / step + 1,
            Self::Letters { from, to } => u64::from(to - from) + 1,
            Self::Word(_) => 1,
        }
    }

    fn put(&self, number: u64, name: &mut String) {
        use std::fmt::Write as _;
        match self {
            // Writing into a string cannot fail.
            Self::Numbers { from, step, width, .. } => {
                let _ = write!(name, "{:0width$}", from + number * step);
            }
            Self::Letters { from, .. } => name.push(char::from(from.saturating_add(number as u8))),
            Self::Word(word) => name.push_str(word),
        }
    }
}

/// All names that an expression means, at most `limit`.
pub(super) fn expand(text: &str, dialect: Dialect, limit: usize) -> Result<Vec<String>, Flaw> {
    let parts = parts(text, dialect)?;
    let mut count: u128 = 1;
    for part in &parts {
        if let Part::Spans(spans) = part {
            let own: u128 = spans.iter().map(|span| u128::from(span.count())).sum();
            count = count.saturating_mul(own);
        }
    }
    if count > limit as u128 {
        let what = format!("`{}` means {count} hosts, at most {limit}", shown(text));
        return Err(Flaw::new(what, "narrow the range"));
    }
    let mut names = vec![String::new()];
    for part in &parts {
        match part {
            Part::Text(text) => names.iter_mut().for_each(|name| name.push_str(text)),
            Part::Spans(spans) => {
                let mut longer = Vec::with_capacity(names.len());
                for name in &names {
                    for span in spans {
                        for number in 0..span.count() {
                            let mut name = name.clone();
                            span.put(number, &mut name);
                            longer.push(name);
                        }
                    }
                }
                names = longer;
            }
        }
    }
    Ok(names)
}

fn parts(text: &str, dialect: Dialect) -> Result<Vec<Part<'_>>, Flaw> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some((head, tail)) = rest.split_once('[') {
        let Some((inside, after)) = tail.split_once(']') else {
            let what = format!("`{}` has a `[` without its `]`", shown(text));
            return Err(Flaw::new(what, "such as n[1-4]"));
        };
        parts.push(Part::Text(head));
        let spans = match dialect {
            Dialect::Dash => inside.split(',').map(|span| dashed(span.trim())).collect::<Option<Vec<_>>>(),
            Dialect::Colon => coloned(inside).map(|span| vec![span]),
        };
        let hint =
            if dialect == Dialect::Dash { "such as [1-4,7] or [01-16]" } else { "such as [01:16] or [a:f]" };
        let spans = spans.ok_or_else(|| Flaw::new(format!("`[{}]` is not a range", shown(inside)), hint))?;
        parts.push(Part::Spans(spans));
        rest = after;
    }
    if rest.contains(']') {
        return Err(Flaw::new(format!("`{}` has a `]` without its `[`", shown(text)), "such as n[1-4]"));
    }
    parts.push(Part::Text(rest));
    Ok(parts)
}

fn number(text: &str) -> Option<u64> {
    let fits = !text.is_empty() && text.len() <= DIGITS_MAX && text.bytes().all(|b| b.is_ascii_digit());
    fits.then(|| text.parse().ok()).flatten()
}

fn numbers<'a>(from: &str, to: &str, step: Option<&str>) -> Option<Span<'a>> {
    let (low, high) = (number(from)?, number(to)?);
    let step = step.map_or(Some(1), number).filter(|step| *step > 0)?;
    (low <= high).then_some(Span::Numbers { from: low, to: high, step, width: from.len() })
}

fn dashed(span: &str) -> Option<Span<'_>> {
    let Some((from, to)) = span.split_once('-') else {
        let plain = !span.is_empty() && span.bytes().all(|b| b.is_ascii_alphanumeric());
        return plain.then_some(Span::Word(span));
    };
    match to.split_once('/') {
        Some((to, step)) => numbers(from, to, Some(step)),
        None => numbers(from, to, None),
    }
}

fn coloned(span: &str) -> Option<Span<'_>> {
    let mut parts = span.split(':');
    let (from, to, step) = (parts.next()?, parts.next()?, parts.next());
    if parts.next().is_some() {
        return None;
    }
    if let ([low @ b'a'..=b'z'], [high @ b'a'..=b'z']) | ([low @ b'A'..=b'Z'], [high @ b'A'..=b'Z']) =
        (from.as_bytes(), to.as_bytes())
    {
        return (low <= high && step.is_none()).then_some(Span::Letters { from: *low, to: *high });
    }
    numbers(from, to, step)
}

/// Splits at commas and blanks that stand outside of brackets.
pub(super) fn split_outside(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0_i32;
    text.split(move |c: char| {
        match c {
            '[' => depth += 1,
            ']' => depth -= 1,
            _ => {}
        }
        depth <= 0 && (c == ',' || c.is_whitespace())
    })
    .filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dash(text: &str) -> String {
        expand(text, Dialect::Dash, 1000).unwrap().join(" ")
    }

    #[test]
    fn ranges_of_both_kinds_are_expanded() {
        assert_eq!(dash("n[001-003,200]"), "n001 n002 n003 n200");
        assert_eq!(dash("r[1-2]n[8-10]-ib"), "r1n8-ib r1n9-ib r1n10-ib r2n8-ib r2n9-ib r2n10-ib");
        assert_eq!(dash("n[0-8/4]"), "n0 n4 n8");
        assert_eq!(dash("n[a,b]"), "na nb");
        assert_eq!(dash("plain-host.example.org"), "plain-host.example.org");
        let colon = |text: &str| expand(text, Dialect::Colon, 1000).unwrap().join(" ");
        assert_eq!(colon("web[01:03].example.org"), "web01.example.org web02.example.org web03.example.org");
        assert_eq!(colon("db-[a:c]"), "db-a db-b db-c");
        assert_eq!(colon("x[0:10:5]"), "x0 x5 x10");
    }

    #[test]
    fn ranges_that_are_printed_can_be_given_back() {
        let names = ["n08", "n09", "n10", "n11", "m7"];
        let printed = linerate_model::names::ranges(&names);
        assert_eq!(printed, "m7, n[08-11]");
        let again: Vec<String> = split_outside(&printed).map(dash).collect();
        assert_eq!(again.join(" "), "m7 n08 n09 n10 n11");
    }

    #[test]
    fn what_is_no_range_is_refused() {
        for wrong in ["n[1-4", "n1-4]", "n[4-1]", "n[]", "n[1-]", "n[1--3]", "n[1-4/0]", "n[[1-2]]", "n[1:4]"]
        {
            assert!(expand(wrong, Dialect::Dash, 1000).is_err(), "{wrong}");
        }
        for wrong in ["n[1-4]", "n[a:5]", "n[z:a]", "n[a:f:2]", "n[1:2:3:4]"] {
            assert!(expand(wrong, Dialect::Colon, 1000).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_billion_hosts_are_an_error_and_no_memory() {
        for huge in ["n[1-1000000000]", "n[0-99999]r[0-99999]c[0-99999]", "n[0-999999999999999999]x[0-9]"] {
            let flaw = expand(huge, Dialect::Dash, 65_536).unwrap_err();
            assert!(flaw.what.contains("at most 65536"), "{}", flaw.what);
        }
        assert!(expand("n[0-9999999999999999999]", Dialect::Dash, 65_536).is_err());
    }

    #[test]
    fn commas_in_brackets_do_not_split() {
        let words: Vec<&str> = split_outside("a,b[1,2] c, d").collect();
        assert_eq!(words, ["a", "b[1,2]", "c", "d"]);
    }
}
