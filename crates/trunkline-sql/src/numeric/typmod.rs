//! `numeric(precision, scale)`: rounding a value to a declared type.
//!
//! ```
//! use trunkline_sql::numeric::{Numeric, NumericTypmod};
//! let typmod = NumericTypmod::decode((5 << 16 | 2) + 4).expect("it has a precision");
//! assert_eq!(typmod.apply(Numeric::from(7_i64))?.to_string(), "7.00");
//! # Ok::<(), trunkline_sql::SqlError>(())
//! ```

use super::limits::out_of_range;
use super::value::Numeric;
use crate::error::SqlError;

/// A declared precision and scale.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NumericTypmod {
    /// How many decimal digits a value has at most.
    pub precision: i32,
    /// How many of them are decimals. If it is negative, values are rounded before the decimal point.
    pub scale: i32,
}

impl NumericTypmod {
    /// Decodes `atttypmod`; `None` if the type was declared without a precision.
    pub fn decode(typmod: i32) -> Option<Self> {
        let packed = typmod.checked_sub(4).filter(|&packed| packed >= 0)?;
        // The scale has 11 bits and a sign.
        let scale = ((packed & 0x7FF) ^ 1024) - 1024;
        Some(Self { precision: packed >> 16 & 0xFFFF, scale })
    }

    /// Rounds a value.
    ///
    /// # Errors
    /// The value doesn't fit: 22003.
    pub fn apply(self, value: Numeric) -> Result<Numeric, SqlError> {
        let Self { precision, scale } = self;
        let error = |what: String| {
            let field = format!("A field with precision {precision}, scale {scale}");
            out_of_range("numeric field overflow").with_detail(format!("{field} {what}"))
        };
        let number = match value {
            Numeric::Finite(number) => number,
            Numeric::NaN => return Ok(Numeric::NaN),
            _ => return Err(error("cannot hold an infinite value.".to_owned())),
        };
        let mut rounded = number.rounded(scale);
        rounded.scale = scale.max(0);
        let digits_max = precision - scale;
        if rounded.digits_before_point() > digits_max {
            let limit = match digits_max {
                0 => "1".to_owned(),
                _ => format!("10^{digits_max}"),
            };
            return Err(error(format!("must round to an absolute value less than {limit}.")));
        }
        Ok(Numeric::Finite(rounded))
    }
}
