//! **Index conditions**: what a query wants of an index's columns, as plain values.
//!
//! All conditions of a scan must hold. The values are payloads in the format of the index column,
//! as in [`super::Key`]; a comparison of two types, such as `int4 < int8`, must be converted first.
//! As in SQL, a comparison with null is never true, whichever side is null.

use super::fault::Fault;
use super::key::{Key, KeyColumn};
use std::cmp::Ordering;
use thiserror::Error;

/// An owned search key's column: the payload, or `None` for NULL.
pub type KeyValue = Option<Box<[u8]>>;

/// The comparison operators of a B-tree operator class.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Comparison {
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `=`
    Equal,
    /// `>=`
    GreaterOrEqual,
    /// `>`
    Greater,
}

impl Comparison {
    /// Whether `left operator right` is true, given how `left` compares with `right`.
    pub fn holds(self, ordering: Ordering) -> bool {
        match self {
            Self::Less => ordering == Ordering::Less,
            Self::LessOrEqual => ordering != Ordering::Greater,
            Self::Equal => ordering == Ordering::Equal,
            Self::GreaterOrEqual => ordering != Ordering::Less,
            Self::Greater => ordering == Ordering::Greater,
        }
    }

    /// The operator that decides if two rows differ in a column that isn't the last one.
    fn strict(self) -> Self {
        match self {
            Self::LessOrEqual => Self::Less,
            Self::GreaterOrEqual => Self::Greater,
            other => other,
        }
    }
}

/// A condition on the key columns of an index. Columns are counted from 0.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Condition {
    /// `column operator value`
    Compare {
        /// The column.
        column: usize,
        /// The operator.
        comparison: Comparison,
        /// The value.
        value: KeyValue,
    },
    /// `column = ANY (values)`. The values may be in any order and may contain duplicates and nulls.
    AnyOf {
        /// The column.
        column: usize,
        /// The values.
        values: Vec<KeyValue>,
    },
    /// `column IS NULL`
    IsNull {
        /// The column.
        column: usize,
    },
    /// `column IS NOT NULL`
    IsNotNull {
        /// The column.
        column: usize,
    },
    /// `(column 0, column 1, …) operator (value, value, …)`: compares the leading columns of the
    /// index with these values, as SQL compares rows. For `=`, use one condition per column.
    Row {
        /// The operator.
        comparison: Comparison,
        /// One value for each of the leading columns.
        values: Vec<KeyValue>,
    },
}

impl Condition {
    /// The last column that the condition concerns.
    pub(super) fn last_column(&self) -> usize {
        match self {
            Self::Compare { column, .. }
            | Self::AnyOf { column, .. }
            | Self::IsNull { column }
            | Self::IsNotNull { column } => *column,
            Self::Row { values, .. } => values.len().saturating_sub(1),
        }
    }
}

/// Why an index can't be searched with some conditions.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum Unusable {
    /// The order of a column is needed, but only a server knows it: it depends on a collation or on
    /// an operator class that we don't implement. This includes enums, unless the caller knows that
    /// all labels have even OIDs, and has replaced the column's order by [`super::Order::Oid`]. Also
    /// returned if a value isn't of the column's type, and so can't be compared.
    #[error("the order of column {column} is known to a server only")]
    UnknownOrder {
        /// The column, from 1.
        column: u16,
    },
    /// The index has fewer key columns than the condition needs.
    #[error("the index has no key column {column}")]
    NoColumn {
        /// The column, from 1.
        column: u16,
    },
    /// A row comparison has no values, or compares with `=`.
    #[error("a row comparison of this kind cannot be searched for")]
    Row,
}

/// A row comparison that every entry must pass.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct RowTest {
    comparison: Comparison,
    values: Vec<KeyValue>,
}

impl RowTest {
    /// Cuts the comparison off before its first null: if all columns before it are equal, the result
    /// is null, so only a difference in one of them can make it true. Returns `None` if nothing
    /// remains, because then the comparison is never true.
    pub(super) fn new(comparison: Comparison, mut values: Vec<KeyValue>) -> Option<Self> {
        let null = values.iter().position(Option::is_none);
        let Some(null) = null else { return Some(Self { comparison, values }) };
        values.truncate(null);
        let comparison = comparison.strict();
        (!values.is_empty()).then_some(Self { comparison, values })
    }

    pub(super) fn comparison(&self) -> Comparison {
        self.comparison
    }

    pub(super) fn values(&self) -> &[KeyValue] {
        &self.values
    }

    /// The condition on the first column that follows from the row comparison.
    pub(super) fn on_first_column(&self) -> Comparison {
        match (self.comparison, self.values.len()) {
            (comparison, 1) => comparison,
            (Comparison::Less, _) => Comparison::LessOrEqual,
            (Comparison::Greater, _) => Comparison::GreaterOrEqual,
            (comparison, _) => comparison,
        }
    }

    /// Whether the comparison is true for an entry with these leading columns.
    pub(super) fn passes(&self, columns: &[KeyColumn], found: &[Key<'_>]) -> Result<bool, Fault> {
        let last = self.values.len().saturating_sub(1);
        let wanted = self.values.iter().zip(columns).zip(found);
        for (at, ((wanted, column), found)) in wanted.enumerate() {
            let (Some(wanted), Some(found)) = (wanted, found) else { return Ok(false) };
            // The values' own order, whichever way the index sorts them.
            let Some(ordering) = column.order.compare(found, wanted) else {
                return Err(Fault::UnknownOrder { column: at as u16 + 1 });
            };
            if ordering != Ordering::Equal || at == last {
                return Ok(self.comparison.holds(ordering));
            }
        }
        Ok(false)
    }
}
