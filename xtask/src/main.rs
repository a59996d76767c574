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
cargo xtask check               the inner loop: format, lints and words of what changed, tests of core, store and engine
cargo xtask test [LANE…]        all tests, or some lanes of them: rules, deny, instructions, real, mcp, openclaw, torture
cargo xtask torture [PART…]     crashes, kills, faults, hostile input: the short version; --minutes N, --seed N
cargo xtask sabotage [NAME…]    apply each patch of tests/sabotage in a scratch tree; --rotate N
cargo xtask mutants             small changes of core and store, each noticed or explained; --changed, or arguments of cargo-mutants
cargo xtask modules             imports between the modules of a crate, which must form no cycle
cargo xtask deny                bans, licences and sources of all dependencies, by deny.toml
cargo xtask bench [ROW…]        what a step takes beside the least that would do; --peers, --rounds N, --json FILE
cargo xtask instructions        those of the hot paths are as many as written down; --update
cargo xtask book                the documentation as pages for a browser, in target/book
cargo xtask words [PATH…]       phrases of xtask/words.txt in comments, messages, names and pages
cargo xtask dist                a static binary in an archive, tried out, in target/dist";

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
