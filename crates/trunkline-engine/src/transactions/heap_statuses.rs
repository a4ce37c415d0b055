//! The statuses that a heap page's rows need: reads them before the rows are judged.
//!
//! A heap scan judges a page in one pass, and starts over if a status is missing. Code for which a
//! lookup is followed by effects can't start over. It uses these functions, which first look up the
//! status of every row only to find out what is missing.

use trunkline_aio::{Cancelled, Session};
use trunkline_format::heap_tuple::is_all_visible;
use trunkline_format::page::{LinePointerFlags, PageHeader, is_new, line_pointers};
use trunkline_format::transam::{XidStatusLookup, row_state};
use trunkline_format::{BLOCK_SIZE, HeapTuple, PageBytes};

use super::status::Transactions;
use super::status_pages::StatusPages;
use crate::pool::{Backend, Page, PinRef};
use crate::waiting::{Waiting, slept};

impl Transactions {
    /// Reads all status pages that the rows of a copied heap page need. Until the next call,
    /// lookups for its rows don't return [`TransactionError::NotLoaded`].
    ///
    /// # Errors
    /// The session was cancelled.
    pub(crate) fn load_for(
        &self,
        page: &PageBytes,
        session: &mut Session,
        pages: &mut StatusPages,
    ) -> Result<(), Cancelled> {
        pages.begin();
        loop {
            self.find_missing(page, pages);
            if pages.is_complete() {
                return Ok(());
            }
            slept(self.load(pages, session, &mut Waiting::Sleep))?;
        }
    }

    /// Locks a heap page for reading, with all status pages at hand that its rows need unless it is
    /// all-visible. No page is read while the lock is held.
    ///
    /// # Errors
    /// The session was cancelled.
    pub(crate) fn lock_and_load<'p>(
        &self,
        backend: &mut Backend,
        pin: PinRef<'p>,
        pages: &mut StatusPages,
    ) -> Result<Page<'p>, Cancelled> {
        pages.begin();
        loop {
            let page = backend.read_lock(pin)?;
            if !is_all_visible(&page) {
                self.find_missing(&page, pages);
            }
            if pages.is_complete() {
                return Ok(page);
            }
            drop(page);
            slept(self.load(pages, backend.session(), &mut Waiting::Sleep))?;
        }
    }

    /// Looks up the status of every row, to find the pages that are missing.
    fn find_missing(&self, page: &PageBytes, pages: &mut StatusPages) {
        if is_new(page) || usize::from(PageHeader::parse(page).special) != BLOCK_SIZE {
            return;
        }
        let mut lookup = self.lookup(pages);
        for (item, pointer) in line_pointers(page) {
            if pointer.flags == LinePointerFlags::Normal
                && let Ok(tuple) = HeapTuple::parse(item, pointer.item(page).unwrap_or_default())
            {
                // Errors matter only to the caller's own lookup.
                let _ = row_state(&tuple, &mut lookup);
                // Even if the state doesn't depend on it, the caller may follow the HOT chain.
                if let Some(multi) = tuple.updating_multixact().filter(|_| tuple.is_hot_updated()) {
                    let _ = lookup.updater(multi);
                }
            }
        }
    }
}
