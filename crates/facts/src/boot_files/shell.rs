//! Commands of a shell script, as far as they can be known without running it. Pure.
//!
//! What an expansion gives is not known: it stands as `*` in its word, as a pattern does. A command that a
//! condition, a loop, a function or a pipe decides about is not certain. Commands after an `exit` that is
//! certain are never run, and are left out.

/// A command of a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ShellCommand {
    /// Line of its first word, from 1.
    pub(super) number: usize,
    /// Program and arguments.
    pub(super) words: Vec<String>,
    /// File that its output replaces.
    pub(super) into: Option<String>,
    /// Whether it is run, once, and by itself.
    pub(super) is_certain: bool,
}

/// What joins a command to the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Joint {
    Always,
    Success,
    Failure,
    Pipe,
}

/// Programs that succeed, so that what `&&` joins to them is run.
const SUCCEEDS: [&str; 12] =
    ["ip", "ethtool", "sysctl", "tc", "ifconfig", "echo", "true", ":", "sleep", "cd", "modprobe", "touch"];
/// Words before a program that change nothing about what it does.
const PREFIXES: [&str; 6] = ["!", "command", "exec", "nohup", "sudo", "time"];

/// The commands of a script.
pub(super) fn commands(text: &str) -> Vec<ShellCommand> {
    let mut found: Vec<ShellCommand> = Vec::new();
    let mut depth = 0_usize;
    let raw = Reader::new(text).all();
    for (at, one) in raw.iter().enumerate() {
        let mut words = &one.words[..];
        let in_pipe =
            one.joint == Joint::Pipe || raw.get(at + 1).is_some_and(|next| next.joint == Joint::Pipe);
        let mut is_over = false;
        while let Some(word) = words.first() {
            match word.as_str() {
                "if" | "while" | "until" | "{" | "(" => depth += 1,
                "then" | "do" | "else" | "elif" => {}
                "for" | "case" | "select" => {
                    depth += 1;
                    is_over = true;
                }
                "fi" | "done" | "esac" | "}" | ")" => {
                    depth = depth.saturating_sub(1);
                    is_over = true;
                }
                _ => break,
            }
            words = if is_over { &[] } else { &words[1..] };
        }
        let is_exec = words.first().is_some_and(|word| word == "exec");
        while words.len() > 1 && (PREFIXES.contains(&words[0].as_str()) || is_assignment(&words[0])) {
            words = &words[1..];
        }
        let is_joined = match one.joint {
            Joint::Always => true,
            Joint::Success => found.last().is_some_and(|last| last.is_certain && succeeds(&last.words)),
            Joint::Failure | Joint::Pipe => false,
        };
        let is_certain = depth == 0 && !in_pipe && is_joined;
        let Some(program) = words.first() else { continue };
        let is_end = is_certain && (program == "exit" || is_exec && program != "exec");
        let command =
            ShellCommand { number: one.number, words: words.to_vec(), into: one.into.clone(), is_certain };
        found.push(command);
        if is_end {
            break;
        }
    }
    found
}

/// Name of a program without its folder.
pub(super) fn program(words: &[String]) -> &str {
    words.first().map_or("", |word| word.rsplit('/').next().unwrap_or_default())
}

fn succeeds(words: &[String]) -> bool {
    SUCCEEDS.contains(&program(words))
}

fn is_assignment(word: &str) -> bool {
    let is_name =
        |name: &str| !name.is_empty() && name.chars().all(|c| c == '_' || c.is_ascii_alphanumeric());
    word.split_once('=').is_some_and(|(name, _)| is_name(name))
}

/// A command before its keywords are read.
struct Raw {
    number: usize,
    joint: Joint,
    words: Vec<String>,
    into: Option<String>,
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
            now: Raw { number: 1, joint: Joint::Always, words: Vec::new(), into: None },
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
        self.word.get_or_insert_default().push(c);
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
        let fresh = Raw { number: self.number, joint: next, words: Vec::new(), into: None };
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

    /// `$name`, `${…}`, `$(…)`, `` `…` ``: any text.
    fn expansion(&mut self, first: char) {
        self.add('*');
        if first == '`' {
            while let Some(c) = self.rest.next_if(|c| *c != '`') {
                self.number += usize::from(c == '\n');
            }
            self.rest.next();
            return;
        }
        let (open, close) = match self.rest.peek() {
            Some('{') => ('{', '}'),
            Some('(') => ('(', ')'),
            Some(c) if c.is_ascii_alphabetic() || *c == '_' => {
                while self.rest.next_if(|c| *c == '_' || c.is_ascii_alphanumeric()).is_some() {}
                return;
            }
            _ => {
                self.rest.next_if(|c| c.is_ascii_digit() || "@*#?$!-".contains(*c));
                return;
            }
        };
        let mut depth = 0_usize;
        for c in self.rest.by_ref() {
            depth += usize::from(c == open);
            depth -= usize::from(c == close);
            self.number += usize::from(c == '\n');
            if depth == 0 {
                return;
            }
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
        if self.word.is_some() && self.rest.next_if_eq(&')').is_some() {
            // Its body is in braces, and is not run here.
            self.word = None;
            return;
        }
        self.end_command(Joint::Always);
        self.lists += 1;
        self.add('(');
        self.end_command(Joint::Always);
    }

    /// The end of a list of commands, else of the patterns of a `case`, which are no commands.
    fn closing(&mut self) {
        self.end_word();
        if self.lists == 0 {
            while self.now.joint == Joint::Pipe {
                let Some(before) = self.done.pop() else { break };
                self.now.joint = before.joint;
            }
            self.now.words.clear();
            return;
        }
        self.lists -= 1;
        self.end_command(Joint::Always);
        self.add(')');
        self.end_command(Joint::Always);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Vec<String> {
        let of = |one: ShellCommand| {
            let into = one.into.map_or_else(String::new, |into| format!(" > {into}"));
            let mark = if one.is_certain { "" } else { "?" };
            format!("{}{mark} {}{into}", one.number, one.words.join(" "))
        };
        commands(text).into_iter().map(of).collect()
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
        assert_eq!(shown(block), ["1? [ -e x ]", "2? ip a", "3? ip b", "4? ip *", "5 ip c"]);
        let case = "case $1 in\n start|x) ip a ;;\n *) ip b;;\nesac\nip c";
        assert!(shown(case).iter().all(|line| line == "5 ip c" || line.contains('?')), "{:?}", shown(case));
        assert_eq!(shown(case).last().map(String::as_str), Some("5 ip c"));
        assert_eq!(shown("f() {\n ip a\n}\n(ip b; ip d)\nip c"), ["2? ip a", "4? ip b", "4? ip d", "5 ip c"]);
    }

    #[test]
    fn nothing_is_run_behind_an_exit_and_no_text_is_a_command() {
        assert_eq!(shown("ip a\nexit 0\nip b"), ["1 ip a", "2 exit 0"]);
        assert_eq!(shown("ip a || exit 1\nip b").last().map(String::as_str), Some("2 ip b"));
        assert_eq!(shown("exec 2>/tmp/x\nip b"), ["1 exec", "2 ip b"]);
        assert_eq!(shown("exec /opt/x\nip b"), ["1 /opt/x"]);
        assert_eq!(shown("cat <<EOF >x\nip a\nEOF\nip b"), ["1 cat > x", "4 ip b"]);
    }
}
