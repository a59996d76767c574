//! Plays: each a feature that no other golden journal has, or not alone.

use super::stage::Stage;

/// All of them, by name.
pub(super) const PLAYS: &[(&str, fn() -> Stage)] = &[];
