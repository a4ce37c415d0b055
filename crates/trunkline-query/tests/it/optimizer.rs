//! The optimizer rules, of which each has been examined: none changes what a query means.

use trunkline_query::rule_names;

/// A new rule of DataFusion must be examined before it is added here: it must not give expressions
/// other types, evaluate calls of functions more often, or assume Arrow's order of values.
#[test]
fn the_rules_are_those_that_were_examined() {
    let (logical, physical) = rule_names();
    assert_eq!(logical, LOGICAL);
    assert_eq!(physical, PHYSICAL);
}

const LOGICAL: [&str; 25] = [
    "rewrite_set_comparison",
    "optimize_unions",
    "unions_to_filter",
    "simplify_expressions",
    "replace_distinct_aggregate",
    "eliminate_join",
    "decorrelate_predicate_subquery",
    "scalar_subquery_to_join",
    "decorrelate_lateral_join",
    "extract_equijoin_predicate",
    "eliminate_filter",
    "eliminate_cross_join",
    "eliminate_limit",
    "propagate_empty_relation",
    "filter_null_join_keys",
    "eliminate_outer_join",
    "push_down_limit",
    "push_down_filter",
    "single_distinct_aggregation_to_group_by",
    "eliminate_group_by_constant",
    "common_sub_expression_eliminate",
    "extract_leaf_expressions",
    "push_down_leaf_projections",
    "optimize_projections",
    "drop_unused_subplans",
];

const PHYSICAL: [&str; 29] = [
    "HideInputConstants",
    "OrderedScans",
    "OutputRequirements",
    "aggregate_statistics",
    "join_selection",
    "IndexJoins",
    "LimitedDistinctAggregation",
    "FilterPushdown",
    "WindowTopN",
    "EnsureRequirements",
    "CombinePartialFinalAggregate",
    "OptimizeAggregateOrder",
    "ProjectionPushdown",
    "OutputRequirements",
    "LimitAggregation",
    "LimitPushPastWindows",
    "HashJoinBuffering",
    "LimitPushdown",
    "TopKRepartition",
    "ProjectionPushdown",
    "PushdownSort",
    "EnsureCooperative",
    "RestoreMergeKeys",
    "FilterPushdown(Post)",
    "SanityCheckPlan",
    "AppendInOrder",
    "Interruptible",
    "AdaptiveJoins",
    "CompactSorts",
];
