//! Searching and walking B-tree indexes through the pool.
//!
//! Pages are decoded in `trunkline-format`.
