//! Errors of scans: pages, rows and values that can't be read.

use std::fmt;

use trunkline_engine::btree::BtreeError;
use trunkline_engine::heap::{HeapError, RowError, ToastError};
use trunkline_engine::index_scan::IndexScanError;
use trunkline_engine::pool::ReadError;
use trunkline_engine::storage::{Relation, StorageError};
use trunkline_format::btree::Fault;
use trunkline_format::{BlockNo, Tid};
use trunkline_sql::{SqlError, SqlState};

use super::cancellation::cancelled;

/// A page that can't be read.
pub(super) fn page_error(error: &HeapError) -> SqlError {
    match error {
        HeapError::Read(error) => read_error(error),
        HeapError::NotATable { .. } => corrupted(error),
    }
}

/// An index that can't be scanned, or a page of its table that can't be read.
pub(super) fn index_error(error: &IndexScanError) -> SqlError {
    match error {
        IndexScanError::Heap(error) => page_error(error),
        IndexScanError::Index(BtreeError::Read(error)) => read_error(error),
        IndexScanError::Index(error) => SqlError::new(SqlState::INDEX_CORRUPTED, error.to_string()),
        IndexScanError::Row(error) => row_error(error),
    }
}

/// A page of the table or of its TOAST table that can't be read.
pub(crate) fn read_error(error: &ReadError) -> SqlError {
    match error {
        ReadError::Cancelled => cancelled(),
        ReadError::Storage(error) => storage_error(error),
        ReadError::Io { .. } | ReadError::Define { .. } => {
            SqlError::new(SqlState::IO_ERROR, error.to_string())
        }
        ReadError::TooManyPins { .. } | ReadError::Eviction(_) => {
            SqlError::new(SqlState::OUT_OF_MEMORY, error.to_string())
        }
        ReadError::Short { .. } | ReadError::Corrupt { .. } => corrupted(error),
    }
}

/// A file that can't be used.
pub(crate) fn storage_error(error: &StorageError) -> SqlError {
    let sql = SqlError::new(SqlState::UNDEFINED_FILE, error.to_string());
    match error.hint() {
        Some(hint) => sql.with_hint(hint),
        None => sql,
    }
}

/// A row that can't be read, or whose visibility is unknown.
pub(super) fn row_error(error: &RowError) -> SqlError {
    let code = match error.file_fault() {
        Some(_) => SqlState::UNDEFINED_FILE,
        None => SqlState::DATA_CORRUPTED,
    };
    SqlError::new(code, error.to_string())
}

/// A value that can't be read, with its file, block, line pointer and column.
pub(super) fn value_error(
    relation: &Relation,
    tid: Tid,
    column: &str,
    problem: &dyn fmt::Display,
) -> SqlError {
    let location = relation.location(tid.block).at_item(tid.item);
    let message = format!("invalid value in column \"{column}\" of row in {location}: {problem}");
    SqlError::new(SqlState::DATA_CORRUPTED, message)
}

/// An entry of an index that can't be read, with its file and block. The fault names the line pointer.
pub(super) fn entry_error(index: &Relation, leaf: BlockNo, fault: &Fault) -> SqlError {
    let location = index.location(leaf);
    SqlError::new(SqlState::INDEX_CORRUPTED, format!("{location}: {fault}"))
}

/// A value of an index entry that can't be read, with its file, block, line pointer and column.
pub(super) fn entry_value_error(
    index: &Relation,
    (leaf, item): (BlockNo, u16),
    column: &str,
    problem: &dyn fmt::Display,
) -> SqlError {
    let location = index.location(leaf).at_item(item);
    let message = format!("invalid value in column \"{column}\" of entry in {location}: {problem}");
    SqlError::new(SqlState::INDEX_CORRUPTED, message)
}

/// A value that can't be fetched from the TOAST table.
pub(super) fn toast_error(
    relation: &Relation,
    tid: Tid,
    column: &str,
    error: &ToastError,
) -> SqlError {
    let sql = value_error(relation, tid, column, error);
    match error.file_fault() {
        Some(_) => SqlError::new(SqlState::UNDEFINED_FILE, sql.message()),
        None => sql,
    }
}

fn corrupted(error: &dyn fmt::Display) -> SqlError {
    SqlError::new(SqlState::DATA_CORRUPTED, error.to_string())
}
