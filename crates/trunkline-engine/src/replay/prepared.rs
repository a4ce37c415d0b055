//! **Prepared transactions** as of the end of the log.
//!
//! ```text
//!   files in pg_twophase ─▶ XID known at the start? ─╮
//!   prepare records ─────────────────────────────────┴─▶ in progress at the end? ─▶ list
//! ```
//! A prepared transaction is in the log at first, and after a checkpoint in a file. So after a crash neither place has
//! all of them, and a file may still be there although its transaction has ended in the log, or before that in the
//! commit log. A file whose XID isn't used before the start is older than its prepare record: the log has that.
//!
//! Mirrors `restoreTwoPhaseData` and `ProcessTwoPhaseBuffer` in PostgreSQL's `access/transam/twophase.c`.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use trunkline_format::transam::{XidStatus, precedes};
use trunkline_format::wal::PreparedTransaction;
use trunkline_format::{ControlFile, PgVersion};

use super::error::ReplayError;
use super::replayed::Replay;
use super::status_pages::StatusPages;
use crate::small_file;

/// The most bytes of a file that are read. A row lock or an invalidation message takes some 30 bytes.
const BYTES_MAX: u64 = 64 << 20;

/// Where the state of a prepared transaction is.
#[derive(Debug)]
pub(crate) enum PreparedSource<'r> {
    /// In the log.
    Log(&'r PreparedTransaction),
    /// In this file.
    File(PathBuf),
}

impl PreparedSource<'_> {
    /// The prepared transaction. `None` if a server has removed the file in the meantime.
    pub(crate) fn read(
        self,
        xid: u32,
        version: PgVersion,
    ) -> Result<Option<PreparedTransaction>, ReplayError> {
        let path = match self {
            Self::Log(prepared) => return Ok(Some(prepared.clone())),
            Self::File(path) => path,
        };
        let Some(bytes) = small_file::read(&path, BYTES_MAX + 1)? else { return Ok(None) };
        let found = match bytes.len() as u64 > BYTES_MAX {
            true => Err(format!("it has more than {BYTES_MAX} bytes")),
            false => PreparedTransaction::parse_file(&bytes, version)
                .map_err(|error| error.to_string())
                .and_then(|found| match found.xid == xid {
                    true => Ok(found),
                    false => Err(format!("it is of transaction {}", found.xid)),
                }),
        };
        found.map(Some).map_err(|reason| ReplayError::Prepared { path, reason })
    }
}

/// The prepared transactions of the data directory `root` that have not ended, by XID: at the end of its log, or in its
/// files as they lie.
pub(crate) fn prepared_transactions<'r>(
    root: &Path,
    control: &ControlFile,
    replay: Option<&'r Replay>,
) -> Result<BTreeMap<u32, PreparedSource<'r>>, ReplayError> {
    let of_files;
    let (statuses, next) = match replay {
        Some(replay) => (&replay.found.statuses, replay.found.first_next_xid),
        None => {
            of_files = StatusPages::new(root, control.version, control.checkpoint);
            (&of_files, control.checkpoint.next_xid)
        }
    };
    let mut found = BTreeMap::new();
    for (full_xid, path) in files(&root.join(PreparedTransaction::DIRECTORY), control.version)? {
        let xid = full_xid as u32;
        let is_known = match control.version >= PgVersion::V17 {
            true => full_xid < next,
            false => precedes(xid, next as u32),
        };
        if is_known && statuses.status(xid)? == XidStatus::InProgress {
            found.insert(xid, PreparedSource::File(path));
        }
    }
    let of_log = replay.into_iter().flat_map(|replay| &replay.found.prepared);
    found.extend(of_log.map(|(xid, prepared)| (*xid, PreparedSource::Log(prepared))));
    Ok(found)
}

/// The files of prepared transactions, with their XIDs.
fn files(folder: &Path, version: PgVersion) -> Result<Vec<(u64, PathBuf)>, ReplayError> {
    let failed = |error| ReplayError::io(folder, error);
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(error)),
    };
    let mut found = Vec::new();
    for entry in entries {
        let name = entry.map_err(failed)?.file_name();
        let xid = name.to_str().and_then(|name| PreparedTransaction::xid_of_file(name, version));
        found.extend(xid.map(|xid| (xid, folder.join(&name))));
    }
    Ok(found)
}
