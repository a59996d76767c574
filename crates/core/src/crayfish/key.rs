//! Keys: names for one execution of a step, such as `outer[0].inner[3].x`.
//!
//! A step outside loops has its id as its key. Inside loops, the key names every enclosing loop,
//! outermost first, with the number of its iteration from 0. An `if` adds nothing.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::ids::RunId;

use super::name::StepId;
use super::problem::quoted;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Iteration {
    pub of: StepId,
    /// The iteration, from 0.
    pub number: u32,
}

/// The name of one execution of a step. Keys are ordered by loop and iteration number.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StepKey {
    /// The enclosing loops, outermost first.
    pub iterations: Vec<Iteration>,
    pub step: StepId,
}

/// The error for a text that is not a key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{key} is not a key such as `step` or `loop[0].step`", key = quoted(.0))]
pub struct BadKey(String);

impl StepKey {
    pub fn plain(step: StepId) -> Self {
        Self { iterations: Vec::new(), step }
    }
}

impl FromStr for StepKey {
    type Err = BadKey;

    fn from_str(text: &str) -> Result<Self, BadKey> {
        let bad = || BadKey(text.to_owned());
        // Names contain no dot, so every dot separates two parts.
        let mut parts: Vec<&str> = text.split('.').collect();
        let step = parts.pop().and_then(|step| step.parse().ok()).ok_or_else(bad)?;
        let iterations = parts.into_iter().map(iteration).collect::<Option<_>>();
        Ok(Self { iterations: iterations.ok_or_else(bad)?, step })
    }
}

fn iteration(text: &str) -> Option<Iteration> {
    let (of, number) = text.strip_suffix(']')?.split_once('[')?;
    let of = of.parse().ok()?;
    // Only the canonical spelling: `a[01].b` and `a[1].b` would be two names for one execution.
    let number = number.parse().ok().filter(|n: &u32| n.to_string() == number)?;
    Some(Iteration { of, number })
}

impl fmt::Display for StepKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Iteration { of, number } in &self.iterations {
            write!(f, "{of}[{number}].")?;
        }
        write!(f, "{}", self.step)
    }
}

impl Serialize for StepKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for StepKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// The name of one request for an output: `runId:key:attempt`, or `key:attempt` without a run.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId {
    pub run: Option<RunId>,
    pub key: StepKey,
    /// The attempt, from 1.
    pub attempt: u32,
}

/// The error for a text that is not a request id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{id} is not a request id such as `step:1` or `run:loop[0].step:1`", id = quoted(.0))]
pub struct BadRequestId(String);

impl FromStr for RequestId {
    type Err = BadRequestId;

    fn from_str(text: &str) -> Result<Self, BadRequestId> {
        request_id(text).ok_or_else(|| BadRequestId(text.to_owned()))
    }
}

fn request_id(text: &str) -> Option<RequestId> {
    // Neither keys nor run ids contain a colon, so the two outer ones separate the parts.
    let (front, number) = text.rsplit_once(':')?;
    let attempt = number.parse().ok().filter(|n: &u32| *n > 0 && n.to_string() == number)?;
    let (run, key) = match front.split_once(':') {
        Some((run, key)) => (Some(run.parse().ok()?), key),
        None => (None, front),
    };
    Some(RequestId { run, key: key.parse().ok()?, attempt })
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(run) = &self.run {
            write!(f, "{run}:")?;
        }
        write!(f, "{}:{}", self.key, self.attempt)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_key_names_loops_iterations_and_the_step() {
        let iteration = |of: &str, number| Iteration { of: of.parse().unwrap(), number };
        let check = |text: &str, iterations: Vec<Iteration>, step: &str| {
            let expected = StepKey { iterations, step: step.parse().unwrap() };
            assert_eq!(text.parse(), Ok(expected.clone()));
            assert_eq!(expected.to_string(), text);
        };
        check("verify", vec![], "verify");
        check("loop[2].verify", vec![iteration("loop", 2)], "verify");
        check("outer[0].inner[3].x", vec![iteration("outer", 0), iteration("inner", 3)], "x");
        for bad in [
            "",
            "a.b",
            "a[0]",
            "a[0].",
            ".a",
            "a[01].b",
            "a[-1].b",
            "a[+1].b",
            "a[].b",
            "a[0]b",
            "a[99999999999].b",
            "a[0]..b",
            "a[0] .b",
            "1.b",
        ] {
            assert_eq!(bad.parse::<StepKey>(), Err(BadKey(bad.to_owned())));
        }
    }

    #[test]
    fn keys_are_ordered_by_number() {
        let mut keys = ["l[10].a", "l[2].b", "l[2].a", "a", "l[2].m[0].a"];
        keys.sort_by_key(|key| key.parse::<StepKey>().unwrap());
        assert_eq!(keys, ["a", "l[2].a", "l[2].b", "l[2].m[0].a", "l[10].a"]);
    }

    #[test]
    fn a_request_id_names_run_key_and_attempt() {
        let check = |text: &str, run: Option<&str>, key: &str, attempt| {
            let run = run.map(RunId::from);
            let expected = RequestId { run, key: key.parse().unwrap(), attempt };
            assert_eq!(text.parse(), Ok(expected.clone()));
            assert_eq!(expected.to_string(), text);
        };
        check("v:1", None, "v", 1);
        check("r-1:loop[2].v:3", Some("r-1"), "loop[2].v", 3);
        for bad in ["v", "v:0", "v:01", "v:x", ":1", ":v:1", "r:s:v:1", "r:v:", "r r:v:1"] {
            assert_eq!(bad.parse::<RequestId>(), Err(BadRequestId(bad.to_owned())));
        }
    }

    proptest! {
        #[test]
        fn printed_text_is_read_back(
            loops in prop::collection::vec(("[a-zA-Z_][a-zA-Z0-9_-]{0,4}", any::<u32>()), 0..4),
            step in "[a-zA-Z_][a-zA-Z0-9_-]{0,4}",
        ) {
            let iteration = |(of, number): (String, u32)| Iteration { of: of.parse().unwrap(), number };
            let iterations = loops.into_iter().map(iteration).collect();
            let key = StepKey { iterations, step: step.parse().unwrap() };
            prop_assert_eq!(key.to_string().parse(), Ok(key));
        }
    }
}
