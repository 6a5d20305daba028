//! A page as a person sees it: the document in, visible text and links out. What is closed, hidden or only in
//! attributes is not visible.

/// PageTags without content.
const VOID: &[&str] = &["meta", "link", "br", "img", "input", "hr"];
/// PageTags whose text is not on the screen.
const UNSEEN: &[&str] = &["head", "script", "style", "title", "template", "svg"];
/// PageTags that stand in lines of their own.
const LINES: &[&str] = &[
    "p", "h1", "h2", "h3", "dt", "dd", "li", "tr", "pre", "div", "section", "summary", "article", "footer",
    "nav",
];

#[derive(Debug, Default)]
struct PageTag {
    name: String,
    attributes: String,
    children: Vec<Child>,
}

#[derive(Debug)]
enum Child {
    Text(String),
    Part(PageTag),
}

/// A document.
#[derive(Debug)]
pub(super) struct PageText {
    root: PageTag,
}

/// A link: its address and its text.
pub(super) type PageLink = (String, String);

fn unescaped(text: &str) -> String {
    text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&amp;", "&")
}

impl PageTag {
    fn attribute(&self, name: &str) -> Option<String> {
        let rest = self.attributes.split_once(&format!("{name}=\""))?.1;
        Some(unescaped(rest.split('"').next()?))
    }

    fn is_seen(&self) -> bool {
        let is_skip = self.attribute("class").is_some_and(|class| class == "skip");
        !UNSEEN.contains(&self.name.as_str()) && !self.attributes.contains("hidden") && !is_skip
    }

    /// Children that are on the screen.
    fn seen(&self) -> impl Iterator<Item = &Child> {
        let is_closed = self.name == "details" && !self.attributes.contains("open");
        self.children.iter().filter(move |child| match child {
            Child::Text(_) => !is_closed,
            Child::Part(part) => part.is_seen() && (!is_closed || part.name == "summary"),
        })
    }

    fn text(&self, out: &mut String) {
        for child in self.seen() {
            match child {
                Child::Text(text) => out.push_str(text),
                Child::Part(part) => {
                    let is_line = LINES.contains(&part.name.as_str());
                    out.push(if is_line { '\n' } else { ' ' });
                    part.text(out);
                    out.push(if is_line { '\n' } else { ' ' });
                }
            }
        }
    }

    fn each<'a>(&'a self, name: &str, found: &mut Vec<&'a Self>) {
        for child in self.seen() {
            if let Child::Part(part) = child {
                if part.name == name {
                    found.push(part);
                }
                part.each(name, found);
            }
        }
    }
}

/// Lines without blanks at their ends and between words.
fn plain(text: &str) -> String {
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    text.lines().map(words).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n")
}

fn text_of(part: &PageTag) -> String {
    let mut text = String::new();
    part.text(&mut text);
    plain(&text)
}

impl PageText {
    /// Of a document of ours: each part is closed.
    pub(super) fn parse(html: &str) -> Self {
        let mut open = vec![PageTag::default()];
        let mut rest = html;
        while let Some(at) = rest.find('<') {
            let (text, tag) = rest.split_at(at);
            let end = tag.find('>').expect("a tag that ends");
            let (tag, after) = (&tag[1..end], &tag[end + 1..]);
            rest = after;
            let top = open.last_mut().expect("a root");
            if !text.is_empty() {
                top.children.push(Child::Text(unescaped(text)));
            }
            if tag.starts_with('!') {
                continue;
            }
            if tag.starts_with('/') {
                let closed = open.pop().expect("an part that is open");
                open.last_mut().expect("an part around it").children.push(Child::Part(closed));
                continue;
            }
            let (name, attributes) = tag.split_once(' ').unwrap_or((tag, ""));
            let (name, attributes) = (name.to_owned(), attributes.to_owned());
            let part = PageTag { name, attributes, children: Vec::new() };
            if VOID.contains(&part.name.as_str()) {
                top.children.push(Child::Part(part));
            } else {
                open.push(part);
            }
        }
        assert_eq!(open.len(), 1, "{:?} is not closed", open.last().map(|part| &part.name));
        Self { root: open.remove(0) }
    }

    /// All that can be read, in lines.
    pub(super) fn text(&self) -> String {
        text_of(&self.root)
    }

    /// What can be clicked.
    pub(super) fn links(&self) -> Vec<PageLink> {
        let mut links = Vec::new();
        self.root.each("a", &mut links);
        links.into_iter().filter_map(|link| Some((link.attribute("href")?, text_of(link)))).collect()
    }

    /// What stands beside a label; empty without one.
    pub(super) fn beside(&self, label: &str) -> String {
        let mut lists = Vec::new();
        self.root.each("dl", &mut lists);
        for list in lists {
            let mut rows = list.seen().filter_map(|child| match child {
                Child::Part(part) => Some(part),
                Child::Text(_) => None,
            });
            while let Some(row) = rows.next() {
                if row.name == "dt" && text_of(row) == label {
                    return rows.next().map(text_of).unwrap_or_default();
                }
            }
        }
        String::new()
    }

    /// Commands to copy.
    pub(super) fn commands(&self) -> Vec<String> {
        let mut commands = Vec::new();
        self.root.each("pre", &mut commands);
        commands.into_iter().map(text_of).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_closed_or_hidden_is_not_read() {
        let page = PageText::parse(
            "<!DOCTYPE html><html><head><title>t</title></head><body><a class=\"skip\" href=\"#m\">x</a>\
             <p>one <a href=\"/a?x=1&amp;y=2\">two</a></p><details><summary>more</summary><p>three</p>\
             <a href=\"/b\">four</a></details><dl><dt>Who</dt><dd>arc&lt;1 <p>b</p></dd></dl>\
             <pre class=\"cmd\"><code>linerate x</code></pre></body></html>",
        );
        assert_eq!(page.text(), "one two\nmore\nWho\narc<1\nb\nlinerate x");
        assert_eq!(page.links(), [("/a?x=1&y=2".to_owned(), "two".to_owned())]);
        assert_eq!((page.beside("Who"), page.beside("When")), ("arc<1\nb".to_owned(), String::new()));
        assert_eq!(page.commands(), ["linerate x"]);
    }
}
