//! The best of several functions or operators (`func_match_argtypes`, `func_select_candidate`).
//!
//! The rules apply in order, until one candidate is left:
//!
//! 1. Candidates to which the arguments can't be converted implicitly are dropped.
//! 2. Those with the most arguments of exactly the right type stay.
//! 3. Those with the most exact or preferred types stay.
//! 4. For each literal, a category is chosen: strings if any candidate takes one there, or else the
//!    category that all take. Candidates of other categories are dropped, and those with a type that
//!    isn't preferred if others have a preferred one.
//! 5. If all other arguments have the same type, the literals are assumed to have that type too.

use trunkline_format::Oid;

use super::coercion::CoercionContext;
use super::polymorphic::can_coerce;
use crate::catalog::{Candidate, Category, SqlCatalog, oids};

/// The result of a choice.
pub(super) enum Choice {
    /// No candidate takes these arguments.
    NotFound,
    /// None of several candidates is best.
    Ambiguous,
    /// The best candidate.
    One(Candidate),
}

/// Chooses the best candidate for arguments of these types.
pub(super) fn choose(catalog: &SqlCatalog, types: &[Oid], candidates: Vec<Candidate>) -> Choice {
    let mut candidates = candidates;
    candidates.retain(|candidate| accepts(catalog, types, candidate));
    if candidates.is_empty() {
        return Choice::NotFound;
    }
    let types: Vec<Oid> = types.iter().map(|&oid| catalog.base_type(oid)).collect();
    let is_exact = |oid: Oid, taken: Oid| oid != oids::UNKNOWN && oid == taken;
    keep_best(&types, &mut candidates, is_exact);
    keep_best(&types, &mut candidates, |oid, taken| {
        let is_preferred =
            oid != oids::UNKNOWN && catalog.is_preferred(catalog.category(oid), taken);
        is_exact(oid, taken) || is_preferred
    });
    if types.contains(&oids::UNKNOWN) {
        keep_category(catalog, &types, &mut candidates);
        if candidates.len() > 1 {
            keep_known_type(catalog, &types, &mut candidates);
        }
    }
    match candidates.pop() {
        Some(only) if candidates.is_empty() => Choice::One(only),
        _ => Choice::Ambiguous,
    }
}

fn accepts(catalog: &SqlCatalog, types: &[Oid], candidate: &Candidate) -> bool {
    can_coerce(catalog, types, &candidate.arguments, CoercionContext::Implicit)
}

/// Keeps the candidates with the most arguments that match.
fn keep_best(types: &[Oid], candidates: &mut Vec<Candidate>, matches: impl Fn(Oid, Oid) -> bool) {
    let count = |candidate: &Candidate| {
        let pairs = types.iter().zip(&candidate.arguments);
        pairs.filter(|&(&oid, &taken)| matches(oid, taken)).count()
    };
    if candidates.len() > 1 {
        let best = candidates.iter().map(count).max();
        candidates.retain(|candidate| Some(count(candidate)) == best);
    }
}

/// Keeps the candidates of the chosen categories. If there is an argument for which none can be
/// chosen, or if no candidate would be left, all stay.
fn keep_category(catalog: &SqlCatalog, types: &[Oid], candidates: &mut Vec<Candidate>) {
    let unknown = types.iter().enumerate().filter(|(_, oid)| **oid == oids::UNKNOWN);
    let mut slots = Vec::new();
    for (at, _) in unknown {
        let taken = candidates.iter().filter_map(|candidate| candidate.arguments.get(at).copied());
        let taken: Vec<Oid> = taken.collect();
        let mut categories = taken.iter().map(|&oid| catalog.category(oid));
        let Some(first) = categories.next() else { return };
        let chosen = match first == Category::STRING
            || categories.clone().any(|category| category == Category::STRING)
        {
            true => Category::STRING,
            false if categories.all(|category| category == first) => first,
            false => return,
        };
        let has_preferred = taken.iter().any(|&oid| catalog.is_preferred(chosen, oid));
        slots.push((at, chosen, has_preferred));
    }
    let fits = |candidate: &Candidate| {
        slots.iter().all(|&(at, category, needs_preferred)| {
            candidate.arguments.get(at).is_some_and(|&oid| {
                let is_preferred = catalog.is_preferred(category, oid);
                catalog.category(oid) == category && (is_preferred || !needs_preferred)
            })
        })
    };
    if candidates.iter().any(fits) {
        candidates.retain(fits);
    }
}

/// If all arguments that aren't literals have the same type, keeps the only candidate that takes this
/// type for all arguments. If it isn't the only one, all stay.
fn keep_known_type(catalog: &SqlCatalog, types: &[Oid], candidates: &mut Vec<Candidate>) {
    let mut known = types.iter().copied().filter(|&oid| oid != oids::UNKNOWN);
    let Some(first) = known.next().filter(|&first| known.all(|oid| oid == first)) else { return };
    let assumed = vec![first; types.len()];
    let fits = |candidate: &Candidate| accepts(catalog, &assumed, candidate);
    if candidates.iter().filter(|candidate| fits(candidate)).count() == 1 {
        candidates.retain(fits);
    }
}
