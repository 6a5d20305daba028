//! Which commands of a shell script are run, as far as that can be known without running it. Pure.
//!
//! In: a script and the variables that its caller sets. Out: the commands that are run and those that may be,
//! with the values of variables that are set once for all. Tests that compare known words are decided;
//! everything else is not: a test of files, a loop, a function or a pipe leave what they decide about
//! uncertain. Commands that are provably not run are left out, as is all behind an `exit` that is run.

use std::collections::{BTreeMap, BTreeSet};

use super::owner::glob;
use super::shell::{CLOSE, Joint, OPEN, Raw, UNKNOWN, raw_commands};

/// A command of a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ShellCommand {
    /// Line of its first word, from 1.
    pub(super) number: usize,
    /// Program and arguments; what is not known of a word is `*`.
    pub(super) words: Vec<String>,
    /// File that its output replaces.
    pub(super) into: Option<String>,
    /// Whether it is run, once, and by itself.
    pub(super) is_certain: bool,
}

/// Variables whose values are known when a script begins.
#[derive(Debug, Clone, Default)]
pub(super) struct Variables {
    values: BTreeMap<String, String>,
    /// Beginning of names that are empty unless they are there.
    empty: Option<&'static str>,
}

impl Variables {
    pub(super) fn new<'v>(values: impl IntoIterator<Item = (&'v str, &'v str)>) -> Self {
        let own = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        Self { values: values.into_iter().map(own).collect(), empty: None }
    }

    /// All others that begin so are empty.
    pub(super) fn others_empty(self, start: &'static str) -> Self {
        Self { empty: Some(start), ..self }
    }

    pub(super) fn insert(&mut self, name: String, value: String) {
        self.values.insert(name, value);
    }

    fn value(&self, name: &str) -> Option<&str> {
        let is_empty = || self.empty.is_some_and(|start| name.starts_with(start));
        self.values.get(name).map(String::as_str).or_else(|| is_empty().then_some(""))
    }
}

/// Whether a command is run. In the order in which one overrides the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Run {
    Yes,
    /// Where something is there that usually is.
    Guarded,
    Maybe,
    No,
}

/// How a command ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Status {
    Good,
    Bad,
    /// A program that succeeds unless something is amiss.
    Presumed,
    /// A test of files, or a program that usually succeeds.
    Usual,
    Unknown,
}

impl Status {
    fn of(known: bool) -> Self {
        if known { Self::Good } else { Self::Bad }
    }

    fn not(self) -> Self {
        match self {
            Self::Good => Self::Bad,
            Self::Bad => Self::Good,
            Self::Presumed => Self::Usual,
            other => other,
        }
    }

    /// Whether what waits for a good end is run.
    fn then(self) -> Run {
        match self {
            Self::Good | Self::Presumed => Run::Yes,
            Self::Bad => Run::No,
            Self::Usual => Run::Guarded,
            Self::Unknown => Run::Maybe,
        }
    }

    /// Of `self && other`.
    fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Bad, _) | (_, Self::Bad) => Self::Bad,
            (Self::Unknown, _) | (_, Self::Unknown) => Self::Unknown,
            (Self::Usual, _) | (_, Self::Usual) => Self::Usual,
            (Self::Presumed, _) | (_, Self::Presumed) => Self::Presumed,
            _ => Self::Good,
        }
    }
}

/// Programs that succeed, so that what `&&` joins to them is run.
const SUCCEEDS: [&str; 10] =
    ["ip", "ethtool", "sysctl", "tc", "ifconfig", "echo", "sleep", "cd", "modprobe", "touch"];
/// Programs that fail only where something is amiss.
const USUAL: [&str; 14] = [
    ".", "command", "cp", "hash", "install", "ln", "mkdir", "mount", "mv", "rm", "set", "source", "type",
    "which",
];
/// Words before a program that change nothing about what it does.
const PREFIXES: [&str; 6] = ["!", "command", "exec", "nohup", "sudo", "time"];

/// The commands of a script, for these variables.
pub(super) fn commands(text: &str, variables: &Variables) -> Vec<ShellCommand> {
    let raw = raw_commands(text);
    let named = |one: &Raw| one.words.first().is_some_and(|word| word == "function");
    let functions = raw.iter().filter(|one| named(one)).filter_map(|one| one.words.get(1).cloned()).collect();
    let mut flow = Flow {
        variables: variables.clone(),
        functions,
        frames: Vec::new(),
        status: Status::Good,
        chain: Run::Yes,
        doubt: Run::Yes,
        is_function: false,
        found: Vec::new(),
    };
    for (at, one) in raw.iter().enumerate() {
        let is_piped = raw.get(at + 1).is_some_and(|next| next.joint == Joint::Pipe);
        if flow.take(one, is_piped) {
            break;
        }
    }
    flow.found
}

/// Name of a program without its folder.
pub(super) fn program(words: &[String]) -> &str {
    words.first().map_or("", |word| word.rsplit('/').next().unwrap_or_default())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Block {
    If,
    Loop,
    Case,
    Braces,
    Subshell,
    Function,
}

/// A compound command that is open.
struct Frame {
    block: Block,
    /// Whether the whole of it is run.
    outer: Run,
    /// Whether what comes next in it is.
    inner: Run,
    /// Whether no branch before was taken.
    rest: Run,
    /// The word of a `case`.
    word: String,
}

struct Flow {
    variables: Variables,
    functions: BTreeSet<String>,
    frames: Vec<Frame>,
    /// Of the last command, or of what is joined up to it.
    status: Status,
    /// Whether what is joined is run.
    chain: Run,
    /// After an `exit` that may be run.
    doubt: Run,
    /// The next braces are the body of a function.
    is_function: bool,
    found: Vec<ShellCommand>,
}

impl Flow {
    fn inner(&self) -> Run {
        self.frames.last().map_or(Run::Yes, |frame| frame.inner)
    }

    /// Takes the next command; whether the script ends with it.
    fn take(&mut self, one: &Raw, is_piped: bool) -> bool {
        if one.are_patterns {
            self.branch_of_case(&one.words);
            return false;
        }
        self.chain = match one.joint {
            Joint::Always => Run::Yes,
            Joint::Success => self.status.then(),
            Joint::Failure => self.status.not().then(),
            Joint::Pipe => self.chain.max(Run::Maybe),
        };
        let before = self.status;
        let mut words = &one.words[..];
        while let Some(word) = words.first() {
            let Some(taken) = self.keyword(word, words) else { break };
            words = words.get(taken..).unwrap_or_default();
        }
        if words.is_empty() {
            return false;
        }
        let mut run = self.doubt.max(self.inner()).max(self.chain);
        if is_piped {
            run = run.max(Run::Maybe);
        }
        let (ends, own) = self.command(one, words, run);
        let own = if is_piped || one.joint == Joint::Pipe { Status::Unknown } else { own };
        self.status = match one.joint {
            Joint::Success => before.and(own),
            Joint::Failure => before.not().and(own.not()).not(),
            Joint::Always | Joint::Pipe => own,
        };
        ends
    }

    /// Takes a keyword, and returns the number of words that belong to it; `None` where the word is none.
    fn keyword(&mut self, word: &str, words: &[String]) -> Option<usize> {
        match word {
            "if" => self.open(Block::If, ""),
            "while" | "until" => self.open(Block::Loop, ""),
            "{" | "(" if std::mem::take(&mut self.is_function) => self.open(Block::Function, ""),
            "{" => self.open(Block::Braces, ""),
            "(" => self.open(Block::Subshell, ""),
            "then" | "elif" | "else" => self.branch_of_if(word),
            "do" => {}
            "function" => {
                self.is_function = true;
                return Some(2);
            }
            "for" | "select" => {
                self.open(Block::Loop, "");
                self.forget(words.get(1).map_or("", String::as_str));
                return Some(words.len());
            }
            "case" => {
                let word = words.get(1).map(|word| self.resolved(word)).unwrap_or_default();
                self.open(Block::Case, &word);
                return Some(words.len());
            }
            "fi" | "done" | "esac" | "}" | ")" => {
                self.frames.pop();
                self.status = Status::Unknown;
                return Some(words.len());
            }
            _ => return None,
        }
        Some(1)
    }

    fn open(&mut self, block: Block, word: &str) {
        let outer = self.doubt.max(self.inner()).max(self.chain);
        let inner =
            if matches!(block, Block::Loop | Block::Function) { outer.max(Run::Maybe) } else { outer };
        self.chain = Run::Yes;
        self.frames.push(Frame { block, outer, inner, rest: Run::Yes, word: word.to_owned() });
    }

    fn branch_of_if(&mut self, word: &str) {
        let status = self.status;
        let Some(frame) = self.frames.last_mut().filter(|frame| frame.block == Block::If) else { return };
        if word == "then" {
            frame.inner = frame.outer.max(frame.rest).max(status.then());
            frame.rest = frame.rest.max(status.not().then());
        } else {
            frame.inner = frame.outer.max(frame.rest);
        }
    }

    fn branch_of_case(&mut self, patterns: &[String]) {
        let patterns: Vec<String> = patterns.iter().map(|pattern| self.resolved(pattern)).collect();
        let Some(frame) = self.frames.last_mut().filter(|frame| frame.block == Block::Case) else { return };
        let is_known = |text: &String| !text.contains(UNKNOWN);
        let status = if patterns.iter().any(|pattern| pattern == "*") {
            Status::Good
        } else if is_known(&frame.word) && patterns.iter().all(is_known) {
            Status::of(patterns.iter().any(|pattern| glob(pattern.as_bytes(), frame.word.as_bytes())))
        } else {
            Status::Unknown
        };
        frame.inner = frame.outer.max(frame.rest).max(status.then());
        frame.rest = frame.rest.max(status.not().then());
    }

    /// Takes a simple command: whether the script ends with it, and how it ends.
    fn command(&mut self, one: &Raw, words: &[String], run: Run) -> (bool, Status) {
        let words: Vec<String> = words.iter().map(|word| self.resolved(word)).collect();
        let mut words = &words[..];
        let (mut is_exec, mut is_not) = (false, false);
        while words.len() > 1 && is_prefix(words) {
            is_exec |= words[0] == "exec";
            is_not ^= words[0] == "!";
            self.assign(&words[0], Run::Maybe);
            words = &words[1..];
        }
        if is_setting(words) || words.len() == 1 {
            for word in words {
                self.assign(word, run);
            }
        }
        let name = program(words);
        let status = if self.functions.contains(name) { Status::Unknown } else { ends(words) };
        let status = if is_not { status.not() } else { status };
        if run == Run::No {
            return (false, status);
        }
        if name == "exit" || name == "return" || is_exec && name != "exec" {
            let is_inside = |frame: &Frame| matches!(frame.block, Block::Function | Block::Subshell);
            let is_whole = !self.frames.iter().any(is_inside);
            if is_whole && run == Run::Maybe {
                self.doubt = Run::Maybe;
            }
            self.add(one, words, run);
            return (is_whole && run == Run::Yes, status);
        }
        if name == "read" || name == "unset" {
            for word in words.iter().skip(1) {
                self.forget(word);
            }
        }
        // `[[ … && … ]]` is two commands here.
        let is_silent = self.functions.contains(name)
            || words.iter().all(|word| is_assignment(word))
            || words.last().is_some_and(|last| last == "]]");
        if !is_silent {
            self.add(one, words, run);
        }
        (false, status)
    }

    fn add(&mut self, one: &Raw, words: &[String], run: Run) {
        let shown = |word: &str| word.replace(UNKNOWN, "*");
        self.found.push(ShellCommand {
            number: one.number,
            words: words.iter().map(|word| shown(word)).collect(),
            into: one.into.as_ref().map(|path| shown(&self.resolved(path))),
            is_certain: run == Run::Yes,
        });
    }

    /// `name=value`, where the word is that.
    fn assign(&mut self, word: &str, run: Run) {
        let Some((name, value)) = word.split_once('=').filter(|_| is_assignment(word)) else { return };
        match run {
            Run::Yes if !value.contains(UNKNOWN) => self.variables.insert(name.to_owned(), value.to_owned()),
            Run::No => {}
            _ => self.forget(name),
        }
    }

    fn forget(&mut self, name: &str) {
        self.variables.insert(name.to_owned(), UNKNOWN.to_string());
    }

    /// A word with the values of its variables. Those with numbers are others in a function.
    fn resolved(&self, word: &str) -> String {
        let is_in_function = self.frames.iter().any(|frame| frame.block == Block::Function);
        let mut parts = word.split(OPEN);
        let mut text = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let (name, rest) = part.split_once(CLOSE).unwrap_or((part, ""));
            let is_other = is_in_function && name.starts_with(|c: char| c.is_ascii_digit());
            match self.variables.value(name).filter(|_| !is_other) {
                Some(value) => text.push_str(value),
                None => text.push(UNKNOWN),
            }
            text.push_str(rest);
        }
        text
    }
}

/// Whether the first word is one before a program. `command -v` asks for one.
fn is_prefix(words: &[String]) -> bool {
    let asks = words[0] == "command" && words[1].starts_with('-');
    PREFIXES.contains(&words[0].as_str()) && !asks || is_assignment(&words[0])
}

/// `export A=1 B=2` and the like.
fn is_setting(words: &[String]) -> bool {
    ["export", "local", "readonly", "declare", "typeset"].contains(&program(words))
}

fn is_assignment(word: &str) -> bool {
    let is_name =
        |name: &str| !name.is_empty() && name.chars().all(|c| c == '_' || c.is_ascii_alphanumeric());
    word.split_once('=').is_some_and(|(name, _)| is_name(name))
}

/// How a command ends.
fn ends(words: &[String]) -> Status {
    let name = program(words);
    let is_test = ["[", "[[", "test"].contains(&name) || words.last().is_some_and(|last| last == "]]");
    if is_test {
        return test(words);
    }
    match name {
        "false" => Status::Bad,
        "true" | ":" => Status::Good,
        _ if SUCCEEDS.contains(&name) || words.iter().all(|word| is_assignment(word)) => Status::Presumed,
        _ if USUAL.contains(&name) || is_setting(words) => Status::Usual,
        _ => Status::Unknown,
    }
}

/// What a test gives, where that is known (test(1)).
fn test(words: &[String]) -> Status {
    let name = program(words);
    let is_pattern = name == "[[" || words.last().is_some_and(|last| last == "]]");
    let mut rest: Vec<&str> = words.iter().map(String::as_str).collect();
    if ["[", "[[", "test"].contains(&name) {
        rest.remove(0);
    }
    rest.pop_if(|last| ["]", "]]"].contains(last));
    let mut is_not = false;
    while rest.first() == Some(&"!") && rest.len() > 1 {
        is_not = !is_not;
        rest.remove(0);
    }
    let is_known = |word: &str| !word.contains(UNKNOWN);
    let compared = |one: &str, other: &str| {
        if is_pattern { glob(other.as_bytes(), one.as_bytes()) } else { one == other }
    };
    let numbers = |one: &str, other: &str| one.parse::<i64>().ok().zip(other.parse::<i64>().ok());
    let status = match rest[..] {
        [one, "=" | "==", other] if is_known(one) && is_known(other) => Status::of(compared(one, other)),
        [one, "!=", other] if is_known(one) && is_known(other) => Status::of(!compared(one, other)),
        [one, "-eq", other] => numbers(one, other).map_or(Status::Unknown, |(a, b)| Status::of(a == b)),
        [one, "-ne", other] => numbers(one, other).map_or(Status::Unknown, |(a, b)| Status::of(a != b)),
        ["-n", one] | [one] if is_known(one) => Status::of(!one.is_empty()),
        ["-z", one] if is_known(one) => Status::of(one.is_empty()),
        ["-b" | "-c" | "-d" | "-e" | "-f" | "-h" | "-L" | "-r" | "-s" | "-S" | "-w" | "-x", _] => {
            Status::Usual
        }
        _ => Status::Unknown,
    };
    if is_not { status.not() } else { status }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn shown(text: &str) -> Vec<String> {
        let of = |one: ShellCommand| {
            let into = one.into.map_or_else(String::new, |into| format!(" > {into}"));
            let mark = if one.is_certain { "" } else { "?" };
            format!("{}{mark} {}{into}", one.number, one.words.join(" "))
        };
        commands(text, &Variables::default()).into_iter().map(of).collect()
    }

    #[test]
    fn words_quotes_comments_and_outputs_are_taken_apart() {
        let text = "#!/bin/sh -e\n# x\nA=1 echo \"a 'b'\" c\\ d 'e;f' # g\n\
                    echo 2 >/proc/sys/a/b 2>/dev/null; date >>x 2>&1\nip link \\\n  set eth0 up\nls >&2 &>y\n";
        let expected = [
            "3 echo a 'b' c d e;f",
            "4 echo 2 > /proc/sys/a/b",
            "4 date > x",
            "5 ip link set eth0 up",
            "7 ls > y",
        ];
        assert_eq!(shown(text), expected);
        assert_eq!(shown("echo ${A:-x} $(cat a; cat b) `c` \"$B\" $1.x"), ["1 echo * * * * *.x"]);
        assert_eq!(shown("echo \"a\n"), ["1 echo a\n"], "a quote that does not end");
    }

    #[test]
    fn only_what_is_run_in_any_case_is_certain() {
        assert_eq!(shown("ip a && ip b || ip c\n"), ["1 ip a", "1 ip b", "1? ip c"]);
        assert_eq!(shown("[ -x y ] && ip b\nip c"), ["1 [ -x y ]", "1? ip b", "2 ip c"]);
        assert_eq!(shown("ip a &&\nip b"), ["1 ip a", "2 ip b"]);
        assert_eq!(shown("echo a | tee b\nip c"), ["1? echo a", "1? tee b", "2 ip c"]);
        let block = "if [ -e x ]; then\n  ip a\nelse ip b; fi\nfor i in 1 2; do ip $i; done\nip c";
        assert_eq!(shown(block), ["1 [ -e x ]", "2? ip a", "3? ip b", "4? ip *", "5 ip c"]);
        let case = "case $1 in\n start|x) ip a ;;\n *) ip b;;\nesac\nip c";
        assert!(shown(case).iter().all(|line| line == "5 ip c" || line.contains('?')), "{:?}", shown(case));
        assert_eq!(shown(case).last().map(String::as_str), Some("5 ip c"));
        assert_eq!(shown("f() {\n ip a\n}\n(ip b; ip d)\nip c"), ["2? ip a", "4 ip b", "4 ip d", "5 ip c"]);
    }

    #[test]
    fn nothing_is_run_behind_an_exit_and_no_text_is_a_command() {
        assert_eq!(shown("ip a\nexit 0\nip b"), ["1 ip a", "2 exit 0"]);
        assert_eq!(shown("ip a || exit 1\nip b").last().map(String::as_str), Some("2 ip b"));
        assert_eq!(shown("exec 2>/tmp/x\nip b"), ["1 exec", "2 ip b"]);
        assert_eq!(shown("exec /opt/x\nip b"), ["1 /opt/x"]);
        assert_eq!(shown("cat <<EOF >x\nip a\nEOF\nip b"), ["1 cat > x", "4 ip b"]);
    }

    fn of_eth0(text: &str) -> Vec<String> {
        let known = Variables::new([("IFACE", "eth0"), ("1", "eth0"), ("2", "up")]).others_empty("IF_");
        let of = |one: ShellCommand| {
            format!("{}{} {}", one.number, if one.is_certain { "" } else { "?" }, one.words.join(" "))
        };
        commands(text, &known).into_iter().filter(|one| one.words[0] != "[").map(of).collect()
    }

    #[test]
    fn tests_of_known_words_are_decided() {
        let rows: [(&str, &[&str]); 16] = [
            ("[ \"$IFACE\" = eth0 ] || exit 0\nip a", &["2 ip a"]),
            ("[ \"$IFACE\" = lo ] || exit 0\nip a", &["1 exit 0"]),
            ("[ \"$IFACE\" != lo ] || exit 0\nip a", &["2 ip a"]),
            ("if [ \"$1\" = eth1 ]; then\nip a\nelif [ $2 = up ]; then ip b; else ip c; fi", &["3 ip b"]),
            ("case $IFACE in eth1|lo) ip a ;; eth*) ip b ;; *) ip c ;; esac; ip d", &["1 ip b", "1 ip d"]),
            ("case \"$IFACE-$2\" in\n  eth0-up)\n ip $1\n ;;\n *) exit 0\n ;;\nesac", &["3 ip eth0"]),
            ("[[ $IFACE == eth* && $2 = up ]] && ip a", &["1 ip a"]),
            ("nic=$1\naction=\"$2\"\n[ \"$nic\" = eth0 ] && [ \"$action\" = up ] && ip $nic", &["3 ip eth0"]),
            ("[ -n \"$IF_BOND_MODE\" ] && ip a; [ -z \"$IF_X\" ] && ip b", &["1 ip b"]),
            ("N=3; [ $N -eq 3 ] && ip a; [ $N -ne 3 ] && ip b", &["1 ip a"]),
            ("[ ! $2 = down ] && ip a; ! [ $2 = up ] && ip b", &["1 ip a"]),
            ("if [ $2 = up ] && [ -e /x ]; then ip a; fi", &["1? ip a"]),
            ("if [ $2 = down ] && [ -e /x ]; then ip a; fi; ip b", &["1 ip b"]),
            ("f() { ip $1; }\nf x\nip $1", &["1? ip *", "3 ip eth0"]),
            ("function f {\nip a\n}\nf", &["2? ip a"]),
            ("A=1\n[ $X = y ] && A=2\nip $A; read A B; ip $B", &["3 ip *", "3 read A B", "3 ip *"]),
        ];
        for (text, expected) in rows {
            let found: Vec<String> = of_eth0(text).into_iter().filter(|line| !line.contains("[[")).collect();
            let found: Vec<&str> = found.iter().map(String::as_str).filter(|l| !l.contains("]]")).collect();
            assert_eq!(found, expected, "{text}");
        }
    }

    #[test]
    fn an_exit_that_may_be_run_leaves_all_behind_it_uncertain() {
        assert_eq!(of_eth0("[ -x /sbin/ethtool ] || exit 0\nip a"), ["1? exit 0", "2 ip a"], "it is there");
        assert_eq!(of_eth0("command -v tc >/dev/null || exit 0\nip a").last().unwrap(), "2 ip a");
        assert_eq!(of_eth0("[ \"$X\" = y ] || exit 0\nip a"), ["1? exit 0", "2? ip a"]);
        assert_eq!(of_eth0("if grep -q x /y; then\nexit\nfi\nip a").last().unwrap(), "4? ip a");
        assert_eq!(of_eth0("case $X in a) ip a ;; *) exit 0 ;; esac\nip b").last().unwrap(), "2? ip b");
        assert_eq!(of_eth0("(exit 1)\nf() { exit 1; }\nip a").last().unwrap(), "3 ip a");
        assert_eq!(of_eth0("[ -e /x ] || { echo no; exit 1; }\nip a").last().unwrap(), "2 ip a");
    }
}
