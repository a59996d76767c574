//! A copy of the checkout with mutants woven in: built once, and tried one by one.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Mutex;
use std::time::Instant;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;

use super::listed::Mutant;
use super::results::Outcome;
use super::weave::{SWITCH, Woven, weave};
use super::{Crate, PACKAGES, SLOW, TESTED};
use crate::commands::{cargo, program, root, run};

/// No test needs more, and some mutants never have enough.
pub(super) const KILOBYTES: &str = "8000000";

/// The copy, as far as it is woven and built.
pub(super) struct Tree<'a> {
    home: PathBuf,
    build: PathBuf,
    mutants: &'a [Mutant],
    /// Whose mutants they are.
    crates: &'a [Crate],
    /// When no build may run any more.
    deadline: Option<Instant>,
    /// By file, as it stands in the copy.
    woven: BTreeMap<&'a str, Woven>,
    /// What stands in the copy.
    within: BTreeSet<usize>,
    /// What would not compile alone either.
    unviable: BTreeSet<usize>,
}

/// A type has no such trait, operator or function: that is so wherever the mutant stands.
const HOPELESS: [&str; 8] =
    ["E0061", "E0277", "E0368", "E0369", "E0599", "E0600", "E0624", "E0790"];

/// A program of tests.
#[derive(Debug)]
pub(super) struct Tests {
    package: String,
    pub(super) folder: PathBuf,
    pub(super) program: PathBuf,
}

impl<'a> Tree<'a> {
    /// Copies the checkout, and weaves in what compiles there.
    #[expect(clippy::print_stderr, reason = "a task runner says what it does")]
    pub(super) fn grow(
        home: &Path,
        mutants: &'a [Mutant],
        crates: &'a [Crate],
        deadline: Option<Instant>,
    ) -> Result<Self> {
        let (home, build) = (home.join("tree"), home.join("woven"));
        fs::create_dir_all(&home)?;
        let within = (0..mutants.len()).collect();
        let (woven, unviable) = (BTreeMap::new(), BTreeSet::new());
        let mut tree = Self { home, build, mutants, crates, deadline, woven, within, unviable };
        tree.copy()?;
        tree.weave()?;
        loop {
            let refused = tree.refused()?;
            if refused.is_empty() {
                break;
            }
            eprintln!("    {} cannot stand beside what they replace", refused.len());
            tree.within.retain(|number| !refused.contains(number));
            tree.weave()?;
        }
        Ok(tree)
    }

    pub(super) fn is_unviable(&self, number: usize) -> bool {
        self.unviable.contains(&number)
    }

    pub(super) fn has(&self, number: usize) -> bool {
        self.within.contains(&number)
    }

    /// What is known of a mutant before any test has run.
    pub(super) fn before(&self, number: usize) -> Outcome {
        match (self.is_unviable(number), self.has(number)) {
            (true, _) => Outcome::Unviable,
            (false, true) => Outcome::Survived,
            (false, false) => Outcome::Untried,
        }
    }

    fn copy(&self) -> Result<()> {
        if self.home.exists() {
            fs::remove_dir_all(&self.home)?;
        }
        fs::create_dir_all(&self.home)?;
        // With their times, so that nothing is compiled again that has not changed.
        let copy = "git ls-files -z --cached --others --exclude-standard --deduplicate \
            | xargs -0 cp --preserve=timestamps --parents --target-directory";
        run(program("sh").args(["-c", &format!("{copy} \"$0\"")]).arg(&self.home))
    }

    fn weave(&mut self) -> Result<()> {
        let mut files: BTreeMap<&str, Vec<(usize, &Mutant)>> = BTreeMap::new();
        for (number, mutant) in self.mutants.iter().enumerate() {
            let of = files.entry(&mutant.file).or_default();
            if self.within.contains(&number) {
                of.push((number, mutant));
            }
        }
        let mut lost = self.within.clone();
        for (file, mutants) in files {
            let text = fs::read_to_string(root().join(file))?;
            let woven = weave(&text, &mutants).with_context(|| format!("weaving {file}"))?;
            lost.retain(|number| !woven.has(*number));
            self.unviable.extend(&woven.impossible);
            write(&self.home.join(file), &woven.text)?;
            self.woven.insert(file, woven);
        }
        self.within.retain(|number| !lost.contains(number));
        for Crate { root: library, .. } in self.crates {
            let text = match self.woven.get(library) {
                Some(woven) => woven.text.clone(),
                None => fs::read_to_string(root().join(library))?,
            };
            write(&self.home.join(library), &format!("{text}{SWITCH}"))?;
        }
        Ok(())
    }

    fn cargo(&self, words: &[&str], packages: &[&str]) -> Command {
        let mut command = match self.deadline {
            None => cargo(&[]),
            Some(deadline) => {
                let left = deadline.saturating_duration_since(Instant::now());
                let mut limited = program("timeout");
                // Rounded up: a build that is stopped must not look like one that failed in time.
                limited.arg((left.as_secs() + 1).to_string()).arg(cargo(&[]).get_program());
                limited
            }
        };
        command.args(words).arg("--message-format=json").current_dir(&self.home);
        command.args(packages.iter().flat_map(|package| ["--package", package]));
        command.env("CARGO_TARGET_DIR", &self.build).env("RUSTFLAGS", "--cap-lints=allow");
        command.env("CARGO_PROFILE_DEV_DEBUG", "0");
        command
    }

    /// Those that do not compile as they stand.
    fn refused(&mut self) -> Result<BTreeSet<usize>> {
        let packages: Vec<&str> = self.crates.iter().map(|of| of.package).collect();
        let output = self.cargo(&["check", "--keep-going"], &packages).output()?;
        let mut refused = BTreeSet::new();
        for message in messages(&output.stdout).map(|line| line["message"].clone()) {
            if message["level"] == "error" && message["spans"][0].is_object() {
                let whose = self.whose(&message["spans"]);
                ensure!(!whose.is_empty(), "{}", message["rendered"].as_str().unwrap_or_default());
                if let ([one], Some(code)) = (whose.as_slice(), message["code"]["code"].as_str())
                    && HOPELESS.contains(&code)
                {
                    self.unviable.insert(*one);
                }
                refused.extend(whose);
            }
        }
        if refused.is_empty() {
            succeeded(&output, &self.home)?;
        }
        Ok(refused)
    }

    /// Whose fault it is: of those around a place of the error, the closest; or those in the same lines.
    fn whose(&self, spans: &Value) -> Vec<usize> {
        let mut places = Vec::new();
        for span in spans.as_array().map(Vec::as_slice).unwrap_or_default() {
            // What a macro made stands where the macro is used.
            let chain = std::iter::successors(Some(span), |span| {
                Some(&span["expansion"]["span"]).filter(|span| span.is_object())
            });
            places.extend(chain.filter_map(|span| {
                let number = |name: &str| usize::try_from(span[name].as_u64()?).ok();
                let woven = self.woven.get(span["file_name"].as_str()?)?;
                let range = number("byte_start")?..number("byte_end")?;
                Some((woven, range, span["is_primary"] == true))
            }));
        }
        let primary = places.iter().filter(|(.., primary)| *primary);
        let around: Vec<usize> =
            primary.flat_map(|(woven, range, _)| woven.around(range)).copied().collect();
        if !around.is_empty() {
            return around;
        }
        places.iter().flat_map(|(woven, range, _)| woven.in_lines_of(range)).collect()
    }

    /// Builds a program that tests start.
    pub(super) fn build(&self, words: &[&str], package: &str) -> Result<()> {
        let output = self.cargo(words, &[package]).output()?;
        succeeded(&output, &self.home)
    }

    /// Builds tests, in the order of their packages; `which` of them.
    pub(super) fn tests(&self, packages: &[&str], which: &[&str]) -> Result<Vec<Tests>> {
        let words = [&["test", "--no-run"], which].concat();
        let output = self.cargo(&words, packages).output()?;
        succeeded(&output, &self.home)?;
        let built = messages(&output.stdout);
        let mut tests: Vec<Tests> = built.filter_map(|built| Tests::read(&built)).collect();
        tests.sort_by_key(|tests| packages.iter().position(|name| *name == tests.package));
        Ok(tests)
    }

    /// What becomes of each of these, by quick tests of its own crate.
    #[expect(clippy::print_stderr, reason = "a task runner says what it does")]
    pub(super) fn quickly(&self, numbers: &[usize]) -> Result<Vec<(usize, Outcome)>> {
        let tests = self.tests(&PACKAGES, &[])?;
        check(&tests, &skipped())?;
        each(numbers, |number| {
            let mutant = &self.mutants[number];
            // Most of them are noticed where they are.
            let module = mutant.module();
            let near = [skipped(), vec![&module]].concat();
            let own = tests.iter().filter(|tests| tests.package == mutant.package);
            let tries = own.flat_map(|tests| [(tests, near.clone()), (tests, skipped())]);
            let outcome = first(tries.map(|(tests, words)| tests.run(Some(number), &words, 10)))?;
            if outcome == Outcome::Survived {
                eprintln!("    not quickly: {}", mutant.place);
            }
            Ok(outcome)
        })
    }

    /// What becomes of each of these, by all tests: those that take long come last.
    #[expect(clippy::print_stderr, reason = "a task runner says what it does")]
    pub(super) fn thoroughly(&self, numbers: &[usize]) -> Result<Vec<(usize, Outcome)>> {
        let tests = self.tests(&TESTED, &[])?;
        check(&tests, &[])?;
        each(numbers, |number| {
            let quick = tests.iter().map(|tests| (tests, skipped()));
            let tries = quick.chain(tests.iter().map(|tests| (tests, Vec::new())));
            let outcome = first(tries.map(|(tests, words)| tests.run(Some(number), &words, 300)))?;
            if outcome == Outcome::Survived {
                eprintln!("    not at all: {}", self.mutants[number].place);
            }
            Ok(outcome)
        })
    }
}

/// Fails with what cargo said, unless it succeeded.
fn succeeded(output: &Output, home: &Path) -> Result<()> {
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{} does not compile:\n{said}", home.display());
    Ok(())
}

fn skipped() -> Vec<&'static str> {
    SLOW.iter().flat_map(|slow| ["--skip", slow]).collect()
}

/// Without any mutant, nothing fails.
fn check(tests: &[Tests], words: &[&str]) -> Result<()> {
    for tests in tests {
        let outcome = tests.run(None, words, 600)?;
        if outcome != Outcome::Survived {
            bail!("{} fail although no mutant is switched on", tests.program.display());
        }
    }
    Ok(())
}

impl Tests {
    fn read(message: &Value) -> Option<Self> {
        let program = PathBuf::from(message["executable"].as_str()?);
        let is_test = message["profile"]["test"] == true;
        let folder = Path::new(message["manifest_path"].as_str()?).parent()?.to_owned();
        let package = match folder.file_name()?.to_str()? {
            "cli" => "raymond".to_owned(),
            name => format!("raymond-{name}"),
        };
        is_test.then_some(Self { package, folder, program })
    }

    fn run(&self, number: Option<usize>, words: &[&str], seconds: u32) -> Result<Outcome> {
        // Of its own time, because others may use the machine, too; and of the world's, if it only waits.
        let limited = format!(
            "ulimit -v {KILOBYTES}; ulimit -t {seconds}; exec timeout --signal=KILL {} \"$0\" \"$@\"",
            seconds * 10
        );
        let mut command = program("sh");
        command.args(["-c", &limited]).arg(&self.program).arg("--quiet").args(words);
        command.current_dir(&self.folder).env("INSTA_UPDATE", "no");
        command.env("PROPTEST_CASES", "32").env("PROPTEST_MAX_SHRINK_ITERS", "0");
        command.env("RUST_TEST_THREADS", "1").env("RUST_BACKTRACE", "0");
        match number {
            Some(number) => command.env("RAYMOND_MUTANT", number.to_string()),
            None => command.env_remove("RAYMOND_MUTANT"),
        };
        let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status()?;
        Ok(match status.code() {
            Some(0) => Outcome::Survived,
            // What `timeout` says when it had to kill, or when its time was used up.
            Some(137 | 152) | None => Outcome::Hung,
            Some(_) => Outcome::Caught,
        })
    }
}

/// Writes what is new, and leaves the time of what is not.
fn write(path: &Path, text: &str) -> Result<()> {
    if fs::read_to_string(path).is_ok_and(|old| old == text) {
        return Ok(());
    }
    Ok(fs::write(path, text)?)
}

fn messages(printed: &[u8]) -> impl Iterator<Item = Value> {
    printed.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok())
}

/// The first that is not survived.
fn first(tries: impl Iterator<Item = Result<Outcome>>) -> Result<Outcome> {
    for outcome in tries {
        let outcome = outcome?;
        if outcome != Outcome::Survived {
            return Ok(outcome);
        }
    }
    Ok(Outcome::Survived)
}

/// Does it for each, on all cores.
pub(super) fn each<T: Send>(
    numbers: &[usize],
    judge: impl Fn(usize) -> Result<T> + Sync,
) -> Result<Vec<(usize, T)>> {
    let queue = Mutex::new(numbers.iter().copied());
    let next = || queue.lock().ok()?.next();
    let work = || -> Result<Vec<(usize, T)>> {
        std::iter::from_fn(next).map(|number| Ok((number, judge(number)?))).collect()
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..cores).map(|_| scope.spawn(work)).collect();
        let mut all = Vec::new();
        for worker in workers {
            all.extend(worker.join().map_err(|_| anyhow::anyhow!("a worker fell over"))??);
        }
        all.sort_by_key(|(number, _)| *number);
        Ok(all)
    })
}
