//! A session that can be ended from outside, with a reason.
//!
//! In: the pipes of a session and the receiver of the reason. Out: the same pipes, whose stream ends when it
//! arrives.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, ReadBuf};
use tokio::sync::oneshot;

use crate::pipes::{FromNode, Pipes, keep};

/// Ends the stream when a reason arrives; one that is dropped ends nothing.
pub(super) fn until(mut pipes: Pipes, end: oneshot::Receiver<String>, words: Arc<Mutex<Vec<u8>>>) -> Pipes {
    let inner = std::mem::replace(&mut pipes.stdout, Box::new(tokio::io::empty()));
    pipes.stdout = Box::new(UntilEnded { inner, end: Some(end), words });
    pipes
}

struct UntilEnded {
    inner: FromNode,
    end: Option<oneshot::Receiver<String>>,
    words: Arc<Mutex<Vec<u8>>>,
}

impl AsyncRead for UntilEnded {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if let Some(end) = &mut this.end
            && let Poll::Ready(reason) = Pin::new(end).poll(cx)
        {
            this.end = None;
            if let Ok(reason) = reason {
                keep(&this.words, format!("{reason}\n").as_bytes());
                return Poll::Ready(Ok(()));
            }
        }
        Pin::new(&mut this.inner).poll_read(cx, into)
    }
}
