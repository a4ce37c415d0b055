//! Subqueries used as expressions.

use super::binder::{Binder, Context, Place};
use super::expression::{BOOL, comparison_parts, not, operator_name, quantifier_of};
use crate::bound::{
    Expr, ExprKind, OutputColumn, Quantifier, Query, Relation, SqlType, Subquery, SubqueryKind,
};
use crate::catalog::ObjectName;
use crate::error::{SqlError, SqlState};
use crate::syntax::{Expression, ExpressionKind, SelectStatement, SubLinkKind};

impl Binder<'_> {
    /// Binds a subquery. Its outer scope is that of the expression.
    pub(super) fn sub_link(
        &mut self,
        kind: &SubLinkKind,
        select: &SelectStatement,
        at: u32,
        context: &mut Context<'_>,
    ) -> Result<Expr, SqlError> {
        if context.place == Place::ExecuteParameter {
            return Err(SqlError::unsupported("cannot use subquery in EXECUTE parameter").at(at));
        }
        let aggregates = self.outer_aggregates.len();
        self.recursions.enter("a subquery");
        let query = self.query(select, context.scope, true);
        self.recursions.leave();
        let query = query?;
        self.adopt_aggregates(aggregates, context)?;
        match kind {
            SubLinkKind::Exists => Ok(self.subquery(SubqueryKind::Exists, query, BOOL)),
            SubLinkKind::Scalar => {
                let ty = self.only_column(&query, at)?;
                Ok(self.subquery(SubqueryKind::Scalar, query, ty))
            }
            SubLinkKind::Array => {
                let ty = self.only_column(&query, at)?;
                let array = self.catalog().promoted_array_type(ty.oid).ok_or_else(|| {
                    let name = self.names.type_name(ty.oid);
                    let message = format!("could not find array type for data type {name}");
                    SqlError::new(SqlState::UNDEFINED_OBJECT, message).at(at)
                })?;
                let ty = SqlType { oid: array, ..ty };
                Ok(self.subquery(SubqueryKind::Array, query, ty))
            }
            SubLinkKind::Quantified { quantifier, left, operator } => {
                let name = operator_name(operator);
                let quantifier = quantifier_of(*quantifier);
                self.quantified(quantifier, left, name, query, at, context)
            }
            SubLinkKind::In { negated, left } => {
                let name = ObjectName::unqualified("=");
                let found = self.quantified(Quantifier::Any, left, name, query, at, context)?;
                Ok(if *negated { not(found) } else { found })
            }
        }
    }

    pub(super) fn subquery(&mut self, kind: SubqueryKind, query: Query, ty: SqlType) -> Expr {
        let query = self.subqueries.add(query);
        Expr::new(ExprKind::Subquery(Box::new(Subquery { kind, query })), ty)
    }

    /// The type of the only column.
    fn only_column(&self, query: &Query, at: u32) -> Result<SqlType, SqlError> {
        match &*query.output {
            [column] => Ok(self.columns.get(column.id).ty),
            _ => {
                let message = "subquery must return only one column";
                Err(SqlError::new(SqlState::SYNTAX_ERROR, message).at(at))
            }
        }
    }

    /// `left operator ANY (query)`.
    fn quantified(
        &mut self,
        quantifier: Quantifier,
        left: &Expression,
        name: ObjectName<'_>,
        query: Query,
        at: u32,
        context: &mut Context<'_>,
    ) -> Result<Expr, SqlError> {
        let lefts = match &left.kind {
            ExpressionKind::Row { fields, .. } => self.expressions(fields, context)?,
            _ => vec![self.expression(left, context)?],
        };
        let found = query.output.len();
        if lefts.len() != found {
            let what = if lefts.len() < found { "many" } else { "few" };
            let message = format!("subquery has too {what} columns");
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, message).at(at));
        }
        let is_row = lefts.len() > 1;
        if is_row && !matches!(name.name, "=" | "<>") {
            let message = format!(
                "row comparison with {} and a subquery is not supported by trunkline",
                name.name
            );
            return Err(SqlError::unsupported(message).at(at));
        }
        // Rows differ if any pair does, so `<> ALL` means that none is equal, and `<> ANY` that not all
        // are.
        if is_row && name.name == "<>" {
            let equals = ObjectName { name: "=", ..name };
            let opposite = match quantifier {
                Quantifier::Any => Quantifier::All,
                Quantifier::All => Quantifier::Any,
            };
            return self.quantified_rows(opposite, lefts, equals, query, at).map(not);
        }
        self.quantified_rows(quantifier, lefts, name, query, at)
    }

    /// Compares rows with those of a query. They match if all pairs do.
    fn quantified_rows(
        &mut self,
        quantifier: Quantifier,
        lefts: Vec<Expr>,
        name: ObjectName<'_>,
        query: Query,
        at: u32,
    ) -> Result<Expr, SqlError> {
        let (mut operands, mut columns) = (Vec::new(), Vec::new());
        for (left, output) in lefts.into_iter().zip(&query.output) {
            let ty = self.columns.get(output.id).ty;
            let right = Expr::new(ExprKind::Column(output.id), ty).at(at);
            let compared = self.apply_operator(name, Some(left), right, at)?;
            let (comparison, left, right) = comparison_parts(compared, "row comparison", at)?;
            operands.push((*left, comparison));
            columns.push(*right);
        }
        let kind = SubqueryKind::Quantified { quantifier, operands, columns };
        Ok(self.subquery(kind, query, BOOL))
    }

    /// `ROW(…) operator (query)`: the comparison becomes the only column of the query, which has at most
    /// one row.
    pub(super) fn row_and_subquery(
        &mut self,
        name: ObjectName<'_>,
        lefts: Vec<Expr>,
        select: &SelectStatement,
        at: u32,
        context: &mut Context<'_>,
    ) -> Result<Expr, SqlError> {
        let aggregates = self.outer_aggregates.len();
        self.recursions.enter("a subquery");
        let query = self.query(select, context.scope, true);
        self.recursions.leave();
        let query = query?;
        self.adopt_aggregates(aggregates, context)?;
        let found = query.output.len();
        if lefts.len() != found {
            let what = if lefts.len() < found { "many" } else { "few" };
            let message = format!("subquery has too {what} columns");
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, message).at(at));
        }
        let rights = query.output.iter().map(|output| {
            let ty = self.columns.get(output.id).ty;
            Expr::new(ExprKind::Column(output.id), ty).at(at)
        });
        let rights = rights.collect();
        let compared = self.row_comparison(name, lefts, rights, at)?;
        let id = self.column("?column?", BOOL);
        let relation =
            Relation::Project { input: Box::new(query.relation), columns: vec![(id, compared)] };
        let output = vec![OutputColumn { id, name: "?column?".into() }];
        Ok(self.subquery(SubqueryKind::Scalar, Query { relation, output }, BOOL))
    }

    /// `ROW(…) operator ROW(…)`.
    pub(super) fn row_comparison(
        &mut self,
        name: ObjectName<'_>,
        lefts: Vec<Expr>,
        rights: Vec<Expr>,
        at: u32,
    ) -> Result<Expr, SqlError> {
        if lefts.len() != rights.len() {
            let message = "unequal number of entries in row expressions";
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, message).at(at));
        }
        if lefts.is_empty() {
            let message = "cannot compare rows of zero length";
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message).at(at));
        }
        let (less, equal) = match name.name {
            "=" | "<>" => {
                let pairs = lefts.into_iter().zip(rights);
                let parts = pairs
                    .map(|(left, right)| self.apply_operator(name, Some(left), right, at))
                    .collect::<Result<Vec<_>, _>>()?;
                // Rows differ if any pair does.
                return Ok(super::expression::joined(parts, name.name == "="));
            }
            "<" => (true, false),
            "<=" => (true, true),
            ">" => (false, false),
            ">=" => (false, true),
            other => {
                let message = format!(
                    "could not determine interpretation of row comparison operator {other}"
                );
                let hint =
                    "Row comparison operators must be associated with btree operator families.";
                let error = SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message);
                return Err(error.with_hint(hint).at(at));
            }
        };
        let mut pairs = Vec::new();
        for (left, right) in lefts.into_iter().zip(rights) {
            let compared = self.apply_operator(name, Some(left), right, at)?;
            let (comparison, left, right) = comparison_parts(compared, "row comparison", at)?;
            if left.ty.oid != right.ty.oid {
                let message = "row comparison of different types is not supported by trunkline";
                return Err(SqlError::unsupported(message).at(at));
            }
            let compare = self.catalog().type_operators(left.ty.oid).compare;
            let compare = compare.ok_or_else(|| {
                let name = self.names.type_name(left.ty.oid);
                let message = format!("could not identify a comparison function for type {name}");
                SqlError::new(SqlState::UNDEFINED_FUNCTION, message).at(at)
            })?;
            pairs.push((*left, *right, compare, comparison.collation));
        }
        Ok(Expr::new(ExprKind::RowComparison { less, equal, pairs }, BOOL))
    }
}
