//! The nodes without inputs that read no table.

use std::sync::Arc;

use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::datasource::source::DataSourceExec;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::placeholder_row::PlaceholderRowExec;
use datafusion::physical_plan::work_table::WorkTableExec;
use trunkline_sql::SqlError;
use trunkline_sql::bound::ExprKind;

use super::describe::Describer;
use super::node::{Detail, PlanNode, Value};
use super::shape::is_function_scan;
use crate::operator::{OperatorExec, OperatorKind};
use crate::subplan::SubplanExec;

impl Describer<'_> {
    /// A node without inputs that reads no table.
    pub(super) fn leaf(&self, plan: &Arc<dyn ExecutionPlan>) -> Result<Option<PlanNode>, SqlError> {
        if plan.is::<PlaceholderRowExec>() {
            return Ok(Some(PlanNode::new("Result")));
        }
        if plan.is::<WorkTableExec>() {
            return Ok(Some(PlanNode::new("WorkTable Scan")));
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
            && is_function_scan(plan)
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
            // Subqueries among the arguments.
            let mut below = plan.children();
            while let [input] = *below {
                if let Some(subplan) = input.downcast_ref::<SubplanExec>() {
                    node.inputs.insert(0, self.subplan(subplan)?);
                }
                below = input.children();
            }
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
            node.buffers = Some(set.pages.total());
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
}
