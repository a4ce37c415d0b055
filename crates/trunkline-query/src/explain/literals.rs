//! Constants of plans as literals of their types.

use datafusion::common::ScalarValue;
use trunkline_format::Oid;
use trunkline_sql::SqlError;
use trunkline_sql::bound::SqlType;
use trunkline_sql::catalog::oids;
use trunkline_sql::deparse::ExpressionPrinter;
use trunkline_sql::values::PayloadReader;

use crate::environment::Environment;
use crate::error::from_datafusion;

/// `varchar`, whose operators are those of `text`.
pub(super) const VARCHAR: Oid = Oid(1043);

/// A constant. `ty` is what it is compared with; without it, the carrier decides.
pub(super) fn literal_text(
    environment: &Environment,
    printer: &ExpressionPrinter<'_>,
    value: &ScalarValue,
    ty: Option<SqlType>,
) -> Result<String, SqlError> {
    let known = ty.or_else(|| guessed(value));
    let Some(mut ty) = known else { return Ok(value.to_string()) };
    if ty.oid == VARCHAR {
        ty = SqlType { oid: oids::TEXT, ..ty };
    }
    // A constant has no modifier of its own.
    ty.modifier = -1;
    if value.is_null() {
        return printer.constant(ty, None);
    }
    // Numbers that fit are int4, whatever they are compared with, and others are int8: what they are
    // compared with may be too small for them.
    if let Some(number) = integer(value)
        && matches!(ty.oid, oids::INT2 | oids::INT4 | oids::INT8)
    {
        return match i32::try_from(number) {
            Ok(small) => printer.constant(SqlType::new(oids::INT4), Some(&small.to_le_bytes())),
            Err(_) => printer.constant(SqlType::new(oids::INT8), Some(&number.to_le_bytes())),
        };
    }
    let carrier = environment.carrier(ty.oid)?;
    let internal = |error: String| SqlError::internal(error);
    let array = value.to_array().map_err(|error| from_datafusion(&error))?;
    let reader = PayloadReader::new(carrier, &array);
    let mut reader = reader.map_err(|error| internal(error.to_string()))?;
    let payload = reader.get(0).map(<[u8]>::to_vec);
    printer.constant(ty, payload.as_deref())
}

fn integer(value: &ScalarValue) -> Option<i64> {
    match value {
        ScalarValue::Int16(value) => value.map(i64::from),
        ScalarValue::Int32(value) => value.map(i64::from),
        ScalarValue::Int64(value) => *value,
        _ => None,
    }
}

/// The type of a constant that nothing is known about.
fn guessed(value: &ScalarValue) -> Option<SqlType> {
    Some(SqlType::new(match value {
        ScalarValue::Boolean(_) => oids::BOOL,
        ScalarValue::Int16(_) => oids::INT2,
        ScalarValue::Int32(_) => oids::INT4,
        ScalarValue::Int64(_) => oids::INT8,
        ScalarValue::Utf8(_) | ScalarValue::Utf8View(_) => oids::TEXT,
        _ => return None,
    }))
}
