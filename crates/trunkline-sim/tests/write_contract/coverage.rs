//! Coverage matrix for page writes. We combine every site that writes or syncs pages or starts
//! writeback with every fault, every handle state and every I/O method.
//!
//! A cell counts as reached only if the fault struck the site's I/O, and we had stopped the same
//! I/O's thread in the cell's state, while another session was reading the pages. We recognise the
//! I/O by its class, operation, file and session, and a copy also by its block. At the end, all
//! pages must be on disk. If a sync has failed, every later checkpoint must fail instead.
//!
//! Other file system calls, which allocate space, change the length of a file, or create and remove
//! it, are tested in `calls`. Under io_uring we use a real disk, so we can inject faults only by
//! replacing results.

use std::time::Duration;
use trunkline_aio::facade::Arc;
use trunkline_aio::facade::atomic::{AtomicBool, AtomicU64, Ordering};
use trunkline_aio::{Class, MethodKind, Observed, Operation, State};
use trunkline_engine::checkpoint::{BackgroundWriter, BackgroundWriterSettings, CheckpointOptions};
use trunkline_engine::log::Log;
use trunkline_engine::pool::{Backend, ExtendMethod, WriteError};
use trunkline_engine::write_stream::{WriteOptions, WriteStream};
use trunkline_format::BLOCK_SIZE;
use trunkline_sim::Fault;
use trunkline_sim::matrix::{Cluster, Coverage, Environment, Instance, Needs, cluster};

/// The site in the engine that issues a write, a sync or writeback.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Site {
    Checkpoint,
    /// A checkpoint that writes a copy of the page, because a reader has it locked.
    Copy,
    Eviction,
    /// Eviction in a local pool.
    LocalEviction,
    /// A bulk write that flushes its ring buffer.
    Load,
    /// Relation extension that writes zeros.
    Extension,
    BackgroundWriter,
    /// A checkpoint's fsync of a segment, with no dirty pages left.
    Sync,
    /// Writeback.
    Writeback,
}

const SITES: [Site; 9] = [
    Site::Checkpoint,
    Site::Copy,
    Site::Eviction,
    Site::LocalEviction,
    Site::Load,
    Site::Extension,
    Site::BackgroundWriter,
    Site::Sync,
    Site::Writeback,
];

/// The fault that strikes the I/O.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FaultKind {
    Error,
    NoSpace,
    Quota,
    Interrupted,
    Again,
    Short,
    /// A write that returns 0 bytes without an error.
    Nothing,
    Delay,
    Reorder,
}

/// Which fault to inject for each kind, and how many times. Faults that are retried are injected
/// twice, hard faults every time.
const FAULTS: [(FaultKind, Fault, u64); 9] = [
    (FaultKind::Error, Fault::Error(libc::EIO), u64::MAX),
    (FaultKind::NoSpace, Fault::Error(libc::ENOSPC), u64::MAX),
    (FaultKind::Quota, Fault::Error(libc::EDQUOT), u64::MAX),
    (FaultKind::Interrupted, Fault::Interrupted, 2),
    (FaultKind::Again, Fault::Again, 2),
    (FaultKind::Short, Fault::Short(BLOCK_SIZE as u32 + 512), 1),
    (FaultKind::Nothing, Fault::Short(0), u64::MAX),
    (FaultKind::Delay, Fault::Delay(Duration::from_millis(3)), 1),
    (FaultKind::Reorder, Fault::Reorder, 1),
];

/// All states except IDLE, in which there is no I/O.
const STATES: [State; 7] = [
    State::HandedOut,
    State::Defined,
    State::Staged,
    State::Submitted,
    State::CompletedIo,
    State::CompletedShared,
    State::CompletedLocal,
];

const METHODS: [MethodKind; 4] =
    [MethodKind::Sync, MethodKind::Worker, MethodKind::Custom, MethodKind::IoUring];

/// One cell of the matrix.
type Cell = (Site, FaultKind, State, MethodKind);

/// The version that all pages must have at the end.
const NEW: u32 = 5;
/// Number of changed blocks in relation 0.
const CHANGED: u32 = 16;
/// The block that a reader has locked while a checkpoint runs. Only a copy of it can be written.
const LOCKED: u32 = 2;

impl Site {
    fn needs(self) -> Needs {
        let buffers = match self {
            // A bulk write's ring buffer takes an eighth of the pool.
            Site::Load => 256,
            // Large enough that sessions never evict a dirty page.
            Site::Extension => 64,
            _ => 16,
        };
        Needs { buffers, blocks: 48, seeds: 1, ..Needs::writable() }
    }

    /// The I/O class that identifies the site's I/O.
    fn class(self) -> Class {
        match self {
            Site::Checkpoint | Site::Copy | Site::Sync => Class::Checkpoint,
            Site::Writeback => Class::Maintenance,
            _ => Class::Eviction,
        }
    }

    fn operation(self) -> Operation {
        match self {
            Site::Sync => Operation::Fsync,
            Site::Writeback => Operation::BeginWriteback,
            _ => Operation::Writev,
        }
    }

    /// The relation the site writes.
    fn number(self) -> u32 {
        u32::from(matches!(self, Site::Load | Site::Extension))
    }

    /// Number of handles of this class that the site acquires before the one for its I/O. In the
    /// HANDED_OUT state, an I/O has no operation or file yet, so we can recognise it only by
    /// counting handles. If we counted wrong, the fault finds no I/O, and the cell isn't reached.
    fn handles_before(self) -> u64 {
        match self {
            // One for each of the five writes of the other pages, and two for attempts to write the
            // page in place.
            Site::Copy => 7,
            // The first attempt finds that the log must be flushed first.
            Site::Load => 1,
            // A write of the same class precedes the writeback.
            Site::Writeback => 1,
            _ => 0,
        }
    }

    fn is_local(self) -> bool {
        self == Site::LocalEviction
    }

    /// Whether errors at this site are permanent, because written pages may be lost from the page
    /// cache.
    fn is_a_sync(self) -> bool {
        self.operation() != Operation::Writev
    }

    /// Whether the site writes single pages. A short single-page write is an error, but a short
    /// multi-page write is continued.
    fn writes_one(self) -> bool {
        matches!(self, Site::Copy | Site::BackgroundWriter)
    }

    /// Runs the site and returns the text of any error it reports.
    fn write(self, cluster: &Arc<Cluster>, backend: &mut Backend) -> Result<(), String> {
        let said = |error: &dyn std::error::Error| error.to_string();
        match self {
            Site::Checkpoint | Site::Copy => {
                let options = CheckpointOptions { combine: 4, ..CheckpointOptions::default() };
                cluster.checkpoint_with(backend, options).map(drop).map_err(|error| said(&error))
            }
            Site::Eviction | Site::LocalEviction => {
                backend.read(&cluster.relation(0), 40).map(drop).map_err(|error| said(&error))
            }
            Site::Load => load(cluster, backend).map_err(|error| said(&error)),
            Site::Extension => {
                let made = backend.extend(&cluster.relation(1), 4, ExtendMethod::WriteZeros);
                let pins = made.map_err(|error| said(&error))?;
                pins.iter().for_each(|pin| cluster.change_pinned(backend, 1, pin, NEW));
                Ok(())
            }
            Site::BackgroundWriter => Ok(()),
            Site::Sync => cluster.checkpoint(backend).map(drop).map_err(|error| said(&error)),
            Site::Writeback => {
                let flush_after = CHANGED;
                let options = WriteOptions { class: self.class(), flush_after, ..BACKGROUND };
                write_all(cluster, backend, options).map_err(|error| said(&error))
            }
        }
    }
}

/// The background writer's options.
const BACKGROUND: WriteOptions = WriteOptions {
    concurrency: 16,
    combine: 16,
    class: Class::Eviction,
    must: false,
    checkpoint: false,
    flush_after: 0,
};

/// Writes all dirty pages without syncing anything.
fn write_all(
    cluster: &Cluster,
    backend: &mut Backend,
    options: WriteOptions,
) -> Result<(), WriteError> {
    let mut stream = WriteStream::new(backend, options);
    let mut rows = cluster.pool.rows();
    rows.retain(|row| row.dirty);
    rows.sort_unstable_by_key(|row| row.block);
    for row in rows {
        stream.write(backend, &cluster.relation(0), row.block, row.bufferid - 1)?;
    }
    stream.finish(backend).map(drop)
}

impl FaultKind {
    /// Whether a fault can strike this site under the given method. Delays are possible only on the
    /// simulated disk. A sync transfers no data, so it can't be short.
    fn applies_to(self, site: Site, method: MethodKind) -> bool {
        match self {
            FaultKind::Delay | FaultKind::Reorder => method != MethodKind::IoUring,
            FaultKind::Short | FaultKind::Nothing => !site.is_a_sync(),
            _ => true,
        }
    }

    /// Returns which fault to inject, and how many times. At a site that writes a single page, a
    /// short write must be shorter than a page.
    fn fault(self, site: Site) -> (Fault, u64) {
        match FAULTS[self as usize] {
            (FaultKind::Short, ..) if site.writes_one() => (Fault::Short(512), 1),
            (_, fault, times) => (fault, times),
        }
    }

    /// Whether the site must report an error. `None` if that depends on the number of pages in a
    /// write.
    fn is_reported(self, site: Site) -> Option<bool> {
        match self {
            FaultKind::Error | FaultKind::NoSpace | FaultKind::Quota | FaultKind::Nothing => {
                Some(true)
            }
            FaultKind::Short if site == Site::Load => None,
            FaultKind::Short => Some(site.writes_one()),
            FaultKind::Interrupted | FaultKind::Again | FaultKind::Delay | FaultKind::Reorder => {
                Some(false)
            }
        }
    }
}

/// Fills a bulk write's ring buffer more than twice over, so that it must flush pages.
fn load(cluster: &Cluster, backend: &mut Backend) -> Result<(), WriteError> {
    let mut bulk = backend.bulk_write();
    for _ in 0..5 {
        let method = ExtendMethod::PosixFallocate;
        let pins = backend.extend_in_bulk(&mut bulk, &cluster.relation(1), 16, method)?;
        pins.iter().for_each(|pin| cluster.change_pinned(backend, 1, pin, NEW));
    }
    bulk.finish(backend)
}

#[test]
fn every_fault_at_every_site_in_every_state_under_every_method() {
    let mut cells: Vec<Cell> = Vec::new();
    for method in METHODS {
        for site in SITES {
            let kinds = FAULTS.map(|(kind, ..)| kind).into_iter();
            let kinds = kinds.filter(|kind| kind.applies_to(site, method));
            cells.extend(kinds.flat_map(|kind| STATES.map(|state| (site, kind, state, method))));
        }
    }
    let coverage = Coverage::new(cells);
    for (cell, seed) in coverage.cells().zip(0..) {
        let environment = match cell.3 {
            MethodKind::IoUring => Environment::real(cell.3),
            method => Environment::simulated(method, seed),
        };
        let environment = Environment { local_pool: cell.0.is_local(), ..environment };
        let coverage = coverage.clone();
        cluster::check_in(environment, cell.0.needs(), move |cluster| {
            if run(cluster, cell) {
                coverage.hit(cell);
            }
        });
    }
    coverage.assert_complete(2030);
}

/// Runs one cell: stops the site's I/O in the cell's state, injects the fault into this I/O, and
/// finally checks that no page has been lost. Returns whether the cell was reached, i.e. the I/O
/// that was stopped was struck.
fn run(cluster: &Arc<Cluster>, cell: Cell) -> bool {
    let (site, kind, ..) = cell;
    cluster.create(1, 0);
    let mut backend = cluster.backend();
    if site != Site::BackgroundWriter {
        (0..CHANGED).for_each(|block| cluster.change(&mut backend, block, NEW));
    }
    if site == Site::Sync {
        write_all(cluster, &mut backend, BACKGROUND).expect("written");
    }
    // A site that finds an undurable page acquires its handle twice.
    cluster.log.flush(backend.session(), cluster.log.append(0)).expect("flushes");
    drop(backend);
    let Some(reported) = act(cluster, cell) else { return false };
    if let Some(wanted) = kind.is_reported(site) {
        assert_eq!(reported.is_err(), wanted, "{cell:?}: {reported:?}");
    }
    cluster.settle();
    cluster.clear_faults();
    let mut backend = cluster.backend();
    if site.is_a_sync() && reported.is_err() {
        cluster.assert_checkpoints_fail(&mut backend);
    } else {
        // Nothing was lost, and without the fault the site succeeds.
        site.write(cluster, &mut backend).unwrap_or_else(|error| panic!("{cell:?}: {error}"));
        cluster.checkpoint(&mut backend).expect("writes the rest");
    }
    let changed = if site == Site::BackgroundWriter { 1..2 } else { 0..CHANGED };
    for block in changed {
        assert!(cluster.is_on_disk(block, NEW), "{cell:?}: block {block}");
    }
    true
}

/// Runs the site, stopping its I/O in the cell's state while another session reads. Returns what
/// the site reported, or `None` if the fault did not strike the I/O that was stopped, in the cell's
/// state.
fn act(cluster: &Arc<Cluster>, (site, kind, state, _): Cell) -> Option<Result<(), String>> {
    // A local pool has only one session, so there can't be another one.
    let mut other = (!site.is_local()).then(|| cluster.backend());
    let other_id = other.as_mut().map(|other| other.session().id());
    let class = site.class();
    let file = cluster.relation(site.number()).locate(0).expect("opens").file.id();
    let is_sites = move |io: &Observed| {
        let own = io.class == class && Some(io.session) != other_id;
        let copy = (u64::from(LOCKED) * BLOCK_SIZE as u64, BLOCK_SIZE as u32);
        let part = site != Site::Copy || (io.offset, io.length) == copy;
        own && io.operation == site.operation() && io.file_id == file && part
    };
    let (fault, times) = kind.fault(site);
    let held = match state {
        // At this point the I/O has neither an operation nor a file.
        State::HandedOut => {
            let (before, seen) = (site.handles_before(), AtomicU64::new(0));
            cluster.probe.pause_at(state, move |io| {
                let own = io.class == class && Some(io.session) != other_id;
                own && seen.fetch_add(1, Ordering::SeqCst) >= before
            })
        }
        _ => {
            let struck = cluster.inject_into(is_sites, fault, times);
            cluster.probe.pause_at(state, move |io| struck.is(io))
        }
    };
    let wait = || {
        let held_io = held.wait();
        if state == State::HandedOut {
            let is_held = move |io: &Observed| io.io == held_io && is_sites(io);
            cluster.inject_into(is_held, fault, times);
        }
        // In COMPLETED_IO, the waiting issuer may already have completed the I/O.
        let row = Instance::row(cluster, held_io);
        state == State::CompletedIo || row.is_some_and(|row| row.state == state.name())
    };
    let (in_state, reported) = match (site, other) {
        (Site::BackgroundWriter, Some(other)) => {
            in_background(cluster, kind, other, wait, || held.release())
        }
        (_, other) => in_session(cluster, site, state, other, wait, || held.release()),
    };
    let struck = match times {
        u64::MAX => cluster.injected() > 0,
        _ => cluster.injected() == times,
    };
    (in_state && struck).then_some(reported)
}

/// Runs a site in a session of its own. Another session reads while the site's I/O is stopped.
fn in_session(
    cluster: &Arc<Cluster>,
    site: Site,
    state: State,
    mut reader: Option<Backend>,
    wait: impl FnOnce() -> bool,
    release: impl FnOnce(),
) -> (bool, Result<(), String>) {
    let copied = reader.as_mut().filter(|_| site == Site::Copy);
    let pin = copied.map(|reader| reader.read(&cluster.relation(0), LOCKED).expect("a hit"));
    let page = pin.as_ref().map(|pin| pin.page().try_read().expect("locks"));
    let writer =
        cluster.spawn("writer", move |cluster| site.write(cluster, &mut cluster.backend()));
    let in_state = wait();
    if let Some(reader) = &mut reader {
        // The pages are guaranteed to be in the pool only until the write completes. Afterwards
        // they may be evicted.
        let blocks = if state <= State::CompletedIo { 0..4 } else { 0..0 };
        blocks.for_each(|block| cluster.assert_reads(reader, block, NEW));
    }
    release();
    let reported = writer.join();
    drop(page);
    (in_state, reported)
}

/// Runs the background writer, which is supposed to write block 1. A session has changed that
/// block, and reads other blocks to move the clock hand. It never has to write the block itself,
/// because all other buffers are clean.
fn in_background(
    cluster: &Arc<Cluster>,
    kind: FaultKind,
    mut backend: Backend,
    wait: impl FnOnce() -> bool,
    release: impl FnOnce(),
) -> (bool, Result<(), String>) {
    let settings = BackgroundWriterSettings {
        delay: Duration::from_millis(1),
        multiplier: 1000.0,
        ..BackgroundWriterSettings::default()
    };
    cluster.change(&mut backend, 1, NEW);
    cluster.log.flush(backend.session(), cluster.log.append(0)).expect("flushes");
    let writer = BackgroundWriter::start(&cluster.pool, settings).expect("starts");
    let stop = Arc::new(AtomicBool::new(false));
    let theirs = Arc::clone(&stop);
    let session = cluster.spawn("session", move |cluster| {
        while !theirs.load(Ordering::SeqCst) {
            for block in (16..48).cycle().take(32 * 3) {
                backend.read(&cluster.relation(0), block).map(drop).expect("a clean buffer");
            }
            cluster.let_others_run();
        }
    });
    let in_state = wait();
    release();
    let fails = kind.is_reported(Site::BackgroundWriter) == Some(true);
    cluster.wait_until("a round with this result", || match fails {
        true => writer.counts().failed_rounds > 0,
        false => writer.counts().buffers_clean > 0,
    });
    stop.store(true, Ordering::SeqCst);
    session.join();
    let failed = writer.counts().failed_rounds > 0;
    drop(writer);
    (in_state, if failed { Err("a round failed".to_owned()) } else { Ok(()) })
}
