//! Checks that a unique index is really unique, that is, that no two live rows have the same key.
//!
//! ```text
//!   order known     leaf by leaf: … 7 ─ 7 ─ 8 …      equal keys are adjacent
//!   order unknown   hashes of all keys, sorted       equal hashes, wherever the keys are
//!                     └▶ rows behind equal keys ──▶ checked, many at a time ──▶ two of them live?
//! ```
//!
//! A dead tuple's index entries remain until VACUUM removes them, so it is quite common to find
//! several entries with the same key. That's OK unless more than one of their rows is live. Nulls
//! are not equal to each other, unless the index is `NULLS NOT DISTINCT`.
//!
//! **Unknown order.** How text is sorted depends on the server's collation library. If the library
//! has been updated, some keys may be in the wrong place, and that's usually how a unique index
//! ends up with duplicates. Since such duplicates aren't next to each other, we collect the hashes
//! of all keys instead of comparing neighbouring entries. Only a limited amount of memory is
//! available for the hashes. If they don't fit, we drop the upper half, and walk the leaves again
//! later to check those.
//!
//! **Limitations.** If two keys are different, the chance that they have the same hash is 1 in 2⁶⁴.
//! We don't detect keys that are equal but don't have the same bytes, such as `1.0` and `1.00`
//! within an array, or keys that differ only in case under a case-insensitive collation.

use std::cmp::Ordering;

use trunkline_format::Tid;
use trunkline_format::btree::{BtreePage, Entry, Key};

use super::checked_table::{CheckedIndex, CheckedTable};
use super::content_problem::ContentProblem;
use super::key_hash::hash_entry;
use super::live_rows::LiveRowFinder;
use super::sink::Sink;
use crate::btree::{BtreeError, LevelWalk};
use crate::pool::{Backend, ReadError};
use crate::read_stream::StreamOptions;

/// We check the visibility of the collected rows as soon as there are at least this many, and again
/// at the end.
const JUDGED_MIN: usize = 1 << 16;

/// The check of one index.
pub(super) struct UniqueCheck<'t> {
    index: &'t CheckedIndex,
    duplicates: Duplicates<'t>,
    search: DuplicateSearch,
}

/// How equal keys are found.
enum DuplicateSearch {
    /// By comparing adjacent entries.
    Adjacent(EqualRun),
    /// By sorting hashes.
    Hashed(Hashes),
}

impl<'t> UniqueCheck<'t> {
    /// Creates a check for an index of `table`. It keeps at most `most` hashes in memory.
    pub(super) fn new(
        table: &'t CheckedTable,
        index: &'t CheckedIndex,
        finder: LiveRowFinder<'t>,
        most: usize,
        sink: &'t Sink<'t>,
    ) -> Self {
        // It's cheaper and more exact to compare neighbouring entries, but that only works if we
        // know how the keys are ordered.
        let search = match index.has_unknown_order() {
            true => DuplicateSearch::Hashed(Hashes::new(index, 0, most)),
            false => DuplicateSearch::Adjacent(EqualRun::default()),
        };
        let rows = Vec::new();
        let duplicates = Duplicates { table, index, finder, sink, rows, group: 0, earlier: None };
        Self { index, duplicates, search }
    }

    /// Adds the entries of a leaf. The caller must pass the leaves in index order.
    pub(super) fn leaf(&mut self, page: &BtreePage<'_>) {
        match &mut self.search {
            DuplicateSearch::Adjacent(run) => run.leaf(self.index, page, &mut self.duplicates),
            DuplicateSearch::Hashed(hashes) => hashes.leaf(self.index, page),
        }
    }

    /// Checks the visibility of the collected rows if there are enough of them to make it
    /// worthwhile.
    ///
    /// # Errors
    /// The session was cancelled.
    pub(super) fn page_done(&mut self, backend: &mut Backend) -> Result<(), ReadError> {
        match self.duplicates.rows.len() < JUDGED_MIN {
            true => Ok(()),
            false => self.duplicates.judge(backend),
        }
    }

    /// Completes the check after the last leaf. If we had to drop some of the hashes for lack of
    /// memory, walks the leaves again to collect them.
    ///
    /// # Errors
    /// The session was cancelled.
    pub(super) fn finish(
        mut self,
        backend: &mut Backend,
        options: StreamOptions,
    ) -> Result<(), ReadError> {
        if let DuplicateSearch::Hashed(hashes) = self.search {
            let mut hashes = hashes;
            loop {
                hashes.duplicates(backend, &mut self.duplicates)?;
                let Some(from) = hashes.below.filter(|_| !self.duplicates.sink.is_stopping())
                else {
                    break;
                };
                hashes = Hashes::new(self.index, from, hashes.most);
                // Ignore all other errors, because the first walk has already reported them.
                if let Err(error) = hashes.walk(self.index, backend, options, self.duplicates.sink)
                    && error.is_cancelled()
                {
                    return Err(ReadError::Cancelled);
                }
            }
        }
        self.duplicates.judge(backend)
    }
}

/// Rows with equal keys whose visibility hasn't been checked yet.
struct Duplicates<'t> {
    table: &'t CheckedTable,
    index: &'t CheckedIndex,
    finder: LiveRowFinder<'t>,
    sink: &'t Sink<'t>,
    /// The TIDs of the entries, each with the number of its key.
    rows: Vec<(Tid, u64)>,
    /// The number of the current key.
    group: u64,
    /// A live row with the current key that was found by an earlier call. We keep it because there
    /// may be more rows with the same key.
    earlier: Option<Live>,
}

/// A live row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Live {
    group: u64,
    version: Tid,
}

impl Duplicates<'_> {
    /// Adds a row with the current key.
    fn push(&mut self, row: Tid) {
        self.rows.push((row, self.group));
    }

    /// Checks the visibility of the rows and reports keys with more than one live row.
    fn judge(&mut self, backend: &mut Backend) -> Result<(), ReadError> {
        let mut live: Vec<Live> = self.earlier.take().into_iter().collect();
        self.finder.find_live(backend, &mut self.rows, |&group, version, _| {
            live.push(Live { group, version });
        })?;
        live.sort_unstable();
        // Count a row only once even if it has two entries. The table check reports such duplicate
        // entries.
        live.dedup();
        for same in live.chunk_by(|one, other| one.group == other.group) {
            let [first, others @ ..] = same else { continue };
            for Live { version: Tid { block, item }, .. } in others {
                let index = self.index.name.clone();
                let problem = ContentProblem::NotUnique { index, other: first.version };
                self.sink.table(self.table, Some(*block), Some(*item), problem);
            }
            // There may be more entries with the current key on the next leaf, so keep this live
            // row to compare it with their rows.
            if first.group == self.group {
                self.earlier = Some(*first);
            }
        }
        Ok(())
    }
}

/// A run of adjacent entries with the same key.
#[derive(Default)]
struct EqualRun {
    /// The key columns of the last entry on the previous leaf. `None` if this is the first leaf, or
    /// if no other key can be equal to that key.
    last: Option<Vec<Option<Vec<u8>>>>,
    rows: RunRows,
}

/// The rows of the current key.
#[derive(Default)]
enum RunRows {
    #[default]
    None,
    /// Only one row so far. Since most keys have only one row, we don't add it to the duplicates
    /// until we find a second one.
    One(Tid),
    /// Several rows, all added to the duplicates.
    More,
}

impl EqualRun {
    /// Compares each entry on a leaf with the previous entry. The first entry is compared with the
    /// last entry on the previous leaf.
    fn leaf(
        &mut self,
        index: &CheckedIndex,
        page: &BtreePage<'_>,
        duplicates: &mut Duplicates<'_>,
    ) {
        let layout = index.index.layout();
        let mut before: Option<Entry<'_>> = None;
        for entry in page.entries().flatten().filter(|entry| !entry.is_dead()) {
            let ordering = match (&before, &self.last) {
                (Some(before), _) => layout.compare_entries(before, &entry, false).ok(),
                (None, Some(last)) => {
                    let last: Vec<Key<'_>> = last.iter().map(Option::as_deref).collect();
                    layout.compare(&entry, &last).ok()
                }
                (None, None) => None,
            };
            // Unless the index is `NULLS NOT DISTINCT`, a key that contains a null isn't even equal
            // to itself. In that case, the rows of a posting list are not duplicates of each other.
            let can_equal = index.can_equal(&entry);
            // A new key begins.
            if ordering != Some(Ordering::Equal) || !can_equal {
                duplicates.group += 1;
                self.rows = RunRows::None;
            }
            for row in entry.rows().filter(|_| can_equal) {
                self.add(row, duplicates);
            }
            before = Some(entry);
        }
        if let Some(entry) = before {
            self.last = key_of(index, &entry);
        }
    }

    /// Adds a row with the current key.
    fn add(&mut self, row: Tid, duplicates: &mut Duplicates<'_>) {
        self.rows = match self.rows {
            RunRows::None => RunRows::One(row),
            RunRows::One(first) => {
                duplicates.push(first);
                duplicates.push(row);
                RunRows::More
            }
            RunRows::More => {
                duplicates.push(row);
                RunRows::More
            }
        }
    }
}

/// The payloads of an entry's key columns. We copy them in order to compare them with the first
/// entry on the next leaf.
fn key_of(index: &CheckedIndex, entry: &Entry<'_>) -> Option<Vec<Option<Vec<u8>>>> {
    let layout = index.index.layout();
    let mut room = Vec::new();
    let columns = layout.attributes(entry).zip(layout.keys()).map(|(stored, column)| {
        let Some(stored) = stored.ok()? else { return Some(None) };
        Some(Some(column.payload(stored, &mut room).ok()?.to_vec()))
    });
    columns.collect()
}

/// The hashes of the keys within a range of hash values. The range covers as many keys as fit in
/// memory.
struct Hashes {
    list: Vec<(u64, Tid)>,
    /// The start of the range.
    from: u64,
    /// The end (exclusive) of the range. The next walk begins there. `None` if there is no limit.
    below: Option<u64>,
    most: usize,
    /// Whether each column is part of the key.
    keys: Vec<bool>,
}

impl Hashes {
    fn new(index: &CheckedIndex, from: u64, most: usize) -> Self {
        let layout = index.index.layout();
        let keys = (0..layout.columns().len()).map(|at| at < layout.keys().len()).collect();
        Self { list: Vec::new(), from, below: None, most: most.max(1024), keys }
    }

    /// Walks the leaves and adds all hashes that are within the range.
    fn walk(
        &mut self,
        index: &CheckedIndex,
        backend: &mut Backend,
        options: StreamOptions,
        sink: &Sink<'_>,
    ) -> Result<(), BtreeError> {
        let mut walk = LevelWalk::of_leaves(&index.index, backend, options)?;
        while let Some(found) = walk.next(backend)?
            && !sink.is_stopping()
        {
            if let Ok(page) = BtreePage::parse(found.page)
                && !page.is_ignored()
            {
                self.leaf(index, &page);
            }
        }
        Ok(())
    }

    /// Adds the hashes of all keys on a leaf that are within the range. Skips any key that can't be
    /// equal to another key.
    fn leaf(&mut self, index: &CheckedIndex, page: &BtreePage<'_>) {
        for entry in page.entries().flatten().filter(|entry| !entry.is_dead()) {
            let Ok(hash) = hash_entry(index, &entry, &self.keys) else { continue };
            if hash < self.from || self.below.is_some_and(|end| hash >= end) {
                continue;
            }
            if index.can_equal(&entry) {
                entry.rows().for_each(|row| self.push(hash, row));
            }
        }
    }

    /// Adds a hash. If there are too many hashes, we drop the upper half and lower the end of the
    /// range accordingly. Since the range is limited by a hash value, rows with the same hash are
    /// either all kept or all dropped.
    fn push(&mut self, hash: u64, row: Tid) {
        self.list.push((hash, row));
        if self.list.len() <= self.most {
            return;
        }
        // This only takes linear time. We don't sort the list until it's complete.
        let middle = self.list.len() / 2;
        let (_, &mut (end, _), _) = self.list.select_nth_unstable(middle);
        // The range must not become empty, because then the next walk would start in the same place
        // as this one.
        let end = end.max(self.from.saturating_add(1));
        self.list.retain(|(hash, _)| *hash < end);
        self.below = Some(end);
        // If all rows have the same hash, we can't divide the range, so we drop some of the rows.
        // That's OK because the remaining list is still longer than the number of row versions that
        // a server would ever leave behind for one key.
        self.list.truncate(self.most / 2 + 1);
    }

    /// Adds the rows with equal hashes to the duplicates.
    fn duplicates(
        &mut self,
        backend: &mut Backend,
        duplicates: &mut Duplicates<'_>,
    ) -> Result<(), ReadError> {
        self.list.sort_unstable();
        let groups = self.list.chunk_by(|(one, _), (other, _)| one == other);
        for group in groups.filter(|group| group.len() > 1) {
            duplicates.group += 1;
            group.iter().for_each(|(_, row)| duplicates.push(*row));
            if duplicates.rows.len() >= JUDGED_MIN {
                duplicates.judge(backend)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hashes(from: u64) -> Hashes {
        Hashes { list: Vec::new(), from, below: None, most: 1024, keys: Vec::new() }
    }

    #[test]
    fn a_part_has_all_keys_of_each_of_its_hashes() {
        let row = |at: u64| Tid { block: at as u32, item: 1 };
        // Each of 2000 hashes three times, far apart.
        let all: Vec<(u64, Tid)> = (0..6000).map(|at| (at % 2000 * 977 % 4001, row(at))).collect();
        let (mut from, mut seen, mut parts) = (0, 0, 0);
        loop {
            let mut part = hashes(from);
            for &(hash, row) in &all {
                if hash >= part.from && part.below.is_none_or(|end| hash < end) {
                    part.push(hash, row);
                }
            }
            part.list.sort_unstable();
            for group in part.list.chunk_by(|(one, _), (other, _)| one == other) {
                assert_eq!(group.len(), 3);
                seen += group.len();
            }
            parts += 1;
            match part.below {
                Some(below) => from = below,
                None => break,
            }
        }
        assert!(seen == 6000 && parts > 5, "{seen} {parts}");
    }

    #[test]
    fn too_many_rows_of_one_hash_do_not_loop() {
        let mut part = hashes(0);
        (0..5000).for_each(|block| part.push(9, Tid { block, item: 1 }));
        assert!(part.list.len() <= part.most);
    }
}
