//! Detects Rust projects: `Cargo.toml`.

use super::{DetectedCommand, DetectedOffer, DetectedTool, Listing};

pub(super) fn find(listing: &Listing) -> Option<DetectedTool> {
    listing.has("Cargo.toml").then(|| {
        let manifest = listing.text("Cargo.toml").and_then(|text| text.parse().ok());
        let manifest: toml::Table = manifest.unwrap_or_default();
        let mut commands = vec![test(&manifest), DetectedCommand::builds("cargo build")];
        if lints(listing, &manifest) {
            commands.push(DetectedCommand::lints("cargo clippy"));
        }
        if listing.has("rustfmt.toml") || listing.has(".rustfmt.toml") {
            commands.push(DetectedCommand::lints("cargo fmt"));
        }
        DetectedTool::new("Cargo.toml", DetectedOffer::of(commands, "it could not be read"))
    })
}

/// Returns the test command. The root package of a workspace tests only itself without
/// `--workspace`.
fn test(manifest: &toml::Table) -> DetectedCommand {
    if manifest.contains_key("workspace") {
        DetectedCommand::tests("cargo test --workspace").with_prefix("cargo test")
    } else {
        DetectedCommand::tests("cargo test")
    }
}

/// Whether to offer Clippy: only if it is configured, because it is not installed everywhere.
fn lints(listing: &Listing, manifest: &toml::Table) -> bool {
    let own = manifest.get("lints").and_then(|lints| lints.get("clippy"));
    let workspace = manifest.get("workspace").and_then(|table| table.get("lints")?.get("clippy"));
    let configured = ["clippy.toml", ".clippy.toml"].into_iter().any(|file| listing.has(file));
    configured || own.or(workspace).is_some()
}
