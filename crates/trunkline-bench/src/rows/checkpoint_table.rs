//! **Test table** for the rows that write: a pgbench accounts table below `--dir`, and a pool over
//! it.
//!
//! The table is removed after the run unless the user passes `--keep`. All I/O methods share one
//! instance and its pool. A table from an earlier run is reused only if it has the right size and
//! every page is valid. We must check that, because a killed run leaves behind whatever bytes a
//! bare loop wrote. The engine verifies it with direct I/O where possible, so that it reads the
//! disk and not the page cache.
//!
//! A modification swaps the balances of the first two accounts on a page. The result is still a
//! page that PostgreSQL could have written, and the sum over the whole table stays the same.

use super::options::{BLOCK, RunOptions};
use super::verify::verify_all;
use crate::bare::{Access, Files, Range};
use crate::data::SEGMENT;
use crate::failure::Result;
use crate::handles::{Setup, warn_of_fallback};
use crate::pooled::start_engine;
use crate::work::{Done, Work};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use trunkline_aio::{Aio, Builder, Counters, MethodKind, Operation};
use trunkline_engine::Engine;
use trunkline_engine::checkpoint::{CheckpointOptions, checkpoint};
use trunkline_engine::file_scan::ReadOptions;
use trunkline_engine::pool::Backend;
use trunkline_engine::read_stream::{BlockList, ReadStream, StreamOptions};
use trunkline_engine::storage::{Layout, Relation, RelationLocator, Storage};
use trunkline_format::page::line_pointers;
use trunkline_format::{BLOCK_SIZE, BlockNo, Fork, PageBytes};
use trunkline_sample::accounts::{self, Accounts};

/// Subdirectory of `--dir` that holds the table.
const FOLDER: &str = "trunkline-bench-writes";
/// I/O memory for creating and verifying the table, in bytes.
const MAKING: usize = 8 << 20;
/// For verification: the number of reads in flight, and blocks per read.
const VERIFYING: (u32, u32) = (16, 32);
/// Byte offset of `abalance` in a tuple.
const BALANCE: usize = 32;

/// The table, its pool, and one session.
pub(super) struct Table {
    pub(super) backend: Backend,
    pub(super) relation: Relation,
    pub(super) engine: Engine,
    accounts: Accounts,
    folder: PathBuf,
    /// Are the files open for direct I/O?
    direct: bool,
    /// Keep the files at the end, provided they're valid?
    keep: bool,
    /// True if nothing has been written since the last successful verification.
    sound: bool,
}

impl Table {
    /// Creates or reuses a table of at least `bytes`, and creates a pool of `buffers`.
    pub(super) fn make(bench: &RunOptions, bytes: u64, buffers: u32) -> Result<Self> {
        let folder = bench.dir.join(FOLDER);
        let maker = maker()?;
        let scale = accounts::scale_within(bytes) + 1;
        let accounts = made(&maker, &folder, scale)?;
        let setup = Setup::new(MethodKind::IoUring, false, 1, BLOCK);
        let engine = start_engine(&setup, buffers)?;
        let backend = engine.session()?;
        let relation = relation(&engine, &accounts, false);
        let (direct, keep) = (false, bench.keep);
        Ok(Self { backend, relation, engine, accounts, folder, direct, keep, sound: true })
    }

    /// Switches the I/O method. Pages stay in the pool, unless the files must be reopened because
    /// `direct` changes.
    pub(super) fn turn(&mut self, method: MethodKind, direct: bool) -> Result<()> {
        if direct != self.direct {
            return self.switch(method, direct);
        }
        self.use_method(method);
        Ok(())
    }

    fn use_method(&self, method: MethodKind) {
        warn_of_fallback(&self.engine.aio().set_method(method), method);
    }

    /// Switches the I/O method and reopens the files. Afterwards both the pool and the page cache
    /// are cold.
    pub(super) fn switch(&mut self, method: MethodKind, direct: bool) -> Result<()> {
        self.use_method(method);
        let left = self.engine.pool().evict_all().skipped;
        if left > 0 {
            return Err(format!("{left} buffers are in use or dirty").into());
        }
        self.accounts.evict()?;
        self.close();
        self.direct = direct;
        self.relation = relation(&self.engine, &self.accounts, direct);
        Ok(())
    }

    /// Are the files open for direct I/O?
    pub(super) fn is_direct(&self) -> bool {
        self.direct
    }

    /// Closes the files before they're removed. If a file is removed while it's open, some file
    /// systems (NFS, FUSE) only rename it and keep it in its directory, so we would then fail to
    /// remove the directory.
    fn close(&self) {
        self.relation.storage().forget(self.relation.locator());
    }

    pub(super) fn blocks(&self) -> BlockNo {
        self.accounts.blocks()
    }

    /// Opens the segments for writing by a bare loop. From here on, the table counts as not
    /// verified.
    pub(super) fn files(&mut self, direct: bool) -> Result<Files> {
        self.sound = false;
        Ok(Files::open(&paths(&self.accounts), SEGMENT, Access::Write, direct)?)
    }

    /// Records that a caller is about to modify pages through its own session, so that we will
    /// verify the table again later.
    pub(super) fn changed(&mut self) {
        self.sound = false;
    }

    /// Modifies each of the given pages, which makes them dirty.
    pub(super) fn dirty(&mut self, blocks: &[BlockNo]) -> Result<()> {
        self.sound = false;
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

    /// Runs a checkpoint, and fails unless it writes exactly `pages` pages.
    pub(super) fn checkpoint(&mut self, pages: usize, options: CheckpointOptions) -> Result<Done> {
        let before = self.engine.aio().counters();
        let report = checkpoint(self.engine.pool(), &mut self.backend, options, |_| {})?;
        if report.buffers != pages as u64 {
            return Err(format!("{report}; expected {pages} buffers").into());
        }
        let after = self.engine.aio().counters();
        let in_flight = report.writes.in_flight_sum as f64 / report.writes.writes.max(1) as f64;
        Ok(Done {
            operations: report.buffers,
            bytes: report.writes.bytes(),
            in_flight: Some(in_flight),
            at_storage: Some(at_storage(&before, &after, report.write_time)),
            ..Done::default()
        })
    }

    /// Runs a checkpoint of everything that is dirty.
    pub(super) fn checkpoint_all(&mut self) -> Result<()> {
        self.engine.checkpoint(&mut self.backend)?;
        Ok(())
    }

    /// Writes all dirty pages and then verifies every page on disk, unless nothing has changed
    /// since the last verification. The checkpoint must come first, because a bare loop may have
    /// overwritten pages in the files with arbitrary bytes, and the checkpoint replaces these with
    /// valid pages.
    pub(super) fn finish(&mut self) -> Result<()> {
        if self.sound {
            return Ok(());
        }
        self.checkpoint_all()?;
        self.verify()
    }

    fn verify(&mut self) -> Result<()> {
        verify(&maker()?, &self.accounts)?;
        self.sound = true;
        Ok(())
    }
}

fn maker() -> Result<Aio> {
    Ok(Builder::new().method(MethodKind::IoUring).region_bytes(MAKING).start()?)
}

/// Reuses the existing table if it's complete and valid; otherwise creates a new one.
fn made(maker: &Aio, folder: &Path, scale: u32) -> Result<Accounts> {
    let (started, megabytes) = (Instant::now(), accounts::bytes(scale) / 1_000_000);
    let accounts = accounts::create(maker, folder, scale, &mut |_| true)?;
    if !accounts.reused {
        eprintln!("made accounts of {megabytes} MB in {:.1} s", started.elapsed().as_secs_f64());
        return Ok(accounts);
    }
    match verify(maker, &accounts) {
        Ok(()) => {
            eprintln!("accounts of {megabytes} MB are there");
            Ok(accounts)
        }
        Err(error) => {
            eprintln!("making accounts of {megabytes} MB anew: {error}");
            accounts::remove(folder)?;
            Ok(accounts::create(maker, folder, scale, &mut |_| true)?)
        }
    }
}

fn paths(accounts: &Accounts) -> Vec<PathBuf> {
    accounts.files.iter().map(|file| file.path.clone()).collect()
}

/// Fails unless every page on disk is valid.
fn verify(aio: &Aio, accounts: &Accounts) -> Result<()> {
    let started = Instant::now();
    accounts.evict()?;
    let direct = Files::open(&paths(accounts), SEGMENT, Access::Read, true).is_ok();
    let (depth, combine_blocks) = VERIFYING;
    let read = ReadOptions { direct, depth, combine_blocks };
    verify_all(aio, accounts.files.clone(), read, accounts.bytes())?;
    let seconds = started.elapsed().as_secs_f64();
    eprintln!("{} pages were sound ({seconds:.1} s)", accounts.blocks());
    Ok(())
}

impl Drop for Table {
    fn drop(&mut self) {
        self.close();
        if self.keep && self.sound {
            return;
        }
        if let Err(error) = accounts::remove(&self.folder) {
            eprintln!("{} stays: {error}", self.folder.display());
        }
    }
}

/// Opens the accounts table, with or without direct I/O. We can't use [`Engine::writable_storage`]
/// here, because the engine's `io_direct` setting is fixed, whereas each line makes its own choice.
fn relation(engine: &Engine, accounts: &Accounts, direct: bool) -> Relation {
    let layout = Layout { checksums: true, tablespace_directory: String::new() };
    let storage = Storage::for_writing(&accounts.path, layout, engine.files(), direct);
    let locator = RelationLocator {
        tablespace: Accounts::TABLESPACE,
        database: Accounts::DATABASE,
        relfilenode: Accounts::RELATION,
    };
    storage.relation(locator, Fork::Main)
}

/// Swaps the balances of the page's first two accounts.
pub(super) fn change(page: &mut PageBytes) {
    let mut tuples = line_pointers(page).map(|(_, item)| usize::from(item.offset) + BALANCE);
    let (Some(first), Some(second)) = (tuples.next(), tuples.next()) else { return };
    drop(tuples);
    for at in 0..4 {
        page.swap(first + at, second + at);
    }
}

/// Mean number of writes at the device, over the elapsed time.
fn at_storage(before: &Counters, after: &Counters, elapsed: Duration) -> f64 {
    let time = |counters: &Counters| counters.operation(Operation::Writev).device_time;
    time(after).saturating_sub(time(before)).as_secs_f64() / elapsed.as_secs_f64().max(1e-9)
}

/// The set of pages to modify, and their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// The first pages of the table, in order. A checkpoint can combine them.
    Sequential,
    /// Every second page, in random order. No two are adjacent, so a checkpoint can't combine any
    /// of them.
    Random,
}

impl Order {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Sequential => "sequential",
            Self::Random => "random",
        }
    }

    /// Block numbers of `count` pages; the table must have twice that many.
    pub(super) fn pages(self, count: u32) -> Vec<BlockNo> {
        match self {
            Self::Sequential => (0..count).collect(),
            Self::Random => {
                let bytes = u64::from(count) * BLOCK_SIZE as u64;
                let places = Work::random(1, count as usize, BLOCK, bytes);
                places.blocks().map(|block| block * 2).collect()
            }
        }
    }
}

/// Sorts the blocks and combines adjacent blocks into ranges of at most `most` blocks. A range
/// never crosses a segment boundary.
pub(super) fn ranges(blocks: &[BlockNo], most: u32) -> Vec<Range> {
    let mut blocks = blocks.to_vec();
    blocks.sort_unstable();
    let mut ranges = Vec::<Range>::new();
    for block in blocks {
        let at = u64::from(block) * u64::from(BLOCK);
        let (file, offset) = ((at / SEGMENT) as u32, at % SEGMENT);
        match ranges.last_mut() {
            Some(last)
                if last.file == file
                    && last.offset + u64::from(last.length) == offset
                    && last.length < most * BLOCK =>
            {
                last.length += BLOCK;
            }
            _ => ranges.push(Range { file, offset, length: BLOCK }),
        }
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{FileExt, MetadataExt};

    /// A kept table is reused, unless one of its pages is no longer valid.
    #[test]
    fn a_kept_table_is_used_again_if_it_is_sound() {
        let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).expect("a folder");
        let bench = RunOptions { keep: true, ..RunOptions::small(dir.path()) };
        let inode = |table: &Table| {
            let metadata = std::fs::metadata(&table.accounts.files[0].path).expect("is there");
            (metadata.ino(), metadata.ctime_nsec(), metadata.ctime())
        };
        let make = || Table::make(&bench, 0, 1024).expect("a table");
        let mut table = make();
        table.dirty(&[3, 7]).expect("dirty");
        table.checkpoint(2, CheckpointOptions::default()).expect("a checkpoint");
        table.verify().expect("sound");
        let (first, path) = (inode(&table), table.accounts.files[0].path.clone());
        drop(table);
        let again = make();
        assert!(again.accounts.reused);
        assert_eq!(inode(&again), first);
        drop(again);
        let file = std::fs::File::options().write(true).open(&path).expect("opens");
        file.write_all_at(b"torn", 5 * BLOCK_SIZE as u64 + 100).expect("writes");
        let mut anew = make();
        assert!(!anew.accounts.reused, "a page of it was not sound");
        anew.verify().expect("sound");
        // The table has been modified since its last verification, so it must not be kept.
        anew.dirty(&[1]).expect("dirty");
        anew.checkpoint_all().expect("a checkpoint");
        drop(anew);
        assert!(!path.exists());
    }

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
