//! Why the indexes of a table aren't used by its scan, for `EXPLAIN (VERBOSE)`.

use super::cost::Cost;
use super::path::{AccessPath, PathKind};

/// What is known about an index.
#[derive(Debug, Clone)]
pub(super) enum Reason {
    /// It can't be used.
    Unusable(String),
    /// Nothing that it can be searched for.
    NoCondition,
    /// What it would cost to use it.
    Cost(Cost),
}

/// The indexes that the best path doesn't use, each with the reason.
pub(super) fn unused(best: &AccessPath, reasons: &[(String, Reason)]) -> Vec<(String, String)> {
    let used = best.index_names();
    let others = reasons.iter().filter(|(name, _)| !used.contains(name));
    let unused = others.map(|(name, reason)| {
        let why = match reason {
            Reason::Unusable(why) => why.clone(),
            Reason::NoCondition => "no condition that it can be searched for".to_owned(),
            Reason::Cost(cost) if cost.disabled > best.cost.disabled => {
                "it is disabled by a setting".to_owned()
            }
            Reason::Cost(cost) => {
                let (own, least) = (cost.total, best.cost.total);
                format!("its estimated cost is {own:.2}, not {least:.2}")
            }
        };
        (name.clone(), why)
    });
    unused.collect()
}

impl AccessPath {
    /// The names of the indexes that it uses.
    fn index_names(&self) -> Vec<String> {
        let searches = match &self.kind {
            PathKind::Sequential => Vec::new(),
            PathKind::Index(search) | PathKind::IndexOnly(search) => vec![&**search],
            PathKind::Bitmap(node) => node.searches(),
        };
        searches.into_iter().map(|search| search.index.name.clone()).collect()
    }
}
