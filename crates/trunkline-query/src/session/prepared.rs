//! What a session keeps between the messages of the extended protocol: statements that were prepared,
//! and portals, which are statements with their parameters.

use std::sync::Arc;

use trunkline_sql::bind::Bound;
use trunkline_sql::syntax::RawStatement;

use crate::environment::ParameterValue;
use crate::statement::Rows;

/// A prepared statement.
pub(super) struct Prepared {
    /// Its text.
    pub(super) text: String,
    /// `None`: the text contains no statement.
    pub(super) raw: Option<RawStatement>,
    /// The binding, if it is a query.
    pub(super) bound: Option<Bound>,
}

/// A prepared statement with its parameters.
pub(super) struct Portal {
    /// The statement.
    pub(super) statement: Arc<Prepared>,
    /// Stored values of the described types.
    pub(super) parameters: Arc<[ParameterValue]>,
    /// How far it was executed.
    pub(super) progress: Progress,
}

/// How far a portal was executed.
pub(super) enum Progress {
    /// Not at all.
    New,
    /// Its rows are with the sender, or it has ended.
    Started,
    /// These rows are left, with their command tag.
    Suspended(Rows, &'static str),
}
