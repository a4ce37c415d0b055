//! Relation extension: many blocks at a time, reserved or zeroed, and one by one.
//!
//! The reference is a bare loop that does the same to its own file and has no pool. Each run begins with an empty
//! file. New pages are zeroed in the pool, pinned for a moment, and leave nothing to write. A bulk write fills each
//! page too, uses a ring buffer, and ends when its writes are complete; pages still in the ring are not written.

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

/// The relation and the file that are made longer; the table beside them is never read.
const RELATION: u32 = Accounts::RELATION + 1;
const BARE: u32 = Accounts::RELATION + 2;
/// Blocks at a time, in bulk (PostgreSQL's `MAX_BUFFERS_TO_EXTEND_BY`).
const BULK: u32 = 64;
/// Buffers of the pool.
const BUFFERS: u32 = 16_384;
/// What a load puts into its pages.
const FILLED: PageBytes = [7; BLOCK_SIZE];

/// How a relation is made longer.
#[derive(Debug, Clone, Copy)]
struct Kind {
    name: &'static str,
    step: u32,
    method: ExtendMethod,
    /// Blocks of one run at most.
    blocks: u32,
    /// Every page is filled, in a ring.
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

/// Adds `blocks` filled pages by a bulk write.
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

/// Makes an empty file of it.
fn empty(table: &mut Table, relation: &Relation) -> std::result::Result<(), WriteError> {
    table.backend.drop_relation(relation)?;
    relation.create()?;
    Ok(())
}
