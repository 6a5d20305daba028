//! Lines that describe a machine or a writer rather than what is wrong: headers and signatures of mails,
//! what `uname` and `docker info` print. Their words are no words of the text. Lines come in, in order, a yes
//! or no goes out; nothing is dropped, each line is still in the account.

/// Fewest words of a sentence.
const SENTENCE_MIN: usize = 4;
/// Lines at the top of a text in which the headers of a mail stand.
const HEADERS_MAX: usize = 12;
/// Most lines of a signature.
const SIGNATURE_MAX: usize = 6;
/// Most words of a line that announces the output of a command.
const TITLE_MAX: usize = 6;
/// Headers of mails; the subject is part of the text.
const HEADERS: [&str; 9] =
    ["From:", "To:", "Cc:", "Date:", "Message-ID:", "In-Reply-To:", "References:", "List-Id:", "Reply-To:"];
/// Commands that list what a machine is made of, whatever is wrong with it.
const DESCRIBING: [&str; 12] = [
    "uname",
    "docker info",
    "docker version",
    "podman info",
    "podman version",
    "hostnamectl",
    "lsb_release",
    "os-release",
    "neofetch",
    "lscpu",
    "lsmod",
    "cpuinfo",
];

/// State of the text around a line.
#[derive(Debug, Default)]
pub(crate) struct Aside {
    /// Lines of a signature that are left.
    signature: usize,
    /// A command that only describes the machine was the last one.
    describes: bool,
}

impl Aside {
    /// A command was typed.
    pub(crate) fn typed(&mut self, command: &str) {
        *self = Self { signature: 0, describes: names_describing(command) };
    }

    /// A line that only frames text.
    pub(crate) fn framed(&mut self, line: &str) {
        let rest = self.signature.saturating_sub(usize::from(line.trim().is_empty()) * SIGNATURE_MAX);
        self.signature = if line.trim_end() == "--" { SIGNATURE_MAX } else { rest };
    }

    /// Whether a line is such a line; `at` is its number.
    pub(crate) fn is(&mut self, at: usize, line: &str) -> bool {
        if self.signature > 0 {
            self.signature -= 1;
            return true;
        }
        let announces = line.split_whitespace().count() <= TITLE_MAX && names_describing(line);
        if announces {
            self.describes = true;
        } else if is_sentence(line) && !line.starts_with([' ', '\t']) && !is_entry(line) {
            self.describes = false;
        }
        self.describes || is_uname(line) || at < HEADERS_MAX && HEADERS.iter().any(|h| line.starts_with(h))
    }
}

/// Whether a line is made of words rather than of the output of a tool.
pub(crate) fn is_sentence(line: &str) -> bool {
    !line.contains(['=', '<', '/'])
        && line.split_whitespace().filter(|w| w.starts_with(char::is_alphabetic)).count() >= SENTENCE_MIN
}

fn names_describing(text: &str) -> bool {
    let plain: Vec<&str> =
        text.split(|c: char| !(c.is_alphanumeric() || "-_".contains(c))).filter(|w| !w.is_empty()).collect();
    let plain = format!(" {} ", plain.join(" "));
    DESCRIBING.iter().any(|known| plain.contains(&format!(" {known} ")))
}

/// `Storage Driver: overlay2`: a short name, a colon.
fn is_entry(line: &str) -> bool {
    line.split_once(": ").is_some_and(|(name, _)| name.split_whitespace().count() <= 3)
}

/// `Linux gw 6.1.0-18-amd64 #1 SMP …`.
fn is_uname(line: &str) -> bool {
    line.trim_start().starts_with("Linux ") && line.contains(" #")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(text: &str) -> Vec<&str> {
        let mut aside = Aside::default();
        let mut kept = Vec::new();
        for (at, line) in text.lines().enumerate() {
            match line.strip_prefix("$ ") {
                Some(command) => aside.typed(command),
                None if line.trim().is_empty() || line.trim_end() == "--" => aside.framed(line),
                None if aside.is(at, line) => {}
                None => kept.push(line),
            }
        }
        kept
    }

    #[test]
    fn what_describes_a_machine_or_a_writer_is_aside() {
        let mail = "From: A <a@example.org>\nSubject: slow mount\n\nThe mount is slow today.\n\n-- \nA, Storage Team\nhttps://example.org\n\nPS: NFS";
        assert_eq!(kept(mail), ["Subject: slow mount", "The mount is slow today.", "PS: NFS"]);
        let info = "$ docker info\nClient:\n Storage Driver: overlay2\n\nServer:\n Network: bridge host macvlan null overlay\nThe drive is fine, as it seems.\n drive: ok";
        assert_eq!(kept(info), ["The drive is fine, as it seems.", " drive: ok"]);
        let title = "Output of `docker info`:\n Driver: overlay2\n$ ping b\nis slow";
        assert_eq!(kept(title), ["is slow"]);
        assert_eq!(kept("Linux gw 6.1.0 #1 SMP x86_64 GNU/Linux\nLinux is fine"), ["Linux is fine"]);
    }
}
