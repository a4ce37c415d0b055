//! Which kernel computes which function.
//!
//! Every area of functions has a table of names and kernels. A look-up happens once for each call in a
//! statement, so a linear search is good enough.

use super::call::Kernel;
use super::text;

/// The tables of all areas. A name occurs only once.
const AREAS: &[&[(&str, Kernel)]] = &[
    text::BYTEA,
    text::CASTS,
    text::COMPARISONS,
    text::CONCATENATION,
    text::ENCODING,
    text::FORMAT,
    text::LETTERS,
    text::LIKE,
    text::PADDING,
    text::PARTS,
    text::QUOTING,
];

/// The kernel of the function whose `pg_proc.prosrc` is `source`, if we have one.
///
/// ```
/// assert!(trunkline_sql::functions::kernel("lo_unlink").is_none());
/// ```
pub fn kernel(source: &str) -> Option<Kernel> {
    let found = AREAS.iter().flat_map(|area| area.iter()).find(|(name, _)| *name == source);
    found.map(|(_, kernel)| *kernel)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn no_function_has_two_kernels() {
        let mut seen = BTreeSet::new();
        for (name, _) in AREAS.iter().flat_map(|area| area.iter()) {
            assert!(seen.insert(name), "{name} has two kernels");
        }
    }
}
