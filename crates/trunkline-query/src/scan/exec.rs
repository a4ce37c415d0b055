//! The physical plan of a scan.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use arrow_array::cast::AsArray;
use arrow_array::{Array, BooleanArray, RecordBatch};
use arrow_schema::SchemaRef;
use datafusion::arrow::compute::filter_record_batch;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, Statistics, exec_err};
use datafusion::execution::{RecordBatchStream, SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, LexOrdering, PhysicalExpr};
use datafusion::physical_plan::coop::cooperative;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType, SchedulingType};
use datafusion::physical_plan::filter_pushdown::{
    ChildPushdownResult, FilterPushdownPhase, FilterPushdownPropagation,
};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties,
    ReplaceChildrenOptions, apply_expression_roots,
};
use futures::Stream;
use trunkline_aio::facade::Mutex;
use trunkline_engine::read_stream::ParallelRange;

use super::access::TableAccess;
use super::columns::ScanColumns;
use super::counters::{ScanCounters, ScanCounts};
use super::entry_reader::EntryReader;
use super::partition_reader::PartitionReader;
use super::path_source::SearchBasis;
use crate::access_path::{AccessPath, OrderedChoice, PathKind};
use crate::error::to_datafusion;

/// A scan of a table, sequential or through indexes.
#[derive(Debug, Clone)]
pub(crate) struct ScanExec {
    access: TableAccess,
    path: Arc<AccessPath>,
    /// What else could be chosen if the rows will be sorted.
    ordered: Option<Arc<OrderedChoice>>,
    columns: ScanColumns,
    /// The fields of the decoded columns, of which the first ones are the result.
    decoded: SchemaRef,
    schema: SchemaRef,
    filters: Vec<Arc<dyn PhysicalExpr>>,
    /// Filters over the result that joins and sorts set while they run. They only save work, so it
    /// doesn't matter if they are evaluated too late.
    dynamic_filters: Vec<Arc<dyn PhysicalExpr>>,
    /// The most rows that are wanted.
    fetch: Option<usize>,
    /// What is left of the table. Partitions take parts of it while they run, so every execution
    /// needs a new one.
    parts: Arc<Mutex<Option<ParallelRange>>>,
    /// What searches for the keys of other rows are made from.
    basis: Option<Arc<SearchBasis>>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
    counters: ScanCounters,
}

impl ScanExec {
    pub(super) fn new(
        (access, path): (TableAccess, AccessPath),
        columns: ScanColumns,
        decoded: SchemaRef,
        results: usize,
        filters: Vec<Arc<dyn PhysicalExpr>>,
        fetch: Option<usize>,
        partitions: usize,
    ) -> Result<Self> {
        let schema = Arc::new(decoded.project(&(0..results).collect::<Vec<_>>())?);
        let properties = PlanProperties::new(
            EquivalenceProperties::new(Arc::clone(&schema)),
            Partitioning::UnknownPartitioning(partitions),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        let properties = properties.with_scheduling_type(SchedulingType::Cooperative);
        Ok(Self {
            access,
            path: Arc::new(path),
            ordered: None,
            columns,
            decoded,
            schema,
            filters,
            dynamic_filters: Vec::new(),
            fetch,
            parts: Arc::default(),
            basis: None,
            properties: Arc::new(properties),
            metrics: ExecutionPlanMetricsSet::new(),
            counters: ScanCounters::default(),
        })
    }

    /// The same scan with what else could be chosen if its rows will be sorted.
    pub(super) fn with_ordered(self, ordered: Option<OrderedChoice>) -> Self {
        Self { ordered: ordered.map(Arc::new), ..self }
    }

    /// What else could be chosen if the rows will be sorted.
    pub(crate) fn ordered(&self) -> Option<&OrderedChoice> {
        self.ordered.as_deref()
    }

    /// The same scan with another path. Its rows come in this order, if one is given.
    pub(crate) fn with_path(&self, path: AccessPath, order: Option<LexOrdering>) -> Self {
        let partitions = match path.kind {
            PathKind::Sequential => self.partitions(),
            _ => 1,
        };
        let properties = PlanProperties::clone(&self.properties)
            .with_partitioning(Partitioning::UnknownPartitioning(partitions))
            .with_eq_properties(EquivalenceProperties::new_with_orderings(
                Arc::clone(&self.schema),
                order,
            ));
        let (metrics, counters) = (ExecutionPlanMetricsSet::new(), ScanCounters::default());
        let (path, properties) = (Arc::new(path), Arc::new(properties));
        Self { path, counters, metrics, properties, parts: Arc::default(), ..self.clone() }
    }

    /// The same, with what searches for the keys of other rows are made from.
    pub(super) fn searched_by(self, basis: SearchBasis) -> Self {
        Self { basis: Some(Arc::new(basis)), ..self }
    }

    /// What searches for the keys of other rows are made from.
    pub(super) fn basis(&self) -> Option<&SearchBasis> {
        self.basis.as_deref()
    }

    /// The decoded columns of the table, those of the result first.
    pub(super) fn columns(&self) -> &ScanColumns {
        &self.columns
    }

    /// How the table is read.
    pub(crate) fn access(&self) -> &TableAccess {
        &self.access
    }

    /// How the scan gets to its rows.
    pub(crate) fn path(&self) -> &AccessPath {
        &self.path
    }

    /// The filters of the statement, over the decoded columns.
    pub(crate) fn filters(&self) -> &[Arc<dyn PhysicalExpr>] {
        &self.filters
    }

    /// The columns that are decoded. Those of the result come first.
    pub(crate) fn decoded(&self) -> &SchemaRef {
        &self.decoded
    }

    /// What executions have counted.
    pub(crate) fn counters(&self) -> &ScanCounters {
        &self.counters
    }

    /// The filters that the conditions on indexes cover, and the others.
    pub(super) fn divided_filters(&self) -> [Vec<Arc<dyn PhysicalExpr>>; 2] {
        let mut divided = [Vec::new(), Vec::new()];
        for (number, filter) in self.filters.iter().enumerate() {
            let [covered, others] = &mut divided;
            let part = if self.path.covered.contains(&number) { covered } else { others };
            part.push(Arc::clone(filter));
        }
        divided
    }

    fn partitions(&self) -> usize {
        self.properties.partitioning.partition_count()
    }
}

impl DisplayAs for ScanExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parallel = if self.partitions() > 1 { "Parallel " } else { "" };
        match &self.path.kind {
            PathKind::Sequential => write!(f, "{parallel}Seq Scan on {:?}", self.access)?,
            PathKind::Index(search) => {
                let backward = if search.is_backward() { " Backward" } else { "" };
                let index = &search.index.name;
                write!(f, "Index Scan{backward} using {index} on {:?}", self.access)?;
            }
            PathKind::IndexOnly(search) => {
                write!(f, "Index Only Scan using {} on {:?}", search.index.name, self.access)?;
            }
            PathKind::Bitmap(_) => write!(f, "Bitmap Heap Scan on {:?}", self.access)?,
        }
        let filters = self.filters.iter().chain(&self.dynamic_filters);
        for filter in filters {
            write!(f, ", filter={filter}")?;
        }
        if let Some(fetch) = self.fetch {
            write!(f, ", fetch={fetch}")?;
        }
        Ok(())
    }
}

impl ExecutionPlan for ScanExec {
    fn name(&self) -> &'static str {
        "ScanExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        apply_expression_roots(self.filters.iter().chain(&self.dynamic_filters), f)
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        _options: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if children.is_empty() { Ok(self) } else { exec_err!("a scan has no inputs") }
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if children.is_empty() { Ok(self) } else { exec_err!("a scan has no inputs") }
    }

    /// Another execution reads the whole table again.
    fn reset_state(self: Arc<Self>) -> Result<Arc<dyn ExecutionPlan>> {
        let metrics = ExecutionPlanMetricsSet::new();
        Ok(Arc::new(Self { parts: Arc::default(), metrics, ..(*self).clone() }))
    }

    fn execute(
        &self,
        partition: usize,
        _context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let mut parts = self.parts.lock();
        let parts = parts.get_or_insert_with(|| ParallelRange::new(self.access.blocks())).clone();
        let unordered = self.partitions() > 1;
        let columns = self.columns.clone();
        let access = (self.access.clone(), Arc::clone(&self.path));
        let decoded = Arc::clone(&self.decoded);
        let counters = (self.counters.clone(), partition);
        let reader = match &self.path.kind {
            PathKind::IndexOnly(search) => Reader::Entries(Box::new(EntryReader::new(
                (self.access.clone(), Arc::clone(search)),
                columns,
                decoded,
                counters,
            ))),
            _ => Reader::Pages(Box::new(PartitionReader::new(
                access, parts, unordered, columns, decoded, counters,
            ))),
        };
        Ok(Box::pin(cooperative(ScanStream {
            reader,
            filters: self.divided_filters(),
            dynamic_filters: self.dynamic_filters.clone(),
            left: self.fetch,
            schema: Arc::clone(&self.schema),
            metrics: BaselineMetrics::new(&self.metrics, partition),
            counters: self.counters.clone(),
            partition,
            removed: ScanCounts::default(),
        })))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn statistics_from_inputs(
        &self,
        _inputs: &[Arc<Statistics>],
        _args: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        Ok(Arc::new(self.access.statistics(&self.schema, self.path.rows)))
    }

    fn with_fetch(&self, fetch: Option<usize>) -> Option<Arc<dyn ExecutionPlan>> {
        Some(Arc::new(Self { fetch, ..self.clone() }))
    }

    fn fetch(&self) -> Option<usize> {
        self.fetch
    }

    /// Takes the filters that joins and sorts set while they run. They are reported as not handled,
    /// because the scan may read them too late.
    fn handle_child_pushdown_result(
        &self,
        phase: FilterPushdownPhase,
        result: ChildPushdownResult,
        _config: &ConfigOptions,
    ) -> Result<FilterPushdownPropagation<Arc<dyn ExecutionPlan>>> {
        let filters = result.parent_filters.iter().map(|filter| Arc::clone(&filter.filter));
        let filters: Vec<Arc<dyn PhysicalExpr>> = filters.collect();
        let propagation = FilterPushdownPropagation::all_unsupported(result);
        // With a limit, the first rows of the table are wanted, not the first that pass the filter.
        let is_early = phase != FilterPushdownPhase::Post || self.fetch.is_some();
        if is_early || filters.is_empty() {
            return Ok(propagation);
        }
        let scan = Self { dynamic_filters: filters, ..self.clone() };
        Ok(propagation.with_updated_node(Arc::new(scan)))
    }
}

/// Where batches come from.
enum Reader {
    Pages(Box<PartitionReader>),
    Entries(Box<EntryReader>),
}

/// The batches of one partition.
struct ScanStream {
    reader: Reader,
    /// Those that the conditions on indexes cover, and the others.
    filters: [Vec<Arc<dyn PhysicalExpr>>; 2],
    dynamic_filters: Vec<Arc<dyn PhysicalExpr>>,
    /// The rows that are still wanted.
    left: Option<usize>,
    schema: SchemaRef,
    metrics: BaselineMetrics,
    counters: ScanCounters,
    partition: usize,
    /// Rows that filters have removed.
    removed: ScanCounts,
}

impl Drop for ScanStream {
    fn drop(&mut self) {
        self.counters.add(self.partition, &self.removed);
    }
}

impl ScanStream {
    /// The rows of a decoded batch that pass the filters, with the columns of the result.
    fn result(&mut self, batch: RecordBatch) -> Result<RecordBatch> {
        let timer = self.metrics.elapsed_compute().timer();
        let read = batch.num_rows();
        let [covered, others] = &self.filters;
        let mut batch = filtered(batch, covered)?;
        let rechecked = batch.num_rows();
        batch = filtered(batch, others)?;
        let passed = batch.num_rows();
        let columns: Vec<usize> = (0..self.schema.fields().len()).collect();
        batch = filtered(batch.project(&columns)?, &self.dynamic_filters)?;
        self.removed.removed_by_recheck += (read - rechecked) as u64;
        self.removed.removed += (rechecked - passed) as u64;
        self.removed.removed_late += (passed - batch.num_rows()) as u64;
        timer.done();
        if let Some(left) = &mut self.left {
            if batch.num_rows() > *left {
                batch = batch.slice(0, *left);
            }
            *left -= batch.num_rows();
        }
        Ok(batch)
    }
}

/// The rows for which all filters are true. A filter sees only rows that have passed those before it.
pub(super) fn filtered<'f>(
    mut batch: RecordBatch,
    filters: impl IntoIterator<Item = &'f Arc<dyn PhysicalExpr>>,
) -> Result<RecordBatch> {
    for filter in filters {
        let rows = batch.num_rows();
        if rows == 0 {
            break;
        }
        let passed = filter.evaluate(&batch)?.into_array(rows)?;
        let passed: &BooleanArray = match passed.as_boolean_opt() {
            Some(passed) => passed,
            None => return exec_err!("a filter returned {}", passed.data_type()),
        };
        if passed.true_count() < rows {
            batch = filter_record_batch(&batch, passed)?;
        }
    }
    Ok(batch)
}

impl Stream for ScanStream {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if self.left == Some(0) {
                return Poll::Ready(None);
            }
            let wanted = self.left;
            let batch = match &mut self.reader {
                Reader::Pages(reader) => reader.poll_batch(context, wanted),
                Reader::Entries(reader) => reader.poll_batch(context, wanted),
            };
            let Some(batch) = ready!(batch) else { return Poll::Ready(None) };
            let batch = batch.map_err(to_datafusion).and_then(|batch| self.result(batch));
            match batch {
                Ok(batch) if batch.num_rows() == 0 => {}
                other => return self.metrics.record_poll(Poll::Ready(Some(other))),
            }
        }
    }
}

impl RecordBatchStream for ScanStream {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}
