//! Searches for many keys together, so that we read each page only once and know in advance which
//! leaves we need.
//!
//! ```text
//!   ascending keys ──▶ pages above the leaves: the leaf of each key
//!                  ──▶ read stream over these leaves ──▶ rows, sometimes a leaf to the right
//! ```
//!
//! If we searched for each key separately, we would have to descend from the root every time, and
//! would wait for one leaf after another. Instead, we first search the upper levels, which have few
//! pages and are usually cached. This gives us the list of all the leaves we need. The leaves
//! usually aren't cached, so we then read them with many I/Os in flight. We use this to fetch TOAST
//! values.

use std::cmp::Ordering;
use std::ops::Range;

use trunkline_aio::facade::Arc;
use trunkline_format::btree::{BtreePage, Fault, Step};
use trunkline_format::{BlockNo, Tid};

use super::error::{BtreeError, BtreeProblem};
use super::index::{Index, RightSteps};
use super::index_scan::IndexScan;
use crate::pool::{Backend, ReadError};
use crate::read_stream::{BlockList, ReadStream, StreamOptions};

/// If there are no more leaves than this, we read them one by one, because setting up a stream
/// would cost more than it would save.
const LEAVES_UNSTREAMED: usize = 2;

/// A leaf, and the range of keys on it.
type Leaf = (BlockNo, Range<usize>);

/// Called with the number of a key, and with either one of its rows or an error. Returns false if
/// the caller doesn't need any more rows for that key.
type FoundRow<'f> = dyn FnMut(usize, Result<Tid, &Arc<BtreeError>>) -> bool + 'f;

/// Where the search for a key continues after its leaf.
enum Continuation {
    /// On the right sibling.
    Right(BlockNo),
    /// Continue from the root: the leaf was split, and the key is no longer on it.
    Root,
}

impl Index {
    /// Finds the rows whose first column is equal to one of `keys`, which must be in ascending
    /// order.
    ///
    /// Calls the `found` closure with the number of a key, and with either one of its rows or an
    /// error. Since errors are reported for each key, damage in one leaf affects only the keys on
    /// that leaf. Once the closure has returned false for a key, we may skip the key's other rows.
    /// We always skip entries that the server has marked dead.
    ///
    /// # Errors
    /// [`ReadError::Cancelled`] if the session was cancelled.
    pub fn find_many(
        &self,
        backend: &mut Backend,
        options: StreamOptions,
        keys: &[&[u8]],
        found: &mut FoundRow<'_>,
    ) -> Result<(), ReadError> {
        // Phase 1: find the leaves. No leaf is read yet, unless the root itself is a leaf.
        let leaves = self.leaves_of(backend, keys, found)?;
        if leaves.len() <= LEAVES_UNSTREAMED {
            for (block, range) in leaves {
                let pin = backend.read(self.relation(), block);
                let ended = match &pin {
                    Ok(pin) => {
                        let page = backend.read_lock(pin.page())?;
                        self.search_leaf(block, BtreePage::parse(&page), &range, keys, found)
                    }
                    Err(_) => Vec::new(),
                };
                fail(pin.map(drop), &range, found)?;
                self.continue_search(backend, ended, keys, found)?;
            }
            return Ok(());
        }
        // Phase 2: read the leaves. The stream must return them in order, because that is how we
        // know which keys to look for on each leaf.
        let options = StreamOptions { unordered: false, sequential: false, ..options };
        let blocks = BlockList::new(leaves.iter().map(|&(block, _)| block).collect());
        let mut stream = ReadStream::new(backend, self.relation(), blocks, options);
        for (block, range) in leaves {
            let ended = match stream.next(backend) {
                Ok(Some(next)) => {
                    let page = backend.read_lock(next.pin)?;
                    self.search_leaf(block, BtreePage::parse(&page), &range, keys, found)
                }
                Ok(None) => break,
                Err(error) => {
                    fail(Err(error), &range, found)?;
                    continue;
                }
            };
            self.continue_search(backend, ended, keys, found)?;
        }
        Ok(())
    }

    /// Finds the leaf of each key. Adjacent keys on one leaf form a range.
    fn leaves_of(
        &self,
        backend: &mut Backend,
        keys: &[&[u8]],
        found: &mut FoundRow<'_>,
    ) -> Result<Vec<Leaf>, ReadError> {
        let mut leaves = Vec::new();
        let meta = match self.meta(backend) {
            Ok(meta) => meta,
            Err(error) => {
                fail_all(error, &(0..keys.len()), found)?;
                return Ok(leaves);
            }
        };
        let (root, top) = (meta.fast_root, meta.fast_level);
        if root == 0 || keys.is_empty() {
            return Ok(leaves);
        }
        // The root is the only page, and therefore the leaf of every key.
        if top == 0 {
            leaves.push((root, 0..keys.len()));
            return Ok(leaves);
        }
        let mut at = 0;
        while at < keys.len() {
            match self.descend_above(backend, (root, top), keys, at, &mut leaves) {
                Ok(next) => at = next,
                Err(error) => {
                    fail_all(error, &(at..at + 1), found)?;
                    at += 1;
                }
            }
        }
        Ok(leaves)
    }

    /// Descends to the parent page of the leaf for key number `at`. Adds that leaf to `leaves`, and
    /// also the leaves of the following keys for as long as they're below the same page. Returns
    /// the number of the first key that we haven't handled.
    fn descend_above(
        &self,
        backend: &mut Backend,
        (mut block, mut level): (BlockNo, u32),
        keys: &[&[u8]],
        at: usize,
        leaves: &mut Vec<Leaf>,
    ) -> Result<usize, BtreeError> {
        let mut steps = RightSteps::default();
        loop {
            let mut next = at;
            let step = self.read_level_page(backend, block, level, |page| {
                loop {
                    let Some(key) = keys.get(next) else { return Ok(None) };
                    match self.layout().step(page, &[Some(key)]) {
                        Ok(Step::Down(child)) if level == 1 => {
                            match leaves.last_mut().filter(|leaf| leaf.0 == child) {
                                Some((_, range)) if range.end == next => range.end = next + 1,
                                _ => leaves.push((child, next..next + 1)),
                            }
                            next += 1;
                        }
                        // This key isn't below the current page, so the next call must descend from
                        // the root again to find it. If we got an error instead, the next call will
                        // get the same error and report it for that key.
                        Ok(_) | Err(_) if next > at => return Ok(None),
                        step => return step.map(Some),
                    }
                }
            })?;
            block = match step {
                None => return Ok(next),
                // The key is beyond the end of the level.
                Some(Step::Here(_)) => return Ok(at + 1),
                Some(Step::Right(right)) => {
                    steps.count(self, right)?;
                    right
                }
                Some(Step::Down(child)) => {
                    level = self.level_below(block, level)?;
                    child
                }
            };
        }
    }

    /// Finds the rows of the keys on one leaf. Returns the keys that may have more rows elsewhere.
    fn search_leaf(
        &self,
        block: BlockNo,
        page: Result<BtreePage<'_>, Fault>,
        range: &Range<usize>,
        keys: &[&[u8]],
        found: &mut FoundRow<'_>,
    ) -> Vec<(usize, Continuation)> {
        let mut ended = Vec::new();
        for number in range.clone() {
            let Some(key) = keys.get(number) else { break };
            let searched = match &page {
                Ok(page) if page.is_deleted() || page.level() == 0 => {
                    self.search_key(page, key, number, found).map_err(BtreeProblem::Fault)
                }
                Ok(page) => Err(BtreeProblem::Level { found: page.level(), expected: 0 }),
                Err(fault) => Err(BtreeProblem::Fault(*fault)),
            };
            match searched {
                Ok(None) => {}
                Ok(Some(onward)) => ended.push((number, onward)),
                Err(problem) => {
                    found(number, Err(&Arc::new(self.corrupt(block, problem))));
                }
            }
        }
        ended
    }

    /// Finds the rows of one key on a leaf. If there may be more entries for this key on other
    /// pages, returns where to continue the search.
    fn search_key(
        &self,
        page: &BtreePage<'_>,
        key: &[u8],
        number: usize,
        found: &mut FoundRow<'_>,
    ) -> Result<Option<Continuation>, Fault> {
        let key = &[Some(key)];
        let Step::Here(first) = self.layout().step(page, key)? else {
            return Ok(Some(Continuation::Root));
        };
        for item in first..=page.count() {
            let entry = page.entry(item)?;
            if self.layout().compare(&entry, key)? == Ordering::Greater {
                return Ok(None);
            }
            if !entry.is_dead() && !entry.rows().all(|row| found(number, Ok(row))) {
                return Ok(None);
            }
        }
        let Some(right) = page.right() else { return Ok(None) };
        // The high key is an upper bound for the keys on this page. If it's greater than our key,
        // none of the pages further to the right can contain the key. In an index with duplicates,
        // the two can be equal, in which case we must continue to the right.
        match page.high_key()? {
            Some(high) if self.layout().compare(&high, key)? == Ordering::Greater => Ok(None),
            _ => Ok(Some(Continuation::Right(right))),
        }
    }

    /// Finds the remaining rows of keys that extend beyond their leaf, with one ordinary index scan
    /// per key.
    fn continue_search(
        &self,
        backend: &mut Backend,
        ended: Vec<(usize, Continuation)>,
        keys: &[&[u8]],
        found: &mut FoundRow<'_>,
    ) -> Result<(), ReadError> {
        for (number, onward) in ended {
            let Some(key) = keys.get(number) else { continue };
            let key = &[Some(*key)];
            let mut rows = Vec::new();
            let mut follow = || -> Result<(), BtreeError> {
                let mut scan = match onward {
                    Continuation::Right(right) => IndexScan::from_leaf(self, right, key),
                    Continuation::Root => self.scan(backend, key, key)?,
                };
                loop {
                    let more = scan.next_page(backend, &mut rows)?;
                    if !rows.drain(..).all(|row| found(number, Ok(row))) || !more {
                        return Ok(());
                    }
                }
            };
            if let Err(error) = follow() {
                fail_all(error, &(number..number + 1), found)?;
            }
        }
        Ok(())
    }
}

/// Reports to each key in a range that its page couldn't be read.
fn fail(
    page: Result<(), ReadError>,
    range: &Range<usize>,
    found: &mut FoundRow<'_>,
) -> Result<(), ReadError> {
    page.or_else(|error| fail_all(error.into(), range, found))
}

/// Reports an error to each key in a range. Cancellation isn't a per-key error but ends the whole
/// search.
fn fail_all(
    error: BtreeError,
    range: &Range<usize>,
    found: &mut FoundRow<'_>,
) -> Result<(), ReadError> {
    if error.is_cancelled() {
        return Err(ReadError::Cancelled);
    }
    let error = Arc::new(error);
    range.clone().for_each(|number| {
        found(number, Err(&error));
    });
    Ok(())
}
