//! What the threads of a session send to its main thread.

use linerate_wire::message::{Event, RequestId};

/// One event of a session.
pub(crate) enum SessionEvent {
    /// Bytes that the operator sent.
    Bytes(Vec<u8>),
    /// The operator's stream ended.
    Closed,
    /// An answer to a request.
    Answer(RequestId, Event),
    /// Changes are undone, as far as they could be.
    ChangesEnded,
}
