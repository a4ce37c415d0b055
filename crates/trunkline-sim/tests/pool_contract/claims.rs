//! Who may read a page, when several want it: PG 9, 10, 13, 16 and 17's foreign completion.
//!
//! PostgreSQL starts and ends buffer I/O by hand; here a read is held back at the storage instead.

use std::task::{Context, Poll, Waker};
use trunkline_engine::pool::ReadError;
use trunkline_engine::read_stream::StreamOptions;
use trunkline_sim::matrix::Needs;
use trunkline_sim::matrix::cluster::check;

const EIO: i32 = 5;

/// The first claim gets the page, the second one must wait; when the first fails, who waits gets the
/// right and reads the page itself.
#[test]
fn pg_9_a_failed_read_passes_the_right_on() {
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
        // Not even a session that does not want to wait can have it.
        let mut third = cluster.backend();
        let mut stream = cluster.stream(&third, &[3], StreamOptions::default());
        let mut context = Context::from_waker(Waker::noop());
        assert!(stream.poll_next(&mut context, &mut third).is_pending());
        let second = cluster.spawn("second", |cluster| {
            let mut backend = cluster.backend();
            cluster.read_ok(&mut backend, 3);
            backend.session_id()
        });
        // The first, its I/O, the stream, the second.
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
        assert_eq!(cluster.reads(), [(3, 1), (3, 1)], "one failed, one for everybody else");
        cluster.probe.keep_results();
    });
}

/// When the first succeeds, nobody else reads.
#[test]
fn pg_9_a_read_that_succeeds_is_everybodys() {
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

/// One session: its second stream joins what its first one reads, or reads it again if that failed.
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

/// One starts to read a bad page and looks no more; another one's error is its own.
#[test]
fn pg_13_a_bad_page_is_each_ones_own_error() {
    check(Needs::default(), |cluster| {
        cluster.damage(2, trunkline_sim::matrix::Damage::Header);
        cluster.probe.record();
        let mut first = cluster.backend();
        let started = cluster.start_read(&mut first, &[2]);
        let mut second = cluster.backend();
        let error = second.read(&cluster.relation(0), 2).expect_err("it is bad");
        assert!(matches!(error, ReadError::Corrupt { block: 2, .. }), "{error}");
        assert_eq!(second.pins(), 0);
        assert_eq!(cluster.reads(), [(2, 1), (2, 1)], "the second has judged for itself");
        drop(started);
        assert_eq!(first.pins(), 0);
        assert!(!cluster.pool.contains(&cluster.relation(0), 2));
        assert_eq!(first.take_warnings().0.len() + second.take_warnings().0.len(), 0);
    });
}

/// One starts a read and ends, session, thread and all; another one reads the block fine (PG 11 and
/// 12, through the pool).
#[test]
fn pg_12_who_started_a_read_may_go() {
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
            // The reader, and the I/O that nobody owns.
            cluster.wait_pins(6, 2);
            held.release();
        } else {
            held.release();
            starter.join();
        }
        reader.join();
    });
}

/// Reads under way when the relation goes: no error, no hang, nothing of it stays.
#[test]
fn pg_16_a_relation_goes_while_it_is_read() {
    check(Needs::one_session(), |cluster| {
        for vanish in [false, true] {
            let mut backend = cluster.backend();
            let mut started = cluster.start_read(&mut backend, &[1, 2, 3, 9]);
            // Reads under way are pinned for the session too, until it lets go of them, as at the
            // end of a statement, or until the stream ends.
            started.let_go();
            let kept = (!vanish).then_some(started);
            backend.invalidate(&cluster.relation(0), 0).expect("not cancelled");
            assert_eq!(cluster.pool.rows().len(), 0);
            assert_eq!(cluster.storage.files().open(), 0, "the files are forgotten");
            assert_eq!(backend.pins(), 0);
            cluster.read_ok(&mut backend, 2);
            drop(kept);
        }
    });
}

/// The same while another session has a read under way that is held up: who drops waits for it.
#[test]
fn pg_16_dropping_waits_for_a_read_of_another_session() {
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
        assert!(cluster.pins(4) >= 2, "the reader's and its I/O's");
        held.release();
        dropper.join();
        reader.join();
        assert_eq!(cluster.pool.rows().len(), 0);
    });
}

/// Two sessions forget the same relation at once, while a third still has a page of it.
#[test]
fn two_that_forget_the_same_relation_do_not_wait_for_each_other() {
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

/// A poll that finds another's read does not take it over, and is not told of its end twice.
#[test]
fn a_poll_joins_and_is_ready_once() {
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
