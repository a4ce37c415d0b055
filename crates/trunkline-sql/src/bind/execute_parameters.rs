//! The values that `EXECUTE` has for the parameters of a prepared statement.
//!
//! `execute p(1.5)` becomes a query of one row whose column is the value as the type of `$1`, converted
//! as in an assignment.

use trunkline_format::Oid;

use super::binder::{Binder, Context, Place};
use super::level::Level;
use super::parameters::Parameters;
use super::scope::Scope;
use super::statement::{BindOptions, new_binder};
use crate::bound::{BoundStatement, Expr, OutputColumn, Query, Relation, with_stack_for};
use crate::error::{SqlError, SqlState};
use crate::syntax::{Expression, TypeName};

/// Binds the values of EXECUTE to the types of a prepared statement's parameters.
///
/// # Errors
/// 42601: there are more or fewer values than parameters. 42804: a value can't be converted to the type
/// of its parameter. Otherwise, what is wrong with a value.
pub fn bind_execute(
    name: &str,
    values: &[Expression],
    types: &[Oid],
    options: BindOptions<'_>,
) -> Result<BoundStatement, SqlError> {
    if values.len() != types.len() {
        let message = format!("wrong number of parameters for prepared statement \"{name}\"");
        let detail = format!("Expected {} parameters but got {}.", types.len(), values.len());
        return Err(SqlError::new(SqlState::SYNTAX_ERROR, message).with_detail(detail));
    }
    with_stack_for(options.nesting, || {
        let mut binder = new_binder(options, Parameters::default());
        let (mut columns, mut output, mut row) = (Vec::new(), Vec::new(), Vec::new());
        for (at, (value, &ty)) in values.iter().zip(types).enumerate() {
            let value = binder.execute_parameter(at + 1, value, ty)?;
            let name: Box<str> = format!("column{}", at + 1).into();
            let id = binder.column(&name, value.ty);
            columns.push(id);
            output.push(OutputColumn { id, name });
            row.push(value);
        }
        let relation = Relation::Values { columns, rows: vec![row] };
        let query = Query { relation, output };
        let Binder { columns, subqueries, markers, nesting_max: nesting, .. } = binder;
        let (subqueries, query) = markers.settle(&columns, subqueries, query);
        Ok(BoundStatement { columns, subqueries, query, nesting })
    })
}

/// The types that are declared for the parameters of a prepared statement.
///
/// # Errors
/// 42704: there is no such type.
pub fn declared_types(types: &[TypeName], options: BindOptions<'_>) -> Result<Vec<Oid>, SqlError> {
    let binder = new_binder(options, Parameters::default());
    types.iter().map(|name| binder.named_type(name).map(|ty| ty.oid)).collect()
}

impl Binder<'_> {
    fn execute_parameter(
        &mut self,
        number: usize,
        value: &Expression,
        ty: Oid,
    ) -> Result<Expr, SqlError> {
        let (scope, mut level) = (Scope::default(), Level::default());
        let mut context = Context::new(&scope, Place::ExecuteParameter, &mut level);
        let expr = self.expression(value, &mut context)?;
        let (source, at) = (expr.ty.oid, value.location);
        self.coerce_assignment(expr, self.type_of(ty)).map_err(|error| {
            if error.code() != SqlState::CANNOT_COERCE {
                return error;
            }
            let (source, target) = (self.names.type_name(source), self.names.type_name(ty));
            let message = format!(
                "parameter ${number} of type {source} cannot be coerced to the expected type \
                 {target}"
            );
            SqlError::new(SqlState::DATATYPE_MISMATCH, message)
                .with_hint("You will need to rewrite or cast the expression.")
                .at(at)
        })
    }
}
