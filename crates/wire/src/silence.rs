//! After which silence an end of a session is given up. Both ends count in milliseconds.

/// Time between two heartbeats, milliseconds.
pub const HEARTBEAT_MS: u64 = 1_000;

/// The other end is lost when nothing came for this long, milliseconds.
pub const SILENCE_MS: u64 = 4_000;

/// The node's first byte may take longer, milliseconds: a transport may have to log in first.
pub const HELLO_MS: u64 = 15_000;
