//! Making room: when every buffer that nobody uses has something to write.
//!
//! The clock passes by what must be written first, so a session that needs a buffer finds a clean one
//! as long as there is one. Only if there is none it starts to write: a batch of pages that nobody has
//! pinned, neighbours together, all at once. Then it waits, as for any buffer, until one can be had:
//! the first write that ends makes one, whoever started it.

use super::backend::Backend;
use super::error::ReadError;
use super::shared::Shared;
use super::state::{USAGE_MAX, flag};
use super::tag::Tag;
use super::write::{Dirty, StartWrite, WriteError, Writes, Written};
use super::write_behind::WriteBehind;
use super::write_counts::WriteCounts;
use trunkline_aio::sync::Arc;
use trunkline_aio::{Class, Session};

/// Pages that are written at once.
const BATCH: usize = 64;

/// Buffers among which those are chosen that were used least: to look at all would cost more than to
/// write a page.
const WINDOW: u32 = 1024;

/// Writes in flight of one session that makes room.
const WRITES: usize = 8;

/// Blocks of one of them at most.
const COMBINE: u32 = 16;

/// How a session makes room.
#[derive(Debug)]
pub(super) struct WriteBack {
    writes: Writes,
    victims: Vec<(Tag, u32)>,
    /// A row of neighbours among them.
    run: Vec<u32>,
    behind: WriteBehind,
    counts: WriteCounts,
    /// Why the last write that failed has, until somebody looks for room again.
    failure: Option<WriteError>,
}

impl Backend {
    /// Starts to write pages that nobody uses, if no buffer could be had without. Waits for the log,
    /// and where the mount takes writes at once for the first of them. False: it would have started
    /// some, and no handle was free.
    ///
    /// # Errors
    /// A write of this session has failed: there may never be a buffer.
    pub(super) fn start_write_back(&mut self) -> Result<bool, ReadError> {
        if self.shared.has_unpinned() {
            return Ok(true);
        }
        let mut write_back = match self.write_back.take() {
            Some(present) => present,
            None => Box::new(WriteBack::new(self)),
        };
        let started = write_back.start(&mut self.session, &self.shared);
        self.write_back = Some(write_back);
        started.map_err(|error| ReadError::WriteBack(Box::new(error)))
    }

    /// Whether a session that sleeps for a buffer should look again: there is one, a write of its own
    /// has ended, or somebody else's has ended in vain.
    pub(super) fn may_have_buffer(shared: &Shared, writes: Option<&Writes>) -> bool {
        shared.has_unpinned()
            || match writes {
                Some(writes) if writes.in_flight() > 0 => writes.operations.first_done().is_some(),
                _ => shared.has_dirty(),
            }
    }
}

impl WriteBack {
    fn new(backend: &Backend) -> Self {
        let combine = COMBINE.min(backend.session.iovecs() as u32);
        Self {
            writes: Writes::new(&backend.shared, WRITES, combine),
            victims: Vec::with_capacity(BATCH),
            run: Vec::with_capacity(BATCH),
            behind: WriteBehind::new(&backend.shared, backend.flush_after(), Class::Eviction),
            counts: WriteCounts::new(backend),
            failure: None,
        }
    }

    /// Its writes.
    pub(super) fn writes(&self) -> &Writes {
        &self.writes
    }

    /// See [`Backend::set_flush_after`].
    pub(super) fn set_flush_after(&mut self, blocks: u32) {
        self.behind.set_after(blocks);
    }

    fn start(&mut self, session: &mut Session, shared: &Arc<Shared>) -> Result<bool, WriteError> {
        self.collect();
        self.tell_system(session);
        let mut failed = self.failure.take();
        let mut victims = std::mem::take(&mut self.victims);
        find_dirty_victims(shared, failed.is_some(), &mut victims);
        let mut at = 0;
        let had_handles = loop {
            let refused = {
                // One submission for all that can be started without waiting.
                let mut batch = session.batch();
                self.start_rows(&mut batch, shared, &victims, &mut at)
            };
            match refused {
                Ok(None) => break true,
                Ok(Some(StartWrite::LogFirst(lsn))) => {
                    // Such a page is passed by if the log cannot be had; others may need none.
                    if let Err(error) = shared.flush_log(lsn) {
                        failed = Some(error);
                        at += 1;
                    }
                }
                // Others have I/O under way; what they write makes room too.
                Ok(Some(_)) => break false,
                Err(error) => {
                    failed = Some(error);
                    at += 1;
                }
            }
        };
        self.victims = victims;
        match failed {
            _ if !had_handles => Ok(self.writes.in_flight() > 0),
            // Other pages can be written, or have been: one of them makes room.
            Some(error) if self.writes.in_flight() == 0 && !shared.has_unpinned() => Err(error),
            _ => Ok(true),
        }
    }

    /// Takes note of the writes that have ended.
    pub(super) fn collect(&mut self) {
        while let Some(slot) = self.writes.operations.first_done()
            && let Some(outcome) = self.writes.operations.take(slot)
        {
            match self.writes.finish(slot, outcome) {
                // What a short write has left is as dirty as before, and found again.
                Ok(Written { tag, blocks, .. }) => {
                    self.counts.note(tag, blocks);
                    self.behind.note(tag, blocks);
                }
                Err(error) => self.failure = Some(error),
            }
        }
        self.counts.show();
    }

    /// Has the system write back what was written, if it is time to. Does not wait for it.
    pub(super) fn tell_system(&mut self, session: &mut Session) {
        if self.behind.is_due() {
            self.behind.tell(session);
            self.counts.told(self.behind.take_told());
            self.counts.show();
        }
    }

    /// Starts writes of victims from one on, neighbours together, as long as they can be started and
    /// none has ended: then there is room, and the others may write the rest. What stands in the way.
    fn start_rows(
        &mut self,
        session: &mut Session,
        shared: &Shared,
        victims: &[(Tag, u32)],
        at: &mut usize,
    ) -> Result<Option<StartWrite>, WriteError> {
        while let Some(&(tag, _)) = victims.get(*at)
            && self.writes.has_idle()
            && self.writes.operations.first_done().is_none()
        {
            let Some(relation) = shared.relation(tag) else {
                *at += 1;
                continue;
            };
            self.run.clear();
            let follows = victims[*at..].iter().zip(tag.block()..);
            let follows = follows.take_while(|&(&(of, _), block)| of == tag.at(block));
            self.run.extend(follows.map(|(&(_, buffer), _)| buffer));
            let dirty = Dirty {
                relation: &relation,
                tag,
                first: tag.block(),
                buffers: &self.run,
                class: Class::Eviction,
                needed: 0,
                now: false,
                durable: shared.log.durable(),
            };
            match self.writes.start(session, &dirty)? {
                StartWrite::Issued { count } => *at += count as usize,
                StartWrite::Clean | StartWrite::Busy => *at += 1,
                refused => return Ok(Some(refused)),
            }
        }
        Ok(None)
    }
}

/// Pages to be written that nobody has pinned, of the next buffers of the clock that hold any: those
/// that were used least, by name; perhaps not those whose last write has failed.
fn find_dirty_victims(shared: &Shared, spare_failed: bool, victims: &mut Vec<(Tag, u32)>) {
    victims.clear();
    let (_, hand) = shared.clock.position();
    let count = shared.count();
    for window in (0..count).step_by(WINDOW as usize) {
        for usage in 0..=USAGE_MAX {
            let offsets = window..count.min(window + WINDOW);
            let wanted = offsets.map(|offset| (hand + offset) % count).filter(|&buffer| {
                let seen = shared.word(buffer).load();
                let wanted = seen.has(flag::DIRTY) && !seen.any(flag::IO_IN_PROGRESS);
                let wanted = wanted && !(spare_failed && seen.has(flag::IO_ERROR));
                wanted && seen.pins() == 0 && seen.usage() == usage
            });
            let found = wanted.map(|buffer| (shared.buffers[buffer as usize].tag(), buffer));
            victims.extend(found.take(BATCH));
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

    /// A pool and a relation that is larger.
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

    /// A session's hand has passed by the clean page while somebody had it pinned, who has let go of it
    /// before the session begins to write: it looks again instead.
    #[test]
    fn nothing_is_written_while_a_clean_page_can_go() {
        let (_root, pool, relation) = pool();
        let mut backend = pool.backend(BackendType::Client).expect("a session");
        (1..BUFFERS).for_each(|block| change(&mut backend, &relation, block));
        let clean = backend.read(&relation, 0).expect("reads");
        drop(clean);
        assert!(backend.start_write_back().expect("nothing to fail"), "it need not wait");
        assert_eq!(dirty(&pool), BUFFERS as usize - 1);
        // And when there is none, it does write.
        let clean = backend.read(&relation, 0).expect("a hit");
        assert!(backend.start_write_back().expect("writes"));
        assert!(dirty(&pool) < BUFFERS as usize - 1);
        drop(clean);
    }
}
