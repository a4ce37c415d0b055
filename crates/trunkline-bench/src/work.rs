//! **Work list**: the reads that one run performs, and the result of the run. Both halves of a pair
//! get the same list, so that the device has the same work to do.

use trunkline_format::{BLOCK_SIZE, BlockNo};
use trunkline_measure::Latency;

/// A list of reads, all of the same length.
#[derive(Debug, Clone)]
pub(crate) struct Work {
    /// Byte offsets, continuous over all segments. Each offset is a multiple of `length`, so no
    /// read crosses a segment boundary.
    pub(crate) offsets: Vec<u64>,
    /// Size of each read in bytes.
    pub(crate) length: u32,
}

impl Work {
    /// `count` consecutive reads from `start`, wrapping around at `bytes`.
    pub(crate) fn sequential(start: u64, count: usize, length: u32, bytes: u64) -> Self {
        let step = u64::from(length);
        let places = (bytes / step).max(1);
        let at = |i| (start / step + i as u64) % places * step;
        Self { offsets: (0..count).map(at).collect(), length }
    }

    /// One read for each of these blocks.
    pub(crate) fn of_blocks(blocks: impl Iterator<Item = BlockNo>) -> Self {
        let length = BLOCK_SIZE as u32;
        Self { offsets: blocks.map(|block| u64::from(block) * BLOCK_SIZE as u64).collect(), length }
    }

    /// All of `bytes` once, in order. At least one read, so that there is something to measure.
    pub(crate) fn whole(bytes: u64, length: u32) -> Self {
        Self::sequential(0, (bytes / u64::from(length)).max(1) as usize, length, bytes)
    }

    /// Returns the given number of random reads. Their order depends only on the seed. We don't
    /// repeat an offset until every offset has been read once, so that cold reads don't hit pages
    /// that an earlier read left in the page cache.
    pub(crate) fn random(seed: u64, count: usize, length: u32, bytes: u64) -> Self {
        let step = u64::from(length);
        let mut places: Vec<u64> = (0..(bytes / step).max(1)).map(|place| place * step).collect();
        let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        // Fisher-Yates shuffle, stopped once enough offsets have been drawn.
        let chosen = count.min(places.len());
        for at in 0..chosen {
            let other = at + (random.next() % (places.len() - at) as u64) as usize;
            places.swap(at, other);
        }
        places.truncate(chosen);
        let offsets = places.iter().cycle().take(count).copied().collect();
        Self { offsets, length }
    }

    /// The blocks that the reads cover, in list order.
    pub(crate) fn blocks(&self) -> impl Iterator<Item = BlockNo> + Send + use<'_> {
        let each = self.length / BLOCK_SIZE as u32;
        self.offsets.iter().flat_map(move |offset| {
            let first = (offset / BLOCK_SIZE as u64) as BlockNo;
            first..first + each
        })
    }
}

/// xorshift64* (Vigna 2016). Deterministic: the same seed always yields the same list.
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

/// Result of a run.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Done {
    /// Number of reads, or of round trips.
    pub(crate) operations: u64,
    /// Bytes transferred; 0 if the run moves no data.
    pub(crate) bytes: u64,
    /// Mean number of reads in flight, sampled at each submission, if known.
    pub(crate) in_flight: Option<f64>,
    /// Mean number of reads at the device over the whole run, if known.
    pub(crate) at_storage: Option<f64>,
    /// Elapsed and CPU seconds, if the run measured itself. These then replace the caller's
    /// measurements.
    pub(crate) took: Option<(f64, f64)>,
    /// Latency of single operations, if recorded.
    pub(crate) latency: Option<Latency>,
}

impl Done {
    /// The result of operations on one block each, from their latencies and from the elapsed and
    /// CPU seconds.
    pub(crate) fn timed(micros: Vec<f32>, took: (f64, f64)) -> Self {
        let operations = micros.len() as u64;
        let (bytes, latency) = (operations * BLOCK_SIZE as u64, Latency::of(micros));
        Self { operations, bytes, took: Some(took), latency, ..Self::default() }
    }

    /// The result of a run that completed all of `work`.
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
