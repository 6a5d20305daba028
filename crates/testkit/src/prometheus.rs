//! A Prometheus server of a test, on loopback alone and gone with the test. In: a configuration. Out: its
//! address.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// The running server.
#[derive(Debug)]
pub struct PrometheusServer {
    server: Child,
    /// Where it answers.
    pub address: SocketAddr,
}

impl PrometheusServer {
    /// Starts one over the database `tsdb` of a folder, with further arguments.
    pub fn start(folder: &Path, config: &str, more: &[&str]) -> Self {
        let file = folder.join("prometheus.yml");
        std::fs::write(&file, config).unwrap();
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let server = Command::new("prometheus")
            .arg(format!("--config.file={}", file.display()))
            .arg(format!("--storage.tsdb.path={}", folder.join("tsdb").display()))
            .arg(format!("--web.listen-address={address}"))
            .args(more)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Self { server, address }
    }

    /// Whether it answers queries.
    pub fn is_ready(&self) -> bool {
        let ask = || -> std::io::Result<String> {
            let mut stream = TcpStream::connect(self.address)?;
            write!(stream, "GET /-/ready HTTP/1.0\r\nHost: {}\r\n\r\n", self.address)?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer)?;
            Ok(answer)
        };
        ask().is_ok_and(|answer| answer.contains(" 200 "))
    }
}

impl Drop for PrometheusServer {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}
