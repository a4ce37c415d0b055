//! Cold random blocks through the pool, uncombined, against the bare loops: point reads, each needed
//! now, against `pread`; streams with 16 and 64 in flight against one thread with a ring of its own.
//! The pool has room for all of them, and is emptied before each run.

use super::{BLIND, Bench, METHODS, Names, files, pool_cold, pool_half, random_list, sums, way};
use crate::Result;
use crate::bare::{Ring, Threads};
use crate::data::Data;
use crate::handles::Setup;
use crate::pairs::Pairs;
use crate::pooled::{PoolSetup, Pooled};
use crate::report::{Line, Report, Target};
use crate::work::Work;
use std::cell::RefCell;
use trunkline_aio::MethodKind;
use trunkline_format::BLOCK_SIZE;

const BLOCK: u32 = BLOCK_SIZE as u32;
/// Reads of one half of a pair.
const READS: usize = 20_000;
const READS_ALONE: usize = 3_000;

pub(super) fn run(bench: &Bench<'_>) -> Result<Report> {
    let data = bench.data()?;
    let mut lines = Vec::new();
    for depth in [1, 16, 64] {
        for (direct, method) in [true, false]
            .into_iter()
            .flat_map(|direct| METHODS.map(|method| (direct, method)))
            .filter(|&(direct, method)| !direct || method != MethodKind::Sync)
        {
            let both = direct && method == MethodKind::IoUring;
            for checksums in [false, true].into_iter().filter(|&checksums| both || checksums) {
                lines.extend(compare(bench, &data, direct, depth, method, checksums)?);
            }
        }
    }
    let notes = vec![data.coldness()];
    Ok(Report { row: "pool-random: cold, 8 KiB", notes, lines, costs: Vec::new() })
}

fn compare(
    bench: &Bench<'_>,
    data: &Data,
    direct: bool,
    depth: usize,
    method: MethodKind,
    checksums: bool,
) -> Result<Option<Line>> {
    let names = Names {
        setting: format!("{}, depth {depth}", way(direct)),
        contender: format!("{method}, {}", sums(checksums)),
        reference: if depth == 1 { "pread" } else { "bare ring" }.into(),
    };
    if !bench.wants(&names.setting, &names.contender) {
        return Ok(None);
    }
    let setup = PoolSetup {
        checksums,
        ..PoolSetup::new(Setup::new(method, direct, depth, BLOCK), READS as u32 + 1024)
    };
    let mut pooled = Pooled::open(data, setup, 1)?;
    let target = match (depth, method) {
        // A latency of 1.15 times the reference's.
        (1, _) => Target { rate: Some(1.0 / 1.15), ..Target::default() },
        (_, MethodKind::IoUring) => Target { rate: Some(0.9), cpu: Some(1.3), ..Target::default() },
        _ => Target::default(),
    };
    let count = if depth == 1 { READS_ALONE } else { READS };
    let next = |round| random_list(data, round, count);
    if depth == 1 {
        let mut threads = Threads::open(files(data, direct)?, 1, BLOCK)?;
        let pooled = RefCell::new(pooled);
        let mut prepare = || pool_half(data, &pooled.borrow());
        let mut reference = |work: &Work| Ok(threads.run(work, BLIND)?);
        let mut contender = |work: &Work| pooled.borrow_mut().run_points(work);
        let pairs = Pairs::run(bench.pairs, next, &mut prepare, &mut reference, &mut contender)?;
        Ok(Some(Line::new(names.setting, names.contender, names.reference, &pairs, target)))
    } else {
        let mut ring = Ring::open(files(data, direct)?, depth, BLOCK)?;
        let mut reference = |work: &Work| Ok(ring.run(work)?);
        pool_cold(bench, data, &mut pooled, names, target, next, &mut reference).map(Some)
    }
}
