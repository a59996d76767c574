//! The keys of every object of the language, as documents spell them.

pub(in crate::crayfish) const DOCUMENT: &[&str] =
    &["$schema", "name", "description", "version", "vars", "env", "steps", "output"];
pub(in crate::crayfish) const EXEC: &[&str] =
    &["id", "kind", "description", "shell", "run", "timeoutMs", "retries", "env", "io"];
pub(in crate::crayfish) const RUN: &[&str] = &["kind", "cmd", "args"];
pub(in crate::crayfish) const IO: &[&str] =
    &["mode", "in", "out", "inputFrom", "inputSchema", "outputSchema"];
pub(in crate::crayfish) const CONTRACT: &[&str] = &["path", "schema"];
pub(in crate::crayfish) const INPUT_FROM: &[&str] = &["stepId", "jsonPath"];
pub(in crate::crayfish) const AGENT: &[&str] = &[
    "id",
    "kind",
    "description",
    "prompt",
    "input",
    "schema",
    "retries",
    "assigneeAgentId",
    "session",
    "model",
    "allow",
    "budget",
];
pub(in crate::crayfish) const SESSION: &[&str] = &["mode", "label", "reset"];
pub(in crate::crayfish) const IF: &[&str] = &["id", "kind", "description", "cond", "then", "else"];
pub(in crate::crayfish) const FOR_EACH: &[&str] = &[
    "id",
    "kind",
    "description",
    "listPath",
    "itemVar",
    "body",
    "parallel",
    "maxParallel",
    "onError",
];
pub(in crate::crayfish) const WHILE: &[&str] =
    &["id", "kind", "description", "until", "maxIters", "onMaxIters", "body"];
pub(in crate::crayfish) const CONDITION: &[&str] = &["op", "path", "value"];
