//! **Random numbers** of the crash soak: a small generator with a seed, so that a round can be repeated as far
//! as servers allow. The generator is SplitMix64 (Steele, Lea and Flood, 2014).

/// The state of the generator.
#[derive(Debug, Clone)]
pub(super) struct Random(u64);

impl Random {
    /// A generator of its own for a part of the run, so that parts don't depend on each other's length.
    pub(super) fn part(seed: u64, round: u64, part: u64) -> Self {
        let mut random = Self(seed.wrapping_mul(0x1000_0001).wrapping_add(round << 20 | part));
        random.next();
        random
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// A number from 0 to `limit - 1`. The bias is irrelevant at our limits.
    ///
    /// # Panics
    /// If `limit` is 0.
    pub(super) fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    /// One of several values, which must not be empty.
    pub(super) fn pick<'a, T: ?Sized>(&mut self, values: &[&'a T]) -> &'a T {
        let index = self.below(values.len() as u64);
        values[usize::try_from(index).unwrap_or(0)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_depends_on_seed_round_and_number() {
        let first = |seed, round, part| Random::part(seed, round, part).below(u64::MAX);
        assert_eq!(first(1, 2, 3), first(1, 2, 3));
        assert!(first(1, 2, 3) != first(1, 2, 4) && first(1, 2, 3) != first(1, 3, 3));
        assert!((0..100).all(|seed| Random::part(seed, 0, 0).below(7) < 7));
    }
}
