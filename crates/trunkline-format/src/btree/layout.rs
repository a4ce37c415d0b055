//! Compares whole index tuples (`_bt_compare`), searches the tree for a key, and checks that the
//! tuples on a page are in key order.
//!
//! ```text
//!   from > high key ──────▶ Right   the page was split, or deleted, since its parent was read
//!   a level above leaves ─▶ Down    the last separator below `from`; the first is below everything
//!   a leaf ───────────────▶ Here    the first entry that is not below `from`
//! ```
//! Readers do not hold any lock while following a downlink, so the child page can be split before
//! they get there. As in Lehman and Yao's algorithm, the search recovers by moving right until its
//! key is no longer greater than the page's high key (`_bt_moveright`).
//!
//! If a pivot tuple is equal to the search key, we descend to the child before it, because the
//! first matching tuple may be on that page. Mirrors PostgreSQL's `access/nbtree/nbtsearch.c`.

use super::entry::{Attributes, Entry, Target};
use super::fault::Fault;
use super::key::{Key, KeyColumn};
use super::page::{BtreePage, Place};
use crate::ids::BlockNo;
use std::cmp::Ordering;

/// Where a search goes after it has examined a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// Move to the right sibling.
    Right(BlockNo),
    /// Descend to this child page, one level down.
    Down(BlockNo),
    /// The search ends on this leaf. This is the line pointer of the first entry that is greater
    /// than or equal to the key. If it is one past the last entry, there is no such entry on this
    /// page.
    Here(u16),
}

/// The columns of an index.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeyLayout {
    columns: Vec<KeyColumn>,
    keys: usize,
}

impl KeyLayout {
    /// Creates the layout of an index that has the given columns. The first `keys` columns are key
    /// columns. The rest are `INCLUDE` columns, which are stored only in leaf tuples.
    pub fn new(columns: Vec<KeyColumn>, keys: usize) -> Self {
        let keys = keys.min(columns.len());
        Self { columns, keys }
    }

    /// All columns, including `INCLUDE` columns.
    pub fn columns(&self) -> &[KeyColumn] {
        &self.columns
    }

    /// The key columns.
    pub fn keys(&self) -> &[KeyColumn] {
        &self.columns[..self.keys]
    }

    /// The stored columns of `entry`.
    pub fn attributes<'a>(&self, entry: &Entry<'a>) -> Attributes<'a, '_> {
        entry.attributes(&self.columns)
    }

    /// Compares the leading columns of `entry` with `key`. If suffix truncation has removed a
    /// column from a pivot tuple, that column is treated as minus infinity.
    ///
    /// # Errors
    /// The entry's columns are damaged, or their order is unknown.
    pub fn compare(&self, entry: &Entry<'_>, key: &[Key<'_>]) -> Result<Ordering, Fault> {
        let mut attributes = entry.attributes(self.keys());
        let mut room = Vec::new();
        for ((column, wanted), number) in self.keys().iter().zip(key).zip(1..) {
            let Some(stored) = attributes.next() else { return Ok(Ordering::Less) };
            let fault = Fault::Value { item: entry.item(), column: number };
            let found = column.key(stored?, &mut room, fault)?;
            match column.compare(found, *wanted) {
                Some(Ordering::Equal) => {}
                Some(ordering) => return Ok(ordering),
                None => return Err(Fault::UnknownOrder { column: number }),
            }
        }
        Ok(Ordering::Equal)
    }

    /// Compares the key columns that both entries have. Returns how many of the leading ones are equal, and the order.
    /// If one entry has fewer columns, and they are all equal, it is the lesser one.
    fn compare_columns(
        &self,
        left: &Entry<'_>,
        right: &Entry<'_>,
    ) -> Result<(usize, Ordering), Fault> {
        let keys = self.keys();
        let (mut lefts, mut rights) = (left.attributes(keys), right.attributes(keys));
        let (mut left_room, mut right_room) = (Vec::new(), Vec::new());
        for (at, column) in keys.iter().enumerate() {
            let number = at as u16 + 1;
            let fault = |entry: &Entry<'_>| Fault::Value { item: entry.item(), column: number };
            let (found_left, found_right) = match (lefts.next(), rights.next()) {
                (Some(left), Some(right)) => (left?, right?),
                (None, Some(_)) => return Ok((at, Ordering::Less)),
                (Some(_), None) => return Ok((at, Ordering::Greater)),
                (None, None) => return Ok((at, Ordering::Equal)),
            };
            let left = column.key(found_left, &mut left_room, fault(left))?;
            let right = column.key(found_right, &mut right_room, fault(right))?;
            match column.compare(left, right) {
                Some(Ordering::Equal) => {}
                Some(ordering) => return Ok((at, ordering)),
                None => return Err(Fault::UnknownOrder { column: number }),
            }
        }
        Ok((keys.len(), Ordering::Equal))
    }

    /// The number of leading key columns whose values are equal in both entries.
    ///
    /// # Errors
    /// Same as [`Self::compare`].
    pub fn equal_columns(&self, left: &Entry<'_>, right: &Entry<'_>) -> Result<usize, Fault> {
        self.compare_columns(left, right).map(|(equal, _)| equal)
    }

    /// Compares the keys of two entries. If the keys are equal and `rows` is true, also compares
    /// the heap TIDs. A posting list covers a range of TIDs, so we compare the last TID of `left`
    /// with the first TID of `right`.
    ///
    /// # Errors
    /// Same as [`Self::compare`].
    pub fn compare_entries(
        &self,
        left: &Entry<'_>,
        right: &Entry<'_>,
        rows: bool,
    ) -> Result<Ordering, Fault> {
        let (_, ordering) = self.compare_columns(left, right)?;
        if ordering != Ordering::Equal {
            return Ok(ordering);
        }
        // A heap TID that was truncated is treated as minus infinity. It is represented by `None`,
        // which sorts before any TID.
        Ok(if rows { left.last_row().cmp(&right.first_row()) } else { Ordering::Equal })
    }

    /// Returns true if two pivot tuples have the same columns and, if `rows` is true, the same heap
    /// TID. A page's downlink is a copy of its left sibling's high key, so we can simply compare
    /// the bytes and don't need the data types' comparison functions.
    ///
    /// # Errors
    /// A tuple's columns are damaged.
    pub fn same_separator(
        &self,
        left: &Entry<'_>,
        right: &Entry<'_>,
        rows: bool,
    ) -> Result<bool, Fault> {
        let keys = self.keys();
        let (mut lefts, mut rights) = (left.attributes(keys), right.attributes(keys));
        loop {
            match (lefts.next().transpose()?, rights.next().transpose()?) {
                (None, None) => return Ok(!rows || left.first_row() == right.first_row()),
                (one, other) if one != other => return Ok(false),
                _ => {}
            }
        }
    }

    /// Performs one step of a search for the first entry that is greater than or equal to `from`,
    /// and returns where the search must go after `page`. `from` contains the values of one or more
    /// leading key columns.
    ///
    /// # Errors
    /// The page's entries are damaged, or their order is unknown.
    pub fn step(&self, page: &BtreePage<'_>, from: &[Key<'_>]) -> Result<Step, Fault> {
        let place = page.search(|entry| Ok(self.compare(entry, from)? == Ordering::Less))?;
        match place {
            Place::Right(right) => Ok(Step::Right(right)),
            Place::Item(item) if page.is_leaf() || page.is_ignored() => Ok(Step::Here(item)),
            Place::Item(item) => page.child_before(item).map(Step::Down),
        }
    }

    /// Decodes the columns of every entry, and checks that the entries and the high key are in
    /// order. We don't compare columns whose sort order we don't know. `orders_rows` must be the
    /// result of [`super::Meta::orders_rows`].
    ///
    /// # Errors
    /// The first fault found.
    pub fn check(&self, page: &BtreePage<'_>, orders_rows: bool) -> Result<(), Fault> {
        // On a half-dead page, VACUUM has replaced the high key with a dummy tuple that points to
        // the top parent of the subtree being deleted. The dummy tuple has no key, so there is
        // nothing to compare.
        let high = page.high_key()?.filter(|_| !page.is_half_dead());
        if let Some(high) = &high {
            self.check_columns(high, orders_rows)?;
        }
        let mut before: Option<Entry<'_>> = None;
        for entry in page.entries() {
            let entry = entry?;
            self.check_columns(&entry, orders_rows)?;
            if let Some(before) = &before
                && !self.is_below(before, &entry, orders_rows, orders_rows)?
            {
                return Err(Fault::Order { item: entry.item() });
            }
            before = Some(entry);
        }
        if let (Some(last), Some(high)) = (before, high) {
            // The last entry on a leaf page may be equal to the high key. On an inner page,
            // however, the high key is a copy of the next downlink's key, so it must be strictly
            // greater than the last entry.
            let strict = orders_rows && !page.is_leaf();
            if !self.is_below(&last, &high, orders_rows, strict)? {
                return Err(Fault::AboveHighKey { item: last.item() });
            }
        }
        Ok(())
    }

    /// Returns true if `left` sorts before `right`, or if they are equal and `strict` is false. If
    /// we don't know the order, we also return true, so that we never report a sound index as
    /// corrupt.
    fn is_below(
        &self,
        left: &Entry<'_>,
        right: &Entry<'_>,
        rows: bool,
        strict: bool,
    ) -> Result<bool, Fault> {
        match self.compare_entries(left, right, rows) {
            Ok(Ordering::Less) | Err(Fault::UnknownOrder { .. }) => Ok(true),
            Ok(Ordering::Equal) => Ok(!strict),
            Ok(Ordering::Greater) => Ok(false),
            Err(fault) => Err(fault),
        }
    }

    fn check_columns(&self, entry: &Entry<'_>, orders_rows: bool) -> Result<(), Fault> {
        let item = entry.item();
        let pivot = matches!(entry.target(), Target::Child { .. });
        let columns = if pivot { self.keys() } else { self.columns() };
        let found = entry.columns(columns.len());
        let expected = columns.len() as u16;
        let cut = entry.first_row().is_some() && found < columns.len();
        if found > columns.len() || (pivot && orders_rows && cut) {
            return Err(Fault::Columns { item, found: found as u16, expected });
        }
        let mut room = Vec::new();
        for ((stored, column), number) in entry.attributes(columns).zip(columns).zip(1..) {
            column.key(stored?, &mut room, Fault::Value { item, column: number })?;
        }
        Ok(())
    }
}
