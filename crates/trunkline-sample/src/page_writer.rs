//! Writes sample tables' pages with several writes in flight, then fsyncs the files.
//!
//! We create each page by copying a template and filling in the account numbers, the TIDs and the
//! checksum. The writes are asynchronous, so we can prepare the next pages while the previous ones
//! are being written.

use std::io;
use std::ops::Range;
use std::path::PathBuf;

use trunkline_aio::{Aio, Class, File, OpenOptions, Outcome, Session, Slots, Status};
use trunkline_format::page::line_pointers;
use trunkline_format::{BLOCK_SIZE, BlockNo, HeapPageBuilder, PageBytes, page_checksum};

use crate::account_row::push_account;

/// Blocks per write.
const WRITE_BLOCKS: u32 = 64;

/// Writes in flight.
const WRITES: usize = 8;

/// Rows of a full page.
pub(super) const PAGE_ROWS: u32 = 61;

/// Accounts per branch, as in pgbench.
pub(super) const BRANCH_ROWS: u32 = 100_000;

/// A file to write: one segment of a relation.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NewFile {
    pub(super) path: PathBuf,
    /// The block number, in the relation, of the file's first block.
    pub(super) first: BlockNo,
    pub(super) blocks: u32,
    /// Rows of the whole relation. All pages but the last are full.
    pub(super) rows: u64,
}

/// The balance of account `aid`: a fixed pseudo-random number between -5000 and 5000.
pub(super) fn balance(aid: u32) -> i32 {
    // This is the finalizer of MurmurHash3, in which every bit of the number affects every bit of
    // the hash. If a page is skipped, read twice, or confused with another page, we can therefore
    // expect the sum to change.
    let mut hash = aid;
    hash = (hash ^ hash >> 16).wrapping_mul(0x85EB_CA6B);
    hash = (hash ^ hash >> 13).wrapping_mul(0xC2B2_AE35);
    hash ^= hash >> 16;
    // Use a multiplication to map the hash to the range of balances. This introduces a bias of
    // about 2^-18, which is small enough to ignore here.
    ((u64::from(hash) * 10_001) >> 32) as i32 - 5000
}

/// Writes the files and fsyncs them. We call `progress` with the number of bytes written so far,
/// and stop if it returns false.
pub(super) fn write_files(
    aio: &Aio,
    plan: &[NewFile],
    progress: &mut dyn FnMut(u64) -> bool,
) -> io::Result<()> {
    let session = aio.session().map_err(io::Error::other)?;
    let mut writer = Writer::new(aio, session)?;
    let template = Template::new(PAGE_ROWS);
    let options = OpenOptions { write: true, create: true, no_follow: true, direct: false };
    let mut files = Vec::new();
    for new in plan {
        let file = aio.open(&new.path, options)?;
        let mut block = 0;
        while block < new.blocks {
            let count = WRITE_BLOCKS.min(new.blocks - block);
            writer.write(&file, new, block..block + count, &template)?;
            block += count;
            if !progress(writer.written) {
                return Err(io::ErrorKind::Interrupted.into());
            }
        }
        files.push(file);
    }
    writer.finish()?;
    writer.sync(&files)?;
    // The caller may have given up while we synced the files.
    if progress(writer.written) { Ok(()) } else { Err(io::ErrorKind::Interrupted.into()) }
}

/// Keeps a few writes in flight.
struct Writer {
    /// All writes are issued by one session, so the writer needs no locks.
    session: Session,
    /// One slot per write in flight, each with a lease of [`WRITE_BLOCKS`] frames.
    operations: Slots,
    /// Slots without a write in flight.
    idle: Vec<usize>,
    /// The write in each slot: file, offset and length.
    slots: Vec<Option<(File, u64, u32)>>,
    /// Bytes of completed writes, for `progress`.
    written: u64,
}

impl Writer {
    fn new(aio: &Aio, session: Session) -> io::Result<Self> {
        // If the region is small, we make do with fewer writes in flight.
        let leases: Vec<_> = (0..WRITES).map_while(|_| aio.region().lease(WRITE_BLOCKS)).collect();
        if leases.is_empty() {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        let count = leases.len();
        let mut operations = Slots::new(count);
        for (slot, lease) in leases.into_iter().enumerate() {
            if let Some(memory) = operations.memory(slot) {
                memory.push(lease);
            }
        }
        let idle = (0..count).collect();
        Ok(Self { session, operations, idle, slots: vec![None; count], written: 0 })
    }

    /// Fills a slot with the pages for `blocks`, and starts to write them. Block numbers are
    /// counted from the start of the file. If all slots are in use, we first wait for one of their
    /// writes to complete.
    fn write(
        &mut self,
        file: &File,
        new: &NewFile,
        blocks: Range<u32>,
        template: &Template,
    ) -> io::Result<()> {
        let slot = match self.idle.pop() {
            Some(slot) => slot,
            None => self.complete_one()?,
        };
        let memory = self.operations.memory(slot).and_then(|memory| memory.first_mut());
        let pages = memory.map(|lease| lease.as_chunks_mut::<BLOCK_SIZE>().0).unwrap_or_default();
        for (number, page) in blocks.clone().zip(pages) {
            let number = new.first + number;
            let before = u64::from(number) * u64::from(PAGE_ROWS);
            match new.rows.saturating_sub(before) {
                // The last page of the relation is the only one that may have fewer rows, so we use
                // a smaller template for it.
                rows if rows >= u64::from(PAGE_ROWS) => template.stamp(number, page),
                rows => Template::new(rows as u32).stamp(number, page),
            }
        }
        let offset = u64::from(blocks.start) * BLOCK_SIZE as u64;
        self.issue(slot, file.clone(), offset, blocks.len() as u32 * BLOCK_SIZE as u32)
    }

    fn issue(&mut self, slot: usize, file: File, offset: u64, length: u32) -> io::Result<()> {
        let io = self.session.acquire(Class::Eviction).map_err(io::Error::other)?;
        let operations = &mut self.operations;
        io.write(&file, offset, length, operations, slot).map_err(io::Error::other)?;
        self.slots[slot] = Some((file, offset, length));
        Ok(())
    }

    /// Waits until a write has completed in full, and returns its slot.
    fn complete_one(&mut self) -> io::Result<usize> {
        loop {
            let waited = self.session.wait_any(&mut self.operations);
            let (slot, outcome) = waited.map_err(io::Error::other)?;
            let Some((file, offset, length)) = self.slots[slot].take() else { return Ok(slot) };
            if is_whole(outcome)? {
                self.written += u64::from(length);
                return Ok(slot);
            }
            // A short write may have ended in the middle of a page, so we simply write all pages of
            // the run again.
            self.issue(slot, file, offset, length)?;
        }
    }

    /// Waits for all writes.
    fn finish(&mut self) -> io::Result<()> {
        while self.operations.pending() > 0 {
            let slot = self.complete_one()?;
            self.idle.push(slot);
        }
        Ok(())
    }

    /// Fsyncs the files, several at a time.
    fn sync(&mut self, files: &[File]) -> io::Result<()> {
        for files in files.chunks(WRITES) {
            let mut syncs = Slots::new(files.len());
            {
                let mut batch = self.session.batch();
                for (slot, file) in files.iter().enumerate() {
                    let io = batch.acquire(Class::Eviction).map_err(io::Error::other)?;
                    io.fsync(file, &mut syncs, slot);
                }
            }
            for slot in 0..files.len() {
                let outcome = self.session.wait(&mut syncs, slot).map_err(io::Error::other)?;
                is_whole(outcome)?;
            }
        }
        Ok(())
    }
}

/// Whether the I/O transferred everything; false for a short write.
fn is_whole(outcome: Outcome) -> io::Result<bool> {
    match outcome.status {
        Status::Error => Err(io::Error::from_raw_os_error(outcome.detail as i32)),
        // Retrying a write of zero bytes could loop endlessly.
        Status::Partial if outcome.count == 0 => Err(io::ErrorKind::WriteZero.into()),
        Status::Partial => Ok(false),
        _ => Ok(true),
    }
}

/// A page of accounts, and the offsets of its tuples.
struct Template {
    page: Box<PageBytes>,
    tuples: Vec<usize>,
}

impl Template {
    /// Builds a page with `rows` accounts, or as many as fit.
    fn new(rows: u32) -> Self {
        let mut builder = HeapPageBuilder::new(0);
        builder.all_visible();
        for _ in 0..rows.min(PAGE_ROWS) {
            if push_account(&mut builder, 1, 1, 0).is_err() {
                break;
            }
        }
        let page = Box::new(builder.finish(false));
        let tuples = line_pointers(&page).map(|(_, item)| usize::from(item.offset)).collect();
        Self { page, tuples }
    }

    /// Fills `page` with the contents of block `block`. Each tuple contains its own TID. Account
    /// numbers start at 1 and continue from one page to the next.
    fn stamp(&self, block: BlockNo, page: &mut PageBytes) {
        page.copy_from_slice(&*self.page);
        let (high, low) = ((block >> 16) as u16, block as u16);
        let first = block.wrapping_mul(PAGE_ROWS).wrapping_add(1);
        for (aid, &at) in (0..).map(|row| first.wrapping_add(row)).zip(&self.tuples) {
            let branch = aid.wrapping_sub(1) / BRANCH_ROWS + 1;
            put(page, at + 12, &high.to_le_bytes());
            put(page, at + 14, &low.to_le_bytes());
            put(page, at + 24, &aid.to_le_bytes());
            put(page, at + 28, &branch.to_le_bytes());
            put(page, at + 32, &balance(aid).to_le_bytes());
        }
        // The checksum covers the whole page, so it must be computed last.
        let checksum = page_checksum(page, block);
        put(page, 8, &checksum.to_le_bytes());
    }
}

/// Writes `bytes` into the page at offset `at`.
pub(super) fn put(page: &mut PageBytes, at: usize, bytes: &[u8]) {
    if let Some(place) = page.get_mut(at..at + bytes.len()) {
        place.copy_from_slice(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trunkline_format::{CheckOptions, Fork, Verdict, check_page};

    #[test]
    fn template_pages_equal_those_of_the_page_builder() {
        let options = CheckOptions { checksums: true, fork: Fork::Main };
        for (rows, block) in [
            (61, 0),
            (61, 1),
            (61, 1639),
            (21, 1639),
            (61, 65_535),
            (61, 65_536),
            (1, 131_071),
            (0, 7),
            (61, 35_203_277),
        ] {
            let mut page = [0; BLOCK_SIZE];
            Template::new(rows).stamp(block, &mut page);
            assert_eq!(check_page(&page, block, &options), Verdict::Good, "block {block}");
            let mut builder = HeapPageBuilder::new(block);
            builder.all_visible();
            for account in block * 61..block * 61 + rows {
                let (aid, branch) = (account + 1, account / 100_000 + 1);
                push_account(&mut builder, aid as i32, branch as i32, balance(aid)).expect("room");
            }
            assert!(page == builder.finish(true), "block {block}");
        }
    }

    #[test]
    fn balances_are_scattered() {
        let balances: Vec<i32> = (1..=100_000).map(balance).collect();
        let sum: i32 = balances.iter().sum();
        let (least, most) = (balances.iter().min(), balances.iter().max());
        assert_eq!((least, most), (Some(&-5000), Some(&5000)));
        assert!(sum != 0 && sum.abs() < 5_000_000, "{sum}");
        let rising = balances.windows(2).filter(|pair| pair[0] < pair[1]).count();
        assert!((30_000..70_000).contains(&rising), "{rising}");
    }
}
