//! A stream of index pages whose blocks are added while it runs.
//!
//! A scan learns which pages it needs from the pages that it reads. The stream ends whenever it has no
//! more blocks, and goes on when blocks were added. It can be polled by a task, or by a read stream
//! whose source the scan is ([`SourceWait`]), and never keeps a page locked.
//!
//! Every page of an index scan comes from such a stream. So it is here that a scan of cached pages
//! notices a cancel, and gives other tasks a turn ([`Turns`]).

use std::collections::VecDeque;
use std::task::{Poll, ready};

use trunkline_aio::facade::{Arc, Mutex};
use trunkline_format::{BlockNo, PageBytes};

use crate::pool::{Backend, LockWait, ReadError, Tally};
use crate::read_stream::{
    BlockSource, Expected, ReadStream, SourceWait, StreamOptions, StreamPage, StreamStats,
};
use crate::storage::Relation;
use crate::waiting::Turns;

/// Blocks for a stream to read. A scan adds blocks and the stream removes them. They have to share
/// the queue because the stream owns its block source, but the mutex is never contended.
#[derive(Debug, Clone, Default)]
pub(super) struct BlockQueue {
    blocks: Arc<Mutex<VecDeque<BlockNo>>>,
    /// All blocks are needed.
    full: bool,
}

impl BlockQueue {
    /// Adds blocks at the end.
    pub(super) fn extend(&self, blocks: impl IntoIterator<Item = BlockNo>) {
        self.blocks.lock().extend(blocks);
    }

    /// The number of blocks that the stream hasn't taken.
    pub(super) fn len(&self) -> usize {
        self.blocks.lock().len()
    }
}

impl BlockSource for BlockQueue {
    type Data = ();

    fn next_block(&mut self) -> Poll<Option<(BlockNo, ())>> {
        Poll::Ready(self.blocks.lock().pop_front().map(|block| (block, ())))
    }

    fn next_is(&self) -> Expected {
        if self.full && self.len() > 0 { Expected::Certain } else { Expected::Unknown }
    }
}

/// A stream of pages, see the module documentation.
#[derive(Debug)]
pub(crate) struct PageStream {
    stream: ReadStream<BlockQueue>,
    queue: BlockQueue,
    /// The stream's current page hasn't been passed on, because it was locked.
    unread: bool,
    /// A task waits for the lock of that page.
    lock_wait: Option<LockWait>,
    turns: Turns,
}

impl PageStream {
    /// A stream without blocks.
    pub(crate) fn new(backend: &Backend, relation: &Relation, options: StreamOptions) -> Self {
        let queue = BlockQueue { full: options.full, ..BlockQueue::default() };
        let options = StreamOptions { unordered: false, sequential: false, ..options };
        let stream = ReadStream::new(backend, relation, queue.clone(), options);
        Self { stream, queue, unread: false, lock_wait: None, turns: Turns::default() }
    }

    /// A stream that reads one page at a time.
    pub(crate) fn one_by_one(backend: &Backend, relation: &Relation) -> Self {
        let options = StreamOptions { concurrency: 1, combine: 1, ..StreamOptions::default() };
        Self::new(backend, relation, options)
    }

    /// Adds blocks.
    pub(crate) fn extend(&mut self, blocks: impl IntoIterator<Item = BlockNo>) {
        self.queue.extend(blocks);
        self.stream.go_on();
    }

    /// The number of blocks that the stream hasn't begun to read.
    pub(crate) fn unstarted(&self) -> usize {
        self.queue.len()
    }

    /// Whether the consumer has had to wait, so that the stream looks ahead.
    pub(crate) fn looks_ahead(&self) -> bool {
        self.stream.distance() > 1
    }

    /// Passes the next page to `use_page`, under a share lock.
    ///
    /// # Errors
    /// The page can't be read, or the session was cancelled. After a cancel, the page comes again.
    /// # Panics
    /// If all blocks that were added have been passed on.
    pub(crate) fn poll_page<T>(
        &mut self,
        backend: &mut Backend,
        wait: &mut SourceWait<'_, '_>,
        use_page: impl FnOnce(BlockNo, &PageBytes) -> T,
    ) -> Poll<Result<T, ReadError>> {
        ready!(self.turns.next_page(backend.session(), wait.waiting()))?;
        if !self.unread {
            let next = ready!(self.stream.next_from_source(backend, wait))?;
            // If this were the end, rows would be missing from the scan's result.
            assert!(next.is_some(), "no page was requested");
            self.unread = true;
        }
        let Some(StreamPage { pin, block, .. }) = self.stream.current() else {
            unreachable!("an unread page is the stream's current page");
        };
        let page = match wait.waiting() {
            Some(waiting) => ready!(backend.lock_shared(waiting, pin, &mut self.lock_wait))?,
            None => match pin.try_read() {
                Some(page) => page,
                None => return Poll::Pending,
            },
        };
        let used = use_page(block, &page);
        drop(page);
        self.unread = false;
        // A scan has several streams, and few pins are guaranteed to a session.
        self.stream.release_page();
        Poll::Ready(Ok(used))
    }

    /// Ends a wait that a task won't continue now, so that its session isn't woken in vain, or in place
    /// of another session.
    pub(crate) fn stop_waiting(&mut self) {
        self.lock_wait = None;
        self.stream.give_up_wait();
    }

    /// Forgets all blocks, and releases their pages.
    pub(crate) fn clear(&mut self) {
        self.unread = false;
        self.lock_wait = None;
        self.queue.blocks.lock().clear();
        self.stream.reset(self.queue.clone());
    }

    /// Releases all pins. No page is skipped.
    pub(crate) fn release_ahead(&mut self) {
        self.lock_wait = None;
        match self.unread {
            // It comes again.
            true => self.stream.release_all(),
            false => self.stream.release_ahead(),
        }
        self.unread = false;
    }

    /// Statistics of the stream so far.
    pub(crate) fn stats(&self) -> StreamStats {
        self.stream.stats()
    }

    /// Hits, reads and times of the stream so far.
    pub(crate) fn buffer_usage(&self) -> Tally {
        self.stream.buffer_usage()
    }
}
