//! Multixacts of a cluster that is open for writing (PostgreSQL's `multixact.c`): IDs that stand for several transactions
//! with a lock on the same row.
//!
//! ```text
//!   create:  pin the pages ─▶ room ─▶ lock them ─▶ ZERO_OFF_PAGE, ZERO_MEM_PAGE of new ones ─▶ CREATE_ID ─▶ entries
//! ```
//! The pages are in the buffer pool, like those of the commit log: they have no header, their LSN is in the descriptor, and
//! none is written before its records are durable. So the files never have an entry that redo doesn't know, and there is
//! nothing to remove when the cluster is opened (`TrimMultiXact`).
//!
//! One session at a time creates a multixact. Each one also sets the offset of the next, so that its own end is known
//! without the counters. So the page of the next one's offset always exists, as in servers since 2025.

use trunkline_aio::facade::{Mutex, MutexGuard};
use trunkline_format::control::Checkpoint;
use trunkline_format::transam::multixact::{
    MEMBERS_MAX, MEMBERS_PER_PAGE, Member, MemberStatus, MultixactLayout, member_at, member_place,
    next_multi, set_member,
};
use trunkline_format::transam::{Slru, SlruPosition};
use trunkline_format::wal::NewRecord;
use trunkline_format::wal::resource_manager::multixact_operation::{
    CREATE_ID, ZERO_MEMBERS_PAGE, ZERO_OFFSETS_PAGE,
};
use trunkline_format::wal::resource_manager::number;
use trunkline_format::{BlockNo, PgVersion};

use super::error::WritableClusterError;
use crate::heap_writer::{Multixacts, StatusError};
use crate::log_writer::LogWriterError;
use crate::page_change::Changer;
use crate::pool::{Backend, PageMut, Pin};
use crate::storage::{Relation, Storage};

/// The most members of a new multixact, so that they are on at most two pages.
const NEW_MEMBERS_MAX: usize = 1000;

/// How far the next multixact may be from the oldest one that rows have: 3 million less than half of all
/// (`multiStopLimit`).
const MULTIXACTS_MAX: u32 = (1 << 31) - 3_000_000;

/// The last member. Numbers of members have 32 bits, and would wrap around.
const LAST_MEMBER: u64 = u32::MAX as u64;

/// The multixacts of a cluster.
#[derive(Debug)]
pub(super) struct PooledMultixacts {
    layout: MultixactLayout,
    offsets: Relation,
    members: Relation,
    oldest: u32,
    /// Held by the session that creates one.
    next: Mutex<NextMultixact>,
}

/// Number and first member of the next multixact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NextMultixact {
    pub(super) number: u32,
    pub(super) member: u64,
}

/// The right to create the next multixact.
type NextGuard<'m> = MutexGuard<'m, NextMultixact>;

/// A page that a new multixact changes.
struct ChangedPage {
    /// Whether it has no entries yet.
    is_new: bool,
    slru: Slru,
    number: BlockNo,
    pin: Pin,
}

impl PooledMultixacts {
    /// The multixacts of a cluster that was shut down.
    pub(super) fn new(storage: &Storage, checkpoint: &Checkpoint) -> Self {
        let next =
            NextMultixact { number: checkpoint.next_multi, member: checkpoint.next_multi_offset };
        Self {
            layout: MultixactLayout::of(PgVersion::V18),
            offsets: storage.slru(Slru::Offsets),
            members: storage.slru(Slru::Members),
            oldest: checkpoint.oldest_multi,
            next: Mutex::new(next),
        }
    }

    /// The next multixact. Waits until one that is being created has been: its record may be before the redo point of the
    /// checkpoint that asks. The caller must have no room in the WAL.
    pub(super) fn next(&self) -> NextMultixact {
        *self.next.lock()
    }

    fn create(
        &self,
        backend: &mut Backend,
        changer: &mut Changer,
        members: &[(u32, MemberStatus)],
    ) -> Result<u32, WritableClusterError> {
        let (changed, first, after, mut next) = loop {
            // The session that creates one may wait for I/O that this session has staged.
            backend.session().submit();
            let seen = self.next();
            // Member 0 is never used, since 0 says that there is no multixact.
            let first = seen.member.max(1);
            let after = self.after(seen, first, members.len())?;
            if let Some((changed, next)) = self.pin_pages(backend, seen, (first, after))? {
                break (changed, first, after, next);
            }
        };
        let new_pages = changed.iter().filter(|page| page.is_new).count() as u64;
        let data = 12 + 8 * (members.len() as u64 + new_pages);
        let mut room = changer.room(backend.session(), (1 + new_pages, 0, data))?;
        let mut pages: Vec<(&ChangedPage, PageMut<'_>)> = Vec::with_capacity(changed.len());
        for page in &changed {
            let locked = backend.write_lock(page.pin.page()).map_err(LogWriterError::from)?;
            pages.push((page, locked));
        }
        let inserter = changer.inserter();
        for (page, locked) in &mut pages {
            // A checkpoint that begins after the record must write the page.
            locked.mark_dirty();
            if page.is_new {
                let operation = match page.slru {
                    Slru::Offsets => ZERO_OFFSETS_PAGE,
                    _ => ZERO_MEMBERS_PAGE,
                };
                let main_data: &[&[u8]] = &[&u64::from(page.number).to_le_bytes()];
                let record = NewRecord::plain(number::MULTIXACT, operation, 0, main_data);
                let place = inserter.insert(&mut room, &record)?;
                locked.fill(0);
                locked.raise_lsn(place.end);
            }
        }
        let main_data = create_id(next.number, first, members);
        let main_data: &[&[u8]] = &[&main_data];
        let record = NewRecord::plain(number::MULTIXACT, CREATE_ID, 0, main_data);
        let place = inserter.insert(&mut room, &record)?;
        self.set_entries((next.number, first), members, &mut pages);
        for (_, locked) in &mut pages {
            locked.raise_lsn(place.end);
        }
        let created = next.number;
        *next = after;
        Ok(created)
    }

    /// What is next after a multixact with this first member and number of members.
    fn after(
        &self,
        next: NextMultixact,
        first: u64,
        members: usize,
    ) -> Result<NextMultixact, WritableClusterError> {
        assert!(members > 0, "a multixact without members");
        if members > NEW_MEMBERS_MAX {
            return Err(WritableClusterError::TooManyMembers { members, most: NEW_MEMBERS_MAX });
        }
        let member = first + members as u64;
        if next.number.wrapping_sub(self.oldest) >= MULTIXACTS_MAX || member > LAST_MEMBER {
            return Err(WritableClusterError::MultixactsExhausted {
                next: next.number,
                member: next.member,
                oldest: self.oldest,
            });
        }
        Ok(NextMultixact { number: next_multi(next.number), member })
    }

    /// Pins the pages that a multixact changes. Those that begin with one of its entries are new. Also returns the right to
    /// create it. `None` if another session has created it.
    ///
    /// A session that waits for that right has pins already, so the one that has it never waits to be admitted to the pool.
    fn pin_pages(
        &self,
        backend: &mut Backend,
        seen: NextMultixact,
        (first, after): (u64, NextMultixact),
    ) -> Result<Option<(Vec<ChangedPage>, NextGuard<'_>)>, WritableClusterError> {
        let own = self.layout.offset_place(seen.number).page;
        let next = self.layout.offset_place(after.number).page;
        let offsets = (own..=next).map(|page| (Slru::Offsets, page, page != own));
        let pages = member_place(first).page..=member_place(after.member - 1).page;
        let members = pages.map(|page| (Slru::Members, page, page * MEMBERS_PER_PAGE >= first));
        let pages = || offsets.clone().chain(members.clone());
        let mut pinned = Vec::with_capacity(4);
        for (slru, page, is_new) in pages().filter(|(_, _, is_new)| !is_new) {
            let number = page as BlockNo;
            let pin = backend.read(self.pages_of(slru), number)?;
            pinned.push(ChangedPage { is_new, slru, number, pin });
        }
        // As above, since the reads may have staged some.
        backend.session().submit();
        let guard = self.next.lock();
        if *guard != seen {
            return Ok(None);
        }
        for (slru, page, is_new) in pages().filter(|(_, _, is_new)| *is_new) {
            let number = page as BlockNo;
            match backend.pin_to_overwrite(self.pages_of(slru), || Some((number, ())))? {
                Some((_, pin, ())) => pinned.push(ChangedPage { is_new, slru, number, pin }),
                None => unreachable!("a page was chosen"),
            }
        }
        Ok(Some((pinned, guard)))
    }

    /// Sets the offsets of a multixact and of the next, and its members.
    fn set_entries(
        &self,
        (multixact, first): (u32, u64),
        members: &[(u32, MemberStatus)],
        pages: &mut [(&ChangedPage, PageMut<'_>)],
    ) {
        let end = first + members.len() as u64;
        for (page, locked) in pages {
            let is_here = |place: &SlruPosition| place.page == u64::from(page.number);
            if page.slru == Slru::Offsets {
                for (number, offset) in [(multixact, first), (next_multi(multixact), end)] {
                    let place = self.layout.offset_place(number);
                    if is_here(&place) {
                        self.layout.set_offset(&mut locked[..], place.byte, offset);
                    }
                }
                continue;
            }
            for (number, (xid, status)) in (first..).zip(members) {
                let place = member_place(number);
                if is_here(&place) {
                    let member = (*xid, status.to_byte());
                    set_member(&mut locked[..], place.byte, number, member);
                }
            }
        }
    }

    fn members(
        &self,
        backend: &mut Backend,
        multixact: u32,
    ) -> Result<Vec<(u32, MemberStatus)>, WritableClusterError> {
        let damaged = || WritableClusterError::DamagedMultixact { multixact };
        let first = self.first_member(backend, multixact)?;
        let end = self.first_member(backend, next_multi(multixact))?;
        let count = self.layout.count(first, end);
        if first == 0 || end == 0 || count == 0 || count > MEMBERS_MAX {
            return Err(damaged());
        }
        let (mut members, mut index) = (Vec::new(), 0);
        while index < count {
            let block = member_place(self.layout.member(first, index)).page as BlockNo;
            let pin = backend.read(&self.members, block)?;
            let page = backend.read_lock(pin.page()).map_err(LogWriterError::from)?;
            while index < count {
                let number = self.layout.member(first, index);
                let place = member_place(number);
                if place.page as BlockNo != block {
                    break;
                }
                match member_at(&page[..], place.byte, number).filter(|member| member.xid != 0) {
                    Some(Member { xid, status: Ok(status) }) => members.push((xid, status)),
                    None if number == 0 => {}
                    _ => return Err(damaged()),
                }
                index += 1;
            }
        }
        Ok(members)
    }

    fn first_member(
        &self,
        backend: &mut Backend,
        multixact: u32,
    ) -> Result<u64, WritableClusterError> {
        let place = self.layout.offset_place(multixact);
        let pin = backend.read(&self.offsets, place.page as BlockNo)?;
        let page = backend.read_lock(pin.page()).map_err(LogWriterError::from)?;
        Ok(self.layout.offset_at(&page[..], place.byte).unwrap_or_default())
    }

    fn pages_of(&self, slru: Slru) -> &Relation {
        if slru == Slru::Offsets { &self.offsets } else { &self.members }
    }
}

impl Multixacts for PooledMultixacts {
    fn members(
        &self,
        backend: &mut Backend,
        multixact: u32,
    ) -> Result<Vec<(u32, MemberStatus)>, StatusError> {
        Ok(Self::members(self, backend, multixact)?)
    }

    fn create(
        &self,
        backend: &mut Backend,
        changer: &mut Changer,
        members: &[(u32, MemberStatus)],
    ) -> Result<u32, StatusError> {
        Ok(Self::create(self, backend, changer, members)?)
    }
}

/// `xl_multixact_create`.
fn create_id(multixact: u32, first: u64, members: &[(u32, MemberStatus)]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(12 + 8 * members.len());
    let header = [multixact, first as u32, members.len() as u32];
    let members = members.iter().flat_map(|(xid, status)| [*xid, u32::from(status.to_byte())]);
    for word in header.into_iter().chain(members) {
        bytes.extend_from_slice(&word.to_le_bytes());
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::{Layout, OpenFiles};
    use trunkline_aio::{Builder, MethodKind};

    #[test]
    fn numbers_do_not_wrap_around() {
        let root = tempfile::tempdir().expect("a folder");
        let aio = Builder::new().method(MethodKind::Sync).region_bytes(1 << 20).start();
        let layout = Layout { checksums: true, tablespace_directory: "PG_18".into() };
        let files = OpenFiles::kernel(&aio.expect("starts"), 8);
        let storage = Storage::for_writing(root.path(), layout, &files, false);
        let after = |next_multi, next_multi_offset, members| {
            let zeros = Checkpoint::of_record(&[0; 88], PgVersion::V18).expect("long enough");
            let checkpoint =
                Checkpoint { next_multi, next_multi_offset, oldest_multi: 1000, ..zeros };
            let multixacts = PooledMultixacts::new(&storage, &checkpoint);
            let next = multixacts.next();
            multixacts.after(next, next.member.max(1), members).map_err(|error| error.to_string())
        };
        let next = |number, member| Ok(NextMultixact { number, member });
        assert_eq!(after(1000, 0, 3), next(1001, 4));
        let error = after(1000, 0, 1001).expect_err("too many");
        assert_eq!(error, "a multixact cannot have 1001 members, at most 1000");
        assert_eq!(after(1000 + MULTIXACTS_MAX - 1, 9, 2), next(1000 + MULTIXACTS_MAX, 11));
        let error = after(1000 + MULTIXACTS_MAX, 9, 2).expect_err("too many");
        assert!(
            error.contains("the next is 2144484648 with member 9, and the oldest in use is 1000"),
            "{error}"
        );
        assert_eq!(after(1000, LAST_MEMBER - 2, 2), next(1001, LAST_MEMBER));
        let error = after(1000, LAST_MEMBER - 2, 3).expect_err("too many members");
        assert!(error.contains("with member 4294967293"), "{error}");
    }
}
