//! The Network Block Device protocol, as much of it as qemu needs: fixed newstyle handshake, simple replies.
//!
//! In: bytes of a client that may be anything. Out: options and requests, or the reason why the session
//! ended; replies as bytes. Source: `doc/proto.md` of the project NetworkBlockDevice/nbd. No I/O but on the
//! stream that is given, and never more memory than [`PAYLOAD_MAX`].

use std::io::{self, Read, Write};

const HANDSHAKE: u64 = 0x4e42_444d_4147_4943;
const OPTION: u64 = 0x4948_4156_454f_5054;
const OPTION_REPLY: u64 = 0x0003_e889_0455_65a9;
const REQUEST: u32 = 0x2560_9513;
const REPLY: u32 = 0x6744_6698;

/// The server speaks the newstyle and needs no block of zeros.
const SERVER_FLAGS: u16 = 0b11;
/// Has flags, takes flushes, takes FUA.
const EXPORT_FLAGS: u16 = 0b1101;
/// Longest read or write, bytes; the protocol wants at least this to be taken.
pub(super) const PAYLOAD_MAX: u32 = 32 << 20;
/// Longest data of an option, bytes: a name has at most 4096.
const OPTION_MAX: u32 = 8192;
/// More options than any client sends.
const OPTIONS_MAX: u32 = 64;

const OPT_EXPORT_NAME: u32 = 1;
const OPT_ABORT: u32 = 2;
const OPT_LIST: u32 = 3;
const OPT_INFO: u32 = 6;
const OPT_GO: u32 = 7;

const REP_ACK: u32 = 1;
const REP_SERVER: u32 = 2;
const REP_INFO: u32 = 3;
const REP_ERR_UNSUPPORTED: u32 = (1 << 31) + 1;
const REP_ERR_INVALID: u32 = (1 << 31) + 3;
const REP_ERR_UNKNOWN: u32 = (1 << 31) + 6;

const INFO_EXPORT: u16 = 0;
const INFO_BLOCK_SIZE: u16 = 3;

const COMMAND_READ: u16 = 0;
const COMMAND_WRITE: u16 = 1;
const COMMAND_DISCONNECT: u16 = 2;
const COMMAND_FLUSH: u16 = 3;
const FLAG_FUA: u16 = 1;

/// Errors of the protocol, as numbers.
pub(super) const EIO: u32 = 5;
pub(super) const EINVAL: u32 = 22;

/// What a client wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Command {
    Read,
    /// Its data follow.
    Write {
        fua: bool,
    },
    Flush,
    Disconnect,
    /// Nothing that was offered; without data.
    Other,
}

/// A request without its data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) command: Command,
    pub(super) cookie: u64,
    pub(super) offset: u64,
    pub(super) length: u32,
}

/// An export: what may be asked for by name.
pub(super) trait Exports {
    type Export;
    /// The export of this name, with its size in bytes.
    fn find(&self, name: &str) -> Option<(Self::Export, u64)>;
    fn names(&self) -> Vec<String>;
}

fn broken(what: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// Handshakes a client until it has chosen an export; `None` when it aborts properly.
pub(super) fn handshake<E: Exports>(
    stream: &mut (impl Read + Write),
    exports: &E,
) -> io::Result<Option<E::Export>> {
    let mut hello = Vec::new();
    hello.extend(HANDSHAKE.to_be_bytes());
    hello.extend(OPTION.to_be_bytes());
    hello.extend(SERVER_FLAGS.to_be_bytes());
    stream.write_all(&hello)?;
    let flags = u32::from_be_bytes(take(stream)?);
    if flags & !u32::from(SERVER_FLAGS) != 0 {
        return Err(broken(format!("client flags {flags:#x}")));
    }
    for _ in 0..OPTIONS_MAX {
        let magic = u64::from_be_bytes(take(stream)?);
        let (option, length) = (u32::from_be_bytes(take(stream)?), u32::from_be_bytes(take(stream)?));
        if magic != OPTION || length > OPTION_MAX {
            return Err(broken(format!("option {option} with magic {magic:#x} and {length} bytes")));
        }
        let mut data = vec![0; length as usize];
        stream.read_exact(&mut data)?;
        match option {
            OPT_EXPORT_NAME => return old_choice(stream, exports, &data, flags).map(Some),
            OPT_ABORT => {
                reply(stream, option, REP_ACK, &[])?;
                return Ok(None);
            }
            OPT_LIST => {
                for name in exports.names() {
                    let mut entry = (name.len() as u32).to_be_bytes().to_vec();
                    entry.extend(name.as_bytes());
                    reply(stream, option, REP_SERVER, &entry)?;
                }
                reply(stream, option, REP_ACK, &[])?;
            }
            OPT_INFO | OPT_GO => {
                if let Some(export) = choice(stream, exports, option, &data)?
                    && option == OPT_GO
                {
                    return Ok(Some(export));
                }
            }
            _ => reply(stream, option, REP_ERR_UNSUPPORTED, &[])?,
        }
    }
    Err(broken(format!("more than {OPTIONS_MAX} options")))
}

/// `NBD_OPT_EXPORT_NAME`: it has no error reply, so an unknown export ends the connection.
fn old_choice<E: Exports>(
    stream: &mut impl Write,
    exports: &E,
    data: &[u8],
    flags: u32,
) -> io::Result<E::Export> {
    let name = String::from_utf8_lossy(data);
    let (export, size) = exports.find(&name).ok_or_else(|| broken(format!("no export {name:?}")))?;
    let mut answer = size.to_be_bytes().to_vec();
    answer.extend(EXPORT_FLAGS.to_be_bytes());
    if flags & 0b10 == 0 {
        answer.extend([0; 124]);
    }
    stream.write_all(&answer)?;
    Ok(export)
}

fn choice<E: Exports>(
    stream: &mut impl Write,
    exports: &E,
    option: u32,
    data: &[u8],
) -> io::Result<Option<E::Export>> {
    let name = data.split_first_chunk::<4>().and_then(|(length, rest)| {
        rest.get(..u32::from_be_bytes(*length) as usize).map(String::from_utf8_lossy)
    });
    let Some(name) = name else {
        reply(stream, option, REP_ERR_INVALID, &[])?;
        return Ok(None);
    };
    let Some((export, size)) = exports.find(&name) else {
        reply(stream, option, REP_ERR_UNKNOWN, &[])?;
        return Ok(None);
    };
    let mut about = INFO_EXPORT.to_be_bytes().to_vec();
    about.extend(size.to_be_bytes());
    about.extend(EXPORT_FLAGS.to_be_bytes());
    reply(stream, option, REP_INFO, &about)?;
    // Smallest, best and largest request.
    let mut blocks = INFO_BLOCK_SIZE.to_be_bytes().to_vec();
    for bytes in [super::SECTOR_BYTES as u32, 4096, PAYLOAD_MAX] {
        blocks.extend(bytes.to_be_bytes());
    }
    reply(stream, option, REP_INFO, &blocks)?;
    reply(stream, option, REP_ACK, &[])?;
    Ok(Some(export))
}

fn reply(stream: &mut impl Write, option: u32, kind: u32, data: &[u8]) -> io::Result<()> {
    let mut bytes = OPTION_REPLY.to_be_bytes().to_vec();
    bytes.extend(option.to_be_bytes());
    bytes.extend(kind.to_be_bytes());
    bytes.extend((data.len() as u32).to_be_bytes());
    bytes.extend(data);
    stream.write_all(&bytes)
}

/// The next request; the data of a write are left in the stream.
pub(super) fn request(stream: &mut impl Read) -> io::Result<Request> {
    let magic = u32::from_be_bytes(take(stream)?);
    if magic != REQUEST {
        return Err(broken(format!("request with magic {magic:#x}")));
    }
    let (flags, command) = (u16::from_be_bytes(take(stream)?), u16::from_be_bytes(take(stream)?));
    let (cookie, offset) = (u64::from_be_bytes(take(stream)?), u64::from_be_bytes(take(stream)?));
    let length = u32::from_be_bytes(take(stream)?);
    let command = match command {
        COMMAND_READ => Command::Read,
        COMMAND_WRITE => Command::Write { fua: flags & FLAG_FUA != 0 },
        COMMAND_DISCONNECT => Command::Disconnect,
        COMMAND_FLUSH => Command::Flush,
        _ => Command::Other,
    };
    // Data that long cannot be skipped in good faith.
    if matches!(command, Command::Read | Command::Write { .. }) && length > PAYLOAD_MAX {
        return Err(broken(format!("{command:?} of {length} bytes, at most {PAYLOAD_MAX} are taken")));
    }
    Ok(Request { command, cookie, offset, length })
}

/// The answer to a request: `error` is 0 or a number of the protocol; data only for a read that worked.
pub(super) fn answer(stream: &mut impl Write, cookie: u64, error: u32, data: &[u8]) -> io::Result<()> {
    let mut bytes = Vec::with_capacity(16 + data.len());
    bytes.extend(REPLY.to_be_bytes());
    bytes.extend(error.to_be_bytes());
    bytes.extend(cookie.to_be_bytes());
    bytes.extend(data);
    stream.write_all(&bytes)
}

fn take<const N: usize>(stream: &mut impl Read) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    stream.read_exact(&mut bytes)?;
    Ok(bytes)
}
