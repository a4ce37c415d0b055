//! Snapshots of the handle table: the rows of `pg_aios`, taken without a lock.
//!
//! We read the state word before and after copying each row. If the generation has changed in
//! between, the I/O has ended and we omit the row. If only the state has changed, the copy may
//! contain fields from two different states, so we copy the row again. The loop always terminates,
//! because the state only moves forward within a generation. PostgreSQL's `pg_get_aios` uses the
//! same technique.

use crate::limits::FRAME_SIZE;
use crate::lock_free::outcome::Outcome;
use crate::lock_free::state::State;
use crate::storage::file::FileRegistry;
use crate::tables::handle::Handle;
use crate::tables::handle_table::HandleTable;
use std::path::PathBuf;

/// A handle that is not idle. The fields are the 15 columns of `pg_aios`, followed by two of our
/// own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IoRow {
    /// The handle's session.
    pub pid: u32,
    /// Index of the handle.
    pub io_id: u32,
    /// Its generation.
    pub io_generation: u64,
    /// HANDED_OUT to COMPLETED_LOCAL.
    pub state: &'static str,
    /// `None` in HANDED_OUT, like every field down to `f_buffered`.
    pub operation: Option<&'static str>,
    /// Byte offset in the file.
    pub off: Option<u64>,
    /// Bytes.
    pub length: Option<u32>,
    /// The kind of object being read or written: always a file, because this crate doesn't know
    /// about relations.
    pub target: Option<&'static str>,
    /// Length of the issuer's payload: the number of buffers, for buffer pool I/O.
    pub handle_data_len: Option<u32>,
    /// Bytes, or minus errno; `None` before COMPLETED_IO.
    pub raw_result: Option<i32>,
    /// UNKNOWN, OK, PARTIAL, WARNING or ERROR.
    pub result: Option<&'static str>,
    /// The blocks and the file.
    pub target_desc: Option<String>,
    /// Executed by the issuing thread.
    pub f_sync: bool,
    /// Whether the memory is private to the issuing process. Always false, because sessions are
    /// threads.
    pub f_localmem: bool,
    /// Goes through the page cache.
    pub f_buffered: bool,
    /// The class (not in PostgreSQL).
    pub class: &'static str,
    /// The method the I/O was submitted through (not in PostgreSQL).
    pub method: Option<&'static str>,
}

pub(crate) fn snapshot(handles: &HandleTable, files: &FileRegistry) -> Vec<IoRow> {
    (0..handles.len() as u32).filter_map(|index| row(handles, files, index)).collect()
}

fn row(handles: &HandleTable, files: &FileRegistry, index: u32) -> Option<IoRow> {
    let handle = handles.handle(index);
    loop {
        let before = handle.word().load();
        if before.state == State::Idle {
            return None;
        }
        let (mut row, file_id) = copy(handle, index, before.generation, before.state);
        let after = handle.word().load();
        if after.generation != before.generation {
            return None;
        }
        if after.state != before.state {
            continue;
        }
        if row.operation.is_some() {
            row.target_desc = Some(describe(&row, files.name(file_id)));
        }
        return Some(row);
    }
}

fn copy(handle: &Handle, index: u32, generation: u64, state: State) -> (IoRow, u64) {
    let defined = state >= State::Defined;
    // In COMPLETED_IO a completing thread may be writing the outcome, so it is not shown yet.
    let outcome = match state >= State::CompletedShared {
        true => handle.outcome(),
        false => Outcome::default(),
    };
    let row = IoRow {
        pid: handle.session(),
        io_id: index,
        io_generation: generation,
        state: state.name(),
        operation: defined.then(|| handle.operation().name()),
        off: defined.then(|| handle.offset()),
        length: defined.then(|| handle.length()),
        target: defined.then_some("file"),
        handle_data_len: defined.then(|| handle.data_length()),
        raw_result: handle.raw().filter(|_| state >= State::CompletedIo),
        result: defined.then(|| outcome.status.name()),
        target_desc: None,
        f_sync: defined && handle.is_synchronous(),
        f_localmem: false,
        f_buffered: defined && handle.is_buffered(),
        class: handle.class().name(),
        method: (state >= State::Submitted).then(|| handle.method().name()),
    };
    (row, handle.file_id())
}

/// Describes the blocks and the file in PostgreSQL's words.
fn describe(row: &IoRow, path: Option<PathBuf>) -> String {
    let block = FRAME_SIZE as u64;
    let first = row.off.unwrap_or(0) / block;
    let count = u64::from(row.length.unwrap_or(0)).div_ceil(block);
    let path = path.map_or_else(|| "a closed file".into(), |path| path.display().to_string());
    match count {
        0 => format!("file \"{path}\""),
        1 => format!("block {first} in file \"{path}\""),
        _ => format!("blocks {first}..{} in file \"{path}\"", first + count - 1),
    }
}
