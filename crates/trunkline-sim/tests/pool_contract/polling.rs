//! Polled streams. If a stream has to wait for a resource, polling it must return `Poll::Pending`.
//! When the resource becomes available, the task must be woken, and the next poll must return the
//! page. We test this for each resource a stream may wait for.

use std::task::{Context, Poll};
use trunkline_aio::facade::Arc;
use trunkline_engine::pool::Backend;
use trunkline_engine::read_stream::{BlockList, ReadStream, StreamOptions};
use trunkline_format::BlockNo;
use trunkline_sim::CountingWaker;
use trunkline_sim::PausedIo;
use trunkline_sim::matrix::TestThread;
use trunkline_sim::matrix::cluster::{check, check_simulated};
use trunkline_sim::matrix::{Cluster, Needs};

/// The stream under test.
type Stream = ReadStream<BlockList>;

/// Polls once. Returns the block if it is ready, after checking its page.
fn poll(
    cluster: &Cluster,
    stream: &mut Stream,
    backend: &mut Backend,
    context: &mut Context<'_>,
) -> Option<BlockNo> {
    match stream.poll_next(context, backend) {
        Poll::Pending => None,
        Poll::Ready(found) => {
            let found = found.expect("reads").expect("not the end");
            let page = found.pin.try_read().expect("not locked");
            cluster.check_page(&page, found.block);
            Some(found.block)
        }
    }
}

/// Checks that polling a stream over `blocks` returns `Poll::Pending`. Then calls `free`, and
/// checks that the task is woken and that the stream returns all the blocks.
fn check_blocked(cluster: &Arc<Cluster>, blocks: &[BlockNo], unordered: bool, free: impl FnOnce()) {
    let (wakes, waker) = CountingWaker::new();
    let mut context = Context::from_waker(&waker);
    let mut backend = cluster.async_backend();
    let options = StreamOptions { unordered, full: true, combine: 1, ..StreamOptions::default() };
    let mut stream = cluster.stream(&backend, blocks, options);
    for _ in 0..2 {
        assert_eq!(poll(cluster, &mut stream, &mut backend, &mut context), None);
    }
    cluster.let_others_run();
    assert_eq!(poll(cluster, &mut stream, &mut backend, &mut context), None);
    free();
    let mut seen = Vec::new();
    while seen.len() < blocks.len() {
        let before = wakes.count();
        match poll(cluster, &mut stream, &mut backend, &mut context) {
            Some(block) => seen.push(block),
            // The wake-up may belong to an earlier event, so we poll until the block is there.
            None => cluster.wait_until("a wake-up", || wakes.count() > before),
        }
    }
    if unordered {
        seen.sort_unstable();
    }
    assert_eq!(seen, blocks);
    assert!(matches!(stream.poll_next(&mut context, &mut backend), Poll::Ready(Ok(None))));
    drop(stream);
    assert_eq!(backend.pins(), 0);
}

#[test]
fn a_poll_waits_for_its_own_read() {
    check(Needs::one_session(), |cluster| {
        if cluster.is_asynchronous() {
            let held = cluster.hold(3);
            check_blocked(cluster, &[3, 5, 7], false, || held.release());
        }
    });
}

#[test]
fn a_poll_waits_for_any_of_its_reads() {
    check(Needs::one_session(), |cluster| {
        if cluster.is_asynchronous() {
            let held: Vec<_> = [3, 5, 7].into_iter().map(|block| cluster.hold(block)).collect();
            check_blocked(cluster, &[3, 5, 7], true, || held.iter().for_each(PausedIo::release));
        }
    });
}

#[test]
fn a_poll_waits_for_another_sessions_read() {
    check(Needs::default(), |cluster| {
        for unordered in [false, true] {
            cluster.pool.evict_all();
            let held = cluster.hold(3);
            let other =
                cluster.spawn("other", |cluster| cluster.read_ok(&mut cluster.backend(), 3));
            held.wait();
            check_blocked(cluster, &[3], unordered, || held.release());
            other.join();
        }
    });
}

#[test]
fn a_poll_waits_for_admission() {
    check(Needs { buffers: 16, ..Needs::default() }, |cluster| {
        let mut others: Vec<_> = (0..4).map(|_| cluster.backend()).collect();
        let pins: Vec<_> =
            others.iter_mut().map(|it| it.read(&cluster.relation(0), 1).expect("reads")).collect();
        check_blocked(cluster, &[3, 4, 5], false, || drop(pins));
    });
}

#[test]
fn a_poll_waits_for_a_buffer() {
    check(Needs { buffers: 16, blocks: 32, ..Needs::one_session() }, |cluster| {
        if cluster.is_asynchronous() {
            let held = cluster.fill_with_reads(16);
            check_blocked(cluster, &[30, 31], false, || held.iter().for_each(PausedIo::release));
            cluster.settle();
        }
    });
}

#[test]
fn a_poll_waits_for_a_handle() {
    check(Needs { handles: 6, ..Needs::default() }, |cluster| {
        let held: Vec<_> = (0..4).map(|block| cluster.hold(block)).collect();
        let others: Vec<_> = (0..4)
            .map(|block| {
                cluster
                    .spawn("other", move |cluster| cluster.read_ok(&mut cluster.backend(), block))
            })
            .collect();
        held.iter().for_each(|held| _ = held.wait());
        check_blocked(cluster, &[9, 11], false, || held.iter().for_each(PausedIo::release));
        others.into_iter().for_each(TestThread::join);
    });
}

/// Two streams of one session wait for admission. When one is dropped, the other must still be
/// woken.
#[test]
fn a_dropped_stream_does_not_consume_another_streams_wake_up() {
    check(Needs { buffers: 16, ..Needs::default() }, |cluster| {
        let mut others: Vec<_> = (0..4).map(|_| cluster.backend()).collect();
        let pins: Vec<_> =
            others.iter_mut().map(|it| it.read(&cluster.relation(0), 1).expect("reads")).collect();
        let (wakes, waker) = CountingWaker::new();
        let mut context = Context::from_waker(&waker);
        let mut backend = cluster.async_backend();
        let mut first = cluster.stream(&backend, &[3], StreamOptions::default());
        let mut second = cluster.stream(&backend, &[4], StreamOptions::default());
        assert_eq!(poll(cluster, &mut first, &mut backend, &mut context), None);
        assert_eq!(poll(cluster, &mut second, &mut backend, &mut context), None);
        drop(first);
        let before = wakes.count();
        drop(pins);
        cluster.wait_until("a wake-up", || wakes.count() > before);
        loop {
            let before = wakes.count();
            match poll(cluster, &mut second, &mut backend, &mut context) {
                Some(block) => break assert_eq!(block, 4),
                None => cluster.wait_until("another wake-up", || wakes.count() > before),
            }
        }
    });
}

/// A stream over `block` is on a wait list when its backend is dropped. Another session then gets
/// the same session id, and waits for the next block. Dropping the stream must not remove the new
/// session from the wait list. At the end, `free` releases the resource that both of them have been
/// waiting for.
fn check_outliving_stream(cluster: &Arc<Cluster>, block: BlockNo, free: impl FnOnce()) {
    let (_, waker) = CountingWaker::new();
    let mut context = Context::from_waker(&waker);
    let mut backend = cluster.async_backend();
    let id = backend.session_id();
    let mut stream = cluster.stream(&backend, &[block], StreamOptions::default());
    assert_eq!(poll(cluster, &mut stream, &mut backend, &mut context), None);
    drop(backend);
    let next = cluster.spawn("next", move |cluster| {
        let mut backend = cluster.backend();
        assert_eq!(backend.session_id(), id);
        cluster.read_ok(&mut backend, block + 1);
    });
    cluster.let_others_run();
    drop(stream);
    cluster.let_others_run();
    free();
    next.join();
}

#[test]
fn a_stream_that_outlives_its_backend_keeps_no_place_in_the_admission_queue() {
    check_simulated(Needs { buffers: 16, ..Needs::default() }, |cluster| {
        let mut others: Vec<_> = (0..4).map(|_| cluster.backend()).collect();
        let pins: Vec<_> =
            others.iter_mut().map(|it| it.read(&cluster.relation(0), 1).expect("reads")).collect();
        check_outliving_stream(cluster, 3, || drop(pins));
    });
}

#[test]
fn a_stream_that_outlives_its_backend_keeps_no_place_in_the_buffer_queue() {
    check_simulated(
        Needs { buffers: 16, blocks: 32, ..Needs::default().asynchronous() },
        |cluster| {
            let held = cluster.fill_with_reads(16);
            check_outliving_stream(cluster, 20, || held.iter().for_each(PausedIo::release));
            cluster.settle();
        },
    );
}
