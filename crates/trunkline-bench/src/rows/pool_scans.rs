//! **Concurrent scans**: two sessions scan the same table in a pool that can hold all of it,
//! compared with one session. Whichever session needs a block first reads it, and the other
//! session must find it in the pool or join the read. Every run asserts that each block is read
//! only once.

use super::{COMBINED, CONCURRENCY, METHODS, Names, RunOptions, pool_half, way};
use crate::Result;
use crate::data::Data;
use crate::handles::Setup;
use crate::pairs::Pairs;
use crate::pooled::{PoolSetup, Pooled};
use crate::report::{Line, Report, Target};
use crate::work::{Done, Work};
use std::cell::RefCell;
use trunkline_aio::MethodKind;
use trunkline_format::BLOCK_SIZE;

/// Maximum table size.
const BYTES_MAX: u64 = 512 << 20;

pub(super) fn run(bench: &RunOptions<'_>) -> Result<Report> {
    let data = Data::prepare(&bench.dir.join("table"), bench.bytes.min(BYTES_MAX))?;
    let mut lines = Vec::new();
    for direct in [true, false] {
        for method in METHODS.into_iter().filter(|&m| !direct || m != MethodKind::Sync) {
            lines.extend(compare(bench, &data, direct, method)?);
        }
    }
    let notes = vec![data.coldness(), "the rate is that of the table, however many scan it".into()];
    Ok(Report { row: "pool-scans: two sessions, one table", notes, lines, costs: Vec::new() })
}

fn compare(
    bench: &RunOptions<'_>,
    data: &Data,
    direct: bool,
    method: MethodKind,
) -> Result<Option<Line>> {
    let names = Names {
        setting: way(direct).into(),
        contender: format!("{method}, two"),
        reference: "one".into(),
    };
    if !bench.wants(&names.setting, &names.contender) {
        return Ok(None);
    }
    let io = Setup::new(method, direct, CONCURRENCY, COMBINED);
    let setup = PoolSetup { scan: true, ..PoolSetup::new(io, data.blocks() + 1024) };
    let pooled = RefCell::new(Pooled::open(data, setup, 2)?);
    let blocks = u64::from(data.blocks());
    let whole = Work::sequential(0, blocks as usize, BLOCK_SIZE as u32, data.bytes);
    let run = |sessions: usize| {
        let mut pooled = pooled.borrow_mut();
        let before = pooled.pool.total();
        let done = pooled.run_parts(&vec![whole.clone(); sessions])?;
        let counted = pooled.pool.total().since(&before);
        let hits = blocks * (sessions as u64 - 1);
        if (counted.read_blocks, counted.hits) != (blocks, hits) {
            return Err(format!("{counted:?}, expected {blocks} blocks and {hits} hits").into());
        }
        Ok(Done { operations: blocks, bytes: data.bytes, ..done })
    };
    let mut reference = |_: &()| run(1);
    let mut contender = |_: &()| run(2);
    let mut prepare = || pool_half(data, &pooled.borrow());
    let target = Target::default();
    let pairs = Pairs::run(bench.pairs, |_| (), &mut prepare, &mut reference, &mut contender)?;
    Ok(Some(Line::new(names.setting, names.contender, names.reference, &pairs, target)))
}
