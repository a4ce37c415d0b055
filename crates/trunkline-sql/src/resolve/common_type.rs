//! The common type of several expressions: the branches of a `CASE`, the rows of `VALUES`, the columns
//! of a `UNION` (`select_common_type`).
//!
//! The first type wins unless a later one of the same category can take all its values. Literals adapt
//! to the others, and are text if there are no others.

use trunkline_format::Oid;

use super::coercion::{CoercionContext, can_convert};
use crate::catalog::{Namespace, SqlCatalog, oids};
use crate::error::{SqlError, SqlState};

/// The first type of a list that fits neither the ones before it nor the other way round.
pub(super) struct Unmatched {
    /// The type of those before it.
    pub(super) expected: Oid,
    /// Its own type, or the one under it if it is a domain.
    pub(super) found: Oid,
    /// Its place in the list.
    pub(super) at: usize,
}

/// The type to which all of `types` are converted; [`oids::TEXT`] if all are unknown.
pub(super) fn select(catalog: &SqlCatalog, types: &[Oid]) -> Result<Oid, Unmatched> {
    let Some((&first, _)) = types.split_first() else { return Ok(oids::TEXT) };
    // Only if all types are the same can the result be a domain.
    if first != oids::UNKNOWN && types.iter().all(|&oid| oid == first) {
        return Ok(first);
    }
    let mut best = catalog.base_type(first);
    for (at, &next) in types.iter().enumerate() {
        let next = catalog.base_type(next);
        if next == oids::UNKNOWN || next == best {
            continue;
        }
        if best == oids::UNKNOWN {
            best = next;
            continue;
        }
        let category = catalog.category(best);
        if catalog.category(next) != category {
            return Err(Unmatched { expected: best, found: next, at });
        }
        let fits = |from: Oid, to: Oid| can_convert(catalog, from, to, CoercionContext::Implicit);
        if !catalog.is_preferred(category, best) && fits(best, next) && !fits(next, best) {
            best = next;
        }
    }
    Ok(if best == oids::UNKNOWN { oids::TEXT } else { best })
}

/// The common type of some expressions, each of which is given as its type and its offset in the
/// statement. `construct` is the name for messages, such as `CASE` or `UNION`.
///
/// # Errors
/// 42804: the types have no common type. The error is at the first expression that doesn't fit.
pub fn common_type(
    names: &Namespace<'_>,
    construct: &str,
    expressions: &[(Oid, u32)],
) -> Result<Oid, SqlError> {
    let types: Vec<Oid> = expressions.iter().map(|&(oid, _)| oid).collect();
    select(names.catalog(), &types).map_err(|Unmatched { expected, found, at }| {
        let [expected, found] = [expected, found].map(|oid| names.type_name(oid));
        let message = format!("{construct} types {expected} and {found} cannot be matched");
        let error = SqlError::new(SqlState::DATATYPE_MISMATCH, message);
        match expressions.get(at) {
            Some(&(_, offset)) => error.at(offset),
            None => error,
        }
    })
}

/// Whether all of `types` can be converted implicitly to `common` (`verify_common_type`). That isn't
/// so for every common type, because conversions are not transitive.
pub fn is_common_type(catalog: &SqlCatalog, common: Oid, types: &[Oid]) -> bool {
    types.iter().all(|&oid| can_convert(catalog, oid, common, CoercionContext::Implicit))
}

/// The modifier of expressions that are converted to a common type: their own if all agree, else -1
/// (`select_common_typmod`). Each is given as its type and modifier.
pub fn common_modifier(common: Oid, expressions: &[(Oid, i32)]) -> i32 {
    match expressions {
        [(_, first), ..] if expressions.iter().all(|each| each == &(common, *first)) => *first,
        _ => -1,
    }
}
