//! Manifests: the names and hashes of a definition's states, without their texts.
//!
//! A manifest is small enough to be journalled. It identifies the pinned states of a run, and shows
//! what an edit changed.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::ids::StateName;
use crate::value::Hash;

use super::definition::Definition;

/// The states of a definition, in order of name.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Manifest {
    pub states: Vec<ManifestEntry>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManifestEntry {
    pub name: StateName,
    /// The hash of the whole file.
    pub hash: Hash,
    /// Whether the file is executable, so that its own interpreter can run it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub executable: bool,
}

/// The differences between two manifests.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Changes {
    /// States in both, with other bytes or another executable flag.
    pub changed: Vec<StateName>,
    /// States only in the later manifest.
    pub added: Vec<StateName>,
    /// States only in the earlier manifest.
    pub removed: Vec<StateName>,
}

impl Manifest {
    /// Returns what changed since `earlier`.
    pub fn changes_since(&self, earlier: &Self) -> Changes {
        let index = |manifest: &Self| -> BTreeMap<StateName, ManifestEntry> {
            let entries = manifest.states.iter();
            entries.map(|entry| (entry.name.clone(), entry.clone())).collect()
        };
        let (before, after) = (index(earlier), index(self));
        let mut changes = Changes::default();
        for (name, entry) in &after {
            match before.get(name) {
                None => changes.added.push(name.clone()),
                // Compares the executable flag too, because it decides which interpreter runs a
                // script.
                Some(old) if old != entry => changes.changed.push(name.clone()),
                Some(_) => {}
            }
        }
        let removed = before.into_keys().filter(|name| !after.contains_key(name));
        changes.removed = removed.collect();
        changes
    }
}

impl Changes {
    pub fn is_empty(&self) -> bool {
        self.changed.is_empty() && self.added.is_empty() && self.removed.is_empty()
    }
}

impl Definition {
    /// Returns the manifest of the definition.
    pub fn manifest(&self) -> Manifest {
        let states = self.states.values().map(|state| ManifestEntry {
            name: state.name.clone(),
            hash: state.hash.clone(),
            executable: state.source.executable,
        });
        Manifest { states: states.collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::super::definition::EntryPoint;
    use super::super::source_file::SourceFile;
    use super::*;
    use crate::extension::Platform;

    fn manifest(files: &[(&str, &str, bool)]) -> Manifest {
        let files = files.iter().map(|(name, text, executable)| SourceFile {
            name: (*name).to_owned(),
            bytes: text.as_bytes().into(),
            executable: *executable,
        });
        let parsed = Definition::parse(files.collect(), &EntryPoint::Entry, Platform::Unix);
        parsed.unwrap().definition.manifest()
    }

    #[test]
    fn edits_additions_and_removals_are_distinguished() {
        let before = manifest(&[
            ("START.md", "a", false),
            ("B.sh", "b", false),
            ("C.md", "c", false),
            ("Z.md", "z", false),
        ]);
        let after = manifest(&[
            ("START.md", "a2", false),
            ("B.sh", "b", true),
            ("D.md", "c", false),
            ("Z.md", "z", false),
            ("README.md", "", false),
        ]);
        assert_eq!(
            after.changes_since(&before),
            Changes {
                changed: vec!["B.sh".into(), "START.md".into()],
                added: vec!["D.md".into()],
                removed: vec!["C.md".into()],
            }
        );
        assert!(after.changes_since(&after).is_empty());
        let start = ("START.md", "a", false);
        let (one, two) = (manifest(&[start]), manifest(&[start, ("B.md", "b", false)]));
        assert!(!one.changes_since(&two).is_empty());
        assert!(!two.changes_since(&one).is_empty());
        assert!(!manifest(&[("START.md", "b", false)]).changes_since(&one).is_empty());
    }

    #[test]
    fn a_manifest_survives_the_journal() {
        let manifest = manifest(&[("START.md", "a", false), ("B.sh", "b", true)]);
        let json = serde_json::to_string(&manifest).unwrap();
        insta::assert_snapshot!(json, @r#"[{"name":"B.sh","hash":"10e5cf3d3c8a4f9f3468c8cc58eea84892a22fdadbc1acb22410190044c1d553","executable":true},{"name":"START.md","hash":"17762fddd969a453925d65717ac3eea21320b66b54342fde15128d6caf21215f"}]"#);
        assert_eq!(serde_json::from_str::<Manifest>(&json).unwrap(), manifest);
    }
}
