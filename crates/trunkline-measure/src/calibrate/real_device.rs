//! **The real device**: runs loads on a scratch file through the engine's own I/O handles.
//!
//! Reads and fills keep a number of I/Os in flight from one session, as a read stream does. They
//! bypass the page cache if the file system can, unless the load asks for buffered reads. Buffered
//! reads begin with an empty cache, and the cache is emptied again in each window. Writes that may
//! stay in memory are synced (`write_sync`).
//!
//! Durable writes use plain system calls in threads of their own (`durable_session`), because that
//! is how a server writes its log.

use std::fs::File as StdFile;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::Advice;
use trunkline_aio::clock::{self, Time};
use trunkline_aio::facade::random::Rng;
use trunkline_aio::facade::{Arc, Futex};
use trunkline_aio::{
    Aio, Builder, Canceller, Class, File, MethodKind, OpenOptions, Session, Slots, Status,
    UringSettings, WorkerSettings,
};

use super::durable_session::{DurableSession, Written, cut, run_sessions};
use super::load::{Device, DeviceError, Load, PAGE, Window, Work};
use super::page_writer::write_pages;
use super::search::{DEPTH_MAX, LARGE, LARGE_DEPTH};
use super::write_sync::WriteSync;
use crate::error::MeasureError;
use crate::watcher::Watcher;

/// Frames of a large I/O.
const LARGE_FRAMES: u32 = LARGE / PAGE;
/// Handles: as many as the deepest queue, and the reserves of the log and of foreground reads.
const HANDLES: (u32, u32, u32) = (DEPTH_MAX + 256, 32, 64);
/// Size of the file that durable sessions write, half a megabyte for each of 32.
pub(crate) const LOG_BYTES: u64 = 16 << 20;
/// Bytes of a block that may be stored only once if it is equal to another one.
const BLOCK: usize = 4096;
/// Each run of a durable session has this many stamps for its blocks, which would be 16 TB.
const STAMPS_OF_RUN: u64 = 1 << 32;
/// The page cache is emptied when at most this part of the file, one over this, has been read into it.
const CACHED_PART: u64 = 8;
/// Page writes of one round of flush settings.
const PAGE_WRITES: (u64, u64) = (4 << 20, 64 << 20);

/// The two files that a calibration writes. They should have no names, so that nothing is left
/// however the process ends.
#[derive(Debug)]
pub struct ScratchFiles {
    /// For pages.
    pub data: StdFile,
    /// For durable writes, which must not share a file with pages: syncing one would sync the other.
    pub log: StdFile,
}

/// A device and the I/O instance that uses it.
pub(crate) struct RealDevice {
    /// Keeps the files.
    files: ScratchFiles,
    directory: PathBuf,
    aio: Aio,
    session: Session,
    buffered: File,
    /// The reason is shown if there is no direct I/O.
    direct: Result<File, String>,
    /// Whether the file system may ignore that I/O is direct.
    is_doubtful: bool,
    pages: Slots,
    larges: Slots,
    rng: Rng,
    started: Time,
    file_bytes: u64,
    file_bytes_max: u64,
    /// Where the next read in order begins.
    cursor: u64,
    fill_rate: f64,
    /// The last stamp of a block that was written. No two blocks have the same one, so no device or
    /// file system stores equal blocks only once.
    stamps: u64,
    watcher: Arc<dyn Watcher>,
}

impl RealDevice {
    /// Starts I/O. `directory` is shown in errors. If `is_doubtful`, the file system may ignore that
    /// I/O is direct.
    pub(crate) fn new(
        files: ScratchFiles,
        directory: &Path,
        size: u64,
        is_doubtful: bool,
        watcher: Arc<dyn Watcher>,
    ) -> Result<Self, MeasureError> {
        let fail = |error| MeasureError::file(directory, error);
        let frames = DEPTH_MAX + LARGE_DEPTH * LARGE_FRAMES;
        let (handles, log, foreground) = HANDLES;
        // Together, the rings hold the deepest queue.
        let uring = UringSettings { drivers: 2, entries: 512, ..UringSettings::default() };
        let aio = Builder::new()
            .handles(handles, log, foreground)
            .session_quota(DEPTH_MAX)
            // One more frame for page writes, and some to spare.
            .region_bytes((frames as usize + 256) * PAGE as usize)
            .uring(uring)
            .start()
            .map_err(fail)?;
        let session = aio.session()?;
        let open = |direct| {
            let options = OpenOptions { write: true, direct, ..OpenOptions::default() };
            aio.open(&reopening(&files.data), options)
        };
        let buffered = open(false).map_err(fail)?;
        let direct = open(true).map_err(|error| error.to_string());
        let mut rng = Rng::new(1);
        let pages = slots(&aio, DEPTH_MAX as usize, 1, &mut rng)?;
        let larges = slots(&aio, LARGE_DEPTH as usize, LARGE_FRAMES, &mut rng)?;
        let started = clock::now();
        let directory = directory.to_owned();
        let mut device = Self {
            files,
            directory,
            aio,
            session,
            buffered,
            direct,
            is_doubtful,
            pages,
            larges,
            rng,
            started,
            file_bytes: 0,
            file_bytes_max: size.next_multiple_of(LARGE.into()),
            cursor: 0,
            fill_rate: 0.0,
            stamps: 0,
            watcher,
        };
        device.fill_log().map_err(|error| MeasureError::file(&device.directory, error))?;
        Ok(device)
    }

    /// Cancels all waits.
    pub(crate) fn canceller(&self) -> Canceller {
        self.session.canceller()
    }

    /// Why there is no direct I/O, if there is none.
    pub(crate) fn direct_problem(&self) -> Option<&str> {
        self.direct.as_ref().err().map(String::as_str)
    }

    /// The method that loads use unless they ask for one: io_uring, or what replaces it.
    pub(crate) fn usual_method(&mut self) -> MethodKind {
        self.aio.set_method(MethodKind::IoUring).used
    }

    /// Writes the whole log file once, so that later writes don't change metadata.
    fn fill_log(&mut self) -> io::Result<()> {
        let mut bytes = vec![0; LARGE as usize];
        bytes.chunks_mut(8).for_each(|chunk| {
            chunk.copy_from_slice(&self.rng.next_u64().to_le_bytes()[..chunk.len()]);
        });
        for at in (0..LOG_BYTES).step_by(LARGE as usize) {
            self.files.log.write_all_at(&bytes, at)?;
        }
        self.files.log.sync_all()
    }

    fn use_method(&mut self, load: &Load) -> Result<(), DeviceError> {
        let workers = load.workers.max(1);
        self.aio.set_workers(WorkerSettings {
            min: workers,
            max: workers,
            launch_interval: Duration::ZERO,
            ..WorkerSettings::default()
        });
        let status = self.aio.set_method(load.method.unwrap_or(MethodKind::IoUring));
        match load.method {
            Some(wanted) if status.used != wanted => {
                let reason = status.fallbacks.last().map(|it| without_number(&it.to_string()));
                let missing = || format!("{} is not available", wanted.name());
                Err(DeviceError::Unsupported(reason.unwrap_or_else(missing)))
            }
            _ => Ok(()),
        }
    }

    /// Drops the scratch file from the page cache. The kernel keeps dirty pages.
    fn evict(&self) {
        // The kernel treats this as advice anyway.
        let _ = rustix::fs::fadvise(&self.files.data, 0, None, Advice::DontNeed);
    }

    /// The operation and the offset of the next I/O; `None` if there is nothing left to write.
    fn next_io(&mut self, load: &Load) -> Option<(bool, u64)> {
        let size = u64::from(load.size);
        if load.work == Work::Fill {
            let offset = self.cursor;
            self.cursor += size;
            return (offset < self.file_bytes_max).then_some((true, offset));
        }
        let places = (self.file_bytes / size).max(1);
        let place = match load.work {
            Work::Sequential | Work::SequentialWrite => {
                self.cursor = (self.cursor + 1) % places;
                self.cursor
            }
            _ => self.rng.below(places),
        };
        let is_write = match load.work {
            Work::Mixed(percent) => self.rng.below(100) >= u64::from(percent),
            work => work.only_writes(),
        };
        Some((is_write, place * size))
    }

    /// Keeps `load.depth` I/Os in flight.
    fn closed_loop(
        &mut self,
        load: &Load,
        each: &mut dyn FnMut(Window) -> bool,
    ) -> Result<(), DeviceError> {
        let file = match (&self.direct, load.is_direct) {
            (Ok(direct), true) => direct.clone(),
            _ => self.buffered.clone(),
        };
        let is_cached = !file.is_direct();
        if is_cached && !load.work.only_writes() {
            self.evict();
        }
        let is_small = load.size == PAGE;
        let empty = || Slots::new(1);
        let mut slots = match is_small {
            true => std::mem::replace(&mut self.pages, empty()),
            false => std::mem::replace(&mut self.larges, empty()),
        };
        let result = self.keep_in_flight(load, &file, &mut slots, each);
        // After a failure, the other I/Os end first, so that the next load finds the slots free.
        while slots.pending() > 0 && self.session.wait_some(&slots, 1).is_ok() {
            while let Some(slot) = slots.first_done() {
                slots.take(slot);
            }
        }
        // If the wait was cancelled, I/Os may still use this memory, which belongs to them until then.
        *(if is_small { &mut self.pages } else { &mut self.larges }) = slots;
        if self.write_sync(load, &file).is_some() {
            let synced = self.files.data.sync_all();
            synced.map_err(|error| MeasureError::file(&self.directory, error))?;
        }
        result
    }

    /// When pages that a load writes to this file are synced.
    fn write_sync(&self, load: &Load, file: &File) -> Option<WriteSync> {
        WriteSync::of(load.work, !file.is_direct() || self.is_doubtful)
    }

    fn keep_in_flight(
        &mut self,
        load: &Load,
        file: &File,
        slots: &mut Slots,
        each: &mut dyn FnMut(Window) -> bool,
    ) -> Result<(), DeviceError> {
        let mut writes = vec![false; slots.len()];
        let begun = clock::now();
        let end = begun.after(load.duration);
        let mut window = Window::new(self.seconds(begun));
        let mut boundary = begun.after(load.window);
        let (mut goes_on, mut sync) = (true, self.write_sync(load, file));
        let reads_cached = !file.is_direct() && !load.work.only_writes();
        for slot in 0..(load.depth as usize).min(slots.len()) {
            goes_on &= self.issue(load, file, slots, slot, &mut writes)?;
        }
        while slots.pending() > 0 {
            self.session.wait_some(slots, 1).map_err(MeasureError::from)?;
            let mut now = clock::now();
            let (mut free, mut written) = (Vec::new(), 0);
            while let Some(slot) = slots.first_done() {
                let Some(outcome) = slots.take(slot) else { break };
                if outcome.status != Status::Ok || outcome.count != load.size {
                    let error = io::Error::other(slots.describe(outcome));
                    return Err(MeasureError::file(&self.directory, error).into());
                }
                // The latencies of a mixed load are those of reads. A write that is synced later isn't
                // over when it completes, so its time would be that of a copy in memory.
                match writes[slot] && (sync.is_some() || !load.work.only_writes()) {
                    true => window.record_without_time(load.size.into()),
                    false => window.record(load.size.into(), slots.device_time(slot)),
                }
                written += if writes[slot] { u64::from(load.size) } else { 0 };
                free.push(slot);
            }
            if load.work == Work::Fill {
                self.file_bytes += written;
            }
            let is_large = reads_cached && window.bytes >= self.file_bytes / CACHED_PART;
            let ends = |now: Time| goes_on && (now >= boundary || is_large);
            if sync.as_mut().is_some_and(|sync| sync.is_due(written, ends(now))) {
                let synced = self.files.data.sync_data();
                synced.map_err(|error| MeasureError::file(&self.directory, error))?;
                now = clock::now();
            }
            if ends(now) {
                window.seconds = self.seconds(now) - window.begin;
                let next = Window::new(self.seconds(now));
                goes_on = each(std::mem::replace(&mut window, next)) && now < end;
                // Emptying the cache takes time that no window includes.
                if goes_on && reads_cached {
                    self.evict();
                    window.begin = self.now();
                }
                boundary = clock::now().after(load.window);
            }
            if goes_on && !load.pause.is_zero() {
                // Nothing wakes it: the pause is the point.
                Futex::new(0).wait(0, Some(load.pause));
            }
            for slot in free {
                goes_on = goes_on && self.issue(load, file, slots, slot, &mut writes)?;
            }
        }
        if window.count > 0 {
            window.seconds = self.seconds(clock::now()) - window.begin;
            window.is_tail = true;
            each(window);
        }
        Ok(())
    }

    /// Issues the next I/O. Returns false if there is none.
    fn issue(
        &mut self,
        load: &Load,
        file: &File,
        slots: &mut Slots,
        slot: usize,
        writes: &mut [bool],
    ) -> Result<bool, DeviceError> {
        let Some((is_write, offset)) = self.next_io(load) else { return Ok(false) };
        writes[slot] = is_write;
        if is_write {
            self.stamp(slots, slot, offset, load.size);
        }
        let io = self.session.acquire(Class::LookAhead).map_err(MeasureError::from)?;
        let issued = match is_write {
            true => io.write(file, offset, load.size, slots, slot),
            false => io.read(file, offset, load.size, slots, slot),
        };
        match issued {
            Ok(_) => Ok(true),
            Err(source) => {
                let path = self.directory.clone();
                Err(MeasureError::Define { path, source }.into())
            }
        }
    }

    /// Makes each 4 kB of a write differ from everything that was written.
    fn stamp(&mut self, slots: &mut Slots, slot: usize, offset: u64, size: u32) {
        let blocks = slots.memory(slot).into_iter().flatten().flat_map(|it| it.chunks_mut(BLOCK));
        for block in blocks.take(size as usize / BLOCK) {
            self.stamps += 1;
            block[..8].copy_from_slice(&offset.to_le_bytes());
            block[8..16].copy_from_slice(&self.stamps.to_le_bytes());
        }
    }

    /// The stamps of one run of sessions begin after this one. Sessions may share it, because each
    /// writes to another place.
    fn stamps_of_run(&mut self) -> u64 {
        let first = self.stamps;
        self.stamps += STAMPS_OF_RUN;
        first
    }

    fn durable(&mut self, load: &Load) -> Result<Vec<Written>, MeasureError> {
        let Work::Durable(method) = load.work else { return Ok(Vec::new()) };
        let stamp = self.stamps_of_run();
        let end = clock::now().after(load.duration);
        let watcher = Arc::clone(&self.watcher);
        let ends = Arc::new(move || clock::now() >= end || watcher.cancelled());
        let session = |number| DurableSession {
            path: reopening(&self.files.log),
            method,
            first: u64::from(number) * LOG_BYTES / 32,
            bytes: LOG_BYTES / 32,
            size: load.size,
            stamp,
        };
        run_sessions((0..load.depth.min(32)).map(session).collect(), ends, || Ok(()))
            .map(|(writes, ())| writes)
            .map_err(|error| self.named(error))
    }

    fn flush(&mut self, load: &Load, after: u64) -> Result<Vec<Written>, DeviceError> {
        // As PostgreSQL, which calls sync_file_range in the process that writes.
        self.aio.set_method(MethodKind::Sync);
        let bytes = (self.fill_rate * load.duration.as_secs_f64()) as u64;
        let bytes = bytes.clamp(PAGE_WRITES.0, PAGE_WRITES.1).min(self.file_bytes);
        let first = self.cursor * u64::from(PAGE) % (self.file_bytes - bytes + 1);
        let first = first / u64::from(LARGE) * u64::from(LARGE);
        self.cursor = (first + bytes) / u64::from(PAGE);
        let session = DurableSession {
            path: reopening(&self.files.log),
            method: super::load::SyncMethod::Fdatasync,
            first: 0,
            bytes: LOG_BYTES,
            size: PAGE,
            stamp: self.stamps_of_run(),
        };
        let stamp = self.stamps_of_run();
        let is_done = Arc::new(Futex::new(0));
        let (done, watcher) = (Arc::clone(&is_done), Arc::clone(&self.watcher));
        let ends = Arc::new(move || done.epoch() != 0 || watcher.cancelled());
        let (file, buffered) = (&self.files.data, &self.buffered);
        let (session_of_pages, watcher) = (&mut self.session, &*self.watcher);
        // A burst credit may have ended since the rate was measured.
        let late = clock::now().after(load.duration * 3);
        let ran = run_sessions(vec![session], ends, || {
            let range = first..first + bytes;
            let ends = || clock::now() >= late || watcher.cancelled();
            let files = (file, buffered);
            let written = write_pages(session_of_pages, files, range, after, stamp, &ends);
            is_done.signal();
            written
        });
        let (writes, unsupported) = ran.map_err(|error| self.named(error))?;
        match unsupported {
            Some(reason) => Err(DeviceError::Unsupported(reason)),
            None => Ok(writes),
        }
    }

    /// An error that names the directory instead of a file of `/proc`.
    fn named(&self, error: MeasureError) -> MeasureError {
        match error {
            MeasureError::File { source, .. } => MeasureError::file(&self.directory, source),
            other => other,
        }
    }

    fn seconds(&self, time: Time) -> f64 {
        time.since(self.started).as_secs_f64()
    }
}

impl Device for RealDevice {
    fn now(&self) -> f64 {
        self.seconds(clock::now())
    }

    fn is_direct(&self) -> bool {
        self.direct.as_ref().is_ok_and(File::is_direct)
    }

    fn file_bytes(&self) -> u64 {
        self.file_bytes
    }

    fn run(
        &mut self,
        load: &Load,
        each: &mut dyn FnMut(Window) -> bool,
    ) -> Result<(), DeviceError> {
        let begin = self.now();
        let mut writes = match load.work {
            Work::Durable(_) => self.durable(load)?,
            Work::Flush(after) => self.flush(load, after)?,
            _ => {
                self.use_method(load)?;
                let before = self.file_bytes;
                let ran = self.closed_loop(load, each);
                if load.work == Work::Fill {
                    let seconds = (self.now() - begin).max(1e-9);
                    self.fill_rate = (self.file_bytes - before) as f64 / seconds;
                    self.cursor = 0;
                }
                return ran;
            }
        };
        let end = self.now();
        writes.sort_unstable_by_key(|write| write.ended);
        let ended: Vec<(f64, Duration)> =
            writes.iter().map(|write| (self.seconds(write.ended), write.took)).collect();
        cut(&ended, begin, end, load).into_iter().for_each(|window| {
            each(window);
        });
        Ok(())
    }
}

/// A message without the number of its error, such as ` (os error 12)`.
fn without_number(text: &str) -> String {
    let parts = text.split_once(" (os error ").and_then(|(before, rest)| {
        let (_, after) = rest.split_once(')')?;
        Some(format!("{before}{after}"))
    });
    parts.unwrap_or_else(|| text.to_owned())
}

/// A path that opens the same file again, with flags of its own. The file may have no name.
fn reopening(file: &StdFile) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

/// Slots with memory of `frames` each. The bytes are random, so that no device compresses them.
fn slots(aio: &Aio, count: usize, frames: u32, rng: &mut Rng) -> Result<Slots, MeasureError> {
    let mut slots = Slots::new(count);
    for slot in 0..count {
        let (Some(mut lease), Some(memory)) = (aio.region().lease(frames), slots.memory(slot))
        else {
            let text = "could not start: no memory is free in the page region";
            return Err(MeasureError::Thread(text.to_owned()));
        };
        lease.chunks_exact_mut(8).for_each(|bytes| {
            bytes.copy_from_slice(&rng.next_u64().to_le_bytes());
        });
        memory.push(lease);
    }
    Ok(slots)
}

#[cfg(test)]
mod tests {
    use super::super::load::SyncMethod;
    use super::*;
    use crate::watcher::Unwatched;

    /// A small scratch file that was filled.
    fn device(home: &Path, is_doubtful: bool) -> RealDevice {
        let new = || tempfile::tempfile_in(home).expect("a file");
        let files = ScratchFiles { data: new(), log: new() };
        let mut device = RealDevice::new(files, home, 16 << 20, is_doubtful, Arc::new(Unwatched))
            .expect("a device");
        run(&mut device, Work::Fill, LARGE);
        device
    }

    /// Runs a load until something completes, which takes longer on a busy machine.
    fn run(device: &mut RealDevice, work: Work, size: u32) -> Vec<Window> {
        let is_durable = matches!(work, Work::Durable(_));
        let load = Load {
            work,
            is_direct: device.is_direct() && !is_durable,
            method: None,
            workers: 4,
            depth: if is_durable { 1 } else { 4 },
            size,
            pause: Duration::ZERO,
            duration: Duration::from_millis(100),
            window: Duration::from_millis(20),
        };
        loop {
            let mut windows = Vec::new();
            let ran = device.run(&load, &mut |window| {
                windows.push(window);
                true
            });
            assert!(ran.is_ok(), "{work:?}: {ran:?}");
            if windows.iter().any(|window| window.count > 0) {
                return windows;
            }
        }
    }

    #[test]
    fn writes_that_may_be_in_memory_have_no_latency() {
        let home = tempfile::tempdir().expect("a directory");
        for is_doubtful in [true, false] {
            let mut device = device(home.path(), is_doubtful);
            let has_latency = !is_doubtful && device.is_direct();
            for work in [Work::RandomWrite, Work::SequentialWrite, Work::Mixed(0), Work::Random] {
                let windows = run(&mut device, work, PAGE);
                let count: u64 = windows.iter().map(|window| window.count).sum();
                let times: u64 = windows.iter().map(|window| window.latency.len()).sum();
                let expected = match work {
                    Work::Random => count,
                    Work::Mixed(_) => 0,
                    _ => {
                        if has_latency {
                            count
                        } else {
                            0
                        }
                    }
                };
                assert_eq!(times, expected, "{work:?}, {is_doubtful}");
            }
        }
    }

    #[test]
    fn durable_runs_write_other_blocks_at_the_same_place() {
        let home = tempfile::tempdir().expect("a directory");
        let mut device = device(home.path(), false);
        let mut blocks = Vec::new();
        for _ in 0..3 {
            run(&mut device, Work::Durable(SyncMethod::Fdatasync), PAGE);
            let mut block = vec![0; BLOCK];
            device.files.log.read_exact_at(&mut block, 0).expect("a block");
            blocks.push(block);
        }
        assert!(blocks[0] != blocks[1] && blocks[1] != blocks[2]);
    }

    #[test]
    fn messages_have_no_error_numbers() {
        let text = "memory is 0 kB (Cannot allocate memory (os error 12)); none";
        assert_eq!(without_number(text), "memory is 0 kB (Cannot allocate memory); none");
        assert_eq!(without_number("no (os error"), "no (os error");
    }
}
