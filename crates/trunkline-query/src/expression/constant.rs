//! Constants and parameters: their payloads, as arrays of one value.

use arrow_array::ArrayRef;
use trunkline_sql::bound::SqlType;
use trunkline_sql::{SqlError, SqlState};

use crate::environment::Environment;

/// The array of one value that holds a constant.
pub(crate) fn constant(
    environment: &Environment,
    ty: SqlType,
    payload: Option<&[u8]>,
) -> Result<ArrayRef, SqlError> {
    let carrier = environment.carrier(ty.oid)?;
    carrier.constant(payload).map_err(|error| SqlError::internal(error.to_string()))
}

/// The payload of a parameter.
pub(crate) fn parameter(environment: &Environment, number: u32) -> Result<Option<&[u8]>, SqlError> {
    let place = usize::try_from(number).ok().and_then(|number| number.checked_sub(1));
    let value = place.and_then(|place| environment.parameters.get(place));
    let message = || format!("there is no parameter ${number}");
    let value = value.ok_or_else(|| SqlError::new(SqlState::UNDEFINED_PARAMETER, message()))?;
    Ok(value.as_deref())
}
