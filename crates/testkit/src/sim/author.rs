//! Random workflows: prompts and scripts, policies of every form, limits and budgets.

use std::fmt::Write as _;
use std::sync::Arc;

use raymond_core::workflow::SourceFile;

use crate::dice::Dice;

/// The states that a random workflow draws from. `START` is always one of them.
const NAMES: [&str; 8] = ["START", "PLAN", "REVIEW", "FIX", "WORKER", "CHECK", "T2", "DONE"];

/// A random workflow, as a folder and as what its agents know of it.
#[derive(Debug, Clone)]
pub struct Workflow {
    /// File names, with their text.
    pub files: Vec<(String, String)>,
}

impl Workflow {
    /// Writes a workflow.
    pub fn random(dice: &mut Dice) -> Self {
        let count = 2 + dice.index(NAMES.len() - 2);
        let names: Vec<String> = NAMES[..count]
            .iter()
            .enumerate()
            .map(|(i, stem)| {
                let script = i > 0 && dice.percent(25);
                format!("{stem}.{}", if script { "sh" } else { "md" })
            })
            .collect();
        let files = names
            .iter()
            .map(|name| {
                let script = !name.ends_with(".md");
                let text = if script { "true\n".to_owned() } else { prompt(dice, &names) };
                (name.clone(), text)
            })
            .collect();
        Self { files }
    }

    /// The names of its states.
    pub fn names(&self) -> Vec<&str> {
        self.files.iter().map(|(name, _)| name.as_str()).collect()
    }

    /// As files of a scope.
    pub fn sources(&self) -> Vec<SourceFile> {
        let source = |(name, text): &(String, String)| SourceFile {
            name: name.clone(),
            bytes: Arc::from(text.as_bytes()),
            executable: false,
        };
        self.files.iter().map(source).collect()
    }
}

fn prompt(dice: &mut Dice, names: &[String]) -> String {
    let mut front = String::new();
    if dice.percent(30) {
        policy(dice, names, &mut front);
    }
    if dice.percent(25) {
        let _written = writeln!(front, "max_visits: {}", 1 + dice.below(3));
        if dice.percent(60) {
            let _written = writeln!(front, "then: {}", dice.pick(names));
        }
    }
    if dice.percent(10) {
        front.push_str("budget: 0.12\n");
    }
    if dice.percent(15) {
        front.push_str("model: opus\n");
    }
    if front.is_empty() {
        return "Do {{state}} with {{result}}.\n".to_owned();
    }
    format!("---\n{front}---\nDo {{{{state}}}} with {{{{result}}}}.\n")
}

fn policy(dice: &mut Dice, names: &[String], front: &mut String) {
    let name = |dice: &mut Dice| dice.pick(names).clone();
    let text = match dice.below(5) {
        0 => "allowed_tags: [goto, call, result]\n".to_owned(),
        1 => format!("allowed_targets:\n  goto: [{}, {}]\n", name(dice), name(dice)),
        2 => format!("allowed_transitions:\n  - {{tag: goto, target: {}}}\n", name(dice)),
        3 => format!(
            "allowed_targets:\n  fork:\n    - {{child: {}, next: {}}}\n  call: [{}]\n",
            name(dice),
            name(dice),
            name(dice)
        ),
        _ => format!(
            "allowed_transitions:\n  - {{tag: goto, target: {}}}\n  - {{tag: result}}\n",
            name(dice)
        ),
    };
    front.push_str(&text);
}
