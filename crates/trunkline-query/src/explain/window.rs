//! Window functions: their calls as text, and what their nodes show.

use std::sync::Arc;

use datafusion::physical_plan::ExecutionPlan;
use trunkline_sql::SqlError;
use trunkline_sql::bound::{Aggregate, FrameBound, FrameExclusion, FrameUnit, WindowFrame};

use super::expressions::Expressions;
use super::node::{Detail, PlanNode};
use crate::operator::{WindowCall, WindowFunction, WindowOperator};

impl Expressions<'_> {
    /// A call of a function over a window.
    pub(super) fn window_call(
        &self,
        call: &Aggregate,
        plan: &Arc<dyn ExecutionPlan>,
    ) -> Result<String, SqlError> {
        let name = self.printer.function(call.function)?;
        let arguments = call.arguments.iter();
        let arguments = arguments.map(|argument| self.bound(argument, plan));
        let mut arguments = arguments.collect::<Result<Vec<_>, _>>()?.join(", ");
        // Only an aggregate is called with a star.
        if arguments.is_empty() && self.environment.aggregate(call.function).is_ok() {
            arguments = "*".to_owned();
        }
        let filter = match &call.filter {
            Some(filter) => format!(" FILTER (WHERE {})", self.bound(filter, plan)?),
            None => String::new(),
        };
        let over = if self.names_windows() { "w1" } else { "(?)" };
        Ok(format!("{name}({arguments}){filter} OVER {over}"))
    }

    /// Whether windows are shown with names, as PostgreSQL does from version 18.
    fn names_windows(&self) -> bool {
        self.environment.settings.major >= 18
    }

    /// A frame; `None` for the default.
    fn frame(
        &self,
        frame: &WindowFrame,
        plan: &Arc<dyn ExecutionPlan>,
    ) -> Result<Option<String>, SqlError> {
        let unit = match frame.unit {
            FrameUnit::Rows => "ROWS",
            FrameUnit::Range => "RANGE",
            FrameUnit::Groups => "GROUPS",
        };
        let bound = |bound: &FrameBound| {
            Ok::<_, SqlError>(match bound {
                FrameBound::UnboundedPreceding => "UNBOUNDED PRECEDING".to_owned(),
                FrameBound::CurrentRow => "CURRENT ROW".to_owned(),
                FrameBound::UnboundedFollowing => "UNBOUNDED FOLLOWING".to_owned(),
                FrameBound::Preceding(expr) => format!("{} PRECEDING", self.bound(expr, plan)?),
                FrameBound::Following(expr) => format!("{} FOLLOWING", self.bound(expr, plan)?),
            })
        };
        let is_plain = (&frame.start, &frame.end)
            == (&FrameBound::UnboundedPreceding, &FrameBound::CurrentRow);
        let exclude = match frame.exclude {
            FrameExclusion::NoOthers => "",
            FrameExclusion::CurrentRow => " EXCLUDE CURRENT ROW",
            FrameExclusion::Group => " EXCLUDE GROUP",
            FrameExclusion::Ties => " EXCLUDE TIES",
        };
        if is_plain && frame.unit == FrameUnit::Range && exclude.is_empty() {
            return Ok(None);
        }
        let (start, end) = (bound(&frame.start)?, bound(&frame.end)?);
        Ok(Some(match is_plain {
            true => format!("{unit} {start}{exclude}"),
            false => format!("{unit} BETWEEN {start} AND {end}{exclude}"),
        }))
    }

    /// The node of window functions, without its input.
    pub(super) fn window_node(
        &self,
        window: &WindowOperator,
        plan: &Arc<dyn ExecutionPlan>,
    ) -> Result<PlanNode, SqlError> {
        let mut node = PlanNode::new("WindowAgg");
        if !self.names_windows() {
            return Ok(node);
        }
        let Some(input) = plan.children().first().copied().cloned() else { return Ok(node) };
        let key = |name: &str| {
            let index = input.schema().index_of(name);
            let index = index.map_err(|error| SqlError::internal(error.to_string()))?;
            self.column(&input, index).map(|shown| shown.passed_on())
        };
        let mut parts = Vec::new();
        if !window.partition_by.is_empty() {
            let keys = window.partition_by.iter().map(|name| key(name));
            let keys = keys.collect::<Result<Vec<_>, SqlError>>()?;
            parts.push(format!("PARTITION BY {}", keys.join(", ")));
        }
        if !window.order_by.is_empty() {
            let keys = window.order_by.iter().map(|(name, options)| {
                let mut text = key(name)?;
                if options.descending {
                    text.push_str(" DESC");
                }
                if options.nulls_first != options.descending {
                    text.push_str(if options.nulls_first { " NULLS FIRST" } else { " NULLS LAST" });
                }
                Ok(text)
            });
            let keys = keys.collect::<Result<Vec<_>, SqlError>>()?;
            parts.push(format!("ORDER BY {}", keys.join(", ")));
        }
        // The result of these doesn't depend on the frame, for which PostgreSQL chooses the fastest.
        let is_rank = |call: &WindowCall| matches!(call.function, WindowFunction::Rank(_));
        if window.calls.iter().all(is_rank) {
            parts.push("ROWS UNBOUNDED PRECEDING".to_owned());
        } else {
            parts.extend(self.frame(&window.shown_frame, plan)?);
        }
        node.push(Detail::text("Window", format!("w1 AS ({})", parts.join(" "))));
        Ok(node)
    }
}
