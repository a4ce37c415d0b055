//! What the scan of a table shows: its name, its filter, and what it has read.

use std::sync::Arc;

use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use trunkline_engine::pool::Tally;
use trunkline_engine::read_stream::StreamStats;
use trunkline_sql::SqlError;

use super::alternatives::{alternatives, found_pages};
use super::describe::Describer;
use super::node::{Detail, PlanNode, Value, millis};
use crate::access_path::PathKind;
use crate::scan::{ScanCounts, ScanExec};

impl Describer<'_> {
    /// The node of a scan. `loops` says how often it was executed, and `keys` which columns of its index it
    /// is searched for, with the values of outer rows.
    pub(super) fn scan(
        &self,
        plan: &Arc<dyn ExecutionPlan>,
        scan: &ScanExec,
        loops: u64,
        keys: &[(usize, String)],
    ) -> Result<PlanNode, SqlError> {
        let expressions = &self.expressions;
        let name = scan.access().name();
        let parallel = plan.output_partitioning().partition_count() > 1;
        let ids = scan.decoded().fields().iter();
        let mut ids = ids.filter_map(|field| expressions.names.column_of(field.name()));
        // The columns' relation may have another name than its alias, if there are two of that.
        let alias = match ids.next() {
            Some(id) if !name.is_child => expressions.names.name(id).0.unwrap_or(&name.alias),
            _ => &name.alias,
        };
        let quoted = |name: &str| expressions.printer.quoted(name);
        let mut relation = quoted(&name.table);
        if self.options.verbose {
            relation = format!("{}.{relation}", quoted(&name.schema));
        }
        if alias != name.table {
            relation = format!("{relation} {}", quoted(alias));
        }
        let path = scan.path();
        let mut node = self.path_node(&path.kind, &relation, parallel);
        node.kind.push(("Parallel Aware", Value::Bool(parallel)));
        node.kind.push(("Relation Name", Value::Text(name.table.clone())));
        if self.options.verbose {
            node.kind.push(("Schema", Value::Text(name.schema.clone())));
        }
        node.kind.push(("Alias", Value::Text(alias.to_owned())));
        let columns = |column: &Column| Ok(expressions.field(column.name(), true));
        let filters = scan.filters().iter().enumerate();
        // What an index is searched for is not repeated as a filter.
        let filters = filters.filter(|(number, _)| !path.covered.contains(number));
        let filter = expressions.condition(filters.map(|(_, filter)| filter), &columns)?;
        let partitions = scan.counters().partitions();
        let mut sum = ScanCounts::default();
        partitions.iter().for_each(|partition| sum.add(partition));
        let mean = |count: u64| (count as f64 / loops.max(1) as f64).round() as u64;
        let is_measured = self.options.analyze && loops > 0;
        self.index_details(&mut node, scan, alias, keys)?;
        if is_measured && !matches!(path.kind, PathKind::Sequential) {
            let removed = mean(sum.removed_by_recheck);
            node.push(self.removed("Rows Removed by Index Recheck", removed));
        }
        let has_filter = filter.is_some();
        if let Some(filter) = filter {
            node.push(Detail::text("Filter", filter));
        }
        if has_filter && is_measured {
            node.push(self.removed("Rows Removed by Filter", mean(sum.removed)));
        }
        if is_measured && matches!(path.kind, PathKind::IndexOnly(_)) {
            // As in PostgreSQL, of all executions together.
            node.push(Detail::count("Heap Fetches", sum.heap_fetches));
        }
        self.bitmap_inputs(&mut node, scan, alias, &sum)?;
        if self.options.verbose {
            node.details.extend(unused_indexes(&path.unused));
        }
        if self.options.alternatives {
            if keys.is_empty() {
                node.details.extend(alternatives(path));
            }
            node.details.extend(found_pages(scan));
        }
        if !self.options.analyze {
            return Ok(node);
        }
        if sum.removed_late > 0 {
            let label = "Rows Removed by Dynamic Filter";
            node.push(Detail::count(label, mean(sum.removed_late)));
        }
        if self.options.io && loops > 0 {
            node.details.extend(stream_details(&sum.streams));
        }
        node.buffers = Some(sum.buffers);
        if self.options.verbose && parallel {
            for (worker, counts) in node.workers_of(plan, &partitions) {
                if self.options.io {
                    worker.details.extend(stream_details(&counts.streams));
                }
                if self.options.buffers {
                    worker.details.extend(buffer_details(&counts.buffers, self.options.timing));
                }
            }
        }
        Ok(node)
    }

    /// The node of an access path: its name, its title, and its index.
    fn path_node(&self, path: &PathKind, relation: &str, parallel: bool) -> PlanNode {
        let (name, search) = match path {
            PathKind::Sequential => ("Seq Scan", None),
            PathKind::Index(search) => ("Index Scan", Some(search)),
            PathKind::IndexOnly(search) => ("Index Only Scan", Some(search)),
            PathKind::Bitmap(_) => ("Bitmap Heap Scan", None),
        };
        let mut node = PlanNode::new(name);
        let prefix = if parallel { "Parallel " } else { "" };
        match search {
            Some(search) => {
                let index = self.expressions.printer.quoted(&search.index.name);
                let (backward, direction) = match search.is_backward() {
                    true => (" Backward", "Backward"),
                    false => ("", "Forward"),
                };
                node.title = format!("{name}{backward} using {index} on {relation}");
                node.kind.push(("Scan Direction", Value::Text(direction.to_owned())));
                node.kind.push(("Index Name", Value::Text(search.index.name.clone())));
            }
            None => node.title = format!("{prefix}{name} on {relation}"),
        }
        node
    }

    /// Rows that a condition has removed. Text shows them if there are any.
    pub(super) fn removed(&self, label: &'static str, count: u64) -> Detail {
        let detail = Detail::count(label, count);
        if count > 0 { detail } else { Detail::members(detail.members) }
    }
}

/// A line for each index that isn't used, and one list for JSON.
fn unused_indexes(unused: &[(String, String)]) -> Vec<Detail> {
    let lines: Vec<String> = unused.iter().map(|(name, why)| format!("{name}: {why}")).collect();
    let mut details: Vec<Detail> = lines
        .iter()
        .map(|line| Detail { line: Some(format!("Unused Index: {line}")), members: Vec::new() })
        .collect();
    if !lines.is_empty() {
        details.push(Detail::members(vec![("Unused Indexes", Value::List(lines))]));
    }
    details
}

impl PlanNode {
    /// Adds the workers of a scan, each with its counts.
    fn workers_of<'n, 'c>(
        &'n mut self,
        plan: &Arc<dyn ExecutionPlan>,
        counts: &'c [ScanCounts],
    ) -> impl Iterator<Item = (&'n mut super::node::Worker, &'c ScanCounts)> + use<'n, 'c> {
        self.workers = super::shape::workers(plan);
        let numbers: Vec<usize> = self.workers.iter().map(|worker| worker.number + 1).collect();
        let counts = numbers.into_iter().filter_map(move |partition| counts.get(partition));
        self.workers.iter_mut().zip(counts)
    }
}

/// The two lines of PostgreSQL 19's `IO`.
pub(super) fn stream_details(streams: &StreamStats) -> Vec<Detail> {
    let mut details = Vec::new();
    if streams.pages > 0 {
        let (mean, max, capacity) =
            (streams.distance_mean(), streams.distance_max, streams.capacity);
        details.push(Detail {
            line: Some(format!("Prefetch: avg={mean:.2} max={max} capacity={capacity}")),
            members: vec![
                ("Average Prefetch Distance", Value::decimal(mean, 2)),
                ("Max Prefetch Distance", Value::count(max.into())),
                ("Prefetch Capacity", Value::count(capacity.into())),
            ],
        });
    }
    if streams.ios > 0 {
        let (count, waits) = (streams.ios, streams.waits);
        let (size, in_flight) = (streams.io_size_mean(), streams.in_flight_mean());
        let line =
            format!("I/O: count={count} waits={waits} size={size:.2} in-progress={in_flight:.2}");
        details.push(Detail {
            line: Some(line),
            members: vec![
                ("I/O Count", Value::count(count)),
                ("I/O Waits", Value::count(waits)),
                ("Average I/O Size", Value::decimal(size, 2)),
                ("Average I/Os In Progress", Value::decimal(in_flight, 2)),
            ],
        });
    }
    details
}

/// `Buffers`, and the time that reads took.
pub(super) fn buffer_details(buffers: &Tally, timing: bool) -> Vec<Detail> {
    let (hits, reads) = (buffers.hits, buffers.read_blocks);
    let mut line = String::new();
    if hits > 0 {
        line.push_str(&format!(" hit={hits}"));
    }
    if reads > 0 {
        line.push_str(&format!(" read={reads}"));
    }
    let pages = Detail {
        line: (!line.is_empty()).then(|| format!("Buffers: shared{line}")),
        members: vec![
            ("Shared Hit Blocks", Value::count(hits)),
            ("Shared Read Blocks", Value::count(reads)),
            ("Shared Dirtied Blocks", Value::count(0)),
            ("Shared Written Blocks", Value::count(0)),
            ("Local Hit Blocks", Value::count(0)),
            ("Local Read Blocks", Value::count(0)),
            ("Local Dirtied Blocks", Value::count(0)),
            ("Local Written Blocks", Value::count(0)),
            ("Temp Read Blocks", Value::count(0)),
            ("Temp Written Blocks", Value::count(0)),
        ],
    };
    let mut details = vec![pages];
    if timing {
        let (waits, device) = (millis(buffers.wait_time()), millis(buffers.device_time()));
        let line = format!("I/O Timings: shared read={waits:.3} device={device:.3}");
        details.push(Detail {
            line: (reads > 0).then_some(line),
            members: vec![
                ("Shared I/O Read Time", Value::decimal(waits, 3)),
                ("Device Read Time", Value::decimal(device, 3)),
            ],
        });
    }
    details
}
