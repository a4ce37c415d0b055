//! **Encoding rows**: batches of a result as the bytes that clients receive.
//!
//! ```text
//!   batch ── RowEncoder ──▶ body of a DataRow message: length and bytes of each value
//!         ├─ CopyEncoder ─▶ lines of COPY in text or csv, tuples in binary
//!         └─ JsonEncoder ─▶ objects, with values as to_json makes them
//! ```
//!
//! Types are resolved once for each column, and values are written straight into the buffer of the
//! message. Text is converted to the client's encoding ([`ClientEncoding`]) after it was written,
//! and only if it isn't ASCII.
//!
//! ```
//! use trunkline_query::encode::{CLIENT_ENCODINGS, ClientEncoding};
//! let latin1 = ClientEncoding::by_name("ISO-8859-1").and_then(|number| CLIENT_ENCODINGS.get(number as usize));
//! assert_eq!(latin1, Some(&"LATIN1"));
//! // A UTF8 database and a client in LATIN1.
//! assert!(ClientEncoding::new(6, 8).is_ok());
//! ```

mod client_encoding;
mod copy_lines;
mod copy_options;
mod json_rows;
mod rows;
mod values;

pub use client_encoding::{CLIENT_ENCODINGS, ClientEncoding};
pub use copy_lines::CopyEncoder;
pub use copy_options::{CopyFormat, CopyOptions, ForceQuote};
pub use json_rows::{JsonEncoder, JsonRows};
pub(crate) use rows::ColumnEncoders;
pub use rows::{BatchRows, RowEncoder};
pub use values::ValueFormat;
