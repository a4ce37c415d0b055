//! Which clauses an index can be searched for, as conditions of its columns.

use trunkline_format::Oid;
use trunkline_format::btree::{Comparison, Condition, KeyValue};

use super::candidate_index::CandidateIndex;
use super::clause::{Clause, ColumnTest, Constant, RowField, RowTest, Test};
use super::column_order::ColumnOrder;
use super::value_conversion::{Converted, converted};
use crate::environment::Environment;

/// Finds conditions.
#[derive(Debug, Clone, Copy)]
pub(super) struct Conditions<'a> {
    environment: &'a Environment,
    /// The database's encoding is UTF-8, as that of constants. In another one, only ASCII is the same.
    is_utf8: bool,
}

/// The conditions on an index that follow from clauses.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct IndexConditions {
    pub(super) conditions: Vec<Condition>,
    /// The numbers of the clauses that they were made from.
    pub(super) used: Vec<usize>,
    /// The numbers of those that say no more than the conditions.
    pub(super) covered: Vec<usize>,
}

impl<'a> Conditions<'a> {
    pub(super) fn new(environment: &'a Environment, encoding: i32) -> Self {
        // SQL_ASCII has no conversion, so its text is compared byte by byte as well.
        Self { environment, is_utf8: matches!(encoding, 0 | 6) }
    }

    /// What the conditions are made with.
    pub(super) fn environment(&self) -> &'a Environment {
        self.environment
    }

    /// The conditions on an index that follow from clauses that must all be true.
    pub(super) fn on(&self, index: &CandidateIndex, clauses: &[Clause]) -> IndexConditions {
        let mut found = IndexConditions::default();
        for (number, clause) in clauses.iter().enumerate() {
            let before = found.conditions.len();
            let mut exact = true;
            for part in clause.conjuncts() {
                exact &= self.add(index, part, &mut found.conditions);
            }
            if found.conditions.len() > before {
                found.used.push(number);
                if exact {
                    found.covered.push(number);
                }
            }
        }
        // As in PostgreSQL, `EXPLAIN` shows them in the order of the index's columns.
        found.conditions.sort_by_key(first_column);
        found
    }

    /// Adds the conditions of a clause. Returns whether they say as much as the clause.
    fn add(
        &self,
        index: &CandidateIndex,
        clause: &Clause,
        conditions: &mut Vec<Condition>,
    ) -> bool {
        match clause {
            Clause::Test(test) => {
                let (found, before) = (index.columns.iter().enumerate(), conditions.len());
                // A column may occur in an index twice.
                conditions.extend(
                    found
                        .filter(|(_, column)| column.place == test.column)
                        .filter_map(|(at, column)| self.condition(at, &column.order, test)),
                );
                conditions.len() > before
            }
            Clause::Row(row) => {
                let Some((condition, exact)) = self.row_condition(index, row) else { return false };
                conditions.push(condition);
                exact
            }
            Clause::All(_) | Clause::Any(_) | Clause::Other => false,
        }
    }

    /// The condition of a test on column `at` of an index, or of anything else with this order.
    pub(super) fn condition(
        &self,
        at: usize,
        order: &ColumnOrder,
        tested: &ColumnTest,
    ) -> Option<Condition> {
        let never = || Condition::AnyOf { column: at, values: Vec::new() };
        Some(match &tested.test {
            Test::IsNull => Condition::IsNull { column: at },
            Test::IsNotNull => Condition::IsNotNull { column: at },
            Test::Compare(operation, constant) => {
                let compared = order.comparison(*operation, self.environment)?;
                match self.value(order, compared, constant)? {
                    Converted::Value(comparison, value) => {
                        Condition::Compare { column: at, comparison, value: Some(value) }
                    }
                    Converted::Always => Condition::IsNotNull { column: at },
                    Converted::Never => never(),
                }
            }
            Test::AnyOf(operation, constants) => {
                let compared = order.comparison(*operation, self.environment)?;
                let mut values = Vec::with_capacity(constants.len());
                for constant in constants {
                    match self.value(order, compared, constant)? {
                        Converted::Value(Comparison::Equal, value) => values.push(Some(value)),
                        Converted::Never => {}
                        Converted::Value(comparison, value) => {
                            let [] = values.as_slice() else { return None };
                            let [_] = constants.as_slice() else { return None };
                            let value = Some(value);
                            return Some(Condition::Compare { column: at, comparison, value });
                        }
                        Converted::Always => return None,
                    }
                }
                Condition::AnyOf { column: at, values }
            }
        })
    }

    /// The constant of a comparison in the format of a column. `compared` are the comparison and the
    /// type of the constant.
    pub(super) fn value(
        &self,
        order: &ColumnOrder,
        (comparison, from): (Comparison, Oid),
        constant: &Constant,
    ) -> Option<Converted> {
        if let Constant::Stored(payload) = constant
            && !self.is_known_text(order, payload)
        {
            return None;
        }
        converted(order.order, order.input, from, comparison, constant)
    }

    /// Whether constants of a column have the same bytes in the encoding of the database, whatever
    /// they are.
    pub(super) fn knows_all(&self, order: &ColumnOrder) -> bool {
        !order.is_text() || self.is_utf8
    }

    /// Whether a constant has the same bytes in the encoding of the database.
    fn is_known_text(&self, order: &ColumnOrder, payload: &[u8]) -> bool {
        !order.is_text() || self.is_utf8 || payload.is_ascii()
    }

    /// The constant of a field of a row comparison, if the comparison of that field is the order of a
    /// column.
    pub(super) fn row_value(&self, order: &ColumnOrder, field: &RowField) -> Option<KeyValue> {
        let catalog = &self.environment.catalog;
        let own = catalog.family_function(order.family, order.input, order.input, 1);
        if own != Some(field.compare) || !self.environment.sorts_by_bytes(field.collation) {
            return None;
        }
        match &field.constant {
            Constant::Stored(payload) => {
                self.is_known_text(order, payload).then(|| Some(payload.clone()))
            }
            Constant::Null => Some(None),
            Constant::Integer(_) => None,
        }
    }

    /// The condition of a row comparison, as far as its columns are the leading ones of the index, and
    /// whether that is all of it. If it isn't, rows that are equal so far may match, too.
    fn row_condition(&self, index: &CandidateIndex, row: &RowTest) -> Option<(Condition, bool)> {
        let fields = row.fields.iter().zip(&index.columns);
        let values = fields.map_while(|(field, column)| match field.column == column.place {
            true => self.row_value(&column.order, field),
            false => None,
        });
        let values: Vec<KeyValue> = values.collect();
        if values.is_empty() {
            return None;
        }
        let exact = values.len() == row.fields.len();
        let comparison = match (row.comparison, exact) {
            (Comparison::Less, false) => Comparison::LessOrEqual,
            (Comparison::Greater, false) => Comparison::GreaterOrEqual,
            (comparison, _) => comparison,
        };
        Some((Condition::Row { comparison, values }, exact))
    }
}

/// The first column that a condition is about.
pub(crate) fn first_column(condition: &Condition) -> usize {
    match condition {
        Condition::Compare { column, .. }
        | Condition::AnyOf { column, .. }
        | Condition::IsNull { column }
        | Condition::IsNotNull { column } => *column,
        Condition::Row { .. } => 0,
    }
}
