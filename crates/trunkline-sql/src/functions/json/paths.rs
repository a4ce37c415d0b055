//! Changes at the end of a path: `jsonb_set`, `jsonb_set_lax`, `jsonb_insert`, `#-`.
//!
//! For example, `jsonb_set('{"a": [1, 2]}', '{a,0}', '9')` is `{"a": [9, 2]}`. The containers on the way
//! are written anew, and everything else is copied.

use arrow_array::ArrayRef;

use super::access::texts_of;
use super::container::{Container, Kind, Value, array, object};
use crate::error::{SqlError, SqlState};
use crate::functions::call::{Call, Kernel};
use crate::functions::printing::into_text;
use crate::functions::rows::{Reader, binary, each_row};

/// The kernels of this module.
pub(in crate::functions) const PATHS: &[(&str, Kernel)] = &[
    ("jsonb_set", |call| changed(call, |create| Change::Set { create })),
    ("jsonb_insert", |call| changed(call, |after| Change::Insert { after })),
    ("jsonb_set_lax", set_lax),
    ("jsonb_delete_path", |call| {
        binary(call, |jsonb: &[u8], path: &[u8]| {
            let path = path_steps(path, call)?;
            let container = Container::parse(jsonb)?;
            if container.is_scalar {
                return Err(invalid("cannot delete path in scalar"));
            }
            if path.is_empty() || container.values.is_empty() {
                return Ok(jsonb.to_vec());
            }
            change(container, &path, 0, &Change::Delete, None)
        })
    }),
];

/// What happens at the end of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    /// The value is replaced, or added if it doesn't exist and `create` is true.
    Set {
        create: bool,
    },
    /// A value is added before or after the one that there is.
    Insert {
        after: bool,
    },
    Delete,
}

fn invalid(message: &str) -> SqlError {
    SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

/// The steps of a path. A null is an error only where it is reached.
fn path_steps(path: &[u8], call: &Call<'_>) -> Result<Vec<Option<String>>, SqlError> {
    let steps = texts_of(path, call)?.into_iter();
    steps.map(|step| step.map(into_text).transpose()).collect()
}

/// A call with a value, a path, a new value and a flag.
fn changed(call: &Call<'_>, what: fn(bool) -> Change) -> Result<ArrayRef, SqlError> {
    let (jsonb, path) = (Reader::<&[u8]>::new(call, 0)?, Reader::<&[u8]>::new(call, 1)?);
    let (new, flag) = (Reader::<&[u8]>::new(call, 2)?, Reader::<bool>::new(call, 3)?);
    each_row(call.rows, |row| {
        let (Some(jsonb), Some(path)) = (jsonb.get(row), path.get(row)) else { return Ok(None) };
        let (Some(new), Some(flag)) = (new.get(row), flag.get(row)) else { return Ok(None) };
        set(jsonb, path, new, what(flag), call).map(Some)
    })
}

fn set(
    jsonb: &[u8],
    path: &[u8],
    new: &[u8],
    what: Change,
    call: &Call<'_>,
) -> Result<Vec<u8>, SqlError> {
    let path = path_steps(path, call)?;
    let container = Container::parse(jsonb)?;
    if container.is_scalar {
        return Err(invalid("cannot set path in scalar"));
    }
    let adds = what != Change::Set { create: false };
    if path.is_empty() || (container.values.is_empty() && !adds) {
        return Ok(jsonb.to_vec());
    }
    let new =
        Container::parse(new)?.scalar().unwrap_or(Value { kind: Kind::Container, bytes: new });
    change(container, &path, 0, &what, Some(new))
}

/// `jsonb_set_lax`: a null as the new value is treated as the last argument says.
fn set_lax(call: &Call<'_>) -> Result<ArrayRef, SqlError> {
    let (jsonb, path) = (Reader::<&[u8]>::new(call, 0)?, Reader::<&[u8]>::new(call, 1)?);
    let (new, create) = (Reader::<&[u8]>::new(call, 2)?, Reader::<bool>::new(call, 3)?);
    let treatment = Reader::<&str>::new(call, 4)?;
    // A scalar array with a null.
    let null = [1, 0, 0, 0x50, 0, 0, 0, 0x40];
    each_row(call.rows, |row| {
        let (Some(jsonb), Some(path)) = (jsonb.get(row), path.get(row)) else { return Ok(None) };
        let Some(create) = create.get(row) else { return Ok(None) };
        let Some(treatment) = treatment.get(row) else {
            let message = "null_value_treatment must be \"delete_key\", \"return_target\", \
                           \"use_json_null\", or \"raise_exception\"";
            return Err(invalid(message));
        };
        let what = Change::Set { create };
        if let Some(new) = new.get(row) {
            return set(jsonb, path, new, what, call).map(Some);
        }
        match treatment {
            "raise_exception" => {
                let message = "JSON value must not be null";
                let detail = "Exception was raised because null_value_treatment is \
                              \"raise_exception\".";
                let hint = "To avoid, either change the null_value_treatment argument or ensure \
                            that an SQL NULL is not passed.";
                let error = SqlError::new(SqlState::NULL_VALUE_NOT_ALLOWED, message);
                Err(error.with_detail(detail).with_hint(hint))
            }
            "use_json_null" => set(jsonb, path, &null, what, call).map(Some),
            "delete_key" => {
                let path = path_steps(path, call)?;
                let container = Container::parse(jsonb)?;
                if container.is_scalar {
                    return Err(invalid("cannot delete path in scalar"));
                }
                if path.is_empty() || container.values.is_empty() {
                    return Ok(Some(jsonb.to_vec()));
                }
                change(container, &path, 0, &Change::Delete, None).map(Some)
            }
            "return_target" => Ok(Some(jsonb.to_vec())),
            _ => {
                let message = "null_value_treatment must be \"delete_key\", \"return_target\", \
                               \"use_json_null\", or \"raise_exception\"";
                Err(invalid(message))
            }
        }
    })
}

/// Changes a container at the end of a path, whose steps before `level` have been taken (`setPath`).
fn change(
    container: Container<'_>,
    path: &[Option<String>],
    level: usize,
    what: &Change,
    new: Option<Value<'_>>,
) -> Result<Vec<u8>, SqlError> {
    let step = step_at(path, level)?;
    stacker::maybe_grow(64 << 10, 1 << 20, || match container.is_object {
        true => change_object(container, step, path, level, what, new),
        false => change_array(container, step, path, level, what, new),
    })
}

fn step_at(path: &[Option<String>], level: usize) -> Result<&str, SqlError> {
    path.get(level).and_then(Option::as_deref).ok_or_else(|| {
        let message = format!("path element at position {} is null", level + 1);
        SqlError::new(SqlState::NULL_VALUE_NOT_ALLOWED, message)
    })
}

/// The value of the next level, changed; `None` if it is no container.
fn changed_inside(
    value: Value<'_>,
    path: &[Option<String>],
    level: usize,
    what: &Change,
    new: Option<Value<'_>>,
) -> Result<Option<Vec<u8>>, SqlError> {
    match value.container()? {
        Some(inner) => change(inner, path, level + 1, what, new).map(Some),
        // A step that is null is an error even so.
        None => step_at(path, level + 1).map(|_| None),
    }
}

fn change_object(
    container: Container<'_>,
    step: &str,
    path: &[Option<String>],
    level: usize,
    what: &Change,
    new: Option<Value<'_>>,
) -> Result<Vec<u8>, SqlError> {
    let is_last = level + 1 == path.len();
    let at = container.keys.iter().position(|key| *key == step.as_bytes());
    let mut pairs: Vec<(&[u8], Value<'_>)> =
        container.keys.iter().copied().zip(container.values.iter().copied()).collect();
    let inside;
    match (at, is_last) {
        (Some(at), false) => {
            inside = match pairs.get(at) {
                Some((_, value)) => changed_inside(*value, path, level, what, new)?,
                None => None,
            };
            if let (Some(bytes), Some(pair)) = (&inside, pairs.get_mut(at)) {
                pair.1 = Value { kind: Kind::Container, bytes };
            }
        }
        (Some(at), true) => match what {
            Change::Delete => {
                pairs.remove(at);
            }
            Change::Set { .. } => {
                if let (Some(pair), Some(new)) = (pairs.get_mut(at), new) {
                    pair.1 = new;
                }
            }
            Change::Insert { .. } => {
                let message = "cannot replace existing key";
                let hint = "Try using the function jsonb_set to replace key value.";
                return Err(invalid(message).with_hint(hint));
            }
        },
        (None, true) if matches!(what, Change::Set { create: true } | Change::Insert { .. }) => {
            pairs.extend(new.map(|new| (step.as_bytes(), new)));
        }
        (None, _) => {}
    }
    object(pairs)
}

fn change_array(
    container: Container<'_>,
    step: &str,
    path: &[Option<String>],
    level: usize,
    what: &Change,
    new: Option<Value<'_>>,
) -> Result<Vec<u8>, SqlError> {
    // As C's strtol, a number may begin with blanks and a sign.
    let number = step.trim_start_matches([' ', '\t', '\n', '\r', '\x0B', '\x0C']).parse::<i32>();
    let number = number.map_err(|_| {
        let message =
            format!("path element at position {} is not an integer: \"{step}\"", level + 1);
        SqlError::new(SqlState::INVALID_TEXT_REPRESENTATION, message)
    })?;
    let mut values = container.values;
    let is_last = level + 1 == path.len();
    let count = values.len();
    // A place before the first element is treated as such only if something is added.
    let at = match usize::try_from(number) {
        Ok(at) => Some(at.min(count)),
        Err(_) => count.checked_sub(number.unsigned_abs() as usize),
    };
    let adds = is_last && matches!(what, Change::Set { create: true } | Change::Insert { .. });
    let inside;
    match at.filter(|&at| at < count) {
        None => match (at, new) {
            (None, Some(new)) if adds => values.insert(0, new),
            (Some(_), Some(new)) if adds => values.push(new),
            _ => {}
        },
        Some(at) if !is_last => {
            inside = match values.get(at) {
                Some(value) => changed_inside(*value, path, level, what, new)?,
                None => None,
            };
            if let (Some(bytes), Some(value)) = (&inside, values.get_mut(at)) {
                *value = Value { kind: Kind::Container, bytes };
            }
        }
        Some(at) => match (what, new) {
            (Change::Delete, _) => {
                values.remove(at);
            }
            (Change::Set { .. }, Some(new)) => {
                values.get_mut(at).into_iter().for_each(|value| *value = new);
            }
            (Change::Insert { after }, Some(new)) => values.insert(at + usize::from(*after), new),
            _ => {}
        },
    }
    array(&values)
}
