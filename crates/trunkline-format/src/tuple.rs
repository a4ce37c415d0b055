//! The columns of a row version: null bitmap, alignment, dropped and missing attributes.
//!
//! A walk hands out each column's stored bytes and never reads past the row.
