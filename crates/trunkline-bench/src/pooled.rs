//! The work through the buffer pool, by read streams.
//!
//! A stream gets the blocks of a work list in order and returns pinned pages. The consumer does not look at them
//! unless a row asks for it, because a bare loop does not look at its bytes either. The pool is created once for each
//! comparison and emptied before each half of a cold pair.

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

/// How to read through a pool.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PoolSetup {
    /// Its window is the stream's concurrency, its length that of the largest read.
    pub(crate) io: Setup,
    /// Buffers of the pool.
    pub(crate) buffers: u32,
    /// Whether every page's checksum is computed when it is read.
    pub(crate) checksums: bool,
    pub(crate) strategy: Strategy,
    /// Whether the stream knows that it will read everything, in the file's order.
    pub(crate) scan: bool,
}

impl PoolSetup {
    /// With checksums, no ring, and no promise about the order.
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

/// A relation, the pool that reads it, and the sessions that use the pool.
pub(crate) struct Pooled {
    // Before the instance: sessions submit what they staged.
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

    /// The pages that the pool got.
    pub(crate) fn page_kind(&self) -> &'static str {
        self.aio.region().page_kind().name()
    }

    /// The method that serves.
    pub(crate) fn method(&self) -> MethodKind {
        self.aio.method_status().used
    }

    /// Makes the pool empty.
    pub(crate) fn empty(&self) -> Result<()> {
        let left = self.pool.evict_all().skipped;
        if left > 0 { Err(format!("{left} buffers are still pinned").into()) } else { Ok(()) }
    }

    /// Reads the blocks of the list, through a stream of one session.
    pub(crate) fn run(&mut self, work: &Work) -> Result<Done> {
        self.run_parts(std::slice::from_ref(work))
    }

    /// Reads several lists at the same time, each by a session of its own.
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

    /// Reads the blocks of the list one by one, without a stream.
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

    /// Reads the blocks of a source through a stream of the first session, and counts what that
    /// took.
    pub(crate) fn count(&mut self, source: impl BlockSource) -> Result<Tally> {
        let before = self.pool.total();
        scan(&mut self.backends[0], &self.relation, source, self.setup.options(), false)?;
        Ok(self.pool.total().since(&before))
    }

    /// The sessions, and how their streams read.
    pub(crate) fn sessions(&mut self) -> (&mut [Backend], &Relation, StreamOptions) {
        (&mut self.backends, &self.relation, self.setup.options())
    }
}

/// Reads everything that a source names; how many pages that were. `look`: locks each and looks at
/// its first byte.
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

/// The blocks of a list, in its order.
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

/// Pages in a list.
fn pages(work: &Work) -> u64 {
    Done::of(work).bytes / BLOCK_SIZE as u64
}

fn expect(read: u64, wanted: u64) -> Result<()> {
    if read != wanted {
        return Err(format!("the streams handed out {read} pages of {wanted}").into());
    }
    Ok(())
}
