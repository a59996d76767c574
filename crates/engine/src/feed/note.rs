//! Notes to the user of a run that no record contains.

use std::fmt;

use raymond_core::diagnostic::Diagnostic;
use raymond_store::lock::Owner;

/// A note to the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoteKind {
    /// The directory of the run had vanished, and the owner wrote it again.
    DirectoryRestored,
    /// A file in the inbox is not a request.
    RequestIgnored { name: String, why: String },
    /// Edited states have mistakes, so the run continues with the earlier ones.
    EditRefused { why: String },
    /// A warning about an edited state, which the run uses from now on.
    EditWarning(Diagnostic),
    /// The owner of the run is suspended and records nothing.
    OwnerSuspended(Box<Owner>),
}

impl fmt::Display for NoteKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DirectoryRestored => f.write_str(
                "the directory of the run had vanished; Raymond wrote the journal, the lock and \
                 the states again, but other large values are lost",
            ),
            Self::RequestIgnored { name, why } => write!(f, "ignored {name} in the inbox: {why}"),
            Self::EditRefused { why } => write!(f, "continuing with the earlier states: {why}"),
            Self::EditWarning(warning) => warning.fmt(f),
            Self::OwnerSuspended(owner) => {
                write!(f, "its owner, process {}, is suspended", owner.process.pid)
            }
        }
    }
}
