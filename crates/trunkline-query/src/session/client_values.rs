//! Values as the client sends them, and types as it knows them.

use std::sync::Arc;

use trunkline_format::Oid;
use trunkline_format::binary::read_binary;
use trunkline_format::text_input::read_text;
use trunkline_format::text_output::Type;
use trunkline_sql::SqlError;

use super::session::Session;
use crate::encode::ValueFormat;
use crate::environment::ParameterValue;
use crate::statement::ResultColumn;

impl Session {
    /// The stored value of a parameter of this type. Text is in the client's encoding.
    ///
    /// # Errors
    /// Those of the type's input or receive function. 0A000: we can't hold its values.
    pub fn read_parameter(
        &self,
        ty: Oid,
        format: ValueFormat,
        value: Option<&[u8]>,
    ) -> Result<ParameterValue, SqlError> {
        let Some(value) = value else { return Ok(None) };
        let environment = self.environment(Arc::default());
        let encoding = self.client_encoding()?;
        let mut payload = Vec::new();
        // A literal whose type nothing has decided.
        if ty == Oid(705) {
            return Ok(Some(encoding.decode(value)?.into_bytes().into()));
        }
        let resolved: Type = environment.resolve(ty)?;
        let text = match format {
            ValueFormat::Text => encoding.decode(value)?,
            ValueFormat::Binary => String::new(),
        };
        let read = self.with_input_options(|options| match format {
            ValueFormat::Text => read_text(&resolved, text.as_bytes(), -1, options, &mut payload),
            ValueFormat::Binary => read_binary(&resolved, value, -1, options, &mut payload),
        });
        read?;
        Ok(Some(payload.into()))
    }

    /// The type of a column as its description announces it: OID, length and modifier, of the base type
    /// if it is a domain.
    pub fn announced_type(&self, column: &ResultColumn) -> (Oid, i16, i32) {
        let catalog = self.database().catalog();
        let (oid, modifier) = catalog.base_type_and_modifier(column.ty.oid, column.ty.modifier);
        let length = match oid {
            // `unknown` and `cstring` have no row that describes values.
            Oid(705 | 2275) => -2,
            oid => catalog.data_type(oid).map_or(-1, |row| row.len),
        };
        (oid, length, modifier)
    }
}
