//! **Benchmark rows**: reads through handles, reads through the pool, and writes.
//!
//! Each row is declared as data: its name, what it measures, its set-up and its lines. The rows
//! that only read are declared in `reads.rs` and `pool_reads.rs`, whereas a row that writes is
//! declared next to its experiment. `comparison.rs` runs all of them.

mod bgwriter;
mod checkpoint;
mod checkpoint_spread;
mod checkpoint_table;
mod comparison;
mod extend;
mod joined;
mod load;
mod memory_limit;
mod options;
mod pool_page;
mod pool_reads;
mod pool_start;
mod readers;
mod reads;
mod side_by_side;
#[cfg(test)]
mod tests;
mod verify;

pub(crate) use comparison::{Needs, Row};
pub(crate) use memory_limit::one_scan;
pub(crate) use options::RunOptions;

/// All rows in report order.
pub(crate) static ROWS: [Row; 20] = [
    reads::SEQUENTIAL,
    reads::RANDOM,
    reads::LAG,
    reads::ROUND_TRIP,
    reads::VERIFY,
    pool_reads::POOL_SEQUENTIAL,
    pool_reads::POOL_RANDOM,
    pool_reads::POOL_LAG,
    pool_reads::POOL_CACHED,
    pool_reads::POOL_ROUND_TRIP,
    pool_reads::POOL_REREAD,
    pool_reads::POOL_SCANS,
    pool_page::POOL_PAGE,
    pool_reads::POOL_MEMORY,
    pool_start::POOL_START,
    checkpoint::CHECKPOINT,
    checkpoint_spread::CHECKPOINT_SPREAD,
    bgwriter::BGWRITER,
    bgwriter::BGWRITER_PACED,
    extend::EXTEND,
];
