//! **Checksum verification**: the engine's `verify`, cold and cached, compared with bare threads.
//! There are as many bare threads as CPUs; each reads 128 KiB at a time and checks every page's
//! checksum.

use super::{COMBINED, CONCURRENCY, METHODS, RunOptions, files, way};
use crate::Result;
use crate::bare::Threads;
use crate::data::{Data, is_sound};
use crate::handles::{Setup, flight};
use crate::pairs::Pairs;
use crate::report::{Line, Report, Target};
use crate::work::{Done, Work};
use std::time::Instant;
use trunkline_aio::sync::Arc;
use trunkline_aio::sync::atomic::{AtomicU64, Ordering};
use trunkline_aio::{Aio, MethodKind};
use trunkline_engine::file_scan::ReadOptions;
use trunkline_engine::job::Unobserved;
use trunkline_engine::verify::{Options, verify_files};
use trunkline_format::{BLOCK_SIZE, BlockNo};

pub(super) fn run(bench: &RunOptions<'_>) -> Result<Report> {
    let data = bench.data()?;
    let mut lines = Vec::new();
    for (warm, direct) in [(true, false), (false, false), (false, true)] {
        let methods = METHODS.into_iter().filter(|&m| !direct || m != MethodKind::Sync);
        for method in methods {
            lines.extend(compare(bench, &data, warm, direct, method)?);
        }
    }
    let notes = vec![data.coldness()];
    Ok(Report { row: "verify: checksums", notes, lines, costs: Vec::new() })
}

fn compare(
    bench: &RunOptions<'_>,
    data: &Data,
    warm: bool,
    direct: bool,
    method: MethodKind,
) -> Result<Option<Line>> {
    let temperature = if warm { "cached" } else { "cold" };
    let setting = format!("{temperature}, {}", way(direct));
    if !bench.wants(&setting, method.name()) {
        return Ok(None);
    }
    let cpus = std::thread::available_parallelism()?.get();
    let mut threads = Threads::open(files(data, direct)?, cpus, COMBINED)?;
    let read = ReadOptions {
        direct,
        depth: CONCURRENCY as u32,
        combine_blocks: COMBINED / BLOCK_SIZE as u32,
    };
    let setup = Setup::new(method, direct, CONCURRENCY + 1, COMBINED);
    let aio = setup.start()?;
    let least = match (method, warm) {
        (MethodKind::Sync, _) => None,
        (_, true) => Some(0.85),
        (_, false) => Some(0.95),
    };
    let target = Target { rate: least, ..Target::default() };
    let mut reference = |work: &Work| raw_loop(&mut threads, work);
    let mut contender = |work: &Work| engine(&aio, data, read, work);
    let mut prepare = || if warm { data.warm() } else { data.evict() };
    let count = (data.bytes / u64::from(COMBINED)).max(1) as usize;
    let next = |_| Work::sequential(0, count, COMBINED, data.bytes);
    let pairs = Pairs::run(bench.pairs, next, &mut prepare, &mut reference, &mut contender)?;
    Ok(Some(Line::new(setting, method.name(), format!("{cpus} threads"), &pairs, target)))
}

/// The baseline: `pread`, then the checksum of each page.
fn raw_loop(threads: &mut Threads, work: &Work) -> Result<Done> {
    let bad = AtomicU64::new(0);
    let done = threads.run(work, &|offset, bytes| {
        let first = (offset / BLOCK_SIZE as u64) as BlockNo;
        for (block, page) in (first..).zip(bytes.as_chunks().0) {
            if !is_sound(page, block) {
                bad.fetch_add(1, Ordering::Relaxed);
            }
        }
    })?;
    match bad.load(Ordering::Relaxed) {
        0 => Ok(done),
        bad => Err(format!("{bad} bad pages").into()),
    }
}

/// The contender: the engine's verification.
fn engine(aio: &Aio, data: &Data, read: ReadOptions, work: &Work) -> Result<Done> {
    let options = Options { read, findings_listed: 1 };
    let (before, started) = (aio.counters(), Instant::now());
    let report = verify_files(aio, data.entries()?, true, options, Arc::new(Unobserved))?;
    let elapsed = started.elapsed();
    if report.findings_total() > 0 || report.bytes() != data.bytes {
        return Err(format!("{report:?}").into());
    }
    Ok(flight(Done::of(work), &before, &aio.counters(), elapsed))
}
