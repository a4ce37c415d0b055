//! Several streams that belong to one backend and are polled by different tasks. Every task must be
//! woken by its own waker. If a task gives up after being woken for a free handle, another session
//! must be woken instead.

use std::future::poll_fn;
use std::task::{Context, Poll, Waker};
use trunkline_aio::facade::{Arc, Mutex};
use trunkline_engine::pool::Backend;
use trunkline_engine::read_stream::{BlockList, ReadStream, StreamOptions};
use trunkline_format::BlockNo;
use trunkline_sim::matrix::cluster::check;
use trunkline_sim::matrix::{Cluster, Needs, TestThread};
use trunkline_sim::{CountingWaker, PausedIo};

/// A stream with a task of its own.
struct Task {
    stream: ReadStream<BlockList>,
    wakes: Arc<CountingWaker>,
    waker: Waker,
}

impl Task {
    fn new(cluster: &Cluster, backend: &Backend, block: BlockNo) -> Self {
        let (wakes, waker) = CountingWaker::new();
        let options = StreamOptions { combine: 1, ..StreamOptions::default() };
        Self { stream: cluster.stream(backend, &[block], options), wakes, waker }
    }

    /// Polls once. Returns the block if it is ready, after checking its page.
    fn poll(&mut self, cluster: &Cluster, backend: &mut Backend) -> Option<BlockNo> {
        match self.stream.poll_next(&mut Context::from_waker(&self.waker), backend) {
            Poll::Pending => None,
            Poll::Ready(found) => {
                let found = found.expect("reads").expect("not the end");
                cluster.check_page(&found.pin.try_read().expect("not locked"), found.block);
                Some(found.block)
            }
        }
    }

    /// Polls when woken, until the block is there.
    fn finish(&mut self, cluster: &Cluster, backend: &mut Backend) -> BlockNo {
        let mut seen = 0;
        loop {
            cluster.wait_until("a wake-up", || self.wakes.count() > seen);
            seen = self.wakes.count();
            if let Some(block) = self.poll(cluster, backend) {
                return block;
            }
        }
    }
}

/// The first stream's read ends while the second one's continues. The second stream was polled
/// later, and the first task must be woken all the same.
#[test]
fn the_stream_that_was_polled_first_is_woken_too() {
    check(Needs::one_session().asynchronous(), |cluster| {
        let (three, five) = (cluster.hold(3), cluster.hold(5));
        let mut backend = cluster.async_backend();
        let mut tasks = [3, 5].map(|block| Task::new(cluster, &backend, block));
        assert_eq!(tasks[0].poll(cluster, &mut backend), None);
        // A ring driver must stop in this read and not in the other one.
        three.wait();
        assert_eq!(tasks[1].poll(cluster, &mut backend), None);
        three.release();
        assert_eq!(tasks[0].finish(cluster, &mut backend), 3);
        assert_eq!(tasks[1].poll(cluster, &mut backend), None);
        five.release();
        assert_eq!(tasks[1].finish(cluster, &mut backend), 5);
    });
}

/// A task of a runtime, on a thread of its own, that shares its backend with other tasks. It fails
/// if no wake-up arrives in time.
fn read_all(cluster: &Cluster, backend: &Mutex<Backend>, first: BlockNo) {
    let blocks: Vec<BlockNo> = (0..24).map(|at| (first + 7 * at) % 24).collect();
    let options = StreamOptions { combine: 2, ..StreamOptions::default() };
    let mut stream = cluster.stream(&backend.lock(), &blocks, options);
    let (wakes, waker) = CountingWaker::new();
    let mut seen = Vec::new();
    while seen.len() < blocks.len() {
        let mut next = std::pin::pin!(poll_fn(|context| {
            let polled = stream.poll_next(context, &mut backend.lock());
            polled.map(|found| {
                let found = found.expect("reads").expect("not the end");
                cluster.check_page(&found.pin.try_read().expect("not locked"), found.block);
                found.block
            })
        }));
        loop {
            let before = wakes.count();
            match next.as_mut().poll(&mut Context::from_waker(&waker)) {
                Poll::Ready(block) => break seen.push(block),
                Poll::Pending => cluster.wait_until("a wake-up", || wakes.count() > before),
            }
        }
    }
    assert_eq!(seen, blocks);
}

/// Two backends with three tasks each, in a pool of sixteen buffers and with few handles, so that
/// the tasks wait for everything a stream can wait for.
#[test]
fn tasks_that_share_backends_read_everything() {
    let needs = Needs { buffers: 16, blocks: 24, handles: 6, seeds: 40, ..Needs::default() };
    check(needs, |cluster| {
        let backends = [(), ()].map(|()| Arc::new(Mutex::new(cluster.async_backend())));
        let tasks: Vec<_> = (0..6)
            .map(|number: u32| {
                let backend = Arc::clone(&backends[number as usize % 2]);
                cluster.spawn("task", move |cluster| read_all(cluster, &backend, number))
            })
            .collect();
        tasks.into_iter().for_each(TestThread::join);
        assert!(backends.iter().all(|backend| backend.lock().pins() == 0));
    });
}

/// What a task does instead of polling its stream again.
#[derive(Clone, Copy)]
enum GivesUp {
    DropsStream,
    ReleasesAhead,
    Resets,
}

/// Two tasks of different backends wait for the same thing. `free` frees enough for one of them.
/// The first task gives up once it is woken, but its backend lives on. The second must be woken
/// too. Then we drop what `free` has returned, and it must go on.
fn check_gives_up<T>(
    cluster: &Arc<Cluster>,
    how: GivesUp,
    blocks: [BlockNo; 2],
    free: impl FnOnce() -> T,
) {
    let (mut first, mut second) = (cluster.async_backend(), cluster.async_backend());
    let mut gives_up = Task::new(cluster, &first, blocks[0]);
    let mut task = Task::new(cluster, &second, blocks[1]);
    assert_eq!(gives_up.poll(cluster, &mut first), None);
    assert_eq!(task.poll(cluster, &mut second), None);
    let rest = free();
    cluster.wait_until("a wake-up", || gives_up.wakes.count() > 0);
    let kept = match how {
        GivesUp::DropsStream => {
            drop(gives_up);
            None
        }
        GivesUp::ReleasesAhead => {
            gives_up.stream.release_ahead();
            Some(gives_up)
        }
        GivesUp::Resets => {
            gives_up.stream.reset(BlockList::new(vec![blocks[0]]));
            Some(gives_up)
        }
    };
    cluster.wait_until("a wake-up of the other task", || task.wakes.count() > 0);
    drop(rest);
    assert_eq!(task.finish(cluster, &mut second), blocks[1]);
    drop((kept, first));
}

/// Starts reads that use up all the handles available to foreground reads.
fn use_up_handles(cluster: &Arc<Cluster>) -> (Vec<PausedIo>, Vec<TestThread<()>>) {
    let held: Vec<_> = (0..4).map(|block| cluster.hold(block)).collect();
    let read = |cluster: &Arc<Cluster>, block| cluster.read_ok(&mut cluster.backend(), block);
    let readers =
        (0..4).map(|block| cluster.spawn("reader", move |cluster| read(cluster, block))).collect();
    held.iter().for_each(|held| _ = held.wait());
    (held, readers)
}

#[test]
fn a_stream_that_gives_up_after_its_wake_up_passes_a_handle_on() {
    check(Needs { handles: 6, ..Needs::default() }, |cluster| {
        for how in [GivesUp::DropsStream, GivesUp::ReleasesAhead, GivesUp::Resets] {
            let (held, readers) = use_up_handles(cluster);
            check_gives_up(cluster, how, [9, 11], || held[0].release());
            held.iter().for_each(PausedIo::release);
            readers.into_iter().for_each(TestThread::join);
            cluster.pool.evict_all();
        }
    });
}

/// Three tasks of different backends wait for a handle. The first is woken but doesn't poll. The
/// stream of the second is then used by a thread, which takes the handle. The second session must
/// leave the queue, or the third would not be woken when the thread's read is complete.
#[test]
fn a_thread_that_uses_a_polled_stream_takes_no_wake_up_from_others() {
    check(Needs { handles: 6, ..Needs::default() }, |cluster| {
        let (held, readers) = use_up_handles(cluster);
        let mut backends = [(), (), ()].map(|()| cluster.async_backend());
        let [mut idle, mut used, mut task] =
            [0, 1, 2].map(|at| Task::new(cluster, &backends[at], 9 + 2 * at as BlockNo));
        for (task, backend) in [&mut idle, &mut used, &mut task].into_iter().zip(&mut backends) {
            assert_eq!(task.poll(cluster, backend), None);
        }
        held[0].release();
        cluster.wait_until("a wake-up", || idle.wakes.count() > 0);
        let found = used.stream.next(&mut backends[1]).expect("reads").expect("not the end");
        assert_eq!(found.block, 11);
        assert_eq!(task.finish(cluster, &mut backends[2]), 13);
        held.iter().for_each(PausedIo::release);
        readers.into_iter().for_each(TestThread::join);
    });
}

/// While a session waits for a pin, others may not look ahead. A task that gives up must not leave
/// its session registered.
#[test]
fn a_stream_that_gives_up_waiting_for_a_pin_lets_others_look_ahead() {
    check(Needs { buffers: 16, ..Needs::default() }, |cluster| {
        let mut others: Vec<_> = (0..4).map(|_| cluster.backend()).collect();
        let pins: Vec<_> =
            others.iter_mut().map(|it| it.read(&cluster.relation(0), 1).expect("reads")).collect();
        let mut backends = [(), ()].map(|()| cluster.async_backend());
        let mut gives_up = Task::new(cluster, &backends[0], 3);
        assert_eq!(gives_up.poll(cluster, &mut backends[0]), None);
        gives_up.stream.release_ahead();
        drop((pins, others));
        let options = StreamOptions { full: true, combine: 4, ..StreamOptions::default() };
        let blocks: Vec<BlockNo> = (4..12).collect();
        let mut stream = cluster.stream(&backends[1], &blocks, options);
        assert!(stream.next(&mut backends[1]).expect("reads").is_some());
        assert!(stream.stats().io_blocks >= 4, "{:?}", stream.stats());
        drop(gives_up);
    });
}

#[test]
fn a_stream_dropped_after_its_wake_up_passes_a_pin_on() {
    check(Needs { buffers: 16, ..Needs::default() }, |cluster| {
        let mut others: Vec<_> = (0..4).map(|_| cluster.backend()).collect();
        let mut pins: Vec<_> =
            others.iter_mut().map(|it| it.read(&cluster.relation(0), 1).expect("reads")).collect();
        check_gives_up(cluster, GivesUp::DropsStream, [3, 4], || drop(pins.pop()));
    });
}

#[test]
fn a_stream_dropped_after_its_wake_up_passes_a_buffer_on() {
    check(Needs { buffers: 16, blocks: 32, ..Needs::default() }, |cluster| {
        if !cluster.is_asynchronous() {
            return;
        }
        let pin = cluster.backend().read(&cluster.relation(0), 20).expect("reads");
        let held = cluster.fill_with_reads(15);
        let unpin = || {
            drop(pin);
            held
        };
        check_gives_up(cluster, GivesUp::DropsStream, [30, 31], unpin);
        cluster.settle();
    });
}
