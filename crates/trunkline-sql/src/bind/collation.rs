//! Which collation an expression has, and which one a function uses.
//!
//! A column has a collation, `COLLATE` sets one, and a function's result has that of its arguments
//! (`parse_collate.c`). If arguments have different collations, one set with `COLLATE` wins over those
//! of columns, and any other wins over the default of the database. Otherwise there is none, and
//! functions that need one fail.

use trunkline_format::Oid;

use super::binder::Binder;
use crate::bound::{Expr, ExprKind, with_stack};
use crate::catalog::oids;
use crate::error::{SqlError, SqlState};

/// Where a collation comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Strength {
    /// There is none.
    None,
    /// From a column or a constant.
    Implicit,
    /// From columns that disagree.
    Conflict,
    /// From `COLLATE`.
    Explicit,
}

impl Binder<'_> {
    /// The collation that a function with these arguments uses, and that its result has.
    pub(super) fn collation_of(&self, arguments: &[Expr], at: u32) -> Result<Oid, SqlError> {
        self.merged(arguments, at).map(|(collation, _)| collation)
    }

    /// A comparison of strings needs a collation.
    ///
    /// # Errors
    /// 42P22: the arguments have different collations.
    pub(super) fn check_determined(
        &self,
        arguments: &[Expr],
        collation: Oid,
    ) -> Result<(), SqlError> {
        let is_collatable = |argument: &Expr| argument.ty.collation != oids::NONE;
        if collation != oids::NONE || !arguments.iter().any(is_collatable) {
            return Ok(());
        }
        let message = "could not determine which collation to use for string comparison";
        let hint = "Use the COLLATE clause to set the collation explicitly.";
        Err(SqlError::new(SqlState::INDETERMINATE_COLLATION, message).with_hint(hint))
    }

    fn merged(&self, arguments: &[Expr], at: u32) -> Result<(Oid, Strength), SqlError> {
        let mut found = (oids::NONE, Strength::None);
        for argument in arguments {
            let (collation, strength) = (argument.ty.collation, strength(argument));
            let next = match collation {
                oids::NONE if strength < Strength::Conflict => continue,
                collation => (collation, strength),
            };
            found = match (found.1, next.1) {
                (Strength::Explicit, Strength::Explicit) if found.0 != next.0 => {
                    let at = argument.location.0.unwrap_or(at);
                    return Err(self.mismatch(found.0, next.0).at(at));
                }
                (one, other) if one < other => next,
                (one, other) if one > other => found,
                _ if found.0 == next.0 || next.0 == oids::DEFAULT_COLLATION => found,
                _ if found.0 == oids::DEFAULT_COLLATION => next,
                _ => (oids::NONE, Strength::Conflict),
            };
        }
        Ok(found)
    }

    fn mismatch(&self, one: Oid, other: Oid) -> SqlError {
        let (one, other) = (self.collation_name(one), self.collation_name(other));
        let message =
            format!("collation mismatch between explicit collations \"{one}\" and \"{other}\"");
        SqlError::new(SqlState::COLLATION_MISMATCH, message)
    }

    fn collation_name(&self, oid: Oid) -> String {
        let row = self.catalog().collation(oid);
        row.map_or_else(|| oid.to_string(), |row| self.catalog().encoding().decode(&row.name))
    }

    /// We must be able to compute an order under this collation.
    ///
    /// # Errors
    /// 0A000: it is neither `C` nor another one that compares bytes.
    pub(super) fn check_collation(&self, collation: Oid, at: u32) -> Result<(), SqlError> {
        if collation == oids::NONE || self.catalog().database().sorts_by_bytes(collation) {
            return Ok(());
        }
        let name = self.collation_name(collation);
        let message = format!("sorting with collation \"{name}\" is not supported by trunkline");
        Err(SqlError::unsupported(message).with_hint("Add COLLATE \"C\" to the expression.").at(at))
    }
}

/// How strong an expression's collation is.
fn strength(expr: &Expr) -> Strength {
    with_stack(|| match &expr.kind {
        ExprKind::Collate(_) => Strength::Explicit,
        ExprKind::Column(_) | ExprKind::Constant(_) | ExprKind::Subquery(_) => {
            match expr.ty.collation {
                oids::NONE => Strength::None,
                _ => Strength::Implicit,
            }
        }
        _ => {
            let mut found = match expr.ty.collation {
                oids::NONE => Strength::None,
                _ => Strength::Implicit,
            };
            expr.children(|child| {
                if child.ty.collation != oids::NONE && strength(child) == Strength::Explicit {
                    found = Strength::Explicit;
                }
            });
            found
        }
    })
}
