//! **Requested checkpoint and readers**: how much a requested checkpoint slows down concurrent
//! reads.
//!
//! The readers read random blocks of another table through the same pool, with and without a
//! checkpoint in progress. Without one, they read for as long as the previous checkpoint took, so
//! that both halves are about equally long.

use super::checkpoint_table::{Order, Table};
use super::readers::Readers;
use super::{Flush, METHODS, Names, RunOptions};
use crate::Result;
use crate::data::Data;
use crate::pairs::Pairs;
use crate::report::{Line, Target};
use std::cell::{Cell, RefCell};
use std::time::{Duration, Instant};
use trunkline_aio::MethodKind;
use trunkline_aio::sync::atomic::{AtomicBool, Ordering};
use trunkline_engine::checkpoint::CheckpointOptions;
use trunkline_format::BlockNo;

/// Duration of the first baseline run, before any checkpoint has been timed.
const FIRST: Duration = Duration::from_secs(1);

/// One line and one note per I/O method, buffered and direct.
pub(super) fn compare_all(
    bench: &RunOptions<'_>,
    table: &mut Table,
    pages: u32,
    lines: &mut Vec<Line>,
    notes: &mut Vec<String>,
) -> Result<()> {
    let options = CheckpointOptions::of(bench.settings);
    let mut wanted = Vec::new();
    for flush in Flush::each(options.flush_after) {
        for method in METHODS {
            let names = Names {
                setting: flush.setting("reads meanwhile"),
                contender: format!("{method}, checkpoint"),
                reference: "no checkpoint".into(),
            };
            if bench.wants(&names.setting, &names.contender) {
                wanted.push((flush, method, names));
            }
        }
    }
    if wanted.is_empty() {
        return Ok(());
    }
    let data = bench.data()?;
    let blocks = Order::Sequential.pages(pages);
    for (flush, method, names) in wanted {
        table.turn(method, flush.direct)?;
        let options = CheckpointOptions { flush_after: flush.after, ..options };
        let (line, note) = compare(bench, table, &data, &blocks, options, method, names)?;
        lines.push(line);
        notes.extend(note);
    }
    Ok(())
}

fn compare(
    bench: &RunOptions<'_>,
    table: &mut Table,
    data: &Data,
    blocks: &[BlockNo],
    options: CheckpointOptions,
    method: MethodKind,
    names: Names,
) -> Result<(Line, Vec<String>)> {
    let readers = RefCell::new(Readers::new(table, data, table.is_direct())?);
    let table = RefCell::new(table);
    let last = Cell::new(FIRST);
    let next = |round| readers.borrow().list(round);
    let mut prepare = || {
        table.borrow_mut().dirty(blocks)?;
        readers.borrow().evict()
    };
    let mut reference = |list: &Vec<BlockNo>| {
        let until = Instant::now() + last.get();
        readers.borrow_mut().read(list, &|| Instant::now() >= until, || Ok(()))
    };
    let mut contender = |list: &Vec<BlockNo>| {
        let over = AtomicBool::new(false);
        let mut table = table.borrow_mut();
        let meanwhile = || {
            let started = Instant::now();
            let ended = table.checkpoint(blocks.len(), options);
            over.store(true, Ordering::SeqCst);
            last.set(started.elapsed());
            ended.map(drop)
        };
        readers.borrow_mut().read(list, &|| over.load(Ordering::SeqCst), meanwhile)
    };
    let pairs = Pairs::run(bench.pairs, next, &mut prepare, &mut reference, &mut contender)?;
    table.borrow_mut().checkpoint_all()?;
    let took = last.get().as_secs_f64();
    let mut note = vec![format!("{}, {method}: the checkpoint took {took:.1} s", names.setting)];
    note.extend(readers.borrow().warmth());
    let target = Target::default();
    let line = Line::new(names.setting, names.contender, names.reference, &pairs, target);
    Ok((line, note))
}
