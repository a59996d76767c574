//! Finding schemas by name in directories of a workspace.
//!
//! The caller passes the JSON parser, so that every document is read in the same way.

use serde_json::Value;

use super::{Workspace, WorkspaceError, WorkspaceErrorKind};

/// The directories in which schemas are searched, in order.
#[derive(Debug, Clone)]
pub struct SchemaFiles<'a> {
    workspace: &'a Workspace,
    /// Each with a trailing slash.
    directories: Vec<String>,
    parse: fn(&[u8]) -> Result<Value, String>,
}

impl Workspace {
    /// Returns the schemas in these directories, which must be relative and inside. The error lists
    /// every invalid directory with its index. A directory that does not exist contains nothing.
    pub fn schema_files(
        &self,
        directories: &[String],
        parse: fn(&[u8]) -> Result<Value, String>,
    ) -> Result<SchemaFiles<'_>, Vec<(usize, WorkspaceError)>> {
        let checked = directories.iter().map(|directory| self.check(directory)).enumerate();
        let faults = checked.filter_map(|(index, checked)| Some((index, checked.err()?)));
        let faults: Vec<_> = faults.collect();
        if !faults.is_empty() {
            return Err(faults);
        }
        let directories =
            directories.iter().map(|directory| match directory.trim_end_matches('/') {
                "" => String::new(),
                directory => format!("{directory}/"),
            });
        Ok(SchemaFiles { workspace: self, directories: directories.collect(), parse })
    }
}

impl SchemaFiles<'_> {
    /// Describes the searched directories for messages.
    pub fn display_directories(&self) -> String {
        let name = |directory: &String| match directory.trim_end_matches('/') {
            "" => ".".to_owned(),
            directory => directory.to_owned(),
        };
        match self.directories.iter().map(name).collect::<Vec<_>>().as_slice() {
            [] => {
                "no schema directory is set: use --schema-path DIR or `ref.schemaPaths`".to_owned()
            }
            some => format!("looked in: {}", some.join(", ")),
        }
    }

    /// Returns the document in the first file called `name` or `name.json`. The error names a file
    /// that cannot be read, and the reason.
    pub fn find(&self, name: &str) -> Result<Option<Value>, String> {
        // A name with a separator could reach files outside the schema directories.
        if matches!(name, "" | "." | "..") || name.contains(['/', '\\']) {
            return Err(format!("`{name}` is not a file name"));
        }
        for directory in &self.directories {
            for ending in ["", ".json"] {
                let path = format!("{directory}{name}{ending}");
                match self.workspace.read(&path) {
                    Ok(bytes) => {
                        let parsed = (self.parse)(&bytes);
                        return parsed.map(Some).map_err(|why| format!("{path}: {why}"));
                    }
                    // Every other error must not be skipped: a later directory could hide it.
                    Err(WorkspaceError {
                        why: WorkspaceErrorKind::Missing | WorkspaceErrorKind::NotAFile,
                        ..
                    }) => {}
                    Err(fault) => return Err(fault.to_string()),
                }
            }
        }
        Ok(None)
    }
}
