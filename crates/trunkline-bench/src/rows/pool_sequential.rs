//! A cold table through the pool, in the file's order, 16 reads of 128 KiB in flight, direct,
//! against one thread with a ring of its own.
//!
//! A table larger than the pool goes through a ring of few buffers; one that fits fills the pool,
//! which is emptied before each run. The reference computes no checksums and touches no page.

use super::{Bench, COMBINED, CONCURRENCY, Names, buffers, files, pool_cold, sums};
use crate::Result;
use crate::bare::Ring;
use crate::handles::Setup;
use crate::pooled::{PoolSetup, Pooled};
use crate::report::{Report, Target};
use crate::work::Work;
use trunkline_aio::MethodKind;
use trunkline_engine::pool::Strategy;
use trunkline_format::BLOCK_SIZE;

/// Bytes read by one half of a pair.
const SLICE: u64 = 1 << 30;

pub(super) fn run(bench: &Bench<'_>) -> Result<Report> {
    let data = bench.data()?;
    let slice = data.bytes.min(SLICE);
    let count = (slice / u64::from(COMBINED)).max(1) as usize;
    let next = |round: u64| {
        let start = round * count as u64 * u64::from(COMBINED) % data.bytes;
        Work::sequential(start, count, COMBINED, data.bytes)
    };
    let mut ring = Ring::open(files(&data, true)?, CONCURRENCY, COMBINED)?;
    let (mut lines, mut pages) = (Vec::new(), "");
    let fits = (slice / BLOCK_SIZE as u64) as u32 + 1024;
    let kinds = [
        ("pool 1/16, ring", buffers(slice, 16), Strategy::BulkRead),
        ("pool 1/16", buffers(slice, 16), Strategy::Normal),
        ("pool fits", fits, Strategy::Normal),
    ];
    for (kind, buffers, strategy) in kinds {
        for method in [MethodKind::IoUring, MethodKind::Worker] {
            for checksums in [false, true] {
                let names = Names {
                    setting: format!("direct, {kind}"),
                    contender: format!("{method}, {}", sums(checksums)),
                    reference: "bare ring".into(),
                };
                if !bench.wants(&names.setting, &names.contender) {
                    continue;
                }
                let io = Setup::new(method, true, CONCURRENCY, COMBINED);
                let setup =
                    PoolSetup { checksums, strategy, scan: true, ..PoolSetup::new(io, buffers) };
                let mut pooled = Pooled::open(&data, setup, 1)?;
                pages = pooled.page_kind();
                let target = match method {
                    MethodKind::IoUring => {
                        Target { rate: Some(0.95), cpu: Some(1.3), ..Target::default() }
                    }
                    _ => Target::default(),
                };
                let mut reference = |work: &Work| Ok(ring.run(work)?);
                let line =
                    pool_cold(bench, &data, &mut pooled, names, target, next, &mut reference)?;
                lines.push(line);
            }
        }
    }
    let notes = vec![format!("{pages} pages; {}", data.coldness())];
    Ok(Report { row: "pool-sequential: cold, 128 KiB", notes, lines, costs: Vec::new() })
}
