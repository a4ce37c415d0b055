//! **Relation extension**: many blocks at a time, allocated with `posix_fallocate` or zero-filled,
//! and block by block.
//!
//! The baseline is a bare loop that extends its own file in the same way, without a pool. Every
//! run starts with an empty file. New pages are zeroed in the pool and pinned briefly, but they
//! don't become dirty. A bulk write also fills each page through a ring buffer. It ends once its
//! writes have completed; pages that are still in the ring at that point are not written.

use super::checkpoint_table::Table;
use super::{METHODS, Names, RunOptions, way};
use crate::Result;
use crate::bare::lengthen;
use crate::pairs::Pairs;
use crate::report::{Line, Report, Target};
use crate::work::Done;
use std::cell::RefCell;
use std::os::unix::fs::OpenOptionsExt;
use trunkline_aio::MethodKind;
use trunkline_engine::pool::{Backend, ExtendMethod, WriteError};
use trunkline_engine::storage::{Relation, RelationLocator};
use trunkline_format::{BLOCK_SIZE, Fork, PageBytes};
use trunkline_sample::accounts::Accounts;

/// The relation and the file that we extend. The accounts table next to them is never read.
const RELATION: u32 = Accounts::RELATION + 1;
const BARE: u32 = Accounts::RELATION + 2;
/// Blocks per extension in bulk (PostgreSQL's `MAX_BUFFERS_TO_EXTEND_BY`).
const BULK: u32 = 64;
/// Pool size in buffers.
const BUFFERS: u32 = 16_384;
/// Page contents written by a bulk write.
const FILLED: PageBytes = [7; BLOCK_SIZE];

/// One way to extend a relation, and how far.
#[derive(Debug, Clone, Copy)]
struct Kind {
    name: &'static str,
    step: u32,
    method: ExtendMethod,
    /// Maximum number of blocks added in one run.
    blocks: u32,
    /// Fill every page through a ring buffer, as a bulk write does?
    load: bool,
}

const RESERVED: Kind = Kind {
    name: "64 blocks, fallocate",
    step: BULK,
    method: ExtendMethod::PosixFallocate,
    blocks: 65_536,
    load: false,
};

fn kinds(bench: &RunOptions<'_>) -> [Kind; 4] {
    let zeros = Kind { method: ExtendMethod::WriteZeros, ..RESERVED };
    let method = bench.settings.file_extend_method();
    [
        RESERVED,
        Kind { name: "64 blocks, zeros", blocks: 32_768, ..zeros },
        Kind { name: "1 block, zeros", step: 1, blocks: 8_192, ..zeros },
        Kind { name: "a load, 64 blocks", method, load: true, ..RESERVED },
    ]
}

pub(super) fn run(bench: &RunOptions<'_>) -> Result<Report> {
    let mut table = Table::make(bench, 0, BUFFERS)?;
    let mut lines = Vec::new();
    for kind in kinds(bench) {
        for direct in [false, true] {
            for method in METHODS {
                lines.extend(compare(bench, &mut table, kind, direct, method)?);
            }
        }
    }
    let notes = vec![
        format!("a rate is that of pages; {BUFFERS} buffers"),
        "the bare loop knows no pool: nothing is evicted for it, and no page is made zero".into(),
    ];
    Ok(Report { row: "extend: new blocks at the end", notes, lines, costs: Vec::new() })
}

fn compare(
    bench: &RunOptions<'_>,
    table: &mut Table,
    kind: Kind,
    direct: bool,
    method: MethodKind,
) -> Result<Option<Line>> {
    let reserve = kind.method == ExtendMethod::PosixFallocate && !kind.load;
    let reference = if reserve { "bare posix_fallocate" } else { "bare pwrite" };
    let setting = format!("{}, {}", way(direct), kind.name);
    let names = Names { setting, contender: method.to_string(), reference: reference.into() };
    if !bench.wants(&names.setting, &names.contender) {
        return Ok(None);
    }
    table.switch(method, direct)?;
    let blocks = kind.blocks.min((bench.bytes / BLOCK_SIZE as u64) as u32).max(BULK);
    let bytes = u64::from(blocks) * BLOCK_SIZE as u64;
    let locator = |relfilenode| RelationLocator { relfilenode, ..table.relation.locator() };
    let storage = table.relation.storage().clone();
    let relation = storage.relation(locator(RELATION), Fork::Main);
    let bare = storage.relation(locator(BARE), Fork::Main);
    let path = bare.path(0);
    let table = RefCell::new(table);
    let flush_after = bench.settings.backend_flush_after();
    let mut prepare = || {
        empty(&mut table.borrow_mut(), &relation)?;
        Ok(empty(&mut table.borrow_mut(), &bare)?)
    };
    let mut reference = |_: &()| {
        let flags = if direct { libc::O_DIRECT } else { 0 };
        let file = std::fs::OpenOptions::new().write(true).custom_flags(flags).open(&path)?;
        let step = u64::from(kind.step) * BLOCK_SIZE as u64;
        lengthen(&file, bytes, step, reserve)?;
        Ok(Done { operations: u64::from(blocks), bytes, ..Done::default() })
    };
    let mut contender = |_: &()| {
        let backend = &mut table.borrow_mut().backend;
        match kind.load {
            true => load(backend, &relation, kind, blocks, flush_after)?,
            false => {
                let mut made = 0;
                while made < blocks {
                    let count = kind.step.min(blocks - made);
                    made += backend.extend(&relation, count, kind.method)?.len() as u32;
                }
            }
        }
        if relation.blocks()? != blocks {
            return Err(format!("{} blocks, expected {blocks}", relation.blocks()?).into());
        }
        Ok(Done { operations: u64::from(blocks), bytes, ..Done::default() })
    };
    let pairs = Pairs::run(bench.pairs, |_| (), &mut prepare, &mut reference, &mut contender)?;
    for relation in [&relation, &bare] {
        table.borrow_mut().backend.drop_relation(relation)?;
    }
    let target = Target::default();
    Ok(Some(Line::new(names.setting, names.contender, names.reference, &pairs, target)))
}

/// Extends the relation by `blocks` filled pages with a bulk write.
fn load(
    backend: &mut Backend,
    relation: &Relation,
    kind: Kind,
    blocks: u32,
    flush_after: u32,
) -> Result<()> {
    backend.set_flush_after(flush_after);
    let mut bulk = backend.bulk_write();
    let mut made = 0;
    while made < blocks {
        let count = kind.step.min(blocks - made);
        for pin in backend.extend_in_bulk(&mut bulk, relation, count, kind.method)? {
            let mut page = backend.write_lock(pin.page())?;
            page.mark_dirty();
            page.copy_from_slice(&FILLED);
            made += 1;
        }
    }
    Ok(bulk.finish(backend)?)
}

/// Truncates the relation to an empty file.
fn empty(table: &mut Table, relation: &Relation) -> std::result::Result<(), WriteError> {
    table.backend.drop_relation(relation)?;
    relation.create()?;
    Ok(())
}
