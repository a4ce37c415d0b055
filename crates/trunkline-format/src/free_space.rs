//! The free space map: a tree of free bytes for the pages of a relation.
//!
//! A hint, never trusted.
