//! Checks that sessions make progress in a tiny pool, with sixteen buffers for thirty-two sessions.
//! Streams of every kind must be able to read all their blocks, single reads must not fail while a
//! stream is open, and every session must get the pins it was guaranteed.

use std::future::poll_fn;
use std::task::{Context, Poll, Waker};
use trunkline_aio::facade::Arc;
use trunkline_engine::pool::{Backend, PINS_GUARANTEED, Strategy};
use trunkline_engine::read_stream::{BlockList, ReadStream, StreamOptions};
use trunkline_format::BlockNo;
use trunkline_sim::matrix::cluster::{check_real, check_simulated};
use trunkline_sim::matrix::{Cluster, Needs};

const BLOCKS: u32 = 24;
const SESSIONS: u32 = 32;
/// How many pins a session asks for, by its number.
const GUARANTEES: [u32; 5] = [PINS_GUARANTEED, 7, PINS_GUARANTEED, 12, 5];
const STRATEGIES: [Strategy; 3] = [Strategy::Normal, Strategy::BulkRead, Strategy::Vacuum];

/// How a stream is consumed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Ordered,
    Unordered,
    Polled,
}

const KINDS: [Kind; 3] = [Kind::Ordered, Kind::Unordered, Kind::Polled];

/// Returns the next block. Its page stays pinned until the next call.
fn next(
    cluster: &Cluster,
    kind: Kind,
    stream: &mut ReadStream<BlockList>,
    backend: &mut Backend,
) -> Option<BlockNo> {
    let found = match kind {
        Kind::Ordered | Kind::Unordered => {
            stream.next(backend).map(|it| it.map(|it| (it.block, it.pin.buffer())))
        }
        Kind::Polled => cluster.block_on(poll_fn(|context| {
            let polled = stream.poll_next(context, backend);
            polled.map(|it| it.map(|it| it.map(|it| (it.block, it.pin.buffer()))))
        })),
    };
    found.unwrap_or_else(|error| panic!("{kind:?}: {error}")).map(|(block, _)| block)
}

/// Reads a table through a stream. After every fifth page, the session also pins as many other
/// pages as its guarantee allows, and none of these reads may fail.
fn scan(cluster: &Arc<Cluster>, kind: Kind, options: StreamOptions, number: u32) {
    let mut backend =
        if kind == Kind::Polled { cluster.async_backend() } else { cluster.backend() };
    let guaranteed = GUARANTEES[number as usize % 5];
    backend.guarantee_pins(guaranteed).expect("the pool has as many buffers");
    let list: Vec<BlockNo> = (0..BLOCKS)
        .map(|at| match number % 3 {
            0 => at,
            1 => BLOCKS - 1 - at,
            _ => at * 7 % BLOCKS,
        })
        .collect();
    let mut stream = cluster.stream(&backend, &list, options);
    let mut seen = Vec::new();
    while let Some(block) = next(cluster, kind, &mut stream, &mut backend) {
        if seen.len().is_multiple_of(5) {
            let others: Vec<_> = (1..guaranteed)
                .map(|step| {
                    let wanted = (block + step * 5) % BLOCKS;
                    backend.read(&cluster.relation(0), wanted).unwrap_or_else(|error| {
                        panic!("{kind:?}, {options:?}, page {step} beside the stream: {error}")
                    })
                })
                .collect();
            for pin in &others {
                let page = backend.read_lock(pin.page()).expect("locks");
                cluster.check_page(&page, pin.page().block());
            }
        }
        seen.push(block);
    }
    if options.unordered {
        seen.sort_unstable();
        assert_eq!(seen, (0..BLOCKS).collect::<Vec<_>>());
    } else {
        assert_eq!(seen, list);
    }
    drop(stream);
    assert_eq!(backend.pins(), 0);
}

/// Stream options that vary with the session's number.
fn options(kind: Kind, strategy: Strategy, number: u32) -> StreamOptions {
    let (concurrency, combine) = [(16, 16), (0, 16), (4, 3), (1, 1)][number as usize % 4];
    StreamOptions {
        concurrency,
        combine,
        strategy,
        unordered: kind == Kind::Unordered || (kind == Kind::Polled && number % 2 == 1),
        full: number.is_multiple_of(3),
        ..StreamOptions::default()
    }
}

/// Runs a number of scans concurrently. Afterwards no pin permit may be leaked.
fn run_all(cluster: &Arc<Cluster>, sessions: u32, kind_of: impl Fn(u32) -> (Kind, Strategy)) {
    let scans: Vec<_> = (0..sessions)
        .map(|number| {
            let (kind, strategy) = kind_of(number);
            let options = options(kind, strategy, number / 9);
            cluster.spawn("scan", move |cluster| scan(cluster, kind, options, number))
        })
        .collect();
    scans.into_iter().for_each(trunkline_sim::matrix::TestThread::join);
    assert_eq!(cluster.pool.permits(), 0);
}

#[test]
fn every_kind_of_stream_alone_on_real_files() {
    check_real(Needs { buffers: 16, blocks: BLOCKS, ..Needs::default() }, |cluster| {
        for kind in KINDS {
            for strategy in STRATEGIES {
                run_all(cluster, SESSIONS, |_| (kind, strategy));
            }
        }
    });
}

#[test]
fn all_kinds_of_streams_together_on_real_files() {
    check_real(
        Needs { buffers: 16, blocks: BLOCKS, direct: true, ..Needs::default() },
        |cluster| {
            for _ in 0..4 {
                run_all(cluster, SESSIONS, |number| {
                    (KINDS[number as usize % 3], STRATEGIES[number as usize / 3 % 3])
                });
            }
        },
    );
}

#[test]
fn all_kinds_of_streams_together_under_seeds() {
    let needs = Needs { buffers: 16, blocks: BLOCKS, seeds: 1, ..Needs::default() };
    check_simulated(needs, |cluster| {
        run_all(cluster, SESSIONS, |number| {
            (KINDS[number as usize % 3], STRATEGIES[number as usize / 3 % 3])
        });
    });
}

/// Here we run fewer sessions but more seeds. There are still more sessions than the pool can admit
/// at a time.
#[test]
fn every_kind_of_stream_alone_under_seeds() {
    let needs = Needs { buffers: 16, blocks: BLOCKS, seeds: 2, ..Needs::default() };
    check_simulated(needs, |cluster| {
        for kind in KINDS {
            for strategy in STRATEGIES {
                run_all(cluster, 6, |_| (kind, strategy));
            }
        }
    });
}

/// A session has a stream that is reading ahead, and all or most of the remaining permits are held
/// by other sessions. The session must still be able to pin as many pages as it was guaranteed. To
/// allow this, the stream must release some of its read-ahead.
#[test]
fn guaranteed_pins_take_precedence_over_read_ahead() {
    let needs = Needs { buffers: 16, blocks: 64, seeds: 4, ..Needs::default() };
    let case: fn(&Arc<Cluster>) = |cluster| {
        let list = [0, 5, 9, 20, 9, 30, 31, 9, 40, 50, 9, 60];
        for guaranteed in [PINS_GUARANTEED, 7, 16] {
            let (relation, sessions) = (cluster.relation(0), (16 - guaranteed) / PINS_GUARANTEED);
            let mut others: Vec<_> = (0..sessions).map(|_| cluster.backend()).collect();
            let pins: Vec<_> =
                others.iter_mut().map(|other| other.read(&relation, 9).expect("reads")).collect();
            for unordered in [false, true] {
                for (concurrency, combine, full) in [(16, 16, true), (16, 1, true), (16, 16, false)]
                {
                    let mut backend = cluster.backend();
                    backend.guarantee_pins(guaranteed).expect("the pool has as many buffers");
                    let options = StreamOptions {
                        unordered,
                        concurrency,
                        combine,
                        full,
                        ..StreamOptions::default()
                    };
                    let mut stream = cluster.stream(&backend, &list, options);
                    let mut pages = 0;
                    while let Some(found) = stream.next(&mut backend).expect("reads") {
                        assert!(found.pin.try_read().is_some());
                        pages += 1;
                        let others: Vec<_> = (1..guaranteed)
                            .map(|step| backend.read(&relation, 10 + step).expect("guaranteed"))
                            .collect();
                        assert!(backend.pins() >= guaranteed);
                        drop(others);
                    }
                    assert_eq!(pages, list.len());
                }
            }
            drop(pins);
        }
    };
    check_simulated(needs, case);
    check_real(needs, case);
}

/// A session that wants more pins than it was guaranteed gets an error instead of waiting. If
/// sessions could wait while they hold pins, two of them might wait for each other.
#[test]
fn a_pin_beyond_the_guarantee_is_an_error_and_not_a_wait() {
    let needs = Needs { buffers: 16, ..Needs::default() };
    check_simulated(needs, |cluster| {
        let relation = cluster.relation(0);
        let mut backends: Vec<_> = (0..4).map(|_| cluster.backend()).collect();
        let mut pins = Vec::new();
        for backend in &mut backends {
            for block in 0..PINS_GUARANTEED {
                pins.push(backend.read(&relation, block).expect("guaranteed"));
            }
        }
        for backend in &mut backends {
            let error = backend.read(&relation, 9).map(drop).expect_err("a fifth");
            assert!(error.to_string().contains("holds 4 pins"), "{error}");
            let mut stream = cluster.stream(backend, &[9], StreamOptions::default());
            assert!(stream.next(backend).is_err());
            let mut context = Context::from_waker(Waker::noop());
            assert!(matches!(stream.poll_next(&mut context, backend), Poll::Ready(Err(_))));
        }
        // If there's no other session, a session may pin all buffers.
        drop(pins);
        drop(backends);
        let mut backend = cluster.backend();
        let pins: Vec<_> = (0..16)
            .map(|block| backend.read(&relation, block).expect("no other session"))
            .collect();
        assert_eq!((backend.pins(), pins.len()), (16, 16));
    });
}

/// A session that needs ten pins at a time waits until that many buffers can be guaranteed to it.
/// It holds no pins until then, and all ten afterwards.
#[test]
fn a_session_is_admitted_for_as_many_pins_as_it_needs() {
    let needs = Needs { buffers: 16, ..Needs::default() };
    let case: fn(&Arc<Cluster>) = |cluster| {
        let relation = cluster.relation(0);
        let mut others: Vec<_> = (0..3).map(|_| cluster.backend()).collect();
        let mut pins: Vec<_> =
            others.iter_mut().map(|other| other.read(&relation, 9).expect("reads")).collect();
        let session = cluster.spawn("needs ten pins", |cluster| {
            let mut backend = cluster.backend();
            backend.guarantee_pins(10).expect("the pool has 16 buffers");
            let relation = cluster.relation(0);
            let pins: Vec<_> =
                (0..10).map(|block| backend.read(&relation, block).expect("guaranteed")).collect();
            assert_eq!(backend.pins(), 10);
            let error = backend.guarantee_pins(11).expect_err("it would have to wait");
            assert!(error.to_string().contains("holds 10 pins"), "{error}");
            drop(pins);
            backend.guarantee_pins(11).expect("no pins are held");
        });
        // The others have four permits each. When two of them have released their page, twelve
        // buffers are free.
        for _ in 0..2 {
            cluster.let_others_run();
            assert!(!session.is_done());
            drop(pins.pop());
        }
        session.join();
        drop(pins);
    };
    check_simulated(needs, case);
    check_real(needs, case);
}

/// A session that can never get as many pins as it needs must not wait for them.
#[test]
fn more_pins_than_the_pool_has_are_refused_at_once() {
    check_simulated(Needs { buffers: 16, seeds: 1, ..Needs::default() }, |cluster| {
        let mut backend = cluster.backend();
        let error = backend.guarantee_pins(17).expect_err("the pool has 16 buffers").to_string();
        assert!(error.contains("17 pinned pages") && error.contains("16 buffers"), "{error}");
        cluster.read_ok(&mut backend, 0);
        assert_eq!(cluster.pool.permits(), PINS_GUARANTEED);
        backend.guarantee_pins(16).expect("all buffers");
        cluster.read_ok(&mut backend, 0);
        assert_eq!(cluster.pool.permits(), 16);
        // A pin that outlives its session keeps only as many permits as by default, and a later
        // session with the same number starts with the default.
        let pin = backend.read(&cluster.relation(0), 1).expect("reads");
        assert_eq!(cluster.pool.permits(), 16);
        drop(backend);
        assert_eq!(cluster.pool.permits(), PINS_GUARANTEED);
        drop(pin);
        let mut backend = cluster.backend();
        cluster.read_ok(&mut backend, 0);
        assert_eq!(cluster.pool.permits(), PINS_GUARANTEED);
    });
}
