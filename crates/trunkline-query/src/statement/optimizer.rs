//! The rules by which plans are rewritten.
//!
//! DataFusion's analyzer gives expressions types by rules that aren't PostgreSQL's. Ours arrive with
//! their types, so no analyzer rule runs. The optimizer rules are DataFusion's, and a few of ours. A test lists them, so
//! that a new one is examined before it changes the meaning of a query.

use std::sync::Arc;

use datafusion::optimizer::{Optimizer, OptimizerRule};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;

use crate::adaptive_join::AdaptiveJoins;
use crate::append::AppendInOrder;
use crate::compaction::CompactSorts;
use crate::hidden_constants::HideInputConstants;
use crate::index_join::IndexJoins;
use crate::interruption::Interruptible;
use crate::merge_keys::RestoreMergeKeys;
use crate::ordered_scan::OrderedScans;
use crate::scan::Cancellation;
use crate::subplan::DropUnusedSubplans;

/// Rules for logical plans.
pub(super) fn logical_rules() -> Vec<Arc<dyn OptimizerRule + Send + Sync>> {
    let mut rules = Optimizer::new().rules;
    // It leaves out sort keys that depend on others, but doesn't know that they no longer do so behind
    // a join. The binder has left out those that occur twice.
    rules.retain(|rule| rule.name() != "eliminate_duplicated_expr");
    rules.push(Arc::new(DropUnusedSubplans));
    rules
}

/// Rules for physical plans.
///
/// Ours come last, because the others look for the nodes that ours replace. Four come earlier: constants are
/// hidden before all other rules, scans in the order of an index are chosen before sorts and exchanges are
/// arranged, joins are replaced by those through indexes before their inputs are divided among tasks, and the keys of
/// sorts are restored before filters of scans are made from them. `join_memory` is what the hash table of a join may
/// use, in bytes.
pub(super) fn physical_rules(
    cancellation: &Cancellation,
    join_memory: usize,
) -> Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>> {
    let mut rules = PhysicalOptimizer::new().rules;
    rules.insert(0, Arc::new(HideInputConstants));
    rules.insert(1, Arc::new(OrderedScans));
    let joins = rules.iter().position(|rule| rule.name() == "join_selection");
    rules.insert(joins.map_or(rules.len(), |at| at + 1), Arc::new(IndexJoins));
    let filters = rules.iter().position(|rule| rule.name() == "FilterPushdown(Post)");
    rules.insert(filters.unwrap_or(rules.len()), Arc::new(RestoreMergeKeys));
    rules.push(Arc::new(AppendInOrder));
    rules.push(Arc::new(Interruptible::new(cancellation)));
    // After the rule before it, which replaces the conditions of hash joins.
    rules.push(Arc::new(AdaptiveJoins::new(join_memory, cancellation)));
    rules.push(Arc::new(CompactSorts));
    rules
}

/// The names of the rules for logical and for physical plans, in order.
pub fn rule_names() -> (Vec<String>, Vec<String>) {
    let logical = logical_rules().iter().map(|rule| rule.name().to_owned()).collect();
    let physical = physical_rules(&Cancellation::default(), 0)
        .iter()
        .map(|rule| rule.name().to_owned())
        .collect();
    (logical, physical)
}
