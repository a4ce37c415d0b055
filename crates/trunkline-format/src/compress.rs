//! Compressed values: PostgreSQL's own pglz, and lz4 blocks.
//!
//! Output is bounded by the size that the value announces.
