//! **Durable sessions**: threads that write single pages, each durable before the next one, in each
//! of the ways that `wal_sync_method` offers.
//!
//! A server writes its log with plain system calls, so we do, too. Each session overwrites its own
//! part of the file in order.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::PathBuf;
use std::time::Duration;

use trunkline_aio::clock;
use trunkline_aio::facade::{Arc, Mutex, thread};

use super::load::{PAGE, SyncMethod};
use crate::error::MeasureError;

/// What one session writes.
#[derive(Debug)]
pub(super) struct DurableSession {
    pub(super) path: PathBuf,
    pub(super) method: SyncMethod,
    /// Where its part of the file begins.
    pub(super) first: u64,
    /// The length of its part.
    pub(super) bytes: u64,
}

impl DurableSession {
    fn open(&self) -> io::Result<File> {
        let flags = match self.method {
            SyncMethod::OpenDatasync => libc::O_DSYNC,
            SyncMethod::OpenSync => libc::O_SYNC,
            SyncMethod::Fdatasync | SyncMethod::Fsync => 0,
        };
        OpenOptions::new().write(true).custom_flags(flags).open(&self.path)
    }

    /// Writes until `ends` returns true. Returns how long each write took.
    fn run(&self, ends: impl Fn() -> bool) -> io::Result<Vec<Duration>> {
        let file = self.open()?;
        let mut page = vec![0x5A; PAGE as usize];
        let (mut times, mut at) = (Vec::new(), 0);
        while !ends() {
            // No two blocks are equal, so that none is stored only once.
            for (block, bytes) in (1_u64..).zip(page.chunks_mut(4096)) {
                let stamp = [self.first + at, (times.len() as u64) << 1 | block & 1];
                bytes[..16].copy_from_slice(&stamp.map(u64::to_le_bytes).concat());
            }
            let begin = clock::now();
            file.write_all_at(&page, self.first + at)?;
            match self.method {
                SyncMethod::Fdatasync => file.sync_data()?,
                SyncMethod::Fsync => file.sync_all()?,
                SyncMethod::OpenDatasync | SyncMethod::OpenSync => {}
            }
            times.push(clock::now().since(begin));
            at = (at + u64::from(PAGE)) % self.bytes;
        }
        Ok(times)
    }
}

/// Runs the sessions, and something else in this thread at the same time. `ends` is asked before each
/// write. Returns what each write took, and the result of the other work.
pub(super) fn run_sessions<T>(
    sessions: Vec<DurableSession>,
    ends: Arc<impl Fn() -> bool + Send + Sync + 'static>,
    beside: impl FnOnce() -> Result<T, MeasureError>,
) -> Result<(Vec<Duration>, T), MeasureError> {
    let results = Arc::new(Mutex::new(Vec::new()));
    let mut threads = Vec::new();
    let mut started = Ok(());
    for session in sessions {
        let (results, ends) = (Arc::clone(&results), Arc::clone(&ends));
        let body = move || {
            let ran = session.run(|| ends());
            let ran = ran.map_err(|error| MeasureError::file(&session.path, error));
            results.lock().push(ran);
        };
        match thread::spawn("durable session", body) {
            Ok(thread) => threads.push(thread),
            Err(error) => started = Err(error),
        }
    }
    // Even if something failed, nothing may go on when this returns.
    let other = beside();
    for thread in threads {
        thread.join().map_err(|_| MeasureError::Thread("panicked".to_owned()))?;
    }
    started.map_err(|error| MeasureError::Thread(format!("could not be started: {error}")))?;
    let results = std::mem::take(&mut *results.lock());
    let times = results.into_iter().collect::<Result<Vec<_>, _>>()?;
    Ok((times.concat(), other?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use trunkline_aio::facade::atomic::{AtomicU64, Ordering};

    #[test]
    fn every_session_writes_its_own_part_with_every_method() {
        let home = tempfile::tempdir().expect("a directory");
        let path = home.path().join("log");
        for method in SyncMethod::ALL {
            std::fs::write(&path, vec![0; 8 * PAGE as usize]).expect("written");
            let part = u64::from(2 * PAGE);
            let session = |number: u64| DurableSession {
                path: path.clone(),
                method,
                first: number * 2 * part,
                bytes: part,
            };
            // Three writes for each of two sessions: the third one starts again.
            let asked = AtomicU64::new(0);
            let ends = Arc::new(move || asked.fetch_add(1, Ordering::Relaxed) >= 8);
            let ran = run_sessions(vec![session(0), session(1)], ends, || Ok("done"));
            let (times, done) = ran.expect("written");
            assert_eq!((times.len(), done), (8, "done"), "{method:?}");
            let bytes = std::fs::read(&path).expect("read");
            let written: Vec<bool> = bytes
                .chunks(PAGE as usize)
                .map(|page| page[16..4096].iter().all(|byte| *byte == 0x5A))
                .collect();
            assert!(!written[2] && !written[3] && !written[6] && !written[7], "{written:?}");
            assert!(written[0] || written[4], "{written:?}");
            let blocks: Vec<&[u8]> = bytes.chunks(4096).filter(|block| block[20] == 0x5A).collect();
            let is_new = |at: usize| !blocks[..at].contains(&blocks[at]);
            assert!((0..blocks.len()).all(is_new), "{method:?}: equal blocks");
        }
    }

    #[test]
    fn a_failed_write_is_an_error() {
        let home = tempfile::tempdir().expect("a directory");
        let path = home.path().join("missing");
        let session = DurableSession { path, method: SyncMethod::Fsync, first: 0, bytes: 8192 };
        let failed = run_sessions(vec![session], Arc::new(|| false), || Ok(()));
        assert!(failed.expect_err("no file").to_string().contains("missing"));
    }
}
