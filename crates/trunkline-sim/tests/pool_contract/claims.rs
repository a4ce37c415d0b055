//! Several sessions need the same page, and one of them reads it: PG 9, 10, 13, 16, and the foreign
//! completion of 17.
//!
//! PostgreSQL's tests start and end buffer I/O by hand. Here the result of a read is held back
//! instead.

use std::task::{Context, Poll, Waker};
use trunkline_engine::pool::ReadError;
use trunkline_engine::read_stream::StreamOptions;
use trunkline_sim::matrix::Needs;
use trunkline_sim::matrix::cluster::check;

const EIO: i32 = 5;

/// The first session claims the page, and the second must wait. When the first read fails, a
/// waiting session claims the page and reads it itself.
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
        // A session that polls does not get the page either.
        let mut third = cluster.backend();
        let mut stream = cluster.stream(&third, &[3], StreamOptions::default());
        let mut context = Context::from_waker(Waker::noop());
        assert!(stream.poll_next(&mut context, &mut third).is_pending());
        let second = cluster.spawn("second", |cluster| {
            let mut backend = cluster.backend();
            cluster.read_ok(&mut backend, 3);
            backend.session_id()
        });
        // Pins of the first session, its I/O, the stream, and the second session.
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

/// When the first read succeeds, no other session reads.
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

/// The second stream of a session joins a read of its first stream. If that read fails, the second
/// stream reads again.
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

/// One session starts to read a damaged page and does not wait. The other session receives its own
/// error.
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

/// The issuer starts a read and ends, with its session and thread. Another session reads the block
/// (PG 11 and 12, through the pool).
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
            // Pins of the reader and of the abandoned I/O.
            cluster.wait_pins(6, 2);
            held.release();
        } else {
            held.release();
            starter.join();
        }
        reader.join();
    });
}

/// Reads are in flight when the relation is invalidated. There is no error, no hang, and no page of
/// it is left.
#[test]
fn pg_16_a_relation_is_invalidated_while_it_is_read() {
    check(Needs::one_session(), |cluster| {
        for vanish in [false, true] {
            let mut backend = cluster.backend();
            let mut started = cluster.start_read(&mut backend, &[1, 2, 3, 9]);
            // The session also has pins on reads in flight. It drops them here, as at the end of a
            // statement.
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

/// The read in flight belongs to another session and is held back: invalidation waits for it.
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

/// Two sessions invalidate the same relation, while a third session has a page pinned.
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

/// A poll that finds another session's read joins it. It returns the page once.
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
