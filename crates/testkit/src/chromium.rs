//! Chromium without a window, driven over two pipes: requests in, replies out, one JSON object each, ended by
//! a zero byte (`--remote-debugging-pipe`). Pictures are decoded, compared and written by the browser itself.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tempfile::TempDir;

/// Names of the program; the first that is installed is used.
const NAMES: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
/// Families of the golden pictures, for text and for commands; of several packages of fonts, fontconfig asks
/// for theirs first.
const FAMILIES: [&str; 2] = ["DejaVu Sans", "DejaVu Sans Mono"];
/// Longest wait for a reply, and for the end: generous, because a busy machine is no failure.
const LIMIT: Duration = Duration::from_secs(120);
/// What is shown of the output, bytes.
const OUTPUT_MAX: usize = 4000;

/// The program, where it is installed; the first name where it is not.
pub fn program() -> &'static str {
    let is_there = |name: &&str| {
        let found = Command::new("sh").args(["-c", "command -v \"$1\"", "sh", name]).output();
        found.is_ok_and(|output| output.status.success())
    };
    NAMES.into_iter().find(is_there).unwrap_or(NAMES[0])
}

/// Why boxes and pictures cannot be compared with those that were recorded with other fonts.
pub fn other_fonts() -> Option<String> {
    let other = |family: &str| {
        let found = Command::new("fc-match").args(["--format=%{family}", family]).output();
        let found = found.map_or_else(|error| error.to_string(), |o| crate::text(&o.stdout));
        // A family may have further names.
        let is_it = found.split(',').any(|name| name == family);
        (!is_it).then(|| format!("{family} is {found} here (install the package fonts-dejavu-core)"))
    };
    FAMILIES.into_iter().find_map(other)
}

/// A browser with two pages: the one that is shown, and an empty one that works on pictures, which a report
/// does not allow. All its processes and its profile end with it.
pub struct Chromium {
    /// Until its group was ended: then its number may be another's.
    child: Option<Child>,
    to: Sender<String>,
    replies: Receiver<Vec<u8>>,
    /// What it printed, once its last process is gone.
    output: Receiver<String>,
    limit: Duration,
    requests: u64,
    /// What it reported on its own since the last page was opened.
    events: Vec<Value>,
    /// Whether the page that was visited may run its scripts.
    has_scripts: bool,
    session: Option<String>,
    work: Option<String>,
    /// Removed with it.
    _profile: TempDir,
}

impl Chromium {
    /// Starts it.
    pub fn start(program: &str) -> Self {
        let mut browser = Self::unopened(program, LIMIT);
        browser.work = browser.open();
        browser.session = browser.open();
        browser
    }

    fn unopened(program: &str, limit: Duration) -> Self {
        let profile = tempfile::Builder::new().prefix("linerate-pages").tempdir().unwrap();
        let mut command = Command::new("sh");
        // It reads descriptor 3 and writes descriptor 4.
        let exec = "exec \"$0\" \"$@\" 3<&0 4>&1 </dev/null >&2";
        command.args(["-c", exec, program, "--headless", "--no-sandbox", "--disable-gpu"]);
        command.args(["--hide-scrollbars", "--disable-breakpad"]);
        command.args(["--remote-debugging-pipe", "--no-first-run", "--disable-dev-shm-usage"]);
        command.args(["--disable-background-timer-throttling", "--disable-renderer-backgrounding"]);
        command.arg(format!("--user-data-dir={}", profile.path().display()));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        let mut child = command.spawn().unwrap();
        let to = requests(child.stdin.take().unwrap());
        let replies = replies(child.stdout.take().unwrap());
        let output = whole(child.stderr.take().unwrap());
        let (session, work) = (None, None);
        let (requests, events, has_scripts) = (0, Vec::new(), true);
        Self {
            child: Some(child),
            to,
            replies,
            output,
            limit,
            requests,
            events,
            has_scripts,
            session,
            work,
            _profile: profile,
        }
    }

    /// An empty page: its session.
    fn open(&mut self) -> Option<String> {
        let target = self.call("Target.createTarget", &json!({"url": "about:blank"}));
        let attach = json!({"targetId": target["targetId"], "flatten": true});
        self.call("Target.attachToTarget", &attach)["sessionId"].as_str().map(str::to_owned)
    }

    fn call(&mut self, method: &str, parameters: &Value) -> Value {
        self.requests += 1;
        let mut request = json!({"id": self.requests, "method": method, "params": parameters});
        if let Some(session) = &self.session {
            request["sessionId"] = json!(session);
        }
        // Where it is gone, there is no reply either.
        let _ = self.to.send(request.to_string());
        let deadline = Instant::now() + self.limit;
        loop {
            let mut reply = self.next(method, deadline);
            if reply["id"] == json!(self.requests) {
                assert!(reply["error"].is_null(), "{method}: {}", reply["error"]);
                return reply["result"].take();
            }
            self.events.push(reply);
        }
    }

    /// The next reply or event.
    fn next(&mut self, method: &str, deadline: Instant) -> Value {
        let left = deadline.saturating_duration_since(Instant::now());
        match self.replies.recv_timeout(left) {
            Ok(reply) => serde_json::from_slice(&reply).unwrap(),
            Err(RecvTimeoutError::Timeout) => {
                self.fail(&format!("{method}: no reply of Chromium within {} s", self.limit.as_secs()))
            }
            Err(RecvTimeoutError::Disconnected) => self.fail(&format!("{method}: Chromium ended")),
        }
    }

    /// Waits for an event of the page that is shown.
    fn wait_for(&mut self, event: &str) {
        let deadline = Instant::now() + self.limit;
        while !self.events.iter().any(|one| one["method"] == json!(event)) {
            let next = self.next(event, deadline);
            self.events.push(next);
        }
    }

    /// Fails with what it printed.
    fn fail(&mut self, what: &str) -> ! {
        let output = self.kill();
        let end = output.len().saturating_sub(OUTPUT_MAX);
        panic!("{what}; it printed:\n{}", String::from_utf8_lossy(&output.as_bytes()[end..]));
    }

    /// Ends all its processes; returns what they printed.
    fn kill(&mut self) -> String {
        if let Some(mut child) = self.child.take() {
            let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
            let _ = child.wait();
        }
        self.output.recv_timeout(LIMIT).unwrap_or_default()
    }

    fn window(&mut self, width: u32, height: u32, is_dark: bool) {
        let size = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        self.call("Emulation.setDeviceMetricsOverride", &size);
        let mode = if is_dark { "dark" } else { "light" };
        let features = json!({"features": [{"name": "prefers-color-scheme", "value": mode}]});
        self.call("Emulation.setEmulatedMedia", &features);
    }

    /// Opens the page of an address in a window of this size, with or without its scripts, and waits until it
    /// is loaded.
    pub fn visit(&mut self, address: &str, (width, height): (u32, u32), is_dark: bool, has_scripts: bool) {
        for domain in ["Page", "Runtime", "Log", "Network"] {
            self.call(&format!("{domain}.enable"), &json!({}));
        }
        self.window(width, height, is_dark);
        self.call("Emulation.setScriptExecutionDisabled", &json!({"value": !has_scripts}));
        self.has_scripts = has_scripts;
        self.events.clear();
        self.call("Page.navigate", &json!({"url": address}));
        self.wait_for("Page.loadEventFired");
    }

    /// What is wrong with the page that was visited, as the browser reports it: errors of the console and of
    /// its policy, exceptions, requests that failed, and requests to another server than this one.
    pub fn complaints(&mut self, server: &str) -> Vec<String> {
        // What the page did until now has been reported when this is answered.
        let in_next_frame = "new Promise(done => requestAnimationFrame(() => setTimeout(() => done(1), 0)))";
        let _: f64 = self.evaluate(if self.has_scripts { in_next_frame } else { "1" });
        let events = std::mem::take(&mut self.events);
        let of = |event: &Value| {
            let of = &event["params"];
            match event["method"].as_str().unwrap_or_default() {
                "Runtime.consoleAPICalled" | "Runtime.exceptionThrown" | "Log.entryAdded" => {
                    Some(of.to_string())
                }
                // Events of a page that is left.
                "Network.loadingFailed" if of["canceled"] != json!(true) => Some(of.to_string()),
                "Network.responseReceived" if of["response"]["status"].as_u64() >= Some(400) => {
                    Some(of["response"]["url"].to_string())
                }
                "Network.requestWillBeSent" => {
                    let address = of["request"]["url"].as_str().unwrap_or_default();
                    let is_own = address.starts_with(server) || address.starts_with("data:");
                    (!is_own).then(|| format!("a request to {address}"))
                }
                _ => None,
            }
        };
        events.iter().filter_map(of).collect()
    }

    /// Presses a key, by its name.
    pub fn press(&mut self, key: &str) {
        let down = if key == "Enter" {
            json!({"type": "keyDown", "key": key, "text": "\r", "windowsVirtualKeyCode": 13})
        } else {
            json!({"type": "keyDown", "key": key})
        };
        self.call("Input.dispatchKeyEvent", &down);
        self.call("Input.dispatchKeyEvent", &json!({"type": "keyUp", "key": key}));
    }

    /// Clicks at a point of the window.
    pub fn click(&mut self, x: f64, y: f64) {
        for kind in ["mousePressed", "mouseReleased"] {
            let event = json!({"type": kind, "x": x, "y": y, "button": "left", "clickCount": 1});
            self.call("Input.dispatchMouseEvent", &event);
        }
    }

    /// Shows a page in a window of this size.
    pub fn show(&mut self, page: &str, width: u32, height: u32, is_dark: bool) {
        self.window(width, height, is_dark);
        let tree = self.call("Page.getFrameTree", &json!({}));
        let [text, commands] = FAMILIES;
        let fonts = format!(
            "<style>body{{font-family:'{text}'!important}}pre,code{{font-family:'{commands}'!important}}</style>"
        );
        let html = page.replacen("</head>", &format!("{fonts}</head>"), 1);
        let content = json!({"frameId": tree["frameTree"]["frame"]["id"], "html": html});
        self.call("Page.setDocumentContent", &content);
    }

    /// What a script returns.
    pub fn evaluate<T: DeserializeOwned>(&mut self, script: &str) -> T {
        let request = json!({"expression": script, "returnByValue": true, "awaitPromise": true});
        let mut reply = self.call("Runtime.evaluate", &request);
        assert!(reply["exceptionDetails"].is_null(), "{}", reply["exceptionDetails"]);
        serde_json::from_value(reply["result"]["value"].take()).unwrap()
    }

    /// The whole page that was visited as PNG.
    pub fn whole_picture(&mut self) -> Vec<u8> {
        let beyond = json!({"format": "png", "captureBeyondViewport": true});
        let reply = self.call("Page.captureScreenshot", &beyond);
        decoded(reply["data"].as_str().unwrap())
    }

    /// The window as PNG.
    pub fn picture(&mut self) -> Vec<u8> {
        let reply = self.call("Page.captureScreenshot", &json!({"format": "png"}));
        decoded(reply["data"].as_str().unwrap())
    }

    /// The same picture with at most 64 colours: a third of the bytes.
    pub fn indexed(&mut self, png: &[u8]) -> Vec<u8> {
        let script = format!("{}\nindexed('{}')", include_str!("picture.js"), encoded(png));
        decoded(&self.on_blank::<String>(&script))
    }

    /// The share of the squares of 16 x 16 pixels that differ visibly.
    pub fn difference(&mut self, a: &[u8], b: &[u8]) -> f64 {
        let script =
            format!("{}\ndifference('{}', '{}')", include_str!("picture.js"), encoded(a), encoded(b));
        self.on_blank(&script)
    }

    fn on_blank<T: DeserializeOwned>(&mut self, script: &str) -> T {
        std::mem::swap(&mut self.session, &mut self.work);
        let value = self.evaluate(&format!("(async () => {{ {} }})()", returning(script)));
        std::mem::swap(&mut self.session, &mut self.work);
        value
    }
}

impl Drop for Chromium {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Writes requests to a pipe that may be full.
fn requests(mut pipe: impl Write + Send + 'static) -> Sender<String> {
    let (to, requests) = channel::<String>();
    std::thread::spawn(move || {
        requests
            .iter()
            .take_while(|request| pipe.write_all(format!("{request}\0").as_bytes()).is_ok())
            .count()
    });
    to
}

/// Reads replies until the pipe ends.
fn replies(pipe: impl Read + Send + 'static) -> Receiver<Vec<u8>> {
    let (to, replies) = channel();
    std::thread::spawn(move || {
        BufReader::new(pipe)
            .split(0)
            .map_while(Result::ok)
            .take_while(|reply| to.send(reply.clone()).is_ok())
            .count()
    });
    replies
}

/// Reads until the last process that has the pipe is gone.
fn whole(mut pipe: impl Read + Send + 'static) -> Receiver<String> {
    let (to, output) = channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = pipe.read_to_end(&mut bytes);
        let _ = to.send(crate::text(&bytes));
    });
    output
}

/// The last line of a script as its value.
fn returning(script: &str) -> String {
    let (head, last) = script.rsplit_once('\n').unwrap_or(("", script));
    format!("{head}\nreturn {last}")
}

const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

fn encoded(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let byte = |i: usize| u32::from(three.get(i).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for i in 0..4 {
            let letter = LETTERS[(bits >> (18 - 6 * i) & 63) as usize];
            text.push(if i <= three.len() { char::from(letter) } else { '=' });
        }
    }
    text
}

fn decoded(text: &str) -> Vec<u8> {
    let values = text.bytes().filter_map(|letter| LETTERS.iter().position(|l| *l == letter));
    let values: Vec<usize> = values.collect();
    let mut bytes = Vec::with_capacity(values.len() * 3 / 4);
    for four in values.chunks(4) {
        let bits = (0..4).fold(0, |bits, i| bits << 6 | four.get(i).copied().unwrap_or(0));
        for i in 0..four.len().saturating_sub(1) {
            bytes.push((bits >> (16 - 8 * i) & 255) as u8);
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_read_back() {
        for text in ["", "a", "ab", "abc", "abcd"] {
            assert_eq!(decoded(&encoded(text.as_bytes())), text.as_bytes());
        }
        assert_eq!(encoded(b"ab"), "YWI=");
    }

    #[test]
    #[allow(clippy::used_underscore_binding)]
    fn a_browser_that_hangs_fails_with_its_output() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("hangs");
        let script = "#!/bin/sh\necho \"profile $*\" >&2\nprintf '{}\\0' >&4\n(exec tail -f /dev/null) &\nexec tail -f /dev/null\n";
        std::fs::write(&program, script).unwrap();
        crate::run("chmod", &["+x", &program.to_string_lossy()]);
        let mut browser = Chromium::unopened(&program.to_string_lossy(), Duration::from_secs(1));
        let profile = browser._profile.path().to_owned();
        assert!(profile.is_dir());
        browser.replies.recv_timeout(LIMIT).unwrap();
        let failed =
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(move || browser.open())).unwrap_err();
        let text = failed.downcast_ref::<String>().unwrap();
        assert!(text.starts_with("Target.createTarget: no reply of Chromium within 1 s"), "{text}");
        // The output is whole, so that no process holds its pipe.
        assert!(text.contains(&format!("--user-data-dir={}", profile.display())), "{text}");
        assert!(!profile.exists());
    }

    #[test]
    fn a_browser_that_ends_fails_with_its_output() {
        let mut browser = Chromium::unopened("false", LIMIT);
        let failed =
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(move || browser.open())).unwrap_err();
        assert!(failed.downcast_ref::<String>().unwrap().contains("Chromium ended"));
    }
}
