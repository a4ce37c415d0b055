//! `UNION`, `INTERSECT` and `EXCEPT`, with and without `ALL`.
//!
//! In set operations, nulls are equal to each other. For `INTERSECT ALL` and `EXCEPT ALL`, the rows of
//! each side are numbered within their group of equal rows, and the numbers are compared, too:
//!
//! ```text
//!   (a, a, a, b) EXCEPT ALL (a, c)   a1 a2 a3 b1 without a1 c1  =  a2 a3 b1
//! ```

use std::sync::Arc;

use datafusion::common::{Column, NullEquality};
use datafusion::logical_expr::{
    Expr as PlanExpr, JoinType, LogicalPlan, LogicalPlanBuilder, Union,
};
use trunkline_sql::SqlError;
use trunkline_sql::bound::{ColumnId, Relation, SetOperator};

use super::planner::{Lowering, field, planned, renamed, with_columns};
use crate::expression::{KeyUse, column_name};

/// An input of a set operation and its columns.
type Side = (Box<Relation>, Vec<ColumnId>);

impl Lowering<'_> {
    pub(super) fn set_operation(
        &mut self,
        operator: SetOperator,
        all: bool,
        left: &Side,
        right: &Side,
        columns: &[ColumnId],
    ) -> Result<LogicalPlan, SqlError> {
        if columns.is_empty() {
            let message = "set operations without columns are not supported by trunkline";
            return Err(SqlError::unsupported(message));
        }
        if operator == SetOperator::Union {
            let side = |lowering: &mut Self, (relation, own): &Side| {
                let plan = lowering.relation(relation)?;
                let names = own.iter().copied().zip(columns.iter().copied());
                renamed(plan, names).map(Arc::new)
            };
            let inputs = vec![side(self, left)?, side(self, right)?];
            let plan = planned(Union::try_new(inputs)).map(LogicalPlan::Union)?;
            return if all { Ok(plan) } else { self.distinct(plan, columns) };
        }
        let (mut left_plan, left_keys) = self.side(left, all)?;
        let (right_plan, right_keys) = self.side(right, all)?;
        if !all {
            left_plan = self.distinct_by(left_plan, &left.1, &left_keys)?;
        }
        let kind = match operator {
            SetOperator::Except => JoinType::LeftAnti,
            _ => JoinType::LeftSemi,
        };
        let keys = |names: &[String]| -> Vec<Column> {
            names.iter().map(Column::new_unqualified).collect()
        };
        let joined = LogicalPlanBuilder::from(left_plan).join_detailed(
            right_plan,
            kind,
            (keys(&left_keys), keys(&right_keys)),
            None,
            NullEquality::NullEqualsNull,
        );
        let plan = planned(joined.and_then(LogicalPlanBuilder::build))?;
        renamed(plan, left.1.iter().copied().zip(columns.iter().copied()))
    }

    /// An input with the names of the columns by which its rows are compared.
    fn side(
        &mut self,
        (relation, columns): &Side,
        all: bool,
    ) -> Result<(LogicalPlan, Vec<String>), SqlError> {
        let plan = self.relation(relation)?;
        let (mut names, mut added) = (Vec::new(), Vec::new());
        for &id in columns {
            let name = self.new_name("k");
            let key = self.expressions().key(&self.column_expr(id), KeyUse::Equality)?;
            added.push((name.clone(), key));
            names.push(name);
        }
        let mut plan = with_columns(plan, added)?;
        if all {
            let keys = names.iter().map(|name| field(name)).collect();
            let (numbered, number) = self.row_numbers(plan, keys, Vec::new())?;
            plan = numbered;
            names.push(number);
        }
        Ok((plan, names))
    }

    /// One row for each combination of keys.
    fn distinct_by(
        &mut self,
        plan: LogicalPlan,
        columns: &[ColumnId],
        keys: &[String],
    ) -> Result<LogicalPlan, SqlError> {
        let groups: Vec<PlanExpr> = keys.iter().map(|name| field(name)).collect();
        let firsts = columns.iter().map(|&id| {
            let (value, ty) = (field(&column_name(id)), self.columns.get(id).ty);
            let first = &crate::aggregate::FIRST_VALUE;
            Ok(self.internal_call("first", first, value, ty)?.alias(column_name(id)))
        });
        let firsts = firsts.collect::<Result<Vec<_>, SqlError>>()?;
        let builder = LogicalPlanBuilder::from(plan).aggregate(groups, firsts);
        planned(builder.and_then(LogicalPlanBuilder::build))
    }
}
