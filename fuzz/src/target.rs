//! A parser, and what must hold for any bytes that it is given.

/// What is thrown at, and how.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// Its name: that of the directory of its corpus, and of its row in the table of torture.
    pub name: &'static str,
    /// How many inputs a test makes unless it is told another number: a few seconds' worth.
    pub inputs: u64,
    /// Words of its language, which mutations put in.
    pub words: &'static [&'static str],
    /// What it may hold in memory beside a thousand bytes for each one of its input.
    pub memory: usize,
    /// Panics when these bytes break a rule.
    pub check: fn(&[u8]),
}

impl Target {
    /// A quarter of this is more than any of them needs for a small input.
    pub const MEMORY: usize = 32 << 20;
}
