//! **Scans**: tables as sources of record batches.
//!
//! ```text
//!   ScanTable (TableProvider) ── filters, wanted columns ──▶ ScanExec, a partition for each worker
//!                                                                │
//!   PartitionReader: a session, a polled heap scan over its part of the blocks
//!     page ── rows ── RowDecoder ──▶ batch ── filters ──▶ batch of the wanted columns
//!              └─ TOAST pointers: the page is copied, and the values are fetched for many pages
//!   EntryReader: the same for an index-only scan
//!     entries ── EntryDecoder ──▶ batch
//! ```
//!
//! A task that reads a table doesn't block its thread while it waits for pages. The session of a
//! partition is opened by its first poll, and closed at the end of the scan.

mod access;
mod batch_size;
mod bitmap_source;
mod cancellation;
mod columns;
mod counters;
mod entry_decoder;
mod entry_reader;
mod exec;
mod failure;
mod found_pages;
mod key_paths;
mod keyed_reader;
mod look_ahead;
mod page_source;
mod partition_reader;
mod path_source;
mod row_decoder;
mod row_lookup;
mod sort_columns;
mod table;
mod table_sizes;
mod text_encoding;

pub(crate) use access::{StatementReads, TableAccess, table_files, visibility_map};
pub(crate) use cancellation::cancelled;
pub use cancellation::{CancelCause, Cancellation};
pub(crate) use columns::{ScanColumns, catalog_error, stored_places};
pub(crate) use counters::{IndexCounts, PageCounter, ScanCounts};
pub(crate) use exec::ScanExec;
pub(crate) use failure::{read_error, storage_error};
pub(crate) use found_pages::FoundRelations;
pub(crate) use keyed_reader::{KeyedReader, KeyedRows};
pub(crate) use look_ahead::LookAhead;
pub(crate) use path_source::PathSource;
pub(crate) use row_lookup::RowLookup;
pub(crate) use table::ScanTable;
pub(crate) use table_sizes::TableSizes;
pub(crate) use text_encoding::TextEncoding;
