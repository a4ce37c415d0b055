//! Executes a work list through the **buffer pool**, with read streams.
//!
//! A read stream takes its blocks from the work list and returns pinned buffers. The consumer
//! doesn't look at the pages unless a row asks it to, because the bare loops don't look at their
//! data either. We create the pool once per comparison, and empty it before each half of a cold
//! pair.

use crate::data::Data;
use crate::failure::Result;
use crate::handles::{Setup, flight, warn_of_fallback};
use crate::threads::in_threads;
use crate::work::{Done, Work};
use std::time::Instant;
use trunkline_aio::MethodKind;
use trunkline_engine::Engine;
use trunkline_engine::pool::{Backend, Strategy, Tally};
use trunkline_engine::read_stream::{BlockSource, ReadStream, StreamOptions};
use trunkline_engine::settings::Settings;
use trunkline_engine::storage::{Layout, Relation};
use trunkline_format::{BLOCK_SIZE, BlockNo};

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
    /// Is this a sequential scan of the whole relation? If so, the stream skips its slow start and,
    /// under `sync`, relies on kernel read-ahead instead of issuing posix_fadvise.
    pub(crate) scan: bool,
    /// Read one page at a time, without a stream, as an index scan would?
    pub(crate) points: bool,
}

impl PoolSetup {
    /// Defaults: verify checksums, use no ring buffer, and promise nothing about the order.
    pub(crate) fn new(io: Setup, buffers: u32) -> Self {
        Self {
            io,
            buffers,
            checksums: true,
            strategy: Strategy::Normal,
            scan: false,
            points: false,
        }
    }

    /// A sequential scan of the whole relation.
    pub(crate) fn scan(io: Setup, buffers: u32, strategy: Strategy) -> Self {
        Self { strategy, scan: true, ..Self::new(io, buffers) }
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

/// Starts an engine with a pool of `buffers` and no other page memory.
pub(crate) fn start_engine(io: &Setup, buffers: u32) -> Result<Engine> {
    let mut settings = Settings::default();
    settings.set("io_direct", if io.direct { "data" } else { "" })?;
    let builder = Engine::builder(&settings).buffers(buffers).extra_bytes(0);
    // Workers must start immediately, and lines without `RWF_NOWAIT` have no setting for that.
    let engine = builder.configure_io(|_| io.builder()).open()?;
    warn_of_fallback(&engine.aio().method_status(), io.method);
    Ok(engine)
}

/// An engine, a relation in it, and the sessions that read the relation through the pool.
pub(crate) struct Pooled {
    backends: Vec<Backend>,
    relation: Relation,
    setup: PoolSetup,
    engine: Engine,
}

impl Pooled {
    /// Starts an engine and the given number of sessions.
    pub(crate) fn open(data: &Data, setup: PoolSetup, sessions: usize) -> Result<Self> {
        let engine = start_engine(&setup.io, setup.buffers)?;
        let layout = Layout { checksums: setup.checksums, tablespace_directory: String::new() };
        let relation = data.relation(&engine.storage(&data.root, layout));
        let backends = (0..sessions.max(1)).map(|_| engine.session());
        let backends = backends.collect::<std::result::Result<_, _>>()?;
        Ok(Self { backends, relation, setup, engine })
    }

    /// Kind of memory pages that back the pool, for the report.
    pub(crate) fn page_kind(&self) -> &'static str {
        self.engine.aio().region().page_kind().name()
    }

    /// The I/O method actually in use, which may be a fallback.
    pub(crate) fn method(&self) -> MethodKind {
        self.engine.aio().method_status().used
    }

    /// The buffer usage counters of all sessions so far.
    pub(crate) fn total(&self) -> Tally {
        self.engine.pool().total()
    }

    /// Evicts every page from the pool. Fails if a page can't be evicted, because the next run
    /// would then find it in the pool instead of reading it.
    pub(crate) fn empty(&self) -> Result<()> {
        let left = self.engine.pool().evict_all().skipped;
        if left > 0 { Err(format!("{left} buffers are still pinned").into()) } else { Ok(()) }
    }

    /// Reads the lists concurrently, with one session for each list.
    pub(crate) fn run(&mut self, parts: &[Work]) -> Result<Done> {
        let (before, started) = (self.engine.aio().counters(), Instant::now());
        let (setup, relation) = (&self.setup, &self.relation);
        let read = |(backend, work): (&mut Backend, &Work)| {
            let mut blocks = work.blocks();
            if setup.points {
                return points(backend, relation, blocks, false);
            }
            let source = move || blocks.next().map(|block| (block, ()));
            scan(backend, relation, source, setup.options(), false)
        };
        let pages = in_threads(self.backends.iter_mut().zip(parts), read)?;
        let elapsed = started.elapsed();
        let done = parts.iter().map(Done::of).fold(Done::default(), |sum, part| Done {
            operations: sum.operations + part.operations,
            bytes: sum.bytes + part.bytes,
            ..sum
        });
        let (pages, wanted) = (pages.iter().sum::<u64>(), done.bytes / BLOCK_SIZE as u64);
        if pages != wanted {
            return Err(format!("the streams handed out {pages} pages of {wanted}").into());
        }
        Ok(flight(done, &before, &self.engine.aio().counters(), elapsed))
    }

    /// The sessions, the relation, and the stream options, for rows that run their own loop.
    pub(crate) fn sessions(&mut self) -> (&mut [Backend], &Relation, StreamOptions) {
        (&mut self.backends, &self.relation, self.setup.options())
    }
}

/// Reads all blocks of a source and returns the number of pages. If `look` is set, we also take the
/// share lock on each page and read its first byte.
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

/// Reads the blocks one at a time and returns their number. `look` is as in [`scan`].
pub(crate) fn points(
    backend: &mut Backend,
    relation: &Relation,
    blocks: impl Iterator<Item = BlockNo>,
    look: bool,
) -> Result<u64> {
    let mut pages = 0;
    for block in blocks {
        let pin = backend.read(relation, block)?;
        if look {
            std::hint::black_box(backend.read_lock(pin.page())?[0]);
        }
        pages += 1;
    }
    Ok(pages)
}
