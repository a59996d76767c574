//! Rust: `Cargo.toml`.

use super::{Command, Listing, Offer, Tool};

pub(super) fn find(listing: &Listing) -> Option<Tool> {
    listing.has("Cargo.toml").then(|| {
        let manifest = listing.text("Cargo.toml").and_then(|text| text.parse().ok());
        let manifest: toml::Table = manifest.unwrap_or_default();
        let mut commands = vec![test(&manifest), Command::new("cargo build")];
        if lints(listing, &manifest) {
            commands.push(Command::new("cargo clippy"));
        }
        if listing.has("rustfmt.toml") || listing.has(".rustfmt.toml") {
            commands.push(Command::new("cargo fmt"));
        }
        Tool::new("Cargo.toml", Offer::of(commands, ""))
    })
}

/// A package that is a workspace as well tests only itself unless it is told to test all.
fn test(manifest: &toml::Table) -> Command {
    if manifest.contains_key("workspace") {
        Command::with_prefix("cargo test --workspace", "cargo test")
    } else {
        Command::new("cargo test")
    }
}

/// Clippy is not installed everywhere: it is offered where it is configured.
fn lints(listing: &Listing, manifest: &toml::Table) -> bool {
    let own = manifest.get("lints").and_then(|lints| lints.get("clippy"));
    let workspace = manifest.get("workspace").and_then(|table| table.get("lints")?.get("clippy"));
    let configured = ["clippy.toml", ".clippy.toml"].into_iter().any(|file| listing.has(file));
    configured || own.or(workspace).is_some()
}
