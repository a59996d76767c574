//! Seeded choices. The same seed throws the same dice on every machine.

/// A stream of choices.
#[derive(Debug, Clone)]
pub struct Dice(u64);

impl Dice {
    /// Dice for a seed.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Dice for one place in the program: the same key always throws the same, in whatever order
    /// the places are visited.
    pub fn keyed(seed: u64, key: &str) -> Self {
        let hash = key.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        let mut dice = Self(seed ^ hash);
        dice.throw();
        dice
    }

    /// The next number.
    pub fn throw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `n`, which is not zero.
    pub fn below(&mut self, n: u64) -> u64 {
        self.throw() % n
    }

    /// A number below `n`, which is not zero.
    pub fn index(&mut self, n: usize) -> usize {
        usize::try_from(self.below(n as u64)).unwrap_or(0)
    }

    /// True this many times out of a hundred.
    pub fn percent(&mut self, chance: u64) -> bool {
        self.below(100) < chance
    }

    /// One of these.
    pub fn pick<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.index(choices.len())]
    }
}
