//! **Numeric arithmetic**: what PostgreSQL computes with values of type `numeric`, digit for digit.
//!
//! ```
//! use trunkline_sql::numeric::Numeric;
//! let (two, three) = (Numeric::from(2_i64), Numeric::from(3_i64));
//! assert_eq!(two.divide(&three)?.to_string(), "0.66666666666666666667");
//! # Ok::<(), trunkline_sql::SqlError>(())
//! ```
//!
//! A numeric has any number of digits, and a display scale, which says how many decimals are printed.
//! Each function has a rule of its own for the display scale of its result. Division, for example,
//! gives at least 16 significant digits. Queries show these scales, so results must have them too,
//! and no library for decimal numbers follows the same rules.
//!
//! [`Decimal`] is a finite number. [`Numeric`] is a value of the type, which may also be NaN or
//! infinite. Values are stored in base 10,000, and we calculate in that base, so that neither decoding
//! nor rounding converts anything.

mod convert;
mod decimal;
mod functions;
mod limits;
mod multiply;
mod power;
mod root;
mod stored;
mod sum;
mod typmod;
mod value;

pub use decimal::Decimal;
pub use limits::{division_by_zero, overflow};
pub use sum::NumericSum;
pub use typmod::NumericTypmod;
pub use value::Numeric;
