//! What agent clients can do, as far as they differ.
//!
//! A backend declares it, a state needs it, and what is lacking is refused before anything is
//! spent: [`crate::run::demand`] weighs the one against the other.

use std::collections::BTreeMap;
use std::fmt;

use crate::ids::BackendName;
use crate::text::nearest;

/// Something that not every client can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Capability {
    /// Open a conversation.
    Fresh,
    /// Go on in a conversation.
    Resume,
    /// Branch a conversation.
    Branch,
    /// Open a conversation under an id that was chosen in advance.
    ChosenIds,
    /// Answer in JSON that a schema describes.
    Schema,
    /// Say what a turn cost.
    Cost,
    /// Stop when a turn has cost so much.
    Cap,
    /// Work with more or less effort.
    Effort,
    /// Keep to lists of tools that are allowed and denied.
    Permissions,
}

impl Capability {
    /// All of them, in the order in which they are explained.
    pub const ALL: [Self; 9] = [
        Self::Fresh,
        Self::Resume,
        Self::Branch,
        Self::ChosenIds,
        Self::Schema,
        Self::Cost,
        Self::Cap,
        Self::Effort,
        Self::Permissions,
    ];
}

impl fmt::Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Fresh => "fresh",
            Self::Resume => "resume",
            Self::Branch => "branch",
            Self::ChosenIds => "chosen ids",
            Self::Schema => "schema",
            Self::Cost => "cost",
            Self::Cap => "cap",
            Self::Effort => "effort",
            Self::Permissions => "permissions",
        })
    }
}

/// The backends that there are, and what each of them can do.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BackendCatalog(BTreeMap<BackendName, &'static [Capability]>);

impl BackendCatalog {
    /// What a backend can do; none when there is no such backend.
    pub fn of(&self, backend: &BackendName) -> Option<&'static [Capability]> {
        self.0.get(backend).copied()
    }

    /// Their names.
    pub fn names(&self) -> impl Iterator<Item = &BackendName> {
        self.0.keys()
    }

    /// The backends that cannot do it.
    pub fn without(&self, capability: Capability) -> impl Iterator<Item = &BackendName> {
        let lacks =
            move |(name, can): (_, &&[Capability])| (!can.contains(&capability)).then_some(name);
        self.0.iter().filter_map(lacks)
    }

    /// What to do about a name that no backend has.
    pub fn advice(&self, unknown: &BackendName) -> String {
        let names: Vec<&str> = self.0.keys().map(BackendName::as_str).collect();
        match (nearest(unknown.as_str(), names.iter().copied()), names.split_last()) {
            (Some(name), _) => format!("did you mean `{name}`?"),
            (None, None) => "there is none".to_owned(),
            (None, Some((only, []))) => format!("there is only {only}"),
            (None, Some((last, others))) => format!("there are {} and {last}", others.join(", ")),
        }
    }
}

impl FromIterator<(BackendName, &'static [Capability])> for BackendCatalog {
    fn from_iter<T: IntoIterator<Item = (BackendName, &'static [Capability])>>(all: T) -> Self {
        Self(all.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(names: &[&str], unknown: &str, expected: &str) {
        let catalog: BackendCatalog =
            names.iter().map(|name| (BackendName::new(*name), &[] as &[_])).collect();
        assert_eq!(catalog.names().count(), names.len());
        assert_eq!(catalog.advice(&unknown.into()), expected);
    }

    #[test]
    fn a_name_that_no_backend_has_is_answered_with_those_that_there_are() {
        check(&[], "codex", "there is none");
        check(&["claude"], "x", "there is only claude");
        check(&["scripted", "claude", "codex"], "x", "there are claude, codex and scripted");
        check(&["scripted", "claude", "codex"], "codx", "did you mean `codex`?");
    }

    #[test]
    fn every_capability_has_a_name() {
        assert_eq!(
            Capability::ALL.map(|each| each.to_string()).join(", "),
            "fresh, resume, branch, chosen ids, schema, cost, cap, effort, permissions"
        );
    }

    #[test]
    fn who_lacks_what_is_known() {
        let catalog: BackendCatalog = [
            ("full".into(), Capability::ALL.as_slice()),
            ("linear".into(), [Capability::Fresh, Capability::Resume].as_slice()),
        ]
        .into_iter()
        .collect();
        let lacking = |capability| catalog.without(capability).cloned().collect::<Vec<_>>();
        assert_eq!(lacking(Capability::Branch), [BackendName::new("linear")]);
        assert_eq!(lacking(Capability::Resume), Vec::<BackendName>::new());
        assert_eq!(catalog.of(&"other".into()), None);
    }
}
