//! **Log check**: applies a log to pages in memory, and compares them with the server's own.
//!
//! ```text
//!   record ─▶ redo ─▶ our page ──────────┐
//!      │                                 ├─▶ compare, under the server's masks ─▶ finding
//!      ╰ consistency image ─▶ its page ──╯
//! ```
//! With `wal_consistency_checking`, a server adds to each record the images of its pages after the
//! change. They are not for recovery but for a comparison like this one. So a log is its own judge: it
//! shows whether our redo does what the server has done, and whether the log is sound.
//!
//! **Bases.** The check starts without pages, and reads none. A page is known from its first image or
//! initialisation on. Until then its records can't be applied, and are counted as without a base. A
//! page is forgotten when a file is created or cut off, or when memory is needed for others.
//!
//! **After a difference**, the server's page is taken, so that one wrong rule is one finding.
//!
//! **Visibility map.** A server compares nothing on map pages. We do, with two exceptions that are no
//! faults of either side:
//!
//! - Older minor releases clear bits before they log the change that clears them. If `VACUUM` logs the
//!   page between the two, its image lacks a bit that the log still has. We remember the bit, and it is
//!   a finding if it is set again without having been cleared.
//! - `CREATE DATABASE … STRATEGY wal_log` logs map pages as if their contents were a hole, so that the
//!   log has no bits of the copy. Such an image is no base.

mod known_pages;
mod report;

use std::collections::BTreeSet;

use trunkline_format::wal::redo::{
    Change, RedoError, Redone, cleared_map_bits, derived_pages, first_difference, redo,
    redo_derived, requires_base, restore,
};
use trunkline_format::wal::resource_manager::{number, operation_name};
use trunkline_format::wal::{
    BlockRef, Effect, LogRecord, PageImage, RelFileLocator, ResourceManager,
};
use trunkline_format::{BLOCK_SIZE, BlockNo, Fork, PageBytes, visibility_map};

use known_pages::{KnownPages, PageName};
use report::Counted;
pub use report::{LogFinding, LogFindingKind, LogReport, OperationCounts};

/// `XLOG_HEAP2_VISIBLE`: sets bits of the visibility map. Gone since 19.
const VISIBLE: u8 = 0x40;

/// The number of map bits that are remembered as cleared ahead of their record.
const AHEAD_MAX: usize = 100_000;

/// Applies the records of a log, in order.
#[derive(Debug)]
pub struct LogCheck {
    hints_are_logged: bool,
    pages: KnownPages,
    /// Heap blocks whose map bits the server has cleared, while the record is still to come.
    ahead: BTreeSet<(RelFileLocator, BlockNo)>,
    report: LogReport,
    /// The page that redo works on, and the server's.
    ours: Box<PageBytes>,
    theirs: Box<PageBytes>,
}

impl LogCheck {
    /// Begins a check that remembers at most `pages_max` pages, at least one. `hints_are_logged` is
    /// whether the cluster has checksums or `wal_log_hints`.
    pub fn new(hints_are_logged: bool, pages_max: usize) -> Self {
        Self {
            hints_are_logged,
            pages: KnownPages::new(pages_max),
            ahead: BTreeSet::new(),
            report: LogReport::default(),
            ours: Box::new([0; BLOCK_SIZE]),
            theirs: Box::new([0; BLOCK_SIZE]),
        }
    }

    /// What was found so far.
    pub fn report(&self) -> &LogReport {
        &self.report
    }

    /// Ends the check.
    pub fn finish(self) -> LogReport {
        self.report
    }

    /// Applies the next record.
    pub fn apply(&mut self, found: &LogRecord<'_>) {
        let header = found.record.header();
        let operation = operation_name(header, found.version).unwrap_or("unknown");
        self.report.count(ResourceManager(header.manager), operation, Counted::Record);
        let change = Change::of(found, self.hints_are_logged);
        for derived in derived_pages(&found.record, found.version) {
            let name = PageName::new(derived.relation, derived.fork, derived.block);
            if self.pages.read(name, &mut self.ours) {
                redo_derived(&mut self.ours, &change, derived.block);
                self.pages.write(name, &self.ours);
            }
        }
        self.note_cleared_bits(found);
        self.forget_files(found);
        for block in found.record.blocks() {
            let counted = self.apply_to_page(found, &change, block);
            self.report.count(ResourceManager(header.manager), operation, counted);
        }
    }

    fn apply_to_page(
        &mut self,
        found: &LogRecord<'_>,
        change: &Change<'_>,
        block: &BlockRef<'_>,
    ) -> Counted {
        let name = PageName::new(block.relation, block.fork, block.block);
        let is_known = self.pages.read(name, &mut self.ours);
        let counted = match is_known || !requires_base(block) {
            false => Counted::WithoutBase,
            true => match redo(&mut self.ours, change, block.id) {
                Ok(Redone::NotSupported { .. }) => Counted::NotSupported,
                Ok(Redone::MissingBase) => Counted::WithoutBase,
                Ok(Redone::AlreadyNewer | Redone::Unchanged) => return Counted::Unchanged,
                Ok(Redone::Restored) => Counted::Restored,
                Ok(Redone::Initialised | Redone::Applied) => Counted::Applied,
                Err(error) => self.find(found, block, LogFindingKind::Redo(error)),
            },
        };
        let image = block.image.filter(|image| !image.applies());
        match (counted, image) {
            (Counted::Applied, Some(image)) => self.compare(found, block, &image),
            (Counted::Restored, _) if lacks_map_bits(block) => {
                self.pages.forget(name);
                counted
            }
            (Counted::Applied | Counted::Restored, _) => {
                self.pages.write(name, &self.ours);
                counted
            }
            // The server's page is where we go on.
            (_, Some(image)) => {
                let restored = restore(&mut self.theirs, &image, found.end);
                self.keep_theirs(found, block, restored.map_err(RedoError::from).err());
                counted
            }
            (_, None) => {
                self.pages.forget(name);
                counted
            }
        }
    }

    /// Compares our page with the image in the record.
    fn compare(
        &mut self,
        found: &LogRecord<'_>,
        block: &BlockRef<'_>,
        image: &PageImage<'_>,
    ) -> Counted {
        if let Err(error) = restore(&mut self.theirs, image, found.end) {
            self.keep_theirs(found, block, Some(error.into()));
            return Counted::Different;
        }
        let manager = ResourceManager(found.record.header().manager);
        let (ours, theirs) = (&self.ours, &self.theirs);
        let differs = first_difference(ours, theirs, manager, block.fork, block.block);
        let Some(offset) = differs else {
            let name = PageName::new(block.relation, block.fork, block.block);
            self.pages.write(name, &self.ours);
            return Counted::Same;
        };
        let kind = LogFindingKind::Different {
            offset,
            ours: ours.get(offset).copied().unwrap_or_default(),
            theirs: theirs.get(offset).copied().unwrap_or_default(),
        };
        let counted = match self.are_bits_ahead(found, block) {
            true => Counted::Same,
            false => self.find(found, block, kind),
        };
        self.keep_theirs(found, block, None);
        counted
    }

    /// Takes the server's page, unless it couldn't be restored.
    fn keep_theirs(
        &mut self,
        found: &LogRecord<'_>,
        block: &BlockRef<'_>,
        error: Option<RedoError>,
    ) {
        let name = PageName::new(block.relation, block.fork, block.block);
        match error {
            None => self.pages.write(name, &self.theirs),
            Some(error) => {
                self.find(found, block, LogFindingKind::Redo(error));
                self.pages.forget(name);
            }
        }
    }

    fn find(
        &mut self,
        found: &LogRecord<'_>,
        block: &BlockRef<'_>,
        kind: LogFindingKind,
    ) -> Counted {
        let header = found.record.header();
        self.report.find(LogFinding {
            position: found.start,
            manager: ResourceManager(header.manager),
            operation: operation_name(header, found.version).unwrap_or("unknown"),
            reference: block.id,
            relation: block.relation,
            fork: block.fork,
            block: block.block,
            kind,
        });
        Counted::Different
    }

    /// Whether a map page differs only by bits that the server has cleared already, ahead of the
    /// records that say so. Remembers these bits.
    fn are_bits_ahead(&mut self, found: &LogRecord<'_>, block: &BlockRef<'_>) -> bool {
        let header = found.record.header();
        let is_visible = header.manager == number::HEAP2 && header.operation() == VISIBLE;
        if block.fork != Fork::Vm || !is_visible {
            return false;
        }
        let mut cleared = Vec::new();
        let ours = visibility_map::covered(&self.ours, block.block);
        for ((heap_block, ours), (_, theirs)) in
            ours.zip(visibility_map::covered(&self.theirs, block.block))
        {
            let is_more = (theirs.all_visible && !ours.all_visible)
                || (theirs.all_frozen && !ours.all_frozen);
            if is_more {
                return false;
            }
            if ours != theirs {
                cleared.push((block.relation, heap_block));
            }
        }
        self.report.bits_ahead += cleared.len() as u64;
        if self.ahead.len() < AHEAD_MAX {
            self.ahead.extend(cleared);
        }
        true
    }

    /// Removes bits from those that are ahead of the log. A bit that is set again must have been
    /// cleared by a record.
    fn note_cleared_bits(&mut self, found: &LogRecord<'_>) {
        if self.ahead.is_empty() {
            return;
        }
        let header = found.record.header();
        let Some(first) = found.record.block(0) else { return };
        for heap_block in cleared_map_bits(&found.record, found.version) {
            self.ahead.remove(&(first.relation, heap_block));
        }
        let is_visible = header.manager == number::HEAP2 && header.operation() == VISIBLE;
        if let Some(heap) = found.record.block(1).filter(|_| is_visible)
            && self.ahead.remove(&(heap.relation, heap.block))
        {
            self.find(found, heap, LogFindingKind::MapBitNeverCleared);
        }
    }

    /// Forgets the pages of files that are made anew or cut off.
    fn forget_files(&mut self, found: &LogRecord<'_>) {
        match Effect::of(&found.record, found.version) {
            Ok(Some(Effect::Create { relation, fork })) => self.pages.cut(relation, fork, 0),
            Ok(Some(Effect::Truncate(cut))) => {
                if cut.main {
                    self.pages.cut(cut.relation, Fork::Main, cut.blocks);
                }
                if cut.visibility_map {
                    let blocks = cut.blocks.div_ceil(visibility_map::BLOCKS_PER_PAGE);
                    self.pages.cut(cut.relation, Fork::Vm, blocks);
                    let gone = (cut.relation, cut.blocks)..=(cut.relation, BlockNo::MAX);
                    let gone: Vec<_> = self.ahead.range(gone).copied().collect();
                    gone.iter().for_each(|bit| _ = self.ahead.remove(bit));
                }
                if cut.free_space_map {
                    self.pages.cut(cut.relation, Fork::Fsm, 0);
                }
            }
            _ => {}
        }
    }
}

/// Whether the image of a map page leaves out its contents.
fn lacks_map_bits(block: &BlockRef<'_>) -> bool {
    block.fork == Fork::Vm && block.image.is_some_and(|image| image.hole_length() > 0)
}
