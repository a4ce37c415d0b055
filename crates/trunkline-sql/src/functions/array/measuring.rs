//! Sizes of arrays: `array_length`, `array_lower`, `array_upper`, `array_ndims`, `array_dims`,
//! `cardinality`.
//!
//! For example, `array_dims('[0:1]={7,8}'::int4[])` is `[0:1]`. Of an array without elements, all are
//! null but the cardinality, which is 0.

use arrow_array::ArrayRef;

use super::view::{ArrayView, Dimension};
use crate::error::SqlError;
use crate::functions::call::{Call, Kernel};
use crate::functions::rows::{binary, unary};

/// The kernels of this module.
pub(in crate::functions) const MEASURING: &[(&str, Kernel)] = &[
    ("array_length", |call| of_dimension(call, |dimension| dimension.size as i32)),
    ("array_lower", |call| of_dimension(call, |dimension| dimension.lower)),
    ("array_upper", |call| of_dimension(call, Dimension::upper)),
    ("array_ndims", |call| {
        unary(call, |array: &[u8]| {
            let rank = ArrayView::parse(array)?.dimensions().len();
            Ok((rank > 0).then_some(rank as i32))
        })
    }),
    ("array_dims", |call| {
        unary(call, |array: &[u8]| {
            let view = ArrayView::parse(array)?;
            let range =
                |dimension: &Dimension| format!("[{}:{}]", dimension.lower, dimension.upper());
            let text: String = view.dimensions().iter().map(range).collect();
            Ok((!text.is_empty()).then_some(text))
        })
    }),
    ("array_cardinality", |call| {
        unary(call, |array: &[u8]| Ok(ArrayView::parse(array)?.len() as i32))
    }),
];

fn of_dimension(call: &Call<'_>, measure: fn(Dimension) -> i32) -> Result<ArrayRef, SqlError> {
    binary(call, |array: &[u8], number: i32| {
        let view = ArrayView::parse(array)?;
        let at = usize::try_from(number).ok().and_then(|number| number.checked_sub(1));
        Ok(at.and_then(|at| view.dimensions().get(at)).map(|dimension| measure(*dimension)))
    })
}
