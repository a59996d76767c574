//! A stand-in for the `claude` program; see [`raymond_testkit::fake_claude`].

use std::process::ExitCode;

fn main() -> ExitCode {
    raymond_testkit::fake_claude::run()
}
