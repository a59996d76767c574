//! The table at the end of a torture.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};
use std::fs;

use anyhow::{Context as _, Result};
use serde_json::Value;

use super::{PARTS, Torture};
use crate::commands::program;

/// The sums of all counts.
pub(super) struct Table {
    /// By part, and by what was counted in it.
    counts: BTreeMap<(usize, String), u64>,
    seeds: (u64, u64),
    minutes: u64,
    commit: String,
    violations: usize,
}

/// What is added up beyond one part.
struct Sum {
    name: &'static str,
    /// Whether what a part counts belongs to it.
    has: fn(&str, &str) -> bool,
}

const SUMS: [Sum; 2] = [
    Sum {
        name: "runs that were simulated to their end",
        has: |part, what| match part {
            "simulation" => what == "runs" || what.starts_with("documents"),
            "sweep" => what.starts_with("crashes"),
            _ => false,
        },
    },
    Sum {
        name: "kills of the real program",
        has: |part, what| part == "kill" && what.starts_with("kill -9"),
    },
];

impl Table {
    pub(super) fn read(torture: &Torture) -> Result<Self> {
        let mut counts = BTreeMap::new();
        for line in fs::read_to_string(&torture.counts)?.lines() {
            let line: Value = serde_json::from_str(line).context("a line of counts")?;
            let part = PARTS.iter().position(|part| line["part"] == part.name);
            let what = line["what"].as_str().unwrap_or_default().to_owned();
            let number = line["count"].as_u64().unwrap_or(0);
            // By position, so that the rows have the order of the parts; unknown parts come last.
            *counts.entry((part.unwrap_or(PARTS.len()), what)).or_default() += number;
        }
        let commit = program("git").args(["rev-parse", "--short", "HEAD"]).output()?;
        Ok(Self {
            counts,
            seeds: (torture.seed, torture.next.saturating_sub(1).max(torture.seed)),
            minutes: torture.begun.elapsed().as_secs().div_ceil(60),
            commit: String::from_utf8_lossy(&commit.stdout).trim().to_owned(),
            violations: torture.violations.len(),
        })
    }
}

impl Display for Table {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "| part | what | count |\n|---|---|---:|")?;
        for ((part, what), count) in &self.counts {
            let name = PARTS.get(*part).map_or("other", |part| part.name);
            writeln!(f, "| {name} | {what} | {} |", grouped(*count))?;
        }
        for Sum { name, has } in SUMS {
            let mine = self.counts.iter().filter(|((part, what), _)| {
                PARTS.get(*part).is_some_and(|part| has(part.name, what))
            });
            let sum: u64 = mine.map(|(_, count)| count).sum();
            writeln!(f, "| | **{name}** | **{}** |", grouped(sum))?;
        }
        let (first, last) = self.seeds;
        writeln!(f, "| | **violations** | **{}** |\n", self.violations)?;
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        write!(
            f,
            "Seeds {} to {}, {} minutes on {cores} cores, at {}.",
            grouped(first),
            grouped(last),
            self.minutes,
            self.commit
        )
    }
}

/// A number as people read it: `1,234,567`.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let first = digits.len() % 3;
    let mut groups: Vec<&str> = Vec::new();
    if first > 0 {
        groups.push(&digits[..first]);
    }
    groups.extend((first..digits.len()).step_by(3).map(|place| &digits[place..place + 3]));
    groups.join(",")
}

#[cfg(test)]
mod tests {
    use super::grouped;

    #[test]
    fn numbers_are_grouped() {
        for (number, expected) in
            [(0, "0"), (12, "12"), (999, "999"), (1_000, "1,000"), (1_234_567, "1,234,567")]
        {
            assert_eq!(grouped(number), expected);
        }
    }
}
