//! **Placement**: puts an entry on the page of its level, and splits the page if it is full.
//!
//! An attempt pins the pages that are known to be needed, reserves room, and locks them. If it then turns out that another page is
//! needed, it releases everything, and the next attempt pins that page too. No page is read while the session holds room or a lock.

use std::cmp::Ordering;

use trunkline_format::btree::{BtreePage, Entry, Fault, Place, Target};
use trunkline_format::page::{LINE_POINTER_SIZE, PageHeader, is_new};
use trunkline_format::wal::resource_manager::btree_operation::{INSERT_LEAF, INSERT_UPPER};
use trunkline_format::wal::resource_manager::number;
use trunkline_format::wal::{ImageMode, NewRecord};
use trunkline_format::{BLOCK_SIZE, BlockNo, Lsn, Tid};

use super::descent::Sought;
use super::error::BtreeWriteError;
use super::locked_pages::{LockedPages, Part, pin};
use super::split::Split;
use super::unique_check::Unique;
use super::writer::BtreeWriter;
use crate::btree::{BtreeProblem, RightSteps};
use crate::heap_writer::HeapSession;
use crate::log_writer::Room;
use crate::pool::{PINS_GUARANTEED, ReadError};

/// An entry that is to be inserted.
pub(super) struct Insertion<'i> {
    pub(super) tuple: &'i [u8],
    /// The tuple, decoded.
    pub(super) entry: Entry<'i>,
    pub(super) level: u32,
    /// The left half of the split that a downlink completes.
    pub(super) child: Option<BlockNo>,
    pub(super) unique: Option<&'i Unique>,
}

impl<'i> Insertion<'i> {
    /// The entry's own place.
    fn place(&self) -> Sought<'i> {
        Sought { entry: self.entry, with_row: true }
    }

    /// Where the locks begin: in a unique index, at the first entry with the key.
    fn start(&self) -> Sought<'i> {
        Sought { with_row: self.unique.is_none(), ..self.place() }
    }
}

/// What has become of an entry.
pub(super) enum Placed {
    Inserted {
        lsn: Lsn,
    },
    Conflict {
        rows: Vec<Tid>,
    },
    /// Another session has completed the child's split.
    IsComplete,
}

/// The most pages that one record changes. A split of an internal page changes both halves, the right sibling and the child.
const CHANGED_MAX: usize = 4;

/// The pages that an attempt locks.
struct Wanted {
    /// The leaves that may have the key of a unique index, or the page.
    chain: Vec<BlockNo>,
    /// For a split, the new page, and the old right sibling of the page.
    split: Option<(BlockNo, Option<BlockNo>)>,
}

impl Wanted {
    fn at(block: BlockNo) -> Self {
        Self { chain: vec![block], split: None }
    }

    /// In the order in which they are locked.
    fn blocks(&self, child: Option<BlockNo>) -> Vec<BlockNo> {
        let (new, right) = self.split.map_or((None, None), |(new, right)| (Some(new), right));
        let right = right.filter(|right| !self.chain.contains(right));
        child.into_iter().chain(self.chain.iter().copied()).chain(new).chain(right).collect()
    }
}

/// Where the entry goes.
struct Destination {
    block: BlockNo,
    item: u16,
    right: Option<BlockNo>,
    /// The split that makes space for it, and the new page.
    split: Option<(Split, BlockNo)>,
}

/// What an attempt has found.
enum Outcome {
    Ended(Placed),
    /// The entry is inserted, and a page was split.
    Split(Lsn, BlockNo),
    /// The key is further to the right.
    Right(BlockNo),
    /// This page has an unfinished split.
    Unfinished(BlockNo),
    /// The last of these pages may have the key, too, or is on the way to one that may.
    Chain(Vec<BlockNo>),
    /// The page is full. Its right sibling is needed for the split.
    Full(Option<BlockNo>),
}

impl BtreeWriter {
    /// Inserts an entry.
    pub(super) fn place(
        &mut self,
        session: &mut HeapSession<'_>,
        insertion: &Insertion<'_>,
    ) -> Result<Placed, BtreeWriteError> {
        let block = self.descend(session, &insertion.start(), insertion.level)?;
        let mut guaranteed = PINS_GUARANTEED;
        let placed = self.place_from(session, insertion, block, &mut guaranteed);
        if guaranteed > PINS_GUARANTEED {
            session.backend.guarantee_pins(PINS_GUARANTEED)?;
        }
        placed
    }

    /// Inserts an entry on this page or to the right of it. If many pages have its key, the session's guarantee is raised.
    fn place_from(
        &mut self,
        session: &mut HeapSession<'_>,
        insertion: &Insertion<'_>,
        block: BlockNo,
        guaranteed: &mut u32,
    ) -> Result<Placed, BtreeWriteError> {
        let (mut wanted, mut steps) = (Wanted::at(block), RightSteps::default());
        loop {
            let blocks = wanted.blocks(insertion.child);
            if (1..)
                .zip(&blocks)
                .any(|(next, block)| blocks.iter().skip(next).any(|it| it == block))
            {
                // Links lead back to a page that is needed already. Nothing is locked twice.
                let count = self.index.relation().blocks().map_err(ReadError::from)?;
                return Err(self
                    .index
                    .corrupt(block, BtreeProblem::Circle { blocks: count })
                    .into());
            }
            let pins = blocks.len() as u32;
            if pins > *guaranteed {
                session.backend.guarantee_pins(pins)?;
                *guaranteed = pins;
            }
            match self.attempt(session, insertion, (&wanted, &blocks))? {
                Outcome::Ended(placed) => return Ok(placed),
                Outcome::Split(lsn, left) => {
                    // The entry is in the index, whatever becomes of this. If it fails, the next insert finds the split
                    // unfinished, and tries it again.
                    let _ = self.finish_split(session, left, insertion.level);
                    return Ok(Placed::Inserted { lsn });
                }
                Outcome::Right(right) => {
                    steps.count(&self.index, right)?;
                    wanted = Wanted::at(right);
                }
                Outcome::Unfinished(left) => self.finish_split(session, left, insertion.level)?,
                // The pages as they are linked now: a page may have been split since, and locks go from left to right.
                Outcome::Chain(chain) => wanted = Wanted { chain, split: None },
                Outcome::Full(right) => wanted.split = Some((self.new_page(session)?, right)),
            }
        }
    }

    fn attempt(
        &mut self,
        session: &mut HeapSession<'_>,
        insertion: &Insertion<'_>,
        (wanted, blocks): (&Wanted, &[BlockNo]),
    ) -> Result<Outcome, BtreeWriteError> {
        let relation = self.index.relation().clone();
        let pins = pin(session, &relation, blocks)?;
        // The data of a split are less than two pages.
        let data = insertion.tuple.len() + if wanted.split.is_some() { 2 * BLOCK_SIZE } else { 0 };
        // Most of a chain is only looked at.
        let mut room = session.room_for_pages(pins.len().min(CHANGED_MAX) as u64, data)?;
        let mut pages = LockedPages::lock(session, &relation, &pins)?;
        if let Some(child) = insertion.child
            && let Some(page) = pages.get(child)
        {
            let page = self.open(child, page, insertion.level - 1)?;
            // It may even have been split again since.
            if !page.is_split_incomplete() || page.right() != insertion.entry.child() {
                return Ok(Outcome::Ended(Placed::IsComplete));
            }
        }
        let destination = match self.find(&pages, insertion, wanted)? {
            Ok(destination) => destination,
            Err(outcome) => return Ok(outcome),
        };
        let block = destination.block;
        match &destination.split {
            None => {
                let lsn = insert(session, &mut room, &mut pages, (insertion, &destination))?;
                Ok(Outcome::Ended(Placed::Inserted { lsn }))
            }
            Some((planned, new)) => {
                let blocks = (block, *new, destination.right);
                let lsn = split(session, &mut room, &mut pages, (insertion, planned, blocks))?;
                self.spare = None;
                Ok(Outcome::Split(lsn, block))
            }
        }
    }

    /// Finds where the entry goes, or what must happen first.
    fn find(
        &mut self,
        pages: &LockedPages<'_>,
        insertion: &Insertion<'_>,
        wanted: &Wanted,
    ) -> Result<Result<Destination, Outcome>, BtreeWriteError> {
        let layout = self.index.layout();
        let Some(&first) = wanted.chain.first() else { unreachable!("a chain is never empty") };
        let (mut block, mut rows, mut found) = (first, Vec::new(), None);
        let (mut steps, mut visited) = (RightSteps::default(), Vec::new());
        loop {
            let at = |fault| self.fault(block, fault);
            visited.push(block);
            let Some(bytes) = pages.get(block) else { return Ok(Err(Outcome::Chain(visited))) };
            let page = self.open(block, bytes, insertion.level)?;
            if page.is_split_incomplete() && !page.is_ignored() {
                return Ok(Err(Outcome::Unfinished(block)));
            }
            let item = match insertion.start().place_on(layout, &page).map_err(at)? {
                Place::Right(right) if block == first => return Ok(Err(Outcome::Right(right))),
                Place::Right(right) => {
                    steps.count(&self.index, right)?;
                    block = right;
                    continue;
                }
                Place::Item(_) if page.is_ignored() => {
                    let location = self.index.relation().location(block);
                    return Err(BtreeWriteError::EndOfLevel { location });
                }
                Place::Item(item) => item,
            };
            if found.is_none()
                && let Place::Item(item) = insertion.place().place_on(layout, &page).map_err(at)?
            {
                found = Some((block, item, page));
            }
            let Some(unique) = insertion.unique else { break };
            let start = (item, &insertion.entry);
            let more = unique.collect(layout, &page, start, &mut rows).map_err(at)?;
            let Some(right) = page.right().filter(|_| more) else { break };
            steps.count(&self.index, right)?;
            block = right;
        }
        if !rows.is_empty() {
            return Ok(Err(Outcome::Ended(Placed::Conflict { rows })));
        }
        let Some((block, item, page)) = found else {
            let location = self.index.relation().location(block);
            return Err(BtreeWriteError::EndOfLevel { location });
        };
        self.check_place(insertion, (block, item), &page)?;
        let right = page.right();
        if pages.get(block).is_some_and(|bytes| has_space(&PageHeader::parse(bytes), insertion)) {
            return Ok(Ok(Destination { block, item, right, split: None }));
        }
        let Some((new, _)) = wanted.split.filter(|(_, known)| *known == right) else {
            return Ok(Err(Outcome::Full(right)));
        };
        if pages.get(new).is_none_or(|page| !is_new(page)) {
            self.spare = None;
            return Ok(Err(Outcome::Full(right)));
        }
        if let Some(right) = right
            && let Some(bytes) = pages.get(right)
        {
            let found = self.open(right, bytes, insertion.level)?.left().unwrap_or(0);
            if found != block {
                let sibling = BtreeProblem::Sibling { found, expected: block };
                return Err(self.index.corrupt(right, sibling).into());
            }
        }
        let at = |fault| self.fault(block, fault);
        let split = Split::of(self.index.layout(), &page, (item, insertion.tuple)).map_err(at)?;
        match split {
            Some(split) => Ok(Ok(Destination { block, item, right, split: Some((split, new)) })),
            None => Err(BtreeWriteError::NoSplit {
                location: self.index.relation().location(block),
                size: insertion.tuple.len(),
            }),
        }
    }

    /// Checks what is around the entry's place: a leaf doesn't have the row yet, and a downlink follows that of its left sibling.
    fn check_place(
        &self,
        insertion: &Insertion<'_>,
        (block, item): (BlockNo, u16),
        page: &BtreePage<'_>,
    ) -> Result<(), BtreeWriteError> {
        let at = |fault: Fault| self.fault(block, fault);
        let location = || self.index.relation().location(block);
        if let Some(child) = insertion.child {
            return match page.child_before(item).map_err(at)? == child {
                true => Ok(()),
                false => Err(BtreeWriteError::LostParent { location: location(), child }),
            };
        }
        if item > page.count() {
            return Ok(());
        }
        let (next, row) = (page.entry(item).map_err(at)?, insertion.entry.first_row());
        let keys = self.index.layout().compare_entries(&next, &insertion.entry, false);
        if keys.map_err(at)? != Ordering::Equal || next.first_row() > row {
            return Ok(());
        }
        let (location, row) = (location().at_item(item), row.unwrap_or_default());
        match next.target() {
            Target::Rows(rows) if !rows.into_iter().any(|other| other == row) => {
                Err(BtreeWriteError::PostingList { location, row })
            }
            _ => Err(BtreeWriteError::Exists { location, row }),
        }
    }
}

/// Whether the entry and its line pointer fit on a page.
fn has_space(header: &PageHeader, insertion: &Insertion<'_>) -> bool {
    let needed = insertion.tuple.len().next_multiple_of(8) + usize::from(LINE_POINTER_SIZE);
    usize::from(header.upper).saturating_sub(header.lower.into()) >= needed
}

/// Adds the entry to a page with space.
fn insert(
    session: &mut HeapSession<'_>,
    room: &mut Room,
    pages: &mut LockedPages<'_>,
    (insertion, destination): (&Insertion<'_>, &Destination),
) -> Result<Lsn, BtreeWriteError> {
    let main: &[&[u8]] = &[&destination.item.to_le_bytes()];
    let info = if insertion.child.is_some() { INSERT_UPPER } else { INSERT_LEAF };
    let operation = NewRecord::plain(number::BTREE, info, session.xid, main);
    let (image, data): (_, &[&[u8]]) = (ImageMode::IfNeeded, &[insertion.tuple]);
    let mut parts = vec![Part { id: 0, block: destination.block, image, data }];
    parts.extend(insertion.child.map(|block| Part { id: 1, block, image, data: &[] }));
    pages.change(session.changer, room, &operation, &parts)
}

/// Splits a page between itself and a new one.
fn split(
    session: &mut HeapSession<'_>,
    room: &mut Room,
    pages: &mut LockedPages<'_>,
    (insertion, split, blocks): (&Insertion<'_>, &Split, (BlockNo, BlockNo, Option<BlockNo>)),
) -> Result<Lsn, BtreeWriteError> {
    let (left, new, right) = blocks;
    let main: &[&[u8]] = &[&split.main];
    let operation = NewRecord::plain(number::BTREE, split.info, session.xid, main);
    let image = ImageMode::IfNeeded;
    let (left_data, right_data): (&[&[u8]], &[&[u8]]) = (&[&split.left], &[&split.right]);
    let mut parts = vec![
        Part { id: 0, block: left, image, data: left_data },
        Part { id: 1, block: new, image: ImageMode::WillInit, data: right_data },
    ];
    parts.extend(right.map(|block| Part { id: 2, block, image, data: &[] }));
    parts.extend(insertion.child.map(|block| Part { id: 3, block, image, data: &[] }));
    pages.change(session.changer, room, &operation, &parts)
}
