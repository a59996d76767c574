//! Capabilities in which agent clients differ.
//!
//! A backend declares its capabilities, and a state or a run requires some.
//! [`crate::run::requirements`] refuses what is missing before anything is spent.

use std::collections::BTreeMap;
use std::fmt;

use crate::ids::BackendName;
use crate::text::nearest;

/// An ability that not every client has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Capability {
    /// Open a conversation.
    Fresh,
    /// Continue a conversation.
    Resume,
    /// Branch a conversation.
    Branch,
    /// Open a conversation under an id that was chosen in advance.
    ChosenIds,
    /// Answer in JSON according to a schema.
    Schema,
    /// Report the cost of a turn.
    Cost,
    /// Stop a turn at a cost limit.
    Cap,
    /// Work with more or less effort.
    Effort,
    /// Respect lists of allowed and denied tools.
    Permissions,
}

impl Capability {
    /// All capabilities, in the order in which they are explained.
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

/// The available backends with their capabilities.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BackendCatalog(BTreeMap<BackendName, &'static [Capability]>);

impl BackendCatalog {
    /// Returns the capabilities of a backend; `None` if it does not exist.
    pub fn of(&self, backend: &BackendName) -> Option<&'static [Capability]> {
        self.0.get(backend).copied()
    }

    pub fn names(&self) -> impl Iterator<Item = &BackendName> {
        self.0.keys()
    }

    /// Returns the backends that lack a capability.
    pub fn without(&self, capability: Capability) -> impl Iterator<Item = &BackendName> {
        let lacks =
            move |(name, can): (_, &&[Capability])| (!can.contains(&capability)).then_some(name);
        self.0.iter().filter_map(lacks)
    }

    /// Returns a hint for an unknown name.
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
    fn unknown_backend_hint_lists_known_backends() {
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
    fn backends_without_a_capability_are_listed() {
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
