//! Repeated measurements: one figure for each round, and their median and range.

use crate::measure::Cost;

/// The costs of something, round by round.
#[derive(Debug, Default)]
pub(crate) struct Costs(pub(crate) Vec<Cost>);

impl Costs {
    pub(crate) fn own(&self) -> Series {
        self.each(|cost| cost.own)
    }

    pub(crate) fn tree(&self) -> Series {
        self.each(|cost| cost.tree)
    }

    pub(crate) fn wall(&self) -> Series {
        self.each(|cost| cost.wall)
    }

    /// In MiB.
    pub(crate) fn peak(&self) -> Series {
        self.each(|cost| cost.peak / 1024.0)
    }

    fn each(&self, part: fn(&Cost) -> f64) -> Series {
        Series(self.0.iter().map(part).collect())
    }
}

/// One figure, round by round.
#[derive(Debug, Clone)]
pub(crate) struct Series(pub(crate) Vec<f64>);

impl Series {
    /// That which has as many below it as above it; between two of them, their mean.
    pub(crate) fn median(&self) -> f64 {
        let sorted = self.sorted();
        f64::midpoint(sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2])
    }

    /// The least and the most.
    pub(crate) fn ends(&self) -> (f64, f64) {
        let sorted = self.sorted();
        (sorted[0], sorted[sorted.len() - 1])
    }

    /// In another unit.
    pub(crate) fn times(self, factor: f64) -> Self {
        Self(self.0.into_iter().map(|value| value * factor).collect())
    }

    /// With what the other was in the same round.
    pub(crate) fn with(&self, other: &Self, both: fn(f64, f64) -> f64) -> Self {
        Self(self.0.iter().zip(&other.0).map(|(mine, theirs)| both(*mine, *theirs)).collect())
    }

    /// There is at least one round.
    fn sorted(&self) -> Vec<f64> {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        sorted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_has_a_median_and_two_ends() {
        let odd = Series(vec![5.0, 1.0, 3.0]);
        assert_eq!((odd.median().to_string(), odd.ends()), ("3".to_owned(), (1.0, 5.0)));
        let even = Series(vec![4.0, 1.0, 3.0, 9.0]);
        assert_eq!((even.median().to_string(), even.ends()), ("3.5".to_owned(), (1.0, 9.0)));
        let both = odd.with(&even, |odd, even| odd - even).times(2.0);
        assert_eq!(both.ends(), (0.0, 2.0));
    }
}
