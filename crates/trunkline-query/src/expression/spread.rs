//! `f(x, VARIADIC array)` of a function that takes any number of arguments of any type, such as
//! `concat`: the elements are arguments. Their number differs from row to row, so each row is a call.

use arrow_array::{Array, ArrayRef, new_null_array};
use datafusion::arrow::compute::concat;
use trunkline_format::Oid;
use trunkline_format::text_output::Type;
use trunkline_sql::SqlError;
use trunkline_sql::functions::{Argument, ArrayView, CallSettings, attribute_of};
use trunkline_sql::values::Carrier;

use super::arrays::Values;
use super::frame::failed;
use super::function::Function;
use crate::environment::Volatility;

/// Calls a function for each of `rows` rows. A null instead of an array gives null, except in
/// `format`, for which it is an array without elements.
pub(super) fn spread(
    function: &Function,
    arguments: &[Argument],
    rows: usize,
    settings: &CallSettings,
) -> Result<Argument, SqlError> {
    let Some((array, others)) = arguments.split_last() else {
        return Err(SqlError::internal("VARIADIC without an argument"));
    };
    let constant =
        function.volatility != Volatility::Volatile && arguments.iter().all(Argument::is_constant);
    let rows = if constant { 1 } else { rows };
    let catalog = &*settings.catalog;
    let carrier = |oid: Oid| {
        let found = Type::resolve(oid, catalog);
        Ok::<_, SqlError>(Carrier::of(&found.map_err(|e| SqlError::unsupported(e.to_string()))?))
    };
    let null = new_null_array(&carrier(function.result_type())?.data_type(), 1);
    let mut arrays = Values::new(Carrier::Bytes, array)?;
    let mut results: Vec<ArrayRef> = Vec::with_capacity(rows);
    for row in 0..rows {
        let mut given: Vec<Argument> = others
            .iter()
            .map(|other| Argument::constant(other.array().slice(other.row(row), 1)))
            .collect();
        let mut element = None;
        match arrays.get(row) {
            Some(payload) => {
                let view = ArrayView::parse(payload)?;
                let oid = view.element();
                let carrier = carrier(oid)?;
                for value in view.elements(attribute_of(oid, catalog)?)? {
                    let value = carrier.constant(value.as_deref());
                    let value = value.map_err(|error| SqlError::internal(error.to_string()))?;
                    given.push(Argument::constant(value));
                }
                element = Some(oid);
            }
            None if function.name == "format" => {}
            None => {
                results.push(ArrayRef::clone(&null));
                continue;
            }
        }
        results.push(function.call_one(&given, element, settings)?);
    }
    let results: Vec<&dyn Array> = results.iter().map(|result| &**result).collect();
    let result = match results.is_empty() {
        true => null.slice(0, 0),
        false => concat(&results).map_err(failed)?,
    };
    Ok(if constant { Argument::constant(result) } else { Argument::column(result) })
}
