//! B-tree pages: metapage, inner pages, leaves, posting lists and high keys.
//!
//! Decodes and compares; walking through an index is the engine's.
