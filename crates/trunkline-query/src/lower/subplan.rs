//! Subplans: where they are added, and what they are made of.

use std::sync::Arc;

use arrow_schema::Field;
use datafusion::logical_expr::{Extension, LogicalPlan};
use trunkline_format::Oid;
use trunkline_sql::SqlError;
use trunkline_sql::bound::{ColumnId, Expr, Relation};
use trunkline_sql::functions::attribute_of;

use super::planner::{Lowering, field, planned, renamed};
use super::visible::outer_columns;
use crate::expression::column_name;
use crate::subplan::{Inner, SubplanKind, SubplanNode, placeholder};

impl Lowering<'_> {
    /// `ARRAY(SELECT …)` of elements of a type.
    pub(super) fn array_kind(&self, element: Oid, array: Oid) -> Result<SubplanKind, SqlError> {
        if element == array {
            let message = "ARRAY(SELECT ...) of arrays is not supported by trunkline";
            return Err(SqlError::unsupported(message));
        }
        let attribute = attribute_of(element, &*self.environment.settings.catalog)?;
        let carrier = self.environment.carrier(element)?;
        Ok(SubplanKind::Array { element, attribute, carrier })
    }

    /// The columns of outer queries that a relation uses, without those that are values of a slot.
    pub(super) fn new_outer_columns(&self, relation: &Relation) -> Vec<ColumnId> {
        let outer = outer_columns(relation, self.subqueries).into_iter();
        outer.filter(|id| !self.outer.contains_key(id)).collect()
    }

    /// Joins each row of a plan with the rows of a relation that uses the row's columns.
    pub(super) fn joined_rows(
        &mut self,
        plan: LogicalPlan,
        relation: &Relation,
        columns: &[ColumnId],
        outer: bool,
    ) -> Result<LogicalPlan, SqlError> {
        let columns: Vec<_> = columns.iter().map(|&id| (id, id)).collect();
        self.with_subplan(plan, relation, SubplanKind::Rows { outer }, &columns, None)
    }

    /// Adds the results of a subplan to a plan: for each column of the relation, a column of the plan.
    pub(super) fn with_subplan(
        &mut self,
        plan: LogicalPlan,
        relation: &Relation,
        kind: SubplanKind,
        columns: &[(ColumnId, ColumnId)],
        guard: Option<&Expr>,
    ) -> Result<LogicalPlan, SqlError> {
        // A subplan is executed for a row at a time, and can't see the rows of an iteration.
        if self.refers_to_recursion(relation) {
            let message =
                "a recursive reference in a LATERAL subquery is not supported by trunkline";
            return Err(SqlError::unsupported(message));
        }
        let number = self.new_number();
        let (mut placeholders, mut keys) = (Vec::new(), Vec::new());
        let mut outer = (*self.outer).clone();
        for id in self.new_outer_columns(relation) {
            let name = column_name(id);
            if !plan.schema().has_column_with_unqualified_name(&name) {
                let message = "a subquery in this place is not supported by trunkline";
                return Err(SqlError::unsupported(message));
            }
            let data_type = self.environment.carrier(self.columns.get(id).ty.oid)?.data_type();
            let place = format!("${name}#{number}");
            outer.insert(id, placeholder(&place, &data_type));
            keys.push(field(&name));
            placeholders.push((place, data_type));
        }
        let is_volatile = self.is_volatile(relation);
        let around = std::mem::replace(&mut self.outer, Arc::new(outer));
        self.depth += 1;
        let inner = self.relation(relation);
        self.depth -= 1;
        self.outer = around;
        let inner = renamed(inner?, columns.iter().copied())?;
        let fields = columns.iter().map(|(_, id)| {
            let carrier = self.environment.carrier(self.columns.get(*id).ty.oid)?;
            Ok(Field::new(column_name(*id), carrier.data_type(), true))
        });
        let columns = fields.collect::<Result<Vec<_>, SqlError>>()?;
        let inner = Inner { number, kind, plan: inner, placeholders, columns, is_volatile };
        let guard = guard.map(|guard| self.expressions().value(guard)).transpose()?;
        let node = planned(SubplanNode::new(plan, Arc::new(inner), keys, guard))?;
        Ok(LogicalPlan::Extension(Extension { node: Arc::new(node) }))
    }
}
