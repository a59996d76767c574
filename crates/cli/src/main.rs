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
        crate::commands::print_error_line(&crate::sanitize::sanitized(&format!($($words)*)))
    };
}
pub(crate) use say;

mod args;
mod backends;
mod commands;
mod completion;
mod config;
mod console;
mod documents;
mod failure;
mod interrupts;
mod json;
mod paths;
mod probe;
mod resource_limits;
mod runs;
mod sanitize;
mod secrets;
mod settings;
mod status_summary;
mod streams;
mod strict_budget;
mod transcript_follower;
mod workflows;

use std::process::ExitCode;
use std::time::Duration;

use clap::Parser as _;

use args::{Arguments, Command};
use failure::Failure;

fn main() -> ExitCode {
    match completion::answer() {
        Ok(completion::Completion::NotRequested) => {}
        Ok(completion::Completion::Answered) => return ExitCode::SUCCESS,
        Err(error) => return args::refuse(&error),
    }
    let arguments = match Arguments::try_parse_from(args::with_run(std::env::args_os())) {
        Ok(arguments) => arguments,
        Err(error) => return args::refuse(&error),
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
        Command::Run(run) => commands::run::run(&run),
        Command::Ralph(ralph) => commands::ralph::ralph(*ralph.0),
        Command::Resume(resume) => commands::resume::resume(&resume),
        Command::Status(look) => commands::status::status(&look),
        Command::Show(show) => commands::show::show(&show),
        Command::Why(look) => commands::why::why(&look),
        Command::Replay(look) => commands::replay::replay(&look),
        Command::Wait(look) => commands::wait::wait(&look),
        Command::Attach(attach) => commands::attach::attach(&attach),
        Command::Stop(stop) => commands::stop::stop(&stop),
        Command::Cancel(cancel) => commands::stop::cancel(&cancel),
        Command::List(list) => commands::list::list(&list),
        Command::Logs(logs) => commands::logs::logs(&logs),
        Command::Cost(cost) => commands::cost::cost(&cost),
        Command::Config(config) => commands::config::config(&config),
        Command::Doctor(doctor) => commands::doctor::doctor(&doctor),
        Command::Prune(prune) => commands::prune::prune(&prune),
        Command::Init(init) => commands::init::init(&init),
        Command::Completions(shell) => commands::completions::completions(&shell),
        Command::Crayfish(crayfish) => commands::crayfish::crayfish(&crayfish),
        Command::Mcp(mcp) => commands::mcp::mcp(&mcp),
        Command::Demo(demo) => commands::demo::demo(&demo),
    }
}

/// Builds the runtime of this process, which has a single thread.
fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    resource_limits::check()?;
    let failed = |error| Failure::environment(format!("could not start the runtime: {error}"));
    let mut builder = tokio::runtime::Builder::new_current_thread();
    // The threads that `resource_limits::warm_up` started must not end: starting one later may
    // fail, and tokio panics then.
    let builder = builder.enable_all().thread_keep_alive(Duration::MAX);
    let runtime = builder.build().map_err(failed)?;
    let entered = runtime.enter();
    // Other processes wake the owner of a run with SIGUSR1, whose default action would end this
    // process. Registering a handler once replaces that action for good.
    let poke = tokio::signal::unix::SignalKind::user_defined1();
    drop(tokio::signal::unix::signal(poke).map_err(failed)?);
    drop(entered);
    Ok(runtime)
}
