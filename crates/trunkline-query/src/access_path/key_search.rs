//! Searches of an index for the values of other rows: `k = o.x`, where `o.x` is known only when a join
//! has got to a row of `o`.
//!
//! ```text
//!   k = o.x and d > 5        index (k, d)
//!   column 1 = value of o.x, column 2 > 5  ──▶  KeyRanges for each row of o
//! ```
//! As for scans, a condition may say less than the join's, never more: the join compares the values
//! again.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int16Type, Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use trunkline_format::Oid;
use trunkline_format::btree::{Comparison, Condition, Direction, KeyRanges};
use trunkline_sql::SqlError;
use trunkline_sql::values::{Carrier, PayloadReader};

use super::candidate_index::CandidateIndex;
use super::clause::{Constant, FilterColumn, Operation};
use super::column_order::ColumnOrder;
use super::index_condition::Conditions;
use super::value_conversion::Converted;
use crate::environment::Environment;

/// A column of the table that must be equal to a value of each row of another input.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KeyColumn {
    /// The column of the table.
    pub(crate) column: FilterColumn,
    /// How the two are compared.
    pub(crate) compared: KeyType,
}

/// How a join compares a column with another row's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyType {
    /// Arrow compares the arrays. Integers may have been widened.
    Native,
    /// Keys are compared that are equal for equal values of this type.
    Keyed(Oid),
}

impl KeyColumn {
    /// The type of the other value, if an index column with this order can be searched for it.
    fn searched_as(&self, order: &ColumnOrder, conditions: &Conditions<'_>) -> Option<Oid> {
        if !conditions.knows_all(order) {
            return None;
        }
        match self.compared {
            KeyType::Native => {
                let carrier = self.column.carrier;
                let operation = Operation::Native { comparison: Comparison::Equal, carrier };
                order.comparison(operation, conditions.environment()).map(|(_, from)| from)
            }
            // The index compares values of the type as the type's equality does.
            KeyType::Keyed(ty) => (order.input == ty).then_some(ty),
        }
    }
}

/// A column of the index, and what it is searched for.
#[derive(Debug, Clone, Copy)]
struct SearchedColumn {
    /// Its place in the index.
    at: usize,
    /// The number of the key.
    key: usize,
    order: ColumnOrder,
    /// The type of the key's values.
    from: Oid,
}

/// A search of an index for values that aren't known yet, and for constants.
#[derive(Debug, Clone)]
pub(crate) struct KeySearch {
    pub(crate) index: Arc<CandidateIndex>,
    /// The conditions with constants.
    pub(crate) conditions: Vec<Condition>,
    columns: Vec<SearchedColumn>,
    environment: Environment,
    encoding: i32,
}

impl KeySearch {
    /// The search of an index for these keys and conditions. `None` if the index has none of the keys'
    /// columns where it could be searched for them.
    pub(super) fn new(
        index: &Arc<CandidateIndex>,
        conditions: Vec<Condition>,
        keys: &[KeyColumn],
        (environment, encoding): (&Environment, i32),
    ) -> Option<Self> {
        let comparing = Conditions::new(environment, encoding);
        let columns = index.columns.iter().enumerate().filter_map(|(at, column)| {
            let mut known = keys.iter().enumerate();
            known.find_map(|(key, wanted)| {
                let is_column = wanted.column.place == column.place;
                let from = is_column.then(|| wanted.searched_as(&column.order, &comparing))??;
                Some(SearchedColumn { at, key, order: column.order, from })
            })
        });
        let columns: Vec<SearchedColumn> = columns.collect();
        (!columns.is_empty()).then(|| Self {
            index: Arc::clone(index),
            conditions,
            columns,
            environment: environment.clone(),
            encoding,
        })
    }

    /// The columns of the index that are searched for keys: their places in the index, and the numbers
    /// of the keys.
    pub(crate) fn key_columns(&self) -> impl Iterator<Item = (usize, usize)> {
        self.columns.iter().map(|column| (column.at, column.key))
    }

    /// The ranges of a row with these keys; `None` if no entry can match.
    ///
    /// # Errors
    /// XX000: the index can't be searched, which would be a bug.
    fn ranges(
        &self,
        keys: &mut [KeyReader<'_>],
        row: usize,
    ) -> Result<Option<KeyRanges>, SqlError> {
        let comparing = Conditions::new(&self.environment, self.encoding);
        let mut conditions = Vec::with_capacity(self.conditions.len() + self.columns.len());
        conditions.extend_from_slice(&self.conditions);
        for column in &self.columns {
            let value = keys.get_mut(column.key).map_or(Constant::Null, |key| key.get(row));
            let compared = (Comparison::Equal, column.from);
            match comparing.value(&column.order, compared, &value) {
                Some(Converted::Value(comparison, value)) => {
                    let (column, value) = (column.at, Some(value));
                    conditions.push(Condition::Compare { column, comparison, value });
                }
                Some(Converted::Never) => return Ok(None),
                // Without a condition, the search finds more.
                Some(Converted::Always) | None => {}
            }
        }
        let layout = self.index.index.layout();
        KeyRanges::new(layout, &conditions, Direction::Forward)
            .map_err(|error| SqlError::internal(error.to_string()))
    }
}

/// The keys of many rows.
#[derive(Debug)]
pub(crate) struct KeyValues {
    /// The arrays of the keys, with what holds the values of the columns that they are compared with.
    arrays: Vec<(ArrayRef, Carrier)>,
}

impl KeyValues {
    /// Arrays with a value for each row, in the order of the search's keys.
    pub(crate) fn new(arrays: Vec<(ArrayRef, Carrier)>) -> Self {
        Self { arrays }
    }

    /// The ranges that an index is searched for, for each of these rows; `None` where no entry can
    /// match.
    ///
    /// # Errors
    /// XX000: the arrays aren't those of the search, which would be a bug.
    pub(crate) fn ranges(
        &self,
        search: &KeySearch,
        rows: usize,
    ) -> Result<Vec<Option<KeyRanges>>, SqlError> {
        let mut readers = Vec::with_capacity(self.arrays.len());
        for (array, carrier) in &self.arrays {
            readers.push(KeyReader::new(array, *carrier)?);
        }
        (0..rows).map(|row| search.ranges(&mut readers, row)).collect()
    }
}

/// Reads the values of one key.
enum KeyReader<'a> {
    /// Integers, which may be wider than those of the column.
    Integers(&'a ArrayRef),
    Stored(PayloadReader<'a>),
}

impl<'a> KeyReader<'a> {
    fn new(array: &'a ArrayRef, carrier: Carrier) -> Result<Self, SqlError> {
        let is_integer = matches!(carrier, Carrier::Int16 | Carrier::Int32 | Carrier::Int64);
        Ok(match is_integer {
            true => Self::Integers(array),
            false => Self::Stored(PayloadReader::new(carrier, array)?),
        })
    }

    fn get(&mut self, row: usize) -> Constant {
        match self {
            Self::Integers(array) if array.is_null(row) => Constant::Null,
            Self::Integers(array) => {
                let value = match array.data_type() {
                    DataType::Int16 => array.as_primitive::<Int16Type>().value(row).into(),
                    DataType::Int32 => array.as_primitive::<Int32Type>().value(row).into(),
                    DataType::Int64 => array.as_primitive::<Int64Type>().value(row),
                    // Checked when the join is planned.
                    _ => return Constant::Null,
                };
                Constant::Integer(value)
            }
            Self::Stored(reader) => {
                reader.get(row).map_or(Constant::Null, |payload| Constant::Stored(payload.into()))
            }
        }
    }
}

impl KeyColumn {
    /// Whether values of this Arrow type can be compared with the column.
    pub(crate) fn accepts(&self, ty: &DataType) -> bool {
        let is_integer =
            |ty: &DataType| matches!(ty, DataType::Int16 | DataType::Int32 | DataType::Int64);
        let own = self.column.carrier.data_type();
        own == *ty || (is_integer(&own) && is_integer(ty) && self.compared == KeyType::Native)
    }
}
