//! The nodes of a physical plan by the names that PostgreSQL has for them.

use std::sync::Arc;

use datafusion::common::stats::Precision;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::limit::{GlobalLimitExec, LocalLimitExec};
use datafusion::physical_plan::metrics::{Metric, MetricValue};
use datafusion::physical_plan::placeholder_row::PlaceholderRowExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::recursive_query::RecursiveQueryExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};
use datafusion::physical_plan::union::UnionExec;
use datafusion::physical_plan::windows::{BoundedWindowAggExec, WindowAggExec};
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, Partitioning};
use trunkline_sql::SqlError;
use trunkline_sql::bound::BoundStatement;
use trunkline_sql::deparse::ExpressionPrinter;

use super::expressions::Expressions;
use super::instrument::{measured, sum};
use super::node::{Detail, PlanNode, Value};
use super::options::ExplainOptions;
use super::shape::{
    is_barrier, is_limit_of_one_row, is_over_scan, is_pass_through, is_result, takes_filter,
    workers,
};
use super::subplans::Subplans;
use crate::access_path::row_width;
use crate::append::AppendExec;
use crate::environment::Environment;
use crate::operator::{OperatorExec, OperatorKind};
use crate::scan::ScanExec;
use crate::subplan::{SubplanExec, SubplanKind};

/// Describes the plan of a statement.
pub(crate) struct Describer<'a> {
    pub(super) expressions: Expressions<'a>,
    pub(super) options: ExplainOptions,
}

/// Nodes that are part of the node below them.
#[derive(Default, Clone)]
struct Chain {
    /// The first of them, which has the rows and the time of all.
    head: Option<Arc<dyn ExecutionPlan>>,
    /// Filters, and the rows that have passed them.
    filters: Vec<String>,
    passed: u64,
    /// Plans of subqueries.
    subplans: Vec<PlanNode>,
    /// The node above is a limit.
    is_limited: bool,
    /// How many partitions are executed in order, as if they were one; 0 if they are not.
    in_order: usize,
}

impl<'a> Describer<'a> {
    pub(crate) fn new(
        statement: &'a BoundStatement,
        environment: &'a Environment,
        plan: &Arc<dyn ExecutionPlan>,
        options: ExplainOptions,
    ) -> Result<Self, SqlError> {
        let session = environment.settings.session.as_ref();
        let session = session.ok_or_else(|| SqlError::internal("EXPLAIN needs a session"))?;
        let settings = &environment.settings;
        let printer = ExpressionPrinter::new(settings, session.names(), &environment.parameters);
        let subplans = Subplans::of(plan, settings.major);
        let expressions =
            Expressions::new(statement, environment, printer, subplans, options.verbose);
        Ok(Self { expressions, options })
    }

    /// Describes a plan.
    ///
    /// # Errors
    /// 0A000: an expression can't be printed.
    pub(crate) fn plan(&self, plan: &Arc<dyn ExecutionPlan>) -> Result<PlanNode, SqlError> {
        self.input(plan)
    }

    /// An input that is not part of the node above.
    pub(super) fn input(&self, plan: &Arc<dyn ExecutionPlan>) -> Result<PlanNode, SqlError> {
        self.node(plan, Chain::default())
    }

    fn node(&self, plan: &Arc<dyn ExecutionPlan>, mut chain: Chain) -> Result<PlanNode, SqlError> {
        chain.head.get_or_insert_with(|| Arc::clone(plan));
        let is_limit = plan.is::<GlobalLimitExec>() || plan.is::<LocalLimitExec>();
        if plan.fetch().is_some() && !is_limit && !chain.is_limited {
            // A node that stops by itself.
            let head = chain.head.clone();
            let mut node = PlanNode::new("Limit");
            self.measure(&mut node, head.as_ref().unwrap_or(plan))?;
            join_loops(&mut node, head.as_ref().unwrap_or(plan), chain.in_order);
            return Ok(node.over(self.node(plan, Chain { is_limited: true, ..chain })?));
        }
        if let Some(below) = self.passed_over(plan, &mut chain)? {
            return self.node(&below, chain);
        }
        let Chain { head, filters, passed, subplans, .. } = chain.clone();
        let mut node = self.visible(plan, &chain)?;
        self.measure(&mut node, head.as_ref().unwrap_or(plan))?;
        join_loops(&mut node, head.as_ref().unwrap_or(plan), chain.in_order);
        if !filters.is_empty() {
            let text = match &*filters {
                [only] => only.clone(),
                all => format!("({})", all.join(" AND ")),
            };
            let is_once = plan.is::<PlaceholderRowExec>();
            node.push(Detail::text(if is_once { "One-Time Filter" } else { "Filter" }, text));
            let own = sum(plan).filter(|_| !is_once);
            if let Some(own) = own.filter(|own| own.loops > 0) {
                let removed = own.rows.saturating_sub(passed) as f64 / own.loops as f64;
                node.push(self.removed("Rows Removed by Filter", removed.round() as u64));
            }
        }
        let (first, last): (Vec<_>, Vec<_>) =
            subplans.into_iter().partition(|subplan| subplan.relationship == Some("InitPlan"));
        node.inputs.splice(0..0, first);
        node.inputs.extend(last);
        Ok(node)
    }

    /// The node below one that PostgreSQL doesn't have, of which it becomes a part.
    fn passed_over(
        &self,
        plan: &Arc<dyn ExecutionPlan>,
        chain: &mut Chain,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>, SqlError> {
        let children = plan.children();
        let [input] = *children else { return Ok(None) };
        let input = Arc::clone(input);
        if plan.is::<AppendExec>() {
            chain.in_order = input.output_partitioning().partition_count();
            return Ok(Some(input));
        }
        let merges = plan.is::<CoalescePartitionsExec>() || plan.is::<SortPreservingMergeExec>();
        let is_plain = (plan.is::<ProjectionExec>() && !is_result(plan))
            || is_pass_through(plan)
            || is_barrier(plan)
            || [
                "CooperativeExec",
                "MaterializedExec",
                "CoalesceBatchesExec",
                "OutputRequirementExec",
                "BufferExec",
            ]
            .contains(&plan.name())
            || (merges && input.output_partitioning().partition_count() == 1);
        if is_plain {
            return Ok(Some(input));
        }
        // Lowering adds a limit below HAVING without groups.
        if !chain.filters.is_empty() && is_limit_of_one_row(plan) {
            return Ok(Some(input));
        }
        if let Some(subplan) = plan.downcast_ref::<SubplanExec>() {
            if matches!(subplan.kind(), SubplanKind::Rows { .. }) {
                return Ok(None);
            }
            chain.subplans.push(self.subplan(subplan)?);
            return Ok(Some(input));
        }
        if let Some(filter) = plan.downcast_ref::<FilterExec>()
            && takes_filter(&input)
        {
            let text = self.filter(filter, &input)?;
            // The first filter of a chain is the last one to be evaluated.
            if chain.filters.is_empty() {
                chain.passed = sum(plan).map_or(0, |measured| measured.rows);
            }
            chain.filters.splice(0..0, text);
            return Ok(Some(input));
        }
        Ok(None)
    }

    /// The plan of a subquery.
    pub(super) fn subplan(&self, subplan: &SubplanExec) -> Result<PlanNode, SqlError> {
        let mut node = self.node(subplan.inner_plan(), Chain::default())?;
        node.subplan = Some(self.expressions.subplans.title(subplan));
        let relationship = if subplan.is_correlated() { "SubPlan" } else { "InitPlan" };
        node.relationship = Some(relationship);
        Ok(node)
    }

    fn filter(
        &self,
        filter: &FilterExec,
        input: &Arc<dyn ExecutionPlan>,
    ) -> Result<Option<String>, SqlError> {
        let columns = |column: &Column| self.expressions.column(input, column.index());
        self.expressions.is_scan.set(is_over_scan(input));
        let text = self.expressions.condition([filter.predicate()], &columns);
        self.expressions.is_scan.set(false);
        text
    }

    /// Adds what was measured and estimated. `head` is the first node that is part of this one.
    pub(super) fn measure(
        &self,
        node: &mut PlanNode,
        head: &Arc<dyn ExecutionPlan>,
    ) -> Result<(), SqlError> {
        node.measured = sum(head);
        if self.options.costs {
            let args = StatisticsArgs::new();
            let statistics = StatisticsContext::new().compute(&**head, &args);
            let rows = statistics.ok().and_then(|statistics| match statistics.num_rows {
                Precision::Exact(rows) | Precision::Inexact(rows) => Some(rows as u64),
                Precision::Absent => None,
            });
            node.estimate = rows.map(|rows| (rows, row_width(&head.schema())));
        }
        if self.options.verbose {
            let mut columns = Vec::new();
            for (index, field) in head.schema().fields().iter().enumerate() {
                let text = self.expressions.column(head, index)?.text;
                // Keys are shown as the columns that they are made of.
                let is_key = !field.name().starts_with(['c', 'r']);
                if !(is_key && columns.contains(&text)) {
                    columns.push(text);
                }
            }
            if !columns.is_empty() {
                node.details.insert(0, Detail::list("Output", columns));
            }
            if node.workers.is_empty() && self.options.analyze {
                node.workers = workers(head);
            }
        }
        Ok(())
    }

    /// A node with its inputs.
    fn visible(&self, plan: &Arc<dyn ExecutionPlan>, chain: &Chain) -> Result<PlanNode, SqlError> {
        if let Some(scan) = plan.downcast_ref::<ScanExec>() {
            let loops = sum(plan).map_or(0, |measured| measured.loops);
            return self.scan(plan, scan, loops, &[]);
        }
        if let Some(node) = self.join(plan)? {
            return Ok(node);
        }
        if let Some(node) = self.leaf(plan)? {
            return Ok(node);
        }
        let children = plan.children();
        if plan.is::<UnionExec>() {
            let is_parallel = chain.in_order == 0;
            let mut node = PlanNode::new("Append");
            if is_parallel {
                node.title = "Parallel Append".to_owned();
            }
            node.kind.push(("Parallel Aware", Value::Bool(is_parallel)));
            for child in children {
                let below = Chain { is_limited: chain.is_limited, ..Chain::default() };
                let mut child = self.node(child, below)?;
                child.relationship = Some("Member");
                node.inputs.push(child);
            }
            return Ok(node);
        }
        // A limit applies to what the tasks of a gather return together.
        let is_limit = plan.is::<GlobalLimitExec>()
            || plan.is::<LocalLimitExec>()
            || (chain.is_limited && plan.is::<CoalescePartitionsExec>());
        let in_order = chain.in_order;
        let mut node = self.unary(plan)?;
        for child in children {
            let below = Chain { is_limited: is_limit, in_order, ..Chain::default() };
            node = node.over(self.node(child, below)?);
        }
        Ok(node)
    }

    /// A node with one input, without it.
    fn unary(&self, plan: &Arc<dyn ExecutionPlan>) -> Result<PlanNode, SqlError> {
        let children = plan.children();
        let Some(&input) = children.first() else {
            return Ok(unknown(plan));
        };
        if plan.is::<GlobalLimitExec>() || plan.is::<LocalLimitExec>() {
            return Ok(PlanNode::new("Limit"));
        }
        if let Some(aggregate) = plan.downcast_ref::<AggregateExec>() {
            return self.expressions.aggregate_node(aggregate);
        }
        if let Some(sort) = plan.downcast_ref::<SortExec>() {
            let mut node = PlanNode::new("Sort");
            let keys = self.expressions.sort_keys(sort.expr(), input)?;
            node.push(Detail::list("Sort Key", keys));
            node.details.extend(self.sort_method(sort, plan));
            return Ok(node);
        }
        if plan.is::<CoalescePartitionsExec>() || plan.is::<SortPreservingMergeExec>() {
            let is_gather = plan.is::<CoalescePartitionsExec>();
            let mut node = PlanNode::new(if is_gather { "Gather" } else { "Gather Merge" });
            let partitions = input.output_partitioning().partition_count();
            node.push(Detail::count("Workers Planned", partitions.saturating_sub(1) as u64));
            if let Some(partitions) = measured(input) {
                let started = partitions.iter().filter(|one| one.loops > 0).count();
                node.push(Detail::count("Workers Launched", started.saturating_sub(1) as u64));
            }
            return Ok(node);
        }
        if let Some(repartition) = plan.downcast_ref::<RepartitionExec>() {
            let mut node = PlanNode::new("Redistribute");
            let how = match repartition.partitioning() {
                Partitioning::Hash(keys, _) => {
                    let keys = keys.iter().map(|key| Ok(self.expressions.shown(key, input)?.text));
                    let keys = keys.collect::<Result<Vec<_>, SqlError>>()?;
                    format!("hash: {}", keys.join(", "))
                }
                _ => "round robin".to_owned(),
            };
            node.title = format!("Redistribute ({how})");
            return Ok(node);
        }
        if plan.is::<RecursiveQueryExec>() {
            return Ok(PlanNode::new("Recursive Union"));
        }
        if plan.is::<ProjectionExec>() {
            return Ok(PlanNode::new("Result"));
        }
        if plan.is::<BoundedWindowAggExec>() || plan.is::<WindowAggExec>() {
            return Ok(PlanNode::new("WindowAgg"));
        }
        if let Some(operator) = plan.downcast_ref::<OperatorExec>() {
            return match OperatorKind::of(operator.operator()) {
                OperatorKind::ProjectSet(set) => {
                    let buffers = Some(set.pages.total());
                    Ok(PlanNode { buffers, ..PlanNode::new("ProjectSet") })
                }
                OperatorKind::Window(window) => self.expressions.window_node(window, plan),
                OperatorKind::Limit => Ok(PlanNode::new("Limit")),
                OperatorKind::Barrier => Ok(PlanNode::new("Result")),
            };
        }
        if let Some(filter) = plan.downcast_ref::<FilterExec>() {
            return self.filter_node(filter, plan, input);
        }
        Ok(unknown(plan))
    }

    /// A filter over a node that has none of its own.
    fn filter_node(
        &self,
        filter: &FilterExec,
        plan: &Arc<dyn ExecutionPlan>,
        input: &Arc<dyn ExecutionPlan>,
    ) -> Result<PlanNode, SqlError> {
        let mut node = PlanNode::new("Result");
        if let Some(text) = self.filter(filter, input)? {
            node.push(Detail::text("Filter", text));
        }
        if let (Some(own), Some(below)) = (sum(plan), sum(input))
            && own.loops > 0
        {
            let removed = below.rows.saturating_sub(own.rows) as f64 / own.loops as f64;
            node.push(self.removed("Rows Removed by Filter", removed.round() as u64));
        }
        Ok(node)
    }

    fn sort_method(&self, sort: &SortExec, plan: &Arc<dyn ExecutionPlan>) -> Option<Detail> {
        let measured = sum(plan)?;
        if measured.loops == 0 {
            return None;
        }
        let metrics = plan.metrics()?;
        let is_output = |metric: &Metric| matches!(metric.value(), MetricValue::OutputBytes(_));
        let output = metrics.sum(is_output).map(|value| value.as_usize());
        Some(sort_method_detail(metrics.spilled_bytes().unwrap_or_default(), sort.fetch(), output))
    }
}

/// The line of a sort that has written this much to disk. `memory` is the size of its rows.
pub(super) fn sort_method_detail(
    spilled: usize,
    fetch: Option<usize>,
    memory: Option<usize>,
) -> Detail {
    match (spilled, fetch) {
        (0, Some(_)) => sort_detail("top-N heapsort", memory, "Memory"),
        (0, None) => sort_detail("quicksort", memory, "Memory"),
        _ => sort_detail("external merge", Some(spilled), "Disk"),
    }
}

/// The line of a sort, with the space that it used, in bytes, if it is known.
fn sort_detail(method: &str, space: Option<usize>, kind: &str) -> Detail {
    let mut members = vec![("Sort Method", Value::Text(method.to_owned()))];
    let mut line = format!("Sort Method: {method}");
    if let Some(bytes) = space {
        let kilobytes = bytes.div_ceil(1024);
        line = format!("{line}  {kind}: {kilobytes}kB");
        members.push(("Sort Space Used", Value::count(kilobytes as u64)));
        members.push(("Sort Space Type", Value::Text(kind.to_owned())));
    }
    Detail { line: Some(line), members }
}

/// Counts the partitions of a node as one execution if they are executed in order.
fn join_loops(node: &mut PlanNode, head: &Arc<dyn ExecutionPlan>, in_order: usize) {
    let partitions = head.output_partitioning().partition_count();
    if let Some(measured) = &mut node.measured
        && partitions > 1
        && partitions == in_order
    {
        measured.loops = measured.loops.div_ceil(in_order as u64);
        node.workers.clear();
    }
}

/// A node without a name in PostgreSQL.
fn unknown(plan: &Arc<dyn ExecutionPlan>) -> PlanNode {
    let name = plan.name().strip_suffix("Exec").unwrap_or(plan.name()).to_owned();
    let kind = vec![("Node Type", Value::Text(name.clone()))];
    PlanNode { title: name, kind, ..PlanNode::default() }
}
