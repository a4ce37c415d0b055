//! Relations: everything that produces rows.

use trunkline_format::Oid;

use super::column::{ColumnId, SqlType};
use super::expression::{Expr, SortKey};

/// A node that produces rows.
#[derive(Debug, Clone)]
pub enum Relation {
    /// One row without columns: `SELECT` without `FROM`.
    Unit,
    /// A table, with the columns that the statement uses.
    Table(TableScan),
    /// `VALUES`.
    Values {
        /// The columns.
        columns: Vec<ColumnId>,
        /// The rows, each with an expression for every column.
        rows: Vec<Vec<Expr>>,
    },
    /// Functions in `FROM`, whose rows are combined in step. Arguments may refer to outer columns.
    Functions {
        /// The functions.
        functions: Vec<RowSource>,
        /// `WITH ORDINALITY`: the column that counts the rows from 1.
        ordinality: Option<ColumnId>,
    },
    /// Set-returning functions in a select list: the rows of each input row, in step. A function that
    /// ends early continues with nulls.
    ProjectSet {
        /// The input.
        input: Box<Relation>,
        /// The functions.
        functions: Vec<RowSource>,
    },
    /// Computes columns. The input's columns remain visible only to these expressions.
    Project {
        /// The input.
        input: Box<Relation>,
        /// The new columns.
        columns: Vec<(ColumnId, Expr)>,
    },
    /// The rows for which the condition is true.
    Filter {
        /// The input.
        input: Box<Relation>,
        /// A boolean expression.
        condition: Expr,
    },
    /// A join.
    Join {
        /// The kind.
        kind: JoinKind,
        /// The left input.
        left: Box<Relation>,
        /// The right input.
        right: Box<Relation>,
        /// The condition; `None` for a cross join.
        condition: Option<Expr>,
        /// The right input refers to columns of the left one.
        lateral: bool,
    },
    /// Groups rows and aggregates them.
    Aggregate {
        /// The input.
        input: Box<Relation>,
        /// The columns to group by, computed from the input.
        groups: Vec<(ColumnId, Expr)>,
        /// `GROUPING SETS`: for each set, the places of its columns in `groups`. Without them, there
        /// is one set of all columns.
        sets: Option<Vec<Vec<usize>>>,
        /// `GROUPING`: an int4 with a bit for each of these places in `groups`, of which the first
        /// one is the highest. It is 1 if the row is not grouped by that column.
        groupings: Vec<(ColumnId, Vec<usize>)>,
        /// The aggregates.
        aggregates: Vec<(ColumnId, Aggregate)>,
    },
    /// Window functions, all over the same window.
    Window {
        /// The input, whose columns stay visible.
        input: Box<Relation>,
        /// The window.
        window: Window,
        /// The functions: aggregates or window functions.
        functions: Vec<(ColumnId, Aggregate)>,
    },
    /// `DISTINCT`, or `DISTINCT ON` if `on` is given: the first row of each group in the order of the
    /// input.
    Distinct {
        /// The input.
        input: Box<Relation>,
        /// The expressions of `DISTINCT ON`; `None` for all columns.
        on: Option<Vec<Expr>>,
    },
    /// `ORDER BY`.
    Sort {
        /// The input.
        input: Box<Relation>,
        /// The keys, of which the first is the most significant.
        keys: Vec<SortKey>,
    },
    /// `LIMIT` and `OFFSET`.
    Limit {
        /// The input.
        input: Box<Relation>,
        /// The maximum number of rows, an int8; null means no limit.
        limit: Option<Expr>,
        /// The number of rows to skip, an int8.
        offset: Option<Expr>,
        /// `WITH TIES`: the sort keys by which rows are equal to the last one.
        ties: Option<Vec<SortKey>>,
    },
    /// `UNION`, `INTERSECT`, `EXCEPT`.
    SetOperation {
        /// The operator.
        operator: SetOperator,
        /// `ALL`: duplicates are kept.
        all: bool,
        /// The left input and its columns.
        left: (Box<Relation>, Vec<ColumnId>),
        /// The right input and its columns.
        right: (Box<Relation>, Vec<ColumnId>),
        /// The columns of the result.
        columns: Vec<ColumnId>,
    },
    /// A query of `WITH RECURSIVE`: the rows of the left input, then those that the right input makes of
    /// the rows of the iteration before, until there are none.
    Recursive {
        /// By this number, a [`Relation::CteScan`] in the right input refers to the rows before.
        number: u32,
        /// `UNION ALL`: duplicates are kept.
        all: bool,
        /// The non-recursive term and its columns.
        left: (Box<Relation>, Vec<ColumnId>),
        /// The recursive term and its columns.
        right: (Box<Relation>, Vec<ColumnId>),
        /// The columns by which the right input refers to the rows before.
        work: Vec<ColumnId>,
        /// The columns of the result.
        columns: Vec<ColumnId>,
    },
    /// Common table expressions, visible in `input` and in those after them.
    With {
        /// The expressions.
        ctes: Vec<Cte>,
        /// The query that uses them.
        input: Box<Relation>,
    },
    /// A reference to a common table expression.
    CteScan {
        /// Its number, unique within the statement.
        cte: u32,
        /// For each column of the expression, the column of this reference.
        columns: Vec<(ColumnId, ColumnId)>,
    },
}

/// A table, partitioned table, materialized view, sequence or catalog.
#[derive(Debug, Clone)]
pub struct TableScan {
    /// `pg_class.oid`.
    pub table: Oid,
    /// The alias, or the table's name.
    pub alias: Box<str>,
    /// Whether children and partitions are scanned too: not with `ONLY`.
    pub inherit: bool,
    /// The columns that the statement uses.
    pub columns: Vec<TableColumn>,
}

/// A column of a table scan.
#[derive(Debug, Clone, Copy)]
pub struct TableColumn {
    /// The column's id.
    pub id: ColumnId,
    /// `attnum`; negative for system columns, 0 for the whole row.
    pub number: i16,
}

/// A call of a function in `FROM`, or of a set-returning function.
#[derive(Debug, Clone)]
pub struct RowSource {
    /// The call: an [`super::ExprKind::Call`], or any other expression, which gives one row.
    pub call: Expr,
    /// Whether the function returns a set, or is executed like one that does.
    pub returns_set: bool,
    /// Whether there is a row of nulls if the function gives none, because it doesn't return a set.
    pub is_single: bool,
    /// The columns of its rows; for a function that returns a scalar, one.
    pub columns: Vec<ColumnId>,
    /// The types of those columns, if the call's type is composite.
    pub row_type: Option<Vec<SqlType>>,
    /// The names of the columns if a column definition list describes them, because the function's
    /// type is `record`.
    pub defined: Vec<Box<str>>,
}

/// The kinds of joins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are SQL's")]
pub enum JoinKind {
    Inner,
    Left,
    Right,
    Full,
}

/// The set operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are SQL's")]
pub enum SetOperator {
    Union,
    Intersect,
    Except,
}

/// A call of an aggregate or window function.
#[derive(Debug, Clone, PartialEq)]
pub struct Aggregate {
    /// `pg_proc.oid`.
    pub function: Oid,
    /// The arguments, of exactly the types that the function takes. `count(*)` has none.
    pub arguments: Vec<Expr>,
    /// The direct arguments of an ordered-set aggregate, which don't depend on the group's rows.
    pub direct: Vec<Expr>,
    /// `DISTINCT`.
    pub distinct: bool,
    /// `ORDER BY` inside the call, or `WITHIN GROUP`.
    pub order_by: Vec<SortKey>,
    /// `FILTER`.
    pub filter: Option<Expr>,
    /// The type of the result.
    pub ty: SqlType,
    /// The collation that the function uses; 0 if none.
    pub collation: Oid,
}

/// `OVER`: which rows a window function sees.
#[derive(Debug, Clone, PartialEq)]
pub struct Window {
    /// `PARTITION BY`.
    pub partition_by: Vec<Expr>,
    /// `ORDER BY`.
    pub order_by: Vec<SortKey>,
    /// The frame.
    pub frame: WindowFrame,
}

/// A window frame.
#[derive(Debug, Clone, PartialEq)]
pub struct WindowFrame {
    /// The unit of the bounds.
    pub unit: FrameUnit,
    /// Where it starts.
    pub start: FrameBound,
    /// Where it ends.
    pub end: FrameBound,
    /// `EXCLUDE`.
    pub exclude: FrameExclusion,
}

/// The unit of a frame's bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are SQL's")]
pub enum FrameUnit {
    Rows,
    Range,
    Groups,
}

/// A bound of a frame. A distance is an int8, or for `RANGE` a value that `in_range` adds.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "the names are SQL's")]
pub enum FrameBound {
    UnboundedPreceding,
    Preceding(Expr),
    CurrentRow,
    Following(Expr),
    UnboundedFollowing,
}

/// `EXCLUDE`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are SQL's")]
pub enum FrameExclusion {
    NoOthers,
    CurrentRow,
    Group,
    Ties,
}

/// A common table expression.
#[derive(Debug, Clone)]
pub struct Cte {
    /// Its number, unique within the statement.
    pub number: u32,
    /// Its name.
    pub name: Box<str>,
    /// The query.
    pub relation: Relation,
    /// Its columns.
    pub columns: Vec<ColumnId>,
    /// `MATERIALIZED`, `NOT MATERIALIZED`, or neither.
    pub materialized: Option<bool>,
}
