//! Cold random reads of 8 KiB: one that is needed now against `pread`, 16 and 64 in flight against
//! one thread with a ring of its own.

use super::{BLIND, Bench, METHODS, Names, cold, files, way};
use crate::Result;
use crate::bare::{Ring, Threads};
use crate::data::Data;
use crate::handles::{Handles, Setup};
use crate::report::{Line, Report, Target};
use crate::work::Work;
use trunkline_aio::MethodKind;
use trunkline_format::BLOCK_SIZE;

const BLOCK: u32 = BLOCK_SIZE as u32;

pub(super) fn run(bench: &Bench<'_>) -> Result<Report> {
    let data = bench.data()?;
    let mut lines = Vec::new();
    for direct in [true, false] {
        lines.extend(needed_now(bench, &data, direct)?);
        for depth in [16, 64] {
            let methods = METHODS.into_iter().filter(|&m| !direct || m != MethodKind::Sync);
            for method in methods {
                lines.extend(windowed(bench, &data, direct, depth, method)?);
            }
        }
    }
    let notes = vec![data.coldness()];
    Ok(Report { row: "random: cold, 8 KiB", notes, lines, costs: Vec::new() })
}

fn needed_now(bench: &Bench<'_>, data: &Data, direct: bool) -> Result<Option<Line>> {
    let names = Names {
        setting: format!("{}, depth 1", way(direct)),
        contender: "needed now".into(),
        reference: "pread".into(),
    };
    if !bench.wants(&names.setting, &names.contender) {
        return Ok(None);
    }
    let mut threads = Threads::open(files(data, direct)?, 1, BLOCK)?;
    let mut handles = Handles::open(data, Setup::new(MethodKind::IoUring, direct, 1, BLOCK))?;
    // A latency of 1.15 times the reference's.
    let target = Target { rate: Some(1.0 / 1.15), ..Target::default() };
    let mut reference = |work: &Work| Ok(threads.run(work, BLIND)?);
    let mut contender = |work: &Work| handles.run(work);
    let next = |round| list(data, round, 3_000);
    cold(bench, data, names, target, next, &mut reference, &mut contender).map(Some)
}

fn windowed(
    bench: &Bench<'_>,
    data: &Data,
    direct: bool,
    depth: usize,
    method: MethodKind,
) -> Result<Option<Line>> {
    let names = Names {
        setting: format!("{}, depth {depth}", way(direct)),
        contender: method.to_string(),
        reference: "bare ring".into(),
    };
    if !bench.wants(&names.setting, &names.contender) {
        return Ok(None);
    }
    let mut ring = Ring::open(files(data, direct)?, depth, BLOCK)?;
    let mut handles = Handles::open(data, Setup::new(method, direct, depth, BLOCK))?;
    let target = if method == MethodKind::IoUring {
        Target { rate: Some(0.9), cpu: Some(1.3), ..Target::default() }
    } else {
        Target::default()
    };
    let mut reference = |work: &Work| Ok(ring.run(work)?);
    let mut contender = |work: &Work| handles.run(work);
    let next = |round| list(data, round, if direct { 20_000 } else { 10_000 });
    cold(bench, data, names, target, next, &mut reference, &mut contender).map(Some)
}

/// Another list for each pair, of no more places than there are.
fn list(data: &Data, round: u64, count: usize) -> Work {
    let count = count.min((data.bytes / u64::from(BLOCK)) as usize);
    Work::random(round + 1, count, BLOCK, data.bytes)
}
