//! Rows of the system catalogs whose layout must be known before any catalog can be read.
//!
//! Offsets differ by version; each version states its own.
