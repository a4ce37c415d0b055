//! Segment opener: locates blocks for a session that must not block while a segment is opened.
//!
//! Opening a file may block, even forever if its mount hangs. A thread can do that, but a task of
//! an async runtime would hold up all other tasks of its thread. So if a segment isn't open, the
//! opener starts a call ([`trunkline_aio::Session::call`]), and the caller waits for it as it would
//! wait for an I/O. In a session that may block, the call is over immediately, so both kinds of
//! callers use the same code.

use trunkline_aio::{Call, File, Session};
use trunkline_format::BlockNo;

use super::error::StorageError;
use super::file_table::Key;
use super::relation::{Located, Relation};
use super::replayed_pages::ReplayedPlace;

impl Relation {
    /// Starts to determine the fork's length ([`Relation::blocks`]). In a session that must not
    /// block, a worker does that. A task polls with [`Session::poll_for`] until [`Call::is_done`],
    /// and then takes the result.
    pub fn count_blocks(&self, session: &mut Session) -> Call<Result<BlockNo, StorageError>> {
        let theirs = self.clone();
        let number = self.storage().call_number(self.locator().tablespace);
        session.call(number, move || theirs.blocks())
    }
}

/// Opens one segment at a time, for one stream or session.
#[derive(Debug, Default)]
pub(crate) struct SegmentOpener {
    opening: Option<Opening>,
}

/// A segment that is being opened, or that was opened but not used yet.
#[derive(Debug)]
struct Opening {
    /// The segment, and the block if it is built from the log.
    key: (Key, Option<BlockNo>),
    call: Call<Result<File, StorageError>>,
    /// The call's result. We keep the file until it has been used, because the open-file table may
    /// evict it before that. Otherwise, two tasks could evict each other's file forever.
    file: Option<File>,
}

impl SegmentOpener {
    /// Returns the location of `block`, or `None` if its segment is still being opened. The caller
    /// then waits until [`SegmentOpener::is_done`], and calls this again. If the session's thread
    /// opens the segment itself, its staged I/O is submitted first.
    ///
    /// If the caller can't use the file yet, for example because there is no I/O handle, it calls
    /// this again later. Otherwise it calls [`SegmentOpener::close`].
    ///
    /// # Errors
    /// As for [`Relation::locate`].
    pub(crate) fn locate(
        &mut self,
        session: &mut Session,
        relation: &Relation,
        block: BlockNo,
    ) -> Result<Option<Located>, StorageError> {
        let Some(built) = relation.storage().built() else {
            return self.locate_in_file(session, relation, block);
        };
        match relation.place(built, block)? {
            ReplayedPlace::Built(located) => Ok(Some(located)),
            ReplayedPlace::File { of, blocks } => {
                let located = self.locate_in_file(session, &of, block)?;
                Ok(located.map(|located| located.at_most(blocks)))
            }
            ReplayedPlace::NotBuilt => {
                let theirs = relation.clone();
                let build = move || theirs.locate(block).map(|located| located.file);
                let key = relation.key(relation.segment_of(block).0);
                self.call(session, relation, (key, Some(block)), build)?;
                // If it is built by now, it is found.
                match relation.place(built, block)? {
                    ReplayedPlace::Built(located) => Ok(Some(located)),
                    _ => Ok(None),
                }
            }
        }
    }

    /// [`SegmentOpener::locate`] in the relation's own file.
    fn locate_in_file(
        &mut self,
        session: &mut Session,
        relation: &Relation,
        block: BlockNo,
    ) -> Result<Option<Located>, StorageError> {
        let key = relation.key(relation.segment_of(block).0);
        if let Some(file) = relation.storage().table().find(&key) {
            return relation.locate_in(block, || Ok(file)).map(Some);
        }
        let theirs = relation.clone();
        let open = move || theirs.locate_file(block).map(|located| located.file);
        let file = self.call(session, relation, (key, None), open)?;
        file.map(|file| relation.locate_in(block, || Ok(file))).transpose()
    }

    /// The result of a call, if it is over. Starts the call if it isn't the one that was started last.
    fn call(
        &mut self,
        session: &mut Session,
        relation: &Relation,
        key: (Key, Option<BlockNo>),
        open: impl FnOnce() -> Result<File, StorageError> + Send + 'static,
    ) -> Result<Option<File>, StorageError> {
        let opening = match &mut self.opening {
            Some(opening) if opening.key == key => opening,
            // If another segment is being opened, we give up waiting for it. It may be needed again
            // later, and then it is probably open.
            opening => {
                let number = relation.storage().call_number(relation.locator().tablespace);
                opening.insert(Opening { key, call: session.call(number, open), file: None })
            }
        };
        match opening.call.take() {
            Some(Ok(file)) => opening.file = Some(file),
            Some(Err(error)) => {
                self.opening = None;
                return Err(error);
            }
            None => {}
        }
        Ok(opening.file.clone())
    }

    /// Whether no segment is being opened.
    pub(crate) fn is_done(&self) -> bool {
        self.opening.as_ref().is_none_or(|opening| opening.call.is_done())
    }

    /// Closes the opener's file, because it has been used or isn't needed. A segment that is still
    /// being opened isn't affected, because a task may be waiting for that.
    pub(crate) fn close(&mut self) {
        if self.is_done() {
            self.opening = None;
        }
    }
}
