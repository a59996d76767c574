//! `raymond config`: shows the settings and where each value comes from.

use serde_json::json;

use crate::args::Config;
use crate::config::{self, SettingRow};
use crate::failure::Failure;
use crate::json::VERSION;
use crate::runs;
use crate::sanitize::sanitized;

use super::{print_json, print_text};

pub(crate) fn config(flags: &Config) -> Result<u8, Failure> {
    let project = runs::project()?;
    let rows = config::rows(&config::load(&project)?);
    let files = config::config_files(&project);
    if flags.json {
        print_json(json!({ "version": VERSION, "settings": rows, "files": files }))?;
    } else {
        print_text(&rows.iter().map(line).collect::<String>())?;
        let files: Vec<String> = files.iter().map(ToString::to_string).collect();
        crate::say!("files (a later one wins): {}", sanitized(&files.join(", ")));
    }
    Ok(0)
}

/// `max_parallel         8                        raymond.toml:3`
fn line(SettingRow { key, text, origin, .. }: &SettingRow) -> String {
    format!("{key:<20} {:<24} {origin}\n", sanitized(text))
}
