//! The coverage matrix of writes: every place that writes pages × every fault that a write can meet ×
//! every state of its handle × every method.
//!
//! One test runs all of it and then reads the meter: a cell that was not hit fails the run, and so does
//! one that was hit without the fault having struck. While the thread that brought the handle into the
//! state is held there, another session reads what is being written. In the end everything is on disk.

use crate::rig::{Rig, Setup, run_on};
use std::time::Duration;
use trunkline_aio::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use trunkline_aio::sync::{Arc, Mutex};
use trunkline_aio::{Class, MethodKind, Operation, State};
use trunkline_engine::checkpoint::{BackgroundWriter, BackgroundWriterSettings, CheckpointOptions};
use trunkline_engine::pool::{Backend, ExtendMethod};
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
    Load,
    Extension,
    BackgroundWriter,
}

const SITES: [Site; 6] = [
    Site::Checkpoint,
    Site::Copy,
    Site::Eviction,
    Site::Load,
    Site::Extension,
    Site::BackgroundWriter,
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Menu {
    Error,
    NoSpace,
    Interrupted,
    Again,
    Short,
    Delay,
}

const MENU: [Menu; 6] =
    [Menu::Error, Menu::NoSpace, Menu::Interrupted, Menu::Again, Menu::Short, Menu::Delay];

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
        // A load has an eighth of the pool.
        let buffers = if self == Site::Load { 256 } else { 16 };
        Setup { buffers, blocks: 48, seeds: 1, ..Setup::default() }
    }

    fn class(self) -> Class {
        match self {
            Site::Checkpoint | Site::Copy => Class::Checkpoint,
            _ => Class::WriteBack,
        }
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
            Site::Eviction => {
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
        }
    }
}

impl Menu {
    fn applies_at(self, method: MethodKind) -> bool {
        // The ring's disk is the real one, and only what a completion can say is injected.
        self != Menu::Delay || method != MethodKind::IoUring
    }

    fn fault(self, site: Site) -> (Fault, u64) {
        match self {
            Menu::Error => (Fault::Error(libc::EIO), u64::MAX),
            Menu::NoSpace => (Fault::Error(libc::ENOSPC), u64::MAX),
            Menu::Interrupted => (Fault::Interrupted, 2),
            Menu::Again => (Fault::Again, 2),
            Menu::Short if site.writes_one() => (Fault::Short(512), 1),
            Menu::Short => (Fault::Short(BLOCK_SIZE as u32 + 512), 1),
            Menu::Delay => (Fault::Delay(Duration::from_millis(3)), 1),
        }
    }

    /// Whether the issuer is told; not said where it depends on how many pages a write had.
    fn is_told(self, site: Site) -> Option<bool> {
        match self {
            Menu::Error | Menu::NoSpace => Some(true),
            Menu::Short if site == Site::Load => None,
            Menu::Short => Some(site.writes_one()),
            Menu::Interrupted | Menu::Again | Menu::Delay => Some(false),
        }
    }
}

/// Goes round the ring twice.
fn load(rig: &Rig, backend: &mut Backend) -> Result<(), trunkline_engine::pool::WriteError> {
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
        for menu in MENU.into_iter().filter(|menu| menu.applies_at(method)) {
            let of_site = |site| STATES.map(|state| (site, menu, state, method));
            wanted.extend(SITES.into_iter().flat_map(of_site));
        }
    }
    let hit: Arc<Mutex<Vec<Cell>>> = Arc::default();
    for (&cell, seed) in wanted.iter().zip(0..) {
        let bench = match cell.3 {
            MethodKind::IoUring => Bench::real(cell.3, false),
            method => Bench::simulated(method, seed, false),
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
    assert!(wanted.len() > 900, "the menu has shrunk to {} cells", wanted.len());
}

fn run(rig: &Arc<Rig>, cell: Cell) {
    let (site, menu, state, _) = cell;
    rig.create(1, 0);
    let mut reader = rig.backend();
    if site != Site::BackgroundWriter {
        (0..CHANGED).for_each(|block| rig.change(&mut reader, block, NEW));
    }
    let struck = inject(rig, cell);
    let class = site.class();
    let held = rig.hooks.stop(state, move |io| {
        io.class == class && (state == State::HandedOut || io.operation == Operation::Writev)
    });
    let told = if site == Site::BackgroundWriter {
        in_background(rig, menu, || held.wait(), || held.release())
    } else {
        let pin = (site == Site::Copy).then(|| reader.read(&rig.relation(0), 2).expect("a hit"));
        let page = pin.as_ref().map(|pin| pin.page().try_read().expect("locks"));
        let writer = rig.spawn("writer", move |rig| {
            let mut backend = rig.backend();
            site.write(rig, &mut backend)
        });
        held.wait();
        // They are all there, whatever becomes of the write; once it is over they may go.
        let mut other = rig.backend();
        let blocks = if state <= State::CompletedIo { 0..4 } else { 0..0 };
        blocks.for_each(|block| rig.assert_reads(&mut other, block, NEW));
        held.release();
        let told = writer.join();
        drop(page);
        told
    };
    let struck = struck.load(Ordering::SeqCst) + rig.plan.struck();
    assert!(struck > 0, "{cell:?}: no fault");
    if let Some(wanted) = menu.is_told(site) {
        assert_eq!(told.is_err(), wanted, "{cell:?}: {told:?}");
    }
    rig.settle();
    rig.no_trouble();
    // Nothing is lost, and the same can be done now.
    site.write(rig, &mut reader).unwrap_or_else(|error| panic!("{cell:?}: {error}"));
    rig.checkpoint(&mut reader).expect("writes the rest");
    let changed = if site == Site::BackgroundWriter { 1..2 } else { 0..CHANGED };
    for block in changed {
        assert!(rig.is_on_disk(block, NEW), "{cell:?}: block {block}");
    }
}

/// Sets the fault up; the counter says how often it has struck at a ring.
fn inject(rig: &Rig, (site, menu, _, method): Cell) -> Arc<AtomicU64> {
    let (fault, times) = menu.fault(site);
    let struck = Arc::new(AtomicU64::new(0));
    if method != MethodKind::IoUring {
        rig.trouble(Operation::Writev, fault, times);
        return struck;
    }
    let count = Arc::clone(&struck);
    rig.hooks.change_results(move |io, raw| {
        if io.operation != Operation::Writev || raw < 0 || count.load(Ordering::SeqCst) >= times {
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
