//! **Keys of arrays**: bytes that compare as `array_cmp` compares the values.
//!
//! ```text
//!   01 and its key for each element, or 02 if it is null; 00; number of dimensions; sizes; lower bounds
//! ```
//!
//! The key of an element ends by itself, so an array that begins with another one is greater. For
//! example, `'{1,2}' < '{1,2,0}' < '{1,3}'`. Text is in the order of its bytes.

use trunkline_format::Oid;
use trunkline_format::deform::Attribute;
use trunkline_format::text_output::{Base, StringType, Type};

use super::view::{ArrayView, attribute_of};
use crate::error::{SqlError, SqlState};
use crate::functions::call::CallSettings;
use crate::functions::printing::resolve;
use crate::values::{OrderKey, append_escaped};

/// Makes keys of arrays with one type of elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArrayKey {
    attribute: Attribute,
    base: Base,
}

fn damaged() -> SqlError {
    SqlError::new(SqlState::DATA_CORRUPTED, "array: an element of another length")
}

fn fixed<const N: usize>(value: &[u8]) -> Result<[u8; N], SqlError> {
    value.try_into().map_err(|_| damaged())
}

impl ArrayKey {
    /// The keys of arrays whose elements have this type; `None` if we can't compare these.
    ///
    /// # Errors
    /// 0A000: we can't hold values of the type.
    pub fn of(element: Oid, settings: &CallSettings) -> Result<Option<Self>, SqlError> {
        let Type::Base(base) = resolve(element, settings)? else { return Ok(None) };
        let is_known = match base {
            Base::Text(StringType::Json | StringType::NodeTree) | Base::Tid => false,
            Base::U32("xid" | "cid") => false,
            base => OrderKey::of(&Type::Base(base)).is_some(),
        };
        let attribute = attribute_of(element, &*settings.catalog)?;
        Ok(is_known.then_some(Self { attribute, base }))
    }

    /// Whether the elements have a collation, which must be one that compares bytes.
    pub fn is_text(self) -> bool {
        matches!(self.base, Base::Text(_) | Base::Name)
    }

    /// Appends the key of a stored array.
    ///
    /// # Errors
    /// XX001: the array is damaged.
    pub fn append(self, payload: &[u8], key: &mut Vec<u8>) -> Result<(), SqlError> {
        let view = ArrayView::parse(payload)?;
        for element in view.elements(self.attribute)? {
            match element {
                None => key.push(2),
                Some(value) => {
                    key.push(1);
                    self.append_element(&value, key)?;
                }
            }
        }
        append_array_end(&view, key);
        Ok(())
    }

    fn append_element(self, value: &[u8], key: &mut Vec<u8>) -> Result<(), SqlError> {
        append_base_key(self.base, value, key)
    }
}

/// Appends the key of a stored value without parts, so that it ends by itself. Its type must have an
/// order.
pub(in crate::functions) fn append_base_key(
    base: Base,
    value: &[u8],
    key: &mut Vec<u8>,
) -> Result<(), SqlError> {
    match base {
        Base::Int2 => {
            key.extend((i16::from_le_bytes(fixed(value)?) ^ i16::MIN).to_be_bytes());
        }
        Base::Int4 | Base::Date => {
            key.extend((i32::from_le_bytes(fixed(value)?) ^ i32::MIN).to_be_bytes());
        }
        Base::Int8 | Base::Money | Base::Time | Base::Timestamp | Base::Timestamptz => {
            key.extend((i64::from_le_bytes(fixed(value)?) ^ i64::MIN).to_be_bytes());
        }
        Base::U32(_) | Base::RegType(_) => {
            key.extend(u32::from_le_bytes(fixed(value)?).to_be_bytes());
        }
        Base::U64(_) | Base::Lsn => {
            key.extend(u64::from_le_bytes(fixed(value)?).to_be_bytes());
        }
        Base::Float4 => append_float(f32::from_le_bytes(fixed(value)?).into(), key),
        Base::Float8 => append_float(f64::from_le_bytes(fixed(value)?), key),
        Base::Text(StringType::Bpchar) => {
            let blanks = value.iter().rev().take_while(|&&byte| byte == b' ').count();
            append_escaped(value.get(..value.len() - blanks).unwrap_or_default(), key);
        }
        Base::Name => {
            let end = value.iter().position(|&byte| byte == 0).unwrap_or(value.len());
            append_escaped(value.get(..end).unwrap_or_default(), key);
        }
        Base::Text(_) | Base::Bytea => append_escaped(value, key),
        // The length is that of the type.
        Base::Bool | Base::Char | Base::Uuid | Base::Macaddr | Base::Macaddr8 => {
            key.extend(value);
        }
        base => {
            let found = OrderKey::of(&Type::Base(base)).ok_or_else(damaged)?;
            found.append(value, key)?;
        }
    }
    Ok(())
}

/// Appends what follows the elements in the key of an array.
pub(in crate::functions) fn append_array_end(view: &ArrayView<'_>, key: &mut Vec<u8>) {
    key.push(0);
    let dimensions = view.dimensions();
    // There are at most 6.
    key.push(dimensions.len() as u8);
    for dimension in dimensions {
        key.extend((dimension.size as u32).to_be_bytes());
    }
    for dimension in dimensions {
        key.extend((dimension.lower ^ i32::MIN).to_be_bytes());
    }
}

/// -0 is 0, and every NaN is greater than anything else.
fn append_float(value: f64, key: &mut Vec<u8>) {
    let bits = if value.is_nan() { f64::NAN.to_bits() } else { (value + 0.0).to_bits() };
    let bits = bits & !(u64::from(value.is_nan()) << 63);
    let sorted = if bits >> 63 == 1 { !bits } else { bits | 1 << 63 };
    key.extend(sorted.to_be_bytes());
}
