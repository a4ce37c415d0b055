//! A checkpoint of many changed pages against a bare loop that writes the same ranges of the same
//! files, as many at a time, and syncs the files at the end; and what it costs who reads meanwhile.
//!
//! The reference of io_uring is one thread with a ring, that of `worker` as many threads as workers,
//! that of `sync` one thread. It sorts nothing, computes no checksum and locks no page.

use super::checkpoint_reads;
use super::checkpoint_table::{Order, Table, ranges};
use super::{Bench, METHODS, Names, way};
use crate::Result;
use crate::bare::{Range, WriteRing, WriteThreads};
use crate::pairs::Pairs;
use crate::report::{Line, Report, Target};
use crate::work::Done;
use std::cell::RefCell;
use trunkline_aio::MethodKind;
use trunkline_engine::checkpoint::CheckpointOptions;
use trunkline_format::{BLOCK_SIZE, BlockNo};

/// Buffers beside those that are dirty: for what is read meanwhile.
pub(super) const BESIDE: u32 = 16_384;
/// Threads of the reference of `worker`: as many as it has by default.
const WORKERS: usize = 8;

pub(super) fn run(bench: &Bench<'_>) -> Result<Report> {
    let pages = u32::try_from(bench.dirty / BLOCK_SIZE as u64)?.max(64);
    let mut table = Table::make(bench, bench.dirty.saturating_mul(2), pages + BESIDE)?;
    let (mut lines, mut notes) = (Vec::new(), Vec::new());
    for order in [Order::Sequential, Order::Random] {
        let blocks = order.pages(pages);
        for direct in [false, true] {
            for method in METHODS {
                lines.extend(compare(bench, &mut table, &blocks, order, direct, method)?);
            }
        }
        table.verify()?;
    }
    checkpoint_reads::compare_all(bench, &mut table, pages, &mut lines, &mut notes)?;
    let megabytes = u64::from(pages) * BLOCK_SIZE as u64 / 1_000_000;
    notes.insert(0, format!("{pages} pages ({megabytes} MB) dirty; a rate is that of pages"));
    notes.insert(1, "every page of the table was sound afterwards".into());
    Ok(Report { row: "checkpoint: as fast as it can be", notes, lines, costs: Vec::new() })
}

/// What writes the ranges of a reference.
enum Bare {
    Ring(Box<WriteRing>),
    Threads(WriteThreads),
}

impl Bare {
    fn run(&mut self, ranges: &[Range], behind: u64) -> Result<()> {
        match self {
            Self::Ring(ring) => ring.run(ranges, behind)?,
            Self::Threads(threads) => threads.run(ranges, behind)?,
        }
        Ok(())
    }
}

fn compare(
    bench: &Bench<'_>,
    table: &mut Table,
    blocks: &[BlockNo],
    order: Order,
    direct: bool,
    method: MethodKind,
) -> Result<Option<Line>> {
    let options = CheckpointOptions::default();
    let (depth, length) = (options.concurrency as usize, options.combine * BLOCK_SIZE as u32);
    let (reference, threads) = match method {
        MethodKind::IoUring => (format!("bare ring, depth {depth}"), None),
        MethodKind::Worker => (format!("{WORKERS} threads"), Some(WORKERS)),
        _ => ("1 thread".into(), Some(1)),
    };
    let setting = format!("{}, {}", way(direct), order.name());
    let names = Names { setting, contender: method.to_string(), reference };
    if !bench.wants(&names.setting, &names.contender) {
        return Ok(None);
    }
    table.switch(method, direct)?;
    let files = table.files(direct)?;
    let mut bare = match threads {
        None => Bare::Ring(Box::new(WriteRing::open(files, depth, length)?)),
        Some(threads) => Bare::Threads(WriteThreads::open(files, threads, length)?),
    };
    let (ranges, count) = (ranges(blocks, options.combine), blocks.len());
    let bytes = count as u64 * BLOCK_SIZE as u64;
    let behind = if direct { 0 } else { u64::from(options.flush_after) };
    let cell = RefCell::new(&mut *table);
    // Also before the reference, so that both find the same memory in the caches.
    let mut prepare = || cell.borrow_mut().dirty(blocks);
    let mut reference = |_: &()| {
        bare.run(&ranges, behind)?;
        Ok(Done { operations: count as u64, bytes, ..Done::default() })
    };
    let mut contender = |_: &()| Ok(cell.borrow_mut().checkpoint(count)?.0);
    let pairs = Pairs::run(bench.pairs, |_| (), &mut prepare, &mut reference, &mut contender)?;
    let target = Target { rate: Some(0.9), ..Target::default() };
    let line = Line::new(names.setting, names.contender, names.reference, &pairs, target);
    // What the reference wrote last is no page.
    table.dirty(blocks)?;
    table.checkpoint(count)?;
    Ok(Some(line))
}
