//! The table that the rows of writes change: accounts made for them below the user's folder and
//! removed afterwards, and a pool that one instance keeps through all methods.
//!
//! A change swaps the balances of a page's first two accounts, so that every page stays one that
//! PostgreSQL could have written, and the table's sum what it was.

use super::Bench;
use crate::Result;
use crate::bare::{Files, Range};
use crate::data::SEGMENT;
use crate::handles::Setup;
use crate::work::{Done, Work};
use std::path::PathBuf;
use std::time::Duration;
use trunkline_aio::sync::Arc;
use trunkline_aio::{Aio, Builder, Counters, MethodKind, Operation};
use trunkline_engine::checkpoint::{CheckpointOptions, CheckpointReport, checkpoint};
use trunkline_engine::pool::{Backend, BackendType, Pool};
use trunkline_engine::read_stream::{BlockList, ReadStream, StreamOptions};
use trunkline_engine::sample::accounts::{self, Accounts};
use trunkline_engine::storage::{
    FileTable, KernelFiles, Layout, Relation, RelationLocator, Storage,
};
use trunkline_format::page::line_pointers;
use trunkline_format::{BLOCK_SIZE, BlockNo, CheckOptions, Fork, PageBytes, Verdict, check_page};

/// The folder below the one that the user names.
const FOLDER: &str = "trunkline-bench-writes";
/// Memory for making the table.
const MAKING: usize = 8 << 20;
/// Where `abalance` is in a tuple.
const BALANCE: usize = 32;

/// See the module.
pub(super) struct Table {
    // Before the instance: sessions submit what they staged.
    pub(super) backend: Backend,
    pub(super) relation: Relation,
    pub(super) pool: Pool,
    pub(super) aio: Aio,
    accounts: Accounts,
    folder: PathBuf,
}

impl Table {
    /// Makes a table of at least `bytes`, and a pool of so many buffers.
    pub(super) fn make(bench: &Bench<'_>, bytes: u64, buffers: u32) -> Result<Self> {
        let folder = bench.dir.join(FOLDER);
        let maker = Builder::new().method(MethodKind::IoUring).region_bytes(MAKING).start()?;
        let scale = accounts::scale_within(bytes) + 1;
        eprintln!("making accounts of {} MB", accounts::bytes(scale) / 1_000_000);
        let accounts = accounts::create(&maker, &folder, scale, &mut |_| true)?;
        let setup = Setup::new(MethodKind::IoUring, false, 1, BLOCK_SIZE as u32);
        let aio = setup.start_with(buffers as usize * BLOCK_SIZE)?;
        let pool = Pool::new(&aio, buffers)?;
        let backend = pool.backend(BackendType::Client)?;
        let relation = relation(&aio, &accounts, false);
        Ok(Self { backend, relation, pool, aio, accounts, folder })
    }

    /// From now on by this method, and so.
    pub(super) fn switch(&mut self, method: MethodKind, direct: bool) -> Result<()> {
        let used = self.aio.set_method(method).used;
        if used != method {
            eprintln!("{used} serves instead of {method}");
        }
        let left = self.pool.evict_all().skipped;
        if left > 0 {
            return Err(format!("{left} buffers are in use or dirty").into());
        }
        self.accounts.evict()?;
        self.close();
        self.relation = relation(&self.aio, &self.accounts, direct);
        Ok(())
    }

    /// Closes the files: some file systems keep those that are open in the folder, under other names,
    /// when they are removed.
    fn close(&self) {
        self.relation.storage().forget(self.relation.locator());
    }

    pub(super) fn blocks(&self) -> BlockNo {
        self.accounts.blocks()
    }

    /// The segments, for a reference to write.
    pub(super) fn files(&self, direct: bool) -> Result<Files> {
        let paths: Vec<PathBuf> =
            self.accounts.files.iter().map(|file| file.path.clone()).collect();
        Ok(Files::open_for_writing(&paths, SEGMENT, direct)?)
    }

    /// Changes each of the pages.
    pub(super) fn dirty(&mut self, blocks: &[BlockNo]) -> Result<()> {
        let source = BlockList::new(blocks.to_vec());
        let options = StreamOptions { concurrency: 64, full: true, ..StreamOptions::default() };
        let mut stream = ReadStream::new(&self.backend, &self.relation, source, options);
        while let Some(page) = stream.next(&mut self.backend)? {
            let mut bytes = self.backend.write_lock(page.pin)?;
            change(&mut bytes);
            bytes.mark_dirty();
        }
        Ok(())
    }

    /// A checkpoint of exactly so many pages.
    pub(super) fn checkpoint(&mut self, pages: usize) -> Result<(Done, CheckpointReport)> {
        let before = self.aio.counters();
        let options = CheckpointOptions::default();
        let report = checkpoint(&self.pool, &mut self.backend, options, |_| {})?;
        if report.buffers != pages as u64 {
            return Err(format!("{report}; expected {pages} buffers").into());
        }
        let after = self.aio.counters();
        let in_flight = report.writes.in_flight_sum as f64 / report.writes.writes.max(1) as f64;
        let done = Done {
            operations: report.buffers,
            bytes: report.writes.bytes(),
            in_flight: Some(in_flight),
            at_storage: Some(at_storage(&before, &after, report.write_time)),
            took: None,
        };
        Ok((done, report))
    }

    /// Every page on disk is a sound one. Call it when nothing is dirty, and after a checkpoint has
    /// followed on what a reference wrote.
    pub(super) fn verify(&self) -> Result<()> {
        let options = CheckOptions { checksums: true, fork: Fork::Main };
        let mut block = 0;
        self.accounts.evict()?;
        for file in &self.accounts.files {
            let mut reader =
                std::io::BufReader::with_capacity(1 << 20, std::fs::File::open(&file.path)?);
            let mut page: Box<PageBytes> = Box::new([0; BLOCK_SIZE]);
            for _ in 0..file.bytes / BLOCK_SIZE as u64 {
                std::io::Read::read_exact(&mut reader, &mut page[..])?;
                if check_page(&page, block, &options) != Verdict::Good {
                    return Err(format!("block {block} is not sound after a checkpoint").into());
                }
                block += 1;
            }
        }
        if block != self.blocks() {
            return Err(format!("{block} blocks, expected {}", self.blocks()).into());
        }
        Ok(())
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        self.close();
        if let Err(error) = accounts::remove(&self.folder) {
            eprintln!("{} stays: {error}", self.folder.display());
        }
    }
}

fn relation(aio: &Aio, accounts: &Accounts, direct: bool) -> Relation {
    let layout = Layout { checksums: true, tablespace_directory: String::new() };
    let files = Arc::new(FileTable::new(64));
    let system = Arc::new(KernelFiles::new(aio));
    let storage = Storage::for_writing(&accounts.path, layout, files, system, direct);
    let locator = RelationLocator {
        tablespace: Accounts::TABLESPACE,
        database: Accounts::DATABASE,
        relfilenode: Accounts::RELATION,
    };
    storage.relation(locator, Fork::Main)
}

/// Swaps two balances.
pub(super) fn change(page: &mut PageBytes) {
    let mut tuples = line_pointers(page).map(|(_, item)| usize::from(item.offset) + BALANCE);
    let (Some(first), Some(second)) = (tuples.next(), tuples.next()) else { return };
    drop(tuples);
    for at in 0..4 {
        page.swap(first + at, second + at);
    }
}

/// The mean number of writes that the storage had at any time.
fn at_storage(before: &Counters, after: &Counters, elapsed: Duration) -> f64 {
    let time = |counters: &Counters| counters.operation(Operation::Writev).device_time;
    time(after).saturating_sub(time(before)).as_secs_f64() / elapsed.as_secs_f64().max(1e-9)
}

/// Which pages are changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// The first so many, one after the other.
    Sequential,
    /// Every second one, in random order: no two are neighbours.
    Random,
}

impl Order {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Sequential => "sequential",
            Self::Random => "random",
        }
    }

    /// So many pages of a table that has twice as many.
    pub(super) fn pages(self, count: u32) -> Vec<BlockNo> {
        match self {
            Self::Sequential => (0..count).collect(),
            Self::Random => {
                let bytes = u64::from(count) * BLOCK_SIZE as u64;
                let places = Work::random(1, count as usize, BLOCK_SIZE as u32, bytes).offsets;
                places.iter().map(|at| (at / BLOCK_SIZE as u64) as BlockNo * 2).collect()
            }
        }
    }
}

/// The pages as sorted ranges of neighbours, each of `most` blocks at most and within a segment.
pub(super) fn ranges(blocks: &[BlockNo], most: u32) -> Vec<Range> {
    let mut blocks = blocks.to_vec();
    blocks.sort_unstable();
    let (block_bytes, mut ranges) = (BLOCK_SIZE as u32, Vec::<Range>::new());
    for block in blocks {
        let at = u64::from(block) * u64::from(block_bytes);
        let (file, offset) = ((at / SEGMENT) as u32, at % SEGMENT);
        match ranges.last_mut() {
            Some(last)
                if last.file == file
                    && last.offset + u64::from(last.length) == offset
                    && last.length < most * block_bytes =>
            {
                last.length += block_bytes;
            }
            _ => ranges.push(Range { file, offset, length: block_bytes }),
        }
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_neighbours() {
        let found = ranges(&[7, 5, 4, 6, 8, 10, 131_071, 131_072], 4);
        let range = |file, block: u64, blocks: u32| Range {
            file,
            offset: block * 8192,
            length: blocks * 8192,
        };
        let expected =
            [range(0, 4, 4), range(0, 8, 1), range(0, 10, 1), range(0, 131_071, 1), range(1, 0, 1)];
        assert_eq!(found, expected);
        assert_eq!(ranges(&Order::Random.pages(100), 16).len(), 100);
        assert_eq!(ranges(&Order::Sequential.pages(100), 16).len(), 7);
    }
}
