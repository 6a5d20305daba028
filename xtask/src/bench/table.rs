//! Tables as Markdown, aligned for a terminal.

use super::stats::Spread;

/// Prints rows under a head; the first column is left, all others right.
pub(crate) fn markdown(head: &[&str], rows: &[Vec<String>]) -> String {
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|r| r.get(column)).map(|c| c.chars().count());
        cells.chain([head[column].chars().count()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let line = |cells: &[String]| {
        let padded: Vec<String> = cells
            .iter()
            .zip(&widths)
            .enumerate()
            .map(|(i, (c, w))| if i == 0 { format!("{c:<w$}") } else { format!("{c:>w$}") })
            .collect();
        format!("| {} |\n", padded.join(" | "))
    };
    let rule: Vec<String> = widths
        .iter()
        .enumerate()
        .map(|(i, w)| if i == 0 { "-".repeat(*w) } else { format!("{}:", "-".repeat(w.saturating_sub(1))) })
        .collect();
    let mut text = line(&head.iter().map(|h| (*h).to_owned()).collect::<Vec<_>>()) + &line(&rule);
    for row in rows {
        text += &line(row);
    }
    text
}

/// Three significant digits.
pub(crate) fn short(value: f64) -> String {
    match value.abs() {
        v if v >= 99.95 => format!("{value:.0}"),
        v if v >= 9.995 => format!("{value:.1}"),
        v if v >= 0.0995 || v == 0.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

/// `median (smallest-largest)`.
pub(crate) fn cell(spread: Option<Spread>) -> String {
    spread.map_or_else(
        || "-".to_owned(),
        |s| format!("{} ({}-{})", short(s.median), short(s.min), short(s.max)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let text = markdown(&["a", "b"], &[vec!["long name".into(), "1".into()]]);
        assert_eq!(text, "| a         | b |\n| --------- | : |\n| long name | 1 |\n");
        assert_eq!(cell(Some(Spread { median: 1.234, min: 0.05, max: 123.4 })), "1.23 (0.050-123)");
        assert_eq!(cell(None), "-");
    }
}
