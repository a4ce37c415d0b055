//! What a session keeps between the messages of the extended protocol: statements that were prepared,
//! and portals, which are statements with their parameters. Cursors of SQL are kept beside them.

use std::sync::Arc;

use tokio::sync::OnceCell;
use trunkline_aio::facade::Mutex;
use trunkline_aio::facade::atomic::AtomicU64;
use trunkline_sql::bind::Bound;
use trunkline_sql::syntax::RawStatement;

use crate::encode::{ColumnEncoders, ValueFormat};
use crate::environment::ParameterValue;
use crate::statement::{CursorRows, PointQuery, ResultColumn, Rows};

/// A prepared statement.
pub(super) struct Prepared {
    /// Its text.
    pub(super) text: String,
    /// `None`: the text contains no statement.
    pub(super) raw: Option<RawStatement>,
    /// The binding, if it is a query.
    pub(super) bound: Option<Bound>,
    /// Whether it was prepared by SQL's PREPARE.
    pub(super) from_sql: bool,
    /// When, in microseconds since 2000.
    pub(super) prepared_at: i64,
    /// How it is executed without a plan, if it can be; unknown before the first execution.
    pub(super) point: OnceCell<Option<PointQuery>>,
    /// The columns of its rows, once they were asked for, if they follow from the binding alone.
    pub(super) columns: OnceCell<Arc<[ResultColumn]>>,
    /// The encoders of the last execution's rows.
    pub(super) encoders: Mutex<Option<KeptEncoders>>,
    /// How often it was planned, which is once for each execution with a plan.
    pub(super) plans: AtomicU64,
    /// How often it was executed without a plan of its own.
    pub(super) lookups: AtomicU64,
}

/// Encoders, and what they were made for. Making them takes longer than encoding a row.
pub(super) struct KeptEncoders {
    pub(super) columns: Arc<[ResultColumn]>,
    pub(super) formats: Arc<[ValueFormat]>,
    pub(super) encoders: ColumnEncoders,
}

/// A prepared statement with its parameters.
pub(super) struct Portal {
    /// The statement.
    pub(super) statement: Arc<Prepared>,
    /// Stored values of the described types.
    pub(super) parameters: Arc<[ParameterValue]>,
    /// The formats in which the client wants the columns: none, one for all, or one for each.
    pub(super) result_formats: Arc<[ValueFormat]>,
    /// How far it was executed.
    pub(super) progress: Progress,
    /// How many savepoints there were.
    pub(super) savepoints: usize,
}

/// How far a portal was executed.
///
/// ```text
///   New ──▶ Active ──▶ Done
///             │ ▲ └───▶ Failed
///             ▼ │
///          Suspended
/// ```
pub(super) enum Progress {
    /// Not at all.
    New,
    /// Its rows are with the sender. They have this command tag; without one there are no rows.
    Active(Option<&'static str>),
    /// These rows are left, with their command tag.
    Suspended(Rows, &'static str),
    /// It has ended. The tag is that of its rows.
    Done(Option<&'static str>),
    /// Its execution has failed, or that of the block which it belongs to.
    Failed,
}

/// What `pg_cursors` shows of a cursor.
#[derive(Clone)]
pub(super) struct CursorEntry {
    pub(super) name: String,
    /// The text of its DECLARE.
    pub(super) text: Arc<str>,
    /// When it was declared, in microseconds since 2000.
    pub(super) created: i64,
    /// WITH HOLD.
    pub(super) hold: bool,
}

/// A cursor.
pub(super) struct Cursor {
    /// The rows.
    pub(super) rows: CursorRows,
    /// What others see of it.
    pub(super) entry: CursorEntry,
    /// Its transaction has committed.
    pub(super) is_held: bool,
    /// NO SCROLL.
    pub(super) no_scroll: bool,
    /// How many savepoints there were.
    pub(super) savepoints: usize,
}
