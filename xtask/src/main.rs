//! `cargo xtask`: the commands for developers, from a quick check to a release.
//!
//! `check` is the quick one for every edit, and `test` runs all tests. `torture`, `sabotage` and
//! `mutants` show that the promises hold and that the tests can fail. `bench` and `instructions`
//! measure costs, `words`, `modules` and `deny` check style, structure and dependencies, `book` and
//! `dist` build the documentation and the archive that people download.
//!
//! This crate is not a part of the product. Only `commands` starts programs. Each command has a
//! module of its own, whose documentation describes it.

mod bench;
mod book;
mod check;
mod clients;
mod commands;
mod deny;
mod dist;
mod instructions;
mod mcp;
mod modules;
mod mutants;
mod npm;
mod openclaw;
mod pypi;
mod sabotage;
mod test;
mod tidy;
mod tools;
mod torture;
mod words;

use std::process::ExitCode;

const USAGE: &str = "\
cargo xtask check               the fast loop: format, lints and wording of changed files, tests of core, store and engine
cargo xtask test [LANE…]        run all tests, or some lanes: rules, deny, instructions, real, mcp, openclaw, torture
cargo xtask test real --newest  run the lane real with the newest published clients; not part of CI
cargo xtask torture [PART…]     run short tests with crashes, kills, faults and hostile input; --minutes N, --seed N
cargo xtask sabotage [NAME…]    apply each patch of tests/sabotage in a scratch tree and run its test; --rotate N
cargo xtask mutants             check that tests notice small changes of core and store; --changed, or arguments of cargo-mutants
cargo xtask modules             check that the modules of a crate import each other without cycles
cargo xtask deny                check dependencies against deny.toml: bans, licences, sources
cargo xtask bench [ROW…]        compare the costs of a step with the least possible costs; --peers, --rounds N, --json FILE
cargo xtask instructions        compare instruction counts of hot paths with the recorded counts; --update
cargo xtask book                build the documentation as HTML pages in target/book
cargo xtask words [PATH…]       find phrases of xtask/words.txt in comments, messages, names and pages
cargo xtask dist                build and try a static binary, in an archive in target/dist";

#[expect(clippy::print_stderr, reason = "a command line talks on stderr")]
fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["check"] => check::check(),
        ["test", lanes @ ..] => test::test(lanes),
        ["torture", words @ ..] => torture::parse(words),
        ["sabotage", wanted @ ..] => sabotage::sabotage(wanted),
        ["dist"] => dist::dist(),
        ["mutants", words @ ..] => mutants::mutants(words),
        ["deny"] => deny::deny(),
        ["modules"] => modules::modules(),
        ["bench", words @ ..] => bench::bench(words),
        ["instructions", words @ ..] => instructions::instructions(words),
        ["book"] => book::book(),
        ["words", paths @ ..] => words::words(paths),
        _ => Err(anyhow::anyhow!("unknown task\n{USAGE}")),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}
