//! Kernels that compute one row at a time.
//!
//! A kernel states the Rust types of its arguments and of its result, and the helpers here find the
//! values in the arrays. They return null for a row in which any argument is null, as strict functions
//! do.
//!
//! ```
//! use trunkline_sql::functions::{Call, Kernel, binary};
//! let int4pl: Kernel = |call| binary(call, |a: i32, b: i32| Ok(a.wrapping_add(b)));
//! let text_length: Kernel = |call| {
//!     trunkline_sql::functions::unary(call, |text: &str| Ok(text.chars().count() as i32))
//! };
//! ```

use std::borrow::Cow;

use arrow_array::builder::{
    ArrayBuilder, BinaryViewBuilder, BooleanBuilder, FixedSizeBinaryBuilder, PrimitiveBuilder,
    StringViewBuilder,
};
use arrow_array::types::{
    Float32Type, Float64Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt32Type, UInt64Type,
};
use arrow_array::{
    Array, ArrayRef, BinaryViewArray, BooleanArray, FixedSizeBinaryArray, PrimitiveArray,
    StringViewArray,
};

use super::call::{Argument, Call};
use crate::error::SqlError;

/// A Rust type that a kernel reads from arrays.
pub trait Input<'a>: Sized {
    /// The type of the arrays.
    type Array: Array + 'static;

    /// The value in row `row`, which is not null.
    fn at(array: &'a Self::Array, row: usize) -> Self;
}

/// A Rust type that a kernel returns. An `Option` is null if it is `None`.
pub trait Output: Sized {
    /// Builds the array of results.
    type Builder: ArrayBuilder;

    /// Returns a builder with room for `rows` values.
    fn builder(rows: usize) -> Self::Builder;

    /// Appends a value.
    fn append(self, builder: &mut Self::Builder);

    /// Appends a null.
    fn append_null(builder: &mut Self::Builder);
}

macro_rules! numbers {
    ($($number:ty, $arrow:ty;)*) => {$(
        impl Input<'_> for $number {
            type Array = PrimitiveArray<$arrow>;

            #[inline]
            fn at(array: &Self::Array, row: usize) -> Self {
                array.value(row)
            }
        }

        impl Output for $number {
            type Builder = PrimitiveBuilder<$arrow>;

            fn builder(rows: usize) -> Self::Builder {
                PrimitiveBuilder::with_capacity(rows)
            }

            #[inline]
            fn append(self, builder: &mut Self::Builder) {
                builder.append_value(self);
            }

            #[inline]
            fn append_null(builder: &mut Self::Builder) {
                builder.append_null();
            }
        }
    )*};
}

numbers! {
    i16, Int16Type;
    i32, Int32Type;
    i64, Int64Type;
    u8, UInt8Type;
    u32, UInt32Type;
    u64, UInt64Type;
    f32, Float32Type;
    f64, Float64Type;
}

impl Input<'_> for bool {
    type Array = BooleanArray;

    #[inline]
    fn at(array: &BooleanArray, row: usize) -> Self {
        array.value(row)
    }
}

impl<'a> Input<'a> for &'a str {
    type Array = StringViewArray;

    #[inline]
    fn at(array: &'a StringViewArray, row: usize) -> Self {
        array.value(row)
    }
}

impl<'a> Input<'a> for &'a [u8] {
    type Array = BinaryViewArray;

    #[inline]
    fn at(array: &'a BinaryViewArray, row: usize) -> Self {
        array.value(row)
    }
}

impl<const N: usize> Input<'_> for [u8; N] {
    type Array = FixedSizeBinaryArray;

    /// If the array's values have another length, returns zeros. A carrier's length is checked where
    /// the array is made.
    #[inline]
    fn at(array: &FixedSizeBinaryArray, row: usize) -> Self {
        array.value(row).try_into().unwrap_or([0; N])
    }
}

/// Implements [`Output`] for a type whose builder has `append_value` and `append_null`.
macro_rules! output {
    ([$($generics:tt)*] $value:ty, $builder:ty) => {
        impl<$($generics)*> Output for $value {
            type Builder = $builder;

            fn builder(rows: usize) -> Self::Builder {
                <$builder>::with_capacity(rows)
            }

            #[inline]
            fn append(self, builder: &mut Self::Builder) {
                builder.append_value(self);
            }

            #[inline]
            fn append_null(builder: &mut Self::Builder) {
                builder.append_null();
            }
        }
    };
}

output!([] bool, BooleanBuilder);
output!([] String, StringViewBuilder);
output!([] & str, StringViewBuilder);
output!([] Vec<u8>, BinaryViewBuilder);
output!([] & [u8], BinaryViewBuilder);

impl Output for Cow<'_, str> {
    type Builder = StringViewBuilder;

    fn builder(rows: usize) -> Self::Builder {
        StringViewBuilder::with_capacity(rows)
    }

    #[inline]
    fn append(self, builder: &mut Self::Builder) {
        builder.append_value(&*self);
    }

    #[inline]
    fn append_null(builder: &mut Self::Builder) {
        builder.append_null();
    }
}

impl<const N: usize> Output for [u8; N] {
    type Builder = FixedSizeBinaryBuilder;

    fn builder(rows: usize) -> Self::Builder {
        FixedSizeBinaryBuilder::with_capacity(rows, const { N as i32 })
    }

    #[inline]
    fn append(self, builder: &mut Self::Builder) {
        let appended = builder.append_value(self);
        debug_assert!(appended.is_ok(), "the builder was made for this length");
    }

    #[inline]
    fn append_null(builder: &mut Self::Builder) {
        builder.append_null();
    }
}

impl<T: Output> Output for Option<T> {
    type Builder = T::Builder;

    fn builder(rows: usize) -> Self::Builder {
        T::builder(rows)
    }

    #[inline]
    fn append(self, builder: &mut Self::Builder) {
        match self {
            Some(value) => value.append(builder),
            None => T::append_null(builder),
        }
    }

    #[inline]
    fn append_null(builder: &mut Self::Builder) {
        T::append_null(builder);
    }
}

/// One argument with its array's type known.
pub struct Reader<'a, T: Input<'a>> {
    array: &'a T::Array,
    argument: &'a Argument,
}

impl<'a, T: Input<'a>> Reader<'a, T> {
    /// Reads argument `number`, counted from 0.
    ///
    /// # Errors
    /// The argument doesn't exist or is an array of another type, which is a bug in the caller.
    pub fn new(call: &'a Call<'_>, number: usize) -> Result<Self, SqlError> {
        let argument = call.arguments.get(number);
        let argument =
            argument.ok_or_else(|| SqlError::internal(format!("argument {number} is missing")))?;
        Self::of(argument)
    }

    /// Reads an argument.
    ///
    /// # Errors
    /// The argument is an array of another type, which is a bug in the caller.
    pub fn of(argument: &'a Argument) -> Result<Self, SqlError> {
        let array = argument.array().as_any().downcast_ref::<T::Array>();
        let array = array.ok_or_else(|| {
            let found = argument.array().data_type();
            SqlError::internal(format!("an argument is an array of {found}"))
        })?;
        Ok(Self { array, argument })
    }

    /// The value in row `row`, or `None` if it is null.
    #[inline]
    pub fn get(&self, row: usize) -> Option<T> {
        let row = self.argument.row(row);
        (!self.array.is_null(row)).then(|| T::at(self.array, row))
    }
}

/// Computes a result for every row; `None` is null.
///
/// # Errors
/// Those of `compute`.
pub fn each_row<R: Output>(
    rows: usize,
    mut compute: impl FnMut(usize) -> Result<Option<R>, SqlError>,
) -> Result<ArrayRef, SqlError> {
    let mut builder = R::builder(rows);
    for row in 0..rows {
        match compute(row)? {
            Some(value) => value.append(&mut builder),
            None => R::append_null(&mut builder),
        }
    }
    Ok(builder.finish())
}

/// Computes a strict function of one argument.
///
/// # Errors
/// Those of `compute`.
pub fn unary<'a, A: Input<'a>, R: Output>(
    call: &'a Call<'_>,
    mut compute: impl FnMut(A) -> Result<R, SqlError>,
) -> Result<ArrayRef, SqlError> {
    let a = Reader::<A>::new(call, 0)?;
    each_row(call.rows, |row| a.get(row).map(&mut compute).transpose())
}

/// Computes a strict function of two arguments.
///
/// # Errors
/// Those of `compute`.
pub fn binary<'a, A: Input<'a>, B: Input<'a>, R: Output>(
    call: &'a Call<'_>,
    mut compute: impl FnMut(A, B) -> Result<R, SqlError>,
) -> Result<ArrayRef, SqlError> {
    let (a, b) = (Reader::<A>::new(call, 0)?, Reader::<B>::new(call, 1)?);
    each_row(call.rows, |row| match (a.get(row), b.get(row)) {
        (Some(a), Some(b)) => compute(a, b).map(Some),
        _ => Ok(None),
    })
}

/// Computes a strict function of three arguments.
///
/// # Errors
/// Those of `compute`.
pub fn ternary<'a, A: Input<'a>, B: Input<'a>, C: Input<'a>, R: Output>(
    call: &'a Call<'_>,
    mut compute: impl FnMut(A, B, C) -> Result<R, SqlError>,
) -> Result<ArrayRef, SqlError> {
    let a = Reader::<A>::new(call, 0)?;
    let (b, c) = (Reader::<B>::new(call, 1)?, Reader::<C>::new(call, 2)?);
    each_row(call.rows, |row| match (a.get(row), b.get(row), c.get(row)) {
        (Some(a), Some(b), Some(c)) => compute(a, b, c).map(Some),
        _ => Ok(None),
    })
}

#[cfg(test)]
mod tests {
    use arrow_array::cast::AsArray;
    use arrow_array::{Int32Array, StringViewArray};
    use std::sync::Arc;

    use super::*;

    fn arguments() -> [Argument; 2] {
        let numbers = Int32Array::from(vec![Some(1), None, Some(3)]);
        [
            Argument::column(Arc::new(numbers)),
            Argument::constant(Arc::new(StringViewArray::from(vec![Some("ab")]))),
        ]
    }

    /// A call without settings, which these helpers don't use.
    fn with_call<R>(test: impl FnOnce(&Call<'_>) -> R) -> R {
        let settings = crate::functions::tests::settings();
        let arguments = arguments();
        test(&Call {
            arguments: &arguments,
            rows: 3,
            argument_types: &[],
            result_type: trunkline_format::Oid(0),
            collation: trunkline_format::Oid(0),
            row: None,
            settings: &settings,
        })
    }

    #[test]
    fn a_null_argument_gives_null_and_a_constant_is_read_in_every_row() {
        let result = with_call(|call| {
            binary(call, |count: i32, text: &str| Ok(text.repeat(count as usize)))
        });
        let result = result.expect("no row fails");
        let texts: Vec<_> = result.as_string_view().iter().collect();
        assert_eq!(texts, [Some("ab"), None, Some("ababab")]);
    }

    #[test]
    fn an_argument_of_another_type_is_an_error() {
        let result = with_call(|call| unary(call, |number: i64| Ok(number)));
        let error = result.expect_err("the argument is an int4");
        assert_eq!(error.code().as_str(), "XX000");
    }
}
