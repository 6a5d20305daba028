//! Settings in sentences: `we set net.ipv4.tcp_tw_recycle to 1`. A line comes in, facts of sysctl go out, of
//! the same names as those of `sysctl -a`.

use super::sysctl;
use crate::reader::{Block, Reader};
use crate::sink::Sink;

/// The format.
pub(crate) struct StatedSettings;

/// Words between a name and its value.
const BETWEEN: [&str; 6] = ["to", "is", "was", "at", "=", "set"];
/// Most of them.
const BETWEEN_MAX: usize = 3;
/// Longest line that is checked, bytes.
const LINE_MAX: usize = 400;

/// Names with their values, each a number.
fn settings(line: &str) -> Vec<(String, &str)> {
    let words: Vec<&str> =
        if line.len() <= LINE_MAX { line.split_whitespace().collect() } else { Vec::new() };
    let plain = |word: &str| word.trim_matches(|c: char| !c.is_ascii_alphanumeric()).to_owned();
    let value = |from: usize| {
        let rest = words.get(from..)?;
        let between = rest.iter().take(BETWEEN_MAX).take_while(|word| BETWEEN.contains(*word)).count();
        let value = rest.get(between).filter(|_| between > 0)?.trim_end_matches(['.', ',', ';', ')', ':']);
        value.parse::<i64>().is_ok().then_some(value)
    };
    let at = |i: usize| {
        let name = plain(words[i]);
        (name.matches('.').count() >= 2).then_some(())?;
        sysctl::kept(name, value(i + 1)?)
    };
    (0..words.len()).filter_map(at).collect()
}

impl Reader for StatedSettings {
    fn name(&self) -> &'static str {
        "stated-settings"
    }

    fn describes(&self) -> &'static str {
        "sentences: values of settings of the kernel"
    }

    fn is_prose(&self) -> bool {
        true
    }

    fn begins(&self, block: &Block<'_>) -> bool {
        let line = block.first();
        ["net.", "vm.", "kernel."].iter().any(|top| line.contains(top)) && !settings(line).is_empty()
    }

    fn read(&self, block: &Block<'_>, out: &mut Sink) -> usize {
        for (name, value) in settings(block.first()) {
            out.text(format!("sysctl.{name}"), value);
        }
        1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_state_settings() {
        let of = |line| {
            settings(line).into_iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>()
        };
        assert_eq!(of("We set net.ipv4.tcp_tw_recycle to 1 on the proxies."), ["net.ipv4.tcp_tw_recycle=1"]);
        assert_eq!(of("(`net.core.somaxconn` is 128, vm.swappiness=1)"), ["net.core.somaxconn=128"]);
        for line in
            ["net.ipv4.tcp_rmem is small", "a.b.c to 1", "net.ipv4.tcp_tw_recycle 1", "x net.core to 5"]
        {
            assert_eq!(of(line), [""; 0], "{line}");
        }
    }
}
