//! The words of a shell script, taken apart without running it: commands with what joins them, the file of
//! their output, quotes taken off. Pure. Which of them are run is decided in `flow.rs`.
//!
//! `$name` stands in a word as [`OPEN`], the name and [`CLOSE`]; what any other expansion gives is
//! [`UNKNOWN`]. No word of a script has these characters itself.

/// Begins the name of a variable in a word.
pub(super) const OPEN: char = '\u{1}';
/// Ends it.
pub(super) const CLOSE: char = '\u{2}';
/// Any text.
pub(super) const UNKNOWN: char = '\u{3}';

/// What joins a command to the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Joint {
    Always,
    Success,
    Failure,
    Pipe,
}

/// Takes a script apart.
pub(super) fn raw_commands(text: &str) -> Vec<Raw> {
    Reader::new(text).all()
}

/// A command before its keywords are read.
#[derive(Debug)]
pub(super) struct Raw {
    /// Line of its first word, from 1.
    pub(super) number: usize,
    pub(super) joint: Joint,
    pub(super) words: Vec<String>,
    /// File that its output replaces.
    pub(super) into: Option<String>,
    /// Whether the words are patterns of a `case`.
    pub(super) are_patterns: bool,
}

impl Raw {
    fn new(number: usize, joint: Joint) -> Self {
        Self { number, joint, words: Vec::new(), into: None, are_patterns: false }
    }
}

/// Takes a text apart, character by character.
struct Reader<'t> {
    rest: std::iter::Peekable<std::str::Chars<'t>>,
    number: usize,
    /// The word that is being read, quotes taken off.
    word: Option<String>,
    now: Raw,
    done: Vec<Raw>,
    /// Whether the next word is the file of an output.
    is_into: bool,
    /// Whether the next word is a file that is no output that counts.
    is_other_file: bool,
    /// The line that ends a text in the script.
    until: Option<String>,
    is_until: bool,
    /// Lists of commands that are open.
    lists: usize,
}

impl<'t> Reader<'t> {
    fn new(text: &'t str) -> Self {
        Self {
            rest: text.chars().peekable(),
            number: 1,
            word: None,
            now: Raw::new(1, Joint::Always),
            done: Vec::new(),
            is_into: false,
            is_other_file: false,
            until: None,
            is_until: false,
            lists: 0,
        }
    }

    fn all(mut self) -> Vec<Raw> {
        while let Some(c) = self.rest.next() {
            match c {
                '\\' => match self.rest.next() {
                    Some('\n') => self.number += 1,
                    Some(c) => self.add(c),
                    None => {}
                },
                '\'' => self.quoted(),
                '"' => self.double_quoted(),
                '$' | '`' => self.expansion(c),
                '#' if self.word.is_none() => while self.rest.next_if(|c| *c != '\n').is_some() {},
                '\n' => {
                    self.end_command(Joint::Always);
                    self.number += 1;
                    self.skip_text();
                }
                c if c.is_whitespace() => self.end_word(),
                '&' if self.rest.next_if_eq(&'&').is_some() => self.end_command(Joint::Success),
                '&' if self.rest.peek() == Some(&'>') => self.end_word(),
                ';' | '&' => self.end_command(Joint::Always),
                '|' if self.rest.next_if_eq(&'|').is_some() => self.end_command(Joint::Failure),
                '|' => self.end_command(Joint::Pipe),
                '>' => self.output(),
                '<' => self.input(),
                '(' => self.parenthesis(),
                ')' => self.closing(),
                c => self.add(c),
            }
        }
        self.end_command(Joint::Always);
        self.done
    }

    fn add(&mut self, c: char) {
        let word = self.word.get_or_insert_default();
        if ![OPEN, CLOSE, UNKNOWN].contains(&c) {
            word.push(c);
        }
    }

    fn end_word(&mut self) {
        let Some(word) = self.word.take() else { return };
        if std::mem::take(&mut self.is_until) {
            self.until = Some(word);
        } else if std::mem::take(&mut self.is_into) {
            self.now.into = Some(word);
        } else if !std::mem::take(&mut self.is_other_file) {
            if self.now.words.is_empty() {
                self.now.number = self.number;
            }
            self.now.words.push(word);
        }
    }

    fn end_command(&mut self, next: Joint) {
        self.end_word();
        let fresh = Raw::new(self.number, next);
        let is_empty = self.now.words.is_empty() && self.now.into.is_none();
        if is_empty && next == Joint::Always {
            // A line that ends behind `&&` goes on in the next one.
            return;
        }
        self.done.push(std::mem::replace(&mut self.now, fresh));
    }

    fn quoted(&mut self) {
        self.word.get_or_insert_default();
        while let Some(c) = self.rest.next_if(|c| *c != '\'') {
            self.number += usize::from(c == '\n');
            self.add(c);
        }
        self.rest.next();
    }

    fn double_quoted(&mut self) {
        self.word.get_or_insert_default();
        while let Some(c) = self.rest.next() {
            match c {
                '"' => return,
                '\\' => {
                    if let Some(c) = self.rest.next() {
                        self.number += usize::from(c == '\n');
                        self.add(c);
                    }
                }
                '$' | '`' => self.expansion(c),
                c => {
                    self.number += usize::from(c == '\n');
                    self.add(c);
                }
            }
        }
    }

    /// `$name` and `${name}`: a name. `${…}`, `$(…)`, `` `…` ``: any text.
    fn expansion(&mut self, first: char) {
        if first == '`' {
            while let Some(c) = self.rest.next_if(|c| *c != '`') {
                self.number += usize::from(c == '\n');
            }
            self.rest.next();
            return self.put(UNKNOWN, "");
        }
        let (open, close) = match self.rest.peek() {
            Some('{') => ('{', '}'),
            Some('(') => ('(', ')'),
            Some(c) if c.is_ascii_alphabetic() || *c == '_' => {
                let is_of_name = |c: &char| *c == '_' || c.is_ascii_alphanumeric();
                let name: String = std::iter::from_fn(|| self.rest.next_if(is_of_name)).collect();
                return self.put(OPEN, &name);
            }
            _ => {
                return match self.rest.next_if(|c| c.is_ascii_digit() || "@*#?$!-".contains(*c)) {
                    Some(digit) if digit.is_ascii_digit() => self.put(OPEN, &digit.to_string()),
                    _ => self.put(UNKNOWN, ""),
                };
            }
        };
        let (mut depth, mut inside) = (0_usize, String::new());
        for c in self.rest.by_ref() {
            depth += usize::from(c == open);
            depth -= usize::from(c == close);
            self.number += usize::from(c == '\n');
            if depth == 0 {
                break;
            }
            inside.push(c);
        }
        let name = inside.get(1..).unwrap_or_default();
        let is_name = !name.is_empty() && name.chars().all(|c| c == '_' || c.is_ascii_alphanumeric());
        if open == '{' && is_name { self.put(OPEN, name) } else { self.put(UNKNOWN, "") }
    }

    /// Adds what an expansion gives.
    fn put(&mut self, first: char, name: &str) {
        let word = self.word.get_or_insert_default();
        word.push(first);
        if first == OPEN {
            word.extend(name.chars().chain([CLOSE]));
        }
    }

    /// `>`, `>>`, `2>`, `>&2`: only that of the output counts.
    fn output(&mut self) {
        let is_number = |word: &String| word.bytes().all(|b| b.is_ascii_digit());
        let of = self.word.take_if(|word| is_number(word));
        self.end_word();
        while self.rest.next_if(|c| *c == '>' || *c == '|').is_some() {}
        let is_copy = self.rest.next_if_eq(&'&').is_some();
        let is_standard = of.is_none_or(|number| number == "1");
        self.is_into = is_standard && !is_copy;
        self.is_other_file = !self.is_into;
    }

    /// `<`, `<<` and `<<<`.
    fn input(&mut self) {
        self.end_word();
        let count = 1 + std::iter::from_fn(|| self.rest.next_if_eq(&'<')).count();
        self.rest.next_if_eq(&'-');
        self.is_until = count == 2;
        self.is_other_file = count != 2;
    }

    /// Leaves out the lines of a text in the script.
    fn skip_text(&mut self) {
        let Some(until) = self.until.take() else { return };
        while self.rest.peek().is_some() {
            let line: String = std::iter::from_fn(|| self.rest.next_if(|c| *c != '\n')).collect();
            self.rest.next();
            self.number += 1;
            if line.trim() == until {
                return;
            }
        }
    }

    /// `name()` begins a function, `(` a list of commands.
    fn parenthesis(&mut self) {
        while self.rest.next_if_eq(&' ').is_some() {}
        if self.rest.next_if_eq(&')').is_some() {
            self.end_word();
            if self.now.words.len() == 1 {
                self.now.words.insert(0, "function".to_owned());
            }
            return self.end_command(Joint::Always);
        }
        self.end_command(Joint::Always);
        self.lists += 1;
        self.add('(');
        self.end_command(Joint::Always);
    }

    /// The end of a list of commands, else of the patterns of a `case`.
    fn closing(&mut self) {
        self.end_word();
        if self.lists > 0 {
            self.lists -= 1;
            self.end_command(Joint::Always);
            self.add(')');
            return self.end_command(Joint::Always);
        }
        let mut patterns = std::mem::take(&mut self.now.words);
        while self.now.joint == Joint::Pipe {
            let Some(before) = self.done.pop() else { break };
            self.now.joint = before.joint;
            patterns.splice(0..0, before.words);
        }
        // `case WORD in PATTERN)` on one line.
        if matches!(&patterns[..], [case, _, within, ..] if case == "case" && within == "in") {
            let rest = patterns.split_off(3);
            self.done.push(Raw { words: patterns, ..Raw::new(self.now.number, self.now.joint) });
            patterns = rest;
        }
        self.done.push(Raw { words: patterns, are_patterns: true, ..Raw::new(self.number, Joint::Always) });
        self.now = Raw::new(self.number, Joint::Always);
    }
}
