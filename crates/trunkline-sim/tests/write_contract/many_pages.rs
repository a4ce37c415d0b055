//! Operations on many pages in a small pool. Sessions extend a relation by more pages than they
//! have guaranteed pins for, and the log needs to do I/O while page writes are using all other
//! handles.

use std::task::{Context, Poll};
use trunkline_aio::facade::Arc;
use trunkline_aio::{Class, File, PolledWait, Session, Slots};
use trunkline_engine::checkpoint::{CheckpointOptions, checkpoint};
use trunkline_engine::log::{Log, LogError, PositionLog};
use trunkline_engine::pool::{BackendType, ExtendMethod, Pool};
use trunkline_format::Lsn;
use trunkline_sim::matrix::cluster::{check, check_simulated};
use trunkline_sim::matrix::{Needs, TestThread, page};

/// Eight sessions extend the same relation in a pool that has only 16 buffers. Each of them asks
/// for 32 pages at a time. A session may get fewer than that, and it modifies every page it gets.
#[test]
fn all_sessions_extend_in_a_tiny_pool() {
    check(Needs { buffers: 16, blocks: 16, seeds: 2, ..Needs::writable() }, |cluster| {
        let extend = |session: u32| {
            cluster.spawn("session", move |cluster| {
                let (mut backend, mut blocks) = (cluster.backend(), Vec::new());
                for step in 0..6 {
                    let methods = [ExtendMethod::PosixFallocate, ExtendMethod::WriteZeros];
                    let method = methods[((session + step) % 2) as usize];
                    let pins = backend.extend(&cluster.relation(0), 32, method);
                    let pins = pins.unwrap_or_else(|error| panic!("{error}"));
                    pins.iter().for_each(|pin| cluster.change_pinned(&mut backend, 0, pin, 3));
                    blocks.extend(pins.iter().map(|pin| pin.page().block()));
                }
                blocks
            })
        };
        let tasks: Vec<_> = (0..8).map(extend).collect();
        let mut backend = cluster.backend();
        while tasks.iter().any(|task| !task.is_done()) {
            cluster.checkpoint(&mut backend).expect("a checkpoint");
            cluster.let_others_run();
        }
        let blocks: Vec<u32> = tasks.into_iter().flat_map(TestThread::join).collect();
        cluster.checkpoint(&mut backend).expect("a checkpoint");
        assert!(blocks.iter().all(|&block| cluster.is_on_disk(block, 3)));
    });
}

/// A log that issues its own I/O to flush, as a real WAL does.
struct Writing {
    log: PositionLog,
    file: File,
}

impl Log for Writing {
    fn durable(&self) -> Lsn {
        self.log.durable()
    }

    fn flush(&self, session: &mut Session, lsn: Lsn) -> Result<(), LogError> {
        let mut operations = Slots::new(1);
        let io = session.acquire(Class::Log)?;
        io.fsync(&self.file, &mut operations, 0);
        session.wait_any(&mut operations)?;
        self.log.flush(session, lsn)
    }

    fn poll_flush(
        &self,
        _context: &mut Context<'_>,
        _session: &mut Session,
        _wait: &mut PolledWait,
        _lsn: Lsn,
    ) -> Poll<Result<(), LogError>> {
        unreachable!("no task flushes this log")
    }
}

/// Page writes are hanging, and have taken every handle they can get. The log must still be able to
/// flush, using the handles that are reserved for it. Otherwise the page writes would be waiting
/// for the log, and the log for a handle.
#[test]
fn the_log_flushes_while_page_writes_hang() {
    check_simulated(Needs { handles: 12, seeds: 2, ..Needs::writable() }, |cluster| {
        if !cluster.is_asynchronous() || cluster.environment.writes_inline() {
            return;
        }
        // This pool has its own log, but the write checker only knows the cluster's.
        cluster.writes.detach();
        cluster.disk.create("/other/log", 7, &[0; 8192]);
        let open = || cluster.disk.open_existing(&cluster.aio, "/other/log", false).expect("there");
        let log = PositionLog::default();
        let writing = || Writing { log: log.clone(), file: open() };
        let pool = Pool::with_log(&cluster.aio, 64, Arc::new(writing())).expect("a pool");
        let mut backend = pool.backend(BackendType::Client).expect("a session");
        for block in 0..32 {
            let pin = backend.read(&cluster.relation(0), block).expect("reads");
            let mut bytes = backend.write_lock(pin.page()).expect("locks");
            bytes.mark_dirty();
            bytes.copy_from_slice(&page(0, block, 1, log.append(10).0));
        }
        cluster.disk.hold(1);
        let theirs = pool.clone();
        let task = cluster.spawn("checkpoint", move |_| {
            let mut backend = theirs.backend(BackendType::Client).expect("a session");
            let options = CheckpointOptions { combine: 1, ..CheckpointOptions::default() };
            checkpoint(&theirs, &mut backend, options, |_| {}).map(drop).expect("a checkpoint");
        });
        cluster.wait_until("the log is durable", || log.flushes() == 1);
        cluster.let_others_run();
        let mut session = cluster.aio.session().expect("a session");
        assert!(session.try_acquire(Class::Eviction).is_none(), "page writes have no handle left");
        drop(session);
        let mut session = cluster.aio.session().expect("a session");
        writing().flush(&mut session, log.append(10)).expect("durable");
        drop(session);
        cluster.disk.release(1);
        task.join();
        drop((backend, pool));
    });
}
