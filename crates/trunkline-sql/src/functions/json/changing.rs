//! Changed copies of a `jsonb`: `||` and `-`.
//!
//! For example, `'{"a": 1}' || '{"a": 2}'` is `{"a": 2}`, and `'[1, 2]' - 0` is `[2]`.

use super::access::texts_of;
use super::container::{Container, Kind, Value, array, object};
use crate::error::{SqlError, SqlState};
use crate::functions::call::Kernel;
use crate::functions::rows::binary;

/// The kernels of this module.
pub(in crate::functions) const CHANGING: &[(&str, Kernel)] = &[
    ("jsonb_concat", |call| binary(call, concatenated)),
    ("jsonb_delete", |call| {
        binary(call, |jsonb: &[u8], key: &str| without(jsonb, &[key.as_bytes()]))
    }),
    ("jsonb_delete_array", |call| {
        binary(call, |jsonb: &[u8], keys: &[u8]| {
            let keys = texts_of(keys, call)?;
            let keys: Vec<&[u8]> = keys.iter().flatten().map(Vec::as_slice).collect();
            without(jsonb, &keys)
        })
    }),
    ("jsonb_delete_idx", |call| binary(call, without_number)),
];

/// Two objects together, or two arrays. Anything else is taken as an element of an array.
fn concatenated(a: &[u8], b: &[u8]) -> Result<Vec<u8>, SqlError> {
    let (left, right) = (Container::parse(a)?, Container::parse(b)?);
    if left.is_object && right.is_object {
        let pairs = left.keys.into_iter().zip(left.values);
        return object(pairs.chain(right.keys.into_iter().zip(right.values)).collect());
    }
    array(&[elements(a, left), elements(b, right)].concat())
}

/// The elements of an array, or anything else as the only element.
fn elements<'a>(bytes: &'a [u8], container: Container<'a>) -> Vec<Value<'a>> {
    match container.is_object {
        true => vec![Value { kind: Kind::Container, bytes }],
        false => container.values,
    }
}

fn invalid(message: &str) -> SqlError {
    SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

/// An object without these keys, or an array without these strings.
fn without(jsonb: &[u8], keys: &[&[u8]]) -> Result<Vec<u8>, SqlError> {
    let container = Container::parse(jsonb)?;
    if container.is_scalar {
        return Err(invalid("cannot delete from scalar"));
    }
    if container.is_object {
        let pairs = container.keys.into_iter().zip(container.values);
        return object(pairs.filter(|(key, _)| !keys.contains(key)).collect());
    }
    let is_kept = |value: &Value<'_>| value.kind != Kind::String || !keys.contains(&value.bytes);
    let kept: Vec<Value<'_>> = container.values.into_iter().filter(is_kept).collect();
    array(&kept)
}

fn without_number(jsonb: &[u8], number: i32) -> Result<Vec<u8>, SqlError> {
    let mut container = Container::parse(jsonb)?;
    if container.is_scalar {
        return Err(invalid("cannot delete from scalar"));
    }
    if container.is_object {
        return Err(invalid("cannot delete from object using integer index"));
    }
    let at = match usize::try_from(number) {
        Ok(at) => Some(at),
        Err(_) => container.values.len().checked_sub(number.unsigned_abs() as usize),
    };
    if let Some(at) = at.filter(|&at| at < container.values.len()) {
        container.values.remove(at);
    }
    array(&container.values)
}
