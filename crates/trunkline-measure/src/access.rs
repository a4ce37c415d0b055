//! **Heap accesses** of a range query: which blocks of a table a scan reads, and in which order.
//!
//! This models the benchmark with which PostgreSQL's AIO settings are usually compared. A query
//! selects a range of values of one column, and the planner is forced to use one kind of scan. The
//! data sets differ in how well the values agree with the physical order of the rows:
//!
//! ```text
//!   uniform     a row's value is random: matching rows are anywhere in the table
//!   linear_10   a row's value is its position, plus noise of 10 % of the table: imperfect correlation
//!
//!   sequential  all blocks in order, whatever the range
//!   bitmap      the blocks with a matching row, in order
//!   index       the same blocks, in the order of their first matching value
//! ```
//!
//! We don't create an index or store these values. For each block we draw the position of its first
//! match in the range: of `r` rows, each of which matches with probability `p` at a uniform position
//! `t` of the range, none is before `t` with probability `(1 - pt)^r`. Inverting this takes one
//! random number per block, so lists of huge tables are cheap, and a seed makes them repeatable.
//! A block is listed once, as if the pool still had it when the index returns to it.

use trunkline_aio::facade::random::Rng;
use trunkline_format::BlockNo;

/// How a range query reads the heap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scan {
    /// All blocks, in order.
    Sequential,
    /// Matching blocks, in order.
    Bitmap,
    /// Matching blocks, in the order of their values.
    Index,
}

impl Scan {
    /// All kinds of scans.
    pub const ALL: [Scan; 3] = [Scan::Sequential, Scan::Bitmap, Scan::Index];

    /// Its name on the command line and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Scan::Sequential => "sequential",
            Scan::Bitmap => "bitmap",
            Scan::Index => "index",
        }
    }
}

/// How the values of the indexed column are distributed over the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dataset {
    /// At random.
    Uniform,
    /// In the order of the table, with noise of 10 % of the table's length.
    Linear10,
}

/// Part of the table's length that the noise of [`Dataset::Linear10`] covers.
const NOISE: f64 = 0.1;

impl Dataset {
    /// The range of values, around the middle, that this part of all rows has: its start and end.
    ///
    /// The values of `Linear10` are the sum of a uniform position and uniform noise, so their density
    /// is a trapezoid: flat between `NOISE` and `1 - NOISE`, and linear at both ends.
    fn range(self, selectivity: f64) -> (f64, f64) {
        let tail = match self {
            Dataset::Uniform => (1.0 - selectivity) / 2.0,
            Dataset::Linear10 => {
                let flat = (1.0 - 2.0 * NOISE) / (1.0 - NOISE);
                if selectivity <= flat {
                    (1.0 - selectivity * (1.0 - NOISE)) / 2.0
                } else {
                    // Below `x`, the end of the trapezoid has the part x² / (2 NOISE (1 - NOISE)).
                    ((1.0 - selectivity) * NOISE * (1.0 - NOISE)).sqrt()
                }
            }
        };
        (tail, 1.0 - tail)
    }

    /// The interval of values, between 0 and 1, that the rows of a block may have: start and width.
    fn values(self, block: BlockNo, blocks: BlockNo) -> (f64, f64) {
        match self {
            Dataset::Uniform => (0.0, 1.0),
            Dataset::Linear10 => {
                let position = f64::from(block) / f64::from(blocks.max(2) - 1);
                (position * (1.0 - NOISE), NOISE)
            }
        }
    }

    /// The blocks with a row that matches a range which selects this part of all rows, in index
    /// order. At least one block. A block has `rows` rows. The range is in the middle of the values.
    pub fn matching_blocks(
        self,
        blocks: BlockNo,
        rows: u32,
        selectivity: f64,
        seed: u64,
    ) -> Vec<BlockNo> {
        let (from, to) = self.range(selectivity);
        let mut random = Rng::new(seed);
        let mut matches: Vec<(f64, BlockNo)> = Vec::new();
        // The block that comes closest to a match, in case there is none.
        let mut nearest = (f64::INFINITY, 0);
        for block in 0..blocks {
            let uniform = (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
            let (start, width) = self.values(block, blocks);
            let (low, high) = (start.max(from), (start + width).min(to));
            if high <= low {
                continue;
            }
            let probability = (high - low) / width;
            let first = (1.0 - (1.0 - uniform).powf(1.0 / f64::from(rows.max(1)))) / probability;
            if first < 1.0 {
                matches.push((low + first * (high - low), block));
            } else if first < nearest.0 {
                nearest = (first, block);
            }
        }
        if matches.is_empty() {
            return vec![nearest.1];
        }
        matches.sort_by(|a, b| a.0.total_cmp(&b.0));
        matches.into_iter().map(|(_, block)| block).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: [Dataset; 2] = [Dataset::Uniform, Dataset::Linear10];

    #[test]
    fn a_range_of_everything_matches_each_block_once() {
        for dataset in BOTH {
            let mut blocks = dataset.matching_blocks(1640, 61, 1.0, 7);
            assert_eq!(blocks, dataset.matching_blocks(1640, 61, 1.0, 7));
            assert_ne!(blocks, dataset.matching_blocks(1640, 61, 1.0, 8));
            blocks.sort_unstable();
            assert!(blocks.iter().copied().eq(0..1640));
        }
    }

    #[test]
    fn as_many_blocks_match_as_random_rows_would_hit() {
        for selectivity in [0.0001, 0.001, 0.01, 0.1] {
            let found = Dataset::Uniform.matching_blocks(100_000, 61, selectivity, 1).len() as f64;
            let hit = 1.0 - (1.0 - selectivity).powi(61);
            let (mean, deviation) = (1e5 * hit, (1e5 * hit * (1.0 - hit)).sqrt());
            assert!((found - mean).abs() < 5.0 * deviation, "{selectivity}: {found}, not {mean}");
        }
    }

    #[test]
    fn correlated_values_are_in_a_part_of_the_table() {
        // 1 % in the middle, and noise of 10 %: about 11 % of the table, not all of it has matches.
        let blocks = Dataset::Linear10.matching_blocks(10_000, 61, 0.01, 1);
        let [first, last] =
            [blocks.iter().min(), blocks.iter().max()].map(|end| *end.expect("one"));
        assert!((4200..4700).contains(&first) && (5300..5800).contains(&last), "{first} {last}");
        assert!(blocks.len() > 900, "{}", blocks.len());
        // Index order is close to the order of the table, but not equal to it.
        let all = Dataset::Linear10.matching_blocks(10_000, 61, 1.0, 1);
        let moved = (0..).zip(&all).map(|(place, &block): (i64, _)| place - i64::from(block));
        let farthest = moved.map(i64::abs).max().expect("one");
        assert!((10..1500).contains(&farthest), "{farthest}");
        let random = Dataset::Uniform.matching_blocks(10_000, 61, 1.0, 1);
        let jumps = |list: &[BlockNo]| list.windows(2).filter(|two| two[1] != two[0] + 1).count();
        assert!(jumps(&random) > 9900 && jumps(&all) < 10_000);
    }

    #[test]
    fn a_range_selects_the_part_of_the_rows_that_was_asked_for() {
        const BLOCKS: BlockNo = 100_000;
        for dataset in BOTH {
            for selectivity in [0.0001, 0.01, 0.1, 0.5, 0.88, 0.9, 0.99, 1.0] {
                let (from, to) = dataset.range(selectivity);
                let part = |block| {
                    let (start, width) = dataset.values(block, BLOCKS);
                    ((start + width).min(to) - start.max(from)).max(0.0) / width
                };
                let selected = (0..BLOCKS).map(part).sum::<f64>() / f64::from(BLOCKS);
                let error = (selected / selectivity - 1.0).abs();
                assert!(error < 0.001, "{dataset:?}: {selected}, not {selectivity}");
            }
        }
    }

    #[test]
    fn a_query_finds_at_least_one_row() {
        for dataset in BOTH {
            assert_eq!(dataset.matching_blocks(2, 1, 1e-9, 3).len(), 1);
            assert_eq!(dataset.matching_blocks(1, 1, 1.0, 3), [0]);
        }
    }
}
