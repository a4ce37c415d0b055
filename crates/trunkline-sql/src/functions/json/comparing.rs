//! Comparisons of `jsonb`, and `@>`.
//!
//! Objects are greater than arrays, and so on down to null. Of two arrays, the one with more elements
//! is greater, whatever they are. For example, `'[1,2]' > '[3]'`.

use std::cmp::Ordering;

use arrow_array::ArrayRef;
use trunkline_format::Oid;
use trunkline_format::btree::Order;

use super::container::{Container, Kind, Value};
use crate::error::{SqlError, SqlState};
use crate::functions::call::{Call, Kernel};
use crate::functions::rows::{Output, binary};
use crate::functions::text::difference;

/// The kernels of this module.
pub(in crate::functions) const COMPARING: &[(&str, Kernel)] = &[
    ("jsonb_eq", |call| equality(call, |equal| equal)),
    ("jsonb_ne", |call| equality(call, |equal| !equal)),
    ("jsonb_lt", |call| order(call, Ordering::is_lt)),
    ("jsonb_le", |call| order(call, Ordering::is_le)),
    ("jsonb_gt", |call| order(call, Ordering::is_gt)),
    ("jsonb_ge", |call| order(call, Ordering::is_ge)),
    ("jsonb_cmp", |call| compare_rows(call, |found| found)),
    ("jsonb_contains", |call| {
        binary(call, |a: &[u8], b: &[u8]| contains(&Container::parse(a)?, &Container::parse(b)?, 0))
    }),
    ("jsonb_contained", |call| {
        binary(call, |a: &[u8], b: &[u8]| contains(&Container::parse(b)?, &Container::parse(a)?, 0))
    }),
];

fn equality(call: &Call<'_>, result: fn(bool) -> bool) -> Result<ArrayRef, SqlError> {
    binary(call, |a: &[u8], b: &[u8]| Ok(result(compare(a, b, |a, b| Ok(a.cmp(b) as i32))? == 0)))
}

fn order(call: &Call<'_>, test: fn(Ordering) -> bool) -> Result<ArrayRef, SqlError> {
    compare_rows(call, |found| test(found.cmp(&0)))
}

/// Strings are ordered by the database's default collation.
fn compare_rows<R: Output>(
    call: &Call<'_>,
    result: impl Fn(i32) -> R,
) -> Result<ArrayRef, SqlError> {
    const DEFAULT: Oid = Oid(100);
    let default = Call { collation: DEFAULT, ..*call };
    binary(call, |a: &[u8], b: &[u8]| {
        let strings = |a: &[u8], b: &[u8]| {
            if a != b {
                default.check_order()?;
            }
            Ok(difference(a, b))
        };
        Ok(result(compare(a, b, strings)?))
    })
}

/// `jbvType`, which decides between values of different types.
fn rank(value: &Value<'_>, container: Option<&Container<'_>>) -> u8 {
    match (value.kind, container) {
        (Kind::Null, _) => 0,
        (Kind::String, _) => 1,
        (Kind::Number, _) => 2,
        (Kind::False | Kind::True, _) => 3,
        (Kind::Container, Some(container)) if container.is_object => 5,
        (Kind::Container, _) => 4,
    }
}

/// `compareJsonbContainers`: below 0, 0 or above 0, found entry by entry, outer containers first, without recursion.
fn compare(
    a: &[u8],
    b: &[u8],
    strings: impl Fn(&[u8], &[u8]) -> Result<i32, SqlError>,
) -> Result<i32, SqlError> {
    let outer = |bytes| Value { kind: Kind::Container, bytes };
    // What is still to be compared; the next pair is the last.
    let mut pairs = vec![(outer(a), outer(b))];
    while let Some((a, b)) = pairs.pop() {
        let (left, right) = (a.container()?, b.container()?);
        let found = match rank(&a, left.as_ref()).cmp(&rank(&b, right.as_ref())) {
            Ordering::Equal => match (&left, &right) {
                (Some(left), Some(right)) => shapes(left, right) as i32,
                _ => scalars(&a, &b, &strings)?,
            },
            other => other as i32,
        };
        if found != 0 {
            return Ok(found);
        }
        let (Some(left), Some(right)) = (left, right) else { continue };
        let key = |bytes| Value { kind: Kind::String, bytes };
        for at in (0..left.values.len()).rev() {
            if let (Some(a), Some(b)) = (left.values.get(at), right.values.get(at)) {
                pairs.push((*a, *b));
            }
            if let (Some(a), Some(b)) = (left.keys.get(at), right.keys.get(at)) {
                pairs.push((key(a), key(b)));
            }
        }
    }
    Ok(0)
}

/// Compares two arrays or two objects by their numbers of entries. A value that is no container is
/// less than any array, except an empty one: the server can't change that order any more.
fn shapes(left: &Container<'_>, right: &Container<'_>) -> Ordering {
    let counts = left.values.len().cmp(&right.values.len());
    counts.then(right.is_scalar.cmp(&left.is_scalar))
}

fn scalars(
    a: &Value<'_>,
    b: &Value<'_>,
    strings: &impl Fn(&[u8], &[u8]) -> Result<i32, SqlError>,
) -> Result<i32, SqlError> {
    match a.kind {
        Kind::String => strings(a.bytes, b.bytes),
        Kind::Number => numbers(a, b).map(|found| found as i32),
        Kind::False | Kind::True => Ok((a.kind == Kind::True).cmp(&(b.kind == Kind::True)) as i32),
        Kind::Null | Kind::Container => Ok(0),
    }
}

fn numbers(a: &Value<'_>, b: &Value<'_>) -> Result<Ordering, SqlError> {
    let found = Order::Numeric.compare(a.number()?, b.number()?);
    found.ok_or_else(|| SqlError::new(SqlState::DATA_CORRUPTED, "jsonb: a damaged number"))
}

/// Whether two values that are no containers are equal.
fn is_same(a: &Value<'_>, b: &Value<'_>) -> Result<bool, SqlError> {
    match (a.kind, b.kind) {
        (Kind::Number, Kind::Number) => numbers(a, b).map(Ordering::is_eq),
        _ => Ok(a == b),
    }
}

/// The deepest nesting that `@>` compares.
const DEPTH_MAX: u32 = 1000;

/// `JsonbDeepContains`: whether `a` contains all of `b`. An array may contain a bare value, too.
fn contains(a: &Container<'_>, b: &Container<'_>, depth: u32) -> Result<bool, SqlError> {
    if depth > DEPTH_MAX {
        let code = SqlState::STATEMENT_TOO_COMPLEX;
        return Err(SqlError::new(code, "stack depth limit exceeded"));
    }
    if a.is_object != b.is_object || (a.is_scalar && !b.is_scalar) {
        return Ok(false);
    }
    for (at, wanted) in b.values.iter().enumerate() {
        let candidates = match b.keys.get(at) {
            None => a.values.clone(),
            Some(key) => a.get(key).into_iter().collect(),
        };
        let inner = wanted.container()?;
        let mut is_found = false;
        for candidate in candidates {
            is_found = match (&inner, candidate.kind) {
                (Some(inner), Kind::Container) => {
                    contains(&Container::parse(candidate.bytes)?, inner, depth + 1)?
                }
                (None, _) => is_same(&candidate, wanted)?,
                _ => false,
            };
            if is_found {
                break;
            }
        }
        if !is_found {
            return Ok(false);
        }
    }
    Ok(true)
}
