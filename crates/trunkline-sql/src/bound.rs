//! **The bound tree**: a statement whose names, types, operators and functions are resolved.
//!
//! ```text
//!   select a + 1 from t where b = 'x' limit 5
//!
//!   Limit 5
//!     Project  #3 = int4pl(#1, 1)
//!       Filter  texteq(#2, 'x')
//!         Table t  a → #1, b → #2
//! ```
//!
//! A query is a tree of [`Relation`]s. Every column that a relation produces has a [`ColumnId`] of its
//! own, which is unique within the statement, and expressions refer to columns by it. So neither
//! aliases nor duplicate names matter any more, and an expression keeps its meaning when it is moved.
//! A column that is not produced by the inputs of a relation comes from an outer query: the subquery
//! is correlated.
//!
//! Aggregates, window functions and set-returning functions are relations here, because they need more
//! than one row. Their results are ordinary columns.

mod column;
mod expression;
mod query;
mod relation;
mod same;
mod stack;
mod visible;
mod walk;

pub use column::{Column, ColumnId, Columns, Origin, SqlType};
pub use expression::{
    BooleanTest, CallForm, Comparison, Expr, ExprKind, Location, Quantifier, QueryId, SortKey,
    Subquery, SubqueryKind,
};
pub use query::{BoundStatement, OutputColumn, Query, Subqueries};
pub use relation::{
    Aggregate, Cte, FrameBound, FrameExclusion, FrameUnit, JoinKind, Relation, RowSource,
    SetOperator, TableColumn, TableScan, Window, WindowFrame,
};
pub use stack::{with_stack, with_stack_for};
