//! Casts by the output function of one type and the input function of another (`CoerceViaIO`).
//!
//! For example, `'42'::text::int4` reads a text that was computed, and `now()::text` prints a time.

use trunkline_format::Oid;
use trunkline_format::text_input::read_text;
use trunkline_format::text_output::{Base, StringType, Type, ValueError, write_text};
use trunkline_sql::functions::{Argument, CallSettings};
use trunkline_sql::values::Carrier;
use trunkline_sql::{SqlError, SqlState};

use super::arrays::{Values, append, build};
use crate::environment::Environment;

/// A cast between two types.
pub(super) struct ViaText {
    from: Type,
    to: Type,
}

impl ViaText {
    /// The cast from one type to another.
    ///
    /// # Errors
    /// 0A000: we can't hold values of either type.
    pub(super) fn new(environment: &Environment, from: Oid, to: Oid) -> Result<Self, SqlError> {
        let resolve = |oid: Oid| match oid {
            // `unknown` and `cstring` have no row that describes values.
            Oid(705 | 2275) => Ok(Type::Base(Base::Text(StringType::Text))),
            oid => environment.resolve(oid),
        };
        Ok(Self { from: resolve(from)?, to: resolve(to)? })
    }

    /// Casts the values of an argument.
    ///
    /// # Errors
    /// Those of the input function.
    pub(super) fn cast(
        &self,
        argument: &Argument,
        rows: usize,
        settings: &CallSettings,
    ) -> Result<Argument, SqlError> {
        let mut values = Values::new(Carrier::of(&self.from), argument)?;
        let (output, input) = (settings.text_options(), settings.input_options());
        let (mut text, mut payload) = (Vec::new(), Vec::new());
        build(Carrier::of(&self.to), &[argument], rows, |row, column| {
            let Some(value) = values.get(row) else { return append(column, None) };
            text.clear();
            payload.clear();
            write_text(&self.from, value, &output, &mut text).map_err(damaged)?;
            read_text(&self.to, &text, -1, &input, &mut payload)?;
            append(column, Some(&payload))
        })
    }
}

/// The error for a value that can't be printed.
fn damaged(error: ValueError) -> SqlError {
    match error {
        ValueError::Unsupported(error) => SqlError::unsupported(error.to_string()),
        error => SqlError::new(SqlState::DATA_CORRUPTED, error.to_string()),
    }
}
