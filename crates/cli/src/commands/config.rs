//! `raymond config`: what is configured here, and where each value was said.

use serde_json::json;

use crate::args::Config;
use crate::config::{self, Row};
use crate::failure::Failure;
use crate::json::VERSION;
use crate::runs;
use crate::words::plain;

use super::{print_json, print_out};

pub(crate) fn config(flags: &Config) -> Result<u8, Failure> {
    let rows = config::rows(&config::load(&runs::project()?)?);
    if flags.json {
        print_json(json!({ "version": VERSION, "settings": rows }))?;
    } else {
        print_out(&rows.iter().map(line).collect::<String>())?;
    }
    Ok(0)
}

/// `max_parallel         8                        raymond.toml:3`
fn line(Row { key, text, origin, .. }: &Row) -> String {
    format!("{key:<20} {:<24} {origin}\n", plain(text))
}
