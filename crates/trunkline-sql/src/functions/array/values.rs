//! Arguments that are elements of arrays.

use trunkline_format::Oid;

use crate::error::SqlError;
use crate::functions::call::{Argument, Call};
use crate::functions::printing::resolve;
use crate::values::{Carrier, PayloadReader};

/// Reads an argument of any type as stored.
pub(super) struct ElementReader<'a> {
    argument: &'a Argument,
    values: PayloadReader<'a>,
}

impl<'a> ElementReader<'a> {
    /// Reads argument `number`, counted from 0.
    pub(super) fn new(call: &'a Call<'_>, number: usize) -> Result<Self, SqlError> {
        let found = call.arguments.get(number).zip(call.argument_types.get(number));
        let (argument, &oid) =
            found.ok_or_else(|| SqlError::internal(format!("argument {number} is missing")))?;
        let carrier = carrier_of(oid, call)?;
        Ok(Self { argument, values: PayloadReader::new(carrier, argument.array())? })
    }

    /// The value in row `row`.
    pub(super) fn get(&mut self, row: usize) -> Option<&[u8]> {
        self.values.get(self.argument.row(row))
    }
}

/// The carrier of a type.
pub(super) fn carrier_of(oid: Oid, call: &Call<'_>) -> Result<Carrier, SqlError> {
    Ok(Carrier::of(&resolve(oid, call.settings)?))
}
