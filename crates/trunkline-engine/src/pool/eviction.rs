//! Eviction writes: a session flushes dirty pages when no buffer is clean.
//!
//! The clock sweep skips dirty buffers, so a session that needs a buffer takes a clean one if there
//! is one. Only if every unpinned buffer is dirty does it flush a batch of the least used pages,
//! with neighbours combined and all writes in flight together. Then it waits for any buffer to
//! become a victim. The first write to complete provides one, no matter which session issued it.
//!
//! PostgreSQL flushes one victim at a time, in the backend that needs the buffer
//! (`GetVictimBuffer`).
//!
//! # Progress
//!
//! The pin limiter guarantees that an admitted session has a share of the buffers, so some buffer
//! is unpinned or about to be. If that buffer is dirty, it must be possible to write it. A session
//! that waits for a victim therefore wakes up for four events: another session unpins a buffer, any
//! write completes, an I/O handle becomes free, or one of its own writes fails. Only if a write has
//! failed, no write is in flight and no victim exists does the session report an error. If the
//! failure was another session's, this session tries its own write first, because only its own
//! error proves that it can't make progress.

use super::descriptor::{USAGE_MAX, flag};
use super::error::WriteError;
use super::manager::BufferManager;
use super::replacement::ring_buffer::Strategy;
use super::statistics::{BackendType, IoCounter, Statistics};
use super::tag::BufferTag;
use super::write::{PageWrites, WriteRequest, WriteStart};
use super::writeback::WritebackQueue;
use trunkline_aio::facade::Arc;
use trunkline_aio::{Class, Session};

/// Maximum number of pages in one batch.
const BATCH: usize = 64;

/// Number of buffers, starting at the clock hand, that we search for the least used pages.
/// Searching the whole pool would take longer than writing a page.
const WINDOW: u32 = 1024;

/// Maximum number of writes in flight per session.
const WRITES: usize = 8;

/// Maximum number of blocks in one write.
const COMBINE: u32 = 16;

/// Counts the writes of a session that writes to many relations in turn, and attributes each write
/// to its relation.
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
    victims: Vec<(BufferTag, u32)>,
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

    /// Whether a session that waits for a victim should look again: there is a victim, one of its
    /// own writes has ended, or it has no write in flight and some unpinned page is dirty because
    /// another session's write has failed.
    pub(crate) fn may_have_victim(&self) -> bool {
        self.manager.has_victim()
            || match self.writes.window().in_flight() {
                0 => self.manager.buffers().has_dirty_victim(),
                _ => self.writes.window().has_done(),
            }
    }

    /// Starts writing a batch of dirty pages. The session may wait for the log here. If the mount
    /// executes writes in the session itself, the session also waits for the first write. Returns
    /// false if no I/O handle was free for any write.
    ///
    /// # Errors
    /// One of this session's writes has failed, and there is neither a victim nor a write in
    /// flight, so there may never be a victim.
    pub(crate) fn start(&mut self, session: &mut Session) -> Result<bool, WriteError> {
        // Free the slots of completed writes first, and learn about failures.
        self.take_ended();
        self.issue_writeback(session);
        let manager = Arc::clone(&self.manager);
        let mut failed = self.failure.take();
        let mut victims = std::mem::take(&mut self.victims);
        find_dirty_victims(&manager, failed.is_some(), &mut victims);
        let mut at = 0;
        let had_handles = loop {
            let refused = {
                // One submission for all writes that start without waiting.
                let mut batch = session.batch();
                self.start_writes(&mut batch, &victims, &mut at)
            };
            match refused {
                Ok(None) => break true,
                Ok(Some(WriteStart::LogFirst(lsn))) => {
                    // If the log can't be flushed, skip the page. The log may already be durable
                    // far enough for other pages.
                    if let Err(error) = manager.clusters().flush_log(lsn) {
                        failed = Some(error);
                        at += 1;
                    }
                }
                // Other sessions hold all the handles, but their writes provide victims too.
                Ok(Some(_)) => break false,
                Err(error) => {
                    failed = Some(error);
                    at += 1;
                }
            }
        };
        self.victims = victims;
        match failed {
            _ if !had_handles => Ok(self.writes.window().in_flight() > 0),
            // If a write is in flight or there's a victim already, this error doesn't keep the
            // session from making progress.
            Some(error) if self.writes.window().in_flight() == 0 && !manager.has_victim() => {
                Err(error)
            }
            _ => Ok(true),
        }
    }

    /// Takes the results of writes that have ended.
    pub(crate) fn take_ended(&mut self) {
        while let Some(ended) = self.writes.take_ended() {
            match ended {
                // The blocks that a short write left out are still dirty, so the next search finds
                // them again.
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

    /// Starts writes of the victims from position `at` on, with neighbours combined, until one of
    /// the writes has ended. From then on there is a victim, and there's no need to write the rest.
    /// Returns what prevents the next write.
    fn start_writes(
        &mut self,
        session: &mut Session,
        victims: &[(BufferTag, u32)],
        at: &mut usize,
    ) -> Result<Option<WriteStart>, WriteError> {
        while let Some(&(first, _)) = victims.get(*at)
            && self.writes.window().has_idle()
            && !self.writes.window().has_done()
        {
            let Some(relation) = self.manager.clusters().relation(first) else {
                *at += 1;
                continue;
            };
            self.run.clear();
            let run = victims[*at..].iter().zip(first.block()..);
            let run = run.take_while(|&(&(tag, _), block)| tag == first.at(block));
            self.run.extend(run.map(|(&(_, buffer), _)| buffer));
            let (manager, class) = (&self.manager, Class::Eviction);
            let request = WriteRequest::new(manager, &relation, first, &self.run, class);
            match self.writes.start(session, &request)? {
                WriteStart::Issued { count } => *at += count as usize,
                WriteStart::Clean | WriteStart::Busy => *at += 1,
                refused => return Ok(Some(refused)),
            }
        }
        Ok(None)
    }
}

/// Lists dirty, unpinned pages, sorted by tag. The search stops at the first window ahead of the
/// clock hand that contains such pages, and lists those with the lowest usage count. `skip_failed`
/// leaves out pages whose last write failed: without that, a session could try the same bad block
/// forever while other pages could be written. No buffer is pinned here, so each write rechecks the
/// tag.
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
            // One batch consists of pages with the same usage count, so that a popular page isn't
            // written just because it is close to an unpopular one.
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

    /// The clock has passed the only clean page while it was pinned. The pin is released before the
    /// session starts to write, so it must find that page instead.
    #[test]
    fn nothing_is_written_while_there_is_a_clean_victim() {
        let (_root, pool, relation) = pool();
        let mut backend = pool.backend(BackendType::Client).expect("a session");
        (1..BUFFERS).for_each(|block| change(&mut backend, &relation, block));
        let clean = backend.read(&relation, 0).expect("reads");
        drop(clean);
        assert!(backend.start_eviction_writes().expect("no write can fail"), "no handle is needed");
        assert_eq!(dirty(&pool), BUFFERS as usize - 1);
        // Without a clean page, the session must write.
        let clean = backend.read(&relation, 0).expect("a hit");
        assert!(backend.start_eviction_writes().expect("writes"));
        assert!(dirty(&pool) < BUFFERS as usize - 1);
        drop(clean);
    }
}
