//! The next command for a run: a line that the user can paste.
//!
//! `raymond_core::view` decides which command it is. A command that starts a run again repeats the
//! flags of the start.

use raymond_core::crayfish::VariableProblem;
use raymond_core::run::settings::Pinning;
use raymond_core::run::start_flags::StartFlags;
use raymond_core::run::{Program, Ralph, Run, Settings};
use raymond_core::text::quoted;
use raymond_core::value::Value;
use raymond_core::view::{CallTarget, Change, Ledger, NextCommand};
use raymond_store::lock::Takeover;

use crate::config::{RunFlag, repeated_flags};
use crate::denied::allow_flags;
use crate::secrets::redacted;

/// The longest input in bytes that a command repeats; a longer one is shown as an ellipsis.
const LONGEST_INPUT: usize = 200;

/// Returns the command line for this run. Only a resume takes the lock, so only a resume can
/// replace an owner.
pub(crate) fn line(next: &NextCommand, takeover: Takeover, run: &Run, ledger: &Ledger) -> String {
    let id = &run.id;
    match next {
        NextCommand::Wait => format!("raymond wait {id}"),
        NextCommand::Show => format!("raymond show {id}"),
        NextCommand::Resume(changes) => {
            let flags = changes.iter().map(|change| format!(" {}", flag(change)));
            format!("raymond resume {id}{}{}", flags.collect::<String>(), takeover_flag(takeover))
        }
        NextCommand::ResumeWithBudget { dollars } => {
            format!("raymond resume {id} --budget {dollars}{}", takeover_flag(takeover))
        }
        NextCommand::Answer { agent: None, .. } => format!("raymond answer {id}"),
        NextCommand::Answer { options, .. } => {
            format!("raymond answer {id} {}", first_answer(options))
        }
        NextCommand::Start => start(run, ledger),
        NextCommand::Call(target) => call(*target).to_owned(),
    }
}

/// Returns an answer to a question that a user can paste.
pub(crate) fn first_answer(options: &[String]) -> String {
    match options.first() {
        None => "TEXT".to_owned(),
        // It would be read as a flag, or as standard input.
        Some(first) if first.starts_with('-') => "1".to_owned(),
        Some(first) => quoted(first),
    }
}

/// Returns the flag that makes a change.
fn flag(change: &Change) -> String {
    match change {
        Change::FreshSessions => "--on-lost-session fresh".to_owned(),
        Change::Allow(rules) => allow_flags(rules.iter()),
        Change::MaxAgents(agents) => format!("--max-agents {agents}"),
        Change::MaxIterations(most) => format!("--max-iterations {most}"),
        Change::Timeout(time) => format!("--timeout {time}"),
        Change::IdleTimeout(time) => format!("--idle-timeout {time}"),
        Change::CurrentStates => "--with-current".to_owned(),
        Change::Variable(VariableProblem::Missing { name }) => {
            format!("--var {}", quoted(&format!("{name}=VALUE")))
        }
        Change::Variable(VariableProblem::NotAList { name }) => {
            format!("--var {name}:='[\"a\", \"b\"]'")
        }
        Change::PinnedStates => "--pinned".to_owned(),
    }
}

fn takeover_flag(takeover: Takeover) -> &'static str {
    match takeover {
        Takeover::Never => "",
        Takeover::OtherHost => " --takeover",
    }
}

/// Returns the call that continues a run of the tool.
fn call(target: CallTarget) -> &'static str {
    match target {
        CallTarget::SameRun => "raymond crayfish < request.json",
        CallTarget::OtherRun => "raymond crayfish < request.json # with another runId",
        CallTarget::OtherRunWithResults => {
            "raymond crayfish < request.json # with another runId, and the results"
        }
    }
}

/// Returns the command that starts a run like this one, without secrets.
fn start(run: &Run, ledger: &Ledger) -> String {
    let Run { workflow, program, settings, .. } = run;
    let (verb, loop_flags) = match program {
        Program::States | Program::Steps(_) => ("run", unpinned(settings).into_iter().collect()),
        Program::Ralph(ralph) => ("ralph", loop_flags(ralph, settings)),
    };
    let mut words = format!("raymond {verb} {}", quoted(&redacted(workflow)));
    let flags = loop_flags.into_iter().chain(program_flags(settings));
    let flags = flags.chain(repeated_flags(settings)).chain(input_flag(ledger));
    for RunFlag { name, value } in flags {
        words = format!("{words} --{name}");
        if let Some(value) = value {
            // Before the quotes, which would split a secret that contains one.
            let value = redacted(&value);
            // A value that begins with a dash would be read as a flag.
            let between = if value.starts_with('-') { '=' } else { ' ' };
            words = format!("{words}{between}{}", quoted(&value));
        }
    }
    words
}

/// Returns the flags that select the program of a run. The table of settings has the others.
fn program_flags(settings: &Settings) -> Vec<RunFlag> {
    let StartFlags { workspace, schema_paths, backend: _ } = &settings.start_flags;
    let workspace = workspace.iter().map(|path| flag_with("workspace", path.clone()));
    let schemas = schema_paths.iter().map(|path| flag_with("schema-path", path.clone()));
    let vars =
        settings.vars.iter().map(|(name, value)| flag_with("var", format!("{name}={value}")));
    workspace.chain(schemas).chain(vars).collect()
}

/// Returns the flag of a run that reads its states at every visit. A loop does so without a flag.
fn unpinned(settings: &Settings) -> Option<RunFlag> {
    let is_unpinned = settings.definition == Pinning::Unpinned;
    is_unpinned.then(|| RunFlag { name: "unpinned".to_owned(), value: None })
}

/// Returns the flag with the input, if the run has one.
fn input_flag(ledger: &Ledger) -> Option<RunFlag> {
    let value = match ledger.input.as_ref()? {
        Value::Inline(text) if text.len() <= LONGEST_INPUT => text.clone(),
        Value::Inline(_) | Value::Blob { .. } => "…".to_owned(),
    };
    Some(flag_with("input", value))
}

/// Returns the flags that only loops have.
fn loop_flags(ralph: &Ralph, settings: &Settings) -> Vec<RunFlag> {
    let limit = settings.max_iterations;
    let limit = (limit != Settings::USUAL_ITERATIONS).then(|| limit.to_string());
    let limit = limit.map(|limit| flag_with("max-iterations", limit));
    let until = ralph.until.clone().map(|until| flag_with("until", until));
    limit.into_iter().chain(until).collect()
}

fn flag_with(name: &str, value: String) -> RunFlag {
    RunFlag { name: name.to_owned(), value: Some(value) }
}

#[cfg(test)]
mod tests {
    use raymond_core::budget::Micros;
    use raymond_core::run::Permissions;
    use raymond_core::time::Span;

    use super::*;

    fn run(settings: Settings) -> Run {
        Run { id: "r".into(), workflow: "/flow".to_owned(), settings, ..Run::default() }
    }

    #[test]
    fn every_command_has_a_line() {
        let run = run(Settings::default());
        let check = |next: &NextCommand, expected: &str| {
            assert_eq!(
                line(next, Takeover::Never, &run, &Ledger::default()),
                format!("raymond {expected}")
            );
        };
        check(&NextCommand::Wait, "wait r");
        check(&NextCommand::Show, "show r");
        check(&NextCommand::ResumeWithBudget { dollars: 32 }, "resume r --budget 32");
        check(&NextCommand::Start, "run /flow");
        let call = |target| NextCommand::Call(target);
        check(&call(CallTarget::SameRun), "crayfish < request.json");
        check(&call(CallTarget::OtherRun), "crayfish < request.json # with another runId");
        check(
            &call(CallTarget::OtherRunWithResults),
            "crayfish < request.json # with another runId, and the results",
        );
    }

    #[test]
    fn resume_has_a_flag_for_every_change() {
        let run = run(Settings::default());
        let check = |changes: &[Change], expected: &str| {
            let next = NextCommand::Resume(changes.to_vec());
            let line = line(&next, Takeover::Never, &run, &Ledger::default());
            assert_eq!(line, format!("raymond resume r{expected}"));
        };
        check(&[], "");
        check(
            &[Change::FreshSessions, Change::MaxAgents(5)],
            " --on-lost-session fresh --max-agents 5",
        );
        let rules = ["Bash(cargo test:*)", "WebSearch"].map(str::to_owned);
        check(&[Change::Allow(rules.into())], " --allow 'Bash(cargo test:*)' --allow WebSearch");
        check(&[Change::Timeout(Span::minutes(20))], " --timeout 20m");
        check(&[Change::IdleTimeout(Span::minutes(20))], " --idle-timeout 20m");
        check(&[Change::CurrentStates], " --with-current");
        check(&[Change::PinnedStates], " --pinned");
    }

    #[test]
    fn new_run_command_includes_short_input() {
        let run = run(Settings::default());
        let check = |input: &str, expected: &str| {
            let mut ledger = Ledger::default();
            ledger.totals.input = Some(Value::from(input));
            let line = line(&NextCommand::Start, Takeover::Never, &run, &ledger);
            assert_eq!(line, format!("raymond run /flow --input{expected}"));
        };
        check("two words", " 'two words'");
        check("- a list", "='- a list'");
        let longest = "x".repeat(200);
        check(&longest, &format!(" {longest}"));
        check(&"x".repeat(201), " '…'");
    }

    #[test]
    fn new_run_command_includes_the_settings() {
        let anew = |settings| {
            line(&NextCommand::Start, Takeover::Never, &run(settings), &Ledger::default())
        };
        let settings = Settings {
            budget: Some(Micros(500_000)),
            strict_budget: true,
            model: Some("opus".to_owned()),
            effort: Some("high".to_owned()),
            max_parallel: 8,
            timeout: Some(Span::minutes(10)),
            permissions: Permissions {
                mode: Some("plan".to_owned()),
                allow: vec!["Bash(cargo test:*)".to_owned()],
                deny: vec!["WebFetch".to_owned()],
                ..Permissions::default()
            },
            ..Settings::default()
        };
        assert_eq!(
            anew(settings),
            "raymond run /flow --budget 0.5 --strict-budget --model opus --effort high \
             --max-parallel 8 --timeout 10m --permission-mode plan --allow 'Bash(cargo test:*)' \
             --deny WebFetch"
        );
        let unlimited = Settings { budget: None, ..Settings::default() };
        assert_eq!(anew(unlimited), "raymond run /flow --budget none");
    }

    #[test]
    fn new_run_command_includes_the_program() {
        let anew = |settings| {
            line(&NextCommand::Start, Takeover::Never, &run(settings), &Ledger::default())
        };
        let vars = [("list:", "[1]"), ("name", "a b")];
        let settings = Settings {
            vars: vars.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
            start_flags: StartFlags {
                workspace: Some("/w s".to_owned()),
                schema_paths: vec!["schemas".to_owned(), "more".to_owned()],
                backend: Some("codex".into()),
            },
            ..Settings::default()
        };
        assert_eq!(
            anew(settings),
            "raymond run /flow --workspace '/w s' --schema-path schemas --schema-path more \
             --var 'list:=[1]' --var 'name=a b' --backend codex"
        );
        let looped = |ralph, max_iterations| {
            let settings = Settings { max_iterations, ..Settings::default() };
            let run = Run { program: Program::Ralph(ralph), ..run(settings) };
            line(&NextCommand::Start, Takeover::Never, &run, &Ledger::default())
        };
        let usual = Settings::USUAL_ITERATIONS;
        assert_eq!(looped(Ralph::default(), usual), "raymond ralph /flow");
        let until = Ralph { until: Some("make check".to_owned()) };
        let expected = "raymond ralph /flow --max-iterations 2 --until 'make check'";
        assert_eq!(looped(until, 2), expected);
        let until = Ralph { until: Some("-x y".to_owned()) };
        assert_eq!(looped(until, usual), "raymond ralph /flow --until='-x y'");
    }
}
