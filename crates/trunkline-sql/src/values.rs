//! **Values**: how PostgreSQL's values are held in Arrow arrays.
//!
//! ```text
//!   datum in a tuple ── without its varlena header ──▶ payload ── ColumnBuilder ──▶ Arrow array
//!                                                         ▲                              │
//!                             write_text, binary output ──┴────────── PayloadReader ◀────┘
//! ```
//!
//! An array holds what PostgreSQL stores: a timestamp is the number of microseconds since 2000, a
//! numeric is its base-10,000 digits. So decoding a column is a copy, and infinity and NaN are
//! ordinary values. Which Arrow type holds which PostgreSQL type is decided in [`Carrier`].

mod carrier;
mod column_builder;
mod order_key;
mod payload_reader;

pub use carrier::Carrier;
pub use column_builder::ColumnBuilder;
pub use order_key::OrderKey;
pub(crate) use order_key::append_escaped;
pub use payload_reader::PayloadReader;
