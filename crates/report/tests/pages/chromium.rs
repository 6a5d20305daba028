//! Chromium without a window, driven over two pipes: requests in, replies out, one JSON object each, ended by
//! a zero byte (`--remote-debugging-pipe`). Pictures are decoded, compared and written by the browser itself.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// Names of the program; the first that is installed is used.
const NAMES: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
/// Every machine that has Chromium has these (fontconfig depends on them); a font of the machine would decide
/// about the layout.
const FONTS: &str = "<style>body{font-family:'DejaVu Sans'!important}pre,code{font-family:'DejaVu Sans Mono'!important}</style>";

/// The program, where it is installed.
pub(crate) fn program() -> Option<&'static str> {
    let is_there = |name: &&str| {
        let found = Command::new("sh").args(["-c", "command -v \"$1\"", "sh", name]).output();
        found.is_ok_and(|output| output.status.success())
    };
    NAMES.into_iter().find(|name| is_there(name))
}

/// A browser with two pages: the one that is shown, and an empty one that works on pictures, which a report
/// does not allow.
pub(crate) struct Chromium {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    requests: u64,
    session: Option<String>,
    work: Option<String>,
    profile: PathBuf,
}

impl Chromium {
    /// Starts it.
    pub(crate) fn start(program: &str) -> Self {
        let mut unique = tempfile::Builder::new().prefix("linerate-pages").tempdir().unwrap();
        unique.disable_cleanup(true);
        let profile = unique.path().to_owned();
        let mut command = Command::new("sh");
        // It reads descriptor 3 and writes descriptor 4.
        let exec = "exec \"$0\" \"$@\" 3<&0 4>&1 </dev/null >/dev/null 2>&1";
        command.args([
            "-c",
            exec,
            program,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
        ]);
        command.args(["--remote-debugging-pipe", "--no-first-run", "--disable-dev-shm-usage"]);
        command.args(["--disable-background-timer-throttling", "--disable-renderer-backgrounding"]);
        command.arg(format!("--user-data-dir={}", profile.display()));
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (to, from) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        let mut browser = Self { child, to, from, requests: 0, session: None, work: None, profile };
        browser.work = browser.open();
        browser.session = browser.open();
        browser
    }

    /// An empty page: its session.
    fn open(&mut self) -> Option<String> {
        let target = self.call("Target.createTarget", &json!({"url": "about:blank"}));
        let attach = json!({"targetId": target["targetId"], "flatten": true});
        self.call("Target.attachToTarget", &attach)["sessionId"].as_str().map(str::to_owned)
    }

    /// Ends it and removes its profile.
    pub(crate) fn end(mut self) {
        self.session = None;
        self.call("Browser.close", &json!({}));
        self.child.wait().unwrap();
        let _ = std::fs::remove_dir_all(&self.profile);
    }

    fn call(&mut self, method: &str, parameters: &Value) -> Value {
        self.requests += 1;
        let mut request = json!({"id": self.requests, "method": method, "params": parameters});
        if let Some(session) = &self.session {
            request["sessionId"] = json!(session);
        }
        self.to.write_all(format!("{request}\0").as_bytes()).unwrap();
        loop {
            let mut reply = Vec::new();
            self.from.read_until(0, &mut reply).unwrap();
            assert_eq!(reply.pop(), Some(0), "{method}: Chromium ended");
            let mut reply: Value = serde_json::from_slice(&reply).unwrap();
            // All else is events.
            if reply["id"] == json!(self.requests) {
                assert!(reply["error"].is_null(), "{method}: {}", reply["error"]);
                return reply["result"].take();
            }
        }
    }

    /// Shows a page in a window of this size.
    pub(crate) fn show(&mut self, page: &str, width: u32, height: u32, is_dark: bool) {
        let size = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        self.call("Emulation.setDeviceMetricsOverride", &size);
        let mode = if is_dark { "dark" } else { "light" };
        let features = json!({"features": [{"name": "prefers-color-scheme", "value": mode}]});
        self.call("Emulation.setEmulatedMedia", &features);
        let tree = self.call("Page.getFrameTree", &json!({}));
        let html = page.replacen("</head>", &format!("{FONTS}</head>"), 1);
        let content = json!({"frameId": tree["frameTree"]["frame"]["id"], "html": html});
        self.call("Page.setDocumentContent", &content);
    }

    /// What a script returns.
    pub(crate) fn evaluate<T: DeserializeOwned>(&mut self, script: &str) -> T {
        let request = json!({"expression": script, "returnByValue": true, "awaitPromise": true});
        let mut reply = self.call("Runtime.evaluate", &request);
        assert!(reply["exceptionDetails"].is_null(), "{}", reply["exceptionDetails"]);
        serde_json::from_value(reply["result"]["value"].take()).unwrap()
    }

    /// The window as PNG.
    pub(crate) fn picture(&mut self) -> Vec<u8> {
        let reply = self.call("Page.captureScreenshot", &json!({"format": "png"}));
        decoded(reply["data"].as_str().unwrap())
    }

    /// The same picture with at most 64 colours: a third of the bytes.
    pub(crate) fn indexed(&mut self, png: &[u8]) -> Vec<u8> {
        let script = format!("{}\nindexed('{}')", include_str!("picture.js"), encoded(png));
        decoded(&self.on_blank::<String>(&script))
    }

    /// The share of the squares of 16 x 16 pixels that differ visibly.
    pub(crate) fn difference(&mut self, a: &[u8], b: &[u8]) -> f64 {
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

#[test]
fn base64_is_read_back() {
    for text in ["", "a", "ab", "abc", "abcd"] {
        assert_eq!(decoded(&encoded(text.as_bytes())), text.as_bytes());
    }
    assert_eq!(encoded(b"ab"), "YWI=");
}
