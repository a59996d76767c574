//! The position of a branch of steps, reduced to the part that its row shows.
//!
//! A row keeps a [`Branch`] without the facts that other branches change, such as the number of
//! unfinished iterations: they are not events of its agent.

use std::collections::BTreeMap;

use crate::crayfish::state::{Branch, Position, StepEvent};

/// Returns the part of a branch that its row shows.
pub(super) fn reduced(branch: &Branch) -> Branch {
    let at = match &branch.at {
        Position::Failed(key) => Position::Failed(key.clone()),
        Position::Round | Position::Waits { .. } => Position::Round,
        Position::Start
        | Position::Before(_)
        | Position::In(_)
        | Position::Behind(_)
        | Position::Body => Position::Start,
    };
    let (born, loops) = (branch.born.clone(), branch.loops.clone());
    Branch { number: 0, parent: None, born, loops, at, seen: BTreeMap::new() }
}

/// Folds in an event of the branch.
pub(super) fn note(branch: &mut Option<Branch>, event: &StepEvent) {
    if let StepEvent::Begun { born, .. } = event {
        let (loops, at, seen) = (Vec::new(), Position::Start, BTreeMap::new());
        *branch = Some(Branch { number: 0, parent: None, born: born.clone(), loops, at, seen });
    } else if let StepEvent::Ended = event {
        *branch = None;
    }
    let Some(branch) = branch else { return };
    let has_failed = matches!(branch.at, Position::Failed(_));
    if let StepEvent::Failed { key, .. } = event {
        if !has_failed {
            branch.at = Position::Failed(key.clone());
        }
    } else if matches!(event, StepEvent::Done { .. } | StepEvent::Reused { .. })
        || (matches!(event, StepEvent::Revived) && has_failed)
    {
        branch.at = Position::Start;
    } else {
        branch.moves(event);
    }
    *branch = reduced(branch);
}
