//! `GROUPING(a, b)`: which of the grouping expressions a row of a result is not grouped by.
//!
//! ```text
//!   select a, b, grouping(a, b) from t group by rollup (a, b)
//!
//!   rows of (a, b): 0     rows of (a): 1     the row of (): 3
//! ```

use super::binder::{Binder, Context};
use crate::bound::{Expr, ExprKind};
use crate::catalog::oids;
use crate::error::{SqlError, SqlState};
use crate::syntax::Expression;

/// The number of arguments that `GROUPING` can have: the bits of an int4 without its sign.
const ARGUMENTS_MAX: usize = 31;

impl Binder<'_> {
    /// Binds a call. Its arguments are looked up among the groups when all of these are known.
    pub(super) fn grouping_call(
        &mut self,
        arguments: &[Expression],
        at: u32,
        context: &mut Context<'_>,
    ) -> Result<Expr, SqlError> {
        if arguments.len() > ARGUMENTS_MAX {
            let message = "GROUPING must have fewer than 32 arguments";
            return Err(SqlError::new(SqlState::TOO_MANY_ARGUMENTS, message).at(at));
        }
        if !context.place.allows_aggregates() {
            let clause = context.place.clause();
            let message = format!("grouping operations are not allowed in {clause}");
            return Err(SqlError::new(SqlState::GROUPING_ERROR, message).at(at));
        }
        let arguments = self.expressions(arguments, context)?;
        let mut is_outer = false;
        for argument in &arguments {
            argument.columns(&self.subqueries, &mut |id| {
                is_outer |= self.is_outer(id, context.scope);
            });
        }
        if is_outer {
            let message = "GROUPING of columns of an outer query is not supported by trunkline";
            return Err(SqlError::unsupported(message).at(at));
        }
        let ty = self.type_of(oids::INT4);
        let known = context.level.groupings.iter().find(|(_, found)| *found == arguments);
        let id = match known {
            Some((id, _)) => *id,
            None => {
                let id = self.column("grouping", ty);
                context.level.groupings.push((id, arguments));
                id
            }
        };
        Ok(Expr::new(ExprKind::Column(id), ty).at(at))
    }

    /// The places of the arguments of a call among the grouping expressions.
    pub(super) fn grouping_places(
        &self,
        arguments: &[Expr],
        groups: &[Expr],
    ) -> Result<Vec<usize>, SqlError> {
        let place = |argument: &Expr| {
            groups.iter().position(|group| self.is_same(group, argument)).ok_or_else(|| {
                let message = "arguments to GROUPING must be grouping expressions of the associated \
                               query level";
                let error = SqlError::new(SqlState::GROUPING_ERROR, message);
                error.at(argument.location.0.unwrap_or_default())
            })
        };
        arguments.iter().map(place).collect()
    }
}
