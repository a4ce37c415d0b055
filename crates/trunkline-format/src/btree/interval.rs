//! Intervals of one column's values, in the order of the index.
//!
//! ```text
//!   values       1     2     3     NULL             a column with nulls last
//!   edges     |  ↑  |  ↑  |  ↑  |   ↑   |           one on either side of each value
//!             Start │     └ after 2   └ before NULL       2 < a:  from after 2 to before NULL
//!                   └ before 2 = after 1, if nothing is in between
//! ```
//! Because an edge lies between values, an interval is simply a pair of edges. There is no need to
//! distinguish open ends from closed ones, and a null is a value like any other.

use super::condition::{Comparison, KeyValue};
use super::key::{Key, KeyColumn};
use std::cmp::Ordering;

/// A place between two values of a column.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Edge {
    /// Before all values.
    Start,
    /// Next to a value.
    At {
        /// The value.
        value: KeyValue,
        /// On its far side.
        after: bool,
    },
    /// After all values.
    End,
}

impl Edge {
    fn before(value: KeyValue) -> Self {
        Self::At { value, after: false }
    }

    fn after(value: KeyValue) -> Self {
        Self::At { value, after: true }
    }

    /// Compares two edges. `None` if the order of the values isn't known.
    fn compare(&self, other: &Self, column: &KeyColumn) -> Option<Ordering> {
        match (self, other) {
            (Self::At { value, after }, Self::At { value: other, after: other_after }) => {
                let values = column.compare(value.as_deref(), other.as_deref())?;
                Some(values.then(after.cmp(other_after)))
            }
            (one, other) => Some(one.place().cmp(&other.place())),
        }
    }

    fn place(&self) -> u8 {
        match self {
            Self::Start => 0,
            Self::At { .. } => 1,
            Self::End => 2,
        }
    }

    /// Whether a value is before this edge.
    pub(super) fn is_behind(&self, value: Key<'_>, column: &KeyColumn) -> Option<bool> {
        match self {
            Self::Start => Some(false),
            Self::End => Some(true),
            Self::At { value: edge, after } => {
                Some(match column.compare(value, edge.as_deref())? {
                    Ordering::Less => true,
                    Ordering::Equal => *after,
                    Ordering::Greater => false,
                })
            }
        }
    }

    /// The same place, seen from the other end of the index.
    fn mirrored(self) -> Self {
        match self {
            Self::Start => Self::End,
            Self::At { value, after } => Self::At { value, after: !after },
            Self::End => Self::Start,
        }
    }
}

/// The values between two edges.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Interval {
    pub(super) low: Edge,
    pub(super) high: Edge,
}

impl Interval {
    /// All values, and null.
    pub(super) const ALL: Self = Self { low: Edge::Start, high: Edge::End };

    fn point(value: KeyValue) -> Self {
        Self { low: Edge::before(value.clone()), high: Edge::after(value) }
    }

    fn null() -> Self {
        Self::point(None)
    }

    fn not_null(column: &KeyColumn) -> Self {
        match column.nulls_first {
            true => Self { low: Edge::after(None), high: Edge::End },
            false => Self { low: Edge::Start, high: Edge::before(None) },
        }
    }

    fn is_empty(&self, column: &KeyColumn) -> Option<bool> {
        Some(self.low.compare(&self.high, column)? != Ordering::Less)
    }

    fn intersection(&self, other: &Self, column: &KeyColumn) -> Option<Self> {
        let low = match self.low.compare(&other.low, column)? {
            Ordering::Less => &other.low,
            _ => &self.low,
        };
        let high = match self.high.compare(&other.high, column)? {
            Ordering::Greater => &other.high,
            _ => &self.high,
        };
        Some(Self { low: low.clone(), high: high.clone() })
    }
}

/// Disjoint intervals in the order of the index. All functions return `None` if the order of a value
/// isn't known.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct IntervalSet(pub(super) Vec<Interval>);

impl IntervalSet {
    /// All values, and null.
    pub(super) fn all() -> Self {
        Self(vec![Interval::ALL])
    }

    pub(super) fn null() -> Self {
        Self(vec![Interval::null()])
    }

    pub(super) fn not_null(column: &KeyColumn) -> Self {
        Self(vec![Interval::not_null(column)])
    }

    /// The values for which a comparison is true.
    pub(super) fn of(comparison: Comparison, value: KeyValue, column: &KeyColumn) -> Option<Self> {
        if value.is_none() {
            return Some(Self(Vec::new()));
        }
        // In a descending column, smaller values come later.
        let (below, inclusive) = match comparison {
            Comparison::Less => (true, false),
            Comparison::LessOrEqual => (true, true),
            Comparison::Equal => return Some(Self(vec![Interval::point(value)])),
            Comparison::GreaterOrEqual => (false, true),
            Comparison::Greater => (false, false),
        };
        let until = below != column.descending;
        let edge = Edge::At { value, after: until == inclusive };
        let half = match until {
            true => Interval { low: Edge::Start, high: edge },
            false => Interval { low: edge, high: Edge::End },
        };
        Self(vec![half]).intersection(&Self::not_null(column), column)
    }

    /// The values of a list, without its nulls.
    pub(super) fn any_of(values: Vec<KeyValue>, column: &KeyColumn) -> Option<Self> {
        let mut values: Vec<KeyValue> = values.into_iter().filter(Option::is_some).collect();
        let mut known = true;
        let mut compare = |one: &KeyValue, other: &KeyValue| {
            let ordering = column.compare(one.as_deref(), other.as_deref());
            known &= ordering.is_some();
            ordering.unwrap_or(Ordering::Equal)
        };
        values.sort_by(&mut compare);
        values.dedup_by(|one, other| compare(one, other) == Ordering::Equal);
        known.then(|| Self(values.into_iter().map(Interval::point).collect()))
    }

    pub(super) fn intersection(&self, other: &Self, column: &KeyColumn) -> Option<Self> {
        let (mut at, mut other_at) = (0, 0);
        let mut common = Vec::new();
        while let (Some(one), Some(two)) = (self.0.get(at), other.0.get(other_at)) {
            let both = one.intersection(two, column)?;
            if !both.is_empty(column)? {
                common.push(both);
            }
            match one.high.compare(&two.high, column)? {
                Ordering::Less => at += 1,
                _ => other_at += 1,
            }
        }
        Some(Self(common))
    }

    /// Whether every value is in the set.
    pub(super) fn is_all(&self) -> bool {
        self.0.as_slice() == [Interval::ALL]
    }

    /// The same set, seen from the other end of the index.
    pub(super) fn mirrored(self) -> Self {
        let mirror = |interval: Interval| Interval {
            low: interval.high.mirrored(),
            high: interval.low.mirrored(),
        };
        Self(self.0.into_iter().rev().map(mirror).collect())
    }

    /// The number of the first interval that has a value of at least `value`, and whether it contains
    /// `value` itself. The outer `Option` is for an unknown order.
    pub(super) fn find(&self, value: Key<'_>, column: &KeyColumn) -> Option<Option<(usize, bool)>> {
        let (mut low, mut end) = (0, self.0.len());
        while low < end {
            let middle = low + (end - low) / 2;
            match self.0.get(middle)?.high.is_behind(value, column)? {
                true => end = middle,
                false => low = middle + 1,
            }
        }
        let Some(interval) = self.0.get(low) else { return Some(None) };
        let inside = !interval.low.is_behind(value, column)?;
        Some(Some((low, inside)))
    }
}
