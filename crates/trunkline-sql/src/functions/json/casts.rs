//! Casts of a `jsonb` to numbers and `bool`.
//!
//! For example, `'1.5'::jsonb::int4` is 2. Since version 18, a JSON null becomes a null; before, it is
//! an error.

use arrow_array::ArrayRef;

use super::access::type_name;
use super::container::{Container, Kind};
use crate::error::{SqlError, SqlState};
use crate::functions::call::{Call, Kernel};
use crate::functions::rows::{Output, unary};
use crate::numeric::Numeric;

/// The kernels of this module.
pub(in crate::functions) const CASTS: &[(&str, Kernel)] = &[
    ("jsonb_numeric", |call| number(call, "numeric", |payload| Ok(payload.to_vec()))),
    ("jsonb_int2", |call| number(call, "smallint", |payload| Numeric::decode(payload)?.to_i16())),
    ("jsonb_int4", |call| number(call, "integer", |payload| Numeric::decode(payload)?.to_i32())),
    ("jsonb_int8", |call| number(call, "bigint", |payload| Numeric::decode(payload)?.to_i64())),
    ("jsonb_float4", |call| number(call, "real", |payload| Numeric::decode(payload)?.to_f32())),
    ("jsonb_float8", |call| {
        number(call, "double precision", |payload| Numeric::decode(payload)?.to_f64())
    }),
    ("jsonb_bool", |call| {
        cast(call, "boolean", |kind, _| match kind {
            Kind::False => Some(Ok(false)),
            Kind::True => Some(Ok(true)),
            _ => None,
        })
    }),
];

fn number<R: Output>(
    call: &Call<'_>,
    type_name: &str,
    convert: fn(&[u8]) -> Result<R, SqlError>,
) -> Result<ArrayRef, SqlError> {
    cast(call, type_name, |kind, payload| (kind == Kind::Number).then(|| convert(payload)))
}

/// Casts values that are no containers. `convert` returns `None` if it can't cast this kind; it gets
/// the payload of a number.
fn cast<R: Output>(
    call: &Call<'_>,
    wanted: &str,
    convert: impl Fn(Kind, &[u8]) -> Option<Result<R, SqlError>>,
) -> Result<ArrayRef, SqlError> {
    unary(call, |jsonb: &[u8]| {
        let container = Container::parse(jsonb)?;
        let cannot = |what: &str| {
            let message = format!("cannot cast jsonb {what} to type {wanted}");
            SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
        };
        let Some(value) = container.scalar() else {
            return Err(cannot(if container.is_object { "object" } else { "array" }));
        };
        if value.kind == Kind::Null && call.settings.major >= 18 {
            return Ok(None);
        }
        let payload = if value.kind == Kind::Number { value.number()? } else { &[] };
        let Some(converted) = convert(value.kind, payload) else {
            return Err(cannot(match value.kind {
                Kind::Number => "numeric",
                kind => type_name(kind),
            }));
        };
        converted.map(Some)
    })
}
