//! One small workflow of the corpus, with all replies of its agents.
//!
//! The replies are fixed, so that only faults differ between two runs of a case, and their
//! histories can be compared line by line.

use std::collections::BTreeSet;
use std::sync::Arc;

use raymond_core::extension::Platform;
use raymond_core::ids::BackendName;
use raymond_core::run::Program;
use raymond_core::run::Settings;
use raymond_core::run::program::AnswerSource;
use raymond_core::workflow::definition::EntryPoint;
use raymond_core::workflow::{Definition, SourceFile};
use serde_json::{Map, Value as Json};

use crate::sim::history::History;
use crate::sim::host::{HelpLimits, Host, Seeds};
use crate::violation::Violation;

use super::replies::FixedReplies;
use crate::steps::drive;
use crate::steps::random_replies::RandomReplies;

#[derive(Debug)]
pub struct Case {
    pub name: &'static str,
    /// One reply per line, `AGENT STATE | TEXT`; see [`FixedReplies`]. The states in these lines
    /// are the workflow's states.
    pub replies: &'static str,
    /// A document of steps instead of states, with its replies.
    pub steps: Option<(&'static str, RandomReplies, AnswerSource)>,
    /// The frontmatter of prompts.
    pub frontmatter: &'static [(&'static str, &'static str)],
    /// Changes the default settings.
    pub settings: fn(&mut Settings),
    /// The program of the states.
    pub program: fn() -> Program,
    /// Stops the run after this many finished turns; then the run is resumed.
    pub stop: Option<usize>,
    pub help_limits: HelpLimits,
    pub strictness: Strictness,
}

/// The part of a history that a crash may not change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strictness {
    Everything,
    /// Everything but turns and reminders, because an interrupted attempt is charged to the visit's
    /// budget.
    Visits,
}

impl Case {
    /// The defaults of all cases.
    pub const PLAIN: Self = Self {
        name: "",
        replies: "",
        steps: None,
        frontmatter: &[],
        settings: |_| {},
        program: || Program::States,
        stop: None,
        help_limits: HelpLimits::NONE,
        strictness: Strictness::Everything,
    };

    pub(super) fn host(&self, seeds: Seeds) -> Result<Host, Violation> {
        if let Some((document, replies, answers)) = self.steps {
            let broken = |error: serde_json::Error| Violation(format!("{}: {error}", self.name));
            let document: Json = serde_json::from_str(document).map_err(broken)?;
            let definition = drive::definition(&document, &Map::new())?;
            // Two at a time, so that turns run in parallel and some still wait.
            let mut settings = Settings { max_parallel: 2, ..drive::settings() };
            (self.settings)(&mut settings);
            let mut host = Host::new(seeds, definition, Box::new(replies), settings)?;
            host.program = Program::steps_of(answers);
            return Ok(host);
        }
        let replies = FixedReplies::parse(self.replies)?;
        let names: BTreeSet<&str> = replies.states().collect();
        // The states follow from the replies, so that a case cannot name a state that does not
        // exist.
        let files = names.into_iter().map(|name| {
            let front = self.frontmatter.iter().find(|(state, _)| *state == name);
            let front = front.map_or_else(String::new, |(_, front)| format!("---\n{front}\n---\n"));
            let text = format!("{front}Do it.\n");
            SourceFile {
                name: name.to_owned(),
                bytes: Arc::from(text.as_bytes()),
                executable: false,
            }
        });
        let parsed = Definition::parse(files.collect(), &EntryPoint::Entry, Platform::Unix);
        let wrong = |wrong| Violation(format!("{} does not parse: {wrong:?}", self.name));
        let definition = parsed.map_err(wrong)?.definition;
        let mut settings = Settings {
            budget: None,
            max_parallel: 2,
            backend: BackendName::new("scripted"),
            ..Settings::default()
        };
        (self.settings)(&mut settings);
        let mut host = Host::new(seeds, definition, Box::new(replies), settings)?;
        host.program = (self.program)();
        Ok(host)
    }

    /// Checks that a run without faults uses all replies.
    pub(super) fn check_all_replies_used(&self, finished: usize) -> Result<(), Violation> {
        let replies = FixedReplies::parse(self.replies)?.count();
        // Unused replies mean that the case does not test what it says. Documents of steps draw
        // their replies, so they have no list to compare with.
        if finished == replies || self.steps.is_some() {
            return Ok(());
        }
        Err(Violation(format!("{} says {finished} of {replies} replies", self.name)))
    }

    /// Returns the part of a history that must stay the same.
    pub(super) fn comparable(&self, history: &History) -> History {
        let mut comparable = history.clone();
        comparable.values_mut().for_each(drop_fruitless_revivals);
        if self.strictness == Strictness::Visits {
            let detail = |line: &String| line.starts_with("turn ") || line.starts_with("remind ");
            for lines in comparable.values_mut() {
                lines.retain(|line| !detail(line));
            }
        }
        comparable
    }
}

/// Removes revivals without effect. A resume after a crash also revives failed agents; if one fails
/// again in the same way, without a turn, nothing has happened.
fn drop_fruitless_revivals(lines: &mut Vec<String>) {
    let mut kept: Vec<String> = Vec::new();
    for line in lines.drain(..) {
        let vain = matches!(
            kept.as_slice(),
            [.., failed, revived] if *failed == line && revived.starts_with("revive ")
        );
        if vain && line.starts_with("fail ") {
            kept.pop();
        } else {
            kept.push(line);
        }
    }
    *lines = kept;
}
