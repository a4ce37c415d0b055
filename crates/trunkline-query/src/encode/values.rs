//! The values of one column, in text or binary format.
//!
//! Example: the `int4` 7 is `7` in the text format and `00 00 00 07` in the binary format.

use trunkline_format::Oid;
use trunkline_format::binary::{SendError, write_binary};
use trunkline_format::text_output::{Base, StringType, TextOptions, Type, ValueError, write_text};
use trunkline_sql::values::Carrier;
use trunkline_sql::{SqlError, SqlState};

use super::client_encoding::ClientEncoding;
use crate::environment::Environment;
use crate::statement::ResultColumn;

/// The format of a column's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ValueFormat {
    /// The output function.
    #[default]
    Text,
    /// The send function.
    Binary,
}

/// Which conversion the bytes of a column need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Conversion {
    /// None, because they aren't text, or because both sides have the same encoding.
    None,
    /// They are text in UTF-8.
    Utf8,
    /// They are text in the encoding of the database.
    Stored,
}

/// Encodes the values of one column.
#[derive(Debug)]
pub(super) struct ValueEncoder {
    name: Box<str>,
    ty: Type,
    carrier: Carrier,
    format: ValueFormat,
    conversion: Conversion,
}

impl ValueEncoder {
    /// Resolves the type of a column.
    ///
    /// # Errors
    /// 0A000: we can't print the type. 42883: it has no binary format.
    pub(super) fn new(
        column: &ResultColumn,
        format: ValueFormat,
        environment: &Environment,
        encoding: &ClientEncoding,
    ) -> Result<Self, SqlError> {
        let ty = column_type(column.ty.oid, environment)?;
        let (name, carrier) = (column.name.clone(), column.carrier);
        let conversion = match (carrier, format) {
            _ if !encoding.converts() => Conversion::None,
            (Carrier::Text | Carrier::Name, _) => Conversion::Utf8,
            (_, ValueFormat::Text) => Conversion::Stored,
            // The text of these is their binary format, except for the version in front of it.
            (_, ValueFormat::Binary) => match &ty {
                Type::Enum(..) | Type::Base(Base::Jsonb | Base::Jsonpath) => Conversion::Stored,
                ty if contains_text(ty) => {
                    let message = format!(
                        "binary format of column \"{name}\" in client_encoding {} is not \
                         supported by trunkline",
                        encoding.name()
                    );
                    return Err(SqlError::unsupported(message));
                }
                _ => Conversion::None,
            },
        };
        Ok(Self { name, ty, carrier, format, conversion })
    }

    /// How the column's values are held.
    pub(super) fn carrier(&self) -> Carrier {
        self.carrier
    }

    /// Appends a value, which is in storage form.
    ///
    /// # Errors
    /// XX001: the value is damaged. 42883: the type has no binary format. 22P05: the client's encoding
    /// lacks a character.
    #[inline]
    pub(super) fn write(
        &self,
        value: &[u8],
        options: &TextOptions<'_>,
        encoding: &ClientEncoding,
        out: &mut Vec<u8>,
    ) -> Result<(), SqlError> {
        let start = out.len();
        match self.format {
            ValueFormat::Text => {
                write_text(&self.ty, value, options, out).map_err(|error| self.damaged(error))?;
            }
            ValueFormat::Binary => write_binary(&self.ty, value, options.catalog, out)
                .map_err(|error| self.not_sent(error))?,
        }
        match self.conversion {
            Conversion::None => Ok(()),
            Conversion::Utf8 => encoding.convert_utf8(start, out),
            Conversion::Stored => encoding.convert_stored(start, out),
        }
    }

    #[cold]
    fn damaged(&self, error: ValueError) -> SqlError {
        match error {
            ValueError::Unsupported(error) => SqlError::unsupported(error.to_string()),
            error => {
                let message = format!("column \"{}\": {error}", self.name);
                SqlError::new(SqlState::DATA_CORRUPTED, message)
            }
        }
    }

    #[cold]
    fn not_sent(&self, error: SendError) -> SqlError {
        match error {
            SendError::Value(error) => self.damaged(error),
            error @ SendError::NoFunction(_) => {
                SqlError::new(SqlState::UNDEFINED_FUNCTION, error.to_string())
            }
        }
    }
}

/// The type of a column.
///
/// # Errors
/// 0A000: we can't print it.
pub(super) fn column_type(oid: Oid, environment: &Environment) -> Result<Type, SqlError> {
    match oid {
        // No row of pg_type says that these are stored as text.
        Oid(705 | 2275) => Ok(Type::Base(Base::Text(StringType::Text))),
        oid => environment.resolve(oid),
    }
}

/// Whether a value can contain text, perhaps in a part of it.
fn contains_text(ty: &Type) -> bool {
    let is_text = |base: Base| {
        matches!(
            base,
            Base::Text(_)
                | Base::Name
                | Base::Xml
                | Base::Jsonb
                | Base::Jsonpath
                | Base::Tsvector
                | Base::Tsquery
                | Base::AnyArray
                | Base::Record
        )
    };
    // An enum inside of another type is not visited by `contains`, so those are all taken for text.
    ty.contains(&is_text) || matches!(ty, Type::Array(_) | Type::Composite(_))
}
