//! A `jsonb` in lines, and without nulls: `jsonb_pretty`, `jsonb_strip_nulls`.
//!
//! ```text
//!   {"a": [1, {}]}  ─▶  {
//!                           "a": [
//!                               1,
//!                               {
//!                               }
//!                           ]
//!                       }
//! ```

use trunkline_format::text_output::{Base, Type, write_json_string, write_text};

use super::container::{Container, Kind, Value, array, object};
use crate::error::SqlError;
use crate::functions::call::{Call, Kernel};
use crate::functions::printing::{damaged, into_text};
use crate::functions::rows::{Reader, each_row, unary};

/// The kernels of this module.
pub(in crate::functions) const PRETTY: &[(&str, Kernel)] = &[
    ("jsonb_pretty", |call| {
        unary(call, |jsonb: &[u8]| {
            let container = Container::parse(jsonb)?;
            let mut out = Vec::with_capacity(jsonb.len() * 2);
            match container.scalar() {
                Some(value) => append(value, 0, call, &mut out)?,
                None => append_container(&container, 0, call, &mut out)?,
            }
            into_text(out)
        })
    }),
    ("jsonb_strip_nulls", |call| {
        // Version 18 has a second argument.
        let in_arrays = match call.arguments.len() {
            1 => None,
            _ => Some(Reader::<bool>::new(call, 1)?),
        };
        let jsonb = Reader::<&[u8]>::new(call, 0)?;
        each_row(call.rows, |row| {
            let in_arrays = in_arrays.as_ref().map_or(Some(false), |flag| flag.get(row));
            match (jsonb.get(row), in_arrays) {
                (Some(jsonb), Some(in_arrays)) => without_nulls(jsonb, in_arrays).map(Some),
                _ => Ok(None),
            }
        })
    }),
];

/// How far a level is indented.
const INDENT: usize = 4;

fn line(depth: usize, out: &mut Vec<u8>) {
    out.push(b'\n');
    out.extend(std::iter::repeat_n(b' ', depth * INDENT));
}

fn append_container(
    container: &Container<'_>,
    depth: usize,
    call: &Call<'_>,
    out: &mut Vec<u8>,
) -> Result<(), SqlError> {
    let (open, close) = if container.is_object { (b'{', b'}') } else { (b'[', b']') };
    out.push(open);
    for (at, value) in container.values.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        line(depth + 1, out);
        if let Some(key) = container.keys.get(at) {
            write_json_string(key, out);
            out.extend_from_slice(b": ");
        }
        append(*value, depth + 1, call, out)?;
    }
    line(depth, out);
    out.push(close);
    Ok(())
}

fn append(
    value: Value<'_>,
    depth: usize,
    call: &Call<'_>,
    out: &mut Vec<u8>,
) -> Result<(), SqlError> {
    match value.kind {
        Kind::Container => stacker::maybe_grow(64 << 10, 1 << 20, || {
            append_container(&Container::parse(value.bytes)?, depth, call, out)
        }),
        Kind::String => {
            write_json_string(value.bytes, out);
            Ok(())
        }
        Kind::Number => {
            let options = call.settings.text_options();
            write_text(&Type::Base(Base::Numeric), value.number()?, &options, out).map_err(damaged)
        }
        Kind::False => {
            out.extend_from_slice(b"false");
            Ok(())
        }
        Kind::True => {
            out.extend_from_slice(b"true");
            Ok(())
        }
        Kind::Null => {
            out.extend_from_slice(b"null");
            Ok(())
        }
    }
}

/// A container without the fields that are null; with `in_arrays`, without the elements as well.
fn without_nulls(jsonb: &[u8], in_arrays: bool) -> Result<Vec<u8>, SqlError> {
    stacker::maybe_grow(64 << 10, 1 << 20, || {
        let container = Container::parse(jsonb)?;
        if container.is_scalar {
            return Ok(jsonb.to_vec());
        }
        let inner = |value: &Value<'_>| match value.kind {
            Kind::Container => without_nulls(value.bytes, in_arrays).map(Some),
            _ => Ok(None),
        };
        let inners = container.values.iter().map(inner).collect::<Result<Vec<_>, _>>()?;
        let strips = container.is_object || in_arrays;
        let values = container.values.iter().zip(&inners).map(|(value, inner)| match inner {
            Some(bytes) => Value { kind: Kind::Container, bytes },
            None => *value,
        });
        let is_kept = |value: &Value<'_>| !strips || value.kind != Kind::Null;
        match container.is_object {
            true => {
                let pairs = container.keys.iter().copied().zip(values);
                object(pairs.filter(|(_, value)| is_kept(value)).collect())
            }
            false => array(&values.filter(is_kept).collect::<Vec<_>>()),
        }
    })
}
