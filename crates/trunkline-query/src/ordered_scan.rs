//! `ORDER BY` through indexes: scans whose rows come in the order of the sort above them.
//!
//! ```text
//!   SortExec [b DESC], fetch 10        SortExec [b DESC], fetch 10
//!     ProjectionExec              ──▶    ProjectionExec
//!       ScanExec: sequential               ScanExec: index on b, backward; ordered by b DESC
//! ```
//!
//! The sort is still there. The planner's own rules remove it, because its input has its order already,
//! and keep the limit, which they move down to the scan. So if anything comes in between that doesn't
//! keep the order, the rows are sorted all the same.
//!
//! Only scans below a sort are given an order. For all other nodes, the rows of a table come in any
//! order, as before.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::physical_expr::LexOrdering;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::sorts::sort::SortExec;

use crate::access_path::{Sort, row_width};
use crate::children::with_new_children;
use crate::merge_keys::beneath;
use crate::scan::ScanExec;

/// Chooses the paths of scans whose rows are sorted.
#[derive(Debug)]
pub(crate) struct OrderedScans;

impl PhysicalOptimizerRule for OrderedScans {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_down(|plan| {
            let Some(sort) = plan.downcast_ref::<SortExec>() else {
                return Ok(Transformed::no(plan));
            };
            let width = row_width(&sort.input().schema()) as f64;
            let wanted = Wanted { fetch: sort.fetch(), width };
            match wanted.from(sort.input(), sort.expr())? {
                Some(input) => Ok(Transformed::yes(with_new_children(plan, vec![input])?)),
                None => Ok(Transformed::no(plan)),
            }
        })
        .data()
    }

    fn name(&self) -> &'static str {
        "OrderedScans"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// What a sort wants of its input.
#[derive(Debug, Clone, Copy)]
struct Wanted {
    /// The rows, if not all are wanted.
    fetch: Option<usize>,
    /// The estimated bytes of a row.
    width: f64,
}

impl Wanted {
    /// The plan with the best path for these keys, which are expressions over its columns; `None` if it
    /// doesn't lead to the scan of a table.
    fn from(
        &self,
        plan: &Arc<dyn ExecutionPlan>,
        keys: &LexOrdering,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        if let Some(scan) = plan.downcast_ref::<ScanExec>() {
            return Ok(self.scan(scan, keys));
        }
        let (wanted, input, keys) = if let Some(projection) = plan.downcast_ref::<ProjectionExec>()
        {
            (*self, projection.input(), beneath(keys, projection.expr())?)
        } else if let Some(filter) = plan.downcast_ref::<FilterExec>() {
            // Nothing is known of how many rows it wants. One with a limit must get the same rows.
            let is_plain = filter.projection().is_none() && filter.fetch().is_none();
            let wanted = Self { fetch: None, ..*self };
            (wanted, filter.input(), is_plain.then(|| keys.clone()))
        } else {
            return Ok(None);
        };
        let Some(keys) = keys else { return Ok(None) };
        match wanted.from(input, &keys)? {
            Some(input) => Ok(Some(with_new_children(Arc::clone(plan), vec![input])?)),
            None => Ok(None),
        }
    }

    fn scan(&self, scan: &ScanExec, keys: &LexOrdering) -> Option<Arc<dyn ExecutionPlan>> {
        let choice = scan.ordered()?;
        // With a limit of its own, the first rows of the table are wanted, not those of the order.
        if scan.fetch().is_some() {
            return None;
        }
        let columns = scan.sort_columns(keys)?;
        let sort = Sort {
            columns: &columns,
            fetch: self.fetch,
            width: self.width,
            tasks: scan.properties().partitioning.partition_count(),
        };
        let (path, is_ordered) = choice.choose(scan.path(), &sort);
        Some(Arc::new(scan.with_path(path, is_ordered.then(|| keys.clone()))))
    }
}
