//! Random workflows: prompts and scripts, policies of every form, limits and budgets.
//!
//! One value gives both the files for core and the data for the reference.

mod yaml;

use std::collections::BTreeMap;
use std::sync::Arc;

use raymond_core::budget::Micros;
use raymond_core::extension::Platform;
use raymond_core::ids::StateName;
use raymond_core::protocol::TagName;
use raymond_core::workflow::definition::EntryPoint;
use raymond_core::workflow::{Definition, SourceFile};

use crate::dice::Dice;
use crate::reference::{self, Allowed, Policy, Prompt, State};

use super::reply::is_prompt;
use crate::violation::Violation;

/// The stems of states. `START` is always present.
const NAMES: [&str; 8] = ["START", "PLAN", "REVIEW", "FIX", "WORKER", "CHECK", "T2", "DONE"];
/// The first directory of `main`.
pub const HOME: &str = "/home";
/// The backends; the first one is the default.
pub const BACKENDS: [&str; 2] = ["scripted", "other"];
pub const DIRECTORIES: [&str; 5] = ["/home", "/home/sub", "/srv", "/srv/sub", "/home/sub/sub"];

/// A workflow: the states of the reference, and settings that the reference does not have.
#[derive(Debug, Clone, Default)]
pub struct RandomWorkflow {
    pub states: BTreeMap<StateName, State>,
    /// `on_denied` of prompts.
    pub on_denied: BTreeMap<StateName, &'static str>,
}

impl RandomWorkflow {
    pub fn random(dice: &mut Dice) -> Self {
        let count = 2 + dice.index(NAMES.len() - 2);
        let mut names: Vec<String> = Vec::new();
        for (index, stem) in NAMES[..count].iter().enumerate() {
            let extension = if index > 0 && dice.percent(25) { "sh" } else { "md" };
            names.push(format!("{stem}.{extension}"));
        }
        if count == NAMES.len() && dice.percent(30) {
            // Two states share this stem, so the stem alone names neither.
            names.push("T2.md".to_owned());
            names.push("T2.sh".to_owned());
        }
        let mut workflow = Self::default();
        for name in &names {
            let state = if is_prompt(name) {
                State::Prompt(Box::new(prompt(dice, &names)))
            } else {
                State::Script
            };
            workflow.states.insert(name.as_str().into(), state);
            if dice.percent(20) {
                let what = *dice.pick(&["remind", "remind", "fail", "warn"]);
                workflow.on_denied.insert(name.as_str().into(), what);
            }
            if dice.percent(15)
                && let Some(State::Prompt(prompt)) = workflow.states.get_mut(&name.as_str().into())
            {
                prompt.backend = Some(BACKENDS[1].to_owned());
            }
        }
        workflow
    }

    /// Returns the workflow with a random edit, as a user makes it while the run has no owner.
    #[must_use]
    pub fn edited(&self, dice: &mut Dice) -> Self {
        let names = self.names();
        let mut edited = self.clone();
        match dice.below(3) {
            0 => {
                edited.states.insert("EXTRA.md".into(), State::Prompt(Box::default()));
            }
            1 => {
                let start = State::Prompt(Box::new(prompt(dice, &names)));
                edited.states.insert("START.md".into(), start);
            }
            _ => {
                let removed = StateName::new(dice.pick(&names).as_str());
                if removed.as_str() != "START.md" {
                    edited.states.remove(&removed);
                    edited.forget(&removed);
                }
            }
        }
        edited
    }

    /// Resets every prompt that mentions a removed state.
    fn forget(&mut self, removed: &StateName) {
        for state in self.states.values_mut() {
            let State::Prompt(prompt) = state else { continue };
            let names = prompt.policy.targets.values().flatten();
            let entries = prompt.policy.transitions.iter().flatten().map(|(_, entry)| entry);
            let mentions = |name: &String| name == removed.as_str() || name == removed.stem();
            let mentioned = names
                .chain(entries)
                .flat_map(|allowed| [&allowed.target, &allowed.then])
                .chain([&prompt.then])
                .flatten()
                .any(mentions);
            if mentioned {
                **prompt = Prompt::default();
            }
        }
    }

    /// Removes the budgets of all visits.
    pub fn drop_budgets(&mut self) {
        for state in self.states.values_mut() {
            if let State::Prompt(prompt) = state {
                prompt.budget = None;
            }
        }
    }

    pub fn names(&self) -> Vec<String> {
        self.states.keys().map(ToString::to_string).collect()
    }

    /// Parses the workflow with core.
    pub fn definition(&self) -> Result<Definition, Violation> {
        let files = self.states.iter().map(|(name, state)| SourceFile {
            name: name.to_string(),
            bytes: Arc::from(self.text(name, state).as_bytes()),
            executable: false,
        });
        let parsed = Definition::parse(files.collect(), &EntryPoint::Entry, Platform::Unix);
        let wrong = |wrong| Violation(format!("the workflow does not parse: {wrong:?}"));
        Ok(parsed.map_err(wrong)?.definition)
    }

    /// Converts the workflow for the reference.
    pub fn reference(&self) -> reference::Workflow {
        reference::Workflow {
            states: self.states.clone(),
            start: "START.md".into(),
            input: None,
            cwd: HOME.to_owned(),
            directories: DIRECTORIES.map(str::to_owned).into(),
        }
    }

    fn text(&self, name: &StateName, state: &State) -> String {
        match state {
            State::Script => "true\n".to_owned(),
            State::Prompt(prompt) => {
                let front = yaml::front(prompt, self.on_denied.get(name).copied());
                let fence = if front.is_empty() { "" } else { "---\n" };
                format!("{fence}{front}{fence}Do {{{{state}}}} with {{{{result}}}}.\n")
            }
        }
    }
}

fn prompt(dice: &mut Dice, names: &[String]) -> Prompt {
    let mut prompt = Prompt::default();
    if dice.percent(30) {
        prompt.policy = policy(dice, names);
    }
    if dice.percent(25) {
        prompt.max_visits = Some(1 + u32::try_from(dice.below(3)).unwrap_or(0));
        prompt.then = dice.percent(60).then(|| name(dice, names));
    }
    prompt.budget = dice.percent(10).then_some(Micros(120_000));
    prompt.model = dice.percent(15).then(|| "opus".to_owned());
    prompt
}

/// Returns a name for a policy: the stem only if no other state has it.
fn name(dice: &mut Dice, names: &[String]) -> String {
    let name = dice.pick(names);
    let stem = name.split_once('.').map_or(name.as_str(), |(stem, _)| stem);
    let same = names.iter().filter(|other| other.starts_with(&format!("{stem}."))).count();
    if same == 1 && dice.percent(50) { stem.to_owned() } else { name.clone() }
}

fn policy(dice: &mut Dice, names: &[String]) -> Policy {
    let mut target = || Allowed { target: Some(name(dice, names)), then: None };
    let (goto, other) = ((TagName::Goto, target()), target());
    let mut pair = || Allowed { then: Some(name(dice, names)), target: Some(name(dice, names)) };
    let (pair, call) = (pair(), pair());
    let transitions =
        |list: Vec<(TagName, Allowed)>| Policy { transitions: Some(list), ..Policy::default() };
    match dice.below(9) {
        0 => Policy {
            tags: Some(vec![TagName::Goto, TagName::Call, TagName::Ask, TagName::Result]),
            ..Policy::default()
        },
        1 => Policy { targets: [(TagName::Goto, vec![goto.1, other])].into(), ..Policy::default() },
        2 => transitions(vec![goto]),
        3 => Policy {
            targets: [(TagName::Fork, vec![pair]), (TagName::Call, vec![other, call])].into(),
            ..Policy::default()
        },
        4 => transitions(vec![(*dice.pick(&[TagName::Call, TagName::Function]), call)]),
        5 => transitions(vec![(TagName::Fork, pair), (TagName::Result, Allowed::default())]),
        6 => Policy {
            tags: Some(vec![TagName::Goto, TagName::Result, TagName::Fork]),
            targets: [(TagName::Goto, vec![other])].into(),
            transitions: Some(vec![goto, (TagName::Result, Allowed::default())]),
        },
        _ => transitions(vec![goto, (TagName::Result, Allowed::default())]),
    }
}
