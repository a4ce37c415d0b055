//! Tests of writes through the buffer pool. After a checkpoint, the files must contain all changes,
//! with every I/O method, buffered and direct, and in small and large pools.

use std::path::Path;

use trunkline_aio::facade::{Arc, thread};
use trunkline_aio::{Aio, Builder, MethodKind};
use trunkline_engine::checkpoint::{
    CheckpointOptions, Checkpointer, CheckpointerSettings, checkpoint,
};
use trunkline_engine::log::{Log, PositionLog};
use trunkline_engine::pool::{Backend, BackendType, ExtendMethod, Pool};
use trunkline_engine::storage::{Layout, OpenFiles, Relation, RelationLocator, Storage};
use trunkline_format::{BLOCK_SIZE, CheckOptions, Fork, HeapPageBuilder, Oid, Verdict, check_page};
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
    std::fs::create_dir_all(root.join("base/5")).expect("a directory");
    Storage::for_writing(root, layout, &files, direct)
}

fn page(block: u32, version: i32) -> [u8; BLOCK_SIZE] {
    let mut page = HeapPageBuilder::new(block);
    push_account(&mut page, block as i32, version, 2).expect("room");
    page.finish(true)
}

/// Creates a relation of `blocks` blocks, all of them in version 1.
fn fill(backend: &mut Backend, relation: &Relation, blocks: u32, method: ExtendMethod) {
    relation.create().expect("creates");
    let mut done = 0;
    while done < blocks {
        let pins = backend.extend(relation, (blocks - done).min(20), method).expect("extends");
        for pin in pins {
            let block = pin.page().block();
            assert_eq!(block, done);
            let mut bytes = backend.write_lock(pin.page()).expect("locks");
            assert!(bytes.iter().all(|&byte| byte == 0));
            bytes.copy_from_slice(&page(block, 1));
            bytes.mark_dirty();
            done += 1;
        }
    }
}

fn change(backend: &mut Backend, relation: &Relation, block: u32, version: i32) {
    let pin = backend.read(relation, block).expect("reads");
    let mut bytes = backend.write_lock(pin.page()).expect("locks");
    bytes.copy_from_slice(&page(block, version));
    bytes.mark_dirty();
}

fn assert_on_disk(root: &Path, blocks: u32, version: impl Fn(u32) -> i32) {
    let bytes = std::fs::read(root.join("base/5/16384")).expect("reads");
    assert!(bytes.len() >= blocks as usize * BLOCK_SIZE);
    for (found, block) in bytes.as_chunks::<BLOCK_SIZE>().0.iter().zip(0..blocks) {
        let options = CheckOptions { checksums: true, fork: Fork::Main };
        assert_eq!(check_page(found, block, &options), Verdict::Good, "block {block}");
        assert!(*found == page(block, version(block)), "block {block}");
    }
}

#[test]
fn changes_are_on_disk_after_a_checkpoint() {
    for method in METHODS {
        for direct in [false, true] {
            for (buffers, extend) in [
                (16, ExtendMethod::PosixFallocate),
                (64, ExtendMethod::WriteZeros),
                (2048, ExtendMethod::PosixFallocate),
            ] {
                let root = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
                let aio = aio(method);
                let relation = storage(&aio, root.path(), direct).relation(LOCATOR, Fork::Main);
                let pool = Pool::new(&aio, buffers).expect("a pool");
                let mut backend = pool.backend(BackendType::Client).expect("a session");
                fill(&mut backend, &relation, 500, extend);
                backend.publish_counts();
                let evicted = 500_u64.saturating_sub(u64::from(buffers));
                assert!(pool.total().evictions >= evicted, "{:?}", pool.total());
                (0..500).step_by(3).for_each(|block| change(&mut backend, &relation, block, 2));
                let report = checkpoint(&pool, &mut backend, CheckpointOptions::default(), |_| {})
                    .expect("a checkpoint");
                assert!(report.files >= 1, "{report}");
                assert_on_disk(root.path(), 500, |block| if block % 3 == 0 { 2 } else { 1 });
                let again = checkpoint(&pool, &mut backend, CheckpointOptions::default(), |_| {});
                assert_eq!(again.map(|report| (report.buffers, report.files)).expect("ok"), (0, 0));
                assert_eq!(backend.pins(), 0);
                assert!(pool.rows().iter().all(|row| row.pins == 0 && !row.dirty));
            }
        }
    }
}

#[test]
fn checkpoints_while_sessions_change_pages() {
    for method in METHODS {
        let root = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
        let aio = aio(method);
        let relation =
            storage(&aio, root.path(), method == MethodKind::IoUring).relation(LOCATOR, Fork::Main);
        let log = PositionLog::default();
        let pool = Pool::with_log(&aio, 128, Arc::new(log.clone())).expect("a pool");
        let mut backend = pool.backend(BackendType::Client).expect("a session");
        fill(&mut backend, &relation, 300, ExtendMethod::PosixFallocate);
        let settings = CheckpointerSettings::default();
        let checkpointer = Checkpointer::start(&pool, settings).expect("starts");
        let threads: Vec<_> = (0..4)
            .map(|number| {
                let (pool, relation, log) = (pool.clone(), relation.clone(), log.clone());
                let body = move || {
                    let mut backend = pool.backend(BackendType::Client).expect("a session");
                    for step in 0..400_u32 {
                        let block = (step * 7 + number) % 75 * 4 + number;
                        let pin = backend.read(&relation, block).expect("reads");
                        let mut bytes = backend.write_lock(pin.page()).expect("locks");
                        bytes.mark_dirty();
                        let mut page = page(block, step as i32);
                        let lsn = log.append(100);
                        page[0..4].copy_from_slice(&lsn.high().to_le_bytes());
                        page[4..8].copy_from_slice(&lsn.low().to_le_bytes());
                        bytes.copy_from_slice(&page);
                    }
                };
                thread::spawn("writer", body).expect("a thread")
            })
            .collect();
        for _ in 0..5 {
            checkpointer.request().expect("a checkpoint");
        }
        threads.into_iter().for_each(|thread| thread.join().expect("ends well"));
        let last = checkpointer.shut_down().expect("a checkpoint");
        assert!(log.flushes() > 0 && log.durable().0 > 0, "{last}");
        let bytes = std::fs::read(root.path().join("base/5/16384")).expect("reads");
        for (found, block) in bytes.as_chunks::<BLOCK_SIZE>().0.iter().zip(0..300) {
            let options = CheckOptions { checksums: true, fork: Fork::Main };
            assert_eq!(check_page(found, block, &options), Verdict::Good, "block {block}");
        }
        assert!(pool.rows().iter().all(|row| row.pins == 0 && !row.dirty));
    }
}

/// There is room for only one file in the open-file table. Even so, a file that has been written
/// must stay open until it has been fsynced, but no longer than that.
#[test]
fn written_files_stay_open_until_they_are_synced() {
    let aio = aio(MethodKind::Sync);
    let home = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    std::fs::create_dir_all(home.path().join("base/5")).expect("a directory");
    let layout = Layout { checksums: true, tablespace_directory: "PG_18_202506291".into() };
    let files = OpenFiles::kernel(&aio, 1);
    let storage = Storage::for_writing(home.path(), layout, &files, false);
    let pool = Pool::new(&aio, 64).expect("a pool");
    let mut backend = pool.backend(BackendType::Client).expect("a session");
    let relation = storage.relation(LOCATOR, Fork::Main);
    let other = storage.relation(RelationLocator { relfilenode: 16_385, ..LOCATOR }, Fork::Main);
    fill(&mut backend, &relation, 16, ExtendMethod::WriteZeros);
    other.create().expect("creates");
    let open = |aio: &Aio| aio.open_files();
    assert_eq!(open(&aio), 1);
    drop(other.locate(0).expect("opens"));
    assert_eq!(open(&aio), 2, "the table's, and one that is to be synced");
    let report = checkpoint(&pool, &mut backend, CheckpointOptions::default(), |_| {});
    assert_eq!(report.expect("a checkpoint").files, 2);
    assert_eq!(open(&aio), 1, "the table's");
}

/// The pool must not forget a closed cluster until it has written all of the cluster's pages.
#[test]
fn a_closed_cluster_is_forgotten() {
    let aio = aio(MethodKind::Worker);
    let home = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let pool = Pool::new(&aio, 64).expect("a pool");
    let mut backend = pool.backend(BackendType::Client).expect("a session");
    let pin = {
        let storage = storage(&aio, home.path(), false);
        let relation = storage.relation(LOCATOR, Fork::Main);
        fill(&mut backend, &relation, 16, ExtendMethod::PosixFallocate);
        backend.read(&relation, 3).expect("a hit")
    };
    assert!(aio.open_files() > 0, "there is something to write");
    let mut write = |pool: &Pool| {
        checkpoint(pool, &mut backend, CheckpointOptions::default(), |_| {}).expect("ends").buffers
    };
    assert_eq!(write(&pool), 16);
    assert_on_disk(home.path(), 16, |_| 1);
    assert_eq!(write(&pool), 0);
    assert!(aio.open_files() > 0, "a session may still change its page");
    {
        let mut bytes = pin.page().try_write().expect("locks");
        bytes.copy_from_slice(&page(3, 2));
        bytes.mark_dirty();
    }
    drop(pin);
    assert_eq!((write(&pool), write(&pool)), (1, 0));
    assert_eq!(aio.open_files(), 0);
    assert_on_disk(home.path(), 16, |block| if block == 3 { 2 } else { 1 });
    pool.evict_all();
    // If we open the directory again, the pool considers it a different cluster.
    let storage = storage(&aio, home.path(), false);
    change(&mut backend, &storage.relation(LOCATOR, Fork::Main), 5, 3);
}
