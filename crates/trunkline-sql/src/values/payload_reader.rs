//! Reads the values of an Arrow array back as stored, for output functions.
//!
//! ```
//! use trunkline_sql::values::{Carrier, PayloadReader};
//! let array = Carrier::Int32.constant(Some(&7_i32.to_le_bytes()))?;
//! let mut reader = PayloadReader::new(Carrier::Int32, &array)?;
//! assert_eq!(reader.get(0), Some(&7_i32.to_le_bytes()[..]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Float32Type, Float64Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt32Type, UInt64Type,
};
use arrow_array::{
    Array, ArrayRef, BinaryViewArray, BooleanArray, FixedSizeBinaryArray, PrimitiveArray,
    StringViewArray,
};

use super::carrier::Carrier;
use crate::error::SqlError;

/// `NAMEDATALEN`: the stored size of a `name`.
const NAME_SIZE: usize = 64;

/// Returns the values of one array as payloads.
#[derive(Debug)]
pub struct PayloadReader<'a> {
    carrier: Carrier,
    values: Values<'a>,
    /// The last value of a type whose array doesn't hold the stored bytes themselves.
    buffer: Vec<u8>,
}

#[derive(Debug)]
enum Values<'a> {
    Bool(&'a BooleanArray),
    Int16(&'a PrimitiveArray<Int16Type>),
    Int32(&'a PrimitiveArray<Int32Type>),
    Int64(&'a PrimitiveArray<Int64Type>),
    UInt8(&'a PrimitiveArray<UInt8Type>),
    UInt32(&'a PrimitiveArray<UInt32Type>),
    UInt64(&'a PrimitiveArray<UInt64Type>),
    Float32(&'a PrimitiveArray<Float32Type>),
    Float64(&'a PrimitiveArray<Float64Type>),
    Text(&'a StringViewArray),
    Fixed(&'a FixedSizeBinaryArray),
    Bytes(&'a BinaryViewArray),
}

impl<'a> PayloadReader<'a> {
    /// Reads `array`, whose values have this carrier.
    ///
    /// # Errors
    /// The array is of another Arrow type, which is a bug in the caller.
    pub fn new(carrier: Carrier, array: &'a ArrayRef) -> Result<Self, SqlError> {
        let wrong = || {
            let (expected, found) = (carrier.data_type(), array.data_type());
            SqlError::internal(format!("array of {found}, expected {expected}"))
        };
        if *array.data_type() != carrier.data_type() {
            return Err(wrong());
        }
        let values = match carrier {
            Carrier::Bool => array.as_boolean_opt().map(Values::Bool),
            Carrier::Int16 => array.as_primitive_opt().map(Values::Int16),
            Carrier::Int32 => array.as_primitive_opt().map(Values::Int32),
            Carrier::Int64 => array.as_primitive_opt().map(Values::Int64),
            Carrier::UInt8 => array.as_primitive_opt().map(Values::UInt8),
            Carrier::UInt32 => array.as_primitive_opt().map(Values::UInt32),
            Carrier::UInt64 | Carrier::Tid => array.as_primitive_opt().map(Values::UInt64),
            Carrier::Float32 => array.as_primitive_opt().map(Values::Float32),
            Carrier::Float64 => array.as_primitive_opt().map(Values::Float64),
            Carrier::Text | Carrier::Name => array.as_string_view_opt().map(Values::Text),
            Carrier::Fixed(_) => array.as_fixed_size_binary_opt().map(Values::Fixed),
            Carrier::Bytes => array.as_binary_view_opt().map(Values::Bytes),
        };
        Ok(Self { carrier, values: values.ok_or_else(wrong)?, buffer: Vec::new() })
    }

    /// The value in row `row` as it is stored, without a varlena header, or `None` if it is null.
    ///
    /// # Panics
    /// If the array has no such row.
    pub fn get(&mut self, row: usize) -> Option<&[u8]> {
        let buffer = &mut self.buffer;
        buffer.clear();
        match self.values {
            Values::Bool(array) => valid(array, row)
                .then(|| buffer.push(u8::from(array.value(row))))
                .map(|()| buffer.as_slice()),
            Values::Int16(array) => number(array, row, buffer, |value| value.to_le_bytes()),
            Values::Int32(array) => number(array, row, buffer, |value| value.to_le_bytes()),
            Values::Int64(array) => number(array, row, buffer, |value| value.to_le_bytes()),
            Values::UInt8(array) => number(array, row, buffer, |value| value.to_le_bytes()),
            Values::UInt32(array) => number(array, row, buffer, |value| value.to_le_bytes()),
            Values::UInt64(array) if self.carrier == Carrier::Tid => {
                number(array, row, buffer, tid_bytes)
            }
            Values::UInt64(array) => number(array, row, buffer, |value| value.to_le_bytes()),
            Values::Float32(array) => number(array, row, buffer, |value| value.to_le_bytes()),
            Values::Float64(array) => number(array, row, buffer, |value| value.to_le_bytes()),
            Values::Text(array) if self.carrier == Carrier::Name => valid(array, row).then(|| {
                buffer.extend_from_slice(array.value(row).as_bytes());
                buffer.resize(NAME_SIZE, 0);
                buffer.as_slice()
            }),
            Values::Text(array) => valid(array, row).then(|| array.value(row).as_bytes()),
            Values::Fixed(array) => valid(array, row).then(|| array.value(row)),
            Values::Bytes(array) => valid(array, row).then(|| array.value(row)),
        }
    }
}

fn valid(array: &dyn Array, row: usize) -> bool {
    !array.is_null(row)
}

/// Appends a number's bytes to the empty `buffer`.
fn number<'b, T: arrow_array::ArrowPrimitiveType, const N: usize>(
    array: &PrimitiveArray<T>,
    row: usize,
    buffer: &'b mut Vec<u8>,
    bytes: impl Fn(T::Native) -> [u8; N],
) -> Option<&'b [u8]> {
    if array.is_null(row) {
        return None;
    }
    buffer.extend_from_slice(&bytes(array.value(row)));
    Some(buffer)
}

/// A TID as it is stored: the upper and the lower half of the block, then the item.
fn tid_bytes(number: u64) -> [u8; 6] {
    let [item, high_item, a, b, c, d, _, _] = number.to_le_bytes();
    [c, d, a, b, item, high_item]
}
