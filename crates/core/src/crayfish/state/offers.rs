//! The outputs that a caller has brought for agent steps.

use crate::crayfish::call::{Output, written};
use crate::crayfish::key::Key;

use super::StepsState;

/// What the caller has for a question.
pub(crate) enum Offer<'a> {
    /// This output, which came under this name.
    Output(String, &'a Output),
    /// One for an attempt that is over.
    Stale(String),
}

impl StepsState {
    /// What the caller has for an attempt at an agent step.
    pub(crate) fn offer(&self, key: &Key, attempt: u32) -> Option<Offer<'_>> {
        let request = format!("{key}:{attempt}");
        if let Some(output) = self.offers.get(&request) {
            return Some(Offer::Output(request, output));
        }
        let names = [key.to_string(), key.step.to_string()];
        let (name, output) =
            names.into_iter().find_map(|name| Some((name.clone(), self.offers.get(&name)?)))?;
        let claimed = written(&self.claims, key).map_or(1, |(_, claimed)| claimed);
        Some(if claimed < attempt { Offer::Stale(name) } else { Offer::Output(name, output) })
    }
}
