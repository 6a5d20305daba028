//! Walks a text from its first line to its last: prompts change the context, a reader takes each piece, the
//! rest is quoted. A document comes in, the sink and the account are filled.

use linerate_model::imported::{Imported, Piece, UNREAD_MAX, Unread};
use linerate_model::inventory::Layer;

use crate::aside::{Aside, is_sentence};
use crate::context::{Command, Context, is_host, names_overlay, names_underlay};
use crate::document::{self, Document};
use crate::limits::{LINE_BYTES_MAX, PIECES_MAX};
use crate::options::ImportOptions;
use crate::reader::{Block, LONG_LINE, Reader};
use crate::sink::{Membership, Sink};
use crate::{formats, names, prompt};

/// Longest quotation of a line, characters.
const QUOTE_MAX: usize = 120;
/// Longest name of a change, characters.
const CHANGE_MAX: usize = 60;
/// Most words of a line that sets two conditions apart, and of one that announces what follows.
const TURN_MAX: usize = 5;
const ANNOUNCING_MAX: usize = 12;

/// Reads one document.
pub(crate) fn document(
    document: &Document,
    options: &ImportOptions,
    roots: &names::Roots,
    sink: &mut Sink,
    account: &mut Imported,
) {
    if let Some(why) = document::refused(&document.bytes) {
        account.unread_lines += 1;
        account.unread.push(Unread { file: document.name.clone(), why, ..Unread::default() });
        return;
    }
    let text = document::clean(&document.bytes);
    let lines: Vec<&str> = text.lines().collect();
    let forced = options.format.as_deref().and_then(formats::named);
    let short: Option<Vec<&str>> = lines
        .iter()
        .any(|line| is_long(line))
        .then(|| lines.iter().map(|line| if is_long(line) { LONG_LINE } else { line }).collect());
    let mut context = Context {
        speaks_of_overlay: lines.iter().any(|line| is_sentence(line) && names_overlay(line)),
        speaks_of_underlay: lines.iter().any(|line| names_underlay(line)),
        ..names::context(&document.name, &lines, options, roots)
    };
    if context.weak && speaks_against(&lines, context.host.as_deref()) {
        (context.host, context.weak) = (None, false);
    }
    let mut walk = Walk {
        lines: &lines,
        short: short.as_deref().unwrap_or(&lines),
        context,
        tables: 0,
        kernel: String::new(),
        aside: Aside::default(),
        forced,
        sink,
        account,
    };
    walk.all();
}

/// Lines at the top of a text in which the headers of a mail stand.
const HEADERS_MAX: usize = 12;

/// Whether a text speaks against the word of its file's name as the host of all of it: it is a mail, or its
/// prompts name other hosts.
fn speaks_against(lines: &[&str], word: Option<&str>) -> bool {
    let top = lines.iter().take(HEADERS_MAX);
    let headers =
        top.filter(|line| ["From: ", "Subject: ", "Date: ", "To: "].iter().any(|h| line.starts_with(h)));
    headers.count() >= 2
        || lines.iter().filter_map(|line| prompt::parse(line)?.host).any(|host| Some(host) != word)
}

/// Whether a line is longer than readers of lines are shown.
fn is_long(line: &str) -> bool {
    line.len() > LINE_BYTES_MAX
}

struct Walk<'a> {
    lines: &'a [&'a str],
    /// The same for readers that take no long ones.
    short: &'a [&'a str],
    context: Context,
    /// Tables so far.
    tables: u32,
    /// What `uname` printed last.
    kernel: String,
    aside: Aside,
    forced: Option<&'static dyn Reader>,
    sink: &'a mut Sink,
    account: &'a mut Imported,
}

impl Walk<'_> {
    fn all(&mut self) {
        let mut at = 0;
        let mut end = 0;
        while at < self.lines.len() {
            let line = self.lines[at];
            if is_blank(line) {
                self.aside.framed(line);
                at += 1;
            } else if let Some(prompt) = prompt::parse(line) {
                self.enter(&prompt);
                at += 1;
            } else {
                if end <= at {
                    end = self.next_prompt(at + 1);
                }
                at += self.piece(at, end);
            }
        }
    }

    /// The first prompt from a line on, or the end. Asked once behind each prompt, so that every line is
    /// checked once.
    fn next_prompt(&self, from: usize) -> usize {
        let rest = &self.lines[from..];
        from + rest.iter().position(|line| prompt::parse(line).is_some()).unwrap_or(rest.len())
    }

    fn enter(&mut self, prompt: &prompt::Prompt<'_>) {
        let command = Command::parse(prompt.command);
        if let Some(host) = command.ssh.as_deref().or(prompt.host) {
            let before = self.context.host.replace(host.to_owned());
            // The file's name has both ends of a test: the other end has the prompt now.
            if self.context.peer.as_deref() == Some(host) {
                self.context.peer = before;
            }
            self.context.weak = false;
            self.sink.seen(host);
            if let Some(group) = prompt.group {
                self.sink.member(Membership {
                    host: host.to_owned(),
                    group: group.to_owned(),
                    kind: "hypervisor".to_owned(),
                });
            }
            self.sink.prompted.insert(host.to_owned());
        }
        // A heading that only names a host leaves the command as it was: the same one ran everywhere.
        if !command.words.is_empty() {
            self.sink.begin(&self.context);
            for reader in formats::READERS {
                reader.typed(prompt.command, self.sink);
            }
            if command.is(&["ethtool"]) {
                self.context.nic = command.last_plain().map(str::to_owned);
            } else if let Some(nic) = nic_within(prompt.command) {
                self.context.nic = Some(nic.to_owned());
            }
            self.sink.prose(prompt.command);
            self.aside.typed(prompt.command);
            if changes(&command) {
                self.changed(&command.whole.clone());
                self.context.state.is_stated = false;
            }
            self.context.command = command;
            self.context.label.clear();
        }
    }

    /// The hosts are in another state from here on.
    fn changed(&mut self, by: &str) {
        let state = &mut self.context.state;
        state.epoch += 1;
        state.change = by.trim().chars().take(CHANGE_MAX).collect();
    }

    /// One piece from `at` on; how many lines it took.
    fn piece(&mut self, at: usize, end: usize) -> usize {
        let block = |lines| Block { lines, at: &self.context };
        let (whole, short) = (block(&self.lines[at..end]), block(&self.short[at..end]));
        let shown = |reader: &dyn Reader| if reader.takes_long_lines() { &whole } else { &short };
        let found = self.forced.or_else(|| formats::READERS.iter().find(|r| r.begins(shown(**r))).copied());
        let Some(reader) = found else {
            if let Some(host) = self.answer_of_hostname(self.lines[at]) {
                self.context.host = Some(host);
                self.context.weak = false;
                return 1;
            }
            let length = self.lines[at].len();
            let why = if is_long(self.lines[at]) {
                format!("a line of {length} bytes, at most {LINE_BYTES_MAX} are read")
            } else {
                "no known format".to_owned()
            };
            self.quote(at, why);
            self.remember(at);
            return 1;
        };
        let is_table = reader.name() == formats::TABLE;
        if is_table {
            self.tables += 1;
        }
        self.context.state.table = if is_table { self.tables } else { 0 };
        let is_named = self.context.layer.is_some() || self.context.speaks_of_underlay;
        if is_table && !is_named && self.context.layer() == Layer::Underlay {
            self.account.layer_unknown = true;
            self.sink.note("no word names the network of a table: the underlay is assumed; --layer overlay");
        }
        let block = |lines| Block { lines, at: &self.context };
        let shown_lines = if reader.takes_long_lines() { self.lines } else { self.short };
        let piece = block(&shown_lines[at..end]);
        self.sink.begin(&self.context);
        let taken = reader.read(&piece, self.sink).clamp(1, end - at);
        if self.sink.used_label {
            self.unquote_title(at);
        }
        let mut unread = std::mem::take(&mut self.sink.unread);
        unread.sort();
        unread.dedup_by_key(|(line, _)| *line);
        for (line, why) in unread {
            if line < taken {
                self.quote(at + line, why);
            }
        }
        if self.sink.readings > 0 && self.sink.has_capacity("pieces", self.account.pieces.len(), PIECES_MAX) {
            self.account.pieces.push(Piece {
                file: self.context.file.clone(),
                line: at + 1,
                lines: taken,
                format: reader.name().to_owned(),
                host: if reader.names_hosts() {
                    String::new()
                } else {
                    self.context.host.clone().unwrap_or_default()
                },
                readings: self.sink.readings,
            });
        }
        self.context.nic = nic_of(self.lines[at]).or(self.context.nic.take());
        if reader.is_prose() {
            self.remember(at);
        }
        taken
    }

    /// A name alone on a line, like that of a host that is known: what `hostname` printed in a loop.
    fn answer_of_hostname(&self, line: &str) -> Option<String> {
        let word = line.trim();
        let stem = |name: &str| name.trim_end_matches(|c: char| c.is_ascii_digit()).len();
        let is_like = |known: &String| {
            let (a, b) = (stem(word), stem(known));
            a > 0 && a < word.len() && b < known.len() && word[..a] == known[..b]
        };
        let fits = is_host(word) && word.len() <= 64 && word.chars().any(char::is_alphabetic);
        (fits && self.sink.order.iter().any(|known| known == word || is_like(known))).then(|| word.to_owned())
    }

    /// Titles are what stands between the pieces.
    fn remember(&mut self, at: usize) {
        let line = self.lines[at];
        if !self.aside.is(at, line) {
            self.sink.prose(line);
        }
        if is_turn(line) {
            self.changed(line.trim().trim_end_matches(':'));
            self.context.state.is_stated = true;
        } else if self.context.command.is(&["uname"]) && line.trim() != self.kernel {
            if !self.kernel.is_empty() {
                self.changed(&format!("kernel {}", line.trim()));
            }
            line.trim().clone_into(&mut self.kernel);
        }
        let label: String = line.trim().chars().take(QUOTE_MAX).collect();
        // Two lines are enough: a title and its units.
        let last = self.context.label.rsplit('\n').next().unwrap_or("");
        self.context.title = if label.ends_with(':') { label.clone() } else { String::new() };
        self.context.label = format!("{last}\n{label}");
    }

    /// The line above a piece was a title that was used, so it is not quoted as unread.
    fn unquote_title(&mut self, at: usize) {
        let above = (0..at).rev().find(|line| !is_blank(self.lines[*line]));
        let Some(last) = self.account.unread.last_mut().filter(|u| u.file == self.context.file) else {
            return;
        };
        if above.is_some_and(|line| line + 1 == last.line + last.lines - 1) {
            self.account.unread_lines -= 1;
            last.lines -= 1;
            if last.lines == 0 {
                self.account.unread.pop();
            }
        }
    }

    fn quote(&mut self, at: usize, why: String) {
        self.account.unread_lines += 1;
        if let Some(last) = self.account.unread.last_mut()
            && last.file == self.context.file
            && last.line + last.lines == at + 1
            && last.why == why
        {
            last.lines += 1;
            return;
        }
        if self.account.unread.len() < UNREAD_MAX {
            let text = self.lines[at].trim().chars().take(QUOTE_MAX).collect();
            self.account.unread.push(Unread {
                file: self.context.file.clone(),
                line: at + 1,
                lines: 1,
                text,
                why,
            });
        }
    }
}

/// Whether a heading sets a state before apart from one after: `Before:`, `and is now`.
fn is_turn(line: &str) -> bool {
    let line = line.trim().to_lowercase();
    let words: Vec<&str> = line.split(|c: char| !c.is_alphanumeric()).filter(|w| !w.is_empty()).collect();
    let most = if line.ends_with(':') { ANNOUNCING_MAX } else { TURN_MAX };
    words.len() <= most && words.iter().any(|w| ["before", "after", "afterwards", "now"].contains(w))
}

/// Whether a command changes what a host does.
fn changes(command: &Command) -> bool {
    let words: Vec<&str> = command.words.iter().map(String::as_str).collect();
    let writes = || {
        let target = command.whole.rsplit('>').next().unwrap_or_default().trim();
        command.whole.contains('>') && ["/proc/", "/sys/"].iter().any(|root| target.starts_with(root))
    };
    match words[..] {
        ["ethtool", option, ..] => ["-K", "-C", "-G", "-L", "-A", "-s", "-X", "-N"].contains(&option),
        ["sysctl", option, ..] => ["-w", "-p", "--system"].contains(&option) || command.whole.contains('='),
        ["ip", "link", "set", ..]
        | ["modprobe" | "rmmod" | "insmod" | "irqbalance", ..]
        | ["tc", _, "add" | "del" | "replace" | "change", ..]
        | ["ifconfig", _, "mtu", ..]
        | ["systemctl", "stop" | "start" | "restart", ..] => true,
        _ => writes(),
    }
}

/// Nothing, or what only frames text on a page.
fn is_blank(line: &str) -> bool {
    let line = line.trim();
    line.is_empty() || line.starts_with("```") || line == "..." || line == "^C" || line == "--"
}

/// Device of an `ethtool -k em1` within a longer command: in a loop, behind `hostname;`.
fn nic_within(command: &str) -> Option<&str> {
    let rest = command.split("ethtool ").nth(1)?;
    let plain = |c: char| c.is_ascii_alphanumeric() || ".-_@/".contains(c);
    let word = rest.split_whitespace().find(|word| !word.starts_with('-'))?;
    let word = word.trim_matches(['\'', '"', ';', ')']);
    (!word.is_empty() && word.len() <= 15 && word.chars().all(plain)).then_some(word)
}

/// `Features for em1:` and the like.
fn nic_of(line: &str) -> Option<String> {
    let (head, nic) = line.trim().strip_suffix(':')?.rsplit_once(" for ")?;
    let known = [
        "Features",
        "Offload parameters",
        "Ring parameters",
        "Coalesce parameters",
        "Channel parameters",
        "Settings",
    ];
    known.contains(&head).then(|| nic.to_owned())
}
