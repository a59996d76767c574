//! The binary `raymond`: reads flags, wires the engine, and chooses messages and exit codes.
//!
//! Data goes to stdout and messages go to stderr. Each command is one file in `commands`. An error
//! is a `Failure`: what happened, what to do, and the exit code. Decisions about runs are not made
//! here: read `raymond_engine` and `raymond_core` for those.

/// Prints a line to stderr, without secrets and without anything that a terminal would obey.
///
/// Every message to a person passes through here, so a caller may put file names, arguments and
/// causes of errors into it as they are. It never fails, and never blocks on a stderr without a
/// reader twice.
macro_rules! say {
    ($($words:tt)*) => {
        crate::streams::print_error_line(&crate::sanitize::sanitized(&format!($($words)*)))
    };
}
pub(crate) use say;

mod activity;
mod args;
mod backends;
mod cause;
mod command_line;
mod commands;
mod completion;
mod config;
mod console;
mod deleted_costs;
mod denied;
mod documents;
mod examples;
mod exit_code;
mod failure;
mod given_texts;
mod health;
mod interrupts;
mod json;
mod known_projects;
mod local_time;
mod next_command;
mod path_text;
mod paths;
mod probe;
mod resource_limits;
mod runs;
mod runtime;
mod sanitize;
mod secrets;
mod settings;
mod status_summary;
mod streams;
mod strict_budget;
mod suspended_owner;
mod terminal;
mod workflows;

use std::process::ExitCode;

use args::Command;
use commands::completions::{self, Completion};
use failure::Failure;

fn main() -> ExitCode {
    match completions::answer() {
        Ok(Completion::NotRequested) => {}
        Ok(Completion::Answered) => return ExitCode::SUCCESS,
        Err(error) => return command_line::refuse(error),
    }
    let words = command_line::with_run(std::env::args_os());
    let arguments = match command_line::parse(words) {
        Ok(arguments) => arguments,
        Err(error) => return command_line::refuse(error),
    };
    match dispatch(arguments.command) {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            failure.print();
            ExitCode::from(failure.code)
        }
    }
}

fn dispatch(command: Command) -> Result<u8, Failure> {
    match command {
        Command::Run(run) => commands::run::run(*run.0),
        Command::Ralph(ralph) => commands::ralph::ralph(*ralph.0),
        Command::Resume(resume) => commands::resume::resume(&resume),
        Command::Tend(tend) => commands::tend::tend(&tend),
        Command::Status(look) => commands::status::status(&look),
        Command::Show(show) => commands::show::show(&show),
        Command::Why(look) => commands::why::why(&look),
        Command::Replay(look) => commands::replay::replay(&look),
        Command::Wait(look) => commands::wait::wait(&look),
        Command::Attach(attach) => commands::attach::attach(&attach),
        Command::Answer(answer) => commands::answer::answer(&answer),
        Command::Stop(stop) => commands::stop::stop(&stop),
        Command::Cancel(cancel) => commands::stop::cancel(&cancel),
        Command::List(list) => commands::list::list(&list),
        Command::Projects(projects) => commands::projects::projects(&projects),
        Command::Logs(logs) => commands::logs::logs(&logs),
        Command::Cost(cost) => commands::cost::cost(&cost),
        Command::Config(config) => commands::config::config(&config),
        Command::Doctor(doctor) => commands::doctor::doctor(&doctor),
        Command::Prune(prune) => commands::prune::prune(&prune),
        Command::Init(init) => commands::init::init(&init),
        Command::Emit(emit) => commands::emit::emit(&emit),
        Command::Completions(shell) => completions::completions(&shell),
        Command::Crayfish(crayfish) => commands::crayfish::crayfish(&crayfish),
        Command::Mcp(mcp) => commands::mcp::mcp(&mcp),
        Command::Demo(demo) => commands::demo::demo(&demo),
    }
}
