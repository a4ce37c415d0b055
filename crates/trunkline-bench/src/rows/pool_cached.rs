//! A table that lies in the page cache, through a pool of a sixteenth of it, by one session and by
//! several that share the table: `worker` and `io_uring` must not be slower than our own `sync`.
//! Every page is a miss and an eviction; the work is copying 8 KiB, so every hop shows.

use super::{Bench, COMBINED, CONCURRENCY, buffers};
use crate::Result;
use crate::data::Data;
use crate::handles::Setup;
use crate::pairs::Pairs;
use crate::pooled::{PoolSetup, Pooled};
use crate::report::{Line, Report, Target};
use crate::work::Work;
use trunkline_aio::MethodKind;
use trunkline_engine::pool::Strategy;
use trunkline_format::BLOCK_SIZE;

/// The table at most: what is read of it must stay in the page cache.
const BYTES_MAX: u64 = 512 << 20;
const SESSIONS: [usize; 3] = [1, 2, 32];

pub(super) fn run(bench: &Bench<'_>) -> Result<Report> {
    let data = Data::prepare(&bench.dir.join("table"), bench.bytes.min(BYTES_MAX))?;
    data.warm()?;
    let mut lines = Vec::new();
    for length in [BLOCK_SIZE as u32, COMBINED] {
        for sessions in SESSIONS {
            for method in [MethodKind::Worker, MethodKind::IoUring] {
                lines.extend(compare(bench, &data, length, sessions, method)?);
            }
        }
    }
    let cached = data.cached()? * 100.0;
    let notes = vec![format!("{cached:.0} % of the data was in the page cache at the end")];
    Ok(Report { row: "pool-cached: pool 1/16 of the table", notes, lines, costs: Vec::new() })
}

fn compare(
    bench: &Bench<'_>,
    data: &Data,
    length: u32,
    sessions: usize,
    method: MethodKind,
) -> Result<Option<Line>> {
    let setting = format!("{} KiB, {sessions} sessions", length / 1024);
    if !bench.wants(&setting, method.name()) {
        return Ok(None);
    }
    let open = |method| {
        let io = Setup::new(method, false, CONCURRENCY, length);
        let setup = PoolSetup {
            strategy: Strategy::BulkRead,
            scan: true,
            ..PoolSetup::new(io, buffers(data.bytes, 16))
        };
        Pooled::open(data, setup, sessions)
    };
    let (mut ours, mut theirs) = (open(MethodKind::Sync)?, open(method)?);
    let reads = data.bytes / u64::from(length);
    let part = |index: u64| {
        let first = reads * index / sessions as u64;
        let count = reads * (index + 1) / sessions as u64 - first;
        Work::sequential(first * u64::from(length), count as usize, length, data.bytes)
    };
    let next = |_| (0..sessions as u64).map(part).collect::<Vec<_>>();
    let target = Target { rate_low: Some(0.95), ..Target::default() };
    let mut reference = |parts: &Vec<Work>| ours.run_parts(parts);
    let mut contender = |parts: &Vec<Work>| theirs.run_parts(parts);
    let mut prepare = || Ok(());
    let pairs = Pairs::run(bench.pairs, next, &mut prepare, &mut reference, &mut contender)?;
    Ok(Some(Line::new(setting, method.name(), "our sync", &pairs, target)))
}
