//! The coverage matrix of writes: every place that writes pages, syncs them or has them written back ×
//! every fault that it can meet × every state of its handle × every method.
//!
//! One test runs all of it and then reads the meter: a cell fails the run if its I/O did not come into the
//! state, by the class, the operation and the file of its place, or if the fault did not strike. While the
//! thread that brought the handle into the state is held there, another session reads what is being
//! written. In the end everything is on disk, or every checkpoint is refused: a sync has failed.
//!
//! What is asked of a file system without a handle (room, lengths, names and their durability) is
//! `calls`. A ring's disk is the real one, and nothing but what a completion can say is injected there.

use crate::rig::{Rig, Setup, run_on};
use std::time::Duration;
use trunkline_aio::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use trunkline_aio::sync::{Arc, Mutex};
use trunkline_aio::{Class, MethodKind, Operation, State};
use trunkline_engine::checkpoint::{
    BackgroundWriter, BackgroundWriterSettings, CheckpointError, CheckpointOptions,
};
use trunkline_engine::pool::{Backend, ExtendMethod, WriteError};
use trunkline_engine::write_stream::{WriteOptions, WriteStream};
use trunkline_format::BLOCK_SIZE;
use trunkline_sim::Fault;
use trunkline_sim::rig::Bench;

/// Who writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Site {
    Checkpoint,
    /// A page that is read all the while: its copy is written.
    Copy,
    Eviction,
    /// In a pool of one session.
    LocalEviction,
    Load,
    /// Zeros.
    Extension,
    BackgroundWriter,
    /// Of a segment, by a checkpoint that finds everything written.
    Sync,
    /// The system is told to write back.
    WriteBehind,
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
    Site::WriteBehind,
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Menu {
    Error,
    NoSpace,
    Quota,
    Interrupted,
    Again,
    Short,
    /// No error, and not a byte.
    Nothing,
    Delay,
    Reorder,
}

const MENU: [Menu; 9] = [
    Menu::Error,
    Menu::NoSpace,
    Menu::Quota,
    Menu::Interrupted,
    Menu::Again,
    Menu::Short,
    Menu::Nothing,
    Menu::Delay,
    Menu::Reorder,
];

/// All but the free one, in which there is no I/O.
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

/// What must have been hit.
type Cell = (Site, Menu, State, MethodKind);

/// The version that everything has in the end.
const NEW: u32 = 5;
/// Blocks of relation 0 that are changed.
const CHANGED: u32 = 16;

impl Site {
    fn setup(self) -> Setup {
        let buffers = match self {
            // A load has an eighth of the pool.
            Site::Load => 256,
            // Nobody is to write for want of a buffer.
            Site::Extension => 64,
            _ => 16,
        };
        Setup { buffers, blocks: 48, seeds: 1, ..Setup::default() }
    }

    fn class(self) -> Class {
        match self {
            Site::Checkpoint | Site::Copy | Site::Sync => Class::Checkpoint,
            Site::WriteBehind => Class::Maintenance,
            _ => Class::Eviction,
        }
    }

    fn operation(self) -> Operation {
        match self {
            Site::Sync => Operation::Fsync,
            Site::WriteBehind => Operation::BeginWriteback,
            _ => Operation::Writev,
        }
    }

    /// The relation that it is about.
    fn number(self) -> u32 {
        u32::from(matches!(self, Site::Load | Site::Extension))
    }

    /// Handles of its class that are handed out to others before.
    fn handles_before(self) -> u64 {
        // That of the write.
        u64::from(self == Site::WriteBehind)
    }

    fn is_local(self) -> bool {
        self == Site::LocalEviction
    }

    /// Whether an error is for ever: what is thought to be written may be lost.
    fn is_a_sync(self) -> bool {
        self.operation() != Operation::Writev
    }

    /// Whether its writes are of one page.
    fn writes_one(self) -> bool {
        matches!(self, Site::Copy | Site::BackgroundWriter)
    }

    /// Does it; what it is told.
    fn write(self, rig: &Arc<Rig>, backend: &mut Backend) -> Result<(), String> {
        let said = |error: &dyn std::error::Error| error.to_string();
        match self {
            Site::Checkpoint | Site::Copy => {
                let options = CheckpointOptions { combine: 4, ..CheckpointOptions::default() };
                rig.checkpoint_with(backend, options).map(drop).map_err(|error| said(&error))
            }
            Site::Eviction | Site::LocalEviction => {
                backend.read(&rig.relation(0), 40).map(drop).map_err(|error| said(&error))
            }
            Site::Load => load(rig, backend).map_err(|error| said(&error)),
            Site::Extension => {
                let made = backend.extend(&rig.relation(1), 4, ExtendMethod::WriteZeros);
                let pins = made.map_err(|error| said(&error))?;
                pins.iter().for_each(|pin| rig.change_pinned(backend, 1, pin, NEW));
                Ok(())
            }
            Site::BackgroundWriter => Ok(()),
            Site::Sync => rig.checkpoint(backend).map(drop).map_err(|error| said(&error)),
            Site::WriteBehind => {
                let flush_after = CHANGED;
                let options = WriteOptions { class: self.class(), flush_after, ..NO_HURRY };
                write_all(rig, backend, options).map_err(|error| said(&error))
            }
        }
    }
}

/// As the background writer does.
const NO_HURRY: WriteOptions = WriteOptions {
    concurrency: 16,
    combine: 16,
    class: Class::Eviction,
    must: false,
    checkpoint: false,
    flush_after: 0,
};

/// Writes what was changed, and syncs nothing.
fn write_all(rig: &Rig, backend: &mut Backend, options: WriteOptions) -> Result<(), WriteError> {
    let mut stream = WriteStream::new(backend, options);
    let mut rows = rig.pool.rows();
    rows.retain(|row| row.dirty);
    rows.sort_unstable_by_key(|row| row.block);
    for row in rows {
        stream.write(backend, &rig.relation(0), row.block, row.bufferid - 1)?;
    }
    stream.finish(backend).map(drop)
}

impl Menu {
    fn applies_to(self, site: Site, method: MethodKind) -> bool {
        match self {
            Menu::Delay | Menu::Reorder => method != MethodKind::IoUring,
            Menu::Short | Menu::Nothing => !site.is_a_sync(),
            _ => true,
        }
    }

    fn fault(self, site: Site) -> (Fault, u64) {
        match self {
            Menu::Error => (Fault::Error(libc::EIO), u64::MAX),
            Menu::NoSpace => (Fault::Error(libc::ENOSPC), u64::MAX),
            Menu::Quota => (Fault::Error(libc::EDQUOT), u64::MAX),
            Menu::Interrupted => (Fault::Interrupted, 2),
            Menu::Again => (Fault::Again, 2),
            Menu::Short if site.writes_one() => (Fault::Short(512), 1),
            Menu::Short => (Fault::Short(BLOCK_SIZE as u32 + 512), 1),
            Menu::Nothing => (Fault::Short(0), u64::MAX),
            Menu::Delay => (Fault::Delay(Duration::from_millis(3)), 1),
            Menu::Reorder => (Fault::Reorder, 1),
        }
    }

    /// Whether the issuer is told; not said where it depends on how many pages a write had.
    fn is_told(self, site: Site) -> Option<bool> {
        match self {
            Menu::Error | Menu::NoSpace | Menu::Quota | Menu::Nothing => Some(true),
            Menu::Short if site == Site::Load => None,
            Menu::Short => Some(site.writes_one()),
            Menu::Interrupted | Menu::Again | Menu::Delay | Menu::Reorder => Some(false),
        }
    }
}

/// Goes round the ring twice.
fn load(rig: &Rig, backend: &mut Backend) -> Result<(), WriteError> {
    let mut bulk = backend.bulk_write();
    for _ in 0..5 {
        let method = ExtendMethod::PosixFallocate;
        let pins = backend.extend_in_bulk(&mut bulk, &rig.relation(1), 16, method)?;
        pins.iter().for_each(|pin| rig.change_pinned(backend, 1, pin, NEW));
    }
    bulk.finish(backend)
}

#[test]
fn every_fault_at_every_site_in_every_state_under_every_method() {
    let mut wanted: Vec<Cell> = Vec::new();
    for method in METHODS {
        for site in SITES {
            let menu = MENU.into_iter().filter(|menu| menu.applies_to(site, method));
            wanted.extend(menu.flat_map(|menu| STATES.map(|state| (site, menu, state, method))));
        }
    }
    let hit: Arc<Mutex<Vec<Cell>>> = Arc::default();
    for (&cell, seed) in wanted.iter().zip(0..) {
        let bench = match cell.3 {
            MethodKind::IoUring => Bench::real(cell.3, cell.0.is_local()),
            method => Bench::simulated(method, seed, cell.0.is_local()),
        };
        let meter = Arc::clone(&hit);
        run_on(bench, cell.0.setup(), move |rig| {
            run(rig, cell);
            meter.lock().push(cell);
        });
    }
    let hit = hit.lock();
    let missing: Vec<&Cell> = wanted.iter().filter(|cell| !hit.contains(cell)).collect();
    assert!(missing.is_empty(), "{} of {} cells empty: {missing:?}", missing.len(), wanted.len());
    assert_eq!(wanted.len(), 2030, "the menu has shrunk or grown");
}

fn run(rig: &Arc<Rig>, cell: Cell) {
    let (site, menu, ..) = cell;
    rig.create(1, 0);
    let mut backend = rig.backend();
    if site != Site::BackgroundWriter {
        (0..CHANGED).for_each(|block| rig.change(&mut backend, block, NEW));
    }
    if site == Site::Sync {
        write_all(rig, &mut backend, NO_HURRY).expect("written");
    }
    drop(backend);
    let struck = inject(rig, cell);
    let told = act(rig, cell);
    let struck = struck.load(Ordering::SeqCst) + rig.plan.struck();
    assert!(struck > 0, "{cell:?}: no fault");
    if let Some(wanted) = menu.is_told(site) {
        assert_eq!(told.is_err(), wanted, "{cell:?}: {told:?}");
    }
    rig.settle();
    rig.no_trouble();
    let mut backend = rig.backend();
    if site.is_a_sync() && told.is_err() {
        for _ in 0..2 {
            let refused = rig.checkpoint(&mut backend).expect_err("for ever");
            let for_ever = matches!(refused, CheckpointError::Sync { path: None, .. });
            assert!(for_ever, "{cell:?}: {refused}");
        }
    } else {
        // Nothing is lost, and the same can be done now.
        site.write(rig, &mut backend).unwrap_or_else(|error| panic!("{cell:?}: {error}"));
        rig.checkpoint(&mut backend).expect("writes the rest");
    }
    let changed = if site == Site::BackgroundWriter { 1..2 } else { 0..CHANGED };
    for block in changed {
        assert!(rig.is_on_disk(block, NEW), "{cell:?}: block {block}");
    }
}

/// Does what the cell says, and holds it in the cell's state while others read.
fn act(rig: &Arc<Rig>, (site, menu, state, _): Cell) -> Result<(), String> {
    let (class, operation) = (site.class(), site.operation());
    let file = rig.relation(site.number()).locate(0).expect("opens").file.id();
    let (before, seen) = (site.handles_before(), AtomicU64::new(0));
    let held = rig.hooks.stop(state, move |io| match state {
        // It has no operation yet.
        State::HandedOut => io.class == class && seen.fetch_add(1, Ordering::SeqCst) >= before,
        _ => io.class == class && io.operation == operation && io.file_id == file,
    });
    if site == Site::BackgroundWriter {
        return in_background(rig, menu, || held.wait(), || held.release());
    }
    // A pool of one session has no reader meanwhile.
    let mut reader = (!site.is_local()).then(|| rig.backend());
    let copied = reader.as_mut().filter(|_| site == Site::Copy);
    let pin = copied.map(|reader| reader.read(&rig.relation(0), 2).expect("a hit"));
    let page = pin.as_ref().map(|pin| pin.page().try_read().expect("locks"));
    let writer = rig.spawn("writer", move |rig| site.write(rig, &mut rig.backend()));
    held.wait();
    if let Some(reader) = &mut reader {
        // They are all there, whatever becomes of the write; once it is over they may go.
        let blocks = if state <= State::CompletedIo { 0..4 } else { 0..0 };
        blocks.for_each(|block| rig.assert_reads(reader, block, NEW));
    }
    held.release();
    let told = writer.join();
    drop(page);
    told
}

/// Sets the fault up; the counter says how often it has struck at a ring.
fn inject(rig: &Rig, (site, menu, _, method): Cell) -> Arc<AtomicU64> {
    let ((fault, times), operation) = (menu.fault(site), site.operation());
    let struck = Arc::new(AtomicU64::new(0));
    if method != MethodKind::IoUring {
        rig.trouble(operation, fault, times);
        return struck;
    }
    let count = Arc::clone(&struck);
    rig.hooks.change_results(move |io, raw| {
        if io.operation != operation || raw < 0 || count.load(Ordering::SeqCst) >= times {
            return raw;
        }
        count.fetch_add(1, Ordering::SeqCst);
        match fault {
            Fault::Error(errno) => -errno,
            Fault::Interrupted => -libc::EINTR,
            Fault::Again => -libc::EAGAIN,
            Fault::Short(bytes) => raw.min(bytes as i32),
            _ => raw,
        }
    });
    struck
}

/// The background writer writes block 1, while a session changes it and passes by others.
fn in_background(
    rig: &Arc<Rig>,
    menu: Menu,
    wait: impl FnOnce() -> trunkline_aio::WaitRef,
    release: impl FnOnce(),
) -> Result<(), String> {
    let settings = BackgroundWriterSettings {
        delay: Duration::from_millis(1),
        multiplier: 1000.0,
        ..BackgroundWriterSettings::default()
    };
    let writer = BackgroundWriter::start(&rig.pool, settings).expect("starts");
    let stop = Arc::new(AtomicBool::new(false));
    let theirs = Arc::clone(&stop);
    let session = rig.spawn("session", move |rig| {
        let mut backend = rig.backend();
        while !theirs.load(Ordering::SeqCst) {
            rig.change(&mut backend, 1, NEW);
            for block in (16..48).cycle().take(32 * 3) {
                // There may be no buffer but by a write, which fails.
                let _ = backend.read(&rig.relation(0), block).map(drop);
            }
            rig.let_others_go();
        }
    });
    wait();
    release();
    let fails = menu.is_told(Site::BackgroundWriter) == Some(true);
    rig.wait_until("a round that ended so", || match fails {
        true => writer.counts().failed_rounds > 0,
        false => writer.counts().buffers_clean > 0,
    });
    stop.store(true, Ordering::SeqCst);
    session.join();
    let failed = writer.counts().failed_rounds > 0;
    drop(writer);
    if failed { Err("a round has failed".to_owned()) } else { Ok(()) }
}
