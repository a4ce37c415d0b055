//! The entry to the binder: a query goes in, and a bound statement with the types of its parameters
//! comes out.
//!
//! A statement that is right but would write, such as `SELECT … FOR UPDATE`, is refused in the end, so
//! that errors of the statement itself come first, as in a server.

use trunkline_aio::facade::hash::Map;
use trunkline_format::Oid;
use trunkline_format::text_input::InputOptions;

use super::binder::Binder;
use super::open_recursion::Recursions;
use super::parameters::Parameters;
use super::presence::Markers;
use super::scope::Scope;
use crate::bound::{BoundStatement, Columns, Subqueries, with_stack_for};
use crate::catalog::Namespace;
use crate::error::{SqlError, SqlState};
use crate::functions::Zones;
use crate::syntax::SelectStatement;

/// What binding depends on besides the statement.
#[derive(Clone, Copy)]
pub struct BindOptions<'a> {
    /// The catalog as seen through the session's search path.
    pub names: Namespace<'a>,
    /// How constants are read.
    pub input: InputOptions<'a>,
    /// Types of parameters; 0 for those whose type the context decides. `None` if the statement can't
    /// have parameters.
    pub parameters: Option<&'a [Oid]>,
    /// How deep the statement may nest
    /// ([`RawStatement::nesting`](crate::syntax::RawStatement::nesting)).
    pub nesting: usize,
}

/// A bound statement and the types of its parameters.
#[derive(Debug, Clone)]
pub struct Bound {
    /// The statement.
    pub statement: BoundStatement,
    /// The types of `$1` and so on.
    pub parameters: Vec<Oid>,
}

/// Binds a query.
///
/// # Errors
/// What is wrong with it, with PostgreSQL's code and words, or 0A000 for what we don't support.
pub fn bind(select: &SelectStatement, options: BindOptions<'_>) -> Result<Bound, SqlError> {
    with_stack_for(options.nesting, || bind_query(select, options))
}

fn bind_query(select: &SelectStatement, options: BindOptions<'_>) -> Result<Bound, SqlError> {
    let parameters = options.parameters.map_or_else(Parameters::default, Parameters::declared);
    let mut binder = new_binder(options, parameters);
    let query = binder.query(select, &Scope::default(), true)?;
    if let Some(strength) = binder.locking {
        let message = format!("cannot execute SELECT {strength} in a read-only transaction");
        return Err(SqlError::new(SqlState::READ_ONLY_SQL_TRANSACTION, message));
    }
    let Binder { columns, subqueries, parameters, markers, nesting_max: nesting, .. } = binder;
    let (subqueries, query) = markers.settle(&columns, subqueries, query);
    let statement = BoundStatement { columns, subqueries, query, nesting };
    Ok(Bound { statement, parameters: parameters.finish()? })
}

/// A binder that has bound nothing yet.
pub(super) fn new_binder(options: BindOptions<'_>, parameters: Parameters) -> Binder<'_> {
    Binder {
        names: options.names,
        input: InputOptions { names: &Zones, ..options.input },
        columns: Columns::default(),
        subqueries: Subqueries::default(),
        parameters,
        next_cte: 0,
        query_depth: 0,
        queries: 0,
        query_number: 0,
        view_depth: 0,
        nesting: options.nesting,
        nesting_max: options.nesting,
        markers: Markers::default(),
        recursions: Recursions::default(),
        record_columns: Map::default(),
        frames: Vec::new(),
        outer_aggregates: Vec::new(),
        locking: None,
    }
}
