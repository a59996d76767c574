//! The user at the other end of a connection from this machine.
//!
//! Every user of a machine can reach its addresses, and a caller may run programs as the user of
//! this process. So a caller must be the same user, or root. Linux lists the owner of each socket;
//! other systems do not, so nothing is checked there. A socket that was closed has no owner and is
//! refused.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use rustix::process::geteuid;

/// The tables of sockets of both families: an IPv6 socket can connect to IPv4 addresses.
const TABLES: [&str; 2] = ["/proc/net/tcp", "/proc/net/tcp6"];

/// The owner of the other end of a connection from this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SocketOwner {
    User(u32),
    /// No user: the socket was closed, and the kernel lists it as root's.
    Closed,
}

/// Returns whether a connection from `peer` to `here` may be served.
///
/// A caller on this machine must be this user or root, with any address. A caller that is not in
/// the tables is on another machine, and [`Names`](super::authority::Names) decides about it,
/// unless its address is loopback, which no other machine can have.
pub(super) fn may_call(peer: SocketAddr, here: SocketAddr) -> bool {
    if !cfg!(target_os = "linux") {
        return true;
    }
    let me = geteuid().as_raw();
    let mut tables = TABLES.iter().filter_map(|path| std::fs::read_to_string(path).ok());
    is_allowed(tables.find_map(|table| owner(&table, peer, here)), peer, me)
}

fn is_allowed(owner: Option<SocketOwner>, peer: SocketAddr, me: u32) -> bool {
    match owner {
        Some(SocketOwner::User(user)) => user == me || user == 0,
        Some(SocketOwner::Closed) => false,
        None => !peer.ip().to_canonical().is_loopback(),
    }
}

/// Returns the owner of the socket that is bound to `from` and connected to `to`.
fn owner(table: &str, from: SocketAddr, to: SocketAddr) -> Option<SocketOwner> {
    let wanted = [from, to].map(plain);
    // A busy machine has thousands of sockets, and every connection searches all of them: most
    // lines are skipped by their port, without parsing.
    let port = format!(":{:04X} ", from.port());
    table.lines().skip(1).filter(|line| line.contains(&port)).find_map(|line| {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let [_, local, remote, _, _, _, _, user, _, inode, ..] = words.as_slice() else {
            return None;
        };
        if [address(local)?, address(remote)?] != wanted {
            return None;
        }
        if *inode == "0" {
            return Some(SocketOwner::Closed);
        }
        user.parse().ok().map(SocketOwner::User)
    })
}

fn plain(address: SocketAddr) -> (IpAddr, u16) {
    (address.ip().to_canonical(), address.port())
}

/// Parses `0100007F:1F90`: 32-bit words of the address in native byte order, and the port.
fn address(text: &str) -> Option<(IpAddr, u16)> {
    let (digits, port) = text.split_once(':')?;
    let words = digits.as_bytes().chunks(8).map(|word| {
        let word = u32::from_str_radix(str::from_utf8(word).ok()?, 16).ok()?;
        Some(word.to_ne_bytes())
    });
    let bytes: Vec<u8> = words.collect::<Option<Vec<_>>>()?.concat();
    let ip: IpAddr = match <[u8; 4]>::try_from(bytes.as_slice()) {
        Ok(four) => Ipv4Addr::from(four).into(),
        Err(_) => Ipv6Addr::from(<[u8; 16]>::try_from(bytes.as_slice()).ok()?).into(),
    };
    Some((ip.to_canonical(), u16::from_str_radix(port, 16).ok()?))
}

#[cfg(all(test, target_endian = "little"))]
mod tests {
    use super::*;

    const HEAD: &str = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n";

    // proves: S59
    #[test]
    fn socket_user_is_read_from_the_table() {
        let check = |line: &str, from: &str, to: &str, expected: Option<SocketOwner>| {
            let table = format!("{HEAD}{line} 1 0000000000000000 20 4 30 10 -1\n");
            let found = owner(&table, from.parse().unwrap(), to.parse().unwrap());
            assert_eq!(found, expected, "{line}");
        };
        let rest = "00000000:00000000 00:00000000 00000000";
        let four = format!("   0: 0100007F:C350 0100007F:1F90 01 {rest}  1000        0 4242");
        check(&four, "127.0.0.1:50000", "127.0.0.1:8080", Some(SocketOwner::User(1000)));
        check(&four, "127.0.0.1:50001", "127.0.0.1:8080", None);
        check(&four, "127.0.0.1:50000", "127.0.0.2:8080", None);
        check(&four, "[::ffff:127.0.0.1]:50000", "127.0.0.1:8080", Some(SocketOwner::User(1000)));
        let six = "00000000000000000000000001000000:C350 00000000000000000000000001000000:1F90";
        let six = format!("   0: {six} 01 {rest}  1000        0 4242");
        check(&six, "[::1]:50000", "[::1]:8080", Some(SocketOwner::User(1000)));
        let mapped = "0000000000000000FFFF00000100007F:C350 0000000000000000FFFF00000100007F:1F90";
        let mapped = format!("   0: {mapped} 01 {rest}  1000        0 4242");
        check(&mapped, "127.0.0.1:50000", "127.0.0.1:8080", Some(SocketOwner::User(1000)));
        let closed = format!("   0: 0100007F:C350 0100007F:1F90 06 {rest}     0        0 0");
        check(&closed, "127.0.0.1:50000", "127.0.0.1:8080", Some(SocketOwner::Closed));
        check("   0: junk", "127.0.0.1:50000", "127.0.0.1:8080", None);
    }

    // proves: S59
    #[test]
    fn other_users_may_not_call_under_any_address() {
        for (peer, is_here) in [
            ("127.0.0.1:1", true),
            ("[::1]:1", true),
            ("[::ffff:127.0.0.9]:1", true),
            ("192.0.2.1:1", false),
            ("[2001:db8::1]:1", false),
        ] {
            let peer: SocketAddr = peer.parse().unwrap();
            assert!(is_allowed(Some(SocketOwner::User(7)), peer, 7), "{peer}");
            assert!(is_allowed(Some(SocketOwner::User(0)), peer, 7), "{peer}");
            assert!(!is_allowed(Some(SocketOwner::User(8)), peer, 7), "{peer}");
            assert!(!is_allowed(Some(SocketOwner::Closed), peer, 7), "{peer}");
            // No other machine can have a loopback address.
            assert_eq!(is_allowed(None, peer, 7), !is_here, "{peer}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn own_user_may_call() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let here = listener.local_addr().unwrap();
        let calling = std::net::TcpStream::connect(here).unwrap();
        let (accepted, peer) = listener.accept().unwrap();
        assert!(may_call(peer, here));
        drop(calling);
        assert!(!may_call(peer, here), "the socket is closed");
        drop(accepted);
        assert!(may_call("192.0.2.1:1".parse().unwrap(), here), "another machine");
    }
}
