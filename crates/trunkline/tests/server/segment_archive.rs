//! An archive of a cluster's WAL segments, for a server that follows it as a standby.
//!
//! ```text
//!   pg_wal of the cluster ── complete and durable segments are copied ──▶ archive ── restore_command ──▶ standby
//!                                            ▲                                            │
//!                                            └── waits if it is far ahead ◀── requests ◀──┘ a named pipe
//! ```
//! The standby writes the name of each file that it asks for into the pipe. If it asks for a segment, it has replayed
//! those before, so they can be removed.

use std::fs::{self, File, Permissions};
use std::io::{ErrorKind, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{CWD, Mode, OFlags, mkfifoat, open};
use trunkline_format::Lsn;
use trunkline_format::wal::{SegmentName, SegmentSize};

/// That many segments may be in the archive that the standby has not asked for.
const AHEAD: u64 = 16;

/// That many segments stay in the archive although the standby has asked for a later one. If a record continues in the next
/// segment, the standby may read its beginning again.
const BEHIND: u64 = 4;

/// How long the standby may take to ask for the next file.
const PATIENCE: Timespec = Timespec { tv_sec: 300, tv_nsec: 0 };

/// A folder with segments, and what the standby has asked for.
pub(crate) struct SegmentArchive {
    wal: PathBuf,
    folder: PathBuf,
    pipe: PathBuf,
    requests: File,
    /// The beginning of a line whose rest is not read yet.
    line: Vec<u8>,
    size: SegmentSize,
    first: u64,
    /// The next segment that will be copied.
    next: u64,
    /// The latest segment that the standby has asked for. `None` before it starts.
    requested: Option<u64>,
    /// The oldest segment in the archive.
    oldest: u64,
}

impl SegmentArchive {
    /// An empty archive in a folder, for the WAL in `wal` from segment `first` on.
    pub(crate) fn new(folder: PathBuf, wal: PathBuf, size: SegmentSize, first: u64) -> Self {
        let pipe = folder.join("requests");
        mkfifoat(CWD, &pipe, Mode::RUSR | Mode::WUSR).expect("a pipe");
        // The standby's user may be another one.
        fs::set_permissions(&pipe, Permissions::from_mode(0o666)).expect("changed");
        let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let requests = File::from(open(&pipe, flags, Mode::empty()).expect("opened"));
        let (line, requested) = (Vec::new(), None);
        Self {
            wal,
            folder,
            pipe,
            requests,
            line,
            size,
            first,
            next: first,
            requested,
            oldest: first,
        }
    }

    /// The standby's `restore_command`.
    pub(crate) fn restore_command(&self) -> String {
        let (folder, pipe) = (self.folder.display(), self.pipe.display());
        format!("echo %f > \"{pipe}\"; test -f \"{folder}/%f\" && cp \"{folder}/%f\" \"%p\"")
    }

    /// The number of segments that were copied.
    pub(crate) fn copied(&self) -> u64 {
        self.next - self.first
    }

    /// Copies the segments that are durable up to their end. The cluster must keep them long enough. Waits until the standby
    /// is near, if it has started.
    pub(crate) fn copy(&mut self, durable: Lsn) {
        self.copy_up_to(self.size.segment_of(durable));
        while self.read_requests() > 0 {}
        while self.requested.is_some_and(|requested| requested + AHEAD < self.next) {
            self.wait();
        }
        let until = self.requested.map_or(0, |requested| requested.saturating_sub(BEHIND));
        while self.oldest < until {
            fs::remove_file(self.folder.join(self.name(self.oldest))).expect("removed");
            self.oldest += 1;
        }
    }

    /// Copies the rest of the WAL of a cluster that was shut down, and waits until the standby has replayed it.
    pub(crate) fn copy_rest(&mut self, end: Lsn) {
        let last = self.size.segment_of(Lsn(end.0 - 1));
        self.copy_up_to(last);
        while self.requested < Some(last) {
            self.wait();
        }
        self.copy_up_to(last + 1);
        // The first of these requests may have come before the copy, the next one is answered with the segment, and the third
        // comes after its replay, since the standby asks again when it finds no record.
        while self.read_requests() > 0 {}
        let mut asked = 0;
        while asked < 3 {
            asked += self.wait();
        }
    }

    fn name(&self, segment: u64) -> String {
        SegmentName::of(1, segment, self.size).to_string()
    }

    /// Copies the segments before `end`, each first under another name.
    fn copy_up_to(&mut self, end: u64) {
        while self.next < end {
            let name = self.name(self.next);
            let partial = self.folder.join("partial");
            fs::copy(self.wal.join(&name), &partial).expect("the cluster has kept it");
            fs::set_permissions(&partial, Permissions::from_mode(0o644)).expect("changed");
            fs::rename(&partial, self.folder.join(&name)).expect("renamed");
            self.next += 1;
        }
    }

    /// Waits for requests. Returns the number of those for the latest segment.
    fn wait(&mut self) -> u64 {
        let mut ready = [PollFd::new(&self.requests, PollFlags::IN)];
        let count = poll(&mut ready, Some(&PATIENCE)).expect("polled");
        assert!(count > 0, "the standby asks for nothing any more");
        self.read_requests()
    }

    /// Reads the requests in the pipe. Returns the number of those for the latest segment.
    fn read_requests(&mut self) -> u64 {
        let mut bytes = [0; 4096];
        let count = match self.requests.read(&mut bytes) {
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => 0,
            Err(error) => panic!("{error}"),
        };
        let mut latest = 0;
        for byte in &bytes[..count] {
            if *byte != b'\n' {
                self.line.push(*byte);
                continue;
            }
            let line = String::from_utf8(std::mem::take(&mut self.line)).expect("text");
            // It also asks for histories of timelines.
            let Some(segment) = SegmentName::parse(&line).and_then(|it| it.number(self.size))
            else {
                continue;
            };
            if self.requested < Some(segment) {
                (self.requested, latest) = (Some(segment), 0);
            }
            latest += u64::from(self.requested == Some(segment));
        }
        latest
    }
}

/// The name of a segment of timeline 1 in a data directory.
pub(crate) fn segment_path(data: &Path, segment: u64, size: SegmentSize) -> PathBuf {
    data.join("pg_wal").join(SegmentName::of(1, segment, size).to_string())
}
