//! Times checkpoints with every I/O method, buffered and direct. Each run changes a copy of part of
//! the table and writes the changed pages with a checkpoint.
//!
//! ```text
//!   copy      the first blocks of the table into a new relation (a bulk write through a ring buffer)
//!   for each method, buffered and direct; for sequential pages, and every second page in random order
//!     change      half of the pages; each gets the number of the run
//!     checkpoint  timed: write the pages, sync the files
//!     verify      read every page of the copy back: its checksum, and the number it must have
//! ```
//! We never change the table itself. It may be kept for the next run, so it must not be damaged if
//! the user kills the demo. After each checkpoint we read the pages back, to make sure that the
//! writes we timed really reached the right blocks.

use trunkline_engine::Engine;
use trunkline_engine::checkpoint::CheckpointReport;
use trunkline_engine::pool::{Backend, ReadError, WriteError};
use trunkline_engine::read_stream::{BlockList, ReadStream, StreamOptions};
use trunkline_engine::storage::{Relation, StorageError};
use trunkline_format::page::line_pointers;
use trunkline_format::{BlockNo, PageBytes};
use trunkline_sample::accounts::Accounts;

use super::checkpoint_report::{ChangedPages, CheckpointReports, CheckpointRun};
use super::cpu_time::with_cpu_seconds;
use super::io_config::{IoConfig, NotRun};
use super::relation::{COPY, relation};
use crate::exit::Failure;
use crate::interrupt::Interrupt;

/// Maximum size of the copy in blocks. Each checkpoint writes half of the blocks, which is 256 MiB.
const BLOCKS_MAX: u32 = 65_536;

/// Number of blocks by which the copy is extended at a time.
const EXTEND_BLOCKS: u32 = 64;

/// Offset of `abalance` in a tuple of `pgbench_accounts`.
const BALANCE_OFFSET: usize = 32;

/// State shared by all runs.
struct Runs<'r> {
    engine: &'r Engine,
    table: &'r Accounts,
    interrupt: &'r Interrupt,
    backend: Backend,
    /// For each block of the copy, the expected number.
    numbers: Vec<u32>,
    reports: CheckpointReports,
}

/// Performs all runs, and then removes the copy. If the user interrupts the demo, it returns the
/// results obtained so far, or an error if the interrupt cancelled a wait.
pub(super) fn run(
    engine: &Engine,
    table: &Accounts,
    interrupt: &Interrupt,
) -> Result<CheckpointReports, Failure> {
    engine.pool().evict_all();
    let mut backend = engine.session()?;
    interrupt.cancel_on_request(backend.session().canceller());
    // We leave half of the pool for read-ahead. All changed pages must fit into the pool, because
    // otherwise some of them would be evicted, and therefore written, before the checkpoint even
    // starts.
    let blocks = table.blocks().min(BLOCKS_MAX).min(engine.pool().buffers() / 2).max(2);
    let numbers = vec![0; blocks as usize];
    let reports = CheckpointReports { blocks, rows: Vec::new(), errors: Vec::new() };
    let mut runs = Runs { engine, table, interrupt, backend, numbers, reports };
    if interrupt.requested() {
        return Ok(runs.reports);
    }
    let done = runs.all();
    // We need another session, because the waits of the runs' session may have been cancelled.
    let copy = runs.relation(COPY, false);
    let removed = engine.session()?.drop_relation(&copy);
    done.and_then(|()| removed.map_err(cannot_write))?;
    Ok(runs.reports)
}

impl Runs<'_> {
    fn all(&mut self) -> Result<(), Failure> {
        let copy = self.relation(COPY, false);
        // A demo that was killed may have left a copy.
        self.backend.drop_relation(&copy).map_err(cannot_write)?;
        self.copy(&copy)?;
        // Each configuration opens the copy as a separate cluster, so the same page gets a
        // different buffer tag in each configuration. When we are done with a configuration, we
        // evict its pages to make room for the next one.
        for (requested, direct) in IoConfig::all() {
            if self.interrupt.requested() {
                break;
            }
            let used = self.engine.aio().set_method(requested.into()).used;
            let config = IoConfig { requested, used, direct };
            let copy = self.relation(COPY, direct);
            match self.backend.read(&copy, 0) {
                Ok(_) => {}
                Err(ReadError::Storage(StorageError::Direct { file_system, .. })) => {
                    self.reports.rows.push((config, Err(NotRun::NoDirect(file_system))));
                    continue;
                }
                Err(error) => return Err(cannot_read(error)),
            }
            for changed in ChangedPages::ALL {
                self.run_one(config, &copy, changed)?;
            }
            self.engine.pool().evict_relation(&copy, 0);
        }
        Ok(())
    }

    fn relation(&self, relfilenode: u32, direct: bool) -> Relation {
        relation(self.engine, self.table, relfilenode, direct)
    }

    fn options(&self) -> StreamOptions {
        StreamOptions::maintenance(self.engine.settings())
    }

    /// Copies the first blocks of the table, and writes the copy with a checkpoint.
    fn copy(&mut self, copy: &Relation) -> Result<(), Failure> {
        copy.create().map_err(cannot_write)?;
        let source = self.relation(Accounts::RELATION, false);
        let blocks = self.numbers.len() as BlockNo;
        let list = BlockList::new((0..blocks).collect());
        let mut stream = ReadStream::new(&self.backend, &source, list, self.options());
        let mut bulk = self.backend.bulk_write();
        let method = self.engine.settings().file_extend_method();
        let mut made = 0;
        while made < blocks && !self.interrupt.requested() {
            let count = EXTEND_BLOCKS.min(blocks - made);
            let pins = self.backend.extend_in_bulk(&mut bulk, copy, count, method);
            let pins = pins.map_err(cannot_write)?;
            for pin in pins {
                let next = stream.next(&mut self.backend).map_err(cannot_read)?;
                let Some(from) = next else {
                    return Err(Failure::cannot_run("the table is shorter than expected"));
                };
                let bytes = self.backend.read_lock(from.pin).map_err(Failure::cannot_run)?;
                let mut page = *bytes;
                drop(bytes);
                set_number(&mut page, 0);
                let locked = self.backend.write_lock(pin.page());
                let mut bytes = locked.map_err(Failure::cannot_run)?;
                bytes.mark_dirty();
                bytes.copy_from_slice(&page);
                made += 1;
            }
        }
        drop(stream);
        bulk.finish(&mut self.backend).map_err(cannot_write)?;
        if made < blocks { Ok(()) } else { self.checkpoint().map(drop) }
    }

    /// Changes pages, times the checkpoint that writes them, and reads them back.
    fn run_one(
        &mut self,
        config: IoConfig,
        copy: &Relation,
        changed: ChangedPages,
    ) -> Result<(), Failure> {
        let blocks = changed.pages(self.numbers.len() as BlockNo);
        let run = self.reports.rows.len() as u32 + 1;
        let list = BlockList::new(blocks.clone());
        let mut stream = ReadStream::new(&self.backend, copy, list, self.options());
        while let Some(page) = stream.next(&mut self.backend).map_err(cannot_read)? {
            let locked = self.backend.write_lock(page.pin);
            let mut bytes = locked.map_err(Failure::cannot_run)?;
            bytes.mark_dirty();
            set_number(&mut bytes, run);
            self.numbers[page.block as usize] = run;
            if self.interrupt.requested() {
                return Ok(());
            }
        }
        drop(stream);
        let (report, cpu_seconds) = with_cpu_seconds(|| self.checkpoint());
        let report = report?;
        if report.buffers != blocks.len() as u64 {
            let text = format!(
                "{config}, {}: {} pages written, expected {}",
                changed.name(),
                report.buffers,
                blocks.len()
            );
            self.reports.errors.push(text);
        }
        let run = CheckpointRun { changed, cpu_seconds, report };
        self.reports.rows.push((config, Ok(Box::new(run))));
        self.verify(config, copy, changed)
    }

    fn checkpoint(&mut self) -> Result<CheckpointReport, Failure> {
        self.engine.checkpoint(&mut self.backend).map_err(Failure::cannot_run)
    }

    /// Reads back every page of the copy. We don't need to check the checksums here, because the
    /// read itself fails if a checksum is wrong.
    fn verify(
        &mut self,
        config: IoConfig,
        copy: &Relation,
        changed: ChangedPages,
    ) -> Result<(), Failure> {
        self.engine.pool().evict_relation(copy, 0);
        let list = BlockList::new((0..self.numbers.len() as BlockNo).collect());
        let mut stream = ReadStream::new(&self.backend, copy, list, self.options());
        let mut wrong = 0_u64;
        while let Some(page) = stream.next(&mut self.backend).map_err(cannot_read)? {
            let bytes = self.backend.read_lock(page.pin).map_err(Failure::cannot_run)?;
            wrong += u64::from(number_of(&bytes) != Some(self.numbers[page.block as usize]));
            if self.interrupt.requested() {
                break;
            }
        }
        drop(stream);
        if wrong > 0 {
            let name = changed.name();
            let text = format!("{config}, {name}: {wrong} pages differ from what was written");
            self.reports.errors.push(text);
        }
        Ok(())
    }
}

/// Offset of the first account's balance within a page.
fn first_balance(page: &PageBytes) -> Option<usize> {
    line_pointers(page).next().map(|(_, item)| usize::from(item.offset) + BALANCE_OFFSET)
}

/// Marks a page with the number of the run, by storing it as the balance of the page's first
/// account.
fn set_number(page: &mut PageBytes, number: u32) {
    if let Some(at) = first_balance(page)
        && let Some(bytes) = page.get_mut(at..at + 4)
    {
        bytes.copy_from_slice(&number.to_le_bytes());
    }
}

fn number_of(page: &PageBytes) -> Option<u32> {
    let at = first_balance(page)?;
    page.get(at..at + 4)?.try_into().ok().map(u32::from_le_bytes)
}

/// `From<ReadError>` would report a damaged page as a finding. But the demo's table doesn't contain
/// the user's data, so a damaged page here only means that the demo can't run.
fn cannot_read(error: ReadError) -> Failure {
    Failure::cannot_run(format_args!("could not read the table: {error}"))
}

fn cannot_write(error: impl Into<WriteError>) -> Failure {
    Failure::cannot_run(format_args!("could not write the copy: {}", error.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use trunkline_format::HeapPageBuilder;

    use trunkline_aio::facade::Arc;
    use trunkline_aio::facade::atomic::{AtomicBool, AtomicU64, Ordering};
    use trunkline_aio::{Builder, Executor, File, Kernel, MethodKind, Operation, Request};
    use trunkline_engine::settings::Settings;
    use trunkline_sample::accounts::create;
    use trunkline_sample::push_account;

    /// A real disk that counts bytes. At the first write after `armed` is set, the user presses
    /// Ctrl-C.
    #[derive(Default)]
    struct Counted {
        interrupt: Interrupt,
        armed: AtomicBool,
        written: AtomicU64,
        read: AtomicU64,
    }

    impl Executor for Counted {
        fn execute(&self, request: &mut Request<'_>) -> i32 {
            let bytes = match request.operation {
                Operation::Readv => &self.read,
                _ => &self.written,
            };
            bytes.fetch_add(u64::from(request.length), Ordering::SeqCst);
            if request.operation == Operation::Writev && self.armed.load(Ordering::SeqCst) {
                self.interrupt.request();
            }
            Kernel.execute(request)
        }

        fn advise(&self, file: &File, offset: u64, length: u64) -> bool {
            Kernel.advise(file, offset, length)
        }
    }

    #[test]
    fn an_interrupt_ends_the_copy() {
        let home = tempfile::tempdir().expect("a directory");
        let disk = Arc::new(Counted::default());
        let builder = Builder::new().method(MethodKind::Sync).executor(Arc::clone(&disk) as _);
        let aio = builder.region_bytes(16 << 20).start().expect("started");
        let table = create(&aio, home.path(), 1, &mut |_| true).expect("created");
        let engine = Engine::builder(&Settings::default()).io(&aio).buffers(1024).open();
        let engine = engine.expect("an engine");
        disk.armed.store(true, Ordering::SeqCst);
        let bytes = || [&disk.read, &disk.written].map(|bytes| bytes.load(Ordering::SeqCst));
        let before = bytes();
        // This returns either the reports so far or the error of a cancelled wait.
        let _ = run(&engine, &table, &disk.interrupt);
        assert!(disk.interrupt.requested());
        let copy = 512 * 8192;
        assert!(bytes()[1] - before[1] < copy / 2, "{before:?} {:?}", bytes());
        let segments = fs::read_dir(home.path().join("base/5")).expect("a directory").count();
        assert_eq!(segments, 1, "the copy is left");
        // If the interrupt arrives before the first run, there is no I/O at all.
        let before = bytes();
        let reports = run(&engine, &table, &disk.interrupt).expect("nothing to do");
        assert!(reports.rows.is_empty());
        assert_eq!(bytes(), before);
    }

    #[test]
    fn a_page_returns_the_number_stored_in_it() {
        let mut builder = HeapPageBuilder::new(3);
        push_account(&mut builder, 1, 1, 77).expect("room");
        let mut page = builder.finish(true);
        assert_eq!(number_of(&page), Some(77));
        set_number(&mut page, 12);
        assert_eq!(number_of(&page), Some(12));
        assert_eq!(number_of(&[0; 8192]), None);
    }
}
