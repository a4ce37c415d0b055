//! Streams that are polled: for everything that they may have to wait for the task is told "pending"
//! once, is woken when that has changed, and gets its page.

use crate::rig::{Rig, Setup, check, check_simulated};
use std::task::{Context, Poll};
use trunkline_aio::sync::Arc;
use trunkline_engine::pool::Backend;
use trunkline_engine::read_stream::{BlockList, ReadStream, StreamOptions};
use trunkline_format::BlockNo;
use trunkline_sim::Alarm;
use trunkline_sim::Held;
use trunkline_sim::rig::Task;

type Stream = ReadStream<BlockList>;

/// One poll: the block, if it is ready.
fn poll(
    rig: &Rig,
    stream: &mut Stream,
    backend: &mut Backend,
    context: &mut Context<'_>,
) -> Option<BlockNo> {
    match stream.poll_next(context, backend) {
        Poll::Pending => None,
        Poll::Ready(found) => {
            let found = found.expect("reads").expect("not the end");
            let page = found.pin.try_read().expect("nobody changes it");
            rig.check_page(&page, found.block);
            Some(found.block)
        }
    }
}

/// A stream over `blocks` that is pending; after `free` it is woken and brings `wanted`.
fn check_blocked(rig: &Arc<Rig>, blocks: &[BlockNo], unordered: bool, free: impl FnOnce()) {
    let (alarm, waker) = Alarm::new();
    let mut context = Context::from_waker(&waker);
    let mut backend = rig.task_backend();
    let options = StreamOptions { unordered, full: true, combine: 1, ..StreamOptions::default() };
    let mut stream = rig.stream(&backend, blocks, options);
    for _ in 0..2 {
        assert_eq!(poll(rig, &mut stream, &mut backend, &mut context), None);
    }
    rig.let_others_go();
    assert_eq!(poll(rig, &mut stream, &mut backend, &mut context), None);
    free();
    let mut seen = Vec::new();
    while seen.len() < blocks.len() {
        let rung = alarm.rung();
        match poll(rig, &mut stream, &mut backend, &mut context) {
            Some(block) => seen.push(block),
            // Woken perhaps by the very event that made the last poll come in vain.
            None => rig.wait_until("a wake-up", || alarm.rung() > rung),
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
fn pending_for_its_own_read() {
    check(Setup::both(), |rig| {
        if rig.is_asynchronous() {
            let held = rig.hold(3);
            check_blocked(rig, &[3, 5, 7], false, || held.release());
        }
    });
}

#[test]
fn pending_for_any_of_its_reads() {
    check(Setup::both(), |rig| {
        if rig.is_asynchronous() {
            let held: Vec<_> = [3, 5, 7].into_iter().map(|block| rig.hold(block)).collect();
            check_blocked(rig, &[3, 5, 7], true, || held.iter().for_each(Held::release));
        }
    });
}

#[test]
fn pending_for_another_sessions_read() {
    check(Setup::default(), |rig| {
        for unordered in [false, true] {
            rig.pool.evict_all();
            let held = rig.hold(3);
            let other = rig.spawn("other", |rig| rig.read_ok(&mut rig.backend(), 3));
            held.wait();
            check_blocked(rig, &[3], unordered, || held.release());
            other.join();
        }
    });
}

#[test]
fn pending_to_be_admitted() {
    check(Setup { buffers: 16, ..Setup::default() }, |rig| {
        let mut others: Vec<_> = (0..4).map(|_| rig.backend()).collect();
        let pins: Vec<_> =
            others.iter_mut().map(|it| it.read(&rig.relation(0), 1).expect("reads")).collect();
        check_blocked(rig, &[3, 4, 5], false, || drop(pins));
    });
}

#[test]
fn pending_for_a_buffer() {
    check(Setup { buffers: 16, blocks: 32, ..Setup::both() }, |rig| {
        if rig.is_asynchronous() {
            let held = rig.fill_with_reads();
            check_blocked(rig, &[30, 31], false, || held.iter().for_each(Held::release));
            rig.settle();
        }
    });
}

#[test]
fn pending_for_a_handle() {
    check(Setup { handles: 6, ..Setup::default() }, |rig| {
        let held: Vec<_> = (0..4).map(|block| rig.hold(block)).collect();
        let others: Vec<_> = (0..4)
            .map(|block| rig.spawn("other", move |rig| rig.read_ok(&mut rig.backend(), block)))
            .collect();
        held.iter().for_each(|held| _ = held.wait());
        check_blocked(rig, &[9, 11], false, || held.iter().for_each(Held::release));
        others.into_iter().for_each(Task::join);
    });
}

/// Two streams of one session wait to be admitted; one is dropped, the other one is still woken.
#[test]
fn a_stream_that_is_dropped_does_not_take_the_others_turn() {
    check(Setup { buffers: 16, ..Setup::default() }, |rig| {
        let mut others: Vec<_> = (0..4).map(|_| rig.backend()).collect();
        let pins: Vec<_> =
            others.iter_mut().map(|it| it.read(&rig.relation(0), 1).expect("reads")).collect();
        let (alarm, waker) = Alarm::new();
        let mut context = Context::from_waker(&waker);
        let mut backend = rig.task_backend();
        let mut first = rig.stream(&backend, &[3], StreamOptions::default());
        let mut second = rig.stream(&backend, &[4], StreamOptions::default());
        assert_eq!(poll(rig, &mut first, &mut backend, &mut context), None);
        assert_eq!(poll(rig, &mut second, &mut backend, &mut context), None);
        drop(first);
        let rung = alarm.rung();
        drop(pins);
        rig.wait_until("a wake-up", || alarm.rung() > rung);
        loop {
            let rung = alarm.rung();
            match poll(rig, &mut second, &mut backend, &mut context) {
                Some(block) => break assert_eq!(block, 4),
                None => rig.wait_until("another wake-up", || alarm.rung() > rung),
            }
        }
    });
}

/// A stream that waits in a queue outlives its backend, and another session gets the number; when the
/// stream ends, that session's turn is not lost.
#[test]
fn a_stream_that_outlives_its_backend_does_not_take_the_next_ones_turn() {
    check_simulated(Setup { buffers: 16, ..Setup::default() }, |rig| {
        let mut others: Vec<_> = (0..4).map(|_| rig.backend()).collect();
        let pins: Vec<_> =
            others.iter_mut().map(|it| it.read(&rig.relation(0), 1).expect("reads")).collect();
        let (_, waker) = Alarm::new();
        let mut context = Context::from_waker(&waker);
        let mut backend = rig.task_backend();
        let id = backend.session_id();
        let mut stream = rig.stream(&backend, &[3], StreamOptions::default());
        assert_eq!(poll(rig, &mut stream, &mut backend, &mut context), None);
        drop(backend);
        let next = rig.spawn("next", move |rig| {
            let mut backend = rig.backend();
            assert_eq!(backend.session_id(), id);
            rig.read_ok(&mut backend, 4);
        });
        rig.let_others_go();
        drop(stream);
        rig.let_others_go();
        drop(pins);
        next.join();
    });
}

/// The same for who waits for any buffer.
#[test]
fn a_stream_that_outlives_its_backend_does_not_take_the_next_ones_buffer() {
    check_simulated(Setup { buffers: 16, blocks: 32, ..Setup::default() }, |rig| {
        if !rig.is_asynchronous() {
            return;
        }
        let held = rig.fill_with_reads();
        let (_, waker) = Alarm::new();
        let mut context = Context::from_waker(&waker);
        let mut backend = rig.task_backend();
        let id = backend.session_id();
        let mut stream = rig.stream(&backend, &[20], StreamOptions::default());
        assert_eq!(poll(rig, &mut stream, &mut backend, &mut context), None);
        drop(backend);
        let next = rig.spawn("next", move |rig| {
            let mut backend = rig.backend();
            assert_eq!(backend.session_id(), id);
            rig.read_ok(&mut backend, 21);
        });
        rig.let_others_go();
        drop(stream);
        rig.let_others_go();
        held.iter().for_each(Held::release);
        next.join();
        rig.settle();
    });
}
