//! Counters of the cluster: the next transaction, OID and multixact, and the oldest of each.
//!
//! The control file has them as of a checkpoint. A later record with a higher ID advances them. A
//! shutdown checkpoint sets them exactly, since no transaction was running then.

use trunkline_format::control::Checkpoint;
use trunkline_format::transam::FIRST_NORMAL_XID;
use trunkline_format::transam::multixact::next_multi;
use trunkline_format::wal::Multixact;
use trunkline_format::{Oid, PgVersion};

/// The counters, in the form of a checkpoint.
#[derive(Debug, Clone, Copy)]
pub(super) struct Counters {
    checkpoint: Checkpoint,
    /// Whether multixact members are numbered with 64 bits, which never wrap around.
    is_wide: bool,
}

/// Whether `a` comes before `b` in numbers that wrap around.
fn is_before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}

impl Counters {
    /// Begins with the counters of a checkpoint.
    pub(super) fn new(checkpoint: Checkpoint, version: PgVersion) -> Self {
        Self { checkpoint, is_wide: version >= PgVersion::V19 }
    }

    /// The counters as they are now.
    pub(super) fn get(&self) -> Checkpoint {
        self.checkpoint
    }

    /// A transaction is in use.
    pub(super) fn use_xid(&mut self, xid: u32) {
        let next = self.checkpoint.next_xid;
        if xid < FIRST_NORMAL_XID || is_before(xid, next as u32) {
            return;
        }
        // The distance is positive, and less than half of the numbers.
        let ahead = u64::from(xid.wrapping_sub(next as u32)) + 1;
        let mut next = next.saturating_add(ahead);
        if (next as u32) < FIRST_NORMAL_XID {
            next += u64::from(FIRST_NORMAL_XID - next as u32);
        }
        self.checkpoint.next_xid = next;
    }

    /// OIDs below this one may be in use.
    pub(super) fn set_next_oid(&mut self, next: Oid) {
        self.checkpoint.next_oid = next;
    }

    /// A multixact is in use.
    pub(super) fn use_multixact(&mut self, multixact: &Multixact) {
        let next = next_multi(multixact.multi);
        if !is_before(next, self.checkpoint.next_multi) {
            self.checkpoint.next_multi = next;
        }
        let end = multixact.first_member.wrapping_add(multixact.members.len() as u64);
        self.advance_member(end);
        for (xid, _) in &multixact.members {
            self.use_xid(*xid);
        }
    }

    fn advance_member(&mut self, next: u64) {
        let known = self.checkpoint.next_multi_offset;
        if self.is_wide {
            self.checkpoint.next_multi_offset = known.max(next);
        } else if !is_before(next as u32, known as u32) {
            self.checkpoint.next_multi_offset = u64::from(next as u32);
        }
    }

    /// The commit log before this transaction is gone.
    pub(super) fn set_oldest_xid(&mut self, oldest: u32, database: Oid) {
        if !is_before(oldest, self.checkpoint.oldest_xid) {
            (self.checkpoint.oldest_xid, self.checkpoint.oldest_xid_db) = (oldest, database);
        }
    }

    /// Multixacts before this one are gone.
    pub(super) fn set_oldest_multi(&mut self, oldest: u32, database: Oid) {
        if !is_before(oldest, self.checkpoint.oldest_multi) {
            (self.checkpoint.oldest_multi, self.checkpoint.oldest_multi_db) = (oldest, database);
        }
    }

    /// A checkpoint has been passed.
    pub(super) fn pass(&mut self, found: &Checkpoint, is_shutdown: bool) {
        if is_shutdown {
            let location = self.checkpoint.location;
            self.checkpoint = Checkpoint { location, ..*found };
            return;
        }
        if found.next_xid > self.checkpoint.next_xid {
            self.checkpoint.next_xid = found.next_xid;
        }
        if !is_before(found.next_multi, self.checkpoint.next_multi) {
            self.checkpoint.next_multi = found.next_multi;
        }
        self.advance_member(found.next_multi_offset);
        self.set_oldest_xid(found.oldest_xid, found.oldest_xid_db);
        self.set_oldest_multi(found.oldest_multi, found.oldest_multi_db);
        (self.checkpoint.redo, self.checkpoint.timeline) = (found.redo, found.timeline);
        self.checkpoint.time = found.time;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counters(next_xid: u64, next_multi_offset: u64) -> Counters {
        let zeros = Checkpoint::of_record(&[0; 88], PgVersion::V18).expect("long enough");
        Counters::new(
            Checkpoint { next_xid, next_multi_offset, next_multi: 1, ..zeros },
            PgVersion::V18,
        )
    }

    #[test]
    fn the_next_transaction_follows_the_newest_one() {
        for (before, used, after) in [
            (700, 699, 700),
            (700, 700, 701),
            (700, 5_000, 5_001),
            (700, 2, 700),
            // Around the end of the numbers, special ones are left out.
            (0xFFFF_FFF0, 0xFFFF_FFFF, (1 << 32) + 3),
            ((1 << 32) - 1, 5, (1 << 32) + 6),
            ((1 << 32) + 10, 0xFFFF_FFFF, (1 << 32) + 10),
        ] {
            let mut counters = counters(before, 1);
            counters.use_xid(used);
            assert_eq!(counters.get().next_xid, after, "{before} {used}");
        }
    }

    #[test]
    fn a_shutdown_sets_counters_exactly_and_other_checkpoints_only_raise_them() {
        let mut found = counters(900, 50);
        let lower = Checkpoint { next_xid: 800, next_multi_offset: 40, ..found.get() };
        found.pass(&lower, false);
        assert_eq!((found.get().next_xid, found.get().next_multi_offset), (900, 50));
        found.pass(&lower, true);
        assert_eq!((found.get().next_xid, found.get().next_multi_offset), (800, 40));
        let members = vec![(850, 0), (7_000, 4)];
        found.use_multixact(&Multixact { multi: 9, first_member: 100, members });
        let now = found.get();
        assert_eq!((now.next_xid, now.next_multi, now.next_multi_offset), (7_001, 10, 102));
    }
}
