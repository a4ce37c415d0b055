//! The errors of domains: what a cast to a domain calls for a value that a constraint refuses.

use arrow_array::{ArrayRef, new_empty_array};
use trunkline_format::text_output::Type;

use super::call::{Call, Kernel};
use super::rows::Reader;
use crate::error::{SqlError, SqlState};
use crate::values::Carrier;

/// The kernels of this module.
pub(super) const KERNELS: &[(&str, Kernel)] = &[("trunkline_domain_violation", violation)];

fn violation(call: &Call<'_>) -> Result<ArrayRef, SqlError> {
    if call.rows == 0 {
        let ty = Type::resolve(call.result_type, &*call.settings.catalog);
        let ty = ty.map_err(|error| SqlError::unsupported(error.to_string()))?;
        return Ok(new_empty_array(&Carrier::of(&ty).data_type()));
    }
    let domain = Reader::<&str>::new(call, 0)?.get(0).unwrap_or_default();
    Err(match Reader::<&str>::new(call, 1)?.get(0) {
        Some(constraint) => {
            let message =
                format!("value for domain {domain} violates check constraint \"{constraint}\"");
            SqlError::new(SqlState::CHECK_VIOLATION, message)
        }
        None => {
            let message = format!("domain {domain} does not allow null values");
            SqlError::new(SqlState::NOT_NULL_VIOLATION, message)
        }
    })
}
