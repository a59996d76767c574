//! Detects Rust projects: `Cargo.toml`.

use super::{Command, Listing, Offer, Tool};

pub(super) fn find(listing: &Listing) -> Option<Tool> {
    listing.has("Cargo.toml").then(|| {
        let manifest = listing.text("Cargo.toml").and_then(|text| text.parse().ok());
        let manifest: toml::Table = manifest.unwrap_or_default();
        let mut commands = vec![test(&manifest), Command::builds("cargo build")];
        if lints(listing, &manifest) {
            commands.push(Command::lints("cargo clippy"));
        }
        if listing.has("rustfmt.toml") || listing.has(".rustfmt.toml") {
            commands.push(Command::lints("cargo fmt"));
        }
        Tool::new("Cargo.toml", Offer::of(commands, "it could not be read"))
    })
}

/// Returns the test command. The root package of a workspace tests only itself without
/// `--workspace`.
fn test(manifest: &toml::Table) -> Command {
    if manifest.contains_key("workspace") {
        Command::tests("cargo test --workspace").with_prefix("cargo test")
    } else {
        Command::tests("cargo test")
    }
}

/// Whether to offer Clippy: only if it is configured, because it is not installed everywhere.
fn lints(listing: &Listing, manifest: &toml::Table) -> bool {
    let own = manifest.get("lints").and_then(|lints| lints.get("clippy"));
    let workspace = manifest.get("workspace").and_then(|table| table.get("lints")?.get("clippy"));
    let configured = ["clippy.toml", ".clippy.toml"].into_iter().any(|file| listing.has(file));
    configured || own.or(workspace).is_some()
}
