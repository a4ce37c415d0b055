//! Sources that wait. A stream reads heap blocks, and its source finds them on the pages of another
//! stream, as an index scan finds them on leaf pages. Both look ahead in one session.
//!
//! Relation 1 is the index. We don't store entries in its pages, but compute them from the number of
//! the leaf, after checking the page.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::task::{Context, Poll, Waker, ready};
use trunkline_aio::MethodKind;
use trunkline_aio::facade::Arc;
use trunkline_engine::pool::{Backend, PINS_GUARANTEED, ReadError};
use trunkline_engine::read_stream::{
    BlockList, BlockSource, ReadStream, SourceWait, StreamOptions,
};
use trunkline_format::BlockNo;
use trunkline_sim::CountingWaker;
use trunkline_sim::matrix::cluster::{check, check_real, check_simulated};
use trunkline_sim::matrix::{Cluster, Needs, page};

/// The first leaf. Leaves and heap blocks have different numbers, so that we can tell their reads
/// apart.
const FIRST_LEAF: BlockNo = 100;
const LEAVES: u32 = 12;
const HEAP_BLOCKS: u32 = 64;

/// An error of the device, as a raw result reports it.
const EIO: i32 = 5;

/// The heap blocks to which the entries of a leaf point. Every fourth leaf is empty.
fn entries(leaf: BlockNo) -> impl Iterator<Item = BlockNo> {
    let count = [2, 7, 5, 0][leaf as usize % 4];
    (0..count).map(move |entry| (leaf * 13 + entry * 5) % HEAP_BLOCKS)
}

fn leaves() -> Vec<BlockNo> {
    (FIRST_LEAF..FIRST_LEAF + LEAVES).collect()
}

/// All heap blocks, in the order of the index, each with its leaf.
fn heap_blocks() -> Vec<(BlockNo, BlockNo)> {
    leaves().into_iter().flat_map(|leaf| entries(leaf).map(move |block| (block, leaf))).collect()
}

/// Finds heap blocks on leaf pages.
struct IndexSource {
    leaves: ReadStream<BlockList>,
    found: VecDeque<(BlockNo, BlockNo)>,
    ended: bool,
    /// How often the stream has let this source fetch.
    fetches: u32,
}

impl BlockSource for IndexSource {
    type Data = BlockNo;

    fn next_block(&mut self) -> Poll<Option<(BlockNo, BlockNo)>> {
        match self.found.pop_front() {
            None if !self.ended => Poll::Pending,
            found => Poll::Ready(found),
        }
    }

    fn fetch(
        &mut self,
        backend: &mut Backend,
        wait: &mut SourceWait<'_, '_>,
    ) -> Poll<Result<(), ReadError>> {
        self.fetches += 1;
        assert!(self.found.is_empty() && !self.ended, "fetched for nothing");
        match ready!(self.leaves.next_from_source(backend, wait))? {
            None => self.ended = true,
            Some(found) => {
                let leaf = found.block;
                assert!(*found.pin.try_read().expect("not locked") == page(1, leaf, 0, 0));
                self.found.extend(entries(leaf).map(|block| (block, leaf)));
            }
        }
        Poll::Ready(Ok(()))
    }

    fn release_ahead(&mut self) {
        self.leaves.release_ahead();
    }
}

/// Options of the heap stream and of the leaf stream.
type Options = [StreamOptions; 2];

const SLOW_START: Options = [options(false, 16), options(false, 16)];

const fn options(full: bool, combine: u32) -> StreamOptions {
    use trunkline_aio::Class;
    use trunkline_engine::pool::Strategy;
    StreamOptions {
        concurrency: 16,
        combine,
        unordered: false,
        full,
        sequential: false,
        strategy: Strategy::Normal,
        class: Class::LookAhead,
    }
}

fn index_scan(cluster: &Cluster, backend: &Backend, options: Options) -> ReadStream<IndexSource> {
    let index = cluster.relation(1);
    let leaves = ReadStream::new(backend, &index, BlockList::new(leaves()), options[1]);
    let source = IndexSource { leaves, found: VecDeque::new(), ended: false, fetches: 0 };
    ReadStream::new(backend, &cluster.relation(0), source, options[0])
}

fn needs() -> Needs {
    Needs { buffers: 16, blocks: HEAP_BLOCKS, seeds: 6, ..Needs::default() }
}

/// The block of a page and its leaf, after checking the page.
fn checked(
    cluster: &Cluster,
    found: &trunkline_engine::read_stream::StreamPage<'_, BlockNo>,
) -> (BlockNo, BlockNo) {
    cluster.check_page(&found.pin.try_read().expect("not locked"), found.block);
    (found.block, *found.data)
}

fn next(
    cluster: &Cluster,
    stream: &mut ReadStream<IndexSource>,
    backend: &mut Backend,
) -> Option<(BlockNo, BlockNo)> {
    stream.next(backend).expect("reads").map(|found| checked(cluster, &found))
}

/// Reads to the end and returns what is left.
fn rest(
    cluster: &Cluster,
    stream: &mut ReadStream<IndexSource>,
    backend: &mut Backend,
) -> Vec<(BlockNo, BlockNo)> {
    std::iter::from_fn(|| next(cluster, stream, backend)).collect()
}

/// Polls a stream to its end, but only after wake-ups. If one is missing, this fails after a while.
/// Also checks that the source isn't asked over and over again.
fn poll_rest(
    cluster: &Cluster,
    stream: &mut ReadStream<IndexSource>,
    backend: &mut Backend,
) -> Vec<(BlockNo, BlockNo)> {
    let (wakes, waker) = CountingWaker::new();
    let mut context = Context::from_waker(&waker);
    let (mut seen, mut polls, before_all) = (Vec::new(), 0, stream.source().fetches);
    loop {
        let before = wakes.count();
        polls += 1;
        match stream.poll_next(&mut context, backend) {
            Poll::Ready(Ok(None)) => break,
            Poll::Ready(found) => {
                seen.push(checked(cluster, &found.expect("reads").expect("a page")));
            }
            Poll::Pending => cluster.wait_until("a wake-up", || wakes.count() > before),
        }
    }
    // A poll fails at most once to try, and once to wait. Each leaf and the end succeed once.
    let fetches = stream.source().fetches - before_all;
    assert!(fetches <= 2 * polls + LEAVES + 1, "{fetches} fetches in {polls} polls");
    seen
}

/// The order of the index is kept, whatever the streams' options, and the two streams have counted
/// everything that the pool has counted.
#[test]
fn heap_blocks_come_in_the_order_of_the_index() {
    check(needs(), |cluster| {
        cluster.create(1, FIRST_LEAF + LEAVES);
        let full = [options(true, 4), options(true, 16)];
        let one_at_a_time = StreamOptions { concurrency: 0, ..options(false, 16) };
        let kinds = [
            SLOW_START,
            full,
            [options(true, 1), options(false, 1)],
            [one_at_a_time, options(true, 16)],
            [options(true, 16), one_at_a_time],
        ];
        for options in kinds {
            for polls in [false, true] {
                cluster.pool.evict_all();
                let mut backend = if polls { cluster.async_backend() } else { cluster.backend() };
                let before = cluster.pool.total();
                let mut stream = index_scan(cluster, &backend, options);
                let seen = match polls {
                    false => rest(cluster, &mut stream, &mut backend),
                    true => poll_rest(cluster, &mut stream, &mut backend),
                };
                assert_eq!(seen, heap_blocks());
                let mut usage = stream.buffer_usage();
                usage.add(&stream.source().leaves.buffer_usage());
                drop(stream);
                assert_eq!(backend.pins(), 0);
                assert_eq!(cluster.pool.total().since(&before), usage);
            }
        }
    });
}

/// The consumer gets the pages that are there, although the next leaf is still being read. The next
/// leaf is read, and then the heap blocks it refers to, although a page that the consumer needs
/// first is still being read.
#[test]
fn reads_of_leaves_and_heap_are_in_flight_together() {
    check(Needs { buffers: 64, ..needs().asynchronous() }, |cluster| {
        cluster.create(1, FIRST_LEAF + LEAVES);
        let all = heap_blocks();
        let second_leaf = FIRST_LEAF + 1;
        let of_first = entries(FIRST_LEAF).count();
        for holds_leaf in [true, false] {
            cluster.pool.evict_all();
            cluster.probe.record();
            let held = cluster.hold(if holds_leaf { second_leaf } else { all[of_first - 1].0 });
            let mut backend = cluster.async_backend();
            // Every leaf is a read of its own, and is submitted after the heap reads of the leaf
            // before. At most four reads are in flight, so the simulated device has room for all
            // of them, and the session doesn't have to execute any itself.
            let few =
                |concurrency, combine| StreamOptions { concurrency, ..options(true, combine) };
            let mut stream = index_scan(cluster, &backend, [few(3, 4), few(1, 1)]);
            let mut context = Context::from_waker(Waker::noop());
            let mut seen = Vec::new();
            // The thread that holds the result back may be the only one that completes I/O.
            let wanted = match cluster.environment.method {
                MethodKind::Worker if holds_leaf => of_first,
                MethodKind::Worker => of_first - 1,
                _ => 0,
            };
            cluster.wait_until("the reads are submitted", || {
                while let Poll::Ready(found) = stream.poll_next(&mut context, &mut backend) {
                    let found = found.expect("reads").expect("a page");
                    seen.push(checked(cluster, &found));
                }
                let submitted = cluster.reads();
                let mut wants_reads = vec![all[of_first - 1].0, second_leaf];
                if wanted > 0 && !holds_leaf {
                    wants_reads.push(all[of_first].0);
                }
                let is_read = |block| submitted.iter().any(|read| read.0 == block);
                wants_reads.into_iter().all(is_read) && seen.len() >= wanted
            });
            held.wait();
            assert!(seen.len() <= if holds_leaf { of_first } else { of_first - 1 });
            held.release();
            seen.extend(poll_rest(cluster, &mut stream, &mut backend));
            assert_eq!(seen, all);
        }
    });
}

/// A leaf can't be read. The error comes after the pages of all earlier leaves, and the scan can go
/// on after it.
#[test]
fn an_error_in_a_leaf_comes_after_the_pages_before_it() {
    check(needs(), |cluster| {
        cluster.create(1, FIRST_LEAF + LEAVES);
        let bad = FIRST_LEAF + 5;
        for options in [SLOW_START, [options(true, 4), options(true, 4)]] {
            cluster.pool.evict_all();
            cluster.fail(bad, EIO);
            let mut backend = cluster.backend();
            let mut stream = index_scan(cluster, &backend, options);
            let mut seen = Vec::new();
            let error = loop {
                match stream.next(&mut backend) {
                    Ok(found) => seen.push(checked(cluster, &found.expect("not the end"))),
                    Err(error) => break error,
                }
            };
            assert_eq!(error.block(), Some(bad), "{error}");
            let all = heap_blocks();
            let before = all.iter().take_while(|(_, leaf)| *leaf < bad).count();
            assert_eq!(seen, all[..before]);
            let after = all.iter().position(|(_, leaf)| *leaf > bad).expect("more leaves");
            assert_eq!(rest(cluster, &mut stream, &mut backend), all[after..]);
            cluster.probe.keep_results();
        }
    });
}

/// The consumer is cancelled while its source waits for a leaf. It can release everything, and go on
/// later without losing a block.
#[test]
fn a_scan_is_cancelled_while_its_source_waits() {
    check(needs().asynchronous(), |cluster| {
        cluster.create(1, FIRST_LEAF + LEAVES);
        let held = cluster.hold(FIRST_LEAF + 2);
        let mut backend = cluster.async_backend();
        let canceller = backend.session().canceller();
        let task = cluster.spawn("scan", |cluster| {
            // Every leaf is a read of its own.
            let mut stream = index_scan(cluster, &backend, [options(false, 16), options(false, 1)]);
            let mut seen = Vec::new();
            loop {
                match stream.next(&mut backend) {
                    Ok(found) => seen.push(checked(cluster, &found.expect("not the end"))),
                    Err(error) => {
                        assert!(matches!(error, ReadError::Cancelled), "{error}");
                        stream.release_ahead();
                        assert_eq!(backend.pins(), 0);
                        return (backend, stream, seen);
                    }
                }
            }
        });
        held.wait();
        cluster.let_others_run();
        assert!(!task.is_done(), "the scan does not wait");
        canceller.cancel();
        let (mut backend, mut stream, mut seen) = task.join();
        let all = heap_blocks();
        let before = all.iter().take_while(|(_, leaf)| *leaf < FIRST_LEAF + 2).count();
        // The thread that holds the result back may be the only one that completes I/O.
        if cluster.environment.method == MethodKind::Worker && cluster.is_simulated() {
            assert_eq!(seen.len(), before);
        }
        assert!(seen.len() <= before);
        held.release();
        backend.session().clear_cancel();
        seen.extend(rest(cluster, &mut stream, &mut backend));
        assert_eq!(seen, all);
    });
}

/// A consumer stops after any number of pages. Dropping the stream, or only letting go of its pages,
/// releases the pages of both streams.
#[test]
fn a_scan_that_stops_leaves_nothing_pinned() {
    check(needs(), |cluster| {
        cluster.create(1, FIRST_LEAF + LEAVES);
        let all = heap_blocks();
        for stop in [0, 1, 6, 7, 8, 30] {
            cluster.pool.evict_all();
            let mut backend = cluster.async_backend();
            let mut stream =
                index_scan(cluster, &backend, [options(stop % 2 == 0, 4), options(true, 1)]);
            for wanted in &all[..stop] {
                assert_eq!(next(cluster, &mut stream, &mut backend), Some(*wanted));
            }
            let _ = stream.poll_next(&mut Context::from_waker(Waker::noop()), &mut backend);
            stream.release_ahead();
            assert_eq!((backend.pins(), cluster.pool.permits()), (0, 0));
            let left = rest(cluster, &mut stream, &mut backend);
            assert!(all.ends_with(&left) && left.len() + 1 >= all.len() - stop);
            let mut stream = index_scan(cluster, &backend, SLOW_START);
            for wanted in &all[..stop] {
                assert_eq!(next(cluster, &mut stream, &mut backend), Some(*wanted));
            }
            drop(stream);
            assert_eq!((backend.pins(), cluster.pool.permits()), (0, 0));
        }
    });
}

/// More sessions scan the index than the pool can admit. Each of them also pins as many other pages
/// as it was guaranteed, besides its current heap page and leaf.
fn scan_beside_others(cluster: &Arc<Cluster>, number: u32) {
    let polls = number % 2 == 1;
    let mut backend = if polls { cluster.async_backend() } else { cluster.backend() };
    let guaranteed = PINS_GUARANTEED + number % 3;
    backend.guarantee_pins(guaranteed).expect("the pool has as many buffers");
    let both = [options(number % 4 < 2, 4), options(number % 8 < 4, 4)];
    let mut stream = index_scan(cluster, &backend, both);
    let mut seen = Vec::new();
    loop {
        let found = match polls {
            false => next(cluster, &mut stream, &mut backend),
            true => cluster.block_on(poll_fn(|context| {
                stream
                    .poll_next(context, &mut backend)
                    .map(|found| found.expect("reads").map(|found| checked(cluster, &found)))
            })),
        };
        let Some(found) = found else { break };
        if seen.len() % 9 == 0 {
            let relation = cluster.relation(0);
            let others: Vec<_> = (2..guaranteed)
                .map(|step| backend.read(&relation, step * 3).expect("guaranteed"))
                .collect();
            drop(others);
        }
        seen.push(found);
    }
    assert_eq!(seen, heap_blocks());
    drop(stream);
    assert_eq!(backend.pins(), 0);
}

#[test]
fn many_sessions_scan_an_index_through_a_tiny_pool() {
    let case: fn(&Arc<Cluster>) = |cluster| {
        cluster.create(1, FIRST_LEAF + LEAVES);
        let sessions = if cluster.is_simulated() { 6 } else { 16 };
        let scans: Vec<_> = (0..sessions)
            .map(|number| cluster.spawn("scan", move |cluster| scan_beside_others(cluster, number)))
            .collect();
        scans.into_iter().for_each(trunkline_sim::matrix::TestThread::join);
        assert_eq!(cluster.pool.permits(), 0);
    };
    check_real(needs(), case);
    check_simulated(needs(), case);
}
