//! **Relation extension**: many blocks at a time, allocated with `posix_fallocate` or zero-filled,
//! and block by block.
//!
//! The baseline is a bare loop that extends its own file in the same way, but without a pool. Every
//! run starts with an empty file. New pages are zeroed in the pool and pinned briefly, but they
//! don't become dirty. A bulk write also fills each page, using a ring buffer. We end the run when
//! the writes that it has started are complete, without writing the pages that are still in the
//! ring.

use super::checkpoint_table::Table;
use super::comparison::{Body, Comparison, Experiment, Measured, Row, SetUp, Stage};
use super::options::{METHODS, way};
use crate::bare::lengthen;
use crate::failure::Result;
use crate::pairs::{Half, measure};
use crate::report::{Names, Target};
use crate::work::Done;
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

fn kinds(load: ExtendMethod) -> [Kind; 4] {
    let zeros = Kind { method: ExtendMethod::WriteZeros, ..RESERVED };
    [
        RESERVED,
        Kind { name: "64 blocks, zeros", blocks: 32_768, ..zeros },
        Kind { name: "1 block, zeros", step: 1, blocks: 8_192, ..zeros },
        Kind { name: "a load, 64 blocks", method: load, load: true, ..RESERVED },
    ]
}

impl Kind {
    /// Does the bare loop use `posix_fallocate`? It writes the pages instead if we write them too.
    fn reserves(&self) -> bool {
        self.method == ExtendMethod::PosixFallocate && !self.load
    }
}

pub(super) const EXTEND: Row = Row {
    name: "extend",
    measures: "Relation extension",
    question: "What does extending a relation cost?",
    about: "The baseline only makes the file longer. It has no locks, takes no buffers and zeroes \
            no pages.",
    settings: &["file_extend_method", "backend_flush_after"],
    set_up: SetUp::Table(|_| Ok((0, BUFFERS))),
    body: Body::Lines(&[|stage| {
        let mut lines = Vec::new();
        for kind in kinds(stage.bench.settings.file_extend_method()) {
            let reference = if kind.reserves() { "bare posix_fallocate" } else { "bare pwrite" };
            for direct in [false, true] {
                lines.extend(METHODS.map(|method| {
                    let setting = format!("{}, {}", way(direct), kind.name);
                    let names = Names::new(setting, method, reference);
                    Comparison::new(names, Target::NONE, Extend { kind, direct, method })
                }));
            }
        }
        Ok(lines)
    }]),
    notes: |_| {
        Ok(vec![
            format!("a rate is that of pages; {BUFFERS} buffers"),
            "the bare loop knows no pool: nothing is evicted for it, and no page is made zero"
                .into(),
        ])
    },
    ..Row::COLD
};

/// An extension, against a bare loop that extends its own file.
struct Extend {
    kind: Kind,
    direct: bool,
    method: MethodKind,
}

impl Experiment for Extend {
    fn measure(&self, stage: &Stage<'_>, _: &Names) -> Result<Measured> {
        let Self { kind, direct, method } = *self;
        let table = &mut *stage.table()?;
        table.switch(method, direct)?;
        let blocks = kind.blocks.min((stage.bench.bytes / BLOCK_SIZE as u64) as u32).max(BULK);
        let bytes = u64::from(blocks) * BLOCK_SIZE as u64;
        let storage = table.relation.storage().clone();
        let [relation, bare] = [RELATION, BARE].map(|relfilenode| {
            let locator = RelationLocator { relfilenode, ..table.relation.locator() };
            storage.relation(locator, Fork::Main)
        });
        let flush_after = stage.bench.settings.backend_flush_after();
        let measured = stage.pairs(|half, _| {
            empty(table, &relation)?;
            empty(table, &bare)?;
            measure(|| {
                match half {
                    Half::Reference => {
                        let flags = if direct { libc::O_DIRECT } else { 0 };
                        let mut options = std::fs::OpenOptions::new();
                        let file = options.write(true).custom_flags(flags).open(bare.path(0))?;
                        let step = u64::from(kind.step) * BLOCK_SIZE as u64;
                        lengthen(&file, bytes, step, kind.reserves())?;
                    }
                    Half::Contender => {
                        extend(&mut table.backend, &relation, kind, blocks, flush_after)?;
                    }
                }
                Ok(Done { operations: u64::from(blocks), bytes, ..Done::default() })
            })
        })?;
        table.backend.drop_relation(&relation)?;
        table.backend.drop_relation(&bare)?;
        Ok(measured)
    }
}

/// Extends the relation by `blocks` pages, and fails unless it then has as many.
fn extend(
    backend: &mut Backend,
    relation: &Relation,
    kind: Kind,
    blocks: u32,
    flush_after: u32,
) -> Result<()> {
    let mut bulk = kind.load.then(|| {
        backend.set_flush_after(flush_after);
        backend.bulk_write()
    });
    let mut made = 0;
    while made < blocks {
        let count = kind.step.min(blocks - made);
        let Some(bulk) = &mut bulk else {
            made += backend.extend(relation, count, kind.method)?.len() as u32;
            continue;
        };
        for pin in backend.extend_in_bulk(bulk, relation, count, kind.method)? {
            let mut page = backend.write_lock(pin.page())?;
            page.mark_dirty();
            page.copy_from_slice(&FILLED);
            made += 1;
        }
    }
    if let Some(bulk) = bulk {
        bulk.finish(backend)?;
    }
    match relation.blocks()? {
        length if length == blocks => Ok(()),
        length => Err(format!("{length} blocks, expected {blocks}").into()),
    }
}

/// Truncates the relation to an empty file.
fn empty(table: &mut Table, relation: &Relation) -> std::result::Result<(), WriteError> {
    table.backend.drop_relation(relation)?;
    relation.create()?;
    Ok(())
}
