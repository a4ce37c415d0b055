//! The nodes of a physical plan by the names that PostgreSQL has for them.

use std::sync::Arc;

use datafusion::common::JoinType;
use datafusion::common::stats::Precision;
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::datasource::source::DataSourceExec;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{PhysicalExpr, PhysicalExprRef};
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::{
    CrossJoinExec, HashJoinExec, NestedLoopJoinExec, SortMergeJoinExec,
};
use datafusion::physical_plan::limit::{GlobalLimitExec, LocalLimitExec};
use datafusion::physical_plan::placeholder_row::PlaceholderRowExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};
use datafusion::physical_plan::union::UnionExec;
use datafusion::physical_plan::windows::{BoundedWindowAggExec, WindowAggExec};
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, Partitioning};
use trunkline_sql::SqlError;
use trunkline_sql::bound::{BoundStatement, ExprKind};
use trunkline_sql::deparse::ExpressionPrinter;

use super::expressions::Expressions;
use super::instrument::{Measured, measured};
use super::node::{Detail, PlanNode, Value, Worker};
use super::options::ExplainOptions;
use super::subplans::Subplans;
use crate::append::AppendExec;
use crate::environment::Environment;
use crate::interruption::InterruptibleExec;
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
    /// Partitions are executed in order.
    is_in_order: bool,
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
            return Ok(node.over(self.node(plan, Chain { is_limited: true, ..chain })?));
        }
        if let Some(below) = self.passed_over(plan, &mut chain)? {
            return self.node(&below, chain);
        }
        let Chain { head, filters, passed, subplans, .. } = chain.clone();
        let mut node = self.visible(plan, &chain)?;
        self.measure(&mut node, head.as_ref().unwrap_or(plan))?;
        if !filters.is_empty() {
            let text = match &*filters {
                [only] => only.clone(),
                all => format!("({})", all.join(" AND ")),
            };
            node.push(Detail::text("Filter", text));
            let own = sum(plan);
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
            chain.is_in_order = true;
            return Ok(Some(input));
        }
        let merges = plan.is::<CoalescePartitionsExec>() || plan.is::<SortPreservingMergeExec>();
        let is_plain = plan.is::<ProjectionExec>()
            || plan.is::<InterruptibleExec>()
            || ["CooperativeExec", "CoalesceBatchesExec", "OutputRequirementExec", "BufferExec"]
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
            let mut node = self.node(subplan.inner_plan(), Chain::default())?;
            node.subplan = Some(self.expressions.subplans.title(subplan));
            let relationship = if subplan.is_correlated() { "SubPlan" } else { "InitPlan" };
            node.relationship = Some(relationship);
            chain.subplans.push(node);
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
    fn measure(&self, node: &mut PlanNode, head: &Arc<dyn ExecutionPlan>) -> Result<(), SqlError> {
        node.measured = sum(head);
        if self.options.costs {
            let args = StatisticsArgs::new();
            let statistics = StatisticsContext::new().compute(&**head, &args);
            let rows = statistics.ok().and_then(|statistics| match statistics.num_rows {
                Precision::Exact(rows) | Precision::Inexact(rows) => Some(rows as u64),
                Precision::Absent => None,
            });
            node.estimate = rows.map(|rows| (rows, self.width(head)));
        }
        if self.options.verbose {
            let count = head.schema().fields().len();
            let columns = (0..count).map(|index| Ok(self.expressions.column(head, index)?.text));
            let columns = columns.collect::<Result<Vec<_>, SqlError>>()?;
            if !columns.is_empty() {
                node.details.insert(0, Detail::list("Output", columns));
            }
            if node.workers.is_empty() && self.options.analyze {
                node.workers = workers(head);
            }
        }
        Ok(())
    }

    /// The estimated bytes of a row. A value of variable length counts 32, as PostgreSQL estimates
    /// without statistics.
    fn width(&self, plan: &Arc<dyn ExecutionPlan>) -> u64 {
        let schema = plan.schema();
        let widths = schema.fields().iter().map(|field| match field.data_type() {
            arrow_schema::DataType::Boolean => 1,
            arrow_schema::DataType::FixedSizeBinary(width) => (*width).max(0) as u64,
            ty => ty.primitive_width().map_or(32, |width| width as u64),
        });
        widths.sum()
    }

    /// A node with its inputs.
    fn visible(&self, plan: &Arc<dyn ExecutionPlan>, chain: &Chain) -> Result<PlanNode, SqlError> {
        if let Some(scan) = plan.downcast_ref::<ScanExec>() {
            let loops = sum(plan).map_or(0, |measured| measured.loops);
            return self.scan(plan, scan, loops);
        }
        if let Some(node) = self.join(plan)? {
            return Ok(node);
        }
        if let Some(node) = self.leaf(plan)? {
            return Ok(node);
        }
        let children = plan.children();
        if plan.is::<UnionExec>() {
            let is_parallel = !chain.is_in_order;
            let mut node = PlanNode::new("Append");
            if is_parallel {
                node.title = "Parallel Append".to_owned();
            }
            node.kind.push(("Parallel Aware", Value::Bool(is_parallel)));
            for child in children {
                let mut child = self.node(child, Chain::default())?;
                child.relationship = Some("Member");
                node.inputs.push(child);
            }
            return Ok(node);
        }
        let is_limit = plan.is::<GlobalLimitExec>() || plan.is::<LocalLimitExec>();
        let mut node = self.unary(plan)?;
        for child in children {
            let below = Chain { is_limited: is_limit, ..Chain::default() };
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
        if plan.is::<BoundedWindowAggExec>() || plan.is::<WindowAggExec>() {
            return Ok(PlanNode::new("WindowAgg"));
        }
        if let Some(operator) = plan.downcast_ref::<OperatorExec>() {
            return match OperatorKind::of(operator.operator()) {
                OperatorKind::ProjectSet(_) => Ok(PlanNode::new("ProjectSet")),
                OperatorKind::Window(window) => self.expressions.window_node(window, plan),
                OperatorKind::Limit => Ok(PlanNode::new("Limit")),
            };
        }
        if let Some(filter) = plan.downcast_ref::<FilterExec>() {
            return self.subquery_scan(filter, plan, input);
        }
        Ok(unknown(plan))
    }

    /// A filter over a node that has none of its own.
    fn subquery_scan(
        &self,
        filter: &FilterExec,
        plan: &Arc<dyn ExecutionPlan>,
        input: &Arc<dyn ExecutionPlan>,
    ) -> Result<PlanNode, SqlError> {
        let names = &self.expressions.names;
        let schema = input.schema();
        let mut ids = schema.fields().iter().filter_map(|field| names.column_of(field.name()));
        let alias = ids.find_map(|id| names.name(id).0);
        let mut node = PlanNode::new(if alias.is_some() { "Subquery Scan" } else { "Result" });
        if let Some(alias) = alias {
            node.title = format!("Subquery Scan on {}", self.expressions.printer.quoted(alias));
            node.kind.push(("Alias", Value::Text(alias.to_owned())));
        }
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
        let of = |name: &str| metrics.sum_by_name(name).map(|value| value.as_usize());
        let spilled = of("spilled_bytes").filter(|&bytes| bytes > 0);
        let (method, space, kind) = match (spilled, sort.fetch()) {
            (Some(bytes), _) => ("external merge", Some(bytes), "Disk"),
            (None, Some(_)) => ("top-N heapsort", of("output_bytes"), "Memory"),
            (None, None) => ("quicksort", of("output_bytes"), "Memory"),
        };
        let mut members = vec![("Sort Method", Value::Text(method.to_owned()))];
        let mut line = format!("Sort Method: {method}");
        if let Some(bytes) = space {
            let kilobytes = bytes.div_ceil(1024);
            line = format!("{line}  {kind}: {kilobytes}kB");
            members.push(("Sort Space Used", Value::count(kilobytes as u64)));
            members.push(("Sort Space Type", Value::Text(kind.to_owned())));
        }
        Some(Detail { line: Some(line), members })
    }

    /// A node without inputs that reads no table.
    fn leaf(&self, plan: &Arc<dyn ExecutionPlan>) -> Result<Option<PlanNode>, SqlError> {
        if plan.is::<PlaceholderRowExec>() {
            return Ok(Some(PlanNode::new("Result")));
        }
        if plan.is::<EmptyExec>() {
            let mut node = PlanNode::new("Result");
            node.push(Detail::text("One-Time Filter", "false"));
            return Ok(Some(node));
        }
        if let Some(source) = plan.downcast_ref::<DataSourceExec>() {
            let source = source.data_source().downcast_ref::<MemorySourceConfig>();
            let batches = source.into_iter().flat_map(|source| source.partitions()).flatten();
            if batches.map(|batch| batch.num_rows()).sum::<usize>() == 1 {
                return Ok(Some(PlanNode::new("Result")));
            }
            let mut node = PlanNode::new("Values Scan");
            node.title = "Values Scan on \"*VALUES*\"".to_owned();
            node.kind.push(("Alias", Value::Text("*VALUES*".to_owned())));
            return Ok(Some(node));
        }
        if let Some(operator) = plan.downcast_ref::<OperatorExec>()
            && let OperatorKind::ProjectSet(set) = OperatorKind::of(operator.operator())
            && let [input] = *plan.children()
            && is_single_row(input)
            && let Some(call) = set.calls.first()
            && let Some((column, _)) = call.columns.first()
            && let Some(id) = self.expressions.names.column_of(column)
            && let Some(alias) = self.expressions.names.function(id)
        {
            let mut node = PlanNode::new("Function Scan");
            let calls = set.calls.iter().map(|call| self.expressions.bound(&call.call, plan));
            let calls = calls.collect::<Result<Vec<_>, _>>()?;
            let name = match (&call.call.kind, set.calls.len()) {
                (ExprKind::Call { function, .. }, 1) => {
                    Some(self.expressions.printer.function(*function)?)
                }
                _ => None,
            };
            let quoted = self.expressions.printer.quoted(alias);
            let on = match &name {
                Some(name) if *name != quoted => format!("{name} {quoted}"),
                _ => quoted,
            };
            let on = match &name {
                Some(_) if self.options.verbose => format!("pg_catalog.{on}"),
                _ => on,
            };
            node.title = format!("Function Scan on {on}");
            if let Some(name) = name {
                node.kind.push(("Function Name", Value::Text(name)));
            }
            node.kind.push(("Alias", Value::Text(alias.to_owned())));
            if self.options.verbose {
                node.push(Detail::text("Function Call", calls.join(", ")));
            }
            return Ok(Some(node));
        }
        Ok(None)
    }

    fn join(&self, plan: &Arc<dyn ExecutionPlan>) -> Result<Option<PlanNode>, SqlError> {
        let input = |plan: &Arc<dyn ExecutionPlan>| self.node(plan, Chain::default());
        let inner = |mut node: PlanNode| {
            node.relationship = Some("Inner");
            node
        };
        if let Some(join) = plan.downcast_ref::<HashJoinExec>() {
            let (left, right) = (join.left(), join.right());
            // PostgreSQL hashes the second input.
            let mut node = join_node("Hash Join", "Hash ", swapped(*join.join_type()));
            let on = self.conditions(join.on(), (left, right), true)?;
            node.push(Detail::text("Hash Cond", on));
            self.push_filter(&mut node, join.filter(), left, right)?;
            let mut hash = PlanNode::new("Hash");
            self.measure(&mut hash, left)?;
            hash.workers.clear();
            if let Some(metrics) = plan.metrics()
                && self.options.analyze
                && let Some(bytes) = metrics.sum_by_name("build_mem_used")
            {
                let kilobytes = bytes.as_usize().div_ceil(1024) as u64;
                hash.push(Detail {
                    line: Some(format!("Batches: 1  Memory Usage: {kilobytes}kB")),
                    members: vec![
                        ("Hash Batches", Value::count(1)),
                        ("Peak Memory Usage", Value::count(kilobytes)),
                    ],
                });
            }
            let hash = inner(hash.over(input(left)?));
            return Ok(Some(node.over(input(right)?).over(hash)));
        }
        if let Some(join) = plan.downcast_ref::<SortMergeJoinExec>() {
            let (left, right) = (join.left(), join.right());
            let mut node = join_node("Merge Join", "Merge ", join.join_type());
            node.push(Detail::text(
                "Merge Cond",
                self.conditions(join.on(), (left, right), false)?,
            ));
            self.push_filter(&mut node, join.filter().as_ref(), left, right)?;
            return Ok(Some(node.over(input(left)?).over(inner(input(right)?))));
        }
        if let Some(join) = plan.downcast_ref::<NestedLoopJoinExec>() {
            let (left, right) = (join.left(), join.right());
            // The left input is kept, and the right one is read once.
            let mut node = join_node("Nested Loop", "Nested Loop ", swapped(*join.join_type()));
            self.push_filter(&mut node, join.filter(), left, right)?;
            return Ok(Some(node.over(input(right)?).over(inner(input(left)?))));
        }
        if let Some(join) = plan.downcast_ref::<CrossJoinExec>() {
            let node = join_node("Nested Loop", "Nested Loop ", JoinType::Inner);
            return Ok(Some(node.over(input(join.right())?).over(inner(input(join.left())?))));
        }
        if let Some(subplan) = plan.downcast_ref::<SubplanExec>()
            && let SubplanKind::Rows { outer } = subplan.kind()
            && let [left] = *plan.children()
        {
            let kind = if outer { JoinType::Left } else { JoinType::Inner };
            let node = join_node("Nested Loop", "Nested Loop ", kind);
            let right = inner(input(subplan.inner_plan())?);
            return Ok(Some(node.over(input(left)?).over(right)));
        }
        Ok(None)
    }

    fn push_filter(
        &self,
        node: &mut PlanNode,
        filter: Option<&datafusion::physical_plan::joins::utils::JoinFilter>,
        left: &Arc<dyn ExecutionPlan>,
        right: &Arc<dyn ExecutionPlan>,
    ) -> Result<(), SqlError> {
        if let Some(filter) = filter
            && let Some(text) = self.expressions.join_filter(filter, left, right)?
        {
            node.push(Detail::text("Join Filter", text));
        }
        Ok(())
    }

    /// The equalities of a join. With `right_first`, the columns of the right input come first.
    fn conditions(
        &self,
        on: &[(PhysicalExprRef, PhysicalExprRef)],
        (left, right): (&Arc<dyn ExecutionPlan>, &Arc<dyn ExecutionPlan>),
        right_first: bool,
    ) -> Result<String, SqlError> {
        let expressions = &self.expressions;
        let side = |expr: &Arc<dyn PhysicalExpr>, plan: &Arc<dyn ExecutionPlan>| {
            let columns = |column: &Column| expressions.column(plan, column.index());
            expressions.operand(expr, None, &columns)
        };
        let mut parts = Vec::with_capacity(on.len());
        for (a, b) in on {
            let (a, b) = (side(a, left)?, side(b, right)?);
            parts.push(if right_first { format!("({b} = {a})") } else { format!("({a} = {b})") });
        }
        Ok(match &*parts {
            [only] => only.clone(),
            all => format!("({})", all.join(" AND ")),
        })
    }
}

/// A node without a name in PostgreSQL.
fn unknown(plan: &Arc<dyn ExecutionPlan>) -> PlanNode {
    let name = plan.name().strip_suffix("Exec").unwrap_or(plan.name()).to_owned();
    let kind = vec![("Node Type", Value::Text(name.clone()))];
    PlanNode { title: name, kind, ..PlanNode::default() }
}

/// What all partitions of a node have done; `None` if the plan is not instrumented.
fn sum(plan: &Arc<dyn ExecutionPlan>) -> Option<Measured> {
    let partitions = measured(plan)?;
    let mut sum = Measured::default();
    partitions.iter().for_each(|partition| sum.add(partition));
    Some(sum)
}

/// The workers of a node that several tasks have executed. The first task is the leader.
pub(super) fn workers(plan: &Arc<dyn ExecutionPlan>) -> Vec<Worker> {
    let partitions = measured(plan).unwrap_or_default();
    let workers = partitions.into_iter().skip(1).enumerate();
    let workers = workers.filter(|(_, measured)| measured.loops > 0);
    workers.map(|(number, measured)| Worker { number, measured, details: Vec::new() }).collect()
}

/// Whether a node computes columns, so that a node above it doesn't only pass them on.
pub(super) fn computes(plan: &Arc<dyn ExecutionPlan>) -> bool {
    match (plan.is::<ProjectionExec>(), plan.children().first(), plan.is::<SortExec>()) {
        (true, ..) => true,
        (false, Some(input), false) => computes(input),
        _ => false,
    }
}

/// Whether a node shows a filter of its own.
fn takes_filter(plan: &Arc<dyn ExecutionPlan>) -> bool {
    if let Some(scan) = plan.downcast_ref::<ScanExec>() {
        return scan.filters().is_empty() && scan.fetch().is_none();
    }
    if let Some(operator) = plan.downcast_ref::<OperatorExec>() {
        return matches!(OperatorKind::of(operator.operator()), OperatorKind::ProjectSet(_))
            && plan.children().first().is_some_and(|input| is_single_row(input));
    }
    match (passes_on(plan), plan.children().first()) {
        (true, Some(input)) => takes_filter(input),
        _ => {
            plan.is::<AggregateExec>()
                || plan.is::<HashJoinExec>()
                || plan.is::<NestedLoopJoinExec>()
                || plan.is::<SortMergeJoinExec>()
                || plan.is::<CrossJoinExec>()
                || plan.is::<DataSourceExec>()
        }
    }
}

/// Whether the node that shows a filter is the scan of a table.
fn is_over_scan(plan: &Arc<dyn ExecutionPlan>) -> bool {
    match *plan.children() {
        [] => plan.is::<ScanExec>(),
        [input] if passes_on(plan) => is_over_scan(input),
        _ => false,
    }
}

/// Whether a filter above a node can be shown below it.
fn passes_on(plan: &Arc<dyn ExecutionPlan>) -> bool {
    plan.is::<ProjectionExec>()
        || plan.is::<InterruptibleExec>()
        || plan.is::<SubplanExec>()
        || plan.name() == "CooperativeExec"
        || is_limit_of_one_row(plan)
}

/// Whether a node limits one row to one row.
fn is_limit_of_one_row(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let limit = plan.downcast_ref::<GlobalLimitExec>();
    limit.is_some_and(|limit| {
        let aggregate = limit.input().downcast_ref::<AggregateExec>();
        (limit.skip(), limit.fetch()) == (0, Some(1))
            && aggregate.is_some_and(|aggregate| aggregate.group_expr().is_empty())
    })
}

/// Whether a plan is one row without columns.
fn is_single_row(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let children = plan.children();
    match *children {
        [] => plan.is::<PlaceholderRowExec>(),
        [input] if plan.is::<ProjectionExec>() || plan.name() == "CooperativeExec" => {
            is_single_row(input)
        }
        _ => false,
    }
}

/// A join's node. `prefix` comes before the kind: `Hash ` for `Hash Left Join`.
fn join_node(node_type: &'static str, prefix: &str, kind: JoinType) -> PlanNode {
    let name = match kind {
        JoinType::Inner => "Inner",
        JoinType::Left => "Left",
        JoinType::Right => "Right",
        JoinType::Full => "Full",
        JoinType::LeftSemi => "Semi",
        JoinType::LeftAnti => "Anti",
        JoinType::RightSemi => "Right Semi",
        JoinType::RightAnti => "Right Anti",
        JoinType::LeftMark | JoinType::RightMark => "Mark",
    };
    let mut node = PlanNode::new(node_type);
    if kind != JoinType::Inner {
        node.title = format!("{prefix}{name} Join");
    }
    node.kind.push(("Join Type", Value::Text(name.to_owned())));
    node
}

/// The kind of a join whose inputs are shown in the other order.
fn swapped(kind: JoinType) -> JoinType {
    kind.swap()
}
