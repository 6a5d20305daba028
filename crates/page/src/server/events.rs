//! Server-sent events: the version of the view whenever it changes, and a comment in between so that a
//! connection without a reader is noticed.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::body::{Body, Bytes, Frame, SizeHint};
use tokio::sync::{OwnedSemaphorePermit, mpsc, watch};

use crate::view::SiteView;

/// Longest silence.
const SILENCE: Duration = Duration::from_secs(20);

/// What is sent: a whole text, or events until the reader leaves.
pub(super) enum Reply {
    Whole(Option<Bytes>),
    Events(mpsc::Receiver<Bytes>),
}

impl Reply {
    /// Events from now on; the permit is held as long as they flow.
    pub(super) fn events(mut views: watch::Receiver<Arc<SiteView>>, permit: OwnedSemaphorePermit) -> Self {
        let (to, events) = mpsc::channel(1);
        tokio::spawn(async move {
            let _permit = permit;
            loop {
                let version = views.borrow_and_update().version;
                if to.send(Bytes::from(format!("event: version\ndata: {version}\n\n"))).await.is_err() {
                    return;
                }
                loop {
                    tokio::select! {
                        changed = views.changed() => {
                            if changed.is_err() { return }
                            break;
                        }
                        () = to.closed() => return,
                        () = tokio::time::sleep(SILENCE) => {
                            if to.send(Bytes::from_static(b":\n\n")).await.is_err() { return }
                        }
                    }
                }
            }
        });
        Self::Events(events)
    }
}

impl Body for Reply {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.get_mut() {
            Self::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::Events(events) => {
                events.poll_recv(cx).map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64)),
            Self::Events(_) => SizeHint::default(),
        }
    }
}
