//! **Cost of one page in the pool**: a hit, a miss served from the page cache, and a miss that
//! evicts.
//!
//! We measure each case with one thread and with two, for single reads as well as for read streams.
//! The I/O method is `sync`, so that all the work happens in the reader's own thread. For
//! comparison, a bare `pread` reads the same blocks into a buffer that stays in the CPU caches. The
//! cost of an eviction is the difference between a miss in a full pool and a miss in an empty pool.

use super::comparison::{Body, Row, SetUp, Stage};
use super::options::{BLOCK, COMBINED, CONCURRENCY, RunOptions, buffers, files};
use super::reads::CACHED_BYTES_MAX;
use super::side_by_side::BLIND;
use crate::bare::Threads;
use crate::costs::{Cost, Way};
use crate::failure::Result;
use crate::handles::Setup;
use crate::pooled::{PoolSetup, Pooled, points, scan};
use crate::report::Names;
use crate::threads::in_threads;
use crate::work::Work;
use std::cell::RefCell;
use trunkline_aio::MethodKind;
use trunkline_engine::pool::{Backend, Strategy};
use trunkline_engine::read_stream::BlockRange;
use trunkline_format::BlockNo;

/// Number of passes over the pages in a hit run. A single pass would be too short to measure.
const REPEATS: u32 = 20;

/// How a thread accesses the blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum By {
    /// One read per block.
    Point,
    /// Through a read stream.
    Stream,
}

pub(super) const POOL_PAGE: Row = Row {
    name: "pool-page",
    measures: "Nanoseconds per page for a hit, a miss and an eviction",
    question: "What does a page cost in the pool?",
    about: "There is no baseline, but `pread` is included for comparison. The data is small, so \
            that it stays in the page cache.",
    set_up: SetUp::Folder("cached", CACHED_BYTES_MAX),
    body: Body::Costs(costs),
    notes: |stage| {
        let cached = stage.data()?.cached()? * 100.0;
        Ok(vec![
            stage.with_page_kind(format!("{cached:.0} % of the data in the page cache")),
            "hits of two threads are on the same pages; misses on a half of the table each".into(),
        ])
    },
    ..Row::COLD
};

fn costs(stage: &Stage<'_>) -> Result<Vec<Cost>> {
    let (bench, data) = (stage.bench, stage.data()?);
    data.warm()?;
    let room = data.blocks() + 1024;
    let open = |length, buffers, checksums| {
        let io = Setup::new(MethodKind::Sync, false, CONCURRENCY, length);
        let setup = PoolSetup { checksums, ..PoolSetup::scan(io, buffers, Strategy::Normal) };
        Pooled::open(data, setup, 2).map(RefCell::new)
    };
    // The small pool holds half of the data. This is still large enough that its pages miss the CPU
    // caches just as often as they do in the pool that holds everything.
    let few = buffers(data.bytes, 2);
    let (warm, cold, bare) =
        (open(BLOCK, room, true)?, open(BLOCK, room, true)?, open(BLOCK, room, false)?);
    let (full, full_bare) = (open(BLOCK, few, true)?, open(BLOCK, few, false)?);
    let wide = open(COMBINED, few, false)?;
    let (warm, blocks) = (&warm, data.blocks());
    visit(warm, blocks, 1, 1, By::Point, false)?;
    stage.page_kind.set(Some(warm.borrow().page_kind()));
    let mut ways = Vec::new();
    for threads in [1, 2] {
        for (by, text) in [(By::Point, "point read"), (By::Stream, "stream")] {
            for (look, suffix) in [(false, ""), (true, ", locked and looked at")] {
                let run = move || visit(warm, blocks, threads, REPEATS, by, look);
                ways.push(way(bench, format!("hit, {text}{suffix}"), threads, || Ok(()), run));
            }
        }
        for (length, text) in [(BLOCK, "(pread, 8 KiB)"), (COMBINED, "(pread, 128 KiB)")] {
            let mut bare = Threads::open(files(data, false)?, threads, length)?;
            let work = Work::whole(data.bytes, length);
            let run = move || Ok(bare.run(&work, BLIND)?.bytes / u64::from(BLOCK));
            ways.push(way(bench, text.into(), threads, || Ok(()), run));
        }
        for (pooled, text) in [(&bare, ""), (&cold, ", checksum")] {
            let run = move || visit(pooled, blocks, threads, 1, By::Point, false);
            let name = format!("miss, empty pool{text}");
            let prepare = move || pooled.borrow().empty();
            ways.push(way(bench, name, threads, prepare, run));
        }
        for (pooled, by, text) in [
            (&full_bare, By::Point, "full pool"),
            (&full, By::Point, "full pool, checksum"),
            (&full_bare, By::Stream, "full pool, stream"),
            (&wide, By::Stream, "full pool, stream of 128 KiB"),
        ] {
            let run = move || visit(pooled, blocks, threads, 1, by, false);
            ways.push(way(bench, format!("miss and eviction, {text}"), threads, || Ok(()), run));
        }
    }
    Cost::of(bench.pairs as usize, ways.into_iter().flatten().collect())
}

fn way<'a>(
    bench: &RunOptions,
    name: String,
    threads: usize,
    prepare: impl FnMut() -> Result<()> + 'a,
    run: impl FnMut() -> Result<u64> + 'a,
) -> Option<Way<'a>> {
    let wanted = bench.wants(&Names::new(&name, format!("{threads} threads"), ""));
    let (prepare, run) = (Box::new(prepare), Box::new(run));
    wanted.then_some(Way { name, threads, prepare, run })
}

/// Accesses all pages `repeats` times and returns the number of accesses. If `repeats` is 1, the
/// threads divide the blocks among themselves, because each block can miss only once. Otherwise
/// each thread visits every block.
fn visit(
    pooled: &RefCell<Pooled>,
    blocks: BlockNo,
    threads: usize,
    repeats: u32,
    by: By,
    look: bool,
) -> Result<u64> {
    let mut pooled = pooled.borrow_mut();
    let (backends, relation, options) = pooled.sessions();
    let part = |index: usize| {
        if repeats > 1 {
            return 0..blocks;
        }
        let bound = |index: usize| (u64::from(blocks) * index as u64 / threads as u64) as BlockNo;
        bound(index)..bound(index + 1)
    };
    let read = |(index, backend): (usize, &mut Backend)| {
        let mut seen = 0;
        for _ in 0..repeats {
            seen += match by {
                By::Point => points(backend, relation, part(index), look)?,
                By::Stream => scan(backend, relation, BlockRange::new(part(index)), options, look)?,
            };
        }
        Ok(seen)
    };
    let seen = in_threads(backends.iter_mut().take(threads).enumerate(), read)?;
    Ok(seen.iter().sum())
}
