//! Whether a unique index is: no two of its entries with the same key lead to rows that are there.
//!
//! ```text
//!   order known     leaf by leaf: … 7 ─ 7 ─ 8 …      equal keys stand side by side
//!   order unknown   hashes of all keys, sorted       equal bytes, wherever they stand
//!                     └▶ rows behind equal keys ──▶ judged, many at a time ──▶ two of them live?
//! ```
//! Row versions that were replaced keep their entries until a vacuum, so equal keys are common, and
//! mean nothing while one of their rows at most is live. Nulls are not equal to each other, unless
//! the index was made `NULLS NOT DISTINCT`.
//!
//! Text whose order only the server's libraries know may stand in the wrong place after these were
//! replaced: that is how duplicates get into a unique index, and they are not side by side then. So
//! of such keys hashes are kept, in bounded memory: where they are too many, the lower half of them
//! is kept, and the leaves are walked again for the others. Two keys have the same hash by chance
//! once in 2⁶⁴. Keys that are equal and not the same bytes (`1.0` and `1.00` within an array, a
//! collation without case) are not found there.

use std::cmp::Ordering;

use trunkline_format::btree::{BtreePage, Entry, Fault, Key};
use trunkline_format::{BlockNo, Tid};

use super::entries::hash_entry;
use super::judge::Judge;
use super::problem::ContentProblem;
use super::sink::Sink;
use super::structure::{self, Visitor};
use super::target::{IndexTarget, Target};
use crate::pool::{Backend, ReadError};
use crate::read_stream::StreamOptions;

/// Rows that are judged at a time, at least, unless there are no more.
const JUDGED_MIN: usize = 1 << 16;

/// The check of one index.
pub(super) struct Unique<'t> {
    index: &'t IndexTarget,
    doubles: Doubles<'t>,
    way: Way,
}

/// How equal keys are found.
enum Way {
    /// They are neighbours.
    Order(Run),
    /// They have the same hash.
    Hash(Hashes),
}

impl<'t> Unique<'t> {
    /// Of an index of `target`; at most `most` hashes are kept at a time.
    pub(super) fn new(
        target: &'t Target,
        index: &'t IndexTarget,
        judge: Judge<'t>,
        most: usize,
        sink: &'t Sink<'t>,
    ) -> Self {
        let way = match index.has_unknown_order() {
            true => Way::Hash(Hashes::new(index, 0, most)),
            false => Way::Order(Run::default()),
        };
        let rows = Vec::new();
        let doubles = Doubles { target, index, judge, sink, rows, group: 0, earlier: None };
        Self { index, doubles, way }
    }

    /// Takes the entries of a leaf; leaves come in their order.
    pub(super) fn leaf(&mut self, page: &BtreePage<'_>) {
        match &mut self.way {
            Way::Order(run) => run.leaf(self.index, page, &mut self.doubles),
            Way::Hash(hashes) => hashes.leaf(self.index, page),
        }
    }

    /// Judges what has gathered, if it is enough.
    ///
    /// # Errors
    /// The session was cancelled.
    pub(super) fn page_done(&mut self, backend: &mut Backend) -> Result<(), ReadError> {
        match self.doubles.rows.len() < JUDGED_MIN {
            true => Ok(()),
            false => self.doubles.settle(backend),
        }
    }

    /// There are no more leaves.
    ///
    /// # Errors
    /// The session was cancelled.
    pub(super) fn finish(
        mut self,
        backend: &mut Backend,
        options: StreamOptions,
    ) -> Result<(), ReadError> {
        if let Way::Hash(hashes) = self.way {
            let mut hashes = hashes;
            loop {
                hashes.doubles(backend, &mut self.doubles)?;
                let Some(from) = hashes.below.filter(|_| !self.doubles.sink.is_stopping()) else {
                    break;
                };
                hashes = Hashes::new(self.index, from, hashes.most);
                let mut again =
                    Again { index: self.index, sink: self.doubles.sink, hashes: &mut hashes };
                structure::check(&self.index.index, backend, options, true, &mut again)?;
            }
        }
        self.doubles.settle(backend)
    }
}

/// Rows behind equal keys, until they are judged.
struct Doubles<'t> {
    target: &'t Target,
    index: &'t IndexTarget,
    judge: Judge<'t>,
    sink: &'t Sink<'t>,
    /// As entries have them, with the number of their key.
    rows: Vec<(Tid, u64)>,
    /// The number of the key at hand.
    group: u64,
    /// A row that was found live behind that key, if it has been asked for.
    earlier: Option<Live>,
}

/// A row that is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Live {
    group: u64,
    version: Tid,
}

impl Doubles<'_> {
    fn push(&mut self, row: Tid) {
        self.rows.push((row, self.group));
    }

    /// Judges the rows, and tells of keys behind which two are live.
    fn settle(&mut self, backend: &mut Backend) -> Result<(), ReadError> {
        let mut live: Vec<Live> = self.earlier.take().into_iter().collect();
        self.judge.live(backend, &mut self.rows, |&group, version, _| {
            live.push(Live { group, version });
        })?;
        live.sort_unstable();
        // One row under two entries is another matter, which is told.
        live.dedup();
        for same in live.chunk_by(|one, other| one.group == other.group) {
            let [first, others @ ..] = same else { continue };
            for Live { version: Tid { block, item }, .. } in others {
                let index = self.index.name.clone();
                let problem = ContentProblem::NotUnique { index, other: first.version };
                self.sink.table(self.target, Some(*block), Some(*item), problem);
            }
            if first.group == self.group {
                self.earlier = Some(*first);
            }
        }
        Ok(())
    }
}

/// Neighbours with the same key.
#[derive(Default)]
struct Run {
    /// The columns of the last key of the leaf before; `None`: there is none, or it equals nothing.
    last: Option<Vec<Option<Vec<u8>>>>,
    rows: Rows,
}

/// The rows behind the key at hand.
#[derive(Default)]
enum Rows {
    #[default]
    None,
    /// Only one, which need not be judged.
    One(Tid),
    /// More, all handed over.
    More,
}

impl Run {
    fn leaf(&mut self, index: &IndexTarget, page: &BtreePage<'_>, doubles: &mut Doubles<'_>) {
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
            // The rows of a list of nulls are not equal to each other either.
            let can_equal = index.can_equal(&entry);
            if ordering != Some(Ordering::Equal) || !can_equal {
                doubles.group += 1;
                self.rows = Rows::None;
            }
            for row in entry.rows().filter(|_| can_equal) {
                self.add(row, doubles);
            }
            before = Some(entry);
        }
        if let Some(entry) = before {
            self.last = key_of(index, &entry);
        }
    }

    fn add(&mut self, row: Tid, doubles: &mut Doubles<'_>) {
        self.rows = match self.rows {
            Rows::None => Rows::One(row),
            Rows::One(first) => {
                doubles.push(first);
                doubles.push(row);
                Rows::More
            }
            Rows::More => {
                doubles.push(row);
                Rows::More
            }
        }
    }
}

/// The payloads of an entry's key.
fn key_of(index: &IndexTarget, entry: &Entry<'_>) -> Option<Vec<Option<Vec<u8>>>> {
    let layout = index.index.layout();
    let mut room = Vec::new();
    let columns = layout.attributes(entry).zip(layout.keys()).map(|(stored, column)| {
        let Some(stored) = stored.ok()? else { return Some(None) };
        Some(Some(column.payload(stored, &mut room).ok()?.to_vec()))
    });
    columns.collect()
}

/// Hashes of keys, from one on, as many as there is room for.
struct Hashes {
    list: Vec<(u64, Tid)>,
    from: u64,
    /// Those from here on are left for another time.
    below: Option<u64>,
    most: usize,
    /// Of each column, whether it is part of the key.
    keys: Vec<bool>,
}

impl Hashes {
    fn new(index: &IndexTarget, from: u64, most: usize) -> Self {
        let layout = index.index.layout();
        let keys = (0..layout.columns().len()).map(|at| at < layout.keys().len()).collect();
        Self { list: Vec::new(), from, below: None, most: most.max(1024), keys }
    }

    fn leaf(&mut self, index: &IndexTarget, page: &BtreePage<'_>) {
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

    fn push(&mut self, hash: u64, row: Tid) {
        self.list.push((hash, row));
        if self.list.len() <= self.most {
            return;
        }
        let middle = self.list.len() / 2;
        let (_, &mut (end, _), _) = self.list.select_nth_unstable(middle);
        let end = end.max(self.from.saturating_add(1));
        self.list.retain(|(hash, _)| *hash < end);
        self.below = Some(end);
        // All behind one key: half of its versions is more than any server leaves there.
        self.list.truncate(self.most / 2 + 1);
    }

    /// Hands over the rows behind equal hashes.
    fn doubles(
        &mut self,
        backend: &mut Backend,
        doubles: &mut Doubles<'_>,
    ) -> Result<(), ReadError> {
        self.list.sort_unstable();
        let groups = self.list.chunk_by(|(one, _), (other, _)| one == other);
        for group in groups.filter(|group| group.len() > 1) {
            doubles.group += 1;
            group.iter().for_each(|(_, row)| doubles.push(*row));
            if doubles.rows.len() >= JUDGED_MIN {
                doubles.settle(backend)?;
            }
        }
        Ok(())
    }
}

/// Walks the leaves for the hashes that there was no room for.
struct Again<'a, 't> {
    index: &'t IndexTarget,
    sink: &'t Sink<'t>,
    hashes: &'a mut Hashes,
}

impl Visitor for Again<'_, '_> {
    fn leaf(&mut self, _: BlockNo, page: &BtreePage<'_>) -> Result<(), Fault> {
        self.hashes.leaf(self.index, page);
        Ok(())
    }

    fn problem(&mut self, _: BlockNo, _: Option<u16>, _: ContentProblem) {
        // The first walk told of it.
    }

    fn page_done(&mut self, _: &mut Backend) -> Result<bool, ReadError> {
        Ok(!self.sink.is_stopping())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hashes(from: u64) -> Hashes {
        Hashes { list: Vec::new(), from, below: None, most: 1024, keys: Vec::new() }
    }

    #[test]
    fn hashes_come_in_parts_and_each_whole() {
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
    fn one_hash_too_often_ends_too() {
        let mut part = hashes(0);
        (0..5000).for_each(|block| part.push(9, Tid { block, item: 1 }));
        assert!(part.list.len() <= part.most);
    }
}
