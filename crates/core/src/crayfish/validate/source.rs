//! Checks that the step named by `inputFrom` can have left JSON before it is read.

use std::collections::BTreeMap;

use crate::crayfish::document::{Io, Order, StepIndex, StepKind, StepList, StepPlace};
use crate::crayfish::name::StepId;
use crate::crayfish::problem::{Report, quoted};
use crate::crayfish::problem_code::ProblemCode;
use crate::crayfish::validate::unfinished::UnfinishedStep;

/// A reference from one step to another by `inputFrom`.
pub(super) struct Wanted {
    /// The step that reads.
    pub(super) by: StepIndex,
    /// The pointer of the reference, below the reading step.
    pub(super) at: &'static str,
    /// The name of the step that is read.
    pub(super) step: String,
}

/// Returns the problem of a reference, if any.
pub(super) fn fault(
    wanted: &Wanted,
    steps: &[UnfinishedStep],
    by_id: &BTreeMap<StepId, StepIndex>,
    report: &mut Report,
) -> Option<(ProblemCode, String)> {
    let name = quoted(&wanted.step);
    let Some(&source) = by_id.get(wanted.step.as_str()) else {
        let meant = report.meant(&wanted.step, by_id.keys().map(StepId::as_str));
        return Some((ProblemCode::UnknownStep, format!("there is no step {name}{meant}")));
    };
    let unusable = |message: String| Some((ProblemCode::UnusableStep, message));
    // Also in a loop: no step reads its result of an earlier iteration by `inputFrom`.
    if source == wanted.by {
        return unusable(format!("the step {name} cannot read its own output"));
    }
    match &steps[source.number()].kind {
        Some(StepKind::Exec(exec)) if !matches!(exec.io, Io::Stream { .. }) => {
            let mode = exec.io.mode();
            return unusable(format!("the step {name} leaves no `json`: its mode is `{mode}`"));
        }
        Some(kind @ StepKind::If(_)) => {
            let kind = kind.name();
            return unusable(format!("the step {name} leaves no `json`: its kind is `{kind}`"));
        }
        Some(StepKind::ForEach(_) | StepKind::While(_)) if is_around(steps, source, wanted.by) => {
            let message = format!("the `items` of {name} exist only after the loop has ended");
            return unusable(message);
        }
        Some(
            StepKind::Exec(_) | StepKind::Agent(_) | StepKind::ForEach(_) | StepKind::While(_),
        )
        | None => {}
    }
    match order(steps, source, wanted.by) {
        Possible::Yes => None,
        Possible::Later => unusable(format!("the step {name} comes later than this one")),
        Possible::Otherwise => {
            unusable(format!("the step {name} runs only when this one does not"))
        }
    }
}

/// Returns whether a step contains another one.
fn is_around(steps: &[UnfinishedStep], outer: StepIndex, inner: StepIndex) -> bool {
    chain(inner, |index| steps[index.number()].place).contains(&outer)
}

/// Whether one step can have run before another.
enum Possible {
    Yes,
    Later,
    Otherwise,
}

fn order(steps: &[UnfinishedStep], source: StepIndex, reader: StepIndex) -> Possible {
    let place = |index: StepIndex| steps[index.number()].place;
    let (above_source, above_reader) = (chain(source, place), chain(reader, place));
    let shared = above_source.iter().zip(&above_reader).take_while(|(a, b)| a == b).count();
    // An earlier iteration of the innermost common loop may have run the source. Older results do
    // not count, because entering the loop hides them, and neither do other iterations of a
    // parallel loop, because they cannot see each other.
    let repeats =
        above_source[..shared].iter().rev().find_map(|index| match &steps[index.number()].kind {
            Some(StepKind::ForEach(step)) => Some(step.order == Order::Sequential),
            Some(StepKind::While(_)) | None => Some(true),
            Some(StepKind::If(_) | StepKind::Exec(_) | StepKind::Agent(_)) => None,
        });
    if repeats == Some(true) {
        return Possible::Yes;
    }
    let branch = |chain: &[StepIndex]| chain.get(shared).map(|index| place(*index).list);
    match (branch(&above_source), branch(&above_reader)) {
        (Some(StepList::Then), Some(StepList::Else))
        | (Some(StepList::Else), Some(StepList::Then)) => Possible::Otherwise,
        _ if source < reader => Possible::Yes,
        _ => Possible::Later,
    }
}

/// Returns the steps around a step, outermost first, and the step itself.
fn chain(index: StepIndex, place: impl Fn(StepIndex) -> StepPlace) -> Vec<StepIndex> {
    let mut chain: Vec<StepIndex> =
        std::iter::successors(Some(index), |inner| place(*inner).parent).collect();
    chain.reverse();
    chain
}
