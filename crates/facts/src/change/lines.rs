//! Lines of files of settings: found, put, replaced and removed by the name of what they set; all other lines
//! stay as they are. Pure.

use std::ops::Range;

use super::setting::FileSyntax;

/// Words that begin a section of interfaces(5).
const STANZAS: [&str; 8] =
    ["iface", "auto", "mapping", "source", "source-directory", "no-auto-down", "no-scripts", "rename"];

/// Whether a line begins a section.
pub(crate) fn begins_section(line: &str, syntax: FileSyntax) -> bool {
    match syntax {
        FileSyntax::Assign => line.trim_start().starts_with('['),
        FileSyntax::Colon | FileSyntax::Word => false,
        FileSyntax::Stanza => {
            let word = line.split_whitespace().next().unwrap_or_default();
            STANZAS.contains(&word) || word.starts_with("allow-")
        }
    }
}

/// Name of the field that a line sets, `None` for comments, sections and blank lines.
pub(crate) fn field(line: &str, syntax: FileSyntax) -> Option<&str> {
    let line = line.trim();
    if line.starts_with(['#', ';', '[']) {
        return None;
    }
    match syntax {
        // With `-` in front sysctl goes on after a failure.
        FileSyntax::Assign => Some(line.split_once('=')?.0.trim().trim_start_matches('-')),
        FileSyntax::Colon => Some(line.split_once(':')?.0.trim()),
        FileSyntax::Stanza => line.split_whitespace().next().filter(|_| !begins_section(line, syntax)),
        FileSyntax::Word => Some(line),
    }
}

/// Positions of the lines of a section: all lines when there are no sections, `None` when it is not there.
fn section_lines(lines: &[&str], section: Option<&str>, syntax: FileSyntax) -> Option<Range<usize>> {
    let Some(section) = section else { return Some(0..lines.len()) };
    let start = lines.iter().position(|l| l.trim() == section)? + 1;
    let length = lines[start..].iter().position(|l| begins_section(l, syntax)).unwrap_or(lines.len() - start);
    Some(start..start + length)
}

/// The line that sets a field.
pub(crate) fn find(text: &str, section: Option<&str>, syntax: FileSyntax, name: &str) -> Option<String> {
    let lines: Vec<&str> = text.lines().collect();
    let range = section_lines(&lines, section, syntax)?;
    lines[range].iter().rev().find(|l| field(l, syntax) == Some(name.trim())).map(|l| (*l).to_owned())
}

/// The text with a field set by exactly this line, or by none.
pub(crate) fn with_line(
    text: &str,
    section: Option<&str>,
    syntax: FileSyntax,
    name: &str,
    line: Option<&str>,
) -> String {
    let mut lines: Vec<&str> = text.lines().collect();
    if let Some(section) = section
        && line.is_some()
        && section_lines(&lines, Some(section), syntax).is_none()
    {
        lines.push(section);
    }
    if let Some(range) = section_lines(&lines, section, syntax) {
        let ours: Vec<usize> =
            range.clone().filter(|i| field(lines[*i], syntax) == Some(name.trim())).collect();
        // A new line goes behind the last line of the section that is not blank.
        let end = range.clone().rev().find(|i| !lines[*i].trim().is_empty()).map_or(range.start, |i| i + 1);
        let at = ours.first().copied().unwrap_or(end);
        if let Some(line) = line {
            lines.insert(at, line);
        }
        for i in ours.into_iter().rev() {
            lines.remove(i + usize::from(line.is_some()));
        }
    }
    lines.into_iter().fold(String::new(), |mut text, line| {
        text.push_str(line);
        text.push('\n');
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ASSIGN: FileSyntax = FileSyntax::Assign;

    #[test]
    fn a_line_is_added_replaced_and_removed_in_its_section_only() {
        let link = "[Match]\nOriginalName=eth0\nMTUBytes=1\n\n[Link]\nName=x\n";
        let with = with_line(link, Some("[Link]"), ASSIGN, "MTUBytes", Some("MTUBytes=9000"));
        assert_eq!(with, "[Match]\nOriginalName=eth0\nMTUBytes=1\n\n[Link]\nName=x\nMTUBytes=9000\n");
        let again = with_line(&with, Some("[Link]"), ASSIGN, "MTUBytes", Some("MTUBytes=1500"));
        assert_eq!(again, link.to_owned() + "MTUBytes=1500\n");
        assert_eq!(with_line(&again, Some("[Link]"), ASSIGN, "MTUBytes", None), link);
        assert_eq!(
            with_line(
                "[Match]\nDriver=virtio_net\n",
                Some("[Link]"),
                ASSIGN,
                "MTUBytes",
                Some("MTUBytes=9000")
            ),
            "[Match]\nDriver=virtio_net\n[Link]\nMTUBytes=9000\n"
        );
    }

    #[test]
    fn several_older_lines_become_one_and_comments_stay() {
        let old = "# net.a = 0\nnet.a=1\nnet.b = 2\n-net.a = 3\n";
        let new = with_line(old, None, ASSIGN, "net.a", Some("net.a = 4"));
        assert_eq!(new, "# net.a = 0\nnet.a = 4\nnet.b = 2\n");
        assert_eq!(find(old, None, ASSIGN, "net.a").as_deref(), Some("-net.a = 3"));
        assert_eq!(with_line("", None, ASSIGN, "net.a", Some("net.a = 4")), "net.a = 4\n");
    }

    #[test]
    fn a_stanza_ends_where_the_next_one_begins() {
        let old = "auto eth0\niface eth0 inet static\n    address 10.0.0.1/24\n\n# second\nauto eth1\niface eth1 inet \
                   dhcp\n    mtu 1400\n";
        let section = Some("iface eth0 inet static");
        let new = with_line(old, section, FileSyntax::Stanza, "mtu", Some("    mtu 9000"));
        assert_eq!(new.matches("mtu").count(), 2);
        assert_eq!(find(&new, section, FileSyntax::Stanza, "mtu").as_deref(), Some("    mtu 9000"));
        assert_eq!(with_line(&new, section, FileSyntax::Stanza, "mtu", None), old);
        let eth1 = Some("iface eth1 inet dhcp");
        let replaced = with_line(old, eth1, FileSyntax::Stanza, "mtu", Some("    mtu 9000"));
        assert_eq!(replaced, old.replace("1400", "9000"));
    }
}
