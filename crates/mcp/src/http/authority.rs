//! `Host` and `Origin` as typed values, so that no check compares texts.
//!
//! A browser that was led to loopback under another name sends that name in `Host`, and the origin
//! of its page in `Origin`. A text that merely begins or ends like a name of this machine is
//! foreign, too. So both headers are parsed as a whole, and everything unexpected is an error.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// The longest DNS name, and the longest label of one, in bytes (RFC 1035, section 2.3.4).
const LONGEST_NAME: usize = 253;
const LONGEST_LABEL: usize = 63;

/// A host with an optional port: the whole of a `Host` header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Authority {
    host: Host,
    port: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Host {
    Address(IpAddr),
    /// In lower case, because names are case-insensitive.
    Name(String),
}

/// A text that is not `host` or `host:port`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected a name or an address, such as build.example.org or [::1]:7420")]
pub struct NotAnAuthority;

impl FromStr for Authority {
    type Err = NotAnAuthority;

    fn from_str(text: &str) -> Result<Self, NotAnAuthority> {
        let (host, port) = match text.strip_prefix('[') {
            Some(bracketed) => {
                let (inside, behind) = bracketed.split_once(']').ok_or(NotAnAuthority)?;
                let address: Ipv6Addr = inside.parse().map_err(|_| NotAnAuthority)?;
                let port = match behind {
                    "" => None,
                    _ => Some(behind.strip_prefix(':').ok_or(NotAnAuthority)?),
                };
                // `::ffff:127.0.0.1` is the IPv4 address, and must be judged like it.
                (Host::Address(IpAddr::V6(address).to_canonical()), port)
            }
            None => match text.split_once(':') {
                Some((host, port)) => (name_or_ipv4(host)?, Some(port)),
                None => (name_or_ipv4(text)?, None),
            },
        };
        Ok(Self { host, port: port.map(port_number).transpose()? })
    }
}

impl fmt::Display for Authority {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            Host::Address(IpAddr::V6(address)) => write!(formatter, "[{address}]")?,
            Host::Address(IpAddr::V4(address)) => write!(formatter, "{address}")?,
            Host::Name(name) => formatter.write_str(name)?,
        }
        self.port.map_or(Ok(()), |port| write!(formatter, ":{port}"))
    }
}

impl Authority {
    /// Returns whether this names loopback itself, on any port.
    fn is_loopback(&self) -> bool {
        match &self.host {
            Host::Address(address) => address.is_loopback(),
            // Names below `localhost`, and `localhost.` with a dot, lead to loopback only by
            // convention, which resolvers need not follow.
            Host::Name(name) => name == "localhost",
        }
    }

    /// Returns whether `given`, a name from the command line, matches. Without a port it matches
    /// any port.
    fn is_meant_by(&self, given: &Self) -> bool {
        self.host == given.host && (given.port.is_none() || given.port == self.port)
    }
}

fn name_or_ipv4(text: &str) -> Result<Host, NotAnAuthority> {
    let labels: Vec<&str> = text.split('.').collect();
    let is_good = |label: &&str| {
        let is_named = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        (1..=LONGEST_LABEL).contains(&label.len()) && label.bytes().all(is_named)
    };
    if text.len() > LONGEST_NAME || !labels.iter().all(is_good) {
        return Err(NotAnAuthority);
    }
    // Browsers read a name whose last label is a number as an IPv4 address, in any of the old
    // notations (`127.1`, `0x7f.1`). Only the usual notation is taken here.
    let last = labels.last().map_or("", |label| *label);
    let is_hexadecimal = last.starts_with("0x") || last.starts_with("0X");
    if is_hexadecimal || last.bytes().all(|byte| byte.is_ascii_digit()) {
        let address: Ipv4Addr = text.parse().map_err(|_| NotAnAuthority)?;
        return Ok(Host::Address(address.into()));
    }
    Ok(Host::Name(text.to_ascii_lowercase()))
}

/// Reads digits alone: the standard library also takes a sign.
fn port_number(text: &str) -> Result<u16, NotAnAuthority> {
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(NotAnAuthority);
    }
    match text.parse() {
        Ok(0) | Err(_) => Err(NotAnAuthority),
        Ok(port) => Ok(port),
    }
}

/// The names under which a server may be called.
#[derive(Debug, Clone)]
pub(super) struct Names(Vec<Authority>);

impl Names {
    /// Returns loopback and the given names.
    pub(super) fn new(given: &[Authority]) -> Self {
        Self(given.to_vec())
    }

    /// Returns whether a request for this host may be answered.
    pub(super) fn allow(&self, host: &Authority) -> bool {
        host.is_loopback() || self.is_given(host)
    }

    /// Returns whether pages of this origin may call: `http` from loopback, and also `https` from
    /// given names, because a proxy may add it.
    pub(super) fn allow_origin(&self, origin: &str) -> bool {
        let Some((scheme, rest)) = origin.split_once("://") else { return false };
        let Ok(authority) = rest.parse::<Authority>() else { return false };
        match scheme {
            "http" => self.allow(&authority),
            "https" => self.is_given(&authority),
            _ => false,
        }
    }

    fn is_given(&self, authority: &Authority) -> bool {
        self.0.iter().any(|given| authority.is_meant_by(given))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOT_AUTHORITIES: [&str; 36] = [
        "",
        " ",
        " localhost",
        "localhost ",
        "localhost\t",
        "localhost:",
        "localhost:0",
        "localhost:+80",
        "localhost:-1",
        "localhost:99999",
        "localhost:80:80",
        "localhost:evil.com",
        "localhost:80.evil.com",
        "localhost/.evil.com",
        "localhost#.evil.com",
        "localhost?.evil.com",
        "localhost\\.evil.com",
        "localhost@evil.com",
        "user@localhost",
        "localhost, evil.com",
        "localhost.",
        ".localhost",
        "local..host",
        "127.1",
        "127.0.0.1.",
        "127.000.0.1",
        "0x7f.0.0.1",
        "127.0.0.0x1",
        "2130706433",
        "::1",
        "[::1",
        "[::1].evil.com",
        "[::1]evil.com",
        "[::1%lo]",
        "[127.0.0.1]",
        "löcalhost",
    ];

    // proves: S49
    #[test]
    fn only_loopback_and_given_names_are_hosts() {
        let names =
            Names::new(&["build.example".parse().unwrap(), "a.example:80".parse().unwrap()]);
        let check = |text: &str, expected: Result<bool, NotAnAuthority>| {
            let allowed = text.parse().map(|host| names.allow(&host));
            assert_eq!(allowed, expected, "{text:?}");
        };
        for text in NOT_AUTHORITIES {
            check(text, Err(NotAnAuthority));
        }
        check(&"a".repeat(64), Err(NotAnAuthority));
        check(&"a.".repeat(130), Err(NotAnAuthority));
        for here in [
            "localhost",
            "LOCALHOST:7420",
            "127.0.0.1",
            "127.0.0.1:65535",
            "127.9.9.9",
            "[::1]",
            "[0:0::1]:80",
            "[::ffff:127.0.0.1]:1",
            "build.example",
            "Build.Example:7420",
            "a.example:80",
        ] {
            check(here, Ok(true));
        }
        for elsewhere in [
            "evil.com",
            "localhost.evil.com",
            "evil-localhost",
            "xlocalhost",
            "127.0.0.1.evil.com",
            "127.0.0.1.nip.io:80",
            "app.localhost",
            "128.0.0.1",
            "0.0.0.0",
            "[::]",
            "[::2]",
            "[::ffff:10.0.0.1]",
            "sub.build.example",
            "build.example.evil.com",
            "a.example",
            "a.example:8080",
            "null",
        ] {
            check(elsewhere, Ok(false));
        }
    }

    // proves: S47
    #[test]
    fn only_pages_of_allowed_hosts_are_origins() {
        let names = Names::new(&["build.example".parse().unwrap()]);
        for here in [
            "http://localhost",
            "http://localhost:3000",
            "http://LocalHost",
            "http://127.0.0.1:80",
            "http://[::1]:7420",
            "http://build.example",
            "https://build.example:8443",
        ] {
            assert!(names.allow_origin(here), "{here:?}");
        }
        for text in NOT_AUTHORITIES {
            assert!(!names.allow_origin(&format!("http://{text}")), "{text:?}");
        }
        for elsewhere in [
            "null",
            "localhost",
            "//localhost",
            "https://localhost",
            "file://localhost",
            "ftp://build.example",
            "http:/localhost",
            "http:///localhost",
            "http://localhost/",
            "http://localhost http://evil.com",
            "http://evil.com",
            "http://localhost.evil.com",
            "https://build.example.evil.com",
            "chrome-extension://localhost",
            " http://localhost",
        ] {
            assert!(!names.allow_origin(elsewhere), "{elsewhere:?}");
        }
    }

    #[test]
    fn an_authority_is_written_as_it_is_read() {
        for text in ["localhost", "build.example:80", "127.0.0.1", "[::1]:7420"] {
            assert_eq!(text.parse::<Authority>().unwrap().to_string(), text);
        }
    }
}
