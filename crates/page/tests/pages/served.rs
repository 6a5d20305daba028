//! A server of a test, and requests to it over raw sockets.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::sync::{Arc, mpsc};

use linerate_page::server::{Listen, Server};
use linerate_page::{Source, live};

/// Serves in a thread that ends with the process; gives host and port.
pub(crate) fn start(source: &Arc<Source>) -> String {
    start_on(source, "127.0.0.1:0", None)
}

/// The same on another address, with a web-config file.
pub(crate) fn start_on(source: &Arc<Source>, listen: &str, web_config: Option<&Path>) -> String {
    let (source, (to, address)) = (Arc::clone(source), mpsc::channel());
    let listen: Listen = listen.parse().unwrap();
    let web_config = web_config.map(Path::to_owned);
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let server = Server::bind(&listen, web_config.as_deref()).unwrap();
            let views = live::follow(Arc::clone(&source)).unwrap();
            to.send(server.address()).unwrap();
            server.run(source, views).await;
        });
    });
    let address = address.recv().unwrap();
    address.split_once("://").map_or(&*address, |(_, rest)| rest).trim_end_matches('/').to_owned()
}

/// Sends bytes, and gives all that comes back until the server closes.
pub(crate) fn raw(address: &str, request: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    // It may have closed before all is sent.
    let _ = stream.write_all(request);
    let mut response = Vec::new();
    let _ = stream.read_to_end(&mut response);
    String::from_utf8_lossy(&response).into_owned()
}

/// A request with further headers: head and content of the response.
pub(crate) fn request(address: &str, method: &str, target: &str, headers: &str) -> (String, String) {
    let text = format!("{method} {target} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{headers}\r\n");
    let response = raw(address, text.as_bytes());
    let (head, content) = response.split_once("\r\n\r\n").unwrap_or((&response, ""));
    (head.to_ascii_lowercase(), content.to_owned())
}

/// The content of a page that is there.
pub(crate) fn get(address: &str, target: &str) -> String {
    let (head, content) = request(address, "GET", target, "");
    assert!(head.starts_with("http/1.1 200 "), "{target}: {head}");
    content
}
