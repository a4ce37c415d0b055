//! Polled streams that need a buffer while every page is dirty. A poll must not flush the log or
//! open a victim's file itself, because both may block. While it waits for either, it must not keep
//! its place in the queue for a handle.

use std::future::poll_fn;
use std::io;
use std::task::{Context, Poll, Waker, ready};
use trunkline_aio::facade::{Arc, Mutex};
use trunkline_aio::{
    Class, File, Io, Operation, Outcome, PolledWait, Session, Slots, Status, WaitRef,
};
use trunkline_engine::log::{Log, LogError, PositionLog};
use trunkline_engine::pool::{Backend, BackendType, ReadError, WriteError};
use trunkline_engine::read_stream::{BlockList, ReadStream, StreamOptions};
use trunkline_engine::storage::Relation;
use trunkline_format::{BlockNo, Lsn};
use trunkline_sim::matrix::cluster::check;
use trunkline_sim::matrix::{Cluster, FileCall, Needs, page};
use trunkline_sim::{CountingWaker, block_on};

use crate::logged::dirty_pool;

/// A log that issues an fsync to flush, through the session that waits, and that tasks of several
/// sessions may wait for.
struct Syncing {
    log: PositionLog,
    file: File,
    /// The fsync in flight.
    flush: Mutex<Option<(Slots, WaitRef)>>,
}

impl Syncing {
    fn new(cluster: &Cluster) -> Arc<Self> {
        let file = cluster.relation(0).locate(0).expect("opened").file;
        Arc::new(Self { log: PositionLog::default(), file, flush: Mutex::default() })
    }

    fn ended(&self, session: &mut Session, lsn: Lsn, outcome: Outcome) -> Result<(), LogError> {
        match outcome.errno().filter(|_| outcome.status == Status::Error) {
            Some(errno) => {
                Err(LogError::Flush { wanted: lsn, source: io::Error::from_raw_os_error(errno) })
            }
            None => self.log.flush(session, lsn),
        }
    }
}

impl Log for Syncing {
    fn durable(&self) -> Lsn {
        self.log.durable()
    }

    fn flush(&self, session: &mut Session, lsn: Lsn) -> Result<(), LogError> {
        let mut slots = Slots::new(1);
        session.acquire(Class::Log)?.fsync(&self.file, &mut slots, 0);
        let outcome = session.wait(&mut slots, 0)?;
        self.ended(session, lsn, outcome)
    }

    fn poll_flush(
        &self,
        context: &mut Context<'_>,
        session: &mut Session,
        wait: &mut PolledWait,
        lsn: Lsn,
    ) -> Poll<Result<(), LogError>> {
        let mut flush = self.flush.lock();
        if flush.is_none() {
            let mut slots = Slots::new(1);
            let io = ready!(session.poll_acquire(context, wait, Class::Log))?;
            let io = io.fsync(&self.file, &mut slots, 0);
            *flush = Some((slots, io));
        }
        let Some((slots, io)) = flush.as_mut() else { unreachable!("just issued") };
        ready!(session.poll_join(context, wait, *io))?;
        let outcome = ready!(session.poll(context, wait, slots, 0))?;
        *flush = None;
        drop(flush);
        Poll::Ready(self.ended(session, lsn, outcome))
    }
}

fn stream(backend: &Backend, relation: &Relation, block: BlockNo) -> ReadStream<BlockList> {
    let list = BlockList::new(vec![block]);
    ReadStream::new(backend, relation, list, StreamOptions::default())
}

/// Polls a stream that must wait when woken, until `over`.
fn poll_until(
    cluster: &Cluster,
    backend: &mut Backend,
    stream: &mut ReadStream<BlockList>,
    over: impl Fn() -> bool,
) {
    let (wakes, waker) = CountingWaker::new();
    while !over() {
        let before = wakes.count();
        assert!(stream.poll_next(&mut Context::from_waker(&waker), backend).is_pending());
        cluster.wait_until("a wake-up", || over() || wakes.count() > before);
    }
    assert!(stream.poll_next(&mut Context::from_waker(&waker), backend).is_pending());
}

/// Reads the block of a stream in a task.
fn read(backend: &mut Backend, stream: &mut ReadStream<BlockList>) -> Result<BlockNo, ReadError> {
    block_on(poll_fn(|context| {
        stream.poll_next(context, backend).map_ok(|found| found.expect("not the end").block)
    }))
}

fn needs() -> Needs {
    Needs { buffers: 16, blocks: 64, handles: 64, ..Needs::writable().asynchronous() }
}

/// The log is being flushed. The thread's other task goes on, even though it uses the same session.
#[test]
fn a_poll_waits_for_a_log_flush() {
    check(needs(), |cluster| {
        // This pool has its own log, but the write checker only knows the cluster's.
        cluster.writes.detach();
        let (log, relation) = (Syncing::new(cluster), cluster.relation(0));
        let (pool, mut backend) =
            dirty_pool(cluster, Arc::clone(&log) as _, || log.log.append(10).0);
        backend.session().set_may_block(false);
        let held = cluster.probe.hold_result(|io| io.operation == Operation::Fsync);
        let mut evicts = stream(&backend, &relation, 20);
        poll_until(cluster, &mut backend, &mut evicts, || held.has_arrived());
        let mut hits = stream(&backend, &relation, 7);
        assert_eq!(read(&mut backend, &mut hits).expect("in the pool"), 7);
        drop(hits);
        assert!(pool.rows().iter().all(|row| row.dirty), "nothing is written before the log");
        held.release();
        assert_eq!(read(&mut backend, &mut evicts).expect("reads"), 20);
        assert_eq!(log.log.flushes(), 1);
        drop(evicts);
        drop((backend, pool));
        cluster.writes.attach(&cluster.files);
    });
}

/// Each flush fails, but only after the task has waited for it. The task must not start over with
/// the first page each time.
#[test]
fn a_log_that_fails_while_it_is_polled_is_an_error() {
    check(needs(), |cluster| {
        cluster.writes.detach();
        let (log, relation) = (Syncing::new(cluster), cluster.relation(0));
        let (pool, mut backend) =
            dirty_pool(cluster, Arc::clone(&log) as _, || log.log.append(10).0);
        backend.session().set_may_block(false);
        cluster.probe.change_results(|io, raw| match io.operation {
            Operation::Fsync => -libc::EIO,
            _ => raw,
        });
        let mut evicts = stream(&backend, &relation, 20);
        let error = read(&mut backend, &mut evicts).expect_err("no buffer");
        let log_failed = |error: &WriteError| matches!(error, WriteError::Log(_));
        assert!(matches!(&error, ReadError::Eviction(error) if log_failed(error)), "{error}");
        assert!(pool.rows().iter().all(|row| row.dirty && row.pins == 0));
        cluster.probe.keep_results();
        assert_eq!(read(&mut backend, &mut evicts).expect("reads"), 20);
        drop(evicts);
        drop((backend, pool));
        cluster.writes.attach(&cluster.files);
    });
}

/// The file of the only victims is not open.
#[test]
fn a_poll_waits_while_a_victims_file_is_opened() {
    check(needs(), |cluster| {
        cluster.create(1, 4);
        cluster.relation(1).locate(0).expect("opened");
        let mut backend = cluster.async_backend();
        (0..16).for_each(|block| cluster.change(&mut backend, block, 1));
        cluster.storage.forget(cluster.relation(0).locator());
        let opening = cluster.files.hold(FileCall::Open);
        let mut evicts = stream(&backend, &cluster.relation(1), 2);
        poll_until(cluster, &mut backend, &mut evicts, || opening.arrivals() > 0);
        let mut hits = stream(&backend, &cluster.relation(0), 7);
        assert_eq!(read(&mut backend, &mut hits).expect("in the pool"), 7);
        drop(hits);
        opening.release();
        assert_eq!(read(&mut backend, &mut evicts).expect("reads"), 2);
    });
}

/// A session with a task that waits for a handle for a write.
struct Queued {
    session: Session,
    wait: PolledWait,
    wakes: Arc<CountingWaker>,
    waker: Waker,
}

impl Queued {
    fn new(cluster: &Cluster) -> Self {
        let session = cluster.aio.session().expect("a session");
        let (wait, (wakes, waker)) = (session.polled_wait(), CountingWaker::new());
        let mut queued = Self { session, wait, wakes, waker };
        assert!(!queued.gets_handle());
        queued
    }

    /// Polls once. Gives the handle back if there is one.
    fn gets_handle(&mut self) -> bool {
        let context = &mut Context::from_waker(&self.waker);
        self.session.poll_acquire(context, &mut self.wait, Class::Eviction).is_ready()
    }

    fn is_woken(&self) -> bool {
        self.wakes.count() > 0
    }
}

fn is_pending(backend: &mut Backend, stream: &mut ReadStream<BlockList>) -> bool {
    stream.poll_next(&mut Context::from_waker(Waker::noop()), backend).is_pending()
}

/// With this many handles, evictions may use two.
const HANDLES: u32 = 8;

fn sessions(cluster: &Cluster) -> [Session; 3] {
    [(); 3].map(|()| cluster.aio.session().expect("a session"))
}

/// Takes all handles that evictions may use.
fn take_handles(sessions: &mut [Session; 3]) -> Vec<Io<'_>> {
    let handles = sessions.iter_mut().map_while(|session| session.try_acquire(Class::Eviction));
    let handles: Vec<_> = handles.collect();
    assert_eq!(handles.len(), 2);
    handles
}

/// When the task is polled again, its victims' file is not open any more. The handle that is freed
/// while it waits for that belongs to the next session in the queue.
#[test]
fn a_poll_that_waits_for_an_open_leaves_the_queue_for_a_handle() {
    check(Needs { handles: HANDLES, ..needs() }, |cluster| {
        if !cluster.is_asynchronous() {
            return;
        }
        cluster.create(1, 4);
        cluster.relation(1).locate(0).expect("opened");
        let mut backend = cluster.async_backend();
        (0..16).for_each(|block| cluster.change(&mut backend, block, 1));
        let mut holders = sessions(cluster);
        let mut handles = take_handles(&mut holders);
        let mut evicts = stream(&backend, &cluster.relation(1), 2);
        assert!(is_pending(&mut backend, &mut evicts));
        let mut next = Queued::new(cluster);
        cluster.storage.forget(cluster.relation(0).locator());
        let opening = cluster.files.hold(FileCall::Open);
        assert!(is_pending(&mut backend, &mut evicts));
        drop(handles.pop());
        cluster.wait_until("a wake-up", || next.is_woken());
        assert!(next.gets_handle());
        drop(handles);
        opening.release();
        assert_eq!(read(&mut backend, &mut evicts).expect("reads"), 2);
    });
}

/// When the task is polled again, it gets a handle, but its victims need a log flush now. It must
/// pass on the wake-up for a handle that it doesn't take.
///
/// A poll wakes the next session in the queue each time that it gives a handle back. This one does
/// so twice, first because it has found no buffer to read into, so the second wake-up is its own.
#[test]
fn a_poll_that_waits_for_the_log_leaves_the_queue_for_a_handle() {
    check(Needs { handles: HANDLES, ..needs() }, |cluster| {
        if !cluster.is_asynchronous() {
            return;
        }
        cluster.writes.detach();
        let (log, relation) = (Syncing::new(cluster), cluster.relation(0));
        let (pool, mut backend) = dirty_pool(cluster, Arc::clone(&log) as _, || 0);
        backend.session().set_may_block(false);
        let mut holders = sessions(cluster);
        let handles = take_handles(&mut holders);
        let ahead = [(), ()].map(|()| Queued::new(cluster));
        let mut evicts = stream(&backend, &relation, 20);
        assert!(is_pending(&mut backend, &mut evicts));
        let mut next = Queued::new(cluster);
        let lsn = log.log.append(10);
        let mut changes = pool.backend(BackendType::Client).expect("a session");
        for block in 0..16 {
            let pin = changes.read(&relation, block).expect("in the pool");
            let mut bytes = changes.write_lock(pin.page()).expect("locks");
            bytes.mark_dirty();
            bytes.copy_from_slice(&page(0, block, 2, lsn.0));
        }
        // Another session is flushing the log.
        let held = cluster.probe.hold_result(|io| io.operation == Operation::Fsync);
        let mut flushes = cluster.aio.session().expect("a session");
        let mut wait = flushes.polled_wait();
        let context = &mut Context::from_waker(Waker::noop());
        assert!(log.poll_flush(context, &mut flushes, &mut wait, lsn).is_pending());
        drop(handles);
        cluster.wait_until("a wake-up", || ahead[0].is_woken());
        assert!(is_pending(&mut backend, &mut evicts));
        cluster.wait_until("a wake-up of the next session", || next.is_woken());
        assert!(next.gets_handle());
        drop(ahead);
        held.release();
        let flush = poll_fn(|context| log.poll_flush(context, &mut flushes, &mut wait, lsn));
        block_on(flush).expect("flushed");
        assert_eq!(read(&mut backend, &mut evicts).expect("reads"), 20);
        drop(evicts);
        drop((backend, changes, pool));
        cluster.writes.attach(&cluster.files);
    });
}
