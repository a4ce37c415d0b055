//! What the body of a function, or the constraint of a domain, refers to while it is bound.

use trunkline_format::Oid;

use crate::bound::Expr;

/// The function whose body is being bound.
#[derive(Debug)]
pub(super) struct FunctionFrame {
    /// 0 for the constraint of a domain, whose value is the only argument.
    pub(super) function: Oid,
    /// What `$1` and so on stand for.
    pub(super) arguments: Vec<Expr>,
    /// The names of the arguments; an argument may have none.
    pub(super) names: Vec<String>,
}
