//! The rows of the benchmark. A row has a letter and one or more parts, and each part is measured
//! alone. docs/performance.md describes the rows; `stage` checks that the work was really done.

mod crayfish;
mod growth;
mod scan;
mod starts;
mod steps;

use anyhow::Result;

use crate::stage::Stage;
use crate::table::Figure;

/// Measures some part of a row.
pub(crate) type Part = fn(&Stage) -> Result<Vec<Figure>>;

/// All parts, by the letter of their row and a name.
pub(crate) const PARTS: [(char, &str, Part); 13] = [
    ('A', "scripts", steps::scripts),
    ('A', "turns", steps::turns),
    ('B', "workers", steps::workers),
    ('C', "help", starts::help),
    ('C', "one", starts::one),
    ('D', "agents", growth::agents),
    ('D', "texts", growth::texts),
    ('D', "payloads", growth::payloads),
    ('D', "journals", growth::journals),
    ('D', "scopes", growth::scopes),
    ('E', "execs", crayfish::execs),
    ('E', "answers", crayfish::answers),
    ('F', "tags", scan::tags),
];
