//! **Durable writes**: single blocks, each durable before the session writes the next one, as the
//! log of a database with small transactions.
//!
//! Each session overwrites its own part of a file in order (`RWF_DSYNC`). The file has its final
//! size, and was written and synced before, so no write has to update the file system's metadata.

use std::io;
use std::path::PathBuf;

use trunkline_aio::facade::Arc;
use trunkline_aio::{Aio, Class, File, OpenOptions, Session, Slots, Status};
use trunkline_engine::pool::Backend;
use trunkline_format::BLOCK_SIZE;

use crate::error::{MeasureError, proceed};
use crate::sessions::concurrently;
use crate::watcher::Watcher;

/// Writes of one session in one repetition.
pub(crate) const WRITES: u64 = 200;
/// Blocks of a session's part of the file.
const PART_BLOCKS: u64 = 512;
/// How many blocks are written at once when the file is made.
const CHUNK: usize = 1 << 20;

/// The file, opened buffered and direct.
#[derive(Debug)]
pub(crate) struct DurableFile {
    path: PathBuf,
    buffered: File,
    /// The reason is kept for the cases that need direct I/O.
    direct: Result<File, String>,
}

impl DurableFile {
    /// Creates the file with room for this number of sessions. One that an earlier attempt has left
    /// is replaced.
    pub(crate) fn make(
        aio: &Aio,
        path: PathBuf,
        sessions: usize,
        watcher: &dyn Watcher,
    ) -> Result<Self, MeasureError> {
        let fail = |error| MeasureError::file(&path, error);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(fail(error)),
            _ => {}
        }
        let mut file = std::fs::File::create_new(&path).map_err(fail)?;
        let zeros = vec![0; CHUNK];
        let mut left = sessions as u64 * PART_BLOCKS * BLOCK_SIZE as u64;
        while left > 0 {
            proceed(watcher)?;
            let count = left.min(CHUNK as u64);
            io::Write::write_all(&mut file, &zeros[..count as usize]).map_err(fail)?;
            left -= count;
        }
        file.sync_all().map_err(fail)?;
        let open = |direct| {
            let options = OpenOptions { write: true, direct, ..OpenOptions::default() };
            aio.open(&path, options)
        };
        let buffered = open(false).map_err(fail)?;
        let direct = open(true).map_err(|error| error.to_string());
        Ok(Self { buffered, direct, path })
    }

    /// Why there is no direct I/O, if there isn't.
    pub(crate) fn direct_problem(&self) -> Option<&str> {
        self.direct.as_ref().err().map(String::as_str)
    }

    /// Writes [`WRITES`] blocks in each of the sessions, which it returns.
    pub(crate) fn run(
        &self,
        aio: &Aio,
        backends: Vec<Backend>,
        direct: bool,
        watcher: &Arc<dyn Watcher>,
    ) -> (Vec<Backend>, Result<(), MeasureError>) {
        let file = match (&self.direct, direct) {
            (Ok(file), true) => file,
            (Err(reason), true) => {
                let error = io::Error::other(reason.clone());
                return (backends, Err(MeasureError::file(&self.path, error)));
            }
            (_, false) => &self.buffered,
        };
        let parts = (0..backends.len() as u64).map(|part| Ok((part, slots(aio)?)));
        let parts: Vec<(u64, Slots)> = match parts.collect::<Result<_, MeasureError>>() {
            Ok(parts) => parts,
            Err(error) => return (backends, Err(error)),
        };
        let (file, watcher, path) = (file.clone(), Arc::clone(watcher), self.path.clone());
        let (backends, done) =
            concurrently(backends, parts, move |backend: &mut Backend, (part, mut slots)| {
                for number in 0..WRITES {
                    let block = part * PART_BLOCKS + number % PART_BLOCKS;
                    let offset = block * BLOCK_SIZE as u64;
                    write(backend.session(), &mut slots, &file, offset, &path)?;
                    proceed(&*watcher)?;
                }
                Ok(())
            });
        (backends, done.map(|_| ()))
    }
}

/// A slot with memory for one block. Its contents don't matter.
fn slots(aio: &Aio) -> Result<Slots, MeasureError> {
    let mut slots = Slots::new(1);
    let lease = aio.region().lease(1);
    match (lease, slots.memory(0)) {
        (Some(lease), Some(memory)) => memory.push(lease),
        _ => return Err(MeasureError::Memory),
    }
    Ok(slots)
}

fn write(
    session: &mut Session,
    slots: &mut Slots,
    file: &File,
    offset: u64,
    path: &std::path::Path,
) -> Result<(), MeasureError> {
    // Not `needed_now`, which would let the session execute the write under every method.
    let io = session.acquire(Class::Log)?.durable();
    io.write(file, offset, BLOCK_SIZE as u32, slots, 0)
        .map_err(|source| MeasureError::Define { path: path.to_owned(), source })?;
    let outcome = session.wait(slots, 0)?;
    if outcome.status == Status::Ok && outcome.count == BLOCK_SIZE as u32 {
        return Ok(());
    }
    Err(MeasureError::file(path, io::Error::other(slots.describe(outcome))))
}
