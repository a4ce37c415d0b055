//! **Checkpoints** of a copy of the scratch table: half of its pages are changed, and only the
//! checkpoint that writes them is timed.

use std::fs::File;
use std::io::{self, Read};

use trunkline_engine::Engine;
use trunkline_engine::checkpoint::{CheckpointOptions, checkpoint};
use trunkline_engine::pool::Backend;
use trunkline_engine::read_stream::{BlockList, ReadStream, StreamOptions};
use trunkline_engine::storage::{Relation, Storage};
use trunkline_format::page::line_pointers;
use trunkline_format::{BLOCK_SIZE, BlockNo, Fork, PageBytes};
use trunkline_sample::accounts::Accounts;

use crate::error::{MeasureError, expect_count, proceed};
use crate::sample::{Sample, Stopwatch, Work};
use crate::table::{COPY, layout, locator};
use crate::watcher::Watcher;

/// Largest copy in blocks, 512 MiB. A checkpoint writes half of it.
const BLOCKS_MAX: BlockNo = 65_536;
/// Bytes that are copied before we ask again whether to stop.
const CHUNK_BYTES: u64 = 4 << 20;
/// Offset of `abalance` in a tuple of `pgbench_accounts`.
const BALANCE_OFFSET: usize = 32;

/// The copy.
#[derive(Debug)]
pub(crate) struct CheckpointCopy {
    buffered: Relation,
    direct: Relation,
    blocks: BlockNo,
}

impl CheckpointCopy {
    /// Copies the first blocks of the table. A page's checksum depends on its block number but not
    /// on its relation, so we copy bytes. The changed pages must fit into the pool, because a page
    /// that is evicted is written too early.
    pub(crate) fn make(
        engine: &Engine,
        accounts: &Accounts,
        watcher: &dyn Watcher,
    ) -> Result<Self, MeasureError> {
        let open = |direct| Storage::for_writing(&accounts.path, layout(), engine.files(), direct);
        let relation = |direct| open(direct).relation(locator(COPY), Fork::Main);
        let blocks = accounts.blocks().min(BLOCKS_MAX).min(engine.pool().buffers() / 2).max(2);
        let copy = Self { buffered: relation(false), direct: relation(true), blocks };
        let (from, to) = (accounts.files.first(), copy.buffered.path(0));
        let fail = |error| MeasureError::file(&to, error);
        let from = from.ok_or_else(|| fail(io::ErrorKind::NotFound.into()))?;
        let source =
            File::open(&from.path).map_err(|error| MeasureError::file(&from.path, error))?;
        let mut target = File::create(&to).map_err(fail)?;
        let mut left = u64::from(blocks) * BLOCK_SIZE as u64;
        while left > 0 {
            proceed(watcher)?;
            let chunk = left.min(CHUNK_BYTES);
            let copied = io::copy(&mut (&source).take(chunk), &mut target).map_err(fail)?;
            if copied < chunk {
                break;
            }
            left -= copied;
        }
        target.sync_all().map_err(fail)?;
        let length = target.metadata().map_err(fail)?.len() / BLOCK_SIZE as u64;
        expect_count("copy of the scratch table", "blocks", length, blocks.into())?;
        Ok(copy)
    }

    /// Blocks that a checkpoint writes.
    fn changed(&self, scattered: bool) -> Vec<BlockNo> {
        let step = if scattered { 2 } else { 1 };
        (0..self.blocks / 2).map(|number| number * step).collect()
    }

    /// Changes pages and times the checkpoint.
    pub(crate) fn run(
        &self,
        engine: &Engine,
        backend: &mut Backend,
        (direct, scattered): (bool, bool),
        (concurrency, combine): (u32, u32),
        watcher: &dyn Watcher,
    ) -> Result<Sample, MeasureError> {
        let relation = if direct { &self.direct } else { &self.buffered };
        let changed = self.changed(scattered);
        let expected = changed.len() as u64;
        let options = StreamOptions { full: true, ..StreamOptions::default() };
        let mut stream = ReadStream::new(backend, relation, BlockList::new(changed), options);
        while let Some(page) = stream.next(backend)? {
            let mut bytes = backend.write_lock(page.pin)?;
            bytes.mark_dirty();
            change(&mut bytes);
            drop(bytes);
            proceed(watcher)?;
        }
        drop(stream);
        let options =
            CheckpointOptions { concurrency, combine, ..CheckpointOptions::of(engine.settings()) };
        let stopwatch = Stopwatch::start(engine, Work::Checkpoint);
        let report = checkpoint(engine.pool(), backend, options, |_| {})?;
        let sample = stopwatch.stop(engine, report.buffers, Some(report.total_time));
        expect_count("checkpoint", "pages written", report.buffers, expected)?;
        Ok(sample)
    }
}

/// Adds one to the balance of the page's first account.
fn change(page: &mut PageBytes) {
    let first = line_pointers(page).next();
    let at = first.map(|(_, item)| usize::from(item.offset) + BALANCE_OFFSET);
    if let Some(balance) = at.and_then(|at| page.get_mut(at..at + 4)) {
        let mut number = [0; 4];
        number.copy_from_slice(balance);
        balance.copy_from_slice(&i32::from_le_bytes(number).wrapping_add(1).to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trunkline_format::HeapPageBuilder;
    use trunkline_sample::push_account;

    #[test]
    fn a_change_is_one_more_in_the_first_balance() {
        let page_with = |balance| {
            let mut page = HeapPageBuilder::new(3);
            push_account(&mut page, 1, 1, balance).expect("room");
            push_account(&mut page, 2, 1, 5).expect("room");
            page.finish(false)
        };
        let mut page = page_with(77);
        change(&mut page);
        assert!(page == page_with(78));
        // A page without rows stays as it is.
        let mut empty = [0; BLOCK_SIZE];
        change(&mut empty);
        assert!(empty == [0; BLOCK_SIZE]);
    }
}
