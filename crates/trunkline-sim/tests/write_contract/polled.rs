//! Polled streams that need a buffer while every unpinned page is dirty and evictions can't get a
//! handle. Such a stream waits for a handle, but it must also notice when another session unpins a
//! clean page.

use std::task::{Context, Poll, Waker};
use trunkline_aio::State;
use trunkline_aio::facade::Arc;
use trunkline_aio::facade::atomic::{AtomicU64, Ordering};
use trunkline_engine::pool::Backend;
use trunkline_engine::read_stream::{BlockList, ReadStream, StreamOptions};
use trunkline_format::BlockNo;
use trunkline_sim::CountingWaker;
use trunkline_sim::matrix::Cluster;
use trunkline_sim::matrix::cluster::check_simulated;

use crate::starved::{Starved, needs};

/// A task that reads one block.
struct Task {
    stream: ReadStream<BlockList>,
    wakes: Arc<CountingWaker>,
    waker: Waker,
    /// The number of wake-ups before the last poll.
    seen: u32,
}

impl Task {
    fn new(cluster: &Cluster, backend: &Backend, block: BlockNo) -> Self {
        let (wakes, waker) = CountingWaker::new();
        let options = StreamOptions { combine: 1, ..StreamOptions::default() };
        Self { stream: cluster.stream(backend, &[block], options), wakes, waker, seen: 0 }
    }

    fn is_woken(&self) -> bool {
        self.wakes.count() > self.seen
    }

    /// Polls once. Returns whether the block is there.
    fn poll(&mut self, backend: &mut Backend) -> bool {
        self.seen = self.wakes.count();
        match self.stream.poll_next(&mut Context::from_waker(&self.waker), backend) {
            Poll::Pending => false,
            Poll::Ready(found) => found.expect("reads").is_some(),
        }
    }
}

/// Another session unpins the clean page during the poll. The task must either see that or be woken.
#[test]
fn a_poll_that_waits_for_a_handle_notices_a_victim() {
    check_simulated(needs(40), |cluster| {
        let Some(Starved { clean, held, checkpoint }) = Starved::new(cluster) else { return };
        // It executes its read itself, because the mount that hangs has had its share of workers.
        let mut backend = cluster.backend();
        let mut task = Task::new(cluster, &backend, 20);
        // The poll gives its handle back when it has found no buffer.
        let found_none = cluster.probe.pause_at(State::Idle, |_| true);
        let unpins = cluster.spawn("unpins", move |cluster| {
            found_none.wait();
            found_none.release();
            // Each load lets the scheduler switch threads, so the pin is released at another point
            // of the poll under each seed.
            let steps = AtomicU64::new(4 * cluster.environment.seed.unwrap_or(0));
            (0..steps.load(Ordering::SeqCst)).for_each(|_| _ = steps.load(Ordering::SeqCst));
            drop(clean);
        });
        while !task.poll(&mut backend) {
            cluster.wait_until("a wake-up", || task.is_woken());
        }
        unpins.join();
        assert!(!checkpoint.is_done());
        drop(task);
        drop(held);
        checkpoint.join();
    });
}

/// Two tasks wait for a handle for an eviction, and look for a buffer each time they are polled,
/// which takes a handle for a foreground read. They must not wake each other.
#[test]
fn tasks_that_wait_for_a_handle_do_not_wake_each_other() {
    check_simulated(needs(6), |cluster| {
        let Some(Starved { clean, held, checkpoint }) = Starved::new(cluster) else { return };
        for sessions in [1, 2] {
            let mut backends: Vec<_> = (0..sessions).map(|_| cluster.async_backend()).collect();
            let mut tasks = [20, 21].map(|block| Task::new(cluster, &backends[0], block));
            if sessions == 2 {
                tasks[1] = Task::new(cluster, &backends[1], 21);
            }
            let mut polls = 0;
            let mut poll = |task: usize| {
                polls += 1;
                assert!(polls < 20, "the tasks of {sessions} sessions keep waking each other");
                assert!(!tasks[task].poll(&mut backends[task % sessions]), "no buffer is free");
                tasks.iter().position(Task::is_woken)
            };
            poll(0);
            let mut woken = poll(1);
            while let Some(task) = woken {
                woken = poll(task);
            }
            drop(tasks);
        }
        drop(clean);
        drop(held);
        checkpoint.join();
    });
}
