//! Seeded random choices: the same seed gives the same choices on every machine.

#[derive(Debug, Clone)]
pub struct Dice(u64);

impl Dice {
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Creates dice for one position in a program: the same key gives the same choices, in any
    /// order of visits.
    pub fn keyed(seed: u64, key: &str) -> Self {
        // FNV-1a, because the hashers of the standard library may change between releases.
        let hash = key.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        let mut dice = Self(seed ^ hash);
        dice.throw();
        dice
    }

    /// Returns the next number of the `SplitMix64` sequence.
    pub fn throw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number below `n`, which must not be zero.
    pub fn below(&mut self, n: u64) -> u64 {
        // For the small numbers used here the bias of the remainder is negligible.
        self.throw() % n
    }

    /// Returns an index below `n`, which must not be zero.
    pub fn index(&mut self, n: usize) -> usize {
        usize::try_from(self.below(n as u64)).unwrap_or(0)
    }

    /// Returns true in `chance` of 100 cases.
    pub fn percent(&mut self, chance: u64) -> bool {
        self.below(100) < chance
    }

    pub fn pick<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.index(choices.len())]
    }
}
