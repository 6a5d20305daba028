//! A sealed connection as the pipes of a session.
//!
//! What comes in: a connection on which both ends know each other. What goes out: bytes both ways, and in
//! words why the encryption broke, where it did. It never dials or listens.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use linerate_wire::sealed::{Opener, RECORD_BYTES_MAX, Sealed, Sealer};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt, DuplexStream, ReadBuf};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

use super::pipes::{Pipes, keep};

/// Bytes taken from a connection at once. Each session keeps that much room.
const READ_BYTES: usize = 4 << 10;

/// Words that are kept about a node from whatever stands beside its stream.
pub(super) type Said = Arc<Mutex<Vec<u8>>>;

/// The pipes of a session over this connection.
pub(super) fn pipes(connection: TcpStream, sealed: Sealed, shown: Said) -> Pipes {
    let (from_node, to_node) = connection.into_split();
    // What is written has to be sealed whole and then sent on, also when nobody writes any more: a task of
    // its own does that.
    let (stdin, unsent) = tokio::io::duplex(RECORD_BYTES_MAX);
    tokio::spawn(send(unsent, sealed.sealer, to_node));
    let opened = Opened {
        connection: from_node,
        opener: sealed.opener,
        ready: Vec::new(),
        taken: 0,
        shown: Arc::clone(&shown),
    };
    Pipes::over(Box::new(opened), Box::new(stdin), shown)
}

/// Sends on until either end closes.
async fn send(mut unsent: DuplexStream, mut sealer: Sealer, mut to_node: OwnedWriteHalf) {
    let mut text = vec![0; READ_BYTES];
    let mut bytes = Vec::new();
    while let Ok(count @ 1..) = unsent.read(&mut text).await {
        bytes.clear();
        if sealer.seal(&text[..count], &mut bytes).is_err() || to_node.write_all(&bytes).await.is_err() {
            return;
        }
    }
    // The node sees the end of its operator.
    let _ = to_node.shutdown().await;
}

/// What a node says.
struct Opened {
    connection: OwnedReadHalf,
    opener: Opener,
    ready: Vec<u8>,
    taken: usize,
    shown: Said,
}

impl Opened {
    /// Makes a record ready; `false` when more bytes are needed.
    fn next(&mut self) -> io::Result<bool> {
        match self.opener.next_record() {
            Ok(None) => Ok(false),
            Ok(Some(text)) => {
                (self.ready, self.taken) = (text, 0);
                Ok(true)
            }
            Err(error) => {
                let words = format!("its sealed stream is broken: {error}\n");
                keep(&self.shown, words.as_bytes());
                Err(io::Error::other(error))
            }
        }
    }
}

impl AsyncRead for Opened {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        while this.taken == this.ready.len() {
            if this.next()? {
                continue;
            }
            let mut bytes = [0; READ_BYTES];
            let mut read = ReadBuf::new(&mut bytes);
            match Pin::new(&mut this.connection).poll_read(cx, &mut read) {
                Poll::Ready(Ok(())) if read.filled().is_empty() => return Poll::Ready(Ok(())),
                Poll::Ready(Ok(())) => this.opener.push(read.filled()),
                other => return other,
            }
        }
        let count = into.remaining().min(this.ready.len() - this.taken);
        into.put_slice(&this.ready[this.taken..this.taken + count]);
        this.taken += count;
        Poll::Ready(Ok(()))
    }
}
