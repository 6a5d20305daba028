//! Who owns the other end of a TCP connection of this host: `/proc/net/tcp` and `tcp6`. Addresses in, a user
//! out.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// Fields of a line: own address, other address, user.
const LOCAL: usize = 1;
const REMOTE: usize = 2;
const USER: usize = 7;

/// The user whose socket has this own and this other address; `None` where there is none (any more).
///
/// # Errors
/// The table cannot be read.
pub fn owner(local: SocketAddr, remote: SocketAddr) -> io::Result<Option<u32>> {
    let mapped = |address: SocketAddr| match address.ip() {
        IpAddr::V4(ip) => SocketAddr::new(ip.to_ipv6_mapped().into(), address.port()),
        IpAddr::V6(_) => address,
    };
    // A socket for both families has its addresses in the second table.
    let tables =
        [("/proc/self/net/tcp", local, remote), ("/proc/self/net/tcp6", mapped(local), mapped(remote))];
    for (table, local, remote) in tables {
        let file = match File::open(table) {
            // Without IPv6 there is no such table.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            file => file?,
        };
        let (local, remote) = (entry(local), entry(remote));
        for line in BufReader::new(file).lines() {
            if let Some(user) = user_of(&line?, &local, &remote) {
                return Ok(Some(user));
            }
        }
    }
    Ok(None)
}

fn user_of(line: &str, local: &str, remote: &str) -> Option<u32> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let is_it = fields.get(LOCAL) == Some(&local) && fields.get(REMOTE) == Some(&remote);
    fields.get(USER).filter(|_| is_it)?.parse().ok()
}

/// An address as the kernel prints it: words in the order of this machine, the port as a number.
fn entry(address: SocketAddr) -> String {
    let words = match address.ip() {
        IpAddr::V4(ip) => format!("{:08X}", u32::from_ne_bytes(ip.octets())),
        IpAddr::V6(ip) => words(ip),
    };
    format!("{words}:{:04X}", address.port())
}

fn words(ip: Ipv6Addr) -> String {
    let word = |four: &[u8]| format!("{:08X}", u32::from_ne_bytes([four[0], four[1], four[2], four[3]]));
    ip.octets().chunks(4).map(word).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn the_owner_of_a_connection_is_found_from_its_other_end() {
        let own = user_of_this_process();
        for address in ["127.0.0.1:0", "[::1]:0"] {
            // Without IPv6 there is nothing to see.
            let Ok(listener) = TcpListener::bind(address) else { continue };
            let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (_, peer) = listener.accept().unwrap();
            assert_eq!(owner(peer, client.peer_addr().unwrap()).unwrap(), Some(own));
            let unused = SocketAddr::new(peer.ip(), 1);
            assert_eq!(owner(unused, client.peer_addr().unwrap()).unwrap(), None);
        }
    }

    /// The user of this process, by the owner of its folder.
    fn user_of_this_process() -> u32 {
        use std::os::unix::fs::MetadataExt as _;
        std::fs::metadata("/proc/self").unwrap().uid()
    }

    #[test]
    fn lines_of_the_kernel_are_read() {
        let line = "   1: 0100007F:1F90 0100007F:C350 01 00000000:00000000 00:00000000 00000000  1000        0 5 1 0";
        assert_eq!(user_of(line, "0100007F:1F90", "0100007F:C350"), Some(1000));
        assert_eq!(user_of(line, "0100007F:1F90", "0100007F:C351"), None);
        assert_eq!(user_of("", "", ""), None);
    }
}
