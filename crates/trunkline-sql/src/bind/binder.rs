//! The state of binding one statement.

use trunkline_aio::facade::hash::Map;
use trunkline_format::Oid;
use trunkline_format::text_input::InputOptions;

use super::function_frame::FunctionFrame;
use super::level::{Level, OuterAggregate};
use super::open_recursion::Recursions;
use super::parameters::Parameters;
use super::presence::Markers;
use super::resolved::RowField;
use super::scope::Scope;
use crate::bound::{Column, ColumnId, Columns, Expr, Origin, SqlType, Subqueries};
use crate::catalog::{Namespace, SqlCatalog};

/// Binds one statement.
pub(super) struct Binder<'a> {
    /// The catalog as seen through the session's search path.
    pub(super) names: Namespace<'a>,
    /// How constants are read.
    pub(super) input: InputOptions<'a>,
    pub(super) columns: Columns,
    pub(super) subqueries: Subqueries,
    pub(super) parameters: Parameters,
    /// The number of the next common table expression.
    pub(super) next_cte: u32,
    /// How many queries the one that is bound is inside of.
    pub(super) query_depth: usize,
    /// The number of queries so far.
    pub(super) queries: u32,
    /// The number of the query that is being bound.
    pub(super) query_number: u32,
    /// How many views what is being bound is in.
    pub(super) view_depth: u32,
    /// How deep the statement nests up to what is being bound, with the queries of views.
    pub(super) nesting: usize,
    /// The deepest nesting of the statement.
    pub(super) nesting_max: usize,
    /// Recursive queries that are being bound.
    pub(super) recursions: Recursions,
    /// Columns that show whether outer joins found a row.
    pub(super) markers: Markers,
    /// The fields of columns of the type `record`.
    pub(super) record_columns: Map<ColumnId, Vec<RowField>>,
    /// The functions in SQL whose bodies are being bound, from the outermost one.
    pub(super) frames: Vec<FunctionFrame>,
    /// Aggregates in subqueries that belong to a query around them.
    pub(super) outer_aggregates: Vec<OuterAggregate>,
    /// The words of the first row lock, such as `FOR UPDATE`.
    pub(super) locking: Option<&'static str>,
}

impl<'a> Binder<'a> {
    /// The catalog.
    pub(super) fn catalog(&self) -> &'a SqlCatalog {
        self.names.catalog()
    }

    /// Whether two expressions of the query that is being bound compute the same.
    pub(super) fn is_same(&self, one: &Expr, other: &Expr) -> bool {
        one.is_same(other, &self.columns, &self.subqueries)
    }

    /// Adds a column that is computed.
    pub(super) fn column(&mut self, name: &str, ty: SqlType) -> ColumnId {
        self.columns.add(Column { name: name.into(), relation: None, ty, origin: None })
    }

    /// Adds a column of an item of `FROM`.
    pub(super) fn column_of(
        &mut self,
        relation: Option<&str>,
        name: &str,
        ty: SqlType,
        origin: Option<Origin>,
    ) -> ColumnId {
        let relation = relation.map(Box::from);
        self.columns.add(Column { name: name.into(), relation, ty, origin })
    }

    /// A type without a modifier, with the collation that its values have by default.
    pub(super) fn type_of(&self, oid: Oid) -> SqlType {
        self.type_with(oid, -1)
    }

    /// A type with a modifier, with the collation that its values have by default.
    pub(super) fn type_with(&self, oid: Oid, modifier: i32) -> SqlType {
        let row = self.catalog().data_type(oid);
        let collation = row.map_or(Oid(0), |row| row.collation);
        SqlType { oid, modifier, collation }
    }
}

/// Where an expression is, which decides whether it may contain aggregates, window functions and
/// set-returning functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Target,
    Where,
    Having,
    GroupBy,
    OrderBy,
    DistinctOn,
    JoinCondition,
    Filter,
    Limit,
    Offset,
    Values,
    From,
    Window,
    ExecuteParameter,
}

impl Place {
    /// The clause, as error messages name it.
    pub(super) fn clause(self) -> &'static str {
        match self {
            Self::Target => "SELECT",
            Self::Where => "WHERE",
            Self::Having => "HAVING",
            Self::GroupBy => "GROUP BY",
            Self::OrderBy => "ORDER BY",
            Self::DistinctOn => "DISTINCT ON",
            Self::JoinCondition => "JOIN conditions",
            Self::Filter => "FILTER",
            Self::Limit => "LIMIT",
            Self::Offset => "OFFSET",
            Self::Values => "VALUES",
            Self::From => "functions in FROM",
            Self::Window => "window definitions",
            Self::ExecuteParameter => "EXECUTE parameters",
        }
    }

    /// Whether aggregates are allowed.
    pub(super) fn allows_aggregates(self) -> bool {
        matches!(
            self,
            Self::Target | Self::Having | Self::OrderBy | Self::DistinctOn | Self::Window
        )
    }

    /// Whether window functions are allowed.
    pub(super) fn allows_windows(self) -> bool {
        matches!(self, Self::Target | Self::OrderBy | Self::DistinctOn)
    }

    /// Whether set-returning functions are allowed.
    pub(super) fn allows_sets(self) -> bool {
        matches!(self, Self::Target | Self::OrderBy | Self::DistinctOn | Self::GroupBy)
    }
}

/// The surroundings of an expression: names, and the query that collects its aggregates.
pub(super) struct Context<'c> {
    pub(super) scope: &'c Scope<'c>,
    pub(super) place: Place,
    pub(super) level: &'c mut Level,
}

impl<'c> Context<'c> {
    pub(super) fn new(scope: &'c Scope<'c>, place: Place, level: &'c mut Level) -> Self {
        Self { scope, place, level }
    }
}
