//! Random reads of 8 KiB from a device that is slow and serves many at once: what counts is how
//! many are in flight, and that the next one follows at once.

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
/// The data is small: the device's rate does not depend on its size.
const BYTES_MAX: u64 = 256 << 20;
/// Reads of one half of a pair, per read in flight.
const ROUNDS: usize = 50;

pub(super) fn run(bench: &Bench<'_>) -> Result<Report> {
    let dir = bench.lag_dir.ok_or("the row `lag` needs --lag-dir, a folder on a slow device")?;
    let data = Data::prepare(dir, bench.bytes.min(BYTES_MAX))?;
    let mut lines = Vec::new();
    for direct in [true, false] {
        for depth in [16, 64, 200] {
            for method in METHODS.into_iter().filter(|&m| !direct || m != MethodKind::Sync) {
                lines.extend(compare(bench, &data, direct, depth, method)?);
            }
            lines.extend(bare_ring(bench, &data, direct, depth)?);
        }
    }
    let notes = vec![data.coldness(), "`sync` has the kernel read ahead (fadvise)".into()];
    Ok(Report { row: "lag: 8 KiB, slow device", notes, lines, costs: Vec::new() })
}

fn names(contender: String, direct: bool, depth: usize) -> Names {
    let reference = format!("{depth} threads");
    Names { setting: format!("{}, depth {depth}", way(direct)), contender, reference }
}

fn compare(
    bench: &Bench<'_>,
    data: &Data,
    direct: bool,
    depth: usize,
    method: MethodKind,
) -> Result<Option<Line>> {
    let names = names(method.to_string(), direct, depth);
    if !bench.wants(&names.setting, &names.contender) {
        return Ok(None);
    }
    let mut threads = Threads::open(files(data, direct)?, depth, BLOCK)?;
    let setup = Setup { workers: depth, refill: 1, ..Setup::new(method, direct, depth, BLOCK) };
    let mut handles = Handles::open(data, setup)?;
    let in_flight = (method != MethodKind::Sync).then_some(0.9 * depth as f64);
    // At most 1.1 times the reference's time.
    let target = Target { rate: Some(1.0 / 1.1), in_flight, ..Target::default() };
    let mut reference = |work: &Work| Ok(threads.run(work, BLIND)?);
    let mut contender = |work: &Work| handles.run(work);
    let next = |round| list(data, round, depth);
    cold(bench, data, names, target, next, &mut reference, &mut contender).map(Some)
}

/// Not ours: what a ring can do on this file system.
fn bare_ring(bench: &Bench<'_>, data: &Data, direct: bool, depth: usize) -> Result<Option<Line>> {
    let names = names("(bare ring)".into(), direct, depth);
    if !bench.wants(&names.setting, &names.contender) {
        return Ok(None);
    }
    let mut threads = Threads::open(files(data, direct)?, depth, BLOCK)?;
    let mut ring = Ring::open(files(data, direct)?, depth, BLOCK)?;
    let mut reference = |work: &Work| Ok(threads.run(work, BLIND)?);
    let mut contender = |work: &Work| Ok(ring.run(work)?);
    let next = |round| list(data, round, depth);
    cold(bench, data, names, Target::default(), next, &mut reference, &mut contender).map(Some)
}

fn list(data: &Data, round: u64, depth: usize) -> Work {
    let count = (depth * ROUNDS).min((data.bytes / u64::from(BLOCK)) as usize);
    Work::random(round + 1, count, BLOCK, data.bytes)
}
