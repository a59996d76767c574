//! A suspended owner: it holds the lock of its run, but answers nothing until someone continues it.

use raymond_store::lock::Owner;

/// Names a suspended owner.
pub(crate) fn describe(owner: &Owner) -> String {
    format!("its owner, process {}, is suspended", owner.process.pid)
}

/// Returns the advice to continue a suspended owner.
pub(crate) fn hint(owner: &Owner) -> String {
    let command = continue_command(owner);
    format!("continue the owner with `{command}`, or `fg` in its terminal")
}

/// Returns the command that continues a suspended owner.
pub(crate) fn continue_command(owner: &Owner) -> String {
    format!("kill -CONT {}", owner.process.pid)
}

/// Names a suspended owner, and advises to continue it.
pub(crate) fn describe_with_hint(owner: &Owner) -> String {
    format!("{}; {}", describe(owner), hint(owner))
}
