//! Tests of the buffer pool and its read streams with real files. Every page must have the same
//! contents as in its file, with every I/O method, buffered and direct, and in small and large
//! pools.

use std::path::Path;
use std::sync::Arc;
use std::task::{Context, Poll, Wake};

use trunkline_aio::facade::Futex;
use trunkline_aio::{Aio, Builder, MethodKind};
use trunkline_engine::pool::{Backend, BackendType, Pool, ReadError, Strategy, Tally};
use trunkline_engine::read_stream::{BlockList, BlockRange, ReadStream, StreamOptions};
use trunkline_engine::read_timer::{ReadTimer, TIMED_BLOCKS_MIN};
use trunkline_engine::storage::{Layout, OpenFiles, Relation, RelationLocator, Storage};
use trunkline_format::{BLOCK_SIZE, BlockNo, Fork, HeapPageBuilder, Oid, SEGMENT_BLOCKS};
use trunkline_sample::push_account;

const METHODS: [MethodKind; 3] = [MethodKind::Sync, MethodKind::Worker, MethodKind::IoUring];
const LOCATOR: RelationLocator =
    RelationLocator { tablespace: Oid(1663), database: Oid(5), relfilenode: 16_384 };

fn aio(method: MethodKind) -> Aio {
    Builder::new().method(method).region_bytes(64 << 20).start().expect("starts")
}

fn storage(aio: &Aio, root: &Path, direct: bool) -> Storage {
    let layout = Layout { checksums: true, tablespace_directory: "PG_18_202506291".into() };
    let files = OpenFiles::kernel(aio, 64);
    Storage::new(root, layout, &files, direct)
}

/// A relation whose pages contain their block numbers.
fn write_relation(root: &Path, blocks: u32) {
    std::fs::create_dir_all(root.join("base/5")).expect("a directory");
    let bytes: Vec<u8> = (0..blocks)
        .flat_map(|block| {
            let mut page = HeapPageBuilder::new(block);
            push_account(&mut page, block as i32, 1, 2).expect("room");
            page.finish(true)
        })
        .collect();
    std::fs::write(root.join("base/5/16384"), bytes).expect("writes");
}

fn page(block: u32) -> [u8; BLOCK_SIZE] {
    let mut page = HeapPageBuilder::new(block);
    push_account(&mut page, block as i32, 1, 2).expect("room");
    page.finish(true)
}

/// Reads a list of blocks through a stream and compares each page.
fn read_list(backend: &mut Backend, relation: &Relation, list: Vec<u32>, options: StreamOptions) {
    let mut stream = ReadStream::new(backend, relation, BlockList::new(list.clone()), options);
    let mut seen = Vec::new();
    while let Some(found) = stream.next(backend).expect("reads") {
        let block = found.block;
        let bytes = backend.read_lock(found.pin).expect("locks");
        assert!(*bytes == page(block), "block {block}");
        drop(bytes);
        seen.push(block);
    }
    let mut wanted = list;
    if options.unordered {
        wanted.sort_unstable();
        seen.sort_unstable();
    }
    assert_eq!(seen, wanted);
    drop(stream);
    assert_eq!(backend.pins(), 0);
}

/// A pool of gigabytes must not wait for all of its memory, but I/O must not have to wait for page
/// faults either.
#[test]
fn frames_get_their_memory_when_they_are_first_used() {
    const AHEAD: u64 = 16 << 20;
    let root = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
    write_relation(root.path(), 400);
    for method in METHODS {
        let aio = aio(method);
        let relation = storage(&aio, root.path(), false).relation(LOCATOR, Fork::Main);
        let pool = Pool::new(&aio, 8_192).expect("a pool");
        let mut backend = pool.backend(BackendType::Client).expect("a session");
        assert_eq!(aio.region().populated_bytes(), 0, "{method}");
        let options = StreamOptions::default();
        for used in [1, 400_u32] {
            read_list(&mut backend, &relation, (0..used).collect(), options);
            let needed = u64::from(used) * BLOCK_SIZE as u64;
            let populated = aio.region().populated_bytes();
            assert!((needed..=needed + 2 * AHEAD).contains(&populated), "{method}: {populated}");
        }
    }
}

#[test]
fn all_ways_to_read_return_the_pages_of_the_file() {
    let root = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
    write_relation(root.path(), 400);
    for method in METHODS {
        for direct in [false, true] {
            for buffers in [16, 2048] {
                let aio = aio(method);
                let relation = storage(&aio, root.path(), direct).relation(LOCATOR, Fork::Main);
                assert_eq!(relation.blocks().expect("blocks"), 400);
                let pool = Pool::new(&aio, buffers).expect("a pool");
                let mut backend = pool.backend(BackendType::Client).expect("a session");
                for unordered in [false, true] {
                    for strategy in [Strategy::Normal, Strategy::BulkRead] {
                        for (concurrency, combine) in [(0, 16), (16, 16), (64, 128)] {
                            let options = StreamOptions {
                                concurrency,
                                combine,
                                unordered,
                                strategy,
                                ..StreamOptions::default()
                            };
                            read_list(&mut backend, &relation, (0..400).collect(), options);
                            let jumps = (0..400).map(|at| at * 331 % 400).collect();
                            read_list(&mut backend, &relation, jumps, options);
                            let again = (0..300).flat_map(|at| [at, at + 1, at, at + 2]).collect();
                            read_list(&mut backend, &relation, again, options);
                        }
                    }
                }
                for block in (0..400).rev() {
                    let pin = backend.read(&relation, block).expect("reads");
                    assert!(*backend.read_lock(pin.page()).expect("locks") == page(block));
                }
                assert_eq!(backend.pins(), 0);
                drop(backend);
                assert_eq!(pool.rows().iter().map(|row| row.pins).sum::<u32>(), 0);
            }
        }
    }
}

#[test]
fn a_page_under_read_is_not_read_twice() {
    let root = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
    write_relation(root.path(), 1003);
    for method in METHODS {
        let aio = aio(method);
        let relation = storage(&aio, root.path(), true).relation(LOCATOR, Fork::Main);
        let pool = Pool::new(&aio, 2048).expect("a pool");
        let mut backend = pool.backend(BackendType::Client).expect("a session");
        let list = (0..1000).flat_map(|at| [at, at + 1, at + 2, at + 3]).collect();
        read_list(&mut backend, &relation, list, StreamOptions::default());
        drop(backend);
        let total = pool.total();
        assert_eq!((total.read_blocks, total.hits), (1003, 2997), "{method}: {total:?}");
    }
}

#[test]
fn errors_name_the_block_and_leave_no_pins() {
    let root = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
    write_relation(root.path(), 40);
    let path = root.path().join("base/5/16384");
    let mut bytes = std::fs::read(&path).expect("reads");
    bytes[13 * BLOCK_SIZE + 5000] ^= 1;
    bytes.truncate(39 * BLOCK_SIZE + 100);
    std::fs::write(&path, bytes).expect("writes");
    for method in METHODS {
        let aio = aio(method);
        let relation = storage(&aio, root.path(), false).relation(LOCATOR, Fork::Main);
        let pool = Pool::new(&aio, 64).expect("a pool");
        let mut backend = pool.backend(BackendType::Client).expect("a session");
        let source = BlockRange::new(0..41);
        let mut stream = ReadStream::new(&backend, &relation, source, StreamOptions::default());
        let (mut good, mut errors) = (0, Vec::new());
        loop {
            match stream.next(&mut backend) {
                Ok(None) => break,
                Ok(Some(found)) => {
                    assert_eq!(found.pin.block(), found.block);
                    good += 1;
                }
                Err(error) => errors.push(error),
            }
        }
        assert_eq!(good, 38);
        let blocks: Vec<_> = errors.iter().map(ReadError::block).collect();
        assert_eq!(blocks, [Some(13), Some(39), Some(40)]);
        assert!(matches!(errors[0], ReadError::Corrupt { .. }), "{errors:?}");
        assert!(matches!(errors[1], ReadError::Short { bytes: 100, .. }), "{errors:?}");
        assert!(matches!(errors[2], ReadError::Short { bytes: 0, .. }), "{errors:?}");
        assert!(backend.read(&relation, SEGMENT_BLOCKS).is_err());
        drop(stream);
        assert_eq!(backend.pins(), 0);
        assert_eq!(pool.rows().iter().map(|row| row.pins).sum::<u32>(), 0);
    }
}

#[test]
fn residency_distinguishes_pool_and_page_cache() {
    let root = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
    write_relation(root.path(), 300);
    let aio = aio(MethodKind::Sync);
    let relation = storage(&aio, root.path(), false).relation(LOCATOR, Fork::Main);
    let pool = Pool::new(&aio, 512).expect("a pool");
    let mut backend = pool.backend(BackendType::Client).expect("a session");
    read_list(&mut backend, &relation, (100..200).collect(), StreamOptions::default());
    let found = pool.residency(&relation, 0..BlockNo::MAX).expect("looks");
    assert_eq!((found.blocks, found.pool), (300, 100));
    assert!(found.both <= found.pool && found.both <= found.cache, "{found:?}");
    assert_eq!(pool.evict_relation(&relation, 150).evicted, 50);
    assert_eq!(pool.residency(&relation, 0..BlockNo::MAX).expect("looks").pool, 50);
    assert!(pool.contains(&relation, 149) && !pool.contains(&relation, 150));
    let part = pool.residency(&relation, 140..BlockNo::MAX).expect("looks");
    assert_eq!((part.blocks, part.pool), (160, 10));
    assert!(part.cache <= part.blocks, "{part:?}");
    let part = pool.residency(&relation, 100..145).expect("looks");
    assert_eq!((part.blocks, part.pool), (45, 45));
}

#[test]
fn residency_is_estimated_from_blocks_of_all_parts() {
    let root = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
    write_relation(root.path(), 640);
    let aio = aio(MethodKind::Sync);
    let pool = Pool::new(&aio, 512).expect("a pool");
    let mut backend = pool.backend(BackendType::Client).expect("a session");
    for direct in [false, true] {
        let relation = storage(&aio, root.path(), direct).relation(LOCATOR, Fork::Main);
        // Half of each part of ten blocks that one block stands for.
        let list = (0..640).filter(|block| block / 10 % 2 == 0).collect();
        read_list(&mut backend, &relation, list, StreamOptions::default());
        let estimate = pool.estimate_residency(backend.session(), &relation, 640).take();
        let found = estimate.expect("made at once").expect("looks");
        assert_eq!(found.pool, 0.5, "{found:?}");
        // With direct I/O, the page cache is useless. Otherwise, the file was just written, and all of
        // it is there unless the kernel needed the memory.
        let all = pool.residency(&relation, 0..BlockNo::MAX).expect("looks");
        let expected = if direct { 0.0 } else { (all.cache - all.both) as f64 / all.blocks as f64 };
        assert!((found.cache - expected).abs() < 0.1, "{found:?}, {all:?}");
        let none = pool.estimate_residency(backend.session(), &relation, 0).take();
        assert_eq!(none.expect("made at once").expect("looks").pool, 0.0);
    }
}

#[test]
fn times_of_reads_are_measured_through_the_pool() {
    let root = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
    std::fs::create_dir_all(root.path().join("base/5")).expect("a directory");
    // Empty pages in a hole.
    let file = std::fs::File::create(root.path().join("base/5/16384")).expect("creates");
    file.set_len(u64::from(TIMED_BLOCKS_MIN) * BLOCK_SIZE as u64).expect("a length");
    for method in METHODS {
        let aio = aio(method);
        let pool = Pool::new(&aio, 2_048).expect("a pool");
        let mut backend = pool.backend(BackendType::Client).expect("a session");
        let relation = storage(&aio, root.path(), false).relation(LOCATOR, Fork::Main);
        for concurrency in [0, 16, 25, 1000] {
            let before = pool.total();
            let options = StreamOptions { concurrency, ..StreamOptions::default() };
            let mut timer = ReadTimer::new(&relation, TIMED_BLOCKS_MIN, options);
            let times = wait(|context| timer.poll(context, &mut backend)).expect("reads");
            assert_eq!(times.in_flight, concurrency);
            assert!(!times.latency.is_zero() && !times.random.is_zero(), "{times:?}");
            assert!(!times.sequential.is_zero(), "{times:?}");
            let after = pool.total();
            let blocks = |tally: Tally| tally.hits + tally.read_blocks;
            let random = (4 * u64::from(concurrency)).clamp(64, 256);
            assert_eq!(blocks(after) - blocks(before), 3 + random + 1024, "{method}");
            assert_eq!(backend.pins(), 0);
        }
    }
}

/// Polls until the result is there.
fn wait<T>(mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>) -> T {
    struct Wakes(Futex);

    impl Wake for Wakes {
        fn wake(self: Arc<Self>) {
            self.0.signal();
        }
    }

    let wakes = Arc::new(Wakes(Futex::new(0)));
    let waker = Arc::clone(&wakes).into();
    loop {
        let before = wakes.0.epoch();
        if let Poll::Ready(found) = poll(&mut Context::from_waker(&waker)) {
            return found;
        }
        wakes.0.wait(before, None);
    }
}
