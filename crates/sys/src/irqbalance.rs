//! The socket of irqbalance: which interrupts it leaves alone.
//!
//! In: the number of its process. Out: its ban list, or that list replaced until it ends. It answers root
//! alone, one request for each connection. It never decides which interrupts are on the list.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Longest answer: some ten thousand interrupts.
const ANSWER_BYTES_MAX: u64 = 1 << 20;
/// It answers between two rounds of work, which take milliseconds.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Where a process listens.
pub fn socket_of(process: u32) -> PathBuf {
    PathBuf::from(format!("/run/irqbalance/irqbalance{process}.sock"))
}

/// Numbers of the interrupts that it leaves alone.
pub fn banned(socket: &Path) -> io::Result<Vec<u32>> {
    let text = ask(socket, "setup")?;
    if !text.starts_with("SLEEP ") {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "not an answer of irqbalance"));
    }
    Ok(numbers(&text))
}

/// Replaces the list.
pub fn ban(socket: &Path, interrupts: &[u32]) -> io::Result<()> {
    let words: Vec<String> = interrupts.iter().map(u32::to_string).collect();
    let list = if words.is_empty() { "NONE".to_owned() } else { words.join(" ") };
    ask(socket, &format!("settings ban irqs {list}")).map(drop)
}

/// What stands behind each `IRQ`.
fn numbers(text: &str) -> Vec<u32> {
    let words = || text.split_whitespace();
    words().zip(words().skip(1)).filter_map(|(name, n)| (name == "IRQ").then(|| n.parse().ok())?).collect()
}

fn ask(socket: &Path, request: &str) -> io::Result<String> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    stream.write_all(request.as_bytes())?;
    let mut answer = Vec::new();
    stream.take(ANSWER_BYTES_MAX).read_to_end(&mut answer)?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    /// Answers as version 1.9.2 does.
    fn serve(listener: &UnixListener, list: &mut Vec<u32>) -> String {
        let (mut stream, _) = listener.accept().unwrap();
        let mut bytes = [0; 256];
        let count = stream.read(&mut bytes).unwrap();
        let request = String::from_utf8(bytes[..count].to_vec()).unwrap();
        if let Some(words) = request.strip_prefix("settings ban irqs ") {
            *list = words.split(' ').filter_map(|word| word.parse().ok()).collect();
        } else {
            let of = |number: &u32| format!("IRQ {number} LOAD 0 DIFF 7 CLASS 0 ");
            let banned: Vec<String> = list.iter().map(of).collect();
            write!(stream, "SLEEP 10 {}BANNED 00000000", banned.concat()).unwrap();
        }
        request
    }

    #[test]
    fn the_list_is_read_and_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("irqbalance1.sock");
        let listener = UnixListener::bind(&path).unwrap();
        let server = std::thread::spawn(move || {
            let mut list = vec![30];
            (0..5).map(|_| serve(&listener, &mut list)).collect::<Vec<_>>()
        });
        assert_eq!(banned(&path).unwrap(), [30]);
        ban(&path, &[37, 38]).unwrap();
        assert_eq!(banned(&path).unwrap(), [37, 38]);
        ban(&path, &[]).unwrap();
        assert_eq!(banned(&path).unwrap(), [0; 0]);
        let asked = server.join().unwrap();
        assert_eq!(asked[1], "settings ban irqs 37 38");
        assert_eq!(asked[3], "settings ban irqs NONE");
        assert!(banned(&path).is_err(), "it has ended");
    }
}
