//! What a call stands for, once the types of its arguments are known.

use trunkline_format::Oid;

use crate::bound::{Expr, SqlType};

/// A function with its arguments, converted to the types that it takes.
#[derive(Debug)]
pub(super) struct Resolved {
    /// `pg_proc.oid`.
    pub(super) function: Oid,
    pub(super) arguments: Vec<Expr>,
    /// The type of the result.
    pub(super) result: Oid,
    /// The last argument is an array whose elements are arguments of any type.
    pub(super) spreads: bool,
}

/// What a call stands for.
#[derive(Debug)]
pub(super) enum ResolvedCall {
    /// A function.
    Function(Resolved),
    /// A conversion that is written like a function: `text(1)`.
    Cast(Expr),
}

/// A field of a row.
#[derive(Debug, Clone)]
pub(super) struct RowField {
    /// Its number, from 1.
    pub(super) number: i16,
    pub(super) name: Box<str>,
    pub(super) ty: SqlType,
}
