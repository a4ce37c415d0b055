//! Prunes a page and freezes its tuples, and makes dead line pointers unused (PostgreSQL's `heap_page_prune_and_freeze`
//! and `lazy_vacuum_heap_page`).
//!
//! A prune moves the items of its page, so it needs the cleanup lock: no other session may have the page pinned, since it
//! could hold a reference to a tuple. A prune on access does nothing if it can't get that lock. Vacuum waits for it, but
//! before it has room in the WAL, for a session with a pin may itself wait for room. When it has room, it tries the lock
//! again, and waits again if it does not get it.

use trunkline_format::page::{LinePointerFlags, PageHeader, is_new, line_pointer};
use trunkline_format::transam::FIRST_NORMAL_XID;
use trunkline_format::wal::heap_flags::prune_flags::{
    CLEANUP_LOCK, HAS_CONFLICT_HORIZON, HAS_DEAD, HAS_PLANS, HAS_REDIRECTED, HAS_UNUSED,
};
use trunkline_format::wal::resource_manager::heap2_operation::{
    PRUNE, PRUNE_VACUUM_CLEANUP, PRUNE_VACUUM_SCAN,
};
use trunkline_format::wal::resource_manager::number;
use trunkline_format::wal::{ImageMode, NewRecord};
use trunkline_format::{BLOCK_SIZE, BlockNo, Lsn, PageBytes, Tid};

use super::error::HeapWriteError;
use super::freeze_plan::FreezePlan;
use super::prune_plan::PrunePlan;
use super::session::{HeapSession, cancelled};
use super::tuple_states::{TupleStates, Unknown, xids_of};
use super::writer::HeapWriter;
use crate::log_writer::Room;
use crate::page_change::ChangedPage;
use crate::pool::PageMut;

/// Why a page is pruned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PruneReason {
    /// A session that reads the page has found something to prune.
    OnAccess,
    /// The first pass of `VACUUM`.
    Vacuum,
}

/// How a page is pruned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PruneOptions {
    /// Why.
    pub reason: PruneReason,
    /// All transactions before this XID have ended, and no snapshot needs what they have removed (`OldestXmin`).
    pub horizon: u32,
    /// If a tuple has an XID before this one, the page is frozen (`FreezeLimit`). `None` freezes nothing. It must not be
    /// newer than `horizon`.
    pub freeze_limit: Option<u32>,
}

/// What a prune has changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pruned {
    /// How many line pointers were redirected.
    pub redirected: u16,
    /// The line pointers that have become dead. They can become unused when no index names them.
    pub dead: Vec<u16>,
    /// How many line pointers have become unused.
    pub unused: u16,
    /// How many tuples were frozen.
    pub frozen: u16,
    /// The end of the record. `None` if there was nothing to do, or the page could not be pruned now.
    pub lsn: Option<Lsn>,
}

impl HeapWriter {
    /// Prunes a page, and freezes tuples. If another session has the page pinned, a prune on access does nothing, and a
    /// prune of vacuum waits. This session must not have the page pinned, since it would wait for itself. Only one session
    /// at a time may vacuum a table: two that wait for one page have both pinned it, and would wait for each other.
    ///
    /// # Errors
    /// [`HeapWriteError`]; nothing was changed.
    pub fn prune(
        &mut self,
        session: &mut HeapSession<'_>,
        block: BlockNo,
        options: &PruneOptions,
    ) -> Result<Pruned, HeapWriteError> {
        let mut states = TupleStates::new(options.horizon);
        loop {
            let pin = session.backend.read(&self.relation, block)?;
            let locked = match options.reason {
                PruneReason::OnAccess => pin.page().try_cleanup(),
                PruneReason::Vacuum => {
                    Some(session.backend.cleanup_lock(pin.page()).map_err(cancelled)?)
                }
            };
            let Some(locked) = locked else { return Ok(Pruned::default()) };
            let xids = xids_of(&locked);
            drop(locked);
            states.read(&xids, session)?;
            // No more than two bytes for each of the page's line pointers, and a plan for each tuple at worst.
            let sizes = (1, 1, BLOCK_SIZE as u64);
            let mut room = session.changer.room(session.backend.session(), sizes)?;
            let Some(mut page) = pin.page().try_cleanup() else { continue };
            match plans(&page, &states, options) {
                Ok((prune, freeze)) if prune.is_empty() && freeze.is_empty() => {
                    return Ok(Pruned::default());
                }
                Ok(plans) => {
                    return self.log_prune(session, (&mut room, &mut page), block, options, plans);
                }
                Err(Unknown::Status) => {}
                Err(unknown) => return Err(self.refusal(block, unknown)),
            }
        }
    }

    fn log_prune(
        &self,
        session: &mut HeapSession<'_>,
        (room, page): (&mut Room, &mut PageMut<'_>),
        block: BlockNo,
        options: &PruneOptions,
        (prune, freeze): (PrunePlan, FreezePlan),
    ) -> Result<Pruned, HeapWriteError> {
        let info = match options.reason {
            PruneReason::OnAccess => PRUNE,
            PruneReason::Vacuum => PRUNE_VACUUM_SCAN,
        };
        let removed = prune.newest_removed;
        let newest = if freeze.is_empty() { removed } else { before(options.horizon) };
        let record = PruneRecord::new(&prune, &freeze);
        let lsn =
            self.log_lists(session, (room, page), (block, info), (CLEANUP_LOCK, newest), &record)?;
        Ok(Pruned {
            redirected: prune.redirected.len() as u16,
            unused: prune.unused.len() as u16,
            frozen: freeze.count(),
            dead: prune.dead,
            lsn: Some(lsn),
        })
    }

    /// Makes dead line pointers unused. No index may name them any more. Returns the end of the record, or `None` if there
    /// are no line pointers.
    ///
    /// # Errors
    /// [`HeapWriteError`]; nothing was changed. [`HeapWriteError::NotDead`] if one of the line pointers is not dead.
    pub fn remove_dead(
        &mut self,
        session: &mut HeapSession<'_>,
        block: BlockNo,
        items: &[u16],
    ) -> Result<Option<Lsn>, HeapWriteError> {
        if items.is_empty() {
            return Ok(None);
        }
        let pin = session.backend.read(&self.relation, block)?;
        let sizes = (1, 1, BLOCK_SIZE as u64);
        let mut room = session.changer.room(session.backend.session(), sizes)?;
        let mut page = session.backend.write_lock(pin.page()).map_err(cancelled)?;
        let mut unused = items.to_vec();
        unused.sort_unstable();
        unused.dedup();
        let count = PageHeader::parse(&page).line_pointer_count();
        for item in &unused {
            let pointer = line_pointer(&page, *item).filter(|_| *item <= count);
            if pointer.is_none_or(|pointer| pointer.flags != LinePointerFlags::Dead) {
                let location = self.at(Tid { block, item: *item });
                return Err(HeapWriteError::NotDead { location });
            }
        }
        let prune = PrunePlan { unused, ..PrunePlan::default() };
        let record = PruneRecord::new(&prune, &FreezePlan::default());
        let pages = (&mut room, &mut page);
        self.log_lists(session, pages, (block, PRUNE_VACUUM_CLEANUP), (0, 0), &record).map(Some)
    }

    /// Logs a prune record.
    fn log_lists(
        &self,
        session: &mut HeapSession<'_>,
        (room, page): (&mut Room, &mut PageMut<'_>),
        (block, info): (BlockNo, u8),
        (lock, newest): (u16, u32),
        record: &PruneRecord,
    ) -> Result<Lsn, HeapWriteError> {
        let conflict = if newest == 0 { 0 } else { HAS_CONFLICT_HORIZON };
        // The reason is in the operation already: 0, 1 or 2.
        let reason = (info >> 4) - 1;
        let mut main = vec![reason, (record.flags | lock | conflict) as u8];
        if newest != 0 {
            main.extend_from_slice(&newest.to_le_bytes());
        }
        let main_data: &[&[u8]] = &[&main];
        let operation = NewRecord::plain(number::HEAP2, info, session.xid, main_data);
        let (relation, image) = (&self.relation, ImageMode::IfNeeded);
        let data: &[&[u8]] = &[&record.data];
        let changed = ChangedPage { relation, block, page, image, data };
        Ok(session.changer.change(room, &operation, &mut [changed])?.end)
    }

    /// Why a page can't be pruned, frozen, or marked all-visible.
    pub(super) fn refusal(&self, block: BlockNo, unknown: Unknown) -> HeapWriteError {
        let at = |item: u16| self.at(Tid { block, item });
        match unknown {
            Unknown::Status => unreachable!("the caller reads the statuses again"),
            Unknown::Multixact { item, multixact } => {
                HeapWriteError::Multixact { location: at(item), multixact }
            }
            Unknown::Damaged { item } => HeapWriteError::Damaged { location: at(item) },
            Unknown::NotInChain { item } => HeapWriteError::NotInChain { location: at(item) },
            Unknown::NotFrozen { item, xid, status } => {
                HeapWriteError::NotFrozen { location: at(item), xid, status }
            }
        }
    }
}

/// The plans for a page.
fn plans(
    page: &PageBytes,
    states: &TupleStates,
    options: &PruneOptions,
) -> Result<(PrunePlan, FreezePlan), Unknown> {
    if is_new(page) {
        return Ok(Default::default());
    }
    let prune = PrunePlan::new(page, states)?;
    let freeze = match options.freeze_limit {
        Some(limit) => FreezePlan::new(page, &prune, states, limit)?,
        None => FreezePlan::default(),
    };
    Ok((prune, freeze))
}

/// The lists of a prune record (`xl_heap_prune`).
struct PruneRecord {
    flags: u16,
    data: Vec<u8>,
}

impl PruneRecord {
    fn new(prune: &PrunePlan, freeze: &FreezePlan) -> Self {
        let mut record = Self { flags: 0, data: Vec::new() };
        let (plans, frozen) = freeze.to_record();
        if !freeze.is_empty() {
            record.flags |= HAS_PLANS;
            record.data.extend_from_slice(&plans);
        }
        let redirected: Vec<u16> =
            prune.redirected.iter().flat_map(|(from, to)| [*from, *to]).collect();
        record.add(HAS_REDIRECTED, prune.redirected.len(), &redirected);
        record.add(HAS_DEAD, prune.dead.len(), &prune.dead);
        record.add(HAS_UNUSED, prune.unused.len(), &prune.unused);
        record.data.extend_from_slice(&frozen);
        record
    }

    fn add(&mut self, flag: u16, count: usize, numbers: &[u16]) {
        if count > 0 {
            self.flags |= flag;
            self.data.extend_from_slice(&(count as u16).to_le_bytes());
            self.data.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
        }
    }
}

/// The XID before this one (`TransactionIdRetreat`).
fn before(xid: u32) -> u32 {
    if xid <= FIRST_NORMAL_XID { u32::MAX } else { xid - 1 }
}
