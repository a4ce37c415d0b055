//! **Formatting**: `to_char` of dates, times and numbers by a format picture, and back.
//!
//! ```text
//!   'YYYY-MM-DD'  ── date_picture ──▶    nodes ── date_to_char ──▶    2024-02-29
//!   2024-02-29    ── date_reader ──▶     fields ── to_timestamp ──▶   a timestamp or a date
//!   '9,999.99'    ── number_picture ──▶  nodes ── number_to_char ──▶   1,234.50
//!   1,234.50      ── to_number ──▶       a number, by the same nodes
//! ```
//!
//! Names of months and days, decimal points and signs are those of the locale C.

mod date_picture;
mod date_reader;
mod date_to_char;
mod decimal_text;
mod julian;
mod number_picture;
mod number_to_char;
mod to_number;
mod to_timestamp;

pub(super) use date_to_char::KERNELS as DATES_TO_CHAR;
pub(super) use number_to_char::KERNELS as NUMBERS_TO_CHAR;
pub(super) use to_number::TO_NUMBER;
pub(super) use to_timestamp::KERNELS as TO_TIMESTAMP;
