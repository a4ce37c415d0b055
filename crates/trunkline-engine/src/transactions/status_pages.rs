//! The status pages of one scan: the pages of the commit log and of multixacts that the rows of its
//! current heap page need.
//!
//! A session must not read a status page while it holds a content lock, and a task must not wait
//! for one in a lookup. So a lookup never reads anything. If a page is neither held nor in the
//! shared cache, the lookup notes the page and fails with [`TransactionError::NotLoaded`]. The scan
//! then unlocks its heap page, reads all the pages that were missing, and judges the heap page
//! again.
//!
//! ```text
//!   lock, look up the status of every row ──▶ nothing missing: done
//!     ▲                                  └──▶ unlock, load what is missing ─┐
//!     └──────────────────────────────────────────────────────────────────────┘
//! ```
//! This ends, because the scan holds every page that it has used until it goes on to its next heap
//! page, even if the shared cache evicts some of them. Usually, the next heap page needs the same
//! status pages. We therefore keep the last few, which also saves most accesses to the shared
//! cache. PostgreSQL's `transam.c` remembers only the last transaction (`cachedFetchXid`).

use std::task::{Poll, ready};

use trunkline_aio::{Cancelled, Session};
use trunkline_format::PageBytes;
use trunkline_format::transam::{Slru, SlruPosition};

use super::error::{StatusId, TransactionError};
use super::page_cache::{CachedPage, Key, is_lasting};
use super::page_read::PageRead;
use super::slru::SlruFiles;
use crate::waiting::Waiting;

/// How many pages a scan keeps when it goes on to its next heap page.
const KEPT_MAX: usize = 8;

/// The status pages of one scan; see the module documentation.
#[derive(Debug, Default)]
pub struct StatusPages {
    /// Pages that lookups may use. There are only a few, so we search them one by one.
    held: Vec<(Key, CachedPage)>,
    /// Pages that lookups needed but did not find.
    missing: Vec<(Key, SlruPosition)>,
    /// The read of the last one of `missing`.
    reading: Option<PageRead>,
}

impl StatusPages {
    /// Starts to judge another heap page. A page that could not be read will be tried again, and a
    /// read that is still in flight is abandoned.
    pub(crate) fn begin(&mut self) {
        self.held.retain(|(_, page)| is_lasting(page));
        self.trim();
        self.give_up();
    }

    /// Drops all but the last few pages.
    pub(super) fn trim(&mut self) {
        let surplus = self.held.len().saturating_sub(KEPT_MAX);
        self.held.drain(..surplus);
    }

    /// Forgets what was missing, and abandons a read that is still in flight.
    fn give_up(&mut self) {
        self.missing.clear();
        self.reading = None;
    }

    /// Whether no lookup has needed a page that isn't held.
    pub(crate) fn is_complete(&self) -> bool {
        self.missing.is_empty()
    }

    /// Passes the page of a position to `look`.
    ///
    /// # Errors
    /// [`TransactionError::Status`] if the page doesn't exist or could not be read;
    /// [`TransactionError::NotLoaded`] if it must be read first.
    pub(super) fn look<T>(
        &mut self,
        files: &SlruFiles,
        id: StatusId,
        slru: Slru,
        place: SlruPosition,
        look: impl Fn(&PageBytes) -> T,
    ) -> Result<T, TransactionError> {
        let key = (slru, place.page);
        let held = self.held.iter().rposition(|(held, _)| *held == key);
        let at = match held {
            Some(at) => at,
            None => match files.cached(&key) {
                Some(page) => {
                    self.held.push((key, page));
                    self.held.len() - 1
                }
                None => {
                    if self.missing.iter().all(|(missing, _)| *missing != key) {
                        self.missing.push((key, place));
                    }
                    return Err(TransactionError::NotLoaded { id });
                }
            },
        };
        match &self.held[at].1 {
            Ok(page) => Ok(look(page)),
            Err(fault) => Err(TransactionError::Status { id, fault: fault.clone() }),
        }
    }

    /// Reads the pages that lookups have missed. The caller must not hold a content lock.
    ///
    /// # Errors
    /// The session was cancelled. If a page can't be read, later lookups return the error.
    pub(super) fn load(
        &mut self,
        files: &SlruFiles,
        session: &mut Session,
        waiting: &mut Waiting<'_, '_>,
    ) -> Poll<Result<(), Cancelled>> {
        while let Some(&(key, place)) = self.missing.last() {
            // Another session may have read the page in the meantime.
            let cached = files.cached(&key);
            let page = match cached {
                Some(page) => {
                    waiting.leave_queue();
                    page
                }
                None => {
                    let start = || PageRead::start(files, session, key, place);
                    let read = self.reading.get_or_insert_with(start);
                    match ready!(read.advance(files, session, waiting)) {
                        Ok(Some(page)) => page,
                        Ok(None) => continue,
                        // The next lookup may need another page, and must not be given this one.
                        Err(cancelled) => {
                            self.give_up();
                            return Poll::Ready(Err(cancelled));
                        }
                    }
                }
            };
            self.reading = None;
            self.missing.pop();
            self.held.push((key, page));
        }
        Poll::Ready(Ok(()))
    }
}
