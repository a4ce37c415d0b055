//! Reading one page of an SLRU file, by a thread or by a task.
//!
//! ```text
//!   opening (a worker, if the thread must not block) ──▶ open ──▶ reading ──▶ the page, or a fault
//!      ▲                                                             │
//!      └──────────────────────── the read was short ◀────────────────┘
//! ```
//! Reading may take a long time, so a session must not hold a content lock during a read.
//!
//! Many scans may start at the same time and need the same page. Only one of them reads it, and the
//! others wait until that I/O has completed. They don't wait for the other scan to be polled, so if
//! it hasn't put the page into the cache by then, the next one reads the page itself.

use std::io;
use std::path::{Path, PathBuf};
use std::task::{Poll, ready};

use trunkline_aio::facade::Arc;
use trunkline_aio::{Call, Cancelled, Class, File, Session, Slots, Status, WaitRef};
use trunkline_format::transam::SlruPosition;
use trunkline_format::{BLOCK_SIZE, PageBytes};

use super::error::{SlruFault, SlruProblem};
use super::page_cache::{CachedPage, Key};
use super::slru::SlruFiles;
use crate::storage::{DEFAULT_TABLESPACE, Storage};
use crate::waiting::Waiting;

/// Maximum number of attempts to read a page that is entirely within the file. After a short read,
/// we read the whole page again. Short reads are so rare here that it isn't worth adding code to
/// resume them.
const READS_MAX: u32 = 8;

/// An open file, and how many bytes it has from the beginning of the page on.
type Opened = Result<(File, u64), SlruProblem>;

/// A page that is being read. PostgreSQL extends these files by whole pages and refuses to read a
/// partial one, so if the file ends before the end of the page, we treat the page as missing. The
/// caller must decide what a missing page means.
#[derive(Debug)]
pub(super) struct PageRead {
    key: Key,
    path: PathBuf,
    offset: u64,
    /// The last read, if there was one.
    io: Option<WaitRef>,
    /// Number of reads so far.
    reads: u32,
    step: Step,
}

#[derive(Debug)]
enum Step {
    /// Opening the file, and determining its length.
    Opening(Call<Opened>),
    Open(File, u64),
    Reading(File, u64, Slots),
}

impl PageRead {
    /// Starts to read the page of a position.
    pub(super) fn start(
        files: &SlruFiles,
        session: &mut Session,
        key: Key,
        place: SlruPosition,
    ) -> Self {
        let path = files.path(key.0, place.segment());
        let offset = SlruPosition { byte: 0, ..place }.offset();
        let step = Step::Opening(open(session, files.storage(), &path, offset, None));
        Self { key, path, offset, io: None, reads: 0, step }
    }

    /// Goes on until the page is there, or until the step has to wait. A page that can be cached is
    /// in the cache afterwards. Returns `None` if another session's read of the page has ended, so
    /// that the page may be in the cache by now. If it isn't, the caller calls this again.
    ///
    /// # Errors
    /// The session was cancelled. If the page can't be read, that is the page's fault.
    pub(super) fn advance(
        &mut self,
        files: &SlruFiles,
        session: &mut Session,
        waiting: &mut Waiting<'_, '_>,
    ) -> Poll<Result<Option<CachedPage>, Cancelled>> {
        let page = loop {
            let next = match &mut self.step {
                Step::Opening(call) => match call.take() {
                    Some(Ok((file, length))) => Ok(Step::Open(file, length)),
                    Some(Err(problem)) => Err(problem),
                    None => {
                        ready!(waiting.until(session, || call.is_done()))?;
                        continue;
                    }
                },
                Step::Open(file, length) => {
                    let Some(issued) = issue(files, self.key, session, file, self.offset) else {
                        ready!(waiting.for_handle(session, Class::Foreground))?;
                        continue;
                    };
                    // An earlier poll may have joined the queue for a handle.
                    waiting.leave_queue();
                    match issued {
                        Issue::Other(io) => {
                            ready!(waiting.for_io(session, io))?;
                            return Poll::Ready(Ok(None));
                        }
                        Issue::Issued(io, slots) => {
                            self.io = Some(io);
                            Ok(Step::Reading(file.clone(), *length, slots))
                        }
                        Issue::Failed(problem) => Err(problem),
                    }
                }
                Step::Reading(file, length, slots) => {
                    let outcome = ready!(waiting.for_slot(session, slots, 0))?;
                    let found = (outcome.count as usize).min(BLOCK_SIZE);
                    self.reads += 1;
                    match outcome.errno().filter(|_| outcome.status == Status::Error) {
                        Some(errno) => Err(SlruProblem::Read(io::Error::from_raw_os_error(errno))),
                        None if found == BLOCK_SIZE => break Ok(copy(slots)),
                        // If the file ends within this page, a short read is all we can get.
                        None if found as u64 >= *length => Err(SlruProblem::Short { found }),
                        None if self.reads == READS_MAX => {
                            Err(SlruProblem::Read(io::ErrorKind::UnexpectedEof.into()))
                        }
                        None => {
                            let file = Some(file.clone());
                            let storage = files.storage();
                            let call = open(session, storage, &self.path, self.offset, file);
                            Ok(Step::Opening(call))
                        }
                    }
                }
            };
            match next {
                Ok(step) => self.step = step,
                Err(problem) => {
                    let (path, offset) = (self.path.clone(), self.offset);
                    break Err(Arc::new(SlruFault { path, offset, problem }));
                }
            }
        };
        files.remember(self.key, self.io, &page);
        Poll::Ready(Ok(Some(page)))
    }
}

/// Opens the file, unless it's open already, and determines its length. We check the length again
/// for every attempt, in case it has changed.
fn open(
    session: &mut Session,
    storage: &Storage,
    path: &Path,
    offset: u64,
    file: Option<File>,
) -> Call<Opened> {
    // These files are not in a tablespace, but usually on the mount of the default one.
    let number = storage.call_number(DEFAULT_TABLESPACE);
    let (storage, path) = (storage.clone(), path.to_owned());
    session.call(number, move || {
        // Never use direct I/O here: the server also reads and writes these files through the page
        // cache.
        let file = match file.map_or_else(|| storage.system().open(&path, false), Ok) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(SlruProblem::Missing);
            }
            Err(error) => return Err(SlruProblem::Open(error)),
        };
        match storage.system().length(&file) {
            Ok(length) => Ok((file, length.saturating_sub(offset))),
            Err(error) => Err(SlruProblem::Read(error)),
        }
    })
}

/// What became of an attempt to issue a read.
enum Issue {
    Issued(WaitRef, Slots),
    /// Another session is reading the page.
    Other(WaitRef),
    Failed(SlruProblem),
}

/// Issues the read into a leased frame, unless another session is reading the page. We lease the
/// frame from the page region, because that memory is registered with the rings. There aren't many
/// frames, so we don't keep one while we wait for anything but the read itself. Returns `None` if
/// every I/O handle is in use.
fn issue(
    files: &SlruFiles,
    key: Key,
    session: &mut Session,
    file: &File,
    offset: u64,
) -> Option<Issue> {
    let before = files.last_read(&key);
    if let Some(other) = before.filter(|io| !session.is_complete(*io)) {
        return Some(Issue::Other(other));
    }
    let lease = session.lease(1);
    let handle = session.try_acquire(Class::Foreground)?;
    let Some(lease) = lease else {
        let text = "no frame of the page region is free for a read";
        return Some(Issue::Failed(SlruProblem::Read(io::Error::other(text))));
    };
    let io = handle.wait_ref();
    if let Some(faster) = files.note_read(key, before, io) {
        return Some(Issue::Other(faster));
    }
    let mut slots = Slots::new(1);
    if let Some(memory) = slots.memory(0) {
        memory.push(lease);
    }
    Some(match handle.needed_now().read(file, offset, BLOCK_SIZE as u32, &mut slots, 0) {
        Ok(_) => Issue::Issued(io, slots),
        Err(error) => Issue::Failed(SlruProblem::Read(io::Error::other(error))),
    })
}

/// Copies the page out of the frame. There aren't many frames, and we may keep the page for a long
/// time.
fn copy(slots: &mut Slots) -> Arc<PageBytes> {
    let mut page = [0; BLOCK_SIZE];
    if let Some(frame) = slots.memory(0).and_then(|memory| memory.first())
        && let Some(bytes) = frame.get(..BLOCK_SIZE)
    {
        page.copy_from_slice(bytes);
    }
    Arc::new(page)
}
