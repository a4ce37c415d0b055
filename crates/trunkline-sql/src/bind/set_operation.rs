//! `UNION`, `INTERSECT`, `EXCEPT`, and `VALUES`: rows from several sources with common types.

use super::binder::{Binder, Context, Place};
use super::level::Level;
use super::scope::Scope;
use crate::bound::{ColumnId, Expr, ExprKind, OutputColumn, Query, Relation, SetOperator};
use crate::error::{SqlError, SqlState};
use crate::syntax::{SelectBody, SelectStatement, SetOperation, ValuesRow};

/// Where the output columns of a query are written.
pub(super) fn target_locations(select: &SelectStatement) -> Vec<u32> {
    match &select.body {
        SelectBody::Select(core) => {
            core.targets.iter().map(|target| target.expression.span.start).collect()
        }
        SelectBody::Values(rows) => {
            let first = rows.first().map(|row| row.columns.iter());
            first.into_iter().flatten().map(|column| column.span.start).collect()
        }
        SelectBody::SetOperation { left, .. } => target_locations(left),
    }
}

impl Binder<'_> {
    /// Binds a set operation.
    pub(super) fn set_operation(
        &mut self,
        operation: SetOperation,
        all: bool,
        sides: (&SelectStatement, &SelectStatement),
        scope: &Scope<'_>,
    ) -> Result<Query, SqlError> {
        let left = self.query(sides.0, scope, false)?;
        let place = match (operation, all) {
            (SetOperation::Except, _) => Some("EXCEPT"),
            (SetOperation::Intersect, true) => Some("INTERSECT"),
            _ => None,
        };
        place.into_iter().for_each(|place| self.recursions.enter(place));
        let right = self.query(sides.1, scope, false);
        place.into_iter().for_each(|_| self.recursions.leave());
        self.set_operation_of(operation, all, sides, (left, right?))
    }

    /// Combines two bound queries.
    pub(super) fn set_operation_of(
        &mut self,
        operation: SetOperation,
        all: bool,
        sides: (&SelectStatement, &SelectStatement),
        (mut left, mut right): (Query, Query),
    ) -> Result<Query, SqlError> {
        let (operator, name) = match operation {
            SetOperation::Union => (SetOperator::Union, "UNION"),
            SetOperation::Intersect => (SetOperator::Intersect, "INTERSECT"),
            SetOperation::Except => (SetOperator::Except, "EXCEPT"),
        };
        let locations = [sides.0, sides.1].map(target_locations);
        let location = |side: usize, column: usize| {
            let found = locations.get(side).and_then(|found| found.get(column).or(found.first()));
            found.copied().unwrap_or_default()
        };
        let at = location(1, 0);
        if left.output.len() != right.output.len() {
            let message = format!("each {name} query must have the same number of columns");
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, message).at(at));
        }
        let (mut left_values, mut right_values, mut columns) = (Vec::new(), Vec::new(), Vec::new());
        for (at, (one, other)) in left.output.iter().zip(&right.output).enumerate() {
            let values = [(0, one), (1, other)].map(|(side, output)| {
                let ty = self.columns.get(output.id).ty;
                Expr::new(ExprKind::Column(output.id), ty).at(location(side, at))
            });
            let at = location(0, at);
            let (ty, mut values) = self.common_type(name, values.to_vec(), at)?;
            let mut values = values.drain(..);
            left_values.extend(values.next());
            right_values.extend(values.next());
            if !all || operator != SetOperator::Union {
                self.check_comparable(ty.oid, at)?;
            }
            columns.push((self.column(&one.name, ty), one.name.clone()));
        }
        let left_columns = self.converted(&mut left, left_values);
        let right_columns = self.converted(&mut right, right_values);
        let relation = Relation::SetOperation {
            operator,
            all,
            left: (Box::new(left.relation), left_columns),
            right: (Box::new(right.relation), right_columns),
            columns: columns.iter().map(|(id, _)| *id).collect(),
        };
        let output = columns.into_iter().map(|(id, name)| OutputColumn { id, name }).collect();
        Ok(Query { relation, output })
    }

    /// Makes a query produce these values, which are computed from its output. Returns their columns.
    fn converted(&mut self, query: &mut Query, values: Vec<Expr>) -> Vec<ColumnId> {
        let mut pairs = query.output.iter().zip(&values);
        if pairs.all(|(output, value)| value.kind == ExprKind::Column(output.id)) {
            return query.output.iter().map(|output| output.id).collect();
        }
        let named: Vec<(ColumnId, Expr)> = (query.output.iter().zip(values))
            .map(|(output, value)| (self.column(&output.name, value.ty), value))
            .collect();
        let ids = named.iter().map(|(id, _)| *id).collect();
        let input = Box::new(std::mem::replace(&mut query.relation, Relation::Unit));
        query.relation = Relation::Project { input, columns: named };
        ids
    }

    /// Binds `VALUES`, whose columns are called `column1` and so on.
    pub(super) fn values(
        &mut self,
        rows: &[ValuesRow],
        scope: &Scope<'_>,
    ) -> Result<Query, SqlError> {
        let width = rows.first().map_or(0, |row| row.columns.len());
        let mut by_column: Vec<Vec<Expr>> = vec![Vec::new(); width];
        for row in rows {
            if row.columns.len() != width {
                let message = "VALUES lists must all be the same length";
                let at = row.columns.first().map_or(row.span.start, |first| first.location);
                return Err(SqlError::new(SqlState::SYNTAX_ERROR, message).at(at));
            }
            for (column, expression) in by_column.iter_mut().zip(&row.columns) {
                let mut level = Level::default();
                let mut context = Context::new(scope, Place::Values, &mut level);
                column.push(self.expression(expression, &mut context)?);
            }
        }
        let (mut columns, mut output) = (Vec::new(), Vec::new());
        let mut bound: Vec<Vec<Expr>> = vec![Vec::new(); rows.len()];
        for (at, values) in by_column.into_iter().enumerate() {
            let location = values.first().and_then(|value| value.location.0).unwrap_or_default();
            let (ty, values) = self.common_type("VALUES", values, location)?;
            for (row, value) in bound.iter_mut().zip(values) {
                row.push(value);
            }
            let name: Box<str> = format!("column{}", at + 1).into();
            let id = self.column(&name, ty);
            columns.push(id);
            output.push(OutputColumn { id, name });
        }
        let relation = Relation::Values { columns, rows: bound };
        Ok(Query { relation, output })
    }
}
