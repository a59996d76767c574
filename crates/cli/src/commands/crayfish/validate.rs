//! `raymond crayfish validate`: all that is wrong with documents, before anything runs.

use std::path::{Path, PathBuf};

use raymond_core::crayfish::Problem;
use raymond_core::view::counted;
use serde_json::{Map, Value, json};

use crate::args::Validate;
use crate::commands::{print_json, print_out};
use crate::documents::{self, Found, Mistake, Shelf, Unfit};
use crate::failure::{Failure, USAGE};
use crate::json::VERSION;
use crate::words::plain;

/// How many steps a document has and what is worth a look, or what is wrong with it.
type Checked = Result<(usize, Vec<Mistake>), Unfit>;

pub(crate) fn validate(flags: &Validate) -> Result<u8, Failure> {
    let workspace = flags.workspace.as_deref().unwrap_or_else(|| Path::new("."));
    let shelf = Shelf::open(workspace, &flags.schemas.paths)?;
    let check = |path: &'_ PathBuf| (documents::name(path), check(path, &shelf));
    let checked: Vec<(String, Checked)> = flags.files.iter().map(check).collect();
    let (all, wrong) = (checked.len(), checked.iter().filter(|(_, found)| found.is_err()).count());
    if flags.json {
        let files: Vec<Value> =
            checked.into_iter().map(|(file, found)| object(&file, found)).collect();
        print_json(json!({ "version": VERSION, "ok": wrong == 0, "files": files }))?;
    } else {
        tell(checked)?;
        if wrong > 0 && all > 1 {
            crate::say!("raymond: found problems in {wrong} of {all} documents");
        }
    }
    Ok(if wrong > 0 { USAGE } else { 0 })
}

fn check(path: &Path, shelf: &Shelf) -> Checked {
    let found = Found::read(path)?;
    let prepared = found.prepare(path, &Map::new(), shelf)?;
    let work = prepared.definition.work.as_ref();
    Ok((work.map_or(0, |work| work.document.steps().len()), found.doubts()))
}

fn tell(checked: Vec<(String, Checked)>) -> Result<(), Failure> {
    for (file, found) in checked {
        match found {
            Ok((steps, doubts)) => {
                for doubt in doubts {
                    doubt.warn(&file);
                }
                let steps = counted(steps as u64, "step");
                print_out(&format!("{}: valid, {steps}\n", plain(&file)))?;
            }
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
        Err(Unfit::Unread { failure, code }) => {
            let errors =
                [json!({ "path": "", "code": code.as_str(), "message": failure.told().0 })];
            json!({ "file": file, "ok": false, "errors": errors })
        }
        Err(Unfit::Wrong { mistakes, .. }) => {
            let errors: Vec<Value> = mistakes.into_iter().map(mistake).collect();
            json!({ "file": file, "ok": false, "errors": errors })
        }
    }
}

fn mistake(Mistake { problem: Problem { path, code, message }, place }: Mistake) -> Value {
    json!({
        "path": path,
        "code": code.as_str(),
        "message": message,
        "line": place.line,
        "column": place.column,
    })
}
