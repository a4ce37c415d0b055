//! Arguments of any type as text, for functions such as `concat` and `format`.
//!
//! The text is that of the type's output function. For example, `concat(true)` is `t`, although
//! `true::text` is `true`.

use trunkline_format::text_output::{TextOptions, Type, UnsupportedType, ValueError, write_text};

use super::call::{Argument, Call, CallSettings};
use crate::error::{SqlError, SqlState};
use crate::values::{Carrier, PayloadReader};
use trunkline_format::Oid;

/// Prints the values of one argument.
pub(super) struct Printer<'a> {
    ty: Type,
    argument: &'a Argument,
    values: PayloadReader<'a>,
    options: TextOptions<'a>,
}

impl<'a> Printer<'a> {
    /// Prints argument `number`, counted from 0.
    pub(super) fn new(call: &'a Call<'_>, number: usize) -> Result<Self, SqlError> {
        let found = call.arguments.get(number).zip(call.argument_types.get(number));
        let (argument, &oid) =
            found.ok_or_else(|| SqlError::internal(format!("argument {number} is missing")))?;
        let ty = resolve(oid, call.settings)?;
        let values = PayloadReader::new(Carrier::of(&ty), argument.array())?;
        Ok(Self { ty, argument, values, options: call.settings.text_options() })
    }

    /// Appends the value in row `row` to `out`. Returns false, and appends nothing, if it is null.
    pub(super) fn append(&mut self, row: usize, out: &mut Vec<u8>) -> Result<bool, SqlError> {
        let Some(value) = self.values.get(self.argument.row(row)) else { return Ok(false) };
        write_text(&self.ty, value, &self.options, out).map_err(damaged)?;
        Ok(true)
    }

    /// The value in row `row` as a text, or `None` if it is null.
    pub(super) fn text(&mut self, row: usize) -> Result<Option<String>, SqlError> {
        let mut out = Vec::new();
        Ok(if self.append(row, &mut out)? { Some(into_text(out)?) } else { None })
    }
}

/// Resolves a type, to print its values.
pub(super) fn resolve(oid: Oid, settings: &CallSettings) -> Result<Type, SqlError> {
    Type::resolve(oid, &*settings.catalog).map_err(unsupported)
}

/// The error for a value that is damaged.
pub(super) fn damaged(error: ValueError) -> SqlError {
    match error {
        ValueError::Unsupported(error) => unsupported(error),
        error => SqlError::new(SqlState::DATA_CORRUPTED, error.to_string()),
    }
}

fn unsupported(error: UnsupportedType) -> SqlError {
    SqlError::unsupported(error.to_string())
}

/// Makes a text of bytes that output functions wrote. Text is in UTF-8 everywhere in this crate.
pub(super) fn into_text(bytes: Vec<u8>) -> Result<String, SqlError> {
    String::from_utf8(bytes).map_err(|_| SqlError::internal("a text that is not valid UTF-8"))
}
