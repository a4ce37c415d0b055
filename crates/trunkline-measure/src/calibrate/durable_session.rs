//! **Durable sessions**: threads that write one or more pages at a time, durable before the next one,
//! in each of the ways that `wal_sync_method` offers.
//!
//! A server writes its log with plain system calls, so we do, too. Each session overwrites its own
//! part of the file in order.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::PathBuf;
use std::time::Duration;

use trunkline_aio::clock::{self, Time};
use trunkline_aio::facade::{Arc, Mutex, thread};

use super::load::{Load, SyncMethod, Window};
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
    /// Bytes of a write, a part of `bytes` without a rest.
    pub(super) size: u32,
    /// The stamps of its blocks begin after this one. A run that begins at the same place needs
    /// another one: a block that is equal to the old one may not be written at all.
    pub(super) stamp: u64,
}

/// One durable write.
#[derive(Debug, Clone, Copy)]
pub(super) struct Written {
    pub(super) ended: Time,
    pub(super) took: Duration,
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

    /// Writes until `ends` returns true.
    fn run(&self, ends: impl Fn() -> bool) -> io::Result<Vec<Written>> {
        let file = self.open()?;
        let mut pages = vec![0x5A; self.size as usize];
        let (mut writes, mut at, mut stamp) = (Vec::new(), 0, self.stamp);
        while !ends() {
            for block in pages.chunks_mut(4096) {
                stamp += 1;
                block[..8].copy_from_slice(&(self.first + at).to_le_bytes());
                block[8..16].copy_from_slice(&stamp.to_le_bytes());
            }
            let begin = clock::now();
            file.write_all_at(&pages, self.first + at)?;
            match self.method {
                SyncMethod::Fdatasync => file.sync_data()?,
                SyncMethod::Fsync => file.sync_all()?,
                SyncMethod::OpenDatasync | SyncMethod::OpenSync => {}
            }
            let ended = clock::now();
            writes.push(Written { ended, took: ended.since(begin) });
            at = (at + u64::from(self.size)) % self.bytes;
        }
        Ok(writes)
    }
}

/// Runs the sessions, and something else in this thread at the same time. `ends` is asked before each
/// write. Returns the writes of each session in turn, and the result of the other work.
pub(super) fn run_sessions<T>(
    sessions: Vec<DurableSession>,
    ends: Arc<impl Fn() -> bool + Send + Sync + 'static>,
    beside: impl FnOnce() -> Result<T, MeasureError>,
) -> Result<(Vec<Written>, T), MeasureError> {
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
    let writes = results.into_iter().collect::<Result<Vec<_>, _>>()?;
    Ok((writes.concat(), other?))
}

/// Cuts a run of sessions into windows, from when each write ended, in seconds, and how long it took.
/// Together, the windows are the whole run, and none is shorter than `load.window` unless the run is.
pub(super) fn cut(writes: &[(f64, Duration)], begin: f64, end: f64, load: &Load) -> Vec<Window> {
    let (least, mut windows) = (load.window.as_secs_f64(), Vec::new());
    let mut window = Window::new(begin);
    for &(ended, took) in writes {
        window.record(load.size.into(), took);
        if ended - window.begin >= least && end - ended >= least {
            window.seconds = ended - window.begin;
            windows.push(std::mem::replace(&mut window, Window::new(ended)));
        }
    }
    window.seconds = end - window.begin;
    windows.push(window);
    windows
}

#[cfg(test)]
mod tests {
    use super::super::load::{PAGE, Work};
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
                size: PAGE,
                stamp: 0,
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
    fn a_second_run_writes_no_block_again() {
        let home = tempfile::tempdir().expect("a directory");
        let path = home.path().join("log");
        std::fs::write(&path, vec![0; 2 * PAGE as usize]).expect("written");
        // The part holds more than a run writes, so each run leaves its blocks.
        let run = |stamp| {
            let (method, bytes) = (SyncMethod::Fdatasync, u64::from(2 * PAGE));
            let session =
                DurableSession { path: path.clone(), method, first: 0, bytes, size: PAGE, stamp };
            let asked = AtomicU64::new(0);
            let ends = Arc::new(move || asked.fetch_add(1, Ordering::Relaxed) >= 1);
            run_sessions(vec![session], ends, || Ok(())).expect("written");
            std::fs::read(&path).expect("read")
        };
        let (first, second) = (run(0), run(1 << 32));
        let blocks = |bytes: &[u8]| -> Vec<Vec<u8>> {
            bytes.chunks(4096).take(2).map(<[u8]>::to_vec).collect()
        };
        assert!(blocks(&second).iter().all(|block| !blocks(&first).contains(block)));
    }

    #[test]
    fn a_run_of_sessions_is_cut_without_a_rest() {
        let took = Duration::from_millis(10);
        let load = Load {
            work: Work::Durable(SyncMethod::Fdatasync),
            is_direct: false,
            method: None,
            workers: 1,
            depth: 1,
            size: PAGE,
            pause: Duration::ZERO,
            duration: Duration::from_millis(100),
            window: Duration::from_millis(25),
        };
        let writes: Vec<(f64, Duration)> =
            (1..=10).map(|number| (5.0 + f64::from(number) / 100.0, took)).collect();
        let windows = cut(&writes, 5.0, 5.102, &load);
        let counts: Vec<u64> = windows.iter().map(|window| window.count).collect();
        assert_eq!(counts, [3, 3, 4]);
        let seconds: f64 = windows.iter().map(|window| window.seconds).sum();
        assert!((seconds - 0.102).abs() < 1e-9 && windows[2].seconds >= 0.025, "{windows:?}");
        assert!(windows.iter().all(|window| !window.is_tail));
        let nothing = cut(&[], 5.0, 5.1, &load);
        assert_eq!((nothing.len(), nothing[0].count), (1, 0));
    }

    #[test]
    fn a_failed_write_is_an_error() {
        let home = tempfile::tempdir().expect("a directory");
        let path = home.path().join("missing");
        let method = SyncMethod::Fsync;
        let session = DurableSession { path, method, first: 0, bytes: 8192, size: PAGE, stamp: 0 };
        let failed = run_sessions(vec![session], Arc::new(|| false), || Ok(()));
        assert!(failed.expect_err("no file").to_string().contains("missing"));
    }
}
