//! The target of a static binary: musl if it is installed, otherwise glibc linked statically.

use std::env::consts::{ARCH, OS};
use std::path::Path;

use anyhow::{Result, bail};

use crate::commands::program;

/// The C library that goes into the binary, on the kind of machine that this is.
#[derive(Debug, Clone, Copy)]
pub(super) enum Platform {
    Musl,
    Glibc,
}

impl Platform {
    pub(super) fn of_this_machine() -> Result<Self> {
        if OS != "linux" {
            bail!("archives are made on Linux, and this is {OS}");
        }
        // Musl first: a static glibc still needs shared libraries to look up names of users and
        // hosts.
        match [Self::Musl, Self::Glibc].into_iter().find(|platform| platform.is_installed()) {
            Some(platform) => Ok(platform),
            None => bail!("no standard library of Rust is installed for {ARCH} on Linux"),
        }
    }

    /// Whether Rust has a standard library for it.
    fn is_installed(self) -> bool {
        let mut rustc = program("rustc");
        rustc.args(["--print", "target-libdir", "--target", &self.triple()]);
        let printed = rustc.output().map(|output| output.stdout).unwrap_or_default();
        Path::new(String::from_utf8_lossy(&printed).trim()).is_dir()
    }

    pub(super) fn triple(self) -> String {
        match self {
            Self::Musl => format!("{ARCH}-unknown-linux-musl"),
            Self::Glibc => format!("{ARCH}-unknown-linux-gnu"),
        }
    }

    /// How the archive is called.
    pub(super) fn label(self) -> String {
        match self {
            Self::Musl => format!("{ARCH}-linux-musl"),
            Self::Glibc => format!("{ARCH}-linux-gnu-static"),
        }
    }
}
