//! Builds an Arrow array from the payloads of stored values.
//!
//! ```
//! use arrow_array::{cast::AsArray, types::Int32Type};
//! use trunkline_sql::values::{Carrier, ColumnBuilder};
//! let mut column = ColumnBuilder::new(Carrier::Int32, 2);
//! column.append(&7_i32.to_le_bytes())?;
//! column.append_null();
//! let array = column.finish();
//! assert_eq!(array.as_primitive::<Int32Type>().iter().collect::<Vec<_>>(), [Some(7), None]);
//! # Ok::<(), trunkline_format::text_output::ValueError>(())
//! ```

use arrow_array::builder::{
    ArrayBuilder, BinaryViewBuilder, BooleanBuilder, FixedSizeBinaryBuilder, Float32Builder,
    Float64Builder, Int16Builder, Int32Builder, Int64Builder, PrimitiveBuilder, StringViewBuilder,
    UInt8Builder, UInt32Builder, UInt64Builder,
};
use arrow_array::{ArrayRef, ArrowPrimitiveType, new_null_array};
use trunkline_format::Tid;
use trunkline_format::text_output::ValueError;

use super::carrier::Carrier;

/// `NAMEDATALEN`: the stored size of a `name`.
const NAME_SIZE: usize = 64;

/// An array under construction.
#[derive(Debug)]
pub struct ColumnBuilder {
    carrier: Carrier,
    values: Values,
}

#[derive(Debug)]
enum Values {
    Bool(BooleanBuilder),
    Int16(Int16Builder),
    Int32(Int32Builder),
    Int64(Int64Builder),
    UInt8(UInt8Builder),
    UInt32(UInt32Builder),
    UInt64(UInt64Builder),
    Float32(Float32Builder),
    Float64(Float64Builder),
    Text(StringViewBuilder),
    Fixed(FixedSizeBinaryBuilder),
    Bytes(BinaryViewBuilder),
}

/// Calls a method that all builders have.
macro_rules! each {
    ($values:expr, $builder:ident => $call:expr) => {
        match $values {
            Values::Bool($builder) => $call,
            Values::Int16($builder) => $call,
            Values::Int32($builder) => $call,
            Values::Int64($builder) => $call,
            Values::UInt8($builder) => $call,
            Values::UInt32($builder) => $call,
            Values::UInt64($builder) => $call,
            Values::Float32($builder) => $call,
            Values::Float64($builder) => $call,
            Values::Text($builder) => $call,
            Values::Fixed($builder) => $call,
            Values::Bytes($builder) => $call,
        }
    };
}

impl ColumnBuilder {
    /// An empty array with room for `capacity` values.
    pub fn new(carrier: Carrier, capacity: usize) -> Self {
        let values = match carrier {
            Carrier::Bool => Values::Bool(BooleanBuilder::with_capacity(capacity)),
            Carrier::Int16 => Values::Int16(Int16Builder::with_capacity(capacity)),
            Carrier::Int32 => Values::Int32(Int32Builder::with_capacity(capacity)),
            Carrier::Int64 => Values::Int64(Int64Builder::with_capacity(capacity)),
            Carrier::UInt8 => Values::UInt8(UInt8Builder::with_capacity(capacity)),
            Carrier::UInt32 => Values::UInt32(UInt32Builder::with_capacity(capacity)),
            Carrier::UInt64 | Carrier::Tid => {
                Values::UInt64(UInt64Builder::with_capacity(capacity))
            }
            Carrier::Float32 => Values::Float32(Float32Builder::with_capacity(capacity)),
            Carrier::Float64 => Values::Float64(Float64Builder::with_capacity(capacity)),
            Carrier::Text | Carrier::Name => {
                Values::Text(StringViewBuilder::with_capacity(capacity))
            }
            Carrier::Fixed(bytes) => {
                let bytes = i32::from(bytes);
                Values::Fixed(FixedSizeBinaryBuilder::with_capacity(capacity, bytes))
            }
            Carrier::Bytes => Values::Bytes(BinaryViewBuilder::with_capacity(capacity)),
        };
        Self { carrier, values }
    }

    /// Appends a value, given as it is stored, without a varlena header. Text must be in UTF-8.
    ///
    /// # Errors
    /// The value has the wrong length, or a text is not valid UTF-8.
    #[inline]
    pub fn append(&mut self, payload: &[u8]) -> Result<(), ValueError> {
        match &mut self.values {
            Values::Int32(values) => values.append_value(i32::from_le_bytes(fixed(payload)?)),
            Values::Int64(values) => values.append_value(i64::from_le_bytes(fixed(payload)?)),
            Values::Bool(values) => values.append_value(fixed::<1>(payload)? != [0]),
            Values::Int16(values) => values.append_value(i16::from_le_bytes(fixed(payload)?)),
            Values::UInt8(values) => values.append_value(u8::from_le_bytes(fixed(payload)?)),
            Values::UInt32(values) => values.append_value(u32::from_le_bytes(fixed(payload)?)),
            Values::UInt64(values) => values.append_value(match self.carrier {
                Carrier::Tid => tid_number(Tid::from_bytes(fixed(payload)?)),
                _ => u64::from_le_bytes(fixed(payload)?),
            }),
            Values::Float32(values) => values.append_value(f32::from_le_bytes(fixed(payload)?)),
            Values::Float64(values) => values.append_value(f64::from_le_bytes(fixed(payload)?)),
            Values::Text(values) => {
                let text = match self.carrier {
                    Carrier::Name => payload.split(|&byte| byte == 0).next().unwrap_or_default(),
                    _ => payload,
                };
                let what = "not valid UTF-8";
                let text = std::str::from_utf8(text)
                    .map_err(|_| ValueError::Malformed { type_name: "text", what })?;
                values.append_value(text);
            }
            Values::Fixed(values) => {
                let found = payload.len();
                values.append_value(payload).map_err(|_| {
                    let expected = self.carrier.fixed_length().unwrap_or_default();
                    ValueError::Length { type_name: "fixed-length type", expected, found }
                })?;
            }
            Values::Bytes(values) => values.append_value(payload),
        }
        Ok(())
    }

    /// Appends a value for each row: the bytes of a fixed-length value at `offset` in the row's data.
    /// This does the same as [`ColumnBuilder::append`] for every row, but it looks at the type only
    /// once, which makes it several times as fast.
    ///
    /// # Errors
    /// The number of the first row whose value can't be read, because the row ends before it or
    /// because the type has no fixed length. Values may have been appended for rows before it.
    pub fn append_at(&mut self, rows: &[&[u8]], offset: usize) -> Result<(), usize> {
        match &mut self.values {
            Values::Int32(values) => numbers(values, rows, offset, i32::from_le_bytes),
            Values::Int64(values) => numbers(values, rows, offset, i64::from_le_bytes),
            Values::Int16(values) => numbers(values, rows, offset, i16::from_le_bytes),
            Values::UInt8(values) => numbers(values, rows, offset, u8::from_le_bytes),
            Values::UInt32(values) => numbers(values, rows, offset, u32::from_le_bytes),
            Values::UInt64(values) if self.carrier == Carrier::Tid => {
                numbers(values, rows, offset, |bytes| tid_number(Tid::from_bytes(bytes)))
            }
            Values::UInt64(values) => numbers(values, rows, offset, u64::from_le_bytes),
            Values::Float32(values) => numbers(values, rows, offset, f32::from_le_bytes),
            Values::Float64(values) => numbers(values, rows, offset, f64::from_le_bytes),
            Values::Bool(_) => self.append_each(rows, offset, 1),
            Values::Fixed(_) => {
                let length = self.carrier.fixed_length().unwrap_or_default();
                self.append_each(rows, offset, length)
            }
            Values::Text(_) if self.carrier == Carrier::Name => {
                self.append_each(rows, offset, NAME_SIZE)
            }
            Values::Text(_) | Values::Bytes(_) => Err(0),
        }
    }

    fn append_each(&mut self, rows: &[&[u8]], offset: usize, length: usize) -> Result<(), usize> {
        for (number, row) in rows.iter().enumerate() {
            let value = row.get(offset..).and_then(|row| row.get(..length)).ok_or(number)?;
            self.append(value).map_err(|_| number)?;
        }
        Ok(())
    }

    /// Appends a null.
    #[inline]
    pub fn append_null(&mut self) {
        each!(&mut self.values, values => values.append_null());
    }

    /// The number of values so far.
    pub fn len(&self) -> usize {
        each!(&self.values, values => values.len())
    }

    /// Whether there is no value yet.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the array, and starts an empty one.
    pub fn finish(&mut self) -> ArrayRef {
        each!(&mut self.values, values => ArrayBuilder::finish(values))
    }
}

impl Carrier {
    /// An array of one value: the payload of a constant, or null.
    ///
    /// # Errors
    /// As for [`ColumnBuilder::append`].
    pub fn constant(self, payload: Option<&[u8]>) -> Result<ArrayRef, ValueError> {
        let Some(payload) = payload else { return Ok(new_null_array(&self.data_type(), 1)) };
        let mut column = ColumnBuilder::new(self, 1);
        column.append(payload)?;
        Ok(column.finish())
    }

    /// The length of a value of [`Carrier::Fixed`].
    fn fixed_length(self) -> Option<usize> {
        match self {
            Self::Fixed(bytes) => Some(usize::from(bytes)),
            _ => None,
        }
    }
}

/// Appends numbers in blocks, because appending them one by one would update the null buffer each time.
#[inline]
fn numbers<T: ArrowPrimitiveType, const N: usize>(
    values: &mut PrimitiveBuilder<T>,
    rows: &[&[u8]],
    offset: usize,
    decode: impl Fn([u8; N]) -> T::Native,
) -> Result<(), usize> {
    let mut block = [T::default_value(); 64];
    for (first, rows) in (0..).step_by(block.len()).zip(rows.chunks(block.len())) {
        for (number, (row, value)) in rows.iter().zip(&mut block).enumerate() {
            let bytes = row.get(offset..).and_then(|row| row.first_chunk());
            *value = decode(*bytes.ok_or(first + number)?);
        }
        values.append_slice(block.get(..rows.len()).unwrap_or_default());
    }
    Ok(())
}

/// A TID as a number that sorts like the TID.
fn tid_number(tid: Tid) -> u64 {
    u64::from(tid.block) << 16 | u64::from(tid.item)
}

/// The bytes of a fixed-length value.
#[inline]
fn fixed<const N: usize>(payload: &[u8]) -> Result<[u8; N], ValueError> {
    payload.try_into().map_err(|_| ValueError::Length {
        type_name: "fixed-length type",
        expected: N,
        found: payload.len(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::PayloadReader;

    /// Every fixed-length carrier reads the same values in a block as one by one.
    #[test]
    fn a_block_of_values_is_read_like_single_values() {
        let rows: Vec<Vec<u8>> = (0..150_u8).map(|row| vec![row | 1; 70]).collect();
        let rows: Vec<&[u8]> = rows.iter().map(Vec::as_slice).collect();
        for (carrier, length) in [
            (Carrier::Bool, 1),
            (Carrier::UInt8, 1),
            (Carrier::Int16, 2),
            (Carrier::Int32, 4),
            (Carrier::UInt32, 4),
            (Carrier::Float32, 4),
            (Carrier::Tid, 6),
            (Carrier::Int64, 8),
            (Carrier::UInt64, 8),
            (Carrier::Float64, 8),
            (Carrier::Fixed(16), 16),
        ] {
            let mut blocks = ColumnBuilder::new(carrier, rows.len());
            assert_eq!(blocks.append_at(&rows, 3), Ok(()), "{carrier:?}");
            let mut single = ColumnBuilder::new(carrier, rows.len());
            for row in &rows {
                single.append(&row[3..3 + length]).expect("the length is right");
            }
            let (blocks, single) = (blocks.finish(), single.finish());
            assert_eq!(&blocks, &single, "{carrier:?}");
            assert!(PayloadReader::new(carrier, &blocks).is_ok());
            let mut late = ColumnBuilder::new(carrier, rows.len());
            let mut short = rows.clone();
            short[100] = &rows[100][..length + 2];
            assert_eq!(late.append_at(&short, 3), Err(100), "{carrier:?}");
        }
        assert_eq!(ColumnBuilder::new(Carrier::Bytes, 1).append_at(&rows, 0), Err(0));
    }
}
