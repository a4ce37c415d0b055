//! The statistics of the tables of joins, which are read before the joins are planned.

use datafusion::common::Result;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::datasource::source_as_provider;
use datafusion::logical_expr::LogicalPlan;

use crate::error::to_datafusion;
use crate::scan::ScanTable;

/// Reads the statistics of all tables, if a plan has joins. A scan reads those that its own filters need.
///
/// # Errors
/// The statement was cancelled.
pub(crate) async fn read_statistics(plan: &LogicalPlan) -> Result<()> {
    let (mut tables, mut has_joins) = (Vec::new(), false);
    plan.apply(|node| {
        match node {
            LogicalPlan::Join(_) => has_joins = true,
            LogicalPlan::TableScan(scan) => tables.push(source_as_provider(&scan.source)?),
            _ => {}
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    for table in tables.iter().filter(|_| has_joins) {
        if let Some(table) = table.downcast_ref::<ScanTable>() {
            table.read_statistics().await.map_err(to_datafusion)?;
        }
    }
    Ok(())
}
