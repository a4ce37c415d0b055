//! The other direction: a part of the table is copied, changed and made durable by a checkpoint, by
//! every method, buffered and direct.
//!
//! ```text
//!   copy      the first blocks of the table, into a relation of its own: a load, in a ring
//!   for each method, buffered and direct; pages in a row, and every second one in random order
//!     change      as many pages, each gets the number of the run
//!     checkpoint  what is timed: write them all, sync the files
//!     verify      every page of the copy, read anew: its checksum, and the number it must have
//! ```
//! The table itself is never changed: it may be kept, and whoever kills a demo finds it whole.

use trunkline_engine::Engine;
use trunkline_engine::checkpoint::CheckpointReport;
use trunkline_engine::pool::{Backend, ReadError, WriteError};
use trunkline_engine::read_stream::{BlockList, ReadStream, StreamOptions};
use trunkline_engine::settings::IoMethod;
use trunkline_engine::storage::{Layout, Relation, RelationLocator, Storage, StorageError};
use trunkline_format::page::line_pointers;
use trunkline_format::{BlockNo, Fork, PageBytes};
use trunkline_sample::accounts::Accounts;

use super::config::Config;
use super::run::cpu_time;
use super::write_report::{Outcome, Row, What, Writes};
use crate::exit::Failure;
use crate::interrupt::Interrupt;

/// Blocks of the copy at most: half of them are changed for each checkpoint, 256 MiB.
const BLOCKS_MAX: u32 = 65_536;

/// Blocks that the copy is extended by.
const EXTEND_BLOCKS: u32 = 64;

/// The copy's file number.
const COPY: u32 = Accounts::RELATION + 1;

/// Where `abalance` is in a tuple of accounts.
const BALANCE: usize = 32;

/// What the runs share.
struct Runs<'r> {
    engine: &'r Engine,
    table: &'r Accounts,
    backend: Backend,
    /// The number that each block of the copy must have.
    numbers: Vec<u32>,
    writes: Writes,
}

/// Runs everything; on an interrupt it returns what there is. Leaves no file behind.
pub(super) fn run(
    engine: &Engine,
    table: &Accounts,
    interrupt: &Interrupt,
) -> Result<Writes, Failure> {
    engine.pool().evict_all();
    let backend = engine.session()?;
    // The other half of the pool is for whoever looks ahead.
    let blocks = table.blocks().min(BLOCKS_MAX).min(engine.pool().buffers() / 2).max(2);
    let numbers = vec![0; blocks as usize];
    let mut runs = Runs { engine, table, backend, numbers, writes: Writes::new(blocks) };
    let done = runs.all(interrupt);
    let copy = runs.relation(COPY, false);
    let removed = runs.backend.drop_relation(&copy);
    done.and_then(|()| removed.map_err(cannot_write))?;
    Ok(runs.writes)
}

impl Runs<'_> {
    fn all(&mut self, interrupt: &Interrupt) -> Result<(), Failure> {
        let copy = self.relation(COPY, false);
        // Of a demo that was killed.
        self.backend.drop_relation(&copy).map_err(cannot_write)?;
        self.copy(&copy)?;
        let ways = IoMethod::ALL.into_iter().flat_map(|method| [(method, false), (method, true)]);
        for (asked, direct) in ways {
            if interrupt.requested() {
                break;
            }
            let used = self.engine.aio().set_method(asked.into()).used;
            let config = Config { asked, used, direct };
            let copy = self.relation(COPY, direct);
            match self.backend.read(&copy, 0) {
                Ok(_) => {}
                Err(ReadError::Storage(StorageError::Direct { file_system, .. })) => {
                    self.writes.add(config, Outcome::NoDirect(file_system));
                    continue;
                }
                Err(error) => return Err(cannot_read(error)),
            }
            for what in [What::Sequential, What::Random] {
                self.one(config, &copy, what)?;
            }
            self.engine.pool().evict_relation(&copy, 0);
        }
        Ok(())
    }

    fn relation(&self, relfilenode: u32, direct: bool) -> Relation {
        let layout = Layout { checksums: true, tablespace_directory: String::new() };
        let files = self.engine.files();
        let path = &self.table.path;
        let storage = match relfilenode {
            COPY => Storage::for_writing(path, layout, files, direct),
            _ => Storage::new(path, layout, files, direct),
        };
        let (tablespace, database) = (Accounts::TABLESPACE, Accounts::DATABASE);
        storage.relation(RelationLocator { tablespace, database, relfilenode }, Fork::Main)
    }

    fn options(&self) -> StreamOptions {
        StreamOptions::maintenance(self.engine.settings())
    }

    /// Copies the first blocks of the table, and makes the copy durable.
    fn copy(&mut self, copy: &Relation) -> Result<(), Failure> {
        copy.create().map_err(cannot_write)?;
        let source = self.relation(Accounts::RELATION, false);
        let blocks = self.numbers.len() as BlockNo;
        let list = BlockList::new((0..blocks).collect());
        let mut stream = ReadStream::new(&self.backend, &source, list, self.options());
        let mut bulk = self.backend.bulk_write();
        let method = self.engine.settings().file_extend_method();
        let mut made = 0;
        while made < blocks {
            let count = EXTEND_BLOCKS.min(blocks - made);
            let pins = self.backend.extend_in_bulk(&mut bulk, copy, count, method);
            let pins = pins.map_err(cannot_write)?;
            for pin in pins {
                let next = stream.next(&mut self.backend).map_err(cannot_read)?;
                let Some(from) = next else {
                    return Err(Failure::cannot_run("the table ends early"));
                };
                let bytes = self.backend.read_lock(from.pin).map_err(Failure::cannot_run)?;
                let mut page = *bytes;
                drop(bytes);
                number(&mut page, 0);
                let locked = self.backend.write_lock(pin.page());
                let mut bytes = locked.map_err(Failure::cannot_run)?;
                bytes.mark_dirty();
                bytes.copy_from_slice(&page);
                made += 1;
            }
        }
        drop(stream);
        bulk.finish(&mut self.backend).map_err(cannot_write)?;
        self.checkpoint().map(drop)
    }

    /// One line of the table.
    fn one(&mut self, config: Config, copy: &Relation, what: What) -> Result<(), Failure> {
        let blocks = what.pages(self.numbers.len() as BlockNo);
        let run = self.writes.runs() + 1;
        let list = BlockList::new(blocks.clone());
        let mut stream = ReadStream::new(&self.backend, copy, list, self.options());
        while let Some(page) = stream.next(&mut self.backend).map_err(cannot_read)? {
            let locked = self.backend.write_lock(page.pin);
            let mut bytes = locked.map_err(Failure::cannot_run)?;
            bytes.mark_dirty();
            number(&mut bytes, run);
            self.numbers[page.block as usize] = run;
        }
        drop(stream);
        let cpu = cpu_time();
        let report = self.checkpoint()?;
        let cpu_seconds = cpu_time().saturating_sub(cpu).as_secs_f64();
        if report.buffers != blocks.len() as u64 {
            let text = format!(
                "{config}, {}: {} pages written, expected {}",
                what.name(),
                report.buffers,
                blocks.len()
            );
            self.writes.note_wrong(text);
        }
        self.writes.add(config, Outcome::Ran(Box::new(Row { what, cpu_seconds, report })));
        self.verify(config, copy, what)
    }

    fn checkpoint(&mut self) -> Result<CheckpointReport, Failure> {
        self.engine.checkpoint(&mut self.backend).map_err(Failure::cannot_run)
    }

    /// Reads every page of the copy anew. A page whose checksum is wrong is an error of the read.
    fn verify(&mut self, config: Config, copy: &Relation, what: What) -> Result<(), Failure> {
        self.engine.pool().evict_relation(copy, 0);
        let list = BlockList::new((0..self.numbers.len() as BlockNo).collect());
        let mut stream = ReadStream::new(&self.backend, copy, list, self.options());
        let mut wrong = 0_u64;
        while let Some(page) = stream.next(&mut self.backend).map_err(cannot_read)? {
            let bytes = self.backend.read_lock(page.pin).map_err(Failure::cannot_run)?;
            wrong += u64::from(number_of(&bytes) != Some(self.numbers[page.block as usize]));
        }
        drop(stream);
        if wrong > 0 {
            let text = format!("{config}, {}: {wrong} pages are not what was written", what.name());
            self.writes.note_wrong(text);
        }
        Ok(())
    }
}

/// Where the balance of a page's first account is.
fn place(page: &PageBytes) -> Option<usize> {
    line_pointers(page).next().map(|(_, item)| usize::from(item.offset) + BALANCE)
}

/// Gives a page the number of a run: its first account has it as balance.
fn number(page: &mut PageBytes, number: u32) {
    if let Some(at) = place(page)
        && let Some(bytes) = page.get_mut(at..at + 4)
    {
        bytes.copy_from_slice(&number.to_le_bytes());
    }
}

fn number_of(page: &PageBytes) -> Option<u32> {
    let at = place(page)?;
    page.get(at..at + 4)?.try_into().ok().map(u32::from_le_bytes)
}

fn cannot_read(error: ReadError) -> Failure {
    Failure::cannot_run(format_args!("could not read the table: {error}"))
}

fn cannot_write(error: impl Into<WriteError>) -> Failure {
    Failure::cannot_run(format_args!("could not write the copy: {}", error.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use trunkline_format::HeapPageBuilder;
    use trunkline_sample::push_account;

    #[test]
    fn a_page_has_the_number_it_was_given() {
        let mut builder = HeapPageBuilder::new(3);
        push_account(&mut builder, 1, 1, 77).expect("room");
        let mut page = builder.finish(true);
        assert_eq!(number_of(&page), Some(77));
        number(&mut page, 12);
        assert_eq!(number_of(&page), Some(12));
        assert_eq!(number_of(&[0; 8192]), None);
    }
}
