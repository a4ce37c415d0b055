//! Expectations of a pool workload: what each buffer must contain, and which errors each owner must
//! receive.
//!
//! ```text
//!   probe, before a read is completed          consumer, when it has a page or an error
//!     contents(block) := original, zeros, …      compares the page with the contents
//!     expect(owner, block, failure)              receives it; an error that is not expected fails the run
//! ```
//! Each stream and each single read is an owner. We record the expected errors by owner, so that we
//! notice if an error is reported to a session that didn't issue the failed read. PostgreSQL has
//! the same rule: when a session waits for another session's I/O and that I/O fails, the session
//! retries the read itself, and reports only its own error. We also notice if a single read doesn't
//! report its error. A stream may abandon a read and read its blocks again, but it must return each
//! block exactly once, either as a page or as an error.

use super::model::Contents;
use std::collections::BTreeMap;
use trunkline_aio::facade::Mutex;
use trunkline_format::BlockNo;

/// A read failure, as its issuer sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Failure {
    /// The kernel returned this errno.
    Errno(i32),
    /// Only this many bytes of the block were read.
    Short(u32),
    /// The page is invalid.
    Corrupt,
    /// A policy let the read succeed although the page is damaged.
    Warning {
        /// The page was replaced by zeros. Otherwise it is used unchanged.
        zeroed: bool,
    },
}

/// The tables, protected by a single mutex.
#[derive(Debug, Default)]
struct Tables {
    /// Blocks whose buffers differ from the file.
    damaged: BTreeMap<(usize, BlockNo), Contents>,
    /// Failures each owner has yet to receive, and how often.
    due: BTreeMap<(u64, BlockNo, Failure), u32>,
}

/// What each buffer must contain, and which errors each owner must receive.
#[derive(Debug, Default)]
pub(super) struct Expectations(Mutex<Tables>);

impl Expectations {
    /// Records what the buffers of these blocks will contain. This must be called before the read
    /// completes, because as soon as it has completed, other sessions can look at the pages and
    /// compare them with the expectations.
    pub(super) fn set_contents(&self, relation: usize, first: BlockNo, contents: &[Contents]) {
        let mut tables = self.0.lock();
        for (block, &contents) in (first..).zip(contents) {
            match contents {
                Contents::Original => tables.damaged.remove(&(relation, block)),
                damaged => tables.damaged.insert((relation, block), damaged),
            };
        }
    }

    /// What a block's buffer must contain if it is valid. The caller must hold the content lock
    /// while it compares the page with the result. Otherwise another session could evict the page
    /// and read it in again in the meantime.
    pub(super) fn contents(&self, relation: usize, block: BlockNo) -> Contents {
        let damaged = self.0.lock().damaged.get(&(relation, block)).copied();
        damaged.unwrap_or(Contents::Original)
    }

    /// Records that an owner must receive this failure.
    pub(super) fn expect(&self, owner: u64, block: BlockNo, failure: Failure) {
        *self.0.lock().due.entry((owner, block, failure)).or_default() += 1;
    }

    /// Records that an owner has received a failure. Returns false if the failure was not expected.
    pub(super) fn receive(&self, owner: u64, block: BlockNo, failure: Failure) -> bool {
        let mut tables = self.0.lock();
        let key = (owner, block, failure);
        let Some(due) = tables.due.get_mut(&key) else { return false };
        *due -= 1;
        if *due == 0 {
            tables.due.remove(&key);
        }
        true
    }

    /// Removes an owner. Returns the failures it hasn't received.
    pub(super) fn close(&self, owner: u64) -> Vec<(BlockNo, Failure)> {
        let mut tables = self.0.lock();
        let from = (owner, 0, Failure::Errno(i32::MIN));
        let mut rest = tables.due.split_off(&from);
        let others = rest.split_off(&(owner + 1, 0, Failure::Errno(i32::MIN)));
        tables.due.extend(others);
        rest.into_keys().map(|(_, block, failure)| (block, failure)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expected_failure_is_received_once_and_only_by_its_owner() {
        let expectations = Expectations::default();
        expectations.expect(3, 7, Failure::Errno(5));
        assert!(!expectations.receive(4, 7, Failure::Errno(5)));
        assert!(!expectations.receive(3, 8, Failure::Errno(5)));
        assert!(!expectations.receive(3, 7, Failure::Corrupt));
        assert!(expectations.receive(3, 7, Failure::Errno(5)));
        assert!(!expectations.receive(3, 7, Failure::Errno(5)));
        expectations.expect(3, 1, Failure::Corrupt);
        expectations.expect(4, 1, Failure::Corrupt);
        assert_eq!(expectations.close(3), [(1, Failure::Corrupt)]);
        assert_eq!(expectations.close(3), []);
        assert!(expectations.receive(4, 1, Failure::Corrupt));
    }

    #[test]
    fn a_buffer_has_the_contents_of_the_last_read() {
        let expectations = Expectations::default();
        assert_eq!(expectations.contents(0, 5), Contents::Original);
        expectations.set_contents(0, 4, &[Contents::Original, Contents::Zeros]);
        assert_eq!(
            (expectations.contents(0, 4), expectations.contents(0, 5)),
            (Contents::Original, Contents::Zeros)
        );
        assert_eq!(expectations.contents(1, 5), Contents::Original);
        expectations.set_contents(0, 5, &[Contents::Original]);
        assert_eq!(expectations.contents(0, 5), Contents::Original);
    }
}
