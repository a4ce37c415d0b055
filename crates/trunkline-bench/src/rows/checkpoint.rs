//! **Checkpoint** of many dirty pages. We measure how it compares with a bare loop that writes the
//! same ranges of the same files, and how much it slows down concurrent readers.
//!
//! The bare loop keeps the same number of writes in flight and also fsyncs the files at the end,
//! but it sorts nothing, computes no checksums and locks no pages. For `io_uring`, the baseline is
//! one thread with a ring. For `worker`, it's as many `pwrite` threads as there are workers, and
//! for `sync` a single `pwrite` thread. Its memory is as large as the data it writes, unless
//! `--hot-reference` makes it reuse a few buffers. Other lines compare checkpoints with and
//! without writeback (`checkpoint_flush_after`).
//!
//! The readers read random blocks of another table through the same pool, either while a checkpoint
//! is in progress or on their own. In the latter case, they read for as long as the previous
//! checkpoint took, so that both halves take about the same time.

use super::checkpoint_table::{Order, Table, ranges};
use super::comparison::{Body, Comparison, Experiment, Measured, Row, SetUp, Stage};
use super::options::{Flush, RunOptions};
use super::readers::Readers;
use crate::bare::{Range, WriteRing, WriteThreads};
use crate::failure::Result;
use crate::pairs::{Half, measure};
use crate::report::{Names, Target};
use crate::work::Done;
use std::time::{Duration, Instant};
use trunkline_aio::MethodKind;
use trunkline_aio::facade::atomic::{AtomicBool, Ordering};
use trunkline_engine::checkpoint::CheckpointOptions;
use trunkline_format::BLOCK_SIZE;

/// Buffers for the concurrent readers, in addition to those for the dirty pages.
const BESIDE: u32 = 16_384;
/// Number of baseline threads for `worker`: the default number of workers.
const WORKERS: usize = 8;
/// How long readers read alone before any checkpoint has been timed.
const FIRST: Duration = Duration::from_secs(1);

pub(super) const CHECKPOINT: Row = Row {
    name: "checkpoint",
    measures: "Checkpoints of many dirty pages, and their cost for concurrent readers",
    question: "How fast is a checkpoint, and what does it cost concurrent readers?",
    about: "The baseline of the writes is a bare ring, or as many bare threads, that write the \
            same ranges and fsync the files. The baseline of the reads is the same readers \
            without a checkpoint.",
    settings: &["checkpoint_flush_after", "io_max_combine_limit"],
    set_up: SetUp::Table(table_size),
    body: Body::Lines(&[
        |stage| Ok(writes(stage, Order::Sequential)),
        |stage| Ok(writes(stage, Order::Random)),
        |stage| {
            let line = |(flush, method)| {
                let setting = Flush::setting(flush, "reads meanwhile");
                Comparison::new(
                    Names::new(setting, format!("{method}, checkpoint"), "no checkpoint"),
                    Target::NONE,
                    ReadsMeanwhile { flush, method },
                )
            };
            Ok(Flush::with_methods(options(stage.bench).flush_after).map(line).collect())
        },
    ]),
    notes: |stage| {
        Ok(vec![
            format!("{}; a rate is that of pages", dirty_pages(stage.bench)?),
            "every page of the table was sound afterwards".into(),
        ])
    },
    ..Row::COLD
};

/// Returns the size of the table in bytes and the number of buffers. The table is twice as large as
/// the data that we make dirty, and the pool has room for the dirty pages as well as for concurrent
/// readers.
pub(super) fn table_size(bench: &RunOptions) -> Result<(u64, u32)> {
    Ok((bench.dirty.saturating_mul(2), pages(bench)? + BESIDE))
}

/// Number of pages that are dirty at the start of a checkpoint.
pub(super) fn pages(bench: &RunOptions) -> Result<u32> {
    Ok(u32::try_from(bench.dirty / BLOCK_SIZE as u64)?.max(64))
}

/// The same, for the report.
pub(super) fn dirty_pages(bench: &RunOptions) -> Result<String> {
    let pages = pages(bench)?;
    let megabytes = u64::from(pages) * BLOCK_SIZE as u64 / 1_000_000;
    Ok(format!("{pages} pages ({megabytes} MB) dirty"))
}

fn options(bench: &RunOptions) -> CheckpointOptions {
    CheckpointOptions::of(&bench.settings)
}

fn writes(stage: &Stage<'_>, order: Order) -> Vec<Comparison> {
    let as_set = options(stage.bench);
    let line = |(flush, method): (Flush, MethodKind)| {
        let reference = match (flush.varied, threads(method)) {
            (true, _) => format!("{method}, flush_after {}", as_set.flush_after),
            (false, None) => format!("bare ring, depth {}", as_set.concurrency),
            (false, Some(1)) => "1 thread".into(),
            (false, Some(threads)) => format!("{threads} threads"),
        };
        Comparison::new(
            Names::new(flush.setting(order.name()), method, reference),
            if flush.varied { Target::NONE } else { Target::rate(0.9) },
            Writes { order, flush, method },
        )
    };
    Flush::with_methods(as_set.flush_after).map(line).collect()
}

/// Number of bare-loop threads; `None` if the bare loop uses a ring.
fn threads(method: MethodKind) -> Option<usize> {
    match method {
        MethodKind::IoUring => None,
        MethodKind::Worker => Some(WORKERS),
        _ => Some(1),
    }
}

/// The baseline of a line.
enum Reference {
    Ring(Box<WriteRing>),
    Threads(WriteThreads),
    /// A checkpoint with the user's writeback setting.
    Ours,
}

impl Reference {
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

/// Compares a checkpoint that writes pages in this order with a bare loop. If the line varies the
/// writeback setting, we compare it with a checkpoint that uses the user's own setting instead.
struct Writes {
    order: Order,
    flush: Flush,
    method: MethodKind,
}

impl Writes {
    fn reference(&self, table: &mut Table, stage: &Stage<'_>, pages: usize) -> Result<Reference> {
        if self.flush.varied {
            return Ok(Reference::Ours);
        }
        let CheckpointOptions { concurrency, combine, .. } = options(stage.bench);
        // Either one buffer per page, as in the pool, or a few buffers that stay in the CPU cache.
        let memory = match stage.bench.hot_reference {
            true => concurrency * combine,
            false => (pages as u32).max(combine),
        };
        let memory = u64::from(memory) * BLOCK_SIZE as u64;
        let files = table.files(self.flush.direct)?;
        Ok(match threads(self.method) {
            None => {
                Reference::Ring(Box::new(WriteRing::open(files, concurrency as usize, memory)?))
            }
            Some(threads) => Reference::Threads(WriteThreads::open(files, threads, memory)?),
        })
    }
}

impl Experiment for Writes {
    fn measure(&self, stage: &Stage<'_>, _: &Names) -> Result<Measured> {
        let as_set = options(stage.bench);
        let options = CheckpointOptions { flush_after: self.flush.after, ..as_set };
        let blocks = self.order.pages(pages(stage.bench)?);
        let table = &mut *stage.table()?;
        table.turn(self.method, self.flush.direct)?;
        let mut reference = self.reference(table, stage, blocks.len())?;
        let ranges = ranges(&blocks, options.combine);
        let behind = if self.flush.direct { 0 } else { u64::from(options.flush_after) };
        let measured = stage.pairs(|half, _| {
            // Dirty the pages before the baseline runs too, so that both halves start with the same
            // CPU cache contents.
            table.dirty(&blocks)?;
            measure(|| match half {
                Half::Reference => {
                    reference.run(&ranges, behind, || table.checkpoint(blocks.len(), as_set))
                }
                Half::Contender => table.checkpoint(blocks.len(), options),
            })
        })?;
        if !self.flush.varied {
            // The bare loop left arbitrary bytes in the files, so write valid pages over them.
            table.dirty(&blocks)?;
            table.checkpoint(blocks.len(), options)?;
        }
        Ok(measured)
    }
}

/// Readers with and without a requested checkpoint.
struct ReadsMeanwhile {
    flush: Flush,
    method: MethodKind,
}

impl Experiment for ReadsMeanwhile {
    fn measure(&self, stage: &Stage<'_>, names: &Names) -> Result<Measured> {
        let blocks = Order::Sequential.pages(pages(stage.bench)?);
        let options = CheckpointOptions { flush_after: self.flush.after, ..options(stage.bench) };
        let table = &mut *stage.table()?;
        table.turn(self.method, self.flush.direct)?;
        let mut readers = Readers::new(table, stage.data()?)?;
        let mut last = FIRST;
        let mut measured = stage.pairs(|half, round| {
            let list = readers.list(round);
            table.dirty(&blocks)?;
            readers.evict()?;
            measure(|| match half {
                Half::Reference => {
                    let until = Instant::now() + last;
                    readers.read(&list, &|| Instant::now() >= until, || Ok(()))
                }
                Half::Contender => {
                    let over = AtomicBool::new(false);
                    readers.read(&list, &|| over.load(Ordering::SeqCst), || {
                        let started = Instant::now();
                        let ended = table.checkpoint(blocks.len(), options);
                        over.store(true, Ordering::SeqCst);
                        last = started.elapsed();
                        ended.map(drop)
                    })
                }
            })
        })?;
        table.checkpoint_all()?;
        let (setting, method, took) = (&names.setting, self.method, last.as_secs_f64());
        measured.notes.push(format!("{setting}, {method}: the checkpoint took {took:.1} s"));
        measured.notes.extend(readers.warmth());
        Ok(measured)
    }
}
