//! `raymond crayfish explain`: prints a document as a tree.

use std::io::stdout;
use std::path::Path;

use anstyle::Style;
use raymond_core::crayfish::explain::{TreeLine, lines, shared, title};
use raymond_core::crayfish::{Document, StepId};
use serde_json::{Map, Value, json};
use unicode_width::UnicodeWidthStr as _;

use crate::args::Explain;
use crate::commands::{print_json, print_styled};
use crate::console::{LineLayout, wrapped};
use crate::documents::{self, DocumentFile, SchemaDirs};
use crate::failure::Failure;
use crate::json::VERSION;
use crate::sanitize::sanitized;
use crate::terminal::edge;

/// Most columns of a line; longer lines are hard to read.
const WIDEST: usize = 100;
/// Least columns for text, even for deeply nested steps.
const LEAST: usize = 30;

pub(crate) fn explain(flags: &Explain) -> Result<u8, Failure> {
    let found = DocumentFile::read(&flags.file)?;
    let document = found.parse()?;
    if flags.workspace.is_some() || !flags.schemas.paths.is_empty() {
        // A user who names schema directories wants the schemas checked, too.
        let workspace = flags.workspace.as_deref().unwrap_or_else(|| Path::new("."));
        let schema_dirs = SchemaDirs::open(workspace, &flags.schemas.paths)?;
        found.prepare(&flags.file, &Map::new(), &schema_dirs)?;
    }
    let name = documents::name(&flags.file);
    for doubt in found.warnings() {
        doubt.warn(&name);
    }
    if flags.json {
        print_json(object(&document))?;
        return Ok(0);
    }
    // Without a terminal there is no edge, so the widest line applies.
    let (edge, name) = (edge(&stdout()).min(WIDEST), heading());
    let mut text = sanitized(&format!("{}\n", title(&document)));
    for line in shared(&document) {
        text.push_str(&room(&sanitized(&line), edge, "  "));
        text.push('\n');
    }
    for line in lines(&document) {
        text.push_str(&step_text(&line, edge, name));
    }
    print_styled(&text)?;
    Ok(0)
}

/// Returns the style of step names: bold if the terminal shows styles.
fn heading() -> Style {
    match anstream::AutoStream::choice(&stdout()) {
        anstream::ColorChoice::Never => Style::new(),
        _ => Style::new().bold(),
    }
}

/// Formats a step, and the facts about it below.
fn step_text(line: &TreeLine, edge: usize, style: Style) -> String {
    let TreeLine { lead, below, name, kind, does, description, facts, .. } = line;
    let name = sanitized(name);
    let head = sanitized(&[&name, *kind, does].join("  "));
    let continued = if below.is_empty() { " ".repeat(lead.width()) } else { below.clone() };
    let head = room(head.trim_end(), edge.saturating_sub(lead.width()).max(LEAST), "");
    let head = head.replace('\n', &format!("\n{continued}"));
    // The style is added behind the wrapping, because escape sequences would count as columns.
    let rest = head.strip_prefix(name.as_str()).unwrap_or_default();
    let mut text = format!("{lead}{style}{name}{style:#}{rest}\n");
    let width = edge.saturating_sub(below.width()).max(LEAST);
    let facts = (!facts.is_empty()).then(|| facts.join(" · "));
    for words in description.iter().chain(&facts) {
        for line in room(&sanitized(words), width, "  ").lines() {
            text.extend([below.as_str(), line, "\n"]);
        }
    }
    text
}

/// Wraps the text to this width.
fn room(text: &str, edge: usize, indent: &str) -> String {
    wrapped(text, LineLayout { edge, taken: 0, indent: indent.len() })
}

fn object(document: &Document) -> Value {
    let steps: Vec<Value> = lines(document)
        .filter_map(|line| {
            let index = line.step?;
            let parent = document.step(index).place.parent.map(|parent| &document.step(parent).id);
            Some(json!({
                "id": line.name,
                "kind": line.kind,
                "path": document.pointer(index),
                "inside": parent.map(StepId::as_str),
                "does": line.does,
                "description": line.description,
                "facts": line.facts,
            }))
        })
        .collect();
    json!({
        "version": VERSION,
        "name": document.name,
        "workflow_version": document.version,
        "vars": document.vars.keys().collect::<Vec<_>>(),
        "env": document.env.keys().collect::<Vec<_>>(),
        "steps": steps,
    })
}
