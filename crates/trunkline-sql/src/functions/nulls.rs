//! `num_nulls` and `num_nonnulls`, which count arguments of any type.

use arrow_array::ArrayRef;

use super::call::{Argument, Call, Kernel};
use super::rows::each_row;
use crate::error::SqlError;

/// The kernels of this module.
pub(super) const KERNELS: &[(&str, Kernel)] = &[
    ("pg_num_nulls", |call| counted(call, true)),
    ("pg_num_nonnulls", |call| counted(call, false)),
];

fn counted(call: &Call<'_>, nulls: bool) -> Result<ArrayRef, SqlError> {
    each_row(call.rows, |row| {
        let counts = |argument: &&Argument| argument.is_null(row) == nulls;
        // A call has fewer than 2^31 arguments.
        Ok(Some(call.arguments.iter().filter(counts).count() as i32))
    })
}
