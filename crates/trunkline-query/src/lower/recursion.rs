//! `WITH RECURSIVE`: the rows of an iteration are the input of the next one.

use std::sync::Arc;

use arrow_schema::{Field, Schema};
use datafusion::catalog::cte_worktable::CteWorkTable;
use datafusion::datasource::provider_as_source;
use datafusion::logical_expr::{LogicalPlan, LogicalPlanBuilder};
use trunkline_sql::SqlError;
use trunkline_sql::bound::{ColumnId, Relation};

use super::planner::{Lowering, planned, renamed};
use crate::expression::{Key, KeyUse, column_name};

impl Lowering<'_> {
    /// A recursive query.
    pub(super) fn recursive(&mut self, relation: &Relation) -> Result<LogicalPlan, SqlError> {
        let Relation::Recursive { number, all, left, right, work, columns } = relation else {
            return Err(SqlError::internal("a relation that is not recursive"));
        };
        if !all {
            self.check_plain(columns)?;
        }
        let first = self.relation(&left.0)?;
        let first = renamed(first, left.1.iter().copied().zip(columns.iter().copied()))?;
        // Whether the first rows have nulls says nothing about the others.
        let fields = work.iter().map(|&id| {
            let carrier = self.environment.carrier(self.columns.get(id).ty.oid)?;
            Ok(Field::new(column_name(id), carrier.data_type(), true))
        });
        let schema = Arc::new(Schema::new(fields.collect::<Result<Vec<_>, SqlError>>()?));
        let name = self.new_name("recursive");
        let source = provider_as_source(Arc::new(CteWorkTable::new(&name, schema)));
        let rows =
            planned(LogicalPlanBuilder::scan(&name, source, None).and_then(|plan| plan.build()))?;
        let rows = renamed(rows, work.iter().map(|&id| (id, id)))?;
        self.ctes.insert(*number, (rows, work.clone()));
        self.recursive.push(*number);
        let second = self.relation(&right.0);
        self.recursive.pop();
        self.ctes.remove(number);
        let second = renamed(second?, right.1.iter().copied().zip(columns.iter().copied()))?;
        let builder = LogicalPlanBuilder::from(first).to_recursive_query(name, second, !all);
        planned(builder.and_then(LogicalPlanBuilder::build))
    }

    /// Whether a relation refers to the rows of a recursive query whose recursive term it is in.
    pub(super) fn refers_to_recursion(&self, relation: &Relation) -> bool {
        let mut found = match relation {
            Relation::CteScan { cte, .. } => self.recursive.contains(cte),
            _ => false,
        };
        relation.inputs(|input| found = found || self.refers_to_recursion(input));
        found
    }

    /// Rows are compared as they are held.
    fn check_plain(&self, columns: &[ColumnId]) -> Result<(), SqlError> {
        for &id in columns {
            if Key::of(self.environment, self.columns.get(id).ty, KeyUse::Equality)?.is_some() {
                let message = "UNION of a recursive query with columns whose equal values may look \
                               different is not supported by trunkline";
                return Err(SqlError::unsupported(message));
            }
        }
        Ok(())
    }
}
