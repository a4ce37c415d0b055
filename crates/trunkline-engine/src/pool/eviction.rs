//! Eviction writes: a session flushes dirty pages when no buffer is clean.
//!
//! The clock sweep skips dirty buffers, so a session that needs a buffer takes a clean one if there
//! is one. Only if every unpinned buffer is dirty does the session flush a batch of the least used
//! pages. Neighbouring blocks are combined into one write, and all of the batch's writes are in
//! flight at the same time. The session then waits until any buffer becomes a victim. The first
//! write to complete provides one, no matter which session issued it.
//!
//! PostgreSQL flushes one victim at a time, in the backend that needs the buffer
//! (`GetVictimBuffer`).
//!
//! # Progress
//!
//! The pin limiter guarantees every admitted session a share of the buffers, so there's always a
//! buffer that is unpinned or about to be unpinned. If that buffer is dirty, we must be able to
//! write it. A session that waits for a victim is therefore woken in four cases: another session
//! unpins a buffer, any write completes, an I/O handle becomes free, or one of its own writes
//! fails. The session reports an error only if a write has failed, no write is in flight and there
//! is no victim. If the write that failed was another session's, this session first tries to write
//! a page itself, because only its own error proves that it can't make progress.

use super::descriptor::{USAGE_MAX, flag};
use super::error::WriteError;
use super::manager::BufferManager;
use super::replacement::ring_buffer::Strategy;
use super::statistics::{BackendType, IoCounter, Statistics};
use super::tag::BufferTag;
use super::write::{PageWrites, WriteRequest, WriteStart};
use super::writeback::WritebackQueue;
use crate::storage::SegmentOpener;
use crate::waiting::Waiting;
use std::task::Poll;
use trunkline_aio::facade::Arc;
use trunkline_aio::{Class, Session};
use trunkline_format::Lsn;

/// Maximum number of pages in one batch.
const BATCH: usize = 64;

/// Number of buffers, starting at the clock hand, that we search for the least used pages.
/// Searching the whole pool could take longer than writing a page.
const WINDOW: u32 = 1024;

/// Maximum number of writes in flight per session.
const WRITES: usize = 8;

/// Maximum number of blocks in one write.
const COMBINE: u32 = 16;

/// Counts the writes of a session that writes to many relations in turn, and attributes each write
/// to the right relation.
#[derive(Debug)]
pub(crate) struct WriteCounter {
    counter: IoCounter,
    backend: BackendType,
}

impl WriteCounter {
    /// Creates the counter for a session of this type.
    pub(crate) fn new(statistics: &Arc<Statistics>, backend: BackendType) -> Self {
        Self { counter: IoCounter::new(statistics), backend }
    }

    /// Counts a write that succeeded.
    pub(crate) fn add(&mut self, first: BufferTag, blocks: u32) {
        let key = self.counter.statistics().key_of(
            self.backend,
            Strategy::Normal,
            first.cluster(),
            first.locator(),
        );
        self.counter.count_as(key);
        self.counter.tally().writes += 1;
        self.counter.tally().written_blocks += u64::from(blocks);
    }

    /// Counts ranges whose writeback was started.
    pub(crate) fn add_writebacks(&mut self, ranges: u64) {
        self.counter.tally().writebacks += ranges;
    }

    /// Publishes the counts.
    pub(crate) fn publish(&mut self) {
        self.counter.publish();
    }
}

/// The eviction writes of one session.
#[derive(Debug)]
pub(crate) struct EvictionWriter {
    manager: Arc<BufferManager>,
    writes: PageWrites,
    /// The current batch, and the position in it.
    victims: Vec<(BufferTag, u32)>,
    at: usize,
    /// The last error in the current batch.
    failed: Option<WriteError>,
    /// A poll had to wait in the middle of the batch.
    unfinished: bool,
    /// Opens the victims' segments.
    opener: SegmentOpener,
    /// The victims of the write that is being started.
    run: Vec<u32>,
    writeback: WritebackQueue,
    counter: WriteCounter,
    /// Error of the last write that failed, until the next batch starts.
    failure: Option<WriteError>,
}

impl EvictionWriter {
    /// For a session that can use `iovecs` iovecs per I/O.
    pub(crate) fn new(
        manager: &Arc<BufferManager>,
        counter: WriteCounter,
        iovecs: usize,
        flush_after: u32,
    ) -> Self {
        Self {
            manager: Arc::clone(manager),
            writes: PageWrites::new(manager, WRITES, COMBINE.min(iovecs as u32)),
            victims: Vec::with_capacity(BATCH),
            at: 0,
            failed: None,
            unfinished: false,
            opener: SegmentOpener::default(),
            run: Vec::with_capacity(BATCH),
            writeback: WritebackQueue::new(manager.clusters(), flush_after, Class::Eviction),
            counter,
            failure: None,
        }
    }

    /// Changes `backend_flush_after`.
    pub(crate) fn set_flush_after(&mut self, blocks: u32) {
        self.writeback.set_flush_after(blocks);
    }

    /// Whether a session that is waiting for a victim should try again. That's the case if there is
    /// a victim, or if one of its own writes has ended. If it has no write in flight, it's also the
    /// case if some unpinned page is dirty, because another session's write of that page may have
    /// failed.
    pub(crate) fn may_have_victim(&self) -> bool {
        self.manager.has_victim()
            || match self.writes.window().in_flight() {
                0 => self.manager.buffers().has_dirty_victim(),
                _ => self.writes.window().has_done(),
            }
    }

    /// Starts writing a batch of dirty pages. This may have to wait for a WAL flush, or until a
    /// segment is open. If the mount executes writes in the session itself, it also waits for the
    /// first write. Returns false if no write is in flight because there was no free I/O handle.
    ///
    /// If this returns `Pending`, the next call continues the batch, whichever task makes it. The
    /// victims may have been written or evicted since, but each write checks that anyway. If the
    /// task gives up, the next one may be given the error of a write that it didn't ask for.
    ///
    /// # Errors
    /// One of this session's writes has failed. There is neither a victim nor a write in flight, so
    /// waiting for a victim could take forever.
    pub(crate) fn start(
        &mut self,
        session: &mut Session,
        waiting: &mut Waiting<'_, '_>,
    ) -> Poll<Result<bool, WriteError>> {
        // Free the slots of completed writes first, and learn about failures.
        self.take_ended();
        self.issue_writeback(session);
        let manager = Arc::clone(&self.manager);
        if !std::mem::take(&mut self.unfinished) {
            self.failed = self.failure.take();
            self.at = 0;
            find_dirty_victims(&manager, self.failed.is_some(), &mut self.victims);
        }
        let had_handles = loop {
            let refused = {
                // One submission for all writes that start without waiting.
                let mut batch = session.batch();
                self.start_writes(&mut batch)
            };
            let waited = match refused {
                Ok(None) => break true,
                Ok(Some(Refused::NotOpen)) => {
                    // An earlier poll may have joined the queue for a handle. While we wait for
                    // something else, the next session in the queue must get it.
                    waiting.leave_queue();
                    let opened = waiting.until(session, || self.opener.is_done());
                    opened.map_err(WriteError::from)
                }
                Ok(Some(Refused::LogFirst(lsn))) => {
                    waiting.leave_queue();
                    manager.clusters().flush_log(waiting, session, lsn)
                }
                // Other sessions hold all the handles, but their writes provide victims too.
                Ok(Some(Refused::NoHandle)) => break false,
                Err(error) => Poll::Ready(Err(error)),
            };
            match waited {
                Poll::Pending => {
                    self.unfinished = true;
                    return Poll::Pending;
                }
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(WriteError::Cancelled)) => {
                    return Poll::Ready(Err(WriteError::Cancelled));
                }
                // Skip the page. If flushing the log has failed, other pages may have older LSNs,
                // up to which the log is already durable.
                Poll::Ready(Err(error)) => {
                    self.failed = Some(error);
                    self.at += 1;
                }
            }
        };
        Poll::Ready(match self.failed.take() {
            _ if !had_handles => Ok(self.writes.window().in_flight() > 0),
            // If a write is in flight or there's a victim already, this error doesn't keep the
            // session from making progress.
            Some(error) if self.writes.window().in_flight() == 0 && !manager.has_victim() => {
                Err(error)
            }
            _ => Ok(true),
        })
    }

    /// Gives up the batch that a poll has left unfinished, because there is a victim. An idle
    /// session should not hold a reference to a file. If a task gives up its wait, however, its
    /// batch and the file that was opened for it remain until the session's next wait for a victim.
    pub(crate) fn give_up_batch(&mut self) {
        self.unfinished = false;
        self.opener = SegmentOpener::default();
    }

    /// Takes the results of writes that have ended.
    pub(crate) fn take_ended(&mut self) {
        while let Some(ended) = self.writes.take_ended() {
            match ended {
                // If a write was short, the blocks that it didn't write are still dirty, so the
                // next search will find them again.
                Ok(written) => {
                    self.counter.add(written.first, written.blocks);
                    self.writeback.push(written.first, written.blocks);
                }
                Err(error) => self.failure = Some(error),
            }
        }
        self.counter.publish();
    }

    /// Issues writeback of what was written, if it is due. Never waits.
    pub(crate) fn issue_writeback(&mut self, session: &mut Session) {
        if self.writeback.is_due() {
            self.writeback.issue(session);
            self.counter.add_writebacks(self.writeback.take_issued());
            self.counter.publish();
        }
    }

    /// Starts writing the victims, beginning at the current position and combining neighbouring
    /// blocks, until one of the writes has ended. At that point there is a victim, so there's no
    /// need to write the rest. Returns the reason if the next write can't be started.
    fn start_writes(&mut self, session: &mut Session) -> Result<Option<Refused>, WriteError> {
        while let Some(&(first, _)) = self.victims.get(self.at)
            && self.writes.window().has_idle()
            && !self.writes.window().has_done()
        {
            let Some(relation) = self.manager.clusters().relation(first) else {
                self.at += 1;
                continue;
            };
            let located = match self.opener.locate(session, &relation, first.block()) {
                Ok(Some(located)) => located,
                Ok(None) => return Ok(Some(Refused::NotOpen)),
                // The page was evicted, or dropped together with its file.
                Err(_) if !is_dirty(&self.manager, self.victims[self.at]) => {
                    self.at += 1;
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            self.run.clear();
            let run = self.victims[self.at..].iter().zip(first.block()..);
            let run = run.take_while(|&(&(tag, _), block)| tag == first.at(block));
            self.run.extend(run.map(|(&(_, buffer), _)| buffer));
            let (manager, class) = (&self.manager, Class::Eviction);
            let request = WriteRequest {
                located: Some(located),
                ..WriteRequest::new(manager, &relation, first, &self.run, class)
            };
            match self.writes.start(session, &request)? {
                WriteStart::Issued { count } => self.at += count as usize,
                WriteStart::Clean | WriteStart::Busy => self.at += 1,
                WriteStart::LogFirst(lsn) => return Ok(Some(Refused::LogFirst(lsn))),
                WriteStart::NoHandle => return Ok(Some(Refused::NoHandle)),
            }
            self.opener.close();
        }
        Ok(None)
    }
}

/// Why the next write of a batch can't be started.
enum Refused {
    /// A worker is opening the segment.
    NotOpen,
    /// The log must become durable up to this position first.
    LogFirst(Lsn),
    /// Every I/O handle is in use.
    NoHandle,
}

/// Whether a victim is still in its buffer and dirty.
fn is_dirty(manager: &BufferManager, (tag, buffer): (BufferTag, u32)) -> bool {
    let buffers = manager.buffers();
    buffers.tag(buffer) == tag && buffers.state(buffer).needs_write()
}

/// Lists dirty, unpinned pages, sorted by tag. We search window by window, starting at the clock
/// hand, and stop at the first window that contains such pages. Of these we list the ones with the
/// lowest usage count. With `skip_failed`, pages whose last write failed are left out, because
/// otherwise a session could retry the same bad block forever while other pages could be written.
/// We don't pin the buffers here, so each write must recheck the tag.
fn find_dirty_victims(
    manager: &BufferManager,
    skip_failed: bool,
    victims: &mut Vec<(BufferTag, u32)>,
) {
    victims.clear();
    let buffers = manager.buffers();
    let (_, hand) = manager.replacement().clock().position();
    let count = buffers.count();
    for window in (0..count).step_by(WINDOW as usize) {
        for usage in 0..=USAGE_MAX {
            let offsets = window..count.min(window + WINDOW);
            let candidates = offsets.map(|offset| (hand + offset) % count).filter(|&buffer| {
                let state = buffers.state(buffer);
                let wanted = state.needs_write() && !(skip_failed && state.has(flag::IO_ERROR));
                wanted && state.pins() == 0 && state.usage() == usage
            });
            // All pages in a batch have the same usage count, so that we don't write a popular page
            // just because an unpopular page is next to it.
            victims.extend(candidates.map(|buffer| (buffers.tag(buffer), buffer)).take(BATCH));
            if !victims.is_empty() {
                victims.sort_unstable_by_key(|(tag, _)| tag.words());
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::pool::{Backend, BackendType, Pool};
    use crate::storage::{
        DEFAULT_TABLESPACE, Layout, OpenFiles, Relation, RelationLocator, Storage,
    };
    use crate::waiting::{Waiting, slept};
    use tempfile::TempDir;
    use trunkline_aio::{Builder, MethodKind};
    use trunkline_format::{BLOCK_SIZE, Fork, Oid};

    const BUFFERS: u32 = 16;

    /// Creates a pool, and a relation with twice as many blocks.
    fn pool() -> (TempDir, Pool, Relation) {
        let root = tempfile::tempdir().expect("a folder");
        std::fs::create_dir_all(root.path().join("base/5")).expect("a folder");
        let zeros = vec![0; 2 * BUFFERS as usize * BLOCK_SIZE];
        std::fs::write(root.path().join("base/5/16384"), zeros).expect("written");
        let aio = Builder::new().method(MethodKind::Sync).region_bytes(1 << 20).start();
        let aio = aio.expect("starts");
        let layout = Layout { checksums: true, tablespace_directory: "PG_18_202506291".into() };
        let files = OpenFiles::kernel(&aio, 4);
        let storage = Storage::for_writing(root.path(), layout, &files, false);
        let locator = RelationLocator {
            tablespace: DEFAULT_TABLESPACE,
            database: Oid(5),
            relfilenode: 16_384,
        };
        let pool = Pool::new(&aio, BUFFERS).expect("a pool");
        (root, pool, storage.relation(locator, Fork::Main))
    }

    fn change(backend: &mut Backend, relation: &Relation, block: u32) {
        let pin = backend.read(relation, block).expect("reads");
        backend.write_lock(pin.page()).expect("locks").mark_dirty();
    }

    fn dirty(pool: &Pool) -> usize {
        pool.rows().iter().filter(|row| row.dirty).count()
    }

    /// Tests that a session doesn't start writing if there is a clean page that the clock hand has
    /// already passed. The page was pinned when the hand passed it, but has been unpinned since.
    #[test]
    fn nothing_is_written_while_there_is_a_clean_victim() {
        let (_root, pool, relation) = pool();
        let mut backend = pool.backend(BackendType::Client).expect("a session");
        (1..BUFFERS).for_each(|block| change(&mut backend, &relation, block));
        let clean = backend.read(&relation, 0).expect("reads");
        drop(clean);
        let start =
            |backend: &mut Backend| slept(backend.start_eviction_writes(&mut Waiting::Sleep));
        assert!(start(&mut backend).expect("no write can fail"), "no handle is needed");
        assert_eq!(dirty(&pool), BUFFERS as usize - 1);
        // Without a clean page, the session must write.
        let clean = backend.read(&relation, 0).expect("a hit");
        assert!(start(&mut backend).expect("writes"));
        assert!(dirty(&pool) < BUFFERS as usize - 1);
        drop(clean);
    }
}
