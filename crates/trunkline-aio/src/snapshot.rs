//! A look at all handles without a lock: the rows of `pg_aios`.
//!
//! Read the word, copy, read the word again. Another generation means that the I/O ended meanwhile
//! and is left out; another state means that the copy may be half old and half new, and is made
//! again, which ends because states only advance.

use crate::core::Core;
use crate::handle::{NO_RESULT, View, flag};
use crate::outcome::Outcome;
use crate::state::State;
use crate::sync::atomic::Ordering;
use std::path::PathBuf;

/// One handle that is not idle. The fields are the 15 columns of `pg_aios`, then ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IoRow {
    /// The session that owns it.
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
    /// What kind of thing is read or written.
    pub target: Option<&'static str>,
    /// Number of the issuer's data words.
    pub handle_data_len: Option<u32>,
    /// Bytes, or minus errno; `None` before COMPLETED_IO.
    pub raw_result: Option<i32>,
    /// UNKNOWN, OK, PARTIAL, WARNING or ERROR.
    pub result: Option<&'static str>,
    /// Blocks and file.
    pub target_desc: Option<String>,
    /// Executed by its issuer's own thread.
    pub f_sync: bool,
    /// Memory private to the issuer: never, in a process of threads.
    pub f_localmem: bool,
    /// Goes through the page cache.
    pub f_buffered: bool,
    /// The class (not in PostgreSQL).
    pub class: &'static str,
    /// The method it was submitted to (not in PostgreSQL).
    pub method: Option<&'static str>,
}

pub(crate) fn snapshot(core: &Core) -> Vec<IoRow> {
    (0..core.handles.len() as u32).filter_map(|index| row(core, index)).collect()
}

fn row(core: &Core, index: u32) -> Option<IoRow> {
    let handle = &core.handles[index as usize];
    loop {
        let before = handle.word.load();
        if before.state == State::Idle {
            return None;
        }
        let (mut row, file_id) = copy(&handle.view, index, before.generation, before.state);
        let after = handle.word.load();
        if after.generation != before.generation {
            return None;
        }
        if after.state != before.state {
            continue;
        }
        if row.operation.is_some() {
            row.target_desc = Some(describe(&row, core.registry.name(file_id)));
        }
        return Some(row);
    }
}

fn copy(view: &View, index: u32, generation: u64, state: State) -> (IoRow, u64) {
    let defined = state >= State::Defined;
    let flags = view.flags.load(Ordering::Acquire);
    let raw = view.raw.load(Ordering::Acquire);
    // A completer writes it while the handle is in COMPLETED_IO, where it does not count yet.
    let outcome = match state >= State::CompletedShared {
        true => Outcome::unpack(view.outcome.load(Ordering::Acquire)),
        false => Outcome::default(),
    };
    let row = IoRow {
        pid: view.session.load(Ordering::Acquire),
        io_id: index,
        io_generation: generation,
        state: state.name(),
        operation: defined.then(|| view.operation().name()),
        off: defined.then(|| view.offset.load(Ordering::Acquire)),
        length: defined.then(|| view.length.load(Ordering::Acquire)),
        target: defined.then_some("file"),
        handle_data_len: defined.then(|| view.data_length.load(Ordering::Acquire)),
        raw_result: (state >= State::CompletedIo && raw != NO_RESULT).then_some(raw as i32),
        result: defined.then(|| outcome.status.name()),
        target_desc: None,
        f_sync: defined && flags & flag::SYNCHRONOUS != 0,
        f_localmem: false,
        f_buffered: defined && flags & flag::BUFFERED != 0,
        class: view.class().name(),
        method: (state >= State::Submitted).then(|| view.method().name()),
    };
    (row, view.file_id.load(Ordering::Acquire))
}

/// As PostgreSQL words it: the blocks within the file, and the file.
fn describe(row: &IoRow, path: Option<PathBuf>) -> String {
    let block = crate::limits::FRAME_SIZE as u64;
    let first = row.off.unwrap_or(0) / block;
    let count = u64::from(row.length.unwrap_or(0)).div_ceil(block);
    let path = path.map_or_else(|| "a closed file".into(), |path| path.display().to_string());
    match count {
        0 => format!("file \"{path}\""),
        1 => format!("block {first} in file \"{path}\""),
        _ => format!("blocks {first}..{} in file \"{path}\"", first + count - 1),
    }
}
