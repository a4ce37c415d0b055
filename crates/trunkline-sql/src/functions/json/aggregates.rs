//! `json_agg`, `json_object_agg` and those for `jsonb`.
//!
//! A state is the text of its elements, each with the separator before it. For example, `json_agg(x)`
//! of 1 and 2 keeps `, 1, 2`, and the result is `[1, 2]`. That way, states of several workers can be put
//! together.

use arrow_array::{Array, ArrayRef};
use trunkline_aio::facade::hash::Set;
use trunkline_format::text_output::{Base, StringType, Type};

use super::converting::stored;
use super::writing::append_json;
use crate::error::{SqlError, SqlState};
use crate::functions::aggregate::{AggregateCall, AggregateDefinition, Aggregation, GroupedRows};
use crate::functions::call::CallSettings;
use crate::functions::printing::{damaged, into_text, resolve};
use crate::values::{Carrier, ColumnBuilder, PayloadReader};

/// What an aggregate of this module does.
#[derive(Debug, Clone, Copy)]
struct Kind {
    /// Pairs of keys and values, not values alone.
    object: bool,
    /// The result is `jsonb`.
    binary: bool,
    /// Nulls are left out.
    strict: bool,
    /// Keys must differ.
    unique: bool,
}

const fn kind(object: bool, binary: bool, strict: bool, unique: bool) -> Kind {
    Kind { object, binary, strict, unique }
}

macro_rules! aggregates {
    ($($transition:literal, $last:literal, $kind:expr;)*) => {
        &[$(AggregateDefinition {
            transition: $transition,
            last: $last,
            state: |_| vec![Carrier::Bytes],
            start: |call| Ok(Box::new(JsonAggregation::new(call, $kind)?)),
        },)*]
    };
}

/// The aggregates of this module.
pub(in crate::functions) const AGGREGATES: &[AggregateDefinition] = aggregates! {
    "json_agg_transfn", "json_agg_finalfn", kind(false, false, false, false);
    "json_agg_strict_transfn", "json_agg_finalfn", kind(false, false, true, false);
    "jsonb_agg_transfn", "jsonb_agg_finalfn", kind(false, true, false, false);
    "jsonb_agg_strict_transfn", "jsonb_agg_finalfn", kind(false, true, true, false);
    "json_object_agg_transfn", "json_object_agg_finalfn", kind(true, false, false, false);
    "json_object_agg_strict_transfn", "json_object_agg_finalfn", kind(true, false, true, false);
    "json_object_agg_unique_transfn", "json_object_agg_finalfn", kind(true, false, false, true);
    "json_object_agg_unique_strict_transfn", "json_object_agg_finalfn", kind(true, false, true, true);
    "jsonb_object_agg_transfn", "jsonb_object_agg_finalfn", kind(true, true, false, false);
    "jsonb_object_agg_strict_transfn", "jsonb_object_agg_finalfn", kind(true, true, true, false);
    "jsonb_object_agg_unique_transfn", "jsonb_object_agg_finalfn", kind(true, true, false, true);
    "jsonb_object_agg_unique_strict_transfn", "jsonb_object_agg_finalfn", kind(true, true, true, true);
};

/// `MaxAllocSize`: the most bytes that a value may have.
const VALUE_MAX: usize = 0x3FFF_FFFF;

fn missing() -> SqlError {
    SqlError::internal("an aggregate's argument or state is missing")
}

/// The states of all groups. A group without rows has none, and its result is null.
#[derive(Debug)]
struct JsonAggregation {
    kind: Kind,
    settings: CallSettings,
    types: Vec<Type>,
    carriers: Vec<Carrier>,
    states: Vec<Option<Collected>>,
}

#[derive(Debug, Default)]
struct Collected {
    text: Vec<u8>,
    keys: Set<Vec<u8>>,
}

impl JsonAggregation {
    fn new(call: &AggregateCall, kind: Kind) -> Result<Self, SqlError> {
        let resolved = call.argument_types.iter().map(|&oid| match oid.0 {
            // `unknown`
            705 => Ok(Type::Base(Base::Text(StringType::Text))),
            _ => resolve(oid, &call.settings),
        });
        let types = resolved.collect::<Result<_, _>>()?;
        let (settings, carriers) = (call.settings.clone(), call.argument_carriers.clone());
        Ok(Self { kind, settings, types, carriers, states: Vec::new() })
    }

    fn grow(&mut self, count: usize) {
        self.states.resize_with(count.max(self.states.len()), || None);
    }

    /// The key of a pair as JSON, which is always a string.
    fn key(&self, value: Option<&[u8]>) -> Result<Vec<u8>, SqlError> {
        let Some(value) = value else { return Err(null_key(self.kind, self.settings.major)) };
        let ty = self.types.first().ok_or_else(missing)?;
        let is_structured = matches!(
            ty,
            Type::Array(_)
                | Type::Composite(_)
                | Type::Base(Base::Record | Base::Jsonb | Base::Text(StringType::Json))
        );
        if is_structured {
            let message = "key value must be scalar, not array, composite, or json";
            return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message));
        }
        let mut key = Vec::new();
        append_json(ty, value, &self.settings, false, &mut key)?;
        if key.first() != Some(&b'"') {
            key.insert(0, b'"');
            key.push(b'"');
        }
        Ok(key)
    }

    fn add(
        &mut self,
        group: usize,
        key: Option<Option<&[u8]>>,
        value: Option<&[u8]>,
    ) -> Result<(), SqlError> {
        let written = match key {
            // A pair that is left out may still not have a null key.
            Some(key) => Some(self.key(key)?),
            None => None,
        };
        let outside = || SqlError::internal("a group beyond their number");
        let state = self.states.get_mut(group).ok_or_else(outside)?;
        // A group whose values are all left out has an empty result, not none.
        let state = state.get_or_insert_with(Collected::default);
        if value.is_none() && self.kind.strict {
            return Ok(());
        }
        state.text.extend_from_slice(b", ");
        if let Some(key) = written {
            if self.kind.unique && !state.keys.insert(key.clone()) {
                let key = String::from_utf8_lossy(&key).into_owned();
                let message = match self.kind.binary {
                    true => "duplicate JSON object key value".to_owned(),
                    false => format!("duplicate JSON object key value: {key}"),
                };
                return Err(SqlError::new(SqlState::DUPLICATE_JSON_OBJECT_KEY_VALUE, message));
            }
            state.text.extend_from_slice(&key);
            state.text.extend_from_slice(b" : ");
        }
        let ty = self.types.last().ok_or_else(missing)?;
        match value {
            None => state.text.extend_from_slice(b"null"),
            Some(value) => {
                let is_structured =
                    matches!(ty, Type::Array(_) | Type::Composite(_) | Type::Base(Base::Record));
                if is_structured && !self.kind.object {
                    state.text.extend_from_slice(b"\n ");
                }
                append_json(ty, value, &self.settings, false, &mut state.text)?;
            }
        }
        if state.text.len() > VALUE_MAX {
            let error = SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, "out of memory");
            return Err(error.with_detail("The result of an aggregate would be larger than 1 GB."));
        }
        Ok(())
    }

    /// The result of a group.
    fn result(&self, state: &Collected) -> Result<Vec<u8>, SqlError> {
        let (start, end): (&[u8], &[u8]) =
            if self.kind.object { (b"{ ", b" }") } else { (b"[", b"]") };
        // Without the first separator.
        let text = &state.text;
        let elements = text.strip_prefix(b", \n ").or_else(|| text.strip_prefix(b", "));
        let text = [start, elements.unwrap_or_default(), end].concat();
        if !self.kind.binary {
            return Ok(text);
        }
        stored(&into_text(text)?, &self.settings)
    }
}

fn null_key(kind: Kind, major: u32) -> SqlError {
    match (kind.binary, major) {
        (false, 16..) => {
            let message = "null value not allowed for object key";
            SqlError::new(SqlState::NULL_VALUE_NOT_ALLOWED, message)
        }
        _ => {
            let message = "field name must not be null";
            SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
        }
    }
}

impl Aggregation for JsonAggregation {
    fn update(&mut self, rows: &GroupedRows<'_>) -> Result<(), SqlError> {
        self.grow(rows.group_count);
        let carriers = self.carriers.clone();
        let mut readers = rows.arguments.iter().zip(carriers).map(|(argument, carrier)| {
            Ok((argument, PayloadReader::new(carrier, argument.array())?))
        });
        let mut readers = readers.by_ref().collect::<Result<Vec<_>, SqlError>>()?;
        for (row, group) in rows.rows() {
            match readers.as_mut_slice() {
                [(argument, values)] => {
                    let value = values.get(argument.row(row));
                    self.add(group, None, value)?;
                }
                [(first, keys), (second, values)] => {
                    let key = keys.get(first.row(row)).map(<[u8]>::to_vec);
                    self.add(group, Some(key.as_deref()), values.get(second.row(row)))?;
                }
                _ => return Err(missing()),
            }
        }
        Ok(())
    }

    fn merge(
        &mut self,
        states: &[ArrayRef],
        groups: &[usize],
        group_count: usize,
    ) -> Result<(), SqlError> {
        self.grow(group_count);
        let mut texts = PayloadReader::new(Carrier::Bytes, states.first().ok_or_else(missing)?)?;
        for (row, &group) in groups.iter().enumerate() {
            let Some(text) = texts.get(row) else { continue };
            if self.kind.unique {
                return Err(SqlError::internal("an aggregate of unique keys in two phases"));
            }
            let state = self.states.get_mut(group).ok_or_else(missing)?;
            state.get_or_insert_with(Collected::default).text.extend_from_slice(text);
        }
        Ok(())
    }

    fn finish(&mut self, count: usize) -> Result<ArrayRef, SqlError> {
        self.grow(count);
        let carrier = if self.kind.binary { Carrier::Bytes } else { Carrier::Text };
        let mut column = ColumnBuilder::new(carrier, count);
        let states: Vec<_> = self.states.drain(..count).collect();
        for state in states {
            match state {
                Some(state) => column.append(&self.result(&state)?).map_err(damaged)?,
                None => column.append_null(),
            }
        }
        Ok(column.finish())
    }

    fn partial(&mut self, count: usize) -> Result<Vec<ArrayRef>, SqlError> {
        self.grow(count);
        let mut column = ColumnBuilder::new(Carrier::Bytes, count);
        for state in self.states.drain(..count) {
            match state {
                Some(state) => column.append(&state.text).map_err(damaged)?,
                None => column.append_null(),
            }
        }
        let column = column.finish();
        debug_assert_eq!(column.len(), count, "one state for each group");
        Ok(vec![column])
    }

    fn size(&self) -> usize {
        let states = self.states.capacity() * size_of::<Option<Collected>>();
        states + self.states.iter().flatten().map(|state| state.text.capacity()).sum::<usize>()
    }
}
