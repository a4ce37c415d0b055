//! **Concurrent readers**: two sessions that read random blocks of another table through the pool
//! while a checkpoint is running.
//!
//! ```text
//!   list      an order of all blocks; each session has its part of it
//!   read      one block after the other, until the other work ends
//! ```
//!
//! A session doesn't repeat a block until it has read its whole part of the list, so its reads have
//! to go to the device. After that, it starts over. We count these repeated reads separately,
//! because the page cache may already contain their blocks.

use super::checkpoint_table::Table;
use crate::data::Data;
use crate::failure::Result;
use crate::pairs::cpu_seconds;
use crate::threads::beside;
use crate::work::{Done, Work};
use std::time::Instant;
use trunkline_engine::pool::{Backend, Pool};
use trunkline_engine::storage::{Layout, Relation, Storage};
use trunkline_format::{BLOCK_SIZE, BlockNo};

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
    /// Creates the sessions, which use the table's pool. They read the same data as the read-only
    /// rows, and they open its files with direct I/O if the table does so too.
    pub(super) fn new(table: &Table, data: &'a Data) -> Result<Self> {
        let layout = Layout { checksums: true, tablespace_directory: String::new() };
        let engine = &table.engine;
        let storage = Storage::new(&data.root, layout, engine.files(), table.is_direct());
        let relation = data.relation(&storage);
        let backends = (0..READERS).map(|_| engine.session());
        let backends = backends.collect::<std::result::Result<Vec<_>, _>>()?;
        Ok(Self { backends, relation, pool: engine.pool().clone(), data, again: 0, reads: 0 })
    }

    /// All blocks in a random order, seeded by `number`.
    pub(super) fn list(&self, number: u64) -> Vec<BlockNo> {
        let (blocks, bytes) = (self.data.blocks() as usize, self.data.bytes);
        Work::random(number + 1, blocks, BLOCK_SIZE as u32, bytes).blocks().collect()
    }

    /// Evicts the data from the pool and from the page cache.
    pub(super) fn evict(&self) -> Result<()> {
        self.pool.evict_relation(&self.relation, 0);
        self.data.evict()
    }

    /// Reads blocks from the list until `enough` returns true, at least one in each session, while
    /// the calling thread runs `meanwhile`.
    pub(super) fn read(
        &mut self,
        list: &[BlockNo],
        enough: &(dyn Fn() -> bool + Sync),
        meanwhile: impl FnOnce() -> Result<()>,
    ) -> Result<Done> {
        let (cpu, started) = (cpu_seconds(), Instant::now());
        let part = list.len().div_ceil(self.backends.len());
        let relation = &self.relation;
        let parts = self.backends.iter_mut().zip(list.chunks(part));
        let read = |(backend, part)| read_part(backend, relation, part, enough);
        let micros = beside(parts, read, meanwhile)?;
        let took = (started.elapsed().as_secs_f64(), cpu_seconds() - cpu);
        let again = micros.iter().map(|micros| micros.len().saturating_sub(part) as u64);
        self.again += again.sum::<u64>();
        let done = Done::timed(micros.concat(), took);
        self.reads += done.operations;
        Ok(done)
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
        // The next line uses a new `Relation`, so we must evict the pages of this one from the
        // pool. The pages of the checkpointed table may stay.
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
        let started = Instant::now();
        drop(backend.read(relation, block)?);
        micros.push(started.elapsed().as_secs_f32() * 1e6);
        // Don't ask before the first read: on a busy machine the other work may be over by then, and
        // a session without reads has no rate.
        if enough() {
            break;
        }
    }
    backend.publish_counts();
    Ok(micros)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::options::RunOptions;

    #[test]
    fn each_session_reads_even_if_the_other_work_is_over() {
        let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).expect("a folder");
        let bench = RunOptions::small(dir.path());
        let table = Table::make(&bench, 0, 1024).expect("a table");
        let data = Data::prepare(&bench.dir, bench.bytes).expect("data");
        let mut readers = Readers::new(&table, &data).expect("sessions");
        let list = readers.list(0);
        let done = readers.read(&list, &|| true, || Ok(())).expect("reads");
        assert_eq!(done.operations, READERS as u64);
    }
}
