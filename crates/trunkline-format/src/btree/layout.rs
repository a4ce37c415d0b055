//! All columns of an index: comparing its entries with a key and with each other, finding the way
//! down, and checking that a page is in order.
//!
//! ```text
//!   from > high key ──────▶ Right   the page was split, or deleted, since its parent was read
//!   a level above leaves ─▶ Down    the last separator below `from`; the first is below everything
//!   a leaf ───────────────▶ Here    the first entry that is not below `from`
//! ```
//! Separators equal to the key do not send a search to their child: equal keys may begin to its
//! left.

use super::entry::{Attributes, Entry, Target};
use super::fault::Fault;
use super::key::{Key, KeyColumn};
use super::page::BtreePage;
use crate::ids::BlockNo;
use std::cmp::Ordering;

/// Where a search goes from a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// To the right neighbour.
    Right(BlockNo),
    /// To a page of the level below.
    Down(BlockNo),
    /// It has arrived: from this line pointer on, perhaps behind the last.
    Here(u16),
}

/// The columns of an index.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeyLayout {
    columns: Vec<KeyColumn>,
    keys: usize,
}

impl KeyLayout {
    /// Of an index with these columns, of which the first `keys` are its key and the rest is only
    /// carried along on the leaves.
    pub fn new(columns: Vec<KeyColumn>, keys: usize) -> Self {
        let keys = keys.min(columns.len());
        Self { columns, keys }
    }

    /// All columns.
    pub fn columns(&self) -> &[KeyColumn] {
        &self.columns
    }

    /// The columns of the key.
    pub fn keys(&self) -> &[KeyColumn] {
        &self.columns[..self.keys]
    }

    /// The columns of `entry`, as they are stored.
    pub fn attributes<'a>(&self, entry: &Entry<'a>) -> Attributes<'a, '_> {
        entry.attributes(&self.columns)
    }

    /// How the first columns of `entry` stand to `key`. A column that was cut from a separator is
    /// below every value.
    ///
    /// # Errors
    /// The entry's columns cannot be taken apart, or their order is not known.
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

    /// How two entries stand to each other: by key and then, if `rows`, by the last row of the left
    /// and the first of the right.
    ///
    /// # Errors
    /// As [`Self::compare`].
    pub fn compare_entries(
        &self,
        left: &Entry<'_>,
        right: &Entry<'_>,
        rows: bool,
    ) -> Result<Ordering, Fault> {
        let keys = self.keys();
        let (mut lefts, mut rights) = (left.attributes(keys), right.attributes(keys));
        let (mut left_room, mut right_room) = (Vec::new(), Vec::new());
        for (column, number) in keys.iter().zip(1..) {
            let fault = |entry: &Entry<'_>| Fault::Value { item: entry.item(), column: number };
            let (found_left, found_right) = match (lefts.next(), rights.next()) {
                (Some(left), Some(right)) => (left?, right?),
                (None, Some(_)) => return Ok(Ordering::Less),
                (Some(_), None) => return Ok(Ordering::Greater),
                (None, None) => break,
            };
            let left = column.key(found_left, &mut left_room, fault(left))?;
            let right = column.key(found_right, &mut right_room, fault(right))?;
            match column.compare(left, right) {
                Some(Ordering::Equal) => {}
                Some(ordering) => return Ok(ordering),
                None => return Err(Fault::UnknownOrder { column: number }),
            }
        }
        // No row is below every row.
        Ok(if rows { left.last_row().cmp(&right.first_row()) } else { Ordering::Equal })
    }

    /// Whether two separators have the same columns and, if `rows`, the same row. This needs no
    /// order: a separator is a copy of the high key to its left.
    ///
    /// # Errors
    /// The columns cannot be taken apart.
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

    /// Where a search goes from `page` that wants the first entry that is not below `from`, the
    /// first columns of a key.
    ///
    /// # Errors
    /// The page's entries cannot be taken apart, or their order is not known.
    pub fn step(&self, page: &BtreePage<'_>, from: &[Key<'_>]) -> Result<Step, Fault> {
        if let Some(right) = page.right() {
            if page.is_ignored() {
                return Ok(Step::Right(right));
            }
            let high = page.high_key()?;
            if let Some(high) = high
                && self.compare(&high, from)? == Ordering::Less
            {
                return Ok(Step::Right(right));
            }
        } else if page.is_ignored() {
            return Ok(Step::Here(page.count().saturating_add(1)));
        }
        let first = page.first();
        // Entries below `low` are known to be below the key, those from `end` on not to be.
        let (mut low, mut end) = (first, page.count().saturating_add(1));
        if !page.is_leaf() {
            low = first.saturating_add(1);
            if end < low {
                return Err(Fault::NoDownlink);
            }
        }
        while low < end {
            let middle = low + (end - low) / 2;
            if self.compare(&page.entry(middle)?, from)? == Ordering::Less {
                low = middle + 1;
            } else {
                end = middle;
            }
        }
        if page.is_leaf() {
            return Ok(Step::Here(low));
        }
        let item = low - 1;
        page.entry(item)?.child().map(Step::Down).ok_or(Fault::Kind { item })
    }

    /// Checks the columns of every entry of `page` and that entries are in order, up to the high
    /// key. Where the order is not known, that there is one cannot be checked. `orders_rows` is
    /// [`super::Meta::orders_rows`].
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn check(&self, page: &BtreePage<'_>, orders_rows: bool) -> Result<(), Fault> {
        // Of a page that is about to be deleted it is kept for its link to another page.
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
            // A leaf's high key may be the key of its last entry; a separator's may not.
            let strict = orders_rows && !page.is_leaf();
            if !self.is_below(&last, &high, orders_rows, strict)? {
                return Err(Fault::AboveHighKey { item: last.item() });
            }
        }
        Ok(())
    }

    /// Whether `left` stands before `right`, as far as that is known; if not `strict`, it may be
    /// equal.
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
