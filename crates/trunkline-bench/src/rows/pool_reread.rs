//! **Repeated blocks**: blocks that are requested again while their read is still in flight.
//!
//! The block list is i, i+1, i+2, i+3 for every i from 1 to 10,000. The baseline is the same
//! stream over each block once. A stream must join a read in flight instead of stalling on it, and
//! must not read any block twice; every run asserts the latter. See
//! `docs/postgres-lessons.md#lesson-15`.

use super::{COMBINED, CONCURRENCY, METHODS, Names, RunOptions, pool_half, way};
use crate::Result;
use crate::data::Data;
use crate::handles::Setup;
use crate::pairs::Pairs;
use crate::pooled::{PoolSetup, Pooled};
use crate::report::{Line, Report, Target};
use crate::work::Done;
use std::cell::RefCell;
use trunkline_aio::MethodKind;
use trunkline_engine::read_stream::{BlockList, BlockRange};
use trunkline_format::{BLOCK_SIZE, BlockNo};

const BLOCK: u32 = BLOCK_SIZE as u32;
/// The last value of i.
const LAST: BlockNo = 10_000;

pub(super) fn run(bench: &RunOptions<'_>) -> Result<Report> {
    let data = bench.data()?;
    let mut lines = Vec::new();
    for length in [BLOCK, COMBINED] {
        for direct in [true, false] {
            for method in METHODS.into_iter().filter(|&m| !direct || m != MethodKind::Sync) {
                lines.extend(compare(bench, &data, length, direct, method)?);
            }
        }
    }
    let notes = vec![
        data.coldness(),
        "the rate is that of distinct blocks; a list that goes back cannot be combined".into(),
    ];
    Ok(Report { row: "pool-reread: i, i+1, i+2, i+3", notes, lines, costs: Vec::new() })
}

fn compare(
    bench: &RunOptions<'_>,
    data: &Data,
    length: u32,
    direct: bool,
    method: MethodKind,
) -> Result<Option<Line>> {
    let names = Names {
        setting: format!("{}, up to {} KiB", way(direct), length / 1024),
        contender: method.to_string(),
        reference: "each once".into(),
    };
    if !bench.wants(&names.setting, &names.contender) {
        return Ok(None);
    }
    let last = LAST.min(data.blocks().saturating_sub(4)).max(1);
    let distinct = u64::from(last) + 3;
    let list: Vec<BlockNo> = (1..=last).flat_map(|i| i..i + 4).collect();
    let io = Setup::new(method, direct, CONCURRENCY, length);
    let pooled = RefCell::new(Pooled::open(data, PoolSetup::new(io, last + 1024), 1)?);
    let done = Done { operations: distinct, bytes: distinct * u64::from(BLOCK), ..Done::default() };
    let mut reference = |_: &()| {
        let tally = pooled.borrow_mut().count(BlockRange::new(1..last + 4))?;
        check(tally.read_blocks, tally.hits, distinct, 0)?;
        Ok(done)
    };
    let mut contender = |_: &()| {
        let tally = pooled.borrow_mut().count(BlockList::new(list.clone()))?;
        check(tally.read_blocks, tally.hits, distinct, u64::from(last) * 4 - distinct)?;
        Ok(done)
    };
    let mut prepare = || pool_half(data, &pooled.borrow());
    // The repeats may add at most 10 % to the elapsed time. There is a target only where both
    // sides issue the same reads.
    let rate = (length == BLOCK).then_some(1.0 / 1.1);
    let target = Target { rate, ..Target::default() };
    let pairs = Pairs::run(bench.pairs, |_| (), &mut prepare, &mut reference, &mut contender)?;
    Ok(Some(Line::new(names.setting, names.contender, names.reference, &pairs, target)))
}

fn check(read: u64, hits: u64, read_wanted: u64, hits_wanted: u64) -> Result<()> {
    if (read, hits) != (read_wanted, hits_wanted) {
        return Err(format!(
            "{read} blocks read and {hits} hits, expected {read_wanted} and {hits_wanted}"
        )
        .into());
    }
    Ok(())
}
