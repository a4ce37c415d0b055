//! Storage: page memory, files, and the operations on them.
//!
//! This is the layer that makes system calls. It doesn't know about handles or sessions.

pub(crate) mod executor;
pub(crate) mod file;
pub(crate) mod file_system;
pub(crate) mod operation;
pub(crate) mod page_cache;
mod population;
pub(crate) mod region;
pub(crate) mod request;
pub(crate) mod write_latency;
