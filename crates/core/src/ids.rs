//! Newtypes for the names of runs, agents, states, turns and sessions.
//!
//! All of them print as short strings without spaces, so that they can be parts of file names,
//! environment variables, journal lines and command lines. Reading one from a file refuses a name
//! that could lead to another directory.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::extension::Extension;

macro_rules! name {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
        #[serde(transparent)]
        // Shared, because events, queues and maps all contain copies of the same names.
        pub struct $name(Arc<str>);

        impl $name {
            /// Wraps a name that is known to be well formed.
            pub fn new(name: impl Into<Arc<str>>) -> Self {
                Self(name.into())
            }

            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, f)
            }
        }

        impl From<&str> for $name {
            fn from(name: &str) -> Self {
                Self::new(name)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_str(Reading("a name", |name: &str| {
                    let bad = || format!("{name:?} cannot be a name");
                    is_part_of_a_path(name).then(|| Self::new(name)).ok_or_else(bad)
                }))
            }
        }
    };
}

/// Returns whether a name is a single part of a path.
fn is_part_of_a_path(name: &str) -> bool {
    // Files are named after ids, and an id from a foreign file must not lead to another directory.
    !name.bytes().any(|byte| matches!(byte, b'/' | 0)) && name != "." && name != ".."
}

/// Parses a text during deserialization without copying it, because a journal contains very many
/// names.
struct Reading<F>(&'static str, F);

impl<T, E: fmt::Display, F: FnOnce(&str) -> Result<T, E>> Visitor<'_> for Reading<F> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }

    fn visit_str<Bad: de::Error>(self, text: &str) -> Result<T, Bad> {
        (self.1)(text).map_err(Bad::custom)
    }
}

name! {
    /// One execution of a workflow: letters, digits, `-` and `_`.
    RunId
}
name! {
    /// A thread of control in a run: `main`, `main_worker1`, `main_worker1_analyz1`.
    AgentId
}
name! {
    /// The file name of a state, extension included: `REVIEW.md`.
    StateName
}
name! {
    /// A conversation held by a backend's client.
    SessionId
}
name! {
    /// The name of a backend: `claude`, `scripted`.
    BackendName
}
name! {
    /// Random bytes of one run in hexadecimal, from which session ids and process markers are
    /// derived. A rewind adds new ones: `<first>~<latest>`.
    Nonce
}

// The first part finds the processes of discarded records. Parts between the first and the latest
// are dropped, so that repeated rewinds do not lengthen the nonce.
impl Nonce {
    /// Returns the nonce after a rewind.
    #[must_use]
    pub fn after_rewind(&self, random: &Self) -> Self {
        Self::new(format!("{}~{random}", self.first()))
    }

    /// Returns the latest part.
    pub fn last(&self) -> &str {
        self.0.rsplit('~').next().unwrap_or_default()
    }

    /// Returns the nonce that the run started with, by which its processes and files are found.
    #[must_use]
    pub fn first(&self) -> Self {
        Self::from(self.0.split('~').next().unwrap_or_default())
    }
}

/// The reason for which a run id is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadRunId {
    /// It is empty.
    #[error("a run id cannot be empty")]
    Empty,
    /// It is longer than [`RunId::MAX`].
    #[error("a run id has at most {max} characters, this one has {0}", max = RunId::MAX)]
    TooLong(usize),
    /// It contains a character other than letters, digits, `-` and `_`.
    #[error("a run id has letters, digits, `-` and `_` only, not {0:?}")]
    Character(char),
    /// It starts with `-` and would be read as a flag.
    #[error("a run id cannot start with `-`")]
    Dash,
}

impl RunId {
    /// Longest run id in bytes, so that every file named after it fits into 255 bytes.
    pub const MAX: usize = 128;
}

impl BackendName {
    /// The backend that plays replies from a file. Its costs are part of the replies, so they are
    /// not money.
    pub const SCRIPTED: &str = "scripted";
}

/// The name of a run before its first record.
impl Default for RunId {
    fn default() -> Self {
        Self::new("")
    }
}

impl FromStr for RunId {
    type Err = BadRunId;

    fn from_str(text: &str) -> Result<Self, BadRunId> {
        let bad = |c: &char| !(c.is_ascii_alphanumeric() || *c == '-' || *c == '_');
        if text.is_empty() {
            Err(BadRunId::Empty)
        } else if let Some(c) = text.chars().find(bad) {
            Err(BadRunId::Character(c))
        // Only ASCII is left here, so bytes are characters.
        } else if text.len() > Self::MAX {
            Err(BadRunId::TooLong(text.len()))
        } else if text.starts_with('-') {
            Err(BadRunId::Dash)
        } else {
            Ok(Self::new(text))
        }
    }
}

impl AgentId {
    /// Longest agent name in bytes, so that turn ids stay below 255 bytes, the limit of file names.
    pub const MAX: usize = 200;

    pub fn main() -> Self {
        Self::new("main")
    }

    /// Returns the name of this agent's `n`th worker, which starts at `target`.
    ///
    /// Only counters contain digits: everything except `a`–`z` in the abbreviation becomes `_`. So
    /// every name decodes to one line of descent, and no two names can be equal.
    #[must_use]
    pub fn worker(&self, target: &StateName, n: u32) -> Self {
        let abbreviation = target.stem().chars().take(6).map(|c| {
            let c = c.to_ascii_lowercase();
            if c.is_ascii_lowercase() { c } else { '_' }
        });
        Self::new(format!("{self}_{}{n}", abbreviation.collect::<String>()))
    }

    /// Returns whether a set contains one of its workers, or of their workers.
    pub fn has_descendant_in(&self, agents: &BTreeSet<Self>) -> bool {
        let below = self.descendants();
        let first = agents.range(below.clone()..).next();
        first.is_some_and(|id| id.as_str().starts_with(below.as_str()))
    }

    /// Returns the beginning of the names of its workers, and of their workers.
    #[must_use]
    pub fn descendants(&self) -> Self {
        Self::new(format!("{self}_"))
    }
}

impl StateName {
    /// Returns the name without its extension. The key of a step in a loop, such as
    /// `loop[2].verify`, has no extension.
    pub fn stem(&self) -> &str {
        match self.0.rsplit_once('.') {
            Some((stem, _)) if stem.ends_with(']') && Extension::of(&self.0).is_none() => &self.0,
            Some((stem, _)) if !stem.is_empty() => stem,
            _ => &self.0,
        }
    }
}

/// One invocation of a client or a script: turn `turn` of the agent's visit `visit`.
///
/// It is printed and stored as `main_worker1.3.1`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TurnId {
    /// The agent of the turn.
    pub agent: AgentId,
    /// The number of the visit, from 1, counted over all states of the agent.
    pub visit: u32,
    /// The number of the turn in its visit, from 1.
    pub turn: u32,
}

impl TurnId {
    /// Returns the next turn of the same visit.
    #[must_use]
    pub fn following(&self) -> Self {
        Self { turn: self.turn.saturating_add(1), ..self.clone() }
    }

    /// Returns the session that a client opens for this turn. `generation` counts lost sessions.
    pub fn session(&self, nonce: &Nonce, generation: u32) -> SessionId {
        // Never changes: a replay of an older journal must derive the same id (docs/journal.md).
        SessionId::new(uuid(&format!("session\n{nonce}\n{self}\n{generation}")))
    }

    /// Returns a second session id for an attempt, for a client that neither knows the first one
    /// nor opens it again.
    pub fn spare_session(&self, nonce: &Nonce, attempt: u32) -> SessionId {
        SessionId::new(uuid(&format!("spare session\n{nonce}\n{self}\n{attempt}")))
    }
}

/// Derives a UUID from a key, because clients accept only UUIDs as session ids.
fn uuid(key: &str) -> String {
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&blake3::hash(key.as_bytes()).as_bytes()[..16]);
    // Version 8 (custom) and the RFC variant.
    bytes[6] = (bytes[6] & 0x0f) | 0x80;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    let n = u128::from_be_bytes(bytes);
    format!(
        "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
        n >> 96,
        (n >> 80) & 0xffff,
        (n >> 64) & 0xffff,
        (n >> 48) & 0xffff,
        n & 0xffff_ffff_ffff
    )
}

/// One attempt at a turn. Exactly one outcome counts for each attempt.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct TurnAttempt {
    pub turn: TurnId,
    /// The number of the attempt, from 1.
    pub number: u32,
}

impl fmt::Display for TurnId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.agent, self.visit, self.turn)
    }
}

impl fmt::Debug for TurnId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for TurnId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for TurnId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(Reading("a turn id", str::parse))
    }
}

/// The error of a text that is not a turn id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a turn id such as main.3.1")]
pub struct BadTurnId(String);

impl FromStr for TurnId {
    type Err = BadTurnId;

    fn from_str(text: &str) -> Result<Self, BadTurnId> {
        // From the right, because an agent's name in a foreign file may contain dots.
        let mut parts = text.rsplitn(3, '.');
        let turn = parts.next().and_then(|part| part.parse().ok());
        let visit = parts.next().and_then(|part| part.parse().ok());
        match (parts.next(), visit, turn) {
            (Some(agent), Some(visit), Some(turn)) if is_part_of_a_path(agent) => {
                Ok(Self { agent: agent.into(), visit, turn })
            }
            _ => Err(BadTurnId(text.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worker_names_decode_to_one_line_of_descent() {
        let main = AgentId::main();
        let check = |parent: &AgentId, target: &str, n, expected: &str| {
            assert_eq!(parent.worker(&target.into(), n).as_str(), expected);
        };
        check(&main, "WORKER.md", 1, "main_worker1");
        check(&main, "ANALYZE.md", 3, "main_analyz3");
        check(&"main_worker1".into(), "ANALYZE.md", 1, "main_worker1_analyz1");
        check(&main, "1_START.md", 2, "main___star2");
        check(&main, "T2.sh", 12, "main_t_12");
        check(&main, "Über.md", 1, "main__ber1");
    }

    #[test]
    fn stem_is_the_name_without_extension() {
        let check = |name: &str, expected: &str| {
            assert_eq!(StateName::new(name).stem(), expected, "{name}");
        };
        check("REVIEW.md", "REVIEW");
        check("a.b.sh", "a.b");
        check("notes.txt", "notes");
        check("REVIEW", "REVIEW");
        check(".md", ".md");
        check("loop[2].verify", "loop[2].verify");
        check("loop[2].md", "loop[2]");
    }

    #[test]
    fn a_turn_id_survives_the_journal() {
        let turn = TurnId { agent: "main_t_12".into(), visit: 3, turn: 1 };
        assert_eq!(turn.to_string(), "main_t_12.3.1");
        assert_eq!(format!("{turn:?}"), "main_t_12.3.1");
        assert_eq!(turn.to_string().parse(), Ok(turn));
        assert!("main.1".parse::<TurnId>().is_err());
        let number = serde_json::Value::from(1);
        let refused = serde_json::from_value::<TurnId>(number).unwrap_err();
        assert_eq!(refused.to_string(), "invalid type: integer `1`, expected a turn id");
    }

    // proves: S15
    #[test]
    fn read_names_stay_in_their_directory() {
        let check = |name: &str, expected: bool| {
            let written = serde_json::Value::from(name);
            assert_eq!(serde_json::from_value::<AgentId>(written.clone()).is_ok(), expected);
            assert_eq!(serde_json::from_value::<StateName>(written).is_ok(), expected, "{name:?}");
            let turn = serde_json::Value::from(format!("{name}.1.1"));
            assert_eq!(serde_json::from_value::<TurnId>(turn).is_ok(), expected, "{name:?}");
        };
        for good in ["main_worker1", "loop[2].verify", "...", "a\nb", "\\"] {
            check(good, true);
        }
        for bad in [".", "..", "/", "../x", "a/b", "/etc/passwd", "a\0b"] {
            check(bad, false);
        }
    }

    #[test]
    fn session_ids_are_distinct_uuids() {
        let turn = TurnId { agent: AgentId::main(), visit: 1, turn: 1 };
        let first = turn.session(&"a".into(), 0);
        assert_eq!(first.as_str().len(), 36);
        assert_eq!(first.as_str().as_bytes()[14], b'8');
        assert_eq!(first, turn.session(&"a".into(), 0));
        assert_ne!(first, turn.session(&"b".into(), 0));
        assert_ne!(first, turn.session(&"a".into(), 1));
        let spare = turn.spare_session(&"a".into(), 1);
        assert_eq!(spare.as_str().len(), 36);
        assert_ne!(spare, turn.session(&"a".into(), 1));
        assert_ne!(spare, turn.spare_session(&"a".into(), 2));
        for generation in 0..16 {
            let session = turn.session(&"a".into(), generation);
            let variant = session.as_str().as_bytes()[19];
            assert!(matches!(variant, b'8' | b'9' | b'a' | b'b'), "{session}");
        }
    }

    #[test]
    fn rewound_run_keeps_its_first_nonce() {
        let start = Nonce::from("c0ffee");
        let twice = start.after_rewind(&"beef".into()).after_rewind(&"f00d".into());
        assert_eq!(twice, "c0ffee~f00d".into());
        assert_eq!((twice.first(), twice.last()), (start.clone(), "f00d"));
        assert_eq!((start.first(), start.last()), (start.clone(), "c0ffee"));
    }

    // proves: S8
    #[test]
    fn run_ids_fit_file_names_and_commands() {
        for good in ["flow-20260101-ab3f", &"x".repeat(128)] {
            assert!(good.parse::<RunId>().is_ok(), "{good}");
        }
        for bad in ["", "a/b", "a b", "-x", "ä", "..", &"x".repeat(129)] {
            assert!(bad.parse::<RunId>().is_err(), "{bad}");
        }
    }
}
