//! The values of outer columns in an inner plan.
//!
//! Before the inner plan is executed for an outer row, the node writes the row's values into a slot.
//! `outer_value` reads one of them:
//!
//! ```text
//!   optimized: Filter c5 = $c1#1      physical: FilterExec c5 = outer_value($c1#1)
//! ```
//! The function is volatile, so nothing evaluates it ahead or reuses its result.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow_schema::DataType;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Result, ScalarValue, internal_datafusion_err};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{
    ColumnarValue, Expr, Extension, LogicalPlan, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature, Volatility,
};
use trunkline_aio::facade::Mutex;

use super::node::{Inner, SubplanNode};

/// The values of an outer row.
#[derive(Debug, Default)]
pub(super) struct Slot(Mutex<Vec<ScalarValue>>);

impl Slot {
    /// Sets the values for the next execution.
    pub(super) fn set(&self, values: Vec<ScalarValue>) {
        *self.0.lock() = values;
    }

    fn get(&self, place: usize) -> Option<ScalarValue> {
        self.0.lock().get(place).cloned()
    }
}

/// A value of a slot, as a function without arguments.
#[derive(Debug)]
struct OuterValue {
    name: String,
    slot: Arc<Slot>,
    place: usize,
    data_type: DataType,
    signature: Signature,
}

impl PartialEq for OuterValue {
    fn eq(&self, other: &Self) -> bool {
        self.place == other.place && Arc::ptr_eq(&self.slot, &other.slot)
    }
}

impl Eq for OuterValue {}

impl Hash for OuterValue {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl ScalarUDFImpl for OuterValue {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(self.data_type.clone())
    }

    fn invoke_with_args(&self, _call: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let value = self.slot.get(self.place);
        let value = value.ok_or_else(|| internal_datafusion_err!("no value of {}", self.name))?;
        Ok(ColumnarValue::Scalar(value))
    }
}

/// Replaces the placeholders of outer columns in a plan, and in subplans inside it, by the values of a
/// slot.
pub(super) fn with_slot(
    plan: LogicalPlan,
    placeholders: &[(String, DataType)],
    slot: &Arc<Slot>,
) -> Result<LogicalPlan> {
    let call = |id: &str| {
        let place = placeholders.iter().position(|(name, _)| name == id)?;
        let (name, data_type) = placeholders.get(place)?;
        let signature = Signature::nullary(Volatility::Volatile);
        let (name, data_type) = (format!("outer_value({name})"), data_type.clone());
        let value = OuterValue { name, slot: Arc::clone(slot), place, data_type, signature };
        Some(ScalarUDF::from(value).call(Vec::new()))
    };
    let replaced = plan.transform_up(|plan| {
        let plan = inside(plan, placeholders, slot)?;
        let names = NamePreserver::new(&plan);
        plan.map_expressions(|expr| {
            let name = names.save(&expr);
            let expr = expr.transform_up(|expr| {
                Ok(match &expr {
                    Expr::Placeholder(found) => match call(&found.id) {
                        Some(call) => Transformed::yes(call),
                        None => Transformed::no(expr),
                    },
                    _ => Transformed::no(expr),
                })
            })?;
            Ok(expr.update_data(|expr| name.restore(expr)))
        })
    });
    Ok(replaced?.data)
}

/// Whether a plan or a subplan in it uses values of a slot.
pub(super) fn uses_slot(plan: &LogicalPlan) -> Result<bool> {
    plan.exists(|plan| {
        let mut found = false;
        plan.apply_expressions(|expr| {
            found |= expr.exists(|expr| {
                Ok(match expr {
                    Expr::ScalarFunction(call) => call.func.inner().is::<OuterValue>(),
                    _ => false,
                })
            })?;
            Ok(TreeNodeRecursion::Continue)
        })?;
        let node = match plan {
            LogicalPlan::Extension(extension) => extension.node.as_any().downcast_ref(),
            _ => None,
        };
        Ok(found
            || node.map(|node: &SubplanNode| uses_slot(&node.inner().plan)).transpose()?
                == Some(true))
    })
}

/// The same for the inner plan of a subplan.
fn inside(
    plan: LogicalPlan,
    placeholders: &[(String, DataType)],
    slot: &Arc<Slot>,
) -> Result<LogicalPlan> {
    let LogicalPlan::Extension(extension) = &plan else { return Ok(plan) };
    let Some(node) = extension.node.as_any().downcast_ref::<SubplanNode>() else {
        return Ok(plan);
    };
    let inner = node.inner();
    let plan = with_slot(inner.plan.clone(), placeholders, slot)?;
    let inner = Inner { plan, ..inner.clone() };
    let node = Arc::new(node.with_inner(inner));
    Ok(LogicalPlan::Extension(Extension { node }))
}
