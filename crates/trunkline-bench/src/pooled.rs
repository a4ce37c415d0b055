//! Executes a work list through the **buffer pool**, with read streams.
//!
//! A read stream takes its blocks from the work list and returns pinned buffers. The consumer
//! doesn't look at the pages unless a row asks it to, because a bare loop doesn't look at its
//! bytes either. The pool is created once per comparison, and emptied before each half of a cold
//! pair.

use crate::Result;
use crate::data::{Data, RELATION};
use crate::handles::{Setup, flight};
use crate::work::{Done, Work};
use std::time::Instant;
use trunkline_aio::{Aio, MethodKind};
use trunkline_engine::pool::{Backend, BackendType, Pool, Strategy, Tally};
use trunkline_engine::read_stream::{BlockSource, ReadStream, StreamOptions};
use trunkline_engine::storage::{
    DEFAULT_TABLESPACE, Layout, OpenFiles, Relation, RelationLocator, Storage,
};
use trunkline_format::{BLOCK_SIZE, BlockNo, Fork, Oid};

/// Parameters of one contender that reads through the pool.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PoolSetup {
    /// I/O parameters. The window becomes the stream's `effective_io_concurrency`, and the length
    /// its combine limit.
    pub(crate) io: Setup,
    /// Pool size in buffers.
    pub(crate) buffers: u32,
    /// Verify every page's checksum when it is read?
    pub(crate) checksums: bool,
    pub(crate) strategy: Strategy,
    /// Is this a sequential scan of the whole relation? The stream then skips its slow start and,
    /// under `sync`, relies on kernel read-ahead instead of issuing posix_fadvise.
    pub(crate) scan: bool,
}

impl PoolSetup {
    /// Defaults: verify checksums, use no ring buffer, and promise nothing about the order.
    pub(crate) fn new(io: Setup, buffers: u32) -> Self {
        Self { io, buffers, checksums: true, strategy: Strategy::Normal, scan: false }
    }

    fn options(&self) -> StreamOptions {
        StreamOptions {
            concurrency: self.io.window as u32,
            combine: self.io.length / BLOCK_SIZE as u32,
            full: self.scan,
            sequential: self.scan,
            strategy: self.strategy,
            ..StreamOptions::default()
        }
    }
}

/// A relation, a pool, and the sessions that read the relation through the pool.
pub(crate) struct Pooled {
    // Dropped before the instance, because dropping a session submits its staged I/Os.
    backends: Vec<Backend>,
    pub(crate) relation: Relation,
    pub(crate) pool: Pool,
    setup: PoolSetup,
    aio: Aio,
}

impl Pooled {
    /// Starts an instance with a pool and the given number of sessions.
    pub(crate) fn open(data: &Data, setup: PoolSetup, sessions: usize) -> Result<Self> {
        let aio = setup.io.start_with(setup.buffers as usize * BLOCK_SIZE)?;
        let pool = Pool::new(&aio, setup.buffers)?;
        let tablespace_directory = String::from("PG_18_202506291");
        let layout = Layout { checksums: setup.checksums, tablespace_directory };
        let files = OpenFiles::kernel(&aio, 64);
        let storage = Storage::new(&data.root, layout, &files, setup.io.direct);
        let (tablespace, database) = (DEFAULT_TABLESPACE, Oid(5));
        let locator = RelationLocator { tablespace, database, relfilenode: RELATION };
        let relation = storage.relation(locator, Fork::Main);
        let backends = (0..sessions.max(1)).map(|_| pool.backend(BackendType::Client));
        let backends = backends.collect::<std::result::Result<_, _>>()?;
        Ok(Self { backends, relation, pool, setup, aio })
    }

    /// Kind of memory pages that back the pool, for the report.
    pub(crate) fn page_kind(&self) -> &'static str {
        self.aio.region().page_kind().name()
    }

    /// The I/O method actually in use, which may be a fallback.
    pub(crate) fn method(&self) -> MethodKind {
        self.aio.method_status().used
    }

    /// Evicts every page from the pool. Fails if a page can't be evicted, as the next run would
    /// then find it.
    pub(crate) fn empty(&self) -> Result<()> {
        let left = self.pool.evict_all().skipped;
        if left > 0 { Err(format!("{left} buffers are still pinned").into()) } else { Ok(()) }
    }

    /// Reads the blocks of one list through one session's read stream.
    pub(crate) fn run(&mut self, work: &Work) -> Result<Done> {
        self.run_parts(std::slice::from_ref(work))
    }

    /// Reads several lists concurrently, with one session for each list.
    pub(crate) fn run_parts(&mut self, parts: &[Work]) -> Result<Done> {
        let before = self.aio.counters();
        let started = Instant::now();
        let options = self.setup.options();
        let relation = &self.relation;
        if let ([backend, ..], [work]) = (&mut self.backends[..], parts) {
            expect(scan(backend, relation, blocks(work), options, false)?, pages(work))?;
        } else {
            std::thread::scope(|scope| {
                let pairs = self.backends.iter_mut().zip(parts);
                let read = |(backend, work)| {
                    scope.spawn(move || scan(backend, relation, blocks(work), options, false))
                };
                let threads: Vec<_> = pairs.map(read).collect();
                let mut read = 0;
                for thread in threads {
                    read += thread.join().map_err(|_| "a thread panicked")??;
                }
                expect(read, parts.iter().map(pages).sum())
            })?;
        }
        let elapsed = started.elapsed();
        let mut done = Done::default();
        for work in parts {
            let part = Done::of(work);
            done.operations += part.operations;
            done.bytes += part.bytes;
        }
        Ok(flight(done, &before, &self.aio.counters(), elapsed))
    }

    /// Reads the blocks one at a time, without a stream, as an index scan would.
    pub(crate) fn run_points(&mut self, work: &Work) -> Result<Done> {
        let before = self.aio.counters();
        let started = Instant::now();
        let mut source = blocks(work);
        while let Some((block, _)) = source.next_block() {
            self.backends[0].read(&self.relation, block)?;
        }
        let elapsed = started.elapsed();
        Ok(flight(Done::of(work), &before, &self.aio.counters(), elapsed))
    }

    /// Reads the blocks of `source` through the first session's stream, and returns the buffer
    /// usage counters of that read.
    pub(crate) fn count(&mut self, source: impl BlockSource) -> Result<Tally> {
        let before = self.pool.total();
        scan(&mut self.backends[0], &self.relation, source, self.setup.options(), false)?;
        Ok(self.pool.total().since(&before))
    }

    /// The sessions, the relation, and the stream options, for rows that run their own loop.
    pub(crate) fn sessions(&mut self) -> (&mut [Backend], &Relation, StreamOptions) {
        (&mut self.backends, &self.relation, self.setup.options())
    }
}

/// Reads all blocks of `source` and returns the number of pages. With `look`, it also takes each
/// page's share lock and reads its first byte.
pub(crate) fn scan(
    backend: &mut Backend,
    relation: &Relation,
    source: impl BlockSource,
    options: StreamOptions,
    look: bool,
) -> Result<u64> {
    let mut stream = ReadStream::new(backend, relation, source, options);
    let mut pages = 0;
    while let Some(page) = stream.next(backend)? {
        if look {
            std::hint::black_box(backend.read_lock(page.pin)?[0]);
        }
        pages += 1;
    }
    drop(stream);
    backend.publish_counts();
    Ok(pages)
}

/// Turns a work list into a block source, in list order.
pub(crate) fn blocks(work: &Work) -> impl BlockSource {
    let each = u64::from(work.length) / BLOCK_SIZE as u64;
    let mut offsets = work.offsets.iter();
    let mut row = 0..0_u64;
    move || {
        if row.is_empty() {
            let first = offsets.next()? / BLOCK_SIZE as u64;
            row = first..first + each;
        }
        row.next().map(|block| (block as BlockNo, ()))
    }
}

/// Number of pages that a work list covers.
fn pages(work: &Work) -> u64 {
    Done::of(work).bytes / BLOCK_SIZE as u64
}

fn expect(read: u64, wanted: u64) -> Result<()> {
    if read != wanted {
        return Err(format!("the streams handed out {read} pages of {wanted}").into());
    }
    Ok(())
}
