//! The segment files of the WAL that is being written.
//!
//! ```text
//!   create   xlogtemp.trunkline-N: zeros, fsync ─▶ rename to its name ─▶ fsync of the directory
//!   open     only segments that were created: a flush never creates a file
//! ```
//! A server removes files with such temporary names when it starts.
//!
//! A checkpoint recycles segments that redo doesn't need: they get the names of future ones, and keep their old contents.
//! The end of the WAL is found nevertheless. An old page has the wrong page address (`xlp_pageaddr`). In the
//! last page of the WAL, old blocks may follow new ones. There, the `xl_prev` of an old record points into the segment that the
//! file used to be, so it doesn't match the last new record.
//!
//! A segment is filled with zeros before it gets its name, so that a flush changes no metadata, and finds no
//! disk full. Its name is durable before the first record is written to it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use trunkline_aio::File;
use trunkline_format::Lsn;
use trunkline_format::wal::{SegmentName, SegmentSize};

use super::error::LogWriterError;
use super::lane::Lane;
use super::sync_method::FlushMethod;
use crate::storage::{StorageError, WritableFiles};

/// The directory with the segments.
pub(crate) struct SegmentStore {
    files: Arc<dyn WritableFiles>,
    directory: PathBuf,
    timeline: u32,
    size: SegmentSize,
    /// Whether new segments are written with direct I/O.
    direct_init: bool,
}

impl SegmentStore {
    pub(crate) fn new(
        files: Arc<dyn WritableFiles>,
        directory: &Path,
        timeline: u32,
        size: SegmentSize,
    ) -> Self {
        Self { files, directory: directory.to_owned(), timeline, size, direct_init: false }
    }

    /// With direct I/O for new segments, if `direct_init` is set.
    pub(super) fn with_direct_init(self, direct_init: bool) -> Self {
        Self { direct_init, ..self }
    }

    /// The path of a segment.
    pub(super) fn path(&self, segment: u64) -> PathBuf {
        self.directory.join(SegmentName::of(self.timeline, segment, self.size).to_string())
    }

    /// Opens a segment that exists, each time anew, past the page cache if `direct` is set.
    ///
    /// # Errors
    /// As for open(2).
    pub(super) fn open(&self, segment: u64, direct: bool) -> io::Result<File> {
        self.files.open_for_writing(&self.path(segment), direct, false)
    }

    /// Measures how flushes do, on a file of its own. `body` writes to it and syncs it, through `lane` and others. It gets
    /// the file, opened `count` times, and its length in bytes.
    ///
    /// # Errors
    /// [`LogWriterError::File`] or [`LogWriterError::Direct`].
    pub(super) fn measure(
        &self,
        is_direct: bool,
        count: usize,
        lane: &mut Lane,
        body: impl FnOnce(&[File], u64, &mut Lane) -> io::Result<()>,
    ) -> Result<(), LogWriterError> {
        let path = self.directory.join("xlogtemp.trunkline-sync");
        let measured = self.fill(&path, lane).and_then(|()| {
            let files = (0..count).map(|_| self.files.open_for_writing(&path, is_direct, false));
            let files =
                files.collect::<io::Result<Vec<_>>>().map_err(|source| match is_direct {
                    true => LogWriterError::open_direct("open", &path, source),
                    false => LogWriterError::file("open", &path, source),
                })?;
            let measured = body(&files, self.size.bytes().into(), lane);
            measured.map_err(|source| LogWriterError::file("write to and sync", &path, source))
        });
        let removed = self.files.remove(&path);
        measured?;
        removed.map_err(|source| LogWriterError::file("remove", &path, source))
    }

    /// How flushes write with direct I/O and `fdatasync`, which depends on the file system of this segment.
    ///
    /// # Errors
    /// [`LogWriterError::Direct`] or [`LogWriterError::File`].
    pub(super) fn direct_method(&self, segment: u64) -> Result<FlushMethod, LogWriterError> {
        let path = self.path(segment);
        let file = self.open(segment, true);
        let file = file.map_err(|source| LogWriterError::open_direct("open", &path, source))?;
        let method = FlushMethod::direct(file.alignment());
        let refused = || StorageError::alignment(path, file.alignment());
        method.ok_or_else(|| LogWriterError::Direct(Arc::new(refused())))
    }

    /// Reads WAL that begins and ends in one segment.
    ///
    /// # Errors
    /// [`LogWriterError::File`].
    pub(super) fn read(
        &self,
        from: Lsn,
        bytes: &mut [u8],
        lane: &mut Lane,
    ) -> Result<(), LogWriterError> {
        let segment = self.size.segment_of(from);
        let path = self.path(segment);
        let file = self.open(segment, false);
        let file = file.map_err(|source| LogWriterError::file("open", &path, source))?;
        let read = lane.read(&file, u64::from(self.size.offset(from)), bytes);
        read.map_err(|source| LogWriterError::file("read", &path, source))
    }

    /// Whether a segment exists.
    ///
    /// # Errors
    /// [`LogWriterError::File`].
    pub(super) fn exists(&self, segment: u64) -> Result<bool, LogWriterError> {
        Ok(self.length(segment)?.is_some())
    }

    /// The length of a segment's file in bytes, if it exists.
    fn length(&self, segment: u64) -> Result<Option<u64>, LogWriterError> {
        let path = self.path(segment);
        let length = self.files.file_length(&path);
        length.map_err(|source| LogWriterError::file("read the length of", &path, source))
    }

    /// Creates a segment, through the session and memory of `lane`. An existing file of that name is replaced.
    ///
    /// # Errors
    /// [`LogWriterError::File`]. A file of that name may exist; the next attempt replaces it.
    pub(super) fn create(&self, segment: u64, lane: &mut Lane) -> Result<(), LogWriterError> {
        let temporary = self.directory.join(format!("xlogtemp.trunkline-{segment}"));
        let created = self.fill(&temporary, lane);
        if created.is_err() {
            // It takes disk space that may be missing. If it can't be removed, the next attempt overwrites it.
            let _ = self.files.remove(&temporary);
        }
        created?;
        let path = self.path(segment);
        let renamed = self.files.rename(&temporary, &path);
        renamed.map_err(|source| LogWriterError::file("rename to", &path, source))?;
        let synced = self.files.sync_directory_of(&path);
        synced.map_err(|source| LogWriterError::file("fsync the directory of", &path, source))
    }

    /// Makes the WAL end at `end`: what its segment has after that is overwritten with zeros, and later segments are
    /// removed. Otherwise an old record could fit after a new one, if that is as long as the one it once followed.
    /// [`SegmentStore::sync`] makes the zeros durable.
    ///
    /// # Errors
    /// [`LogWriterError::File`].
    pub(super) fn erase_after(&self, end: Lsn, lane: &mut Lane) -> Result<(), LogWriterError> {
        let number = self.size.segment_of(end);
        let from = u64::from(self.size.offset(end));
        let first = if from == 0 { number } else { number + 1 };
        let mut later = first;
        while self.exists(later)? {
            later += 1;
        }
        // From the last to the first, and each for good, so that a crash leaves no gap, after which others would be
        // overlooked.
        for segment in (first..later).rev() {
            let path = self.path(segment);
            let removed = self.files.remove(&path);
            removed.map_err(|source| LogWriterError::file("remove", &path, source))?;
            self.sync_directory()?;
        }
        if from == 0 {
            return Ok(());
        }
        let path = self.path(number);
        let file = self.open(number, false);
        let file = file.map_err(|source| LogWriterError::file("open", &path, source))?;
        let length = u64::from(self.size.bytes()) - from;
        lane.zero(&file, from, length)
            .map_err(|source| LogWriterError::file("write zeros to", &path, source))
    }

    /// Gives the segments before the one that contains `place` the names of future ones: of `next`, which doesn't exist,
    /// and of those that follow it, before `until`. Removes the rest. Returns the first segment that doesn't exist then.
    ///
    /// The oldest comes first, and each change is durable before the next one, so that a crash leaves no gap, neither
    /// among the old segments nor among the new ones.
    ///
    /// # Errors
    /// [`LogWriterError::File`]. Files may have new names; creating these segments replaces them.
    pub(super) fn recycle_before(
        &self,
        place: Lsn,
        mut next: u64,
        until: u64,
    ) -> Result<u64, LogWriterError> {
        let end = self.size.segment_of(place);
        let mut first = end;
        while first > 0 && self.exists(first - 1)? {
            first -= 1;
        }
        for segment in first..end {
            let path = self.path(segment);
            if next < until && self.length(segment)? == Some(self.size.bytes().into()) {
                let renamed = self.files.rename(&path, &self.path(next));
                renamed.map_err(|source| LogWriterError::file("rename", &path, source))?;
                next += 1;
            } else {
                let removed = self.files.remove(&path);
                removed.map_err(|source| LogWriterError::file("remove", &path, source))?;
            }
            self.sync_directory()?;
        }
        Ok(next)
    }

    /// Makes the names of segments durable.
    fn sync_directory(&self) -> Result<(), LogWriterError> {
        let synced = self.files.sync_directory_of(&self.path(0));
        synced.map_err(|source| LogWriterError::file("fsync", &self.directory, source))
    }

    /// Makes the segments durable that contain the WAL from `redo` to `end`, and their names.
    ///
    /// # Errors
    /// [`LogWriterError::File`].
    pub(crate) fn sync(&self, redo: Lsn, end: Lsn, lane: &mut Lane) -> Result<(), LogWriterError> {
        let last = self.size.segment_of(Lsn(end.0.saturating_sub(1)));
        for segment in self.size.segment_of(redo)..=last {
            let path = self.path(segment);
            let file = self.open(segment, false);
            let file = file.map_err(|source| LogWriterError::file("open", &path, source))?;
            let synced = lane.sync(&file, true);
            synced.map_err(|source| LogWriterError::file("fsync", &path, source))?;
        }
        self.sync_directory()
    }

    /// Creates a file of a segment's size, filled with zeros.
    ///
    /// # Errors
    /// [`LogWriterError::File`] or [`LogWriterError::Direct`].
    fn fill(&self, path: &Path, lane: &mut Lane) -> Result<(), LogWriterError> {
        let file = self.files.open_for_writing(path, self.direct_init, true);
        let file = file.map_err(|source| match self.direct_init {
            true => LogWriterError::open_direct("create", path, source),
            false => LogWriterError::file("create", path, source),
        })?;
        lane.zero(&file, 0, self.size.bytes().into())
            .map_err(|source| LogWriterError::file("write zeros to", path, source))?;
        lane.sync(&file, true).map_err(|source| LogWriterError::file("fsync", path, source))
    }
}
