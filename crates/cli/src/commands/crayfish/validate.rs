//! `raymond crayfish validate`: lists all mistakes in documents without running them.

use std::path::{Path, PathBuf};

use raymond_core::crayfish::Problem;
use raymond_core::text::counted;
use serde_json::{Map, Value, json};

use crate::args::Validate;
use crate::commands::{print_json, print_text};
use crate::documents::{self, DocumentError, DocumentFile, Mistake, SchemaDirs};
use crate::failure::{Failure, USAGE};
use crate::json::VERSION;
use crate::sanitize::sanitized;

/// The number of steps and the warnings of a valid document, or its mistakes.
type Checked = Result<(usize, Vec<Mistake>), DocumentError>;

pub(crate) fn validate(flags: &Validate) -> Result<u8, Failure> {
    let workspace = flags.workspace.as_deref().unwrap_or_else(|| Path::new("."));
    let schema_dirs = SchemaDirs::open(workspace, &flags.schemas.paths)?;
    let check = |path: &'_ PathBuf| (documents::name(path), check(path, &schema_dirs));
    // All documents are checked before the first line is printed, because the JSON output starts
    // with the verdict about all of them.
    let checked: Vec<(String, Checked)> = flags.files.iter().map(check).collect();
    let (all, wrong) = (checked.len(), checked.iter().filter(|(_, found)| found.is_err()).count());
    if flags.json {
        let files: Vec<Value> =
            checked.into_iter().map(|(file, found)| object(&file, found)).collect();
        print_json(json!({ "version": VERSION, "ok": wrong == 0, "files": files }))?;
    } else {
        print_findings(checked)?;
        if wrong > 0 && all > 1 {
            crate::say!("raymond: found problems in {wrong} of {all} documents");
        }
    }
    Ok(if wrong > 0 { USAGE } else { 0 })
}

fn check(path: &Path, schema_dirs: &SchemaDirs) -> Checked {
    let found = DocumentFile::read(path)?;
    let prepared = found.prepare(path, &Map::new(), schema_dirs)?;
    let work = prepared.definition.steps.as_ref();
    Ok((work.map_or(0, |work| work.document.steps().len()), found.warnings()))
}

fn print_findings(checked: Vec<(String, Checked)>) -> Result<(), Failure> {
    for (file, found) in checked {
        match found {
            Ok((steps, doubts)) => {
                for doubt in doubts {
                    doubt.warn(&file);
                }
                let steps = counted(steps as u64, "step");
                print_text(&format!("{}: valid, {steps}\n", sanitized(&file)))?;
            }
            // Printed, not returned: the other documents are checked, too.
            Err(unfit) => Failure::from(unfit).print(),
        }
    }
    Ok(())
}

fn object(file: &str, found: Checked) -> Value {
    match found {
        Ok((steps, doubts)) => {
            let warnings: Vec<Value> = doubts.into_iter().map(mistake).collect();
            json!({ "file": file, "ok": true, "steps": steps, "warnings": warnings })
        }
        Err(DocumentError::Unread { failure, code }) => {
            let errors = [
                json!({ "path": "", "code": code.as_str(), "message": failure.message_and_hint().0 }),
            ];
            json!({ "file": file, "ok": false, "errors": errors })
        }
        Err(DocumentError::Wrong { mistakes, .. }) => {
            let errors: Vec<Value> = mistakes.into_iter().map(mistake).collect();
            json!({ "file": file, "ok": false, "errors": errors })
        }
    }
}

fn mistake(Mistake { problem: Problem { path, code, message, .. }, place }: Mistake) -> Value {
    json!({
        "path": path,
        "code": code.as_str(),
        "message": message,
        "line": place.line,
        "column": place.column,
    })
}
