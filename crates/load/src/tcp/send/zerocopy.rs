//! `MSG_ZEROCOPY`: the device reads straight from our memory, where path and device allow it. The kernel
//! reports afterwards whether it copied after all, as on every local path; the remark repeats it.

use std::io;
use std::net::TcpStream;
use std::os::fd::AsFd;

use linerate_sys::socket::{self, Ready};
use linerate_sys::zerocopy::{self, Reaped};

use super::content::Content;
use super::method::{Push, SendMethod};
use crate::job::SLICE;

/// `MSG_ZEROCOPY`.
pub(super) struct ZeroCopy;

/// Sends after which the messages about earlier ones are taken.
const REAP_EVERY: u64 = 16;

struct Sender<'a> {
    content: &'a Content,
    sends: u64,
    reaped: Reaped,
}

impl SendMethod for ZeroCopy {
    fn name(&self) -> &'static str {
        "zerocopy"
    }

    fn call_bytes(&self) -> usize {
        4 << 20
    }

    fn open<'a>(&self, content: &'a Content, stream: &TcpStream) -> io::Result<Box<dyn Push + 'a>> {
        zerocopy::allow(stream)?;
        Ok(Box::new(Sender { content, sends: 0, reaped: Reaped::default() }))
    }
}

impl Sender<'_> {
    fn reap(&mut self, stream: &TcpStream) -> io::Result<()> {
        while let Some(reaped) = zerocopy::reap(stream)? {
            self.reaped.sends += reaped.sends;
            self.reaped.copied += reaped.copied;
        }
        Ok(())
    }
}

impl Push for Sender<'_> {
    fn push(&mut self, stream: &TcpStream, position: u64) -> io::Result<usize> {
        self.sends += 1;
        if self.sends.is_multiple_of(REAP_EVERY) {
            self.reap(stream)?;
        }
        match zerocopy::send(stream, self.content.from(position)) {
            Err(error) if zerocopy::is_exhausted(&error) => {
                socket::wait(&[stream.as_fd()], Ready::Closed, SLICE)?;
                self.reap(stream)?;
                Err(io::ErrorKind::WouldBlock.into())
            }
            other => other,
        }
    }

    fn remark(&self) -> String {
        let Reaped { sends, copied } = self.reaped;
        match copied {
            0 => String::new(),
            all if all == sends => "the kernel copied after all".to_owned(),
            some => format!("the kernel copied {some} of {sends} sends after all"),
        }
    }
}
