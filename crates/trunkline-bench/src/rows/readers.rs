//! **Concurrent readers**: two sessions that read random blocks of another table through the pool
//! while a checkpoint is running.
//!
//! ```text
//!   list      an order of all blocks; each session has its part of it
//!   read      one block after the other, until the other work ends
//! ```
//!
//! No block repeats before every block has been read once, so that every read must go to the
//! device. A session that reaches the end of its part starts over. These repeated reads are
//! tracked separately, because the page cache may already contain their blocks.

use super::checkpoint_table::Table;
use super::random_list;
use crate::Result;
use crate::data::{Data, RELATION};
use crate::pairs::cpu_seconds;
use crate::statistics::Latency;
use crate::work::Done;
use std::time::Instant;
use trunkline_engine::pool::{Backend, BackendType, Pool};
use trunkline_engine::storage::{
    DEFAULT_TABLESPACE, Layout, OpenFiles, Relation, RelationLocator, Storage,
};
use trunkline_format::{BLOCK_SIZE, BlockNo, Fork, Oid};

/// Number of reading sessions.
pub(super) const READERS: usize = 2;

/// The sessions, and the relation they read.
pub(super) struct Readers<'a> {
    backends: Vec<Backend>,
    relation: Relation,
    pool: Pool,
    data: &'a Data,
    /// Number of repeated reads: the block had already been read in the same run. Summed over all
    /// runs.
    again: u64,
    reads: u64,
}

impl<'a> Readers<'a> {
    /// Creates the sessions in `table`'s pool. They read `data`, which the read-only rows use as
    /// well.
    pub(super) fn new(table: &Table, data: &'a Data, direct: bool) -> Result<Self> {
        let layout = Layout { checksums: true, tablespace_directory: String::new() };
        let files = OpenFiles::kernel(&table.aio, 64);
        let storage = Storage::new(&data.root, layout, &files, direct);
        let (tablespace, database) = (DEFAULT_TABLESPACE, Oid(5));
        let locator = RelationLocator { tablespace, database, relfilenode: RELATION };
        let relation = storage.relation(locator, Fork::Main);
        let backends = (0..READERS).map(|_| table.pool.backend(BackendType::Client));
        let backends = backends.collect::<std::result::Result<Vec<_>, _>>()?;
        Ok(Self { backends, relation, pool: table.pool.clone(), data, again: 0, reads: 0 })
    }

    /// All blocks in a random order, seeded by `number`.
    pub(super) fn list(&self, number: u64) -> Vec<BlockNo> {
        let work = random_list(self.data, number, self.data.blocks() as usize);
        work.offsets.iter().map(|at| (at / BLOCK_SIZE as u64) as BlockNo).collect()
    }

    /// Evicts the data from the pool and from the page cache.
    pub(super) fn evict(&self) -> Result<()> {
        self.pool.evict_relation(&self.relation, 0);
        self.data.evict()
    }

    /// Reads blocks from the list until `enough` returns true, while the calling thread runs
    /// `meanwhile`.
    pub(super) fn read(
        &mut self,
        list: &[BlockNo],
        enough: &(dyn Fn() -> bool + Sync),
        meanwhile: impl FnOnce() -> Result<()>,
    ) -> Result<Done> {
        let (cpu, started) = (cpu_seconds(), Instant::now());
        let part = list.len().div_ceil(self.backends.len());
        let relation = &self.relation;
        let mut again = 0;
        let (micros, elapsed) = std::thread::scope(|scope| {
            let parts = self.backends.iter_mut().zip(list.chunks(part));
            let start =
                |(backend, part)| scope.spawn(move || read_part(backend, relation, part, enough));
            let threads: Vec<_> = parts.map(start).collect();
            let done = meanwhile();
            let mut all = Vec::new();
            for thread in threads {
                let micros = thread.join().map_err(|_| "a thread panicked")??;
                again += micros.len().saturating_sub(part) as u64;
                all.extend(micros);
            }
            done?;
            Ok::<_, crate::Failure>((all, started.elapsed().as_secs_f64()))
        })?;
        let operations = micros.len() as u64;
        self.again += again;
        self.reads += operations;
        let took = Some((elapsed, cpu_seconds() - cpu));
        let bytes = operations * BLOCK_SIZE as u64;
        let latency = Latency::of(micros);
        Ok(Done { operations, bytes, took, latency, ..Done::default() })
    }

    /// A note about repeated reads, which may have been served from the page cache; `None` if
    /// there were none.
    pub(super) fn warmth(&self) -> Option<String> {
        let part = 100.0 * self.again as f64 / self.reads.max(1) as f64;
        let text =
            || format!("{part:.0} % of the reads were of blocks read before: --size is small");
        (self.again > 0).then(text)
    }
}

impl Drop for Readers<'_> {
    fn drop(&mut self) {
        // The next line uses a new `Relation`, so this relation's pages must leave the pool. The
        // checkpointed table's pages may stay.
        self.pool.evict_relation(&self.relation, 0);
    }
}

fn read_part(
    backend: &mut Backend,
    relation: &Relation,
    blocks: &[BlockNo],
    enough: &dyn Fn() -> bool,
) -> Result<Vec<f32>> {
    let mut micros = Vec::with_capacity(blocks.len());
    for &block in blocks.iter().cycle() {
        if enough() {
            break;
        }
        let started = Instant::now();
        drop(backend.read(relation, block)?);
        micros.push(started.elapsed().as_secs_f32() * 1e6);
    }
    backend.publish_counts();
    Ok(micros)
}
