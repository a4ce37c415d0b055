//! Builds pages from the log: [`Replay::build`] and [`Replay::build_all`].
//!
//! ```text
//!   chains of the pages ─▶ one list, in the order of the log ─▶ record by record, each to its page
//! ```
//! So each part of the log is read once for all pages that are built together, and records of hot pages don't make it
//! read the same part for every page. Redo of a page needs only its own records in their order, so other pages make no
//! difference.

use std::time::Duration;

use trunkline_aio::facade::atomic::Ordering;
use trunkline_format::{BLOCK_SIZE, BlockNo, Fork, Lsn, PageBytes, verify_page};

use super::chain_link::{ChainLink, Part};
use super::fork_changes::ForkChanges;
use super::page_chains::ForkKey;
use super::page_redo::{PageRedo, PageRedoError};
use super::record_reader::{RecordAdvice, RecordReader};
use super::replayed::Replay;

/// A read of the log that takes longer was probably not cached. Advice about cached records costs a sixth of a copy's
/// time (decision 0043).
const WAITED: Duration = Duration::from_micros(300);

/// Upper bound on the records of one batch of pages; each takes up to 32 bytes meanwhile. A single page may exceed it,
/// because all its records are needed at once.
pub(crate) const RECORDS_MAX: u32 = 1 << 20;

/// One record of one of the pages.
struct PageRecord {
    record: Lsn,
    /// The index of the page.
    page: u32,
    part: Part,
}

impl Replay {
    /// Builds a page that is in the log. `base` reads the block of the file; `None` if the file has no
    /// such block. It is called only if the page needs it.
    ///
    /// # Errors
    /// [`PageRedoError`], or that of `base`.
    pub fn build<E: From<PageRedoError>>(
        &self,
        key: &ForkKey,
        block: BlockNo,
        base: impl FnOnce() -> Result<Option<Box<PageBytes>>, E>,
    ) -> Result<Box<PageBytes>, E> {
        let mut base = Some(base);
        let base = |_| base.take().map_or(Ok(None), |base| base());
        let built = self.build_all(key, block..block.saturating_add(1), base).pop();
        built.unwrap_or_else(|| Ok(zeros()))
    }

    /// Builds pages of a fork together, as [`Replay::build`] does. `base` is called in the order of the blocks. A page
    /// that can't be built fails alone.
    pub(crate) fn build_all<E: From<PageRedoError>>(
        &self,
        key: &ForkKey,
        blocks: impl IntoIterator<Item = BlockNo>,
        mut base: impl FnMut(BlockNo) -> Result<Option<Box<PageBytes>>, E>,
    ) -> Vec<Result<Box<PageBytes>, E>> {
        let mut steps = Vec::new();
        let mut pages: Vec<Result<PageRedo<'_>, E>> = Vec::new();
        let changes = self.fork(key);
        for block in blocks {
            let index = (pages.len() as u32, &mut steps);
            let page = self.begin(changes, (key.1, block), index, || base(block));
            pages.push(page.map(|page| PageRedo::new(&self.files, block, page)));
        }
        // The chains are in order already, which this sort makes use of.
        steps.sort_by_key(|step| step.record);
        let mut reader = self.readers.lock().pop().unwrap_or_default();
        self.apply(&mut reader, &steps, &mut pages);
        self.readers.lock().push(reader);
        pages.into_iter().map(|page| Ok(page?.finish(self.checksums)?)).collect()
    }

    /// The base of a page. Its records become steps.
    fn begin<E: From<PageRedoError>>(
        &self,
        changes: Option<&ForkChanges>,
        (fork, block): (Fork, BlockNo),
        (page, steps): (u32, &mut Vec<PageRecord>),
        base: impl FnOnce() -> Result<Option<Box<PageBytes>>, E>,
    ) -> Result<Box<PageBytes>, E> {
        let Some(changes) = changes else { return Ok(base()?.unwrap_or_else(zeros)) };
        let Some(chain) = changes.chain(block) else { return Ok(zeros()) };
        let links = self.found.chains.links(chain).map_err(PageRedoError::Spilled)?;
        let bytes = if chain.is_from_scratch || changes.is_void(block) {
            zeros()
        } else {
            let bytes = base()?.unwrap_or_else(zeros);
            let verdict = verify_page(&bytes, block, self.checksums);
            if verdict.is_valid() {
                self.check_position(&bytes)?;
                bytes
            } else if fork == Fork::Vm {
                // Changes of map pages have no images if they only clear bits, so such a page may be torn. A server
                // replaces it by zeros, too: no bit is set, which is always correct.
                zeros()
            } else {
                return Err(PageRedoError::Base { verdict }.into());
            }
        };
        let record = |link: &ChainLink| PageRecord { record: link.record, page, part: link.part };
        steps.extend(links.iter().map(record));
        Ok(bytes)
    }

    /// Applies all records. If the last pages, or a record of these, had to wait for the storage, the kernel is advised
    /// of the records ahead.
    fn apply<E: From<PageRedoError>>(
        &self,
        reader: &mut RecordReader,
        steps: &[PageRecord],
        pages: &mut [Result<PageRedo<'_>, E>],
    ) {
        let hints_are_logged = self.found.hints_are_logged;
        let mut advice = RecordAdvice::default();
        let (mut is_slow, mut has_waited) = (self.is_slow.load(Ordering::Relaxed), false);
        for (at, step) in steps.iter().enumerate() {
            if is_slow {
                advice.pass(&self.files, at, |at| steps.get(at).map(|step| step.record));
            }
            let Some(place) = pages.get_mut(step.page as usize) else { continue };
            let Ok(page) = place else { continue };
            let applied = reader.with(&self.files, step.record, |record| {
                page.apply(record, step.part, hints_are_logged)
            });
            if let Err(error) = applied {
                *place = Err(error.into());
            }
            has_waited |= reader.take_slowest() > WAITED;
            is_slow |= has_waited;
        }
        self.is_slow.store(has_waited, Ordering::Relaxed);
    }
}

fn zeros() -> Box<PageBytes> {
    Box::new([0; BLOCK_SIZE])
}
