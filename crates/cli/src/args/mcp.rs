//! Flags of the server for MCP clients.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use raymond_mcp::http::{Authority, NotAnAuthority};

#[derive(Debug, Args)]
pub(crate) struct Mcp {
    /// Run steps in this directory, even if the request names an agent
    ///
    /// [default: the workspace of the request's `agentId`, or the current directory]
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub(crate) workspace: Option<PathBuf>,
    /// Serve HTTP at http://ADDRESS:PORT/mcp instead of stdio
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = address)]
    pub(crate) http: Option<SocketAddr>,
    /// Accept calls from other machines under this host name (repeatable)
    ///
    /// With it, --http may listen on any address.
    #[arg(long, value_name = "HOST", requires = "http", value_parser = host)]
    pub(crate) allow_host: Vec<Authority>,
}

/// Parses an address with a port. Users often give only a port or a name.
fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| "expected an address with a port, such as 127.0.0.1:7420".to_owned())
}

/// Parses a value that a `Host` header can contain; a pattern or a URL would never match.
fn host(text: &str) -> Result<Authority, String> {
    text.parse().map_err(|error: NotAnAuthority| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_a_name_or_an_address() {
        for good in
            ["localhost", "build-1.example.org", "build.example.org:7420", "[::1]", "10.0.0.1"]
        {
            assert_eq!(host(good).map(|host| host.to_string()), Ok(good.to_owned()));
        }
        for bad in ["", " ", "*", "http://x", "x/y", "a b", "*.example.org", "a:b", "[::1].x", "a."]
        {
            assert!(host(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn an_address_has_a_port() {
        assert_eq!(address("127.0.0.1:7420"), Ok(([127, 0, 0, 1], 7420).into()));
        for bad in ["", "7420", "localhost:7420", "127.0.0.1"] {
            assert!(address(bad).is_err(), "{bad:?}");
        }
    }
}
