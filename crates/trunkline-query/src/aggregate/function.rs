//! A call of an aggregate in a plan.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_schema::{DataType, Field, FieldRef, SortOptions};
use datafusion::common::Result;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::utils::format_state_name;
use datafusion::logical_expr::{
    Accumulator, AggregateUDFImpl, GroupsAccumulator, Signature, Volatility,
};
use trunkline_format::Oid;
use trunkline_sql::bound::Expr;
use trunkline_sql::functions::{AggregateCall, AggregateDefinition};

use super::accumulator::Recipe;
use super::buffered::BufferedOptions;

/// One call of an aggregate, with its types. Two calls are the same if their texts are.
pub(crate) struct AggregateFunction {
    text: String,
    shown: ShownCall,
    signature: Signature,
    recipe: Recipe,
}

/// A call as `EXPLAIN` shows it. The arguments are those of the plan's call, by their number.
#[derive(Debug, Clone, Default)]
pub(crate) struct ShownCall {
    /// `pg_proc.oid`; `None` if the call only passes its argument on.
    pub(crate) function: Option<Oid>,
    /// The number of arguments; none for `count(*)`.
    pub(crate) arguments: usize,
    /// The direct arguments of an ordered-set aggregate, whose order is in `WITHIN GROUP`.
    pub(crate) direct: Option<Vec<Expr>>,
    /// `DISTINCT`.
    pub(crate) distinct: bool,
    /// `ORDER BY`: the options of the arguments that follow.
    pub(crate) order_by: Vec<SortOptions>,
}

/// `DISTINCT` and `ORDER BY` inside a call: keys that follow the arguments.
#[derive(Debug, Clone, Default)]
pub(crate) struct CallKeys {
    /// The keys' types and order.
    pub(crate) keys: Vec<(DataType, SortOptions)>,
    /// Rows with equal keys count once.
    pub(crate) distinct: bool,
}

impl AggregateFunction {
    /// A call. `text` identifies it in the plan; `constants` says which arguments are constants.
    pub(crate) fn new(
        text: String,
        shown: ShownCall,
        definition: &'static AggregateDefinition,
        call: AggregateCall,
        constants: Vec<Option<ArrayRef>>,
        keys: CallKeys,
    ) -> Self {
        let arguments = call.argument_carriers.len() + keys.keys.len();
        let buffered = (!keys.keys.is_empty()).then(|| BufferedOptions {
            arguments: call.argument_carriers.iter().map(|carrier| carrier.data_type()).collect(),
            keys: keys.keys,
            distinct: keys.distinct,
        });
        let signature = Signature::any(arguments.max(1), Volatility::Immutable);
        Self {
            text,
            shown,
            signature,
            recipe: Recipe { definition, call, arguments, constants, buffered },
        }
    }
}

impl AggregateFunction {
    /// The call, as the statement has it.
    pub(crate) fn shown(&self) -> &ShownCall {
        &self.shown
    }
}

impl fmt::Debug for AggregateFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl PartialEq for AggregateFunction {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for AggregateFunction {}

impl Hash for AggregateFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.text.hash(state);
    }
}

impl AggregateUDFImpl for AggregateFunction {
    fn name(&self) -> &str {
        &self.text
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(self.recipe.call.result_carrier.data_type())
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        let carriers = self.recipe.state_carriers();
        let field = |(at, ty): (usize, DataType)| {
            let name = format_state_name(args.name, &at.to_string());
            Arc::new(Field::new(name, ty, true))
        };
        let types = carriers.iter().map(|carrier| carrier.data_type());
        Ok(types.enumerate().map(field).collect())
    }

    fn accumulator(&self, _args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(self.recipe.start()?))
    }

    fn groups_accumulator_supported(&self, _args: AccumulatorArgs<'_>) -> bool {
        true
    }

    fn create_groups_accumulator(
        &self,
        _args: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn GroupsAccumulator>> {
        Ok(Box::new(self.recipe.start()?))
    }

    /// `ORDER BY` inside the call is our own matter.
    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }
}
