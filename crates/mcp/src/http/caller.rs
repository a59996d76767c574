//! Who is at the other end of a connection from this machine.
//!
//! Every user of a machine reaches its own addresses, and whoever calls may run programs as the user
//! of this process. So a caller has to be that user, or root. The kernel says whose a socket is, where
//! it does at all: on Linux. One that was closed already is nobody's, and nobody is not let in.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use rustix::process::geteuid;

/// The tables of sockets, of both families: a socket of the newer one reaches addresses of the older.
const TABLES: [&str; 2] = ["/proc/net/tcp", "/proc/net/tcp6"];

/// The other end of a connection, when it is on this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Owner {
    /// A socket of this user.
    User(u32),
    /// A socket that was closed, which the kernel lists as root's.
    Nobody,
}

/// Returns whether a connection from `peer` to `here` may be served.
///
/// A caller on this machine has to be this user or root, under whichever address it calls. A caller that
/// is not in the tables is on another machine, whose users [`Names`](super::authority::Names) decides
/// about, unless it has an address of loopback, which no other machine can have.
pub(super) fn may_call(peer: SocketAddr, here: SocketAddr) -> bool {
    if !cfg!(target_os = "linux") {
        return true;
    }
    let me = geteuid().as_raw();
    let mut tables = TABLES.iter().filter_map(|path| std::fs::read_to_string(path).ok());
    is_allowed(tables.find_map(|table| owner(&table, peer, here)), peer, me)
}

fn is_allowed(owner: Option<Owner>, peer: SocketAddr, me: u32) -> bool {
    match owner {
        Some(Owner::User(user)) => user == me || user == 0,
        Some(Owner::Nobody) => false,
        None => !peer.ip().to_canonical().is_loopback(),
    }
}

/// The owner of the socket that is bound to `from` and connected to `to`.
fn owner(table: &str, from: SocketAddr, to: SocketAddr) -> Option<Owner> {
    let wanted = [from, to].map(plain);
    // A busy machine has thousands of sockets, and every connection looks at all of them: most are passed
    // over by their port, without being parsed.
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
            return Some(Owner::Nobody);
        }
        user.parse().ok().map(Owner::User)
    })
}

fn plain(address: SocketAddr) -> (IpAddr, u16) {
    (address.ip().to_canonical(), address.port())
}

/// `0100007F:1F90`: words of the address as this machine reads them, and the port.
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
    fn the_user_of_a_socket_is_read_from_the_table() {
        let check = |line: &str, from: &str, to: &str, expected: Option<Owner>| {
            let table = format!("{HEAD}{line} 1 0000000000000000 20 4 30 10 -1\n");
            let found = owner(&table, from.parse().unwrap(), to.parse().unwrap());
            assert_eq!(found, expected, "{line}");
        };
        let rest = "00000000:00000000 00:00000000 00000000";
        let four = format!("   0: 0100007F:C350 0100007F:1F90 01 {rest}  1000        0 4242");
        check(&four, "127.0.0.1:50000", "127.0.0.1:8080", Some(Owner::User(1000)));
        check(&four, "127.0.0.1:50001", "127.0.0.1:8080", None);
        check(&four, "127.0.0.1:50000", "127.0.0.2:8080", None);
        check(&four, "[::ffff:127.0.0.1]:50000", "127.0.0.1:8080", Some(Owner::User(1000)));
        let six = "00000000000000000000000001000000:C350 00000000000000000000000001000000:1F90";
        let six = format!("   0: {six} 01 {rest}  1000        0 4242");
        check(&six, "[::1]:50000", "[::1]:8080", Some(Owner::User(1000)));
        let mapped = "0000000000000000FFFF00000100007F:C350 0000000000000000FFFF00000100007F:1F90";
        let mapped = format!("   0: {mapped} 01 {rest}  1000        0 4242");
        check(&mapped, "127.0.0.1:50000", "127.0.0.1:8080", Some(Owner::User(1000)));
        let closed = format!("   0: 0100007F:C350 0100007F:1F90 06 {rest}     0        0 0");
        check(&closed, "127.0.0.1:50000", "127.0.0.1:8080", Some(Owner::Nobody));
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
            assert!(is_allowed(Some(Owner::User(7)), peer, 7), "{peer}");
            assert!(is_allowed(Some(Owner::User(0)), peer, 7), "{peer}");
            assert!(!is_allowed(Some(Owner::User(8)), peer, 7), "{peer}");
            assert!(!is_allowed(Some(Owner::Nobody), peer, 7), "{peer}");
            // No other machine can have an address of loopback.
            assert_eq!(is_allowed(None, peer, 7), !is_here, "{peer}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn whoever_runs_this_may_call() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let here = listener.local_addr().unwrap();
        let calling = std::net::TcpStream::connect(here).unwrap();
        let (accepted, peer) = listener.accept().unwrap();
        assert!(may_call(peer, here));
        drop(calling);
        assert!(!may_call(peer, here), "nobody is there any more");
        drop(accepted);
        assert!(may_call("192.0.2.1:1".parse().unwrap(), here), "another machine");
    }
}
