//! **Checkpoint** of many dirty pages, compared with a bare loop that writes the same ranges of
//! the same files.
//!
//! The bare loop keeps the same number of writes in flight and also fsyncs the files at the end,
//! but it sorts nothing, computes no checksums and locks no pages. For `io_uring`, the baseline is
//! one thread with a ring. For `worker`, it's as many `pwrite` threads as there are workers, and
//! for `sync` a single `pwrite` thread. Its memory is as large as the data it writes, unless
//! `--hot-reference` makes it reuse a few buffers. Other lines compare checkpoints with and
//! without writeback (`checkpoint_flush_after`). `checkpoint_reads.rs` adds the cost for
//! concurrent readers.

use super::checkpoint_reads;
use super::checkpoint_table::{Order, Table, ranges};
use super::{Flush, METHODS, Names, RunOptions};
use crate::Result;
use crate::bare::{Files, Range, WriteRing, WriteThreads};
use crate::pairs::Pairs;
use crate::report::{Line, Report, Target};
use crate::work::Done;
use std::cell::RefCell;
use trunkline_aio::MethodKind;
use trunkline_engine::checkpoint::CheckpointOptions;
use trunkline_format::{BLOCK_SIZE, BlockNo};

/// Buffers for the concurrent readers, in addition to those for the dirty pages.
pub(super) const BESIDE: u32 = 16_384;
/// Number of baseline threads for `worker`: the default number of workers.
const WORKERS: usize = 8;

pub(super) fn run(bench: &RunOptions<'_>) -> Result<Report> {
    let options = CheckpointOptions::of(bench.settings);
    let pages = u32::try_from(bench.dirty / BLOCK_SIZE as u64)?.max(64);
    let mut table = Table::make(bench, bench.dirty.saturating_mul(2), pages + BESIDE)?;
    let (mut lines, mut notes) = (Vec::new(), Vec::new());
    for order in [Order::Sequential, Order::Random] {
        let blocks = order.pages(pages);
        let before = lines.len();
        for flush in Flush::each(options.flush_after) {
            let group = lines.len();
            for method in METHODS {
                lines.extend(compare(bench, &mut table, &blocks, order, flush, method)?);
            }
            if lines.len() > group {
                // The last baseline left arbitrary bytes in the files, so write valid pages over
                // them.
                table.dirty(&blocks)?;
                table.checkpoint(blocks.len(), options)?;
            }
        }
        if lines.len() > before {
            table.verify()?;
        }
    }
    let before = lines.len();
    checkpoint_reads::compare_all(bench, &mut table, pages, &mut lines, &mut notes)?;
    if lines.len() > before {
        table.verify()?;
    }
    let megabytes = u64::from(pages) * BLOCK_SIZE as u64 / 1_000_000;
    notes.insert(0, format!("{pages} pages ({megabytes} MB) dirty; a rate is that of pages"));
    notes.insert(1, "every page of the table was sound afterwards".into());
    Ok(Report { row: "checkpoint: as fast as it can be", notes, lines, costs: Vec::new() })
}

/// The baseline of a line.
enum Reference {
    Ring(Box<WriteRing>),
    Threads(WriteThreads),
    /// A checkpoint with the user's writeback setting.
    Ours,
}

impl Reference {
    fn new(
        method: MethodKind,
        flush: Flush,
        options: CheckpointOptions,
        files: Files,
        memory: u64,
    ) -> Result<Self> {
        let depth = options.concurrency as usize;
        Ok(match (flush.varied, threads(method)) {
            (true, _) => Self::Ours,
            (false, None) => Self::Ring(Box::new(WriteRing::open(files, depth, memory)?)),
            (false, Some(threads)) => Self::Threads(WriteThreads::open(files, threads, memory)?),
        })
    }

    /// Writes the ranges with the bare loop, or runs a checkpoint that writes them.
    fn run(
        &mut self,
        ranges: &[Range],
        behind: u64,
        ours: impl FnOnce() -> Result<Done>,
    ) -> Result<Done> {
        match self {
            Self::Ring(ring) => ring.run(ranges, behind)?,
            Self::Threads(threads) => threads.run(ranges, behind)?,
            Self::Ours => return ours(),
        }
        let bytes = ranges.iter().map(|range| u64::from(range.length)).sum::<u64>();
        let operations = bytes / BLOCK_SIZE as u64;
        Ok(Done { operations, bytes, ..Done::default() })
    }
}

/// Number of bare-loop threads; `None` if the bare loop uses a ring.
fn threads(method: MethodKind) -> Option<usize> {
    match method {
        MethodKind::IoUring => None,
        MethodKind::Worker => Some(WORKERS),
        _ => Some(1),
    }
}

fn names(method: MethodKind, order: Order, flush: Flush, options: CheckpointOptions) -> Names {
    let reference = match (flush.varied, threads(method)) {
        (true, _) => format!("{method}, flush_after {}", options.flush_after),
        (false, None) => format!("bare ring, depth {}", options.concurrency),
        (false, Some(1)) => "1 thread".into(),
        (false, Some(threads)) => format!("{threads} threads"),
    };
    Names { setting: flush.setting(order.name()), contender: method.to_string(), reference }
}

fn compare(
    bench: &RunOptions<'_>,
    table: &mut Table,
    blocks: &[BlockNo],
    order: Order,
    flush: Flush,
    method: MethodKind,
) -> Result<Option<Line>> {
    let as_set = CheckpointOptions::of(bench.settings);
    let options = CheckpointOptions { flush_after: flush.after, ..as_set };
    let names = names(method, order, flush, as_set);
    if !bench.wants(&names.setting, &names.contender) {
        return Ok(None);
    }
    table.turn(method, flush.direct)?;
    let (ranges, count) = (ranges(blocks, options.combine), blocks.len());
    // Either one buffer per page, as in the pool, or a few buffers that stay in the CPU cache.
    let memory = match bench.hot_reference {
        true => options.concurrency * options.combine,
        false => (count as u32).max(options.combine),
    };
    let memory = u64::from(memory) * BLOCK_SIZE as u64;
    let mut bare = Reference::new(method, flush, options, table.files(flush.direct)?, memory)?;
    let behind = if flush.direct { 0 } else { u64::from(options.flush_after) };
    let cell = RefCell::new(table);
    // Dirty the pages before the baseline runs too, so that both halves start with the same CPU
    // cache contents.
    let mut prepare = || cell.borrow_mut().dirty(blocks);
    let mut reference =
        |_: &()| bare.run(&ranges, behind, || Ok(cell.borrow_mut().checkpoint(count, as_set)?.0));
    let mut contender = |_: &()| Ok(cell.borrow_mut().checkpoint(count, options)?.0);
    let pairs = Pairs::run(bench.pairs, |_| (), &mut prepare, &mut reference, &mut contender)?;
    let rate = (!flush.varied).then_some(0.9);
    let target = Target { rate, ..Target::default() };
    Ok(Some(Line::new(names.setting, names.contender, names.reference, &pairs, target)))
}
