//! Reads the log ahead through the I/O core, for a pass over all of it.
//!
//! ```text
//!   used ─┐   window: reads in flight, in the order of the log        not yet issued
//!   ──────┤[ chunk ][ chunk ][ chunk ] … [ chunk ]──────────────────────▶
//!         └ the record being read                 segment files follow each other
//! ```
//! The kernel's read-ahead stays within a file and a few hundred kB, which is too little for storage that
//! takes milliseconds for a read. `maintenance_io_concurrency` chunks are in flight here, across the borders of
//! segments. With `io_method = sync` there is one, and the kernel is advised of the others.
//!
//! Everything unusual is left to the caller, which then reads the place itself: compressed segments, the end
//! of the log, errors and short reads. So there is one place for error messages.

use std::collections::VecDeque;
use std::io;
use std::ops::Range;

use trunkline_aio::{Aio, Class, File, MethodKind, OpenOptions, Outcome, Session, Slots, Status};
use trunkline_format::{BLOCK_SIZE, Lsn};

use super::segments::LogFiles;
use crate::settings::Settings;

/// How much is read at once, in bytes. It divides all sizes of segments.
const CHUNK: u32 = 512 << 10;

/// How much the kernel reads at least for one advice, in bytes: the usual limit of its read-ahead.
const ADVICE: u64 = 128 << 10;

/// The most chunks in flight. They take 32 MB.
const DEPTH_MAX: u32 = 64;

/// A read that was issued, or has ended.
struct Chunk {
    place: Lsn,
    length: u32,
    slot: usize,
    /// The length of its file in bytes.
    file_length: u64,
    /// Whether the read has ended, and the slot has its bytes.
    is_read: bool,
}

impl Chunk {
    fn end(&self) -> Lsn {
        Lsn(self.place.0 + u64::from(self.length))
    }
}

/// The file of a segment.
struct OpenFile {
    segment: u64,
    file: File,
    length: u64,
    /// Up to where the kernel was advised.
    advised: u64,
}

/// Part of a chunk that was read.
pub(super) struct ReadPart {
    slot: usize,
    range: Range<usize>,
    /// The length of the file that contains it, in bytes.
    pub(super) file_length: u64,
}

/// Chunks of the log that are read ahead.
pub(super) struct ReadAhead {
    // The session is dropped before its instance.
    session: Session,
    slots: Slots<()>,
    window: VecDeque<Chunk>,
    /// Where the chunk behind the window begins. `None` if it is not for us to read.
    next: Option<Lsn>,
    open: Option<OpenFile>,
    depth: u32,
    aio: Aio,
}

impl ReadAhead {
    /// Starts an I/O instance with these settings, and one session.
    ///
    /// # Errors
    /// The instance can't be started.
    pub(super) fn start(settings: &Settings) -> io::Result<Self> {
        let depth = settings.maintenance_io_concurrency().clamp(1, DEPTH_MAX);
        let bytes = depth as usize * CHUNK as usize;
        let aio = settings.io_builder().sessions(1).region_bytes(bytes).start()?;
        let session = aio.session().map_err(io::Error::other)?;
        let mut slots = Slots::new(depth as usize);
        for slot in 0..depth as usize {
            let lease = aio.region().lease(CHUNK / BLOCK_SIZE as u32);
            if let (Some(memory), Some(lease)) = (slots.memory(slot), lease) {
                memory.push(lease);
            }
        }
        let window = VecDeque::with_capacity(depth as usize);
        Ok(Self { session, slots, window, next: None, open: None, depth, aio })
    }

    /// Waits for the chunk that contains `place`. `None` if the caller must read it.
    pub(super) fn wait_for(&mut self, files: &LogFiles, place: Lsn) -> Option<ReadPart> {
        let is_used = |chunk: &Chunk| !(chunk.place..chunk.end()).contains(&place);
        while self.window.front().is_some_and(is_used) {
            self.drop_first();
        }
        if self.window.is_empty() {
            self.next = Some(place);
        }
        self.fill(files);
        let chunk = self.window.front_mut()?;
        if !chunk.is_read {
            let outcome = self.session.wait(&mut self.slots, chunk.slot);
            chunk.is_read = true;
            let is_whole =
                |outcome: Outcome| outcome.status == Status::Ok && outcome.count == chunk.length;
            if !outcome.is_ok_and(is_whole) {
                while !self.window.is_empty() {
                    self.drop_first();
                }
                return None;
            }
        }
        let from = (place.0 - chunk.place.0) as usize;
        let range = from..chunk.length as usize;
        Some(ReadPart { slot: chunk.slot, range, file_length: chunk.file_length })
    }

    /// The bytes of a part, until the next call of [`ReadAhead::wait_for`].
    pub(super) fn bytes(&mut self, part: &ReadPart) -> &[u8] {
        let lease = self.slots.memory(part.slot).and_then(|memory| memory.first());
        lease.and_then(|lease| lease.get(part.range.clone())).unwrap_or_default()
    }

    /// Forgets the first chunk. Its slot is free afterwards.
    fn drop_first(&mut self) {
        if let Some(chunk) = self.window.pop_front()
            && !chunk.is_read
        {
            // Nothing cancels this session.
            let _ = self.session.wait(&mut self.slots, chunk.slot);
        }
    }

    /// Issues reads until the window is full.
    fn fill(&mut self, files: &LogFiles) {
        let is_sync = self.session.method() == MethodKind::Sync;
        let most = if is_sync { 1 } else { self.depth as usize };
        // A batch borrows the session, so advice is given afterwards.
        let mut to_advise = None;
        let mut batch = self.session.batch();
        while self.window.len() < most
            && let Some(place) = self.next.take()
            && let Some(open) = file_at(&mut self.open, &self.aio, files, place)
            && let Some(slot) = self.slots.free_slot()
        {
            let segment_size = files.identity().segment_size;
            let offset = segment_size.offset(place);
            let end = open.length.min(u64::from(segment_size.bytes()));
            let left = end.saturating_sub(u64::from(offset)).min(u64::from(CHUNK)) as u32;
            let length = left.min(CHUNK - offset % CHUNK);
            if length == 0 {
                break;
            }
            let io = match self.window.is_empty() {
                true => batch.acquire(Class::Maintenance).ok(),
                false => batch.try_acquire(Class::Maintenance),
            };
            let Some(io) = io else {
                self.next = Some(place);
                break;
            };
            let offset = u64::from(offset);
            if io.read(&open.file, offset, length, &mut self.slots, slot).is_err() {
                break;
            }
            let file_length = open.length;
            self.window.push_back(Chunk { place, length, slot, file_length, is_read: false });
            self.next = Some(Lsn(place.0 + u64::from(length)));
            to_advise = Some(offset + u64::from(length));
        }
        drop(batch);
        if is_sync && let (Some(from), Some(open)) = (to_advise, &mut self.open) {
            let end = from.saturating_add(u64::from(self.depth) * u64::from(CHUNK));
            let mut from = from.max(open.advised);
            // The kernel reads no more than its own read-ahead for one advice.
            while from < end.min(open.length) {
                self.session.advise(&open.file, from, ADVICE);
                from += ADVICE;
            }
            open.advised = from;
        }
    }
}

impl Drop for ReadAhead {
    fn drop(&mut self) {
        while !self.window.is_empty() {
            self.drop_first();
        }
    }
}

/// The open file of the segment that contains `place`, if it is a plain file that can be opened.
fn file_at<'o>(
    open: &'o mut Option<OpenFile>,
    aio: &Aio,
    files: &LogFiles,
    place: Lsn,
) -> Option<&'o mut OpenFile> {
    let segment = files.identity().segment_size.segment_of(place);
    if open.as_ref().is_none_or(|open| open.segment != segment) {
        let path = files.plain_path(place)?;
        files.hold(place);
        let length = std::fs::metadata(path).ok()?.len();
        let file = aio.open(path, OpenOptions::default()).ok()?;
        *open = Some(OpenFile { segment, file, length, advised: 0 });
    }
    open.as_mut()
}
