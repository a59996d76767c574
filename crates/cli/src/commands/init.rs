//! `raymond init`: writes a first workflow, or copies an example.
//!
//! The workflow checks changes with the project's own command and allows agents nothing else; its
//! replies make it possible to try it at once. `init` never overwrites a file: it writes all its
//! files, or none.

mod client;
mod detect;
mod directory;
mod files;
mod listing;
mod scaffold;

use std::io::stdout;
use std::path::Path;

use raymond_core::text::quoted;
use serde_json::json;

use crate::args::Init;
use crate::console::{LineLayout, wrapped};
use crate::examples::{self, EXAMPLES, Example};
use crate::failure::Failure;
use crate::sanitize::sanitized;
use crate::{config, known_projects, runs, terminal};

use super::{print_json, print_text};
use client::DetectedClient;
use detect::{Detected, DetectedOffer, DetectedTool, Git};
use directory::Directory;
use files::example_files;
use scaffold::Scaffold;

pub(crate) fn init(flags: &Init) -> Result<u8, Failure> {
    match &flags.from {
        _ if flags.list => list(flags)?,
        Some(name) => copy(examples::find(name)?, flags)?,
        None => scaffold(flags)?,
    }
    if !flags.list && !flags.dry_run {
        register();
    }
    Ok(0)
}

/// Registers the project of the new workflow. The files are written already, so a project that
/// cannot be found, or whose configuration has mistakes, is left to the first run.
fn register() {
    let Ok(project) = runs::project() else { return };
    let Ok(config) = config::load(&project) else { return };
    // `init` has no --verbose, so a failure stays unreported, as in a usual run.
    drop(known_projects::register(&project, &config));
}

fn list(flags: &Init) -> Result<(), Failure> {
    if flags.json {
        let example = |example: &Example| {
            let files: Vec<String> =
                example_files(example).into_iter().map(|file| file.name).collect();
            json!({ "name": example.name, "about": example.about(), "files": files })
        };
        let examples: Vec<_> = EXAMPLES.iter().map(example).collect();
        return print_json(json!({ "version": crate::json::VERSION, "examples": examples }));
    }
    let width = EXAMPLES.iter().map(|example| example.name.len()).max().unwrap_or_default();
    let room = LineLayout { edge: terminal::edge(&stdout()), taken: 0, indent: width + 2 };
    let line = |example: &Example| {
        let line = format!("{:<width$}  {}", example.name, example.about());
        format!("{}\n", wrapped(&line, room))
    };
    print_text(&EXAMPLES.iter().map(line).collect::<String>())?;
    crate::say!("to copy one: raymond init --from NAME");
    Ok(())
}

fn scaffold(flags: &Init) -> Result<(), Failure> {
    let here = runs::current_directory()?;
    let unlisted =
        |error| Failure::environment(format!("could not list {}: {error}", here.display()));
    let found = Detected::of(&listing::read(&here).map_err(unlisted)?);
    let directory = Directory::named(flags, directory::DEFAULT)?;
    let scaffold = Scaffold::new(&found, &directory.name, DetectedClient::configured());
    let files = scaffold.files();
    directory.check_free(&files, flags)?;
    directory.write(&files, flags)?;
    if flags.json {
        return print_json(json!({
            "version": crate::json::VERSION,
            "found": found.tools.iter().map(tool).collect::<Vec<_>>(),
            "git": found.git == Git::Repository,
            "check": found.check().map(|check| check.line),
            "directory": directory.name,
            "written": directory.paths(&files),
            "dry_run": flags.dry_run,
            "try": [scaffold.try_it()],
            "run": [scaffold.run_it()],
        }));
    }
    print_text(&format!("{}{}", found_text(&found), directory.written_text(&files, flags)))?;
    if flags.dry_run {
        crate::say!("nothing was written");
    } else {
        next_steps(&found, &here, &scaffold);
    }
    Ok(())
}

fn next_steps(found: &Detected, here: &Path, scaffold: &Scaffold<'_>) {
    let runs = match found.check() {
        Some(check) => format!("but `{}` is really executed", check.line),
        None => "and it changes nothing".to_owned(),
    };
    if found.check().is_none() {
        let script = sanitized(&scaffold.check_script());
        crate::say!("\nFound no command that checks a change: add one to {script}.");
        if let Some(top) = listing::repository(here).filter(|top| top != here) {
            let top = sanitized(&top.display().to_string());
            crate::say!("The repository starts in {top}; to search there, run init there.");
        }
    }
    crate::say!(
        "\nTry it: a file of replies stands in for the model, so it costs nothing, {runs}."
    );
    crate::say!("  {}", sanitized(&scaffold.try_it()));
    crate::say!("Then for real, {}:", scaffold.client.with("a cap of $5.00"));
    crate::say!("  {}", sanitized(&scaffold.run_it()));
}

fn copy(example: &Example, flags: &Init) -> Result<(), Failure> {
    let directory = Directory::named(flags, example.name)?;
    let files = example_files(example);
    directory.check_free(&files, flags)?;
    directory.write(&files, flags)?;
    let commands = example.try_it();
    let enter = (directory.name != ".").then(|| format!("cd {}", quoted(&directory.name)));
    let commands: Vec<String> = enter.into_iter().chain(commands).collect();
    if flags.json {
        return print_json(json!({
            "version": crate::json::VERSION,
            "example": example.name,
            "directory": directory.name,
            "written": directory.paths(&files),
            "dry_run": flags.dry_run,
            "try": commands,
        }));
    }
    print_text(&directory.written_text(&files, flags))?;
    if flags.dry_run {
        crate::say!("nothing was written");
        return Ok(());
    }
    crate::say!("\nTry it: a file of replies stands in for the model, so it costs nothing.");
    for command in &commands {
        crate::say!("  {}", sanitized(command));
    }
    crate::say!("README.md explains the workflow and how to adapt it to your project.");
    Ok(())
}

/// ```text
/// found
///   Cargo.toml: cargo test, cargo build
///   git
/// ```
fn found_text(found: &Detected) -> String {
    let git = (found.git == Git::Repository).then(|| "git".to_owned());
    let lines: Vec<String> = found.tools.iter().map(tool_line).chain(git).collect();
    if lines.is_empty() {
        return "found no Cargo, npm, make or Python project, and no git repository\n".to_owned();
    }
    format!("found\n  {}\n", lines.join("\n  "))
}

fn tool_line(tool: &DetectedTool) -> String {
    let offer = match &tool.offer {
        DetectedOffer::Commands { .. } => {
            tool.commands().map(|command| command.line).collect::<Vec<_>>().join(", ")
        }
        DetectedOffer::Nothing(why) => (*why).to_owned(),
    };
    format!("{}: {offer}", sanitized(&tool.file))
}

fn tool(tool: &DetectedTool) -> serde_json::Value {
    let commands: Vec<&str> = tool.commands().map(|command| command.line).collect();
    json!({ "file": tool.file, "commands": commands })
}
