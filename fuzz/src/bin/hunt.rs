//! Looks for inputs that reach new code, for a given time: `hunt TARGET MINUTES [SEED]`.
//!
//! An input that breaks a rule is kept in `fuzz/found` and ends the hunt. An input that reaches new
//! code goes into the pool. The smallest inputs that reach new places go into
//! `fuzz/found/new-TARGET`; move those worth keeping into the corpus. Without a build that counts
//! (see `CONTRIBUTING.md`), a hunt is only a long campaign.

use std::env;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use raymond_core::value::Hash;
use raymond_fuzz::coverage::Seen;
use raymond_fuzz::{Target, campaign, corpus, mutate, targets};
use raymond_testkit::dice::Dice;

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [name, minutes, rest @ ..] = &*arguments else { bail!("hunt TARGET MINUTES [SEED]") };
    let target = targets::ALL.into_iter().find(|target| target.name == name);
    let target = target.with_context(|| format!("there is no target {name}"))?;
    let minutes: u64 = minutes.parse().context("MINUTES")?;
    let seed = rest.first().map_or(Ok(1), |seed| seed.parse()).context("SEED")?;
    let work = || hunt(target, Duration::from_mins(minutes), seed);
    campaign::on_a_thread(format!("hunt {name} seed {seed}"), work)
}

fn hunt(target: &Target, time: Duration, seed: u64) -> anyhow::Result<()> {
    let seeds = corpus::of(target.name);
    let mut pool: Vec<Vec<u8>> = campaign::pool(&seeds).into_iter().map(<[u8]>::to_vec).collect();
    let mut seen = Seen::default();
    for input in &pool {
        reaches(target, input, &mut seen)?;
    }
    let (known, places) = (pool.len(), seen.places());
    let mut dice = Dice::new(seed);
    let (start, mut inputs) = (Instant::now(), 0_u64);
    while start.elapsed() < time {
        let borrowed: Vec<&[u8]> = pool.iter().map(Vec::as_slice).collect();
        let input = mutate::mutated(&mut dice, &borrowed, target.words);
        inputs += 1;
        if reaches(target, &input, &mut seen)? {
            pool.push(input);
        }
    }
    let kept = distil(target, &pool[..known], &pool[known..])?;
    let found = pool.len() - known;
    report(&format!(
        "{}: {inputs} inputs of seed {seed}, {places} places reached by the corpus, {} in the end; \
         {found} inputs were new, {kept} of them are kept",
        target.name,
        seen.places(),
    ));
    Ok(())
}

/// Plays an input, and says whether it reached something new. One that breaks a rule is kept.
fn reaches(target: &Target, input: &[u8], seen: &mut Seen) -> anyhow::Result<bool> {
    seen.begin();
    if let Err(why) = campaign::play(target, input) {
        let kept = campaign::keep(target, input);
        bail!("{why}\nit broke {} and is kept as {}", target.name, kept.display());
    }
    Ok(seen.grew())
}

/// Keeps those of the new inputs that reach a place which neither the corpus nor a smaller new
/// input reaches.
fn distil(target: &Target, known: &[Vec<u8>], new: &[Vec<u8>]) -> anyhow::Result<usize> {
    let directory =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("found").join(format!("new-{}", target.name));
    fs::create_dir_all(&directory)?;
    // From the start, because the hunt kept inputs in the order of discovery, and a smaller one
    // found later may reach the same places.
    let mut seen = Seen::default();
    for input in known {
        reaches(target, input, &mut seen)?;
    }
    let mut new: Vec<&Vec<u8>> = new.iter().collect();
    new.sort_by_key(|input| input.len());
    let mut kept = 0;
    for input in new {
        let before = seen.places();
        reaches(target, input, &mut seen)?;
        // Places and not counts: an input that only repeats known code is not worth a file in the
        // corpus.
        if seen.places() > before {
            kept += 1;
            let name = Hash::of(input).to_string();
            fs::write(directory.join(&name[..12]), input)?;
        }
    }
    Ok(kept)
}

#[expect(clippy::print_stdout, reason = "this is what it was asked for")]
fn report(line: &str) {
    println!("{line}");
}
