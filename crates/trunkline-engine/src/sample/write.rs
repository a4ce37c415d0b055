//! Pages from a template, and their way to disk: a few writes in flight, then every file synced at
//! once. The processor fills the next run of pages while the device takes the ones before.

use std::io;
use std::path::PathBuf;

use trunkline_aio::{Aio, Class, File, OpenOptions, Operations, Outcome, Session, Status};
use trunkline_format::page::line_pointers;
use trunkline_format::{BLOCK_SIZE, HeapPageBuilder, PageBytes, page_checksum};

/// Blocks of one write.
const WRITE_BLOCKS: u32 = 64;

/// Writes in flight.
const WRITES: usize = 8;

/// Accounts per branch, as pgbench has it.
const ACCOUNTS_PER_BRANCH: i64 = 100_000;

/// Writes the relations and makes them durable. `progress` returns false to give up.
pub(super) fn relations(
    aio: &Aio,
    plan: &[(PathBuf, u32)],
    progress: &mut dyn FnMut(u64) -> bool,
) -> io::Result<()> {
    let session = aio.session().map_err(io::Error::other)?;
    let mut writer = Writer::new(aio, session)?;
    let template = Template::new();
    let options = OpenOptions { write: true, create: true, no_follow: true, direct: false };
    let mut files = Vec::new();
    for (path, blocks) in plan {
        let file = aio.open(path, options)?;
        let mut block = 0;
        while block < *blocks {
            let count = WRITE_BLOCKS.min(blocks - block);
            writer.write(&file, block, count, &template)?;
            block += count;
            if !progress(writer.written) {
                return Err(io::ErrorKind::Interrupted.into());
            }
        }
        files.push(file);
    }
    writer.finish()?;
    writer.sync(&files)?;
    progress(writer.written);
    Ok(())
}

/// Keeps a few writes in flight.
struct Writer {
    session: Session,
    operations: Operations,
    idle: Vec<usize>,
    /// What each slot carries; bytes of the write and their place.
    slots: Vec<Option<(File, u64, u32)>>,
    written: u64,
}

impl Writer {
    fn new(aio: &Aio, session: Session) -> io::Result<Self> {
        let leases: Vec<_> = (0..WRITES).map_while(|_| aio.region().lease(WRITE_BLOCKS)).collect();
        if leases.is_empty() {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        let count = leases.len();
        let mut operations = Operations::new(count, Vec::new());
        for (slot, lease) in leases.into_iter().enumerate() {
            if let Some(memory) = operations.memory(slot) {
                memory.push(lease);
            }
        }
        let idle = (0..count).collect();
        Ok(Self { session, operations, idle, slots: vec![None; count], written: 0 })
    }

    /// Fills a slot with pages and starts to write it.
    fn write(
        &mut self,
        file: &File,
        block: u32,
        count: u32,
        template: &Template,
    ) -> io::Result<()> {
        let slot = match self.idle.pop() {
            Some(slot) => slot,
            None => self.complete_one()?,
        };
        let memory = self.operations.memory(slot).and_then(|memory| memory.first_mut());
        let pages = memory.map(|lease| lease.as_chunks_mut::<BLOCK_SIZE>().0).unwrap_or_default();
        for (number, page) in (block..block + count).zip(pages) {
            template.stamp(number, page);
        }
        let offset = u64::from(block) * BLOCK_SIZE as u64;
        self.issue(slot, file.clone(), offset, count * BLOCK_SIZE as u32)
    }

    fn issue(&mut self, slot: usize, file: File, offset: u64, length: u32) -> io::Result<()> {
        let io = self.session.acquire(Class::WriteBack).map_err(io::Error::other)?;
        let operations = &mut self.operations;
        io.write(&file, offset, length, operations, slot).map_err(io::Error::other)?;
        self.slots[slot] = Some((file, offset, length));
        Ok(())
    }

    /// Waits until a write is on its way, whole; its slot.
    fn complete_one(&mut self) -> io::Result<usize> {
        loop {
            let waited = self.session.wait_any(&mut self.operations);
            let (slot, outcome) = waited.map_err(io::Error::other)?;
            let Some((file, offset, length)) = self.slots[slot].take() else { return Ok(slot) };
            if is_whole(outcome)? {
                self.written += u64::from(length);
                return Ok(slot);
            }
            // A short write may end anywhere; all of it is written once more.
            self.issue(slot, file, offset, length)?;
        }
    }

    fn finish(&mut self) -> io::Result<()> {
        while self.operations.pending() > 0 {
            let slot = self.complete_one()?;
            self.idle.push(slot);
        }
        Ok(())
    }

    /// Makes the files durable, all at once.
    fn sync(&mut self, files: &[File]) -> io::Result<()> {
        let mut syncs = Operations::new(files.len(), Vec::new());
        {
            let mut batch = self.session.batch();
            for (slot, file) in files.iter().enumerate() {
                let io = batch.acquire(Class::WriteBack).map_err(io::Error::other)?;
                io.fsync(file, &mut syncs, slot);
            }
        }
        for slot in 0..files.len() {
            let outcome = self.session.wait(&mut syncs, slot).map_err(io::Error::other)?;
            is_whole(outcome)?;
        }
        Ok(())
    }
}

/// Whether all was done; false if only a part was.
fn is_whole(outcome: Outcome) -> io::Result<bool> {
    match outcome.status {
        Status::Error => Err(io::Error::from_raw_os_error(outcome.detail as i32)),
        // Nothing at all would be the same the next time.
        Status::Partial if outcome.count == 0 => Err(io::ErrorKind::WriteZero.into()),
        Status::Partial => Ok(false),
        _ => Ok(true),
    }
}

/// A full page, and where its tuples begin.
struct Template {
    page: Box<PageBytes>,
    tuples: Vec<usize>,
}

impl Template {
    fn new() -> Self {
        let mut builder = HeapPageBuilder::new(0);
        builder.all_visible();
        while builder.push_account(1, 1, 0).is_ok() {}
        let page = Box::new(builder.finish(false));
        let tuples = line_pointers(&page).map(|(_, item)| usize::from(item.offset)).collect();
        Self { page, tuples }
    }

    /// Makes `page` the one with number `block`: tuples know their own block, and accounts are
    /// numbered through the relation.
    fn stamp(&self, block: u32, page: &mut PageBytes) {
        page.copy_from_slice(&*self.page);
        let (high, low) = ((block >> 16) as u16, block as u16);
        let first = i64::from(block) * self.tuples.len() as i64;
        for (account, &at) in (first..).zip(&self.tuples) {
            let branch = account / ACCOUNTS_PER_BRANCH + 1;
            put(page, at + 12, &high.to_le_bytes());
            put(page, at + 14, &low.to_le_bytes());
            put(page, at + 24, &(account as i32 + 1).to_le_bytes());
            put(page, at + 28, &(branch as i32).to_le_bytes());
        }
        let checksum = page_checksum(page, block);
        put(page, 8, &checksum.to_le_bytes());
    }
}

fn put(page: &mut PageBytes, at: usize, bytes: &[u8]) {
    if let Some(place) = page.get_mut(at..at + bytes.len()) {
        place.copy_from_slice(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trunkline_format::{CheckOptions, Fork, Verdict, check_page};

    #[test]
    fn stamped_pages_are_those_the_builder_makes() {
        let template = Template::new();
        let options = CheckOptions { checksums: true, fork: Fork::Main };
        for block in [0, 1, 1639, 65_535, 65_536, 131_071] {
            let mut page = [0; BLOCK_SIZE];
            template.stamp(block, &mut page);
            assert_eq!(check_page(&page, block, &options), Verdict::Good, "block {block}");
            let mut builder = HeapPageBuilder::new(block);
            builder.all_visible();
            for account in block * 61..(block + 1) * 61 {
                let branch = account / 100_000 + 1;
                builder.push_account(account as i32 + 1, branch as i32, 0).expect("room");
            }
            assert!(page == builder.finish(true), "block {block}");
        }
    }
}
