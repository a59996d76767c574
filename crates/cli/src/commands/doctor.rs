//! `raymond doctor`: checks whether this machine and this project can run workflows.
//!
//! It asks programs for their versions, sends no request to a model, and ends or removes nothing
//! without `--fix`. Facts are collected here and judged in `raymond_core::view::health`.

mod fix;
mod machine;
mod repository;
mod runs;

use std::fmt::Write as _;

use crate::health::{Finding, HealthMark, worst};
use anstyle::{AnsiColor, Style};
use raymond_engine::project::Project;
use serde_json::json;

use crate::args::Doctor;
use crate::failure::{ENVIRONMENT, Failure};
use crate::sanitize::sanitized;

use super::{print_json, print_styled};

pub(crate) fn doctor(flags: &Doctor) -> Result<u8, Failure> {
    let project = crate::runs::project()?;
    let runtime = crate::runtime::runtime()?;
    // Fix first, so that the findings below show only the problems that remain.
    let fixed = if flags.fix { runtime.block_on(fix::fix(&project)) } else { Vec::new() };
    let findings = runtime.block_on(examine(&project));
    if flags.json {
        let checks: Vec<_> = findings.iter().map(object).collect();
        let version = crate::json::VERSION;
        print_json(json!({ "version": version, "checks": checks, "fixed": fixed }))?;
    } else {
        for deed in &fixed {
            crate::say!("{}", sanitized(deed));
        }
        print_styled(&findings.iter().map(lines).collect::<String>())?;
    }
    Ok(match worst(&findings) {
        // A warning does not prevent runs, so a script that checks the machine must not fail for
        // it.
        HealthMark::Ok | HealthMark::Warn => 0,
        HealthMark::Fail => ENVIRONMENT,
    })
}

async fn examine(project: &Project) -> Vec<Finding> {
    let mut findings = machine::programs(project).await;
    findings.extend(machine::storage(project));
    findings.extend(runs::runs(project));
    findings.push(repository::repository(project).await);
    findings
}

fn object(finding: &Finding) -> serde_json::Value {
    let Finding { check, mark, text, remedy } = finding;
    json!({ "check": check, "verdict": mark.as_str(), "text": text, "remedy": remedy })
}

/// ```text
/// warn  disk       812 MiB free, less than 1 GiB
///                  → free some space
/// ```
fn lines(finding: &Finding) -> String {
    const INDENT: &str = "\n                 ";
    let Finding { check, mark, text, remedy } = finding;
    let style = match mark {
        HealthMark::Ok => AnsiColor::Green.on_default(),
        HealthMark::Warn => AnsiColor::Yellow.on_default(),
        HealthMark::Fail => AnsiColor::Red.on_default().bold(),
    };
    let style = if is_coloured() { style } else { Style::new() };
    let text = sanitized(text).replace('\n', INDENT);
    let mut lines = format!("{style}{mark:<5}{style:#} {check:<10} {text}");
    if let Some(remedy) = remedy {
        write!(lines, "{INDENT}→ {}", sanitized(remedy).replace('\n', INDENT)).ok();
    }
    lines.push('\n');
    lines
}

fn is_coloured() -> bool {
    anstream::AutoStream::choice(&std::io::stdout()) != anstream::ColorChoice::Never
}
