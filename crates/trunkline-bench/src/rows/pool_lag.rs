//! Random blocks through the pool from a device that is slow and serves many at once, against as
//! many threads as the depth, each with a `pread`; and what a bare ring makes of that file system.

use super::{BLIND, Bench, METHODS, Names, files, pool_cold, random_list, way};
use crate::Result;
use crate::bare::Threads;
use crate::data::Data;
use crate::handles::Setup;
use crate::pooled::{PoolSetup, Pooled};
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
    let dir =
        bench.lag_dir.ok_or("the row `pool-lag` needs --lag-dir, a folder on a slow device")?;
    let data = Data::prepare(dir, bench.bytes.min(BYTES_MAX))?;
    let mut lines = Vec::new();
    for direct in [true, false] {
        for depth in [16, 64, 200] {
            for method in METHODS.into_iter().filter(|&m| !direct || m != MethodKind::Sync) {
                lines.extend(compare(bench, &data, direct, depth, method)?);
            }
        }
    }
    let notes = vec![data.coldness(), "`sync` has the kernel read ahead (fadvise)".into()];
    Ok(Report { row: "pool-lag: 8 KiB, slow device", notes, lines, costs: Vec::new() })
}

fn compare(
    bench: &Bench<'_>,
    data: &Data,
    direct: bool,
    depth: usize,
    method: MethodKind,
) -> Result<Option<Line>> {
    let names = Names {
        setting: format!("{}, depth {depth}", way(direct)),
        contender: method.to_string(),
        reference: format!("{depth} threads"),
    };
    if !bench.wants(&names.setting, &names.contender) {
        return Ok(None);
    }
    let count = depth * ROUNDS;
    let mut threads = Threads::open(files(data, direct)?, depth, BLOCK)?;
    let io = Setup { workers: depth, ..Setup::new(method, direct, depth, BLOCK) };
    let mut pooled = Pooled::open(data, PoolSetup::new(io, count as u32 + 1024), 1)?;
    let in_flight = (method != MethodKind::Sync).then_some(0.9 * depth as f64);
    // At most 1.1 times the reference's time.
    let target = Target { rate: Some(1.0 / 1.1), in_flight, ..Target::default() };
    let mut reference = |work: &Work| Ok(threads.run(work, BLIND)?);
    let next = |round| random_list(data, round, count);
    pool_cold(bench, data, &mut pooled, names, target, next, &mut reference).map(Some)
}
