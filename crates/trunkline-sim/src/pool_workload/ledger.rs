//! What every buffer must show, and who must be told of what: the books of the pool's workload.
//!
//! ```text
//!   probe, before a read is completed        consumer, when it has a page or an error
//!     shows(block) := right, zeros, damaged    compares the page with what the block shows
//!     due(owner, block, failure) += 1          takes one due; an error without one is a finding
//! ```
//! An owner is one stream or one single read. So an error that reaches anybody but the issuer of
//! the read that failed is noticed, and so is one that a single read is not told of. A stream may
//! let go of a read and read its blocks again; it must bring out each block once, right or as an
//! error.

use super::truth::Shown;
use std::collections::BTreeMap;
use trunkline_aio::sync::Mutex;
use trunkline_format::BlockNo;

/// How a read failed, as its issuer is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Failure {
    /// The system said so, with this errno.
    Errno(i32),
    /// Only so many bytes of the block came.
    Short(u32),
    /// The page is not sound.
    Corrupt,
    /// A policy let the page pass: as zeros, or as it was.
    Warning {
        /// As zeros.
        zeroed: bool,
    },
}

#[derive(Debug, Default)]
struct Books {
    /// Blocks whose buffers do not show what the file holds.
    odd: BTreeMap<(usize, BlockNo), Shown>,
    due: BTreeMap<(u64, BlockNo, Failure), u32>,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Ledger(Mutex<Books>);

impl Ledger {
    /// A read of these blocks is about to be complete, and each will show this.
    pub(super) fn show(&self, relation: usize, first: BlockNo, shown: &[Shown]) {
        let mut books = self.0.lock();
        for (block, &shown) in (first..).zip(shown) {
            match shown {
                Shown::Right => books.odd.remove(&(relation, block)),
                odd => books.odd.insert((relation, block), odd),
            };
        }
    }

    /// What a block's buffer shows, if it is valid. Only for who has it locked.
    pub(super) fn shown(&self, relation: usize, block: BlockNo) -> Shown {
        let odd = self.0.lock().odd.get(&(relation, block)).copied();
        odd.unwrap_or(Shown::Right)
    }

    /// The owner must be told.
    pub(super) fn owe(&self, owner: u64, block: BlockNo, failure: Failure) {
        *self.0.lock().due.entry((owner, block, failure)).or_default() += 1;
    }

    /// The owner was told. False: nobody owed it that.
    pub(super) fn told(&self, owner: u64, block: BlockNo, failure: Failure) -> bool {
        let mut books = self.0.lock();
        let key = (owner, block, failure);
        let Some(due) = books.due.get_mut(&key) else { return false };
        *due -= 1;
        if *due == 0 {
            books.due.remove(&key);
        }
        true
    }

    /// Closes the books of an owner: what it was never told.
    pub(super) fn close(&self, owner: u64) -> Vec<(BlockNo, Failure)> {
        let mut books = self.0.lock();
        let from = (owner, 0, Failure::Errno(i32::MIN));
        let mut rest = books.due.split_off(&from);
        let others = rest.split_off(&(owner + 1, 0, Failure::Errno(i32::MIN)));
        books.due.extend(others);
        rest.into_keys().map(|(_, block, failure)| (block, failure)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_due_can_be_told_once_and_only_to_its_owner() {
        let ledger = Ledger::default();
        ledger.owe(3, 7, Failure::Errno(5));
        assert!(!ledger.told(4, 7, Failure::Errno(5)));
        assert!(!ledger.told(3, 8, Failure::Errno(5)));
        assert!(!ledger.told(3, 7, Failure::Corrupt));
        assert!(ledger.told(3, 7, Failure::Errno(5)));
        assert!(!ledger.told(3, 7, Failure::Errno(5)));
        ledger.owe(3, 1, Failure::Corrupt);
        ledger.owe(4, 1, Failure::Corrupt);
        assert_eq!(ledger.close(3), [(1, Failure::Corrupt)]);
        assert_eq!(ledger.close(3), []);
        assert!(ledger.told(4, 1, Failure::Corrupt));
    }

    #[test]
    fn a_block_shows_what_was_read_last() {
        let ledger = Ledger::default();
        assert_eq!(ledger.shown(0, 5), Shown::Right);
        ledger.show(0, 4, &[Shown::Right, Shown::Zeros]);
        assert_eq!((ledger.shown(0, 4), ledger.shown(0, 5)), (Shown::Right, Shown::Zeros));
        assert_eq!(ledger.shown(1, 5), Shown::Right);
        ledger.show(0, 5, &[Shown::Right]);
        assert_eq!(ledger.shown(0, 5), Shown::Right);
    }
}
