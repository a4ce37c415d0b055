//! The work of one run and its result.
//! Both halves of a pair get the same list, so the device has the same work.

use crate::statistics::Latency;

/// A list of reads of one length.
#[derive(Debug, Clone)]
pub(crate) struct Work {
    /// Byte offsets through all segments, each a multiple of the length.
    pub(crate) offsets: Vec<u64>,
    /// Bytes of each read.
    pub(crate) length: u32,
}

impl Work {
    /// `count` reads one after the other from `start`, round the end of `bytes`.
    pub(crate) fn sequential(start: u64, count: usize, length: u32, bytes: u64) -> Self {
        let step = u64::from(length);
        let places = (bytes / step).max(1);
        let at = |i| (start / step + i as u64) % places * step;
        Self { offsets: (0..count).map(at).collect(), length }
    }

    /// `count` places of all, in an order that `seed` decides, none twice before each was once.
    pub(crate) fn random(seed: u64, count: usize, length: u32, bytes: u64) -> Self {
        let step = u64::from(length);
        let mut places: Vec<u64> = (0..(bytes / step).max(1)).map(|place| place * step).collect();
        let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        // Fisher and Yates, only as far as needed.
        let chosen = count.min(places.len());
        for at in 0..chosen {
            let other = at + (random.next() % (places.len() - at) as u64) as usize;
            places.swap(at, other);
        }
        places.truncate(chosen);
        let offsets = places.iter().cycle().take(count).copied().collect();
        Self { offsets, length }
    }
}

/// xorshift64*, Vigna 2016: the same list for the same seed.
#[derive(Debug)]
pub(crate) struct Random(pub(crate) u64);

impl Random {
    /// The next number.
    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }
}

/// What a run did.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Done {
    /// Reads, or round trips.
    pub(crate) operations: u64,
    /// Bytes; 0 where none are moved.
    pub(crate) bytes: u64,
    /// Mean number of reads in flight when one was submitted, where it is known.
    pub(crate) in_flight: Option<f64>,
    /// Mean number of reads that the storage had at any time, where it is known.
    pub(crate) at_storage: Option<f64>,
    /// Seconds, elapsed and of CPU, where the run has measured itself.
    pub(crate) took: Option<(f64, f64)>,
    /// How long single operations took, where that was measured.
    pub(crate) latency: Option<Latency>,
}

impl Done {
    /// All of `work`.
    pub(crate) fn of(work: &Work) -> Self {
        let operations = work.offsets.len() as u64;
        let bytes = operations * u64::from(work.length);
        Self { operations, bytes, ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_random_list_has_every_place_once() {
        let mut offsets = Work::random(7, 16, 8192, 16 * 8192).offsets;
        assert_ne!(offsets, Work::random(8, 16, 8192, 16 * 8192).offsets);
        offsets.sort_unstable();
        assert_eq!(offsets, Work::sequential(0, 16, 8192, 16 * 8192).offsets);
    }

    #[test]
    fn a_sequential_list_goes_round_the_end() {
        let work = Work::sequential(2 * 8192, 3, 8192, 4 * 8192);
        assert_eq!(work.offsets, [2 * 8192, 3 * 8192, 0]);
    }
}
