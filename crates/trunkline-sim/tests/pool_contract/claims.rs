//! Several sessions need a page that one of them is already reading. These are cases 9, 10, 13 and
//! 16 of test_aio, and the part of case 17 in which another session completes the read.
//!
//! PostgreSQL's tests call `StartBufferIO` and `TerminateBufferIO` by hand. We hold back the result
//! of a real read instead.

use std::task::{Context, Poll, Waker};
use trunkline_engine::pool::ReadError;
use trunkline_engine::read_stream::StreamOptions;
use trunkline_sim::matrix::Needs;
use trunkline_sim::matrix::cluster::check;

/// `EIO`, as a raw result reports it.
const EIO: i32 = 5;

/// The first session has claimed the page, so the second session has to wait. If the read fails,
/// the first session gets the error. One of the waiting sessions must then claim the page and read
/// it again.
#[test]
fn pg_9_a_failed_read_passes_the_claim_on() {
    check(Needs::default(), |cluster| {
        cluster.probe.record();
        let held = cluster.hold(3);
        let first = cluster.spawn("first", |cluster| {
            let mut backend = cluster.backend();
            let found = backend.read(&cluster.relation(0), 3).map(drop);
            assert_eq!(backend.pins(), 0);
            found.expect_err("its own I/O failed").to_string()
        });
        held.wait();
        // A session that polls must not get the page either.
        let mut third = cluster.backend();
        let mut stream = cluster.stream(&third, &[3], StreamOptions::default());
        let mut context = Context::from_waker(Waker::noop());
        assert!(stream.poll_next(&mut context, &mut third).is_pending());
        let second = cluster.spawn("second", |cluster| {
            let mut backend = cluster.backend();
            cluster.read_ok(&mut backend, 3);
            backend.session_id()
        });
        // One pin each of the first session, its I/O, the stream, and the second session.
        cluster.wait_pins(3, 4);
        assert_eq!(cluster.reads(), [(3, 1)]);
        let mut times = 0;
        cluster.probe.change_results(move |_, raw| {
            times += 1;
            if times == 1 { -EIO } else { raw }
        });
        held.release();
        let error = first.join();
        assert!(error.contains("block 3") && error.contains("16384"), "{error}");
        second.join();
        assert_eq!(cluster.drain(&mut third, &mut stream), [Ok(3)]);
        assert_eq!(
            cluster.reads(),
            [(3, 1), (3, 1)],
            "one read failed, and one served the other sessions"
        );
        cluster.probe.keep_results();
    });
}

/// If the read succeeds, no other session may read the page again.
#[test]
fn pg_9_a_read_that_succeeds_serves_every_waiter() {
    check(Needs::default(), |cluster| {
        cluster.probe.record();
        let held = cluster.hold(3);
        let first = cluster.spawn("first", |cluster| cluster.read_ok(&mut cluster.backend(), 3));
        held.wait();
        let others: Vec<_> = (0..3)
            .map(|_| cluster.spawn("other", |cluster| cluster.read_ok(&mut cluster.backend(), 3)))
            .collect();
        cluster.wait_pins(3, 5);
        held.release();
        first.join();
        others.into_iter().for_each(|other| other.join());
        assert_eq!(cluster.reads(), [(3, 1)]);
        let total = cluster.pool.total();
        assert_eq!((total.reads, total.hits, total.joins), (1, 3, 3));
        assert!(total.waits >= 3 && total.wait_nanos > 0, "{total:?}");
    });
}

/// A session has two streams, and the second one joins the first one's read. The session must not
/// deadlock by waiting for itself. If the read fails, the second stream must read the page again.
#[test]
fn pg_10_one_session_claims_twice() {
    check(Needs::one_session(), |cluster| {
        for fails in [false, true] {
            cluster.pool.evict_all();
            cluster.probe.record();
            let mut backend = cluster.backend();
            if fails {
                let mut times = 0;
                cluster.probe.change_results(move |_, raw| {
                    times += 1;
                    if times == 1 { -EIO } else { raw }
                });
            }
            let mut first = cluster.start_read(&mut backend, &[3]);
            let mut second = cluster.stream(&backend, &[3, 4], StreamOptions::default());
            assert_eq!(cluster.drain(&mut backend, &mut second), [Ok(3), Ok(4)]);
            assert!(cluster.pool.contains(&cluster.relation(0), 3));
            match first.next(&mut backend) {
                Ok(found) => assert!(!fails || found.is_none()),
                Err(error) => assert!(fails && error.block() == Some(3), "{error}"),
            }
            let wanted = if fails { 2 } else { 1 };
            assert_eq!(cluster.reads().iter().filter(|read| read.0 == 3).count(), wanted);
            cluster.probe.keep_results();
        }
    });
}

/// One session starts reading a damaged page but doesn't wait for the result. The other session
/// must then read the page itself and get an error for its own read, because no session ever
/// reports an error from another session's I/O.
#[test]
fn pg_13_each_session_receives_its_own_error_for_a_bad_page() {
    check(Needs::default(), |cluster| {
        cluster.damage(2, trunkline_sim::matrix::Damage::Header);
        cluster.probe.record();
        let mut first = cluster.backend();
        let started = cluster.start_read(&mut first, &[2]);
        let mut second = cluster.backend();
        let error = second.read(&cluster.relation(0), 2).expect_err("the page is damaged");
        assert!(matches!(error, ReadError::Corrupt { .. }) && error.block() == Some(2), "{error}");
        assert_eq!(second.pins(), 0);
        assert_eq!(
            cluster.reads(),
            [(2, 1), (2, 1)],
            "the second session has read the page itself"
        );
        drop(started);
        assert_eq!(first.pins(), 0);
        assert!(!cluster.pool.contains(&cluster.relation(0), 2));
        assert_eq!(first.take_warnings().0.len() + second.take_warnings().0.len(), 0);
    });
}

/// A session starts a read, and then the session ends and its thread exits. Another session must
/// still be able to get the block. (These are test_aio's cases 11 and 12, but run through the
/// pool.)
#[test]
fn pg_12_the_issuer_of_a_read_may_end() {
    check(Needs::default(), |cluster| {
        let held = cluster.hold(6);
        let starter = cluster.spawn("starter", |cluster| {
            let mut backend = cluster.backend();
            drop(cluster.start_read(&mut backend, &[5, 6, 7]));
        });
        held.wait();
        let reader = cluster.spawn("reader", |cluster| cluster.read_ok(&mut cluster.backend(), 6));
        if cluster.is_asynchronous() {
            starter.join();
            // The reader has one pin, and the abandoned I/O has the other.
            cluster.wait_pins(6, 2);
            held.release();
        } else {
            held.release();
            starter.join();
        }
        reader.join();
    });
}

/// A relation is invalidated while reads of its blocks are in flight. Invalidation must neither
/// fail nor hang, and no pages may be left in the pool afterwards.
#[test]
fn pg_16_a_relation_is_invalidated_while_it_is_read() {
    check(Needs::one_session(), |cluster| {
        for vanish in [false, true] {
            let mut backend = cluster.backend();
            let mut started = cluster.start_read(&mut backend, &[1, 2, 3, 9]);
            // Each of the session's reads in flight holds a pin for the session. We must release
            // these pins first, as happens at the end of a statement. Otherwise the session would
            // wait for itself.
            started.release_ahead();
            let kept = (!vanish).then_some(started);
            backend.invalidate(&cluster.relation(0), 0).expect("not cancelled");
            assert_eq!(cluster.pool.rows().len(), 0);
            assert_eq!(cluster.storage.files().open(), 0, "the files are closed");
            assert_eq!(backend.pins(), 0);
            cluster.read_ok(&mut backend, 2);
            drop(kept);
        }
    });
}

/// Invalidation must wait until another session's read in flight completes.
#[test]
fn pg_16_invalidation_waits_for_a_read_of_another_session() {
    check(Needs::default(), |cluster| {
        let held = cluster.hold(4);
        let reader = cluster.spawn("reader", |cluster| {
            cluster.backend().read(&cluster.relation(0), 4).map(drop).expect("reads");
        });
        held.wait();
        let dropper = cluster.spawn("dropper", |cluster| {
            cluster.backend().invalidate(&cluster.relation(0), 0).expect("not cancelled");
        });
        cluster.let_others_run();
        assert!(!dropper.is_done());
        assert!(cluster.pins(4) >= 2, "pins of the reader and of its I/O");
        held.release();
        dropper.join();
        reader.join();
        assert_eq!(cluster.pool.rows().len(), 0);
    });
}

/// Two sessions invalidate the same relation while a third session has one of its pages pinned. The
/// two must not wait for each other.
#[test]
fn two_invalidations_of_a_relation_do_not_wait_for_each_other() {
    check(Needs::default(), |cluster| {
        let mut reader = cluster.backend();
        let pin = reader.read(&cluster.relation(0), 4).expect("reads");
        let droppers: Vec<_> = (0..2)
            .map(|_| {
                cluster.spawn("dropper", |cluster| {
                    cluster.backend().invalidate(&cluster.relation(0), 0).expect("not cancelled");
                })
            })
            .collect();
        cluster.let_others_run();
        drop(pin);
        droppers.into_iter().for_each(|dropper| dropper.join());
        assert_eq!(cluster.pool.rows().len(), 0);
    });
}

/// Polling a block that another session is reading joins that read, and returns the page exactly
/// once.
#[test]
fn a_poll_joins_a_read_and_is_ready_once() {
    check(Needs::default(), |cluster| {
        let held = cluster.hold(3);
        let first = cluster.spawn("first", |cluster| cluster.read_ok(&mut cluster.backend(), 3));
        held.wait();
        let mut backend = cluster.async_backend();
        let mut stream = cluster.stream(&backend, &[3], StreamOptions::default());
        let mut context = Context::from_waker(Waker::noop());
        for _ in 0..3 {
            assert!(stream.poll_next(&mut context, &mut backend).is_pending());
        }
        assert_eq!(cluster.pins(3), 3);
        held.release();
        first.join();
        let polled = stream.poll_next(&mut context, &mut backend);
        assert!(matches!(polled, Poll::Ready(Ok(Some(_)))));
        let polled = stream.poll_next(&mut context, &mut backend);
        assert!(matches!(polled, Poll::Ready(Ok(None))));
    });
}
