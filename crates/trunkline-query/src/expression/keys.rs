//! Keys: values by which others are sorted, grouped and joined.
//!
//! DataFusion sorts, groups and joins by what is in the arrays. Where that isn't PostgreSQL's order or
//! equality, the expression is wrapped in a key that compares as PostgreSQL compares the values. For
//! example, 1.5 and 1.50 have the same key. [`OrderKey`] makes keys of stored values; an enum's labels
//! are sorted by their places in the catalog.

use std::sync::Arc;

use arrow_array::builder::{BinaryViewBuilder, Int32Builder};
use arrow_array::cast::AsArray;
use arrow_array::types::UInt32Type;
use arrow_array::{Array, ArrayRef};
use trunkline_aio::facade::hash::Map;
use trunkline_format::Oid;
use trunkline_format::text_output::{Base, StringType, Type};
use trunkline_sql::SqlError;
use trunkline_sql::bound::SqlType;
use trunkline_sql::functions::{ArrayKey, CallSettings, ValueKeys, append_jsonb_key};
use trunkline_sql::values::{Carrier, OrderKey};

use super::arrays::ElementType;
use crate::environment::Environment;

/// The collation `default`, in which `jsonb` compares strings.
const DEFAULT_COLLATION: Oid = Oid(100);

/// What a key is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyUse {
    /// Grouping, joining, `DISTINCT`: equal keys for equal values.
    Equality,
    /// Sorting.
    Order,
}

/// How a key is computed from a value.
#[derive(Debug, Clone)]
pub(crate) enum Key {
    /// From the stored value alone.
    Stored(OrderKey),
    /// Of a `jsonb`.
    Jsonb,
    /// Of an array.
    Array(ArrayKey),
    /// The place of each label of an enum, by its OID.
    Enum(Arc<Map<u32, i32>>),
    /// Of a value with parts of any type.
    Value(Arc<ValueKey>),
}

/// What the keys of values with parts depend on.
#[derive(Debug)]
pub(crate) struct ValueKey {
    ty: Type,
    collation: Oid,
    order: bool,
    settings: Arc<CallSettings>,
}

impl ValueKey {
    fn of(environment: &Environment, resolved: Type, ty: SqlType, order: bool) -> Key {
        let settings = Arc::clone(&environment.settings);
        let collation = ty.collation;
        Key::Value(Arc::new(Self { ty: resolved, collation, order, settings }))
    }
}

impl Key {
    /// The key for values of a type; `None` if the values themselves will do.
    ///
    /// # Errors
    /// 0A000: we can't compare values of this type, or only by a locale.
    pub(crate) fn of(
        environment: &Environment,
        ty: SqlType,
        usage: KeyUse,
    ) -> Result<Option<Self>, SqlError> {
        let order = usage == KeyUse::Order;
        let resolved = match ty.oid.0 {
            // `unknown` and `cstring`
            705 | 2275 => Type::Base(Base::Text(StringType::Text)),
            _ => environment.resolve(ty.oid)?,
        };
        let base = match &resolved {
            Type::Base(Base::Jsonb) => {
                if order {
                    environment.require_bytewise(DEFAULT_COLLATION)?;
                }
                return Ok(Some(Self::Jsonb));
            }
            Type::Base(Base::Record) => {
                return Ok(Some(ValueKey::of(environment, resolved, ty, order)));
            }
            Type::Array(_) => {
                let key = array_key(environment, ty, order)?;
                let any = || ValueKey::of(environment, resolved.clone(), ty, order);
                return Ok(Some(key.unwrap_or_else(any)));
            }
            Type::Base(base) => *base,
            Type::Enum(..) if !order => return Ok(None),
            Type::Enum(..) => return Ok(Some(enum_key(environment, ty))),
            Type::Composite(_) | Type::Range(_) | Type::Multirange(..) => {
                return Ok(Some(ValueKey::of(environment, resolved, ty, order)));
            }
        };
        let key = OrderKey::of(&resolved).ok_or_else(|| refuse(environment, ty))?;
        if matches!(base, Base::Text(_) | Base::Name) {
            if !environment.is_deterministic(ty.collation) {
                let message = "nondeterministic collations are not supported by trunkline";
                return Err(SqlError::unsupported(message));
            }
            if order {
                environment.require_bytewise(ty.collation)?;
            }
        }
        // Transaction and command ids are equal or not, but have no order.
        if order && matches!(base, Base::U32("xid" | "cid")) {
            return Err(refuse(environment, ty));
        }
        Ok((key != OrderKey::Natural).then_some(Self::Stored(key)))
    }

    /// The carrier of the keys.
    pub(crate) fn carrier(&self) -> Carrier {
        match self {
            Self::Stored(OrderKey::Float4) => Carrier::Float32,
            Self::Stored(OrderKey::Float8) => Carrier::Float64,
            Self::Stored(OrderKey::Padded) => Carrier::Text,
            Self::Stored(_) | Self::Jsonb | Self::Array(_) | Self::Value(_) => Carrier::Bytes,
            Self::Enum(_) => Carrier::Int32,
        }
    }

    /// Computes the keys of an array's values. The key of a null is null.
    ///
    /// # Errors
    /// XX001: a stored value is damaged.
    pub(crate) fn apply(&self, array: &ArrayRef) -> Result<ArrayRef, SqlError> {
        let ranks = match self {
            Self::Stored(key) => return key.keys(array),
            Self::Jsonb => return computed(array, append_jsonb_key),
            Self::Array(key) => {
                return computed(array, |payload, out| key.append(payload, out));
            }
            Self::Value(key) => {
                let mut keys = ValueKeys::new(&key.settings, key.order);
                return computed(array, |payload, out| {
                    keys.append(&key.ty, payload, key.collation, out)
                });
            }
            Self::Enum(ranks) => ranks,
        };
        let values = array.as_primitive_opt::<UInt32Type>().ok_or_else(|| {
            SqlError::internal(format!("a key of an array of {}", array.data_type()))
        })?;
        let mut keys = Int32Builder::with_capacity(values.len());
        for value in values {
            let rank = value.map(|label| ranks.get(&label).copied().ok_or_else(damaged));
            keys.append_option(rank.transpose()?);
        }
        Ok(Arc::new(keys.finish()))
    }
}

/// The keys of an array of stored values, each of which `append` computes.
fn computed(
    array: &ArrayRef,
    mut append: impl FnMut(&[u8], &mut Vec<u8>) -> Result<(), SqlError>,
) -> Result<ArrayRef, SqlError> {
    let values = array.as_binary_view_opt();
    let values = values.ok_or_else(|| SqlError::internal("a value that is not stored bytes"))?;
    let mut keys = BinaryViewBuilder::with_capacity(values.len());
    let mut key = Vec::new();
    for value in values {
        key.clear();
        match value {
            None => keys.append_null(),
            Some(value) => {
                append(value, &mut key)?;
                keys.append_value(&key);
            }
        }
    }
    Ok(Arc::new(keys.finish()))
}

/// The key of an array whose elements have no parts; `None` for other arrays.
fn array_key(environment: &Environment, ty: SqlType, order: bool) -> Result<Option<Key>, SqlError> {
    let element = ElementType::of(environment, ty.oid)?.oid;
    let key = ArrayKey::of(element, &environment.settings)?;
    let Some(key) = key else { return Ok(None) };
    if key.is_text() {
        if !environment.is_deterministic(ty.collation) {
            return Err(refuse(environment, ty));
        }
        if order {
            environment.require_bytewise(ty.collation)?;
        }
    }
    Ok(Some(Key::Array(key)))
}

fn enum_key(environment: &Environment, ty: SqlType) -> Key {
    let labels = environment.settings.catalog.enum_labels(ty.oid);
    Key::Enum(Arc::new((0..).zip(labels).map(|(rank, (oid, _))| (oid.0, rank)).collect()))
}

fn refuse(environment: &Environment, ty: SqlType) -> SqlError {
    let row = environment.settings.catalog.type_row(ty.oid);
    let name = row.map(|row| String::from_utf8_lossy(&row.name).into_owned());
    let name = name.unwrap_or_else(|| ty.oid.to_string());
    let message = format!("comparing values of type {name} is not supported by trunkline");
    SqlError::unsupported(message)
}

fn damaged() -> SqlError {
    let message = "a stored value is damaged and cannot be compared";
    SqlError::new(trunkline_sql::SqlState::DATA_CORRUPTED, message)
}
