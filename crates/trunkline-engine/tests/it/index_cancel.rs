//! Index scans of cached pages never wait, but they still notice a cancel and give other tasks a turn.
//! Whenever a scan is given up, nothing stays pinned.

use std::task::{Context, Poll, Wake, Waker};

use trunkline_aio::MethodKind;
use trunkline_aio::facade::Arc;
use trunkline_aio::facade::atomic::{AtomicU64, Ordering};
use trunkline_engine::heap::HeapPage;
use trunkline_engine::index_scan::{
    BitmapBuilder, BitmapHeapScan, IndexOnlyScan, IndexScan, IndexScanError, IndexScanOptions,
    IndexedTable, KeyedScan, TidBitmap,
};
use trunkline_engine::pool::Backend;
use trunkline_engine::read_stream::{ReleaseAhead, StreamOptions};
use trunkline_format::btree::Direction;

use crate::index_reads::{accounts, map_of, point_ranges, ranges};
use crate::jobs::METHODS;

const ROWS: usize = 200_000;

/// One step of a scan: the number of rows, or `None` at the end.
type Step<'s> = Box<dyn FnMut(&mut Backend) -> Result<Option<usize>, IndexScanError> + 's>;

fn step<'s>(
    step: impl FnMut(&mut Backend) -> Result<Option<usize>, IndexScanError> + 's,
) -> Step<'s> {
    Box::new(step)
}

fn rows(
    page: Result<Option<HeapPage<'_>>, IndexScanError>,
) -> Result<Option<usize>, IndexScanError> {
    Ok(page?.map(|page| page.rows().count()))
}

/// Every kind of scan, over all rows.
fn scans(backend: &Backend, table: &IndexedTable) -> Vec<(&'static str, Step<'static>)> {
    let all = |direction| ranges(table, &[], direction);
    let options = IndexScanOptions::default();
    let mut forward = IndexScan::new(backend, table, all(Direction::Forward), options);
    let mut backward = IndexScan::new(backend, table, all(Direction::Backward), options);
    let unordered = IndexScanOptions { unordered: true, ..options };
    let mut unordered = IndexScan::new(backend, table, all(Direction::Forward), unordered);
    let (map, blocks) = map_of(table);
    let forward_ranges = all(Direction::Forward);
    let mut visible =
        IndexOnlyScan::new(backend, table, (&map, blocks), forward_ranges.clone(), options);
    let mut doubtful =
        IndexOnlyScan::new(backend, table, (&map, 0), forward_ranges.clone(), options);
    let mut keyed = KeyedScan::new(backend, table, options);
    let keys: Vec<i32> = (0..2000).map(|at| (at * 7919) % ROWS as i32 + 1).collect();
    keyed.start(point_ranges(table, &keys, Direction::Forward));
    let stream = StreamOptions::default();
    let (index, sizes) = (&table.index, table.sizes);
    let mut builder = BitmapBuilder::new(backend, index, sizes, forward_ranges, stream);
    let mut bitmap = TidBitmap::new(1 << 24);
    let mut built = false;
    vec![
        ("forward", step(move |backend| rows(forward.next_page(backend)))),
        ("backward", step(move |backend| rows(backward.next_page(backend)))),
        ("unordered", step(move |backend| rows(unordered.next_page(backend)))),
        ("visible", step(move |backend| Ok(visible.next_entries(backend)?.map(<[_]>::len)))),
        ("doubtful", step(move |backend| Ok(doubtful.next_entries(backend)?.map(<[_]>::len)))),
        ("keyed", step(move |backend| rows(keyed.next_page(backend)))),
        (
            "bitmap",
            step(move |backend| {
                if std::mem::replace(&mut built, true) {
                    return Ok(None);
                }
                built = false;
                builder.build(backend, &mut bitmap)?;
                built = true;
                assert_eq!(builder.rows(), ROWS as u64);
                Ok(Some(ROWS))
            }),
        ),
    ]
}

/// Everything is cached, so that nothing has to wait.
fn cache(backend: &mut Backend, table: &IndexedTable) {
    let mut bitmap = TidBitmap::new(1 << 24);
    let all = ranges(table, &[], Direction::Forward);
    let stream = StreamOptions::default();
    let mut builder = BitmapBuilder::new(backend, &table.index, table.sizes, all, stream);
    builder.build(backend, &mut bitmap).expect("sound");
    let (rows, transactions) = (&table.rows, &table.transactions);
    let options = IndexScanOptions::default();
    let mut scan = BitmapHeapScan::new(backend, rows, transactions, bitmap, options);
    while scan.next_page(backend).expect("sound").is_some() {}
    let (map, blocks) = map_of(table);
    (0..blocks).for_each(|block| drop(backend.read(&map, block).expect("reads")));
}

#[test]
fn scans_of_cached_pages_notice_a_cancel_and_go_on_after_it() {
    accounts(MethodKind::Worker, 16_384, |cluster, table| {
        let backend = &mut cluster.backend;
        cache(backend, table);
        for (name, mut next) in scans(backend, table) {
            let (mut found, mut cancels) = (0, 0);
            let expected = if name == "keyed" { 2000 } else { ROWS };
            let mut steps = 0;
            loop {
                // A page of the table that is known already may still come, but no page of the index.
                if steps % 50 == 0 {
                    backend.session().canceller().cancel();
                }
                steps += 1;
                match next(backend) {
                    Ok(Some(rows)) => found += rows,
                    Ok(None) => break,
                    Err(error) => {
                        assert!(error.is_cancelled(), "{name}: {error}");
                        cancels += 1;
                        backend.session().clear_cancel();
                    }
                }
            }
            backend.session().clear_cancel();
            assert_eq!(found, expected, "{name}");
            assert!(cancels > 0, "{name}");
            drop(next);
            assert_eq!(backend.pins(), 0, "{name}");
        }
    });
}

#[test]
fn a_cancelled_scan_leaves_nothing_pinned() {
    for method in METHODS {
        accounts(method, 64, |cluster, table| {
            let backend = &mut cluster.backend;
            for (number, (name, mut next)) in scans(backend, table).into_iter().enumerate() {
                for _ in 0..5 * number {
                    next(backend).expect("sound");
                }
                backend.session().canceller().cancel();
                while let Ok(Some(_)) = next(backend) {}
                drop(next);
                assert_eq!(backend.pins(), 0, "{name}");
                backend.session().clear_cancel();
            }
        });
    }
}

/// Counts how often it is woken.
#[derive(Default)]
struct Wakes(AtomicU64);

impl Wake for Wakes {
    fn wake(self: std::sync::Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// Polls until the result is ready, and returns how often that was in vain. Since everything is cached,
/// each of these polls must have woken the task itself.
fn turns<T>(mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>) -> (T, u64) {
    let wakes = Arc::new(Wakes::default());
    let waker = Waker::from(Arc::clone(&wakes));
    let mut turns = 0;
    loop {
        match poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(value) => return (value, turns),
            Poll::Pending => turns += 1,
        }
        assert_eq!(wakes.0.load(Ordering::SeqCst), turns);
    }
}

#[test]
fn scans_of_cached_pages_give_other_tasks_a_turn() {
    accounts(MethodKind::Worker, 16_384, |cluster, table| {
        let backend = &mut cluster.backend;
        cache(backend, table);
        let all = ranges(table, &[], Direction::Forward);
        let stream = StreamOptions::default();
        let mut bitmap = TidBitmap::new(1 << 24);
        let (index, sizes) = (&table.index, table.sizes);
        let mut builder = BitmapBuilder::new(backend, index, sizes, all, stream);
        let (built, count) = turns(|context| builder.poll_build(context, backend, &mut bitmap));
        built.expect("sound");
        // About 550 leaves.
        assert!((6..20).contains(&count), "{count}");

        // One key on each leaf.
        let keys: Vec<i32> = (1..ROWS as i32).step_by(370).collect();
        let mut scan = KeyedScan::new(backend, table, IndexScanOptions::default());
        scan.start(point_ranges(table, &keys, Direction::Forward));
        let (first, count) = turns(|context| {
            scan.poll_page(context, backend).map(|page| rows(page).expect("sound"))
        });
        assert_eq!(first, Some(1));
        assert!((6..20).contains(&count), "{count}");
        scan.release_ahead();
    });
}
