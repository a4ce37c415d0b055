//! **Selectivity**: the fraction of a table's rows for which a condition is true.
//!
//! Columns are taken for independent, as in `clausesel.c`: the selectivities of their conditions are
//! multiplied. Only the two ends of a range are estimated together.

use trunkline_format::btree::Condition;

use super::clause::{Clause, ColumnTest, RowTest, Test};
use super::column_order::ColumnOrder;
use super::column_selectivity::{ColumnSelectivity, NULLS, RANGE};
use super::index_condition::Conditions;
use super::statistics::TableStatistics;

/// What estimates are made from.
#[derive(Debug, Clone, Copy)]
pub(super) struct Estimates<'a> {
    pub(super) statistics: &'a TableStatistics,
    pub(super) rows: f64,
    pub(super) conditions: Conditions<'a>,
    /// How the columns of the table are sorted by default.
    pub(super) orders: &'a [Option<ColumnOrder>],
    /// The columns of which each value occurs once.
    pub(super) unique: &'a [usize],
}

impl Estimates<'_> {
    /// All of these clauses.
    pub(super) fn all(&self, clauses: &[Clause]) -> f64 {
        let parts: Vec<&Clause> = clauses.iter().flat_map(Clause::conjuncts).collect();
        // The two ends of a range are estimated together.
        let mut columns: Vec<(usize, Vec<Condition>)> = Vec::new();
        let mut product = 1.0;
        for part in parts {
            match part {
                Clause::Test(test) => match self.default_condition(test) {
                    Some(condition) => {
                        match columns.iter_mut().find(|(column, _)| *column == test.column) {
                            Some((_, conditions)) => conditions.push(condition),
                            None => columns.push((test.column, vec![condition])),
                        }
                    }
                    None => product *= unknown(&test.test),
                },
                other => product *= self.clause(other),
            }
        }
        for (column, conditions) in columns {
            let order = self.orders.get(column).copied().flatten();
            product *= self.column(column, order.as_ref(), &conditions.iter().collect::<Vec<_>>());
        }
        product
    }

    fn clause(&self, clause: &Clause) -> f64 {
        match clause {
            Clause::All(parts) => self.all(parts),
            Clause::Any(parts) => self.any(parts),
            Clause::Test(_) => self.all(std::slice::from_ref(clause)),
            Clause::Row(row) => self.row(row).unwrap_or(RANGE),
            Clause::Other => RANGE,
        }
    }

    /// A row comparison, as its first column.
    fn row(&self, row: &RowTest) -> Option<f64> {
        let field = row.fields.first()?;
        let order = self.orders.get(field.column).copied().flatten()?;
        let values = vec![self.conditions.row_value(&order, field)?];
        let condition = Condition::Row { comparison: row.comparison, values };
        Some(self.column(field.column, Some(&order), &[&condition]))
    }

    /// One of these clauses.
    pub(super) fn any(&self, parts: &[Clause]) -> f64 {
        parts.iter().fold(0.0, |sum, part| {
            let one = self.clause(part);
            sum + one - sum * one
        })
    }

    pub(super) fn default_condition(&self, test: &ColumnTest) -> Option<Condition> {
        let order = self.orders.get(test.column).copied().flatten()?;
        self.conditions.condition(0, &order, test)
    }

    /// All of these conditions, which are on one column.
    pub(super) fn column(
        &self,
        column: usize,
        order: Option<&ColumnOrder>,
        conditions: &[&Condition],
    ) -> f64 {
        self.of(column, order).all(conditions)
    }

    fn of<'c>(&'c self, column: usize, order: Option<&'c ColumnOrder>) -> ColumnSelectivity<'c> {
        let found = self.statistics.columns.get(&column).map(|found| &**found);
        let unique = self.unique.contains(&column);
        ColumnSelectivity { found, rows: self.rows, order, unique }
    }

    /// The fraction of the rows in which a column is equal to a value that isn't known.
    pub(super) fn equal_to_any(&self, column: usize) -> f64 {
        let order = self.orders.get(column).copied().flatten();
        self.of(column, order.as_ref()).equal_to_any()
    }

    /// The number of distinct values of a column.
    pub(super) fn distinct(&self, column: usize) -> f64 {
        let order = self.orders.get(column).copied().flatten();
        self.of(column, order.as_ref()).distinct()
    }
}

/// A test that no condition was made of.
fn unknown(test: &Test) -> f64 {
    match test {
        Test::IsNull => NULLS,
        Test::IsNotNull => 1.0 - NULLS,
        Test::Compare(..) | Test::AnyOf(..) => RANGE,
    }
}
