//! A program as a scalar function of DataFusion.
//!
//! The planner sees a function of columns, with a name, a volatility and a result type. Two calls are
//! the same if the text of their expressions and their arguments are, so that the planner can find
//! common subexpressions.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow_schema::DataType;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility as PlannerVolatility,
};
use trunkline_sql::SqlError;
use trunkline_sql::bound::{ColumnId, Expr};
use trunkline_sql::functions::{Argument, CallSettings};
use trunkline_sql::values::OrderKey;

use super::frame::Frame;
use super::program::Program;
use crate::environment::{Environment, Volatility};
use crate::error::to_datafusion;

/// A compiled expression as a function of its columns.
pub(crate) struct ProgramFunction {
    /// The expression as text, by which it is recognized.
    text: String,
    /// The expression that `EXPLAIN` shows.
    shown: Expr,
    program: Program,
    signature: Signature,
    settings: Arc<CallSettings>,
}

impl ProgramFunction {
    /// `EXPLAIN` shows `shown`, which uses no other columns than the program.
    pub(crate) fn new(
        text: String,
        shown: Expr,
        program: Program,
        settings: Arc<CallSettings>,
    ) -> Self {
        let volatility = match program.volatility() {
            Volatility::Immutable => PlannerVolatility::Immutable,
            Volatility::Stable => PlannerVolatility::Stable,
            Volatility::Volatile => PlannerVolatility::Volatile,
        };
        let signature = match program.columns().len() {
            0 => Signature::nullary(volatility),
            count => Signature::any(count, volatility),
        };
        Self { text, shown, program, signature, settings }
    }

    /// The expression, as the statement has it.
    pub(crate) fn shown(&self) -> &Expr {
        &self.shown
    }

    /// If this is only the key of a column's stored value: how that is made.
    pub(crate) fn key_of_column(&self) -> Option<OrderKey> {
        self.program.key_of_column()
    }

    /// Whether it computes the keys of the values of [`ProgramFunction::shown`].
    pub(crate) fn is_key(&self) -> bool {
        self.program.is_key()
    }

    /// The function that computes the values themselves, of the same arguments. `None` if two calls may
    /// have different results.
    ///
    /// # Errors
    /// As for [`Program::compile`].
    pub(crate) fn keyed_value(
        &self,
        environment: &Environment,
    ) -> std::result::Result<Option<Self>, SqlError> {
        let program = Program::compile(environment, &self.shown)?;
        let is_same = program.columns() == self.program.columns();
        let is_stable = program.volatility() != Volatility::Volatile;
        let (text, settings) = (format!("value of {}", self.text), Arc::clone(&self.settings));
        let value = || Self::new(text, self.shown.clone(), program, settings);
        Ok((is_same && is_stable).then(value))
    }

    /// The columns that are its arguments.
    pub(crate) fn columns(&self) -> &[ColumnId] {
        self.program.columns()
    }
}

impl fmt::Debug for ProgramFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl PartialEq for ProgramFunction {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for ProgramFunction {}

impl Hash for ProgramFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.text.hash(state);
    }
}

impl ScalarUDFImpl for ProgramFunction {
    fn name(&self) -> &str {
        &self.text
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(self.program.carrier().data_type())
    }

    fn invoke_with_args(&self, call: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let argument = |value: &ColumnarValue| match value {
            ColumnarValue::Array(array) => Ok(Argument::column(Arc::clone(array))),
            ColumnarValue::Scalar(value) => value.to_array().map(Argument::constant),
        };
        let constant = self.program.volatility() != Volatility::Volatile
            && call.args.iter().all(|value| matches!(value, ColumnarValue::Scalar(_)));
        let columns = call.args.iter().map(argument).collect::<Result<Vec<_>>>()?;
        let rows = if constant { 1 } else { call.number_rows };
        let frame = Frame::new(columns, rows, &self.settings);
        let array = self.program.evaluate(&frame).map_err(to_datafusion)?;
        Ok(match constant {
            true => ColumnarValue::Scalar(ScalarValue::try_from_array(&array, 0)?),
            false => ColumnarValue::Array(array),
        })
    }
}
