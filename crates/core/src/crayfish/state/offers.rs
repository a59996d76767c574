//! The outputs that a caller has sent for agent steps.

use crate::crayfish::call::{Output, written};
use crate::crayfish::key::StepKey;

use super::StepsState;

/// The caller's output for a request.
pub(crate) enum Offer<'a> {
    /// This output, with the name it was sent under.
    Output(String, &'a Output),
    /// An output for an attempt that is over.
    Stale(String),
}

impl StepsState {
    /// Returns the caller's output for an attempt at an agent step.
    pub(crate) fn offer(&self, key: &StepKey, attempt: u32) -> Option<Offer<'_>> {
        let request = format!("{key}:{attempt}");
        if let Some(output) = self.offers.get(&request) {
            return Some(Offer::Output(request, output));
        }
        // After the request id, which names the attempt and is never ambiguous.
        let names = [key.to_string(), key.step.to_string()];
        let (name, output) =
            names.into_iter().find_map(|name| Some((name.clone(), self.offers.get(&name)?)))?;
        // A name without an attempt answers the attempt that the caller claims, or the first: an
        // output for an earlier attempt must not answer a later one.
        let claimed = written(&self.claims, key).map_or(1, |(_, claimed)| claimed);
        Some(if claimed < attempt { Offer::Stale(name) } else { Offer::Output(name, output) })
    }
}
