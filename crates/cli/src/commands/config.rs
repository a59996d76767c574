//! `raymond config`: what is configured here, and where each value was said.

use crate::args::Config;
use crate::config::{self, Row};
use crate::failure::Failure;
use crate::runs;
use crate::words::plain;

use super::{print_json, print_out};

pub(crate) fn config(flags: &Config) -> Result<u8, Failure> {
    let rows = config::rows(&config::load(&runs::project()?)?);
    if flags.json {
        print_json(serde_json::json!(rows))?;
    } else {
        print_out(&rows.iter().map(line).collect::<String>())?;
    }
    Ok(0)
}

/// `max_parallel         8                        raymond.toml:3`
fn line(Row { key, value, origin }: &Row) -> String {
    let value = value.as_deref().map_or_else(|| "-".to_owned(), plain);
    format!("{key:<20} {value:<24} {origin}\n")
}
