//! Parts of a `jsonb`: `->`, `->>`, `#>`, `#>>`, `?`, `jsonb_typeof`, `jsonb_array_length`.
//!
//! For example, `'{"a": [1, 2]}' #> '{a,-1}'` is `2`: a number in a path counts from 0, and a negative
//! one from the end.

use arrow_array::ArrayRef;
use trunkline_format::Oid;
use trunkline_format::text_output::{Base, Type, write_text};

use super::container::{Container, Kind, Value};
use crate::error::{SqlError, SqlState};
use crate::functions::array::{ArrayView, attribute_of};
use crate::functions::call::{Call, Kernel};
use crate::functions::printing::{damaged, into_text};
use crate::functions::rows::{Input, binary, unary};

/// The kernels of this module.
pub(in crate::functions) const ACCESS: &[(&str, Kernel)] = &[
    ("jsonb_object_field", |call| value_of(call, field)),
    ("jsonb_object_field_text", |call| text_of(call, field)),
    ("jsonb_array_element", |call| value_of(call, element)),
    ("jsonb_array_element_text", |call| text_of(call, element)),
    ("jsonb_extract_path", |call| {
        binary(call, |jsonb: &[u8], path: &[u8]| {
            let Some(path) = path_of(path, call)? else { return Ok(None) };
            if path.is_empty() {
                return Ok(Some(jsonb.to_vec()));
            }
            follow(jsonb, &path)?.map(Value::to_jsonb).transpose()
        })
    }),
    ("jsonb_extract_path_text", |call| {
        binary(call, |jsonb: &[u8], path: &[u8]| {
            let Some(path) = path_of(path, call)? else { return Ok(None) };
            let whole = Value { kind: Kind::Container, bytes: jsonb };
            let found = match path.is_empty() {
                true => Some(Container::parse(jsonb)?.scalar().unwrap_or(whole)),
                false => follow(jsonb, &path)?,
            };
            found.map_or(Ok(None), |value| text(value, call))
        })
    }),
    ("jsonb_exists", |call| {
        binary(call, |jsonb: &[u8], key: &str| exists(&Container::parse(jsonb)?, key.as_bytes()))
    }),
    ("jsonb_exists_any", |call| exists_among(call, true)),
    ("jsonb_exists_all", |call| exists_among(call, false)),
    ("jsonb_typeof", |call| {
        unary(call, |jsonb: &[u8]| {
            let container = Container::parse(jsonb)?;
            Ok(match container.scalar() {
                Some(value) => type_name(value.kind),
                None if container.is_object => "object",
                None => "array",
            })
        })
    }),
    ("jsonb_array_length", |call| {
        unary(call, |jsonb: &[u8]| {
            let container = Container::parse(jsonb)?;
            let what = match (container.is_scalar, container.is_object) {
                (true, _) => "a scalar",
                (_, true) => "a non-array",
                _ => return Ok(container.values.len() as i32),
            };
            let message = format!("cannot get array length of {what}");
            Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message))
        })
    }),
];

/// The name of a scalar's type.
pub(in crate::functions) fn type_name(kind: Kind) -> &'static str {
    match kind {
        Kind::String => "string",
        Kind::Number => "number",
        Kind::False | Kind::True => "boolean",
        Kind::Null => "null",
        Kind::Container => "array or object",
    }
}

fn field<'a>(container: &Container<'a>, key: &str) -> Option<Value<'a>> {
    container.get(key.as_bytes())
}

fn element<'a>(container: &Container<'a>, number: i32) -> Option<Value<'a>> {
    container.nth(number)
}

fn value_of<'a, K: Input<'a>>(
    call: &'a Call<'_>,
    find: for<'b> fn(&Container<'b>, K) -> Option<Value<'b>>,
) -> Result<ArrayRef, SqlError> {
    binary(call, |jsonb: &[u8], key: K| {
        find(&Container::parse(jsonb)?, key).map(Value::to_jsonb).transpose()
    })
}

fn text_of<'a, K: Input<'a>>(
    call: &'a Call<'_>,
    find: for<'b> fn(&Container<'b>, K) -> Option<Value<'b>>,
) -> Result<ArrayRef, SqlError> {
    binary(call, |jsonb: &[u8], key: K| {
        find(&Container::parse(jsonb)?, key).map_or(Ok(None), |value| text(value, call))
    })
}

/// A value as text: a string without quotes, and a JSON null as null.
pub(in crate::functions) fn text(
    value: Value<'_>,
    call: &Call<'_>,
) -> Result<Option<String>, SqlError> {
    let (base, payload) = match value.kind {
        Kind::Null => return Ok(None),
        Kind::False => return Ok(Some("false".to_owned())),
        Kind::True => return Ok(Some("true".to_owned())),
        Kind::String => return into_text(value.bytes.to_vec()).map(Some),
        Kind::Number => (Base::Numeric, value.number()?),
        Kind::Container => (Base::Jsonb, value.bytes),
    };
    let mut out = Vec::new();
    let options = call.settings.text_options();
    write_text(&Type::Base(base), payload, &options, &mut out).map_err(damaged)?;
    into_text(out).map(Some)
}

/// The texts of an array; `None` if any is null.
pub(super) fn path_of(array: &[u8], call: &Call<'_>) -> Result<Option<Vec<String>>, SqlError> {
    texts_of(array, call)?.into_iter().collect::<Option<Vec<_>>>().map_or(Ok(None), |path| {
        path.into_iter().map(into_text).collect::<Result<Vec<_>, _>>().map(Some)
    })
}

/// The elements of an array of texts.
pub(super) fn texts_of(array: &[u8], call: &Call<'_>) -> Result<Vec<Option<Vec<u8>>>, SqlError> {
    let attribute = attribute_of(Oid(25), &*call.settings.catalog)?;
    let elements = ArrayView::parse(array)?.elements(attribute)?;
    Ok(elements.into_iter().map(|text| text.map(|text| text.into_owned())).collect())
}

/// The value at the end of a path that is not empty.
fn follow<'a>(jsonb: &'a [u8], path: &[String]) -> Result<Option<Value<'a>>, SqlError> {
    let mut value = Value { kind: Kind::Container, bytes: jsonb };
    for step in path {
        if value.kind != Kind::Container {
            return Ok(None);
        }
        let container = Container::parse(value.bytes)?;
        let found = match (container.is_scalar, container.is_object) {
            (true, _) => None,
            (_, true) => container.get(step.as_bytes()),
            // As C's strtol, a number may begin with blanks and a sign.
            _ => step
                .trim_start_matches([' ', '\t', '\n', '\r', '\x0B', '\x0C'])
                .parse()
                .ok()
                .and_then(|number| container.nth(number)),
        };
        match found {
            Some(found) => value = found,
            None => return Ok(None),
        }
    }
    Ok(Some(value))
}

/// Whether a text is a key of an object, or a string in an array.
fn exists(container: &Container<'_>, key: &[u8]) -> Result<bool, SqlError> {
    let is_string = |value: &Value<'_>| value.kind == Kind::String && value.bytes == key;
    Ok(match container.is_object {
        true => container.get(key).is_some(),
        false => container.values.iter().any(is_string),
    })
}

/// Whether any or all of the texts in an array exist. Nulls among them don't count.
fn exists_among(call: &Call<'_>, any: bool) -> Result<ArrayRef, SqlError> {
    binary(call, |jsonb: &[u8], keys: &[u8]| {
        let container = Container::parse(jsonb)?;
        for key in texts_of(keys, call)?.into_iter().flatten() {
            if exists(&container, &key)? == any {
                return Ok(any);
            }
        }
        Ok(!any)
    })
}
