//! A parser, and the rules that must hold for any bytes that it is given.

/// A parser under test, and how it is tested.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// Its name, which is also the name of its corpus directory and of its row in the torture
    /// table.
    pub name: &'static str,
    /// The default number of inputs of a test: a few seconds of work.
    pub inputs: u64,
    /// Words of its language, which mutations put in.
    pub words: &'static [&'static str],
    /// The bytes of memory that it may use, beside a thousand bytes for each byte of its input.
    pub memory: usize,
    /// Panics when these bytes break a rule.
    pub check: fn(&[u8]),
}

impl Target {
    /// A quarter of this is more than any of them needs for a small input.
    pub const MEMORY: usize = 32 << 20;
}
