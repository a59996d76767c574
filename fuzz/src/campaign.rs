//! Plays the corpus of a target, and then inputs made of it: a given number for a given seed.
//!
//! Every input has its own random numbers, so that it can be repeated alone. The threads have the
//! stack size of the product's threads, so that a recursion that is too deep shows here. A thread
//! is named after its inputs, because a stack overflow ends the process and leaves only that name.

use std::any::Any;
use std::env;
use std::fs;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use raymond_testkit::dice::Dice;
use raymond_testkit::tally;

use crate::corpus::{self, Seed};
use crate::mutate::{LARGEST, mutated};
use crate::{Target, meter};

/// Stack bytes of a thread of the product; the main thread has more.
const STACK: usize = 2 << 20;

/// CPU time that any input may take, and the time for each of its bytes: many times the time that
/// they take without optimisation. An input of ten times the size must not take a hundred times as
/// long.
const PATIENCE: (Duration, Duration) = (Duration::from_secs(4), Duration::from_micros(100));

/// How many inputs one thread plays.
const BATCH: u64 = 64;

/// The number of inputs, and their seed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// `FUZZ_SEED`, or 1.
    pub seed: u64,
    /// `FUZZ_INPUTS` of them, or as many as the target says; `FUZZ_ONLY` is one of them alone.
    pub inputs: Range<u64>,
}

impl Plan {
    /// Returns the plan that the environment variables ask for.
    pub fn of(target: &Target) -> Self {
        let inputs = match number("FUZZ_ONLY") {
            Some(only) => only..only + 1,
            None => 0..number("FUZZ_INPUTS").unwrap_or(target.inputs),
        };
        Self { seed: number("FUZZ_SEED").unwrap_or(1), inputs }
    }
}

fn number(variable: &str) -> Option<u64> {
    let value = env::var(variable).ok()?;
    Some(value.parse().unwrap_or_else(|_| panic!("{variable} is no number: {value:?}")))
}

/// Plays a target, and panics when an input breaks a rule: the message says how to repeat it.
pub fn run(target: &Target) {
    let plan = Plan::of(target);
    let seeds = corpus::of(target.name);
    let pool = pool(&seeds);
    // Every file as it is, also those that are too large for the pool.
    for seed in &seeds {
        let name = format!("{} {}", target.name, seed.name);
        on_a_thread(name, || {
            play(target, &seed.bytes).unwrap_or_else(|why| panic!("{}: {why}", seed.name));
        });
    }
    let count = plan.inputs.end - plan.inputs.start;
    for first in plan.inputs.clone().step_by(usize::try_from(BATCH).unwrap_or(1)) {
        let batch = first..plan.inputs.end.min(first + BATCH);
        let name = format!("{} inputs {batch:?} of seed {}", target.name, plan.seed);
        // A new thread for each batch: after a stack overflow its name shows which inputs to
        // repeat.
        on_a_thread(name, || play_batch(target, &pool, plan.seed, batch));
    }
    tally::count("fuzz", target.name, count + seeds.len() as u64);
}

/// The inputs that others are made of: large ones would make every mutation slow.
pub fn pool(seeds: &[Seed]) -> Vec<&[u8]> {
    let small = seeds.iter().map(|seed| &*seed.bytes).filter(|bytes| bytes.len() <= LARGEST / 4);
    let pool: Vec<&[u8]> = small.collect();
    assert!(!pool.is_empty(), "a corpus holds a small input");
    pool
}

fn play_batch(target: &Target, pool: &[&[u8]], seed: u64, batch: Range<u64>) {
    for index in batch {
        // Its own numbers for each input, so that `FUZZ_ONLY` makes the same input alone.
        let mut dice = Dice::keyed(seed, &format!("{} {index}", target.name));
        let input = mutated(&mut dice, pool, target.words);
        if let Err(why) = play(target, &input) {
            // Kept before the panic, because the numbers reproduce the input only with this corpus.
            let kept = keep(target, &input);
            panic!(
                "{why}\ninput {index} of seed {seed} broke {name}: it is kept as {kept}\n\
                 again: FUZZ_SEED={seed} FUZZ_ONLY={index} cargo test -p raymond-fuzz {name}",
                name = target.name,
                kept = kept.display(),
            );
        }
    }
}

/// Plays one input; the error says which rule it broke.
pub fn play(target: &Target, input: &[u8]) -> Result<(), String> {
    let start = worked();
    let (checked, most) =
        meter::measured(|| catch_unwind(AssertUnwindSafe(|| (target.check)(input))));
    // A panic comes first: time and memory of a check that broke off mean nothing.
    checked.map_err(|panic| said(&*panic))?;
    let length = u32::try_from(input.len()).unwrap_or(u32::MAX);
    let took = worked().saturating_sub(start);
    let patience = PATIENCE.0 + PATIENCE.1 * length;
    if took > patience {
        return Err(format!("{length} bytes took {took:?}, more than {patience:?}"));
    }
    // Linear in the input, so that memory that grows with its square breaks the limit.
    let allowed = target.memory + 1_000 * input.len();
    if most > allowed {
        return Err(format!("{length} bytes took {most} bytes of memory, more than {allowed}"));
    }
    Ok(())
}

/// Returns the CPU time of this thread, because a busy machine must not make an input look slow.
/// On systems other than Linux it is unknown, and no input is too slow.
fn worked() -> Duration {
    let counted = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = counted.split(' ').next().and_then(|number| number.parse().ok());
    Duration::from_nanos(nanoseconds.unwrap_or(0))
}

fn said(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref().copied()).unwrap_or("a panic without words").to_owned()
}

/// Saves an input for the developer who fixes the fault.
pub fn keep(target: &Target, input: &[u8]) -> PathBuf {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("found").join(target.name);
    fs::create_dir_all(&directory).expect("a directory for what was found");
    let name = raymond_core::value::Hash::of(input).to_string();
    let path = directory.join(&name[..16]);
    fs::write(&path, input).expect("a file for what was found");
    path
}

/// Runs `work` on a thread like those of the product, and passes on a panic.
pub fn on_a_thread<T: Send>(name: String, work: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| {
        let builder = thread::Builder::new().name(name).stack_size(STACK);
        let worker = builder.spawn_scoped(scope, work).expect("a thread");
        worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}
