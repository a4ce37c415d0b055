//! Checks that a unique index is unique: no two live rows have the same key.
//!
//! ```text
//!   order known     leaf by leaf: … 7 ─ 7 ─ 8 …      equal keys are adjacent
//!   order unknown   hashes of all keys, sorted       equal hashes, wherever the keys are
//!                     └▶ rows behind equal keys ──▶ checked, many at a time ──▶ two of them live?
//! ```
//!
//! Dead tuples keep their index entries until VACUUM, so equal keys are common. They are only a
//! problem if more than one of their rows is live. Nulls are not equal to each other unless the
//! index is `NULLS NOT DISTINCT`.
//!
//! **Unknown order.** The sort order of text depends on the server's collation library. If that
//! library was updated, keys may be in the wrong place. This is how duplicates usually get into a
//! unique index, and such duplicates aren't adjacent. For these indexes we therefore collect key
//! hashes, in bounded memory. If there are too many, we drop the upper half and walk the leaves
//! again for it.
//!
//! **Limits.** The chance that two different keys have the same hash is 1 in 2⁶⁴. We don't find
//! keys that are equal but differ in their bytes, for example `1.0` and `1.00` within an array, or
//! keys under a case-insensitive collation.

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

/// We check the visibility of rows once this many of them have been collected, or at the end.
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
    /// Makes a check for an index of `table`, which keeps at most `most` hashes at a time.
    pub(super) fn new(
        table: &'t CheckedTable,
        index: &'t CheckedIndex,
        finder: LiveRowFinder<'t>,
        most: usize,
        sink: &'t Sink<'t>,
    ) -> Self {
        // Comparing neighbours is cheaper and exact, but only works if we know the order.
        let search = match index.has_unknown_order() {
            true => DuplicateSearch::Hashed(Hashes::new(index, 0, most)),
            false => DuplicateSearch::Adjacent(EqualRun::default()),
        };
        let rows = Vec::new();
        let duplicates = Duplicates { table, index, finder, sink, rows, group: 0, earlier: None };
        Self { index, duplicates, search }
    }

    /// Adds the entries of a leaf. Leaves must be passed in index order.
    pub(super) fn leaf(&mut self, page: &BtreePage<'_>) {
        match &mut self.search {
            DuplicateSearch::Adjacent(run) => run.leaf(self.index, page, &mut self.duplicates),
            DuplicateSearch::Hashed(hashes) => hashes.leaf(self.index, page),
        }
    }

    /// Checks the visibility of the collected rows if there are enough of them.
    ///
    /// # Errors
    /// The session was cancelled.
    pub(super) fn page_done(&mut self, backend: &mut Backend) -> Result<(), ReadError> {
        match self.duplicates.rows.len() < JUDGED_MIN {
            true => Ok(()),
            false => self.duplicates.judge(backend),
        }
    }

    /// Completes the check after the last leaf. If some of the hashes didn't fit in memory, walks
    /// the leaves again to collect them.
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
                // The first walk has already reported other errors.
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
    /// A live row with the current key that an earlier call found. The run of equal keys may
    /// continue after that call.
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
        // If a row has two entries, the table check reports that. Here they must count as one row.
        live.dedup();
        for same in live.chunk_by(|one, other| one.group == other.group) {
            let [first, others @ ..] = same else { continue };
            for Live { version: Tid { block, item }, .. } in others {
                let index = self.index.name.clone();
                let problem = ContentProblem::NotUnique { index, other: first.version };
                self.sink.table(self.table, Some(*block), Some(*item), problem);
            }
            // The current run of equal keys may continue on the next leaf, so keep its live row for
            // comparison with later rows.
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
    /// The key columns of the previous leaf's last entry. `None` if there was no previous leaf, or
    /// if no other key can be equal to that key.
    last: Option<Vec<Option<Vec<u8>>>>,
    rows: RunRows,
}

/// The rows of the current key.
#[derive(Default)]
enum RunRows {
    #[default]
    None,
    /// Just one row so far. We don't add it to the duplicates until we see a second row, because
    /// most keys have only one.
    One(Tid),
    /// Several rows, all added to the duplicates.
    More,
}

impl EqualRun {
    /// Compares adjacent entries on a leaf, and the leaf's first entry with the previous leaf's
    /// last one.
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
            // If a posting list's key contains a null, not even the TIDs within that list count as
            // equal to each other.
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

/// The payloads of an entry's key columns, copied for comparison with the next leaf.
fn key_of(index: &CheckedIndex, entry: &Entry<'_>) -> Option<Vec<Option<Vec<u8>>>> {
    let layout = index.index.layout();
    let mut room = Vec::new();
    let columns = layout.attributes(entry).zip(layout.keys()).map(|(stored, column)| {
        let Some(stored) = stored.ok()? else { return Some(None) };
        Some(Some(column.payload(stored, &mut room).ok()?.to_vec()))
    });
    columns.collect()
}

/// Key hashes within a range, as many as fit in memory.
struct Hashes {
    list: Vec<(u64, Tid)>,
    /// The start of the range.
    from: u64,
    /// The end of the range, exclusive, where the next walk begins. `None` if there is no limit.
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

    /// Walks the leaves and adds the hashes that are in range.
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

    /// Adds the hashes of all keys on a leaf that are in range. Skips keys that no other key can be
    /// equal to.
    fn leaf(&mut self, index: &CheckedIndex, page: &BtreePage<'_>) {
        for entry in page.entries().flatten().filter(|entry| !entry.is_dead()) {
            let Ok(hash) = hash_entry(index.index.layout(), &entry, &self.keys) else { continue };
            if hash < self.from || self.below.is_some_and(|end| hash >= end) {
                continue;
            }
            if index.can_equal(&entry) {
                entry.rows().for_each(|row| self.push(hash, row));
            }
        }
    }

    /// Adds a hash. If there are too many hashes, drops the upper half and lowers the end of the
    /// range accordingly. The range ends at a hash value, so we keep either all or none of the rows
    /// with the same hash.
    fn push(&mut self, hash: u64, row: Tid) {
        self.list.push((hash, row));
        if self.list.len() <= self.most {
            return;
        }
        // Selection takes linear time. We sort the list only once, when it's complete.
        let middle = self.list.len() / 2;
        let (_, &mut (end, _), _) = self.list.select_nth_unstable(middle);
        // The range must not become empty, or the next walk would start where this one did.
        let end = end.max(self.from.saturating_add(1));
        self.list.retain(|(hash, _)| *hash < end);
        self.below = Some(end);
        // If all rows have the same hash, we can't divide the range. Half of the memory still holds
        // more row versions than a server ever leaves behind, so it's safe to drop the rest.
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
