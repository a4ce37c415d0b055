//! **Key ranges**: index conditions, prepared for a scan in one direction.
//!
//! ```text
//!   a = 1 or 4, b >= 7           entry (1, 3)  ─▶ seek before (1, 7)
//!                                entry (1, 9)  ─▶ match, and so is everything before after (1)
//!                                entry (2, 8)  ─▶ seek before (4, 7)
//!                                entry (5, 1)  ─▶ end
//!   b = 7, nothing about a       entry (3, 9)  ─▶ seek after (3), or before (4, 7) if a is an integer
//! ```
//! Each column has a set of allowed values, as intervals. The allowed keys are all combinations, and
//! one function answers the only question that a scan has: given a place in the index, where can the
//! next match be? That covers ranges, lists on any column and columns without a condition, and it
//! works for the separators above the leaves as well, so the scan also knows which pages it can skip.
//! PostgreSQL does the same with array keys and skip arrays (`nbtutils.c`), which it advances
//! separately.
//!
//! A scan to the left is a scan to the right of the mirrored index: every column is sorted the other
//! way round. So everything here is written for one direction, and only [`Cut`]s are turned.

use super::condition::{Condition, KeyValue, RowTest, Unusable};
use super::entry::Entry;
use super::fault::Fault;
use super::interval::{Edge, IntervalSet};
use super::key::{Key, KeyColumn};
use super::layout::KeyLayout;
use super::order::Order;
use crate::little_endian::read_at;
use std::cmp::Ordering;

/// Which way a scan goes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Direction {
    /// From the left to the right, in the order of the index.
    #[default]
    Forward,
    /// From the right to the left.
    Backward,
}

/// A place between two entries of the index: next to all entries that have these leading columns.
/// Without columns, it is an end of the index.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cut {
    /// The leading columns.
    pub(super) values: Vec<KeyValue>,
    /// Whether a scan has passed the entries with these columns when it is here. That depends on the
    /// scan's direction.
    pub(super) passed: bool,
}

impl Cut {
    fn keys(&self) -> impl Iterator<Item = Key<'_>> {
        self.values.iter().map(Option::as_deref)
    }
}

/// What a scan does at an entry.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Verdict {
    /// The entry matches, apart from row comparisons, and so do all entries up to this cut.
    Match(Cut),
    /// The next match is behind this cut.
    Seek(Cut),
    /// There are no more matches.
    End,
}

/// What [`KeyRanges::next_match`] found.
enum Next {
    /// The key itself.
    Here,
    Behind(Cut),
    End,
}

/// The key ranges of a scan.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeyRanges {
    direction: Direction,
    /// The index's key columns, in the order of the scan.
    columns: Vec<KeyColumn>,
    /// The allowed values of each column, up to the last column with a condition.
    sets: Vec<IntervalSet>,
    /// Where row comparisons let the scan begin and end.
    low: Option<Cut>,
    high: Option<Cut>,
    rows: Vec<RowTest>,
    /// The first match is at or behind this cut.
    start: Cut,
}

/// The end of the index where a scan begins.
const BEGINNING: Cut = Cut { values: Vec::new(), passed: false };

impl KeyRanges {
    /// Prepares conditions that must all hold. Returns `Ok(None)` if no entry can match, for example
    /// because of `a < 1 and a > 2` or `a = null`.
    ///
    /// # Errors
    /// [`Unusable`] if the index can't be searched for these conditions. Without conditions, any
    /// index can be scanned.
    pub fn new(
        layout: &KeyLayout,
        conditions: &[Condition],
        direction: Direction,
    ) -> Result<Option<Self>, Unusable> {
        let keys = layout.keys();
        let count = conditions.iter().map(|condition| condition.last_column() + 1).max();
        let count = count.unwrap_or_default();
        if count > keys.len() {
            return Err(Unusable::NoColumn { column: keys.len() as u16 + 1 });
        }
        // A column in between needs a known order too, because the scan goes from one value to the
        // next.
        let known = |column: &KeyColumn| !matches!(column.order, Order::Unknown | Order::Enum);
        if let Some(at) = keys.iter().take(count).position(|column| !known(column)) {
            return Err(Unusable::UnknownOrder { column: at as u16 + 1 });
        }
        let mut ranges = Self {
            direction: Direction::Forward,
            columns: keys.to_vec(),
            sets: vec![IntervalSet::all(); count],
            low: None,
            high: None,
            rows: Vec::new(),
            start: BEGINNING,
        };
        for condition in conditions {
            if !ranges.add(condition)? {
                return Ok(None);
            }
        }
        while ranges.sets.last().is_some_and(IntervalSet::is_all) {
            ranges.sets.pop();
        }
        if ranges.sets.iter().any(|set| set.0.is_empty()) {
            return Ok(None);
        }
        if direction == Direction::Backward {
            ranges = ranges.mirrored();
        }
        // All values can be compared, so this can't fail.
        let unknown = |_| Unusable::UnknownOrder { column: 1 };
        let start = ranges.at_least(BEGINNING).map_err(unknown)?;
        Ok(start.map(|start| Self { start, ..ranges }))
    }

    /// All entries.
    pub fn all(layout: &KeyLayout, direction: Direction) -> Self {
        let forward = Self {
            direction: Direction::Forward,
            columns: layout.keys().to_vec(),
            sets: Vec::new(),
            low: None,
            high: None,
            rows: Vec::new(),
            start: BEGINNING,
        };
        if direction == Direction::Backward { forward.mirrored() } else { forward }
    }

    /// The direction of the scan.
    pub fn direction(&self) -> Direction {
        self.direction
    }

    /// Adds a condition. Returns false if nothing can match it.
    fn add(&mut self, condition: &Condition) -> Result<bool, Unusable> {
        self.check_values(condition)?;
        let (at, set) = match condition {
            Condition::Compare { column, comparison, value } => {
                let known = self.column(*column)?;
                (*column, IntervalSet::of(*comparison, value.clone(), known))
            }
            Condition::AnyOf { column, values } => {
                (*column, IntervalSet::any_of(values.clone(), self.column(*column)?))
            }
            Condition::IsNull { column } => (*column, Some(IntervalSet::null())),
            Condition::IsNotNull { column } => {
                (*column, Some(IntervalSet::not_null(self.column(*column)?)))
            }
            Condition::Row { comparison, values } => return self.add_row(*comparison, values),
        };
        self.intersect(at, set)?;
        Ok(true)
    }

    /// Checks that all values of a condition have their column's type, as far as their length and their
    /// header show that. Two such values can always be compared. So later, if the scan can't compare
    /// something, that is an entry of the index.
    fn check_values(&self, condition: &Condition) -> Result<(), Unusable> {
        let check = |at: usize, value: &KeyValue| {
            let order = self.column(at)?.order;
            match value.as_deref().map(|value| order.compare(value, value)) {
                Some(None) => Err(Unusable::UnknownOrder { column: at as u16 + 1 }),
                Some(Some(_)) | None => Ok(()),
            }
        };
        match condition {
            Condition::Compare { column, value, .. } => check(*column, value),
            Condition::AnyOf { column, values } => {
                values.iter().try_for_each(|value| check(*column, value))
            }
            Condition::Row { values, .. } => {
                values.iter().enumerate().try_for_each(|(at, value)| check(at, value))
            }
            Condition::IsNull { .. } | Condition::IsNotNull { .. } => Ok(()),
        }
    }

    fn add_row(
        &mut self,
        comparison: super::condition::Comparison,
        values: &[KeyValue],
    ) -> Result<bool, Unusable> {
        if values.is_empty() || comparison == super::condition::Comparison::Equal {
            return Err(Unusable::Row);
        }
        let Some(test) = RowTest::new(comparison, values.to_vec()) else { return Ok(false) };
        let first = self.column(0)?;
        let value = test.values().first().cloned().flatten();
        let set = IntervalSet::of(test.on_first_column(), value, first);
        // If all columns are sorted the same way, the rows are contiguous.
        let descending = first.descending;
        let sorted = self.columns.iter().take(test.values().len());
        let contiguous = sorted.clone().all(|column| column.descending == descending);
        self.intersect(0, set)?;
        if contiguous {
            let (below, inclusive) = match test.comparison() {
                super::condition::Comparison::Less => (true, false),
                super::condition::Comparison::LessOrEqual => (true, true),
                super::condition::Comparison::GreaterOrEqual => (false, true),
                _ => (false, false),
            };
            let until = below != descending;
            let cut = Cut { values: test.values().to_vec(), passed: until == inclusive };
            let bound = if until { &mut self.high } else { &mut self.low };
            let tighter = match bound {
                None => true,
                Some(known) => {
                    let wanted = if until { Ordering::Less } else { Ordering::Greater };
                    compare_cuts(&self.columns, &cut, known) == Some(wanted)
                }
            };
            if tighter {
                *bound = Some(cut);
            }
        }
        self.rows.push(test);
        Ok(true)
    }

    fn column(&self, at: usize) -> Result<&KeyColumn, Unusable> {
        self.columns.get(at).ok_or(Unusable::NoColumn { column: at as u16 + 1 })
    }

    fn intersect(&mut self, at: usize, set: Option<IntervalSet>) -> Result<(), Unusable> {
        let column = self.columns.get(at);
        let known = self.sets.get_mut(at);
        let (Some(column), Some(known)) = (column, known) else {
            return Err(Unusable::NoColumn { column: at as u16 + 1 });
        };
        let both = set.and_then(|set| known.intersection(&set, column));
        // A value that isn't of the column's type can't be compared.
        *known = both.ok_or(Unusable::UnknownOrder { column: at as u16 + 1 })?;
        Ok(())
    }

    /// The same ranges for a scan in the other direction.
    fn mirrored(self) -> Self {
        let mut columns = self.columns;
        for column in &mut columns {
            column.descending = !column.descending;
            column.nulls_first = !column.nulls_first;
        }
        let turned =
            |cut: Option<Cut>| cut.map(|Cut { values, passed }| Cut { values, passed: !passed });
        Self {
            direction: match self.direction {
                Direction::Forward => Direction::Backward,
                Direction::Backward => Direction::Forward,
            },
            columns,
            sets: self.sets.into_iter().map(IntervalSet::mirrored).collect(),
            low: turned(self.high),
            high: turned(self.low),
            rows: self.rows,
            start: BEGINNING,
        }
    }

    /// Where the scan starts.
    pub fn start(&self) -> Cut {
        self.start.clone()
    }

    /// Compares where two scans start, whose ranges have the same columns and direction as these.
    pub fn compare_starts(&self, one: &Cut, other: &Cut) -> Ordering {
        self.compare_cuts(one, other).unwrap_or(Ordering::Equal)
    }

    /// The cut at or behind `cut` from where on there may be matches.
    pub(super) fn at_least(&self, cut: Cut) -> Result<Option<Cut>, Fault> {
        let next = {
            let keys: Vec<Key<'_>> = cut.keys().collect();
            self.next_match(&keys, cut.passed)?
        };
        let found = match next {
            Next::Here => cut,
            Next::Behind(behind) => behind,
            Next::End => return Ok(None),
        };
        self.within_rows(found)
    }

    /// Moves a cut behind the low bound, and ends at the high bound.
    fn within_rows(&self, mut cut: Cut) -> Result<Option<Cut>, Fault> {
        if let Some(low) = &self.low
            && self.compare_cuts(&cut, low)? == Ordering::Less
        {
            let keys: Vec<Key<'_>> = low.keys().collect();
            cut = match self.next_match(&keys, low.passed)? {
                Next::Here => low.clone(),
                Next::Behind(behind) => behind,
                Next::End => return Ok(None),
            };
        }
        if let Some(high) = &self.high
            && self.compare_cuts(&cut, high)? != Ordering::Less
        {
            return Ok(None);
        }
        Ok(Some(cut))
    }

    /// What a scan does at an entry with these columns.
    pub(super) fn verdict(&self, found: &[Key<'_>]) -> Result<Verdict, Fault> {
        let cut = match self.next_match(found, false)? {
            Next::End => return Ok(Verdict::End),
            Next::Behind(cut) => {
                return Ok(self.within_rows(cut)?.map_or(Verdict::End, Verdict::Seek));
            }
            Next::Here => self.end_of_run(found)?,
        };
        if let Some(low) = &self.low
            && self.is_before(found, low)?
        {
            return Ok(self.at_least(low.clone())?.map_or(Verdict::End, Verdict::Seek));
        }
        let Some(high) = &self.high else { return Ok(Verdict::Match(cut)) };
        if !self.is_before(found, high)? {
            return Ok(Verdict::End);
        }
        let nearer = self.compare_cuts(high, &cut)? == Ordering::Less;
        Ok(Verdict::Match(if nearer { high.clone() } else { cut }))
    }

    /// Whether an entry that is in range also passes the row comparisons.
    pub(super) fn passes_rows(&self, found: &[Key<'_>]) -> Result<bool, Fault> {
        for test in &self.rows {
            if !test.passes(&self.columns, found)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether entries in range need [`Self::passes_rows`].
    pub(super) fn has_rows(&self) -> bool {
        !self.rows.is_empty()
    }

    /// The last entry of a run of matches is before this cut: all of them have the same leading
    /// columns as `found`, and the last column with a condition is in the same interval.
    fn end_of_run(&self, found: &[Key<'_>]) -> Result<Cut, Fault> {
        let Some(last) = self.sets.len().checked_sub(1) else {
            return Ok(Cut { values: Vec::new(), passed: true });
        };
        let mut values = owned(found.iter().take(last));
        let interval = match (self.sets.get(last), self.columns.get(last), found.get(last)) {
            (Some(set), Some(column), Some(value)) => {
                let found = set.find(*value, column).ok_or(unknown(last))?;
                found.and_then(|(at, _)| set.0.get(at))
            }
            _ => None,
        };
        match interval.map(|interval| &interval.high) {
            Some(Edge::At { value, after }) => {
                values.push(value.clone());
                Ok(Cut { values, passed: *after })
            }
            _ => Ok(Cut { values, passed: true }),
        }
    }

    /// Finds the first key that may match, at or behind a key with these leading columns. If `passed`
    /// is true, keys with these leading columns don't count. Missing columns sort before all values.
    fn next_match(&self, found: &[Key<'_>], passed: bool) -> Result<Next, Fault> {
        let given = found.len().min(self.sets.len());
        // The intervals of the columns that are in range so far.
        let mut inside = [0_usize; super::MAX_INDEX_KEYS];
        for (at, value) in found.iter().take(given).enumerate() {
            let (Some(set), Some(column)) = (self.sets.get(at), self.columns.get(at)) else {
                break;
            };
            match set.find(*value, column).ok_or(unknown(at))? {
                Some((interval, true)) => {
                    if let Some(place) = inside.get_mut(at) {
                        *place = interval;
                    }
                }
                Some((interval, false)) => {
                    let edge = set.0.get(interval).map_or(&Edge::End, |interval| &interval.low);
                    return Ok(Next::Behind(self.extended(found, at, edge)));
                }
                None => return self.carried(found, at, &inside),
            }
        }
        if passed && found.len() <= self.sets.len() {
            return self.carried(found, given, &inside);
        }
        match self.sets.get(given).and_then(|set| set.0.first()) {
            None => Ok(Next::Here),
            Some(first) => Ok(Next::Behind(self.extended(found, given, &first.low))),
        }
    }

    /// Column `at` has no more values for these leading columns, so one of the columns before it must
    /// move on.
    fn carried(
        &self,
        found: &[Key<'_>],
        at: usize,
        inside: &[usize; super::MAX_INDEX_KEYS],
    ) -> Result<Next, Fault> {
        for column_at in (0..at).rev() {
            let parts = (self.sets.get(column_at), self.columns.get(column_at));
            let (Some(set), Some(column)) = parts else { continue };
            let (Some(value), Some(&interval)) = (found.get(column_at), inside.get(column_at))
            else {
                continue;
            };
            let high = set.0.get(interval).map_or(&Edge::Start, |interval| &interval.high);
            if self.goes_on(*value, high, column).ok_or(unknown(column_at))? {
                // If there is only one value that can be next, look for the other columns with it.
                let next = column.next_value(*value).filter(|next| {
                    column_at + 1 < self.sets.len()
                        && high.is_behind(Some(&**next), column) == Some(true)
                });
                let cut = match next {
                    Some(next) => {
                        let edge = Edge::At { value: Some(next), after: false };
                        self.extended(found, column_at, &edge)
                    }
                    None => Cut { values: owned(found.iter().take(column_at + 1)), passed: true },
                };
                return Ok(Next::Behind(cut));
            }
            if let Some(next) = set.0.get(interval + 1) {
                return Ok(Next::Behind(self.extended(found, column_at, &next.low)));
            }
        }
        Ok(Next::End)
    }

    /// Whether an interval that ends at `high` has values behind `value`.
    fn goes_on(&self, value: Key<'_>, high: &Edge, column: &KeyColumn) -> Option<bool> {
        match high {
            Edge::Start => Some(false),
            Edge::End => Some(true),
            Edge::At { value: last, .. } => {
                Some(column.compare(value, last.as_deref())? == Ordering::Less)
            }
        }
    }

    /// The first cut with the first `at` columns of `found`, an edge in column `at`, and the lowest
    /// allowed values in the columns after it.
    fn extended(&self, found: &[Key<'_>], at: usize, edge: &Edge) -> Cut {
        let mut values = owned(found.iter().take(at));
        let mut edge = edge;
        loop {
            match edge {
                Edge::Start => return Cut { values, passed: false },
                Edge::End => return Cut { values, passed: true },
                Edge::At { value, after } => {
                    values.push(value.clone());
                    if *after {
                        return Cut { values, passed: true };
                    }
                }
            }
            match self.sets.get(values.len()).and_then(|set| set.0.first()) {
                Some(first) => edge = &first.low,
                None => return Cut { values, passed: false },
            }
        }
    }

    /// Whether a scan gets to an entry with these columns before it gets to the cut.
    fn is_before(&self, found: &[Key<'_>], cut: &Cut) -> Result<bool, Fault> {
        for (at, wanted) in cut.keys().enumerate() {
            let (Some(found), Some(column)) = (found.get(at), self.columns.get(at)) else {
                return Ok(true);
            };
            match column.compare(*found, wanted).ok_or(unknown(at))? {
                Ordering::Less => return Ok(true),
                Ordering::Greater => return Ok(false),
                Ordering::Equal => {}
            }
        }
        Ok(cut.passed)
    }

    /// Whether a scan gets to a leaf entry before it gets to the cut. For a separator, the result is
    /// about the place that it marks: in the order of the index, a column that was truncated sorts
    /// before all values.
    pub(super) fn entry_is_before(&self, entry: &Entry<'_>, cut: &Cut) -> Result<bool, Fault> {
        let mut attributes = entry.attributes(&self.columns);
        let mut room = Vec::new();
        for (at, (wanted, column)) in cut.keys().zip(&self.columns).enumerate() {
            let Some(stored) = attributes.next() else {
                return Ok(self.direction == Direction::Forward);
            };
            let number = at as u16 + 1;
            let fault = Fault::Value { item: entry.item(), column: number };
            let found = column.key(stored?, &mut room, fault)?;
            match column.compare(found, wanted).ok_or(unknown(at))? {
                Ordering::Less => return Ok(true),
                Ordering::Greater => return Ok(false),
                Ordering::Equal => {}
            }
        }
        Ok(cut.passed)
    }

    /// Whether an entry or separator is to the left of the cut in the index, whichever way the scan
    /// goes.
    pub(super) fn entry_is_left_of(&self, entry: &Entry<'_>, cut: &Cut) -> Result<bool, Fault> {
        let before = self.entry_is_before(entry, cut)?;
        Ok(before == (self.direction == Direction::Forward))
    }

    /// The index's key columns, in the order of the scan.
    pub(super) fn columns(&self) -> &[KeyColumn] {
        &self.columns
    }

    /// The number of columns that decide whether an entry matches.
    pub(super) fn columns_needed(&self) -> usize {
        let rows = self.rows.iter().map(|test| test.values().len()).max();
        self.sets.len().max(rows.unwrap_or_default())
    }

    /// Compares two places in the order of the scan.
    pub(super) fn compare_cuts(&self, one: &Cut, other: &Cut) -> Result<Ordering, Fault> {
        compare_cuts(&self.columns, one, other).ok_or(unknown(0))
    }
}

fn unknown(column: usize) -> Fault {
    Fault::UnknownOrder { column: column as u16 + 1 }
}

fn owned<'a>(keys: impl Iterator<Item = &'a Key<'a>>) -> Vec<KeyValue> {
    keys.map(|key| key.map(Box::from)).collect()
}

fn compare_cuts(columns: &[KeyColumn], one: &Cut, other: &Cut) -> Option<Ordering> {
    for ((left, right), column) in one.keys().zip(other.keys()).zip(columns) {
        match column.compare(left, right)? {
            Ordering::Equal => {}
            ordering => return Some(ordering),
        }
    }
    Some(match one.values.len().cmp(&other.values.len()) {
        Ordering::Equal => one.passed.cmp(&other.passed),
        // The shorter one is on one side of all keys that the longer one distinguishes.
        Ordering::Less => {
            if one.passed {
                Ordering::Greater
            } else {
                Ordering::Less
            }
        }
        Ordering::Greater => {
            if other.passed {
                Ordering::Less
            } else {
                Ordering::Greater
            }
        }
    })
}

impl KeyColumn {
    /// The only value that can follow `value` in the order of the column, if there is such a value
    /// and its type is an integer (PostgreSQL's skip support).
    fn next_value(&self, value: Key<'_>) -> Option<Box<[u8]>> {
        let value = value?;
        let step: i64 = if self.descending { -1 } else { 1 };
        let within = |next: Option<i64>, low: i64, high: i64| {
            next.filter(|next| (low..=high).contains(next))
        };
        let (next, size) = match self.order {
            Order::Int2 => {
                let value = i64::from(read_at::<i16>(value, 0)?);
                (within(value.checked_add(step), i16::MIN.into(), i16::MAX.into())?, 2)
            }
            Order::Int4 => {
                let value = i64::from(read_at::<i32>(value, 0)?);
                (within(value.checked_add(step), i32::MIN.into(), i32::MAX.into())?, 4)
            }
            Order::Int8 => (read_at::<i64>(value, 0)?.checked_add(step)?, 8),
            Order::Oid => {
                let value = i64::from(read_at::<u32>(value, 0)?);
                (within(value.checked_add(step), 0, u32::MAX.into())?, 4)
            }
            _ => return None,
        };
        next.to_le_bytes().get(..size).map(Box::from)
    }
}

#[cfg(test)]
mod tests;
