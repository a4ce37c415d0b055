//! **Parts of a query that contain no expressions**: relations in FROM, references to columns, and the
//! enums for the words of a clause.
//!
//! `from only public.t as a` is a [`RangeVariable`] with `only`, and `left join` is [`JoinKind::Left`].

use super::names::{Alias, Name, QualifiedName, TypeName};
use super::span::Span;

/// A reference to a column, or to all columns.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnReference {
    /// The names from left to right; empty only for a bare `*`.
    pub fields: Vec<Name>,
    /// A `*` follows the names.
    pub star: bool,
}

/// How a comparison combines the elements of an array or the rows of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantifier {
    /// One must match. Also written SOME.
    Any,
    /// All must match.
    All,
}

/// Functions of the SQL standard that are written without parentheses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each variant is the name of the function that it stands for")]
pub enum SqlValueFunction {
    CurrentDate,
    CurrentTime,
    CurrentTimestamp,
    LocalTime,
    LocalTimestamp,
    CurrentRole,
    CurrentUser,
    User,
    SessionUser,
    CurrentCatalog,
    CurrentSchema,
}

/// What a frame's offsets count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameUnits {
    /// Rows.
    Rows,
    /// Values of the only ORDER BY expression.
    Range,
    /// Groups of peers.
    Groups,
}

/// Which rows EXCLUDE leaves out of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameExclusion {
    /// None: EXCLUDE NO OTHERS, or nothing written.
    None,
    /// The current row.
    CurrentRow,
    /// The current row and its peers.
    Group,
    /// The peers of the current row.
    Ties,
}

/// The set operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the variants are the words of the language")]
pub enum SetOperation {
    Union,
    Intersect,
    Except,
}

/// FOR UPDATE and the like.
#[derive(Clone, Debug, PartialEq)]
pub struct LockingClause {
    /// The strength of the lock.
    pub strength: LockStrength,
    /// OF; empty means all relations.
    pub relations: Vec<QualifiedName>,
    /// NOWAIT or SKIP LOCKED.
    pub wait_policy: LockWaitPolicy,
    /// The clause.
    pub span: Span,
}

/// The strengths of row locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the variants are the words of the clause")]
pub enum LockStrength {
    KeyShare,
    Share,
    NoKeyUpdate,
    Update,
}

/// What happens if a row lock is not available.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockWaitPolicy {
    /// Wait, the default.
    Block,
    /// SKIP LOCKED.
    Skip,
    /// NOWAIT.
    Error,
}

/// A relation in FROM.
#[derive(Clone, Debug, PartialEq)]
pub struct RangeVariable {
    /// Its name, possibly with schema and database.
    pub name: QualifiedName,
    /// ONLY: without the tables that inherit from it.
    pub only: bool,
    /// Its alias.
    pub alias: Option<Alias>,
}

/// A column that a function's result is declared to have.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnDefinition {
    /// Its name.
    pub name: Name,
    /// Its type.
    pub type_name: TypeName,
    /// Its collation.
    pub collation: Option<QualifiedName>,
}

/// The kinds of joins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the variants are the words of the language")]
pub enum JoinKind {
    Inner,
    Left,
    Right,
    Full,
}
