//! The rows of a table: pages over the read stream, visible versions, values from TOAST.
//!
//! What a row says is decoded in `trunkline-format`; this module brings the pages.
