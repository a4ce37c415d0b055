//! btrfs with direct I/O. btrfs checksums each page before it writes the page. If the page changes
//! between these two steps, the checksum on disk is wrong and the page becomes unreadable.
//! PostgreSQL hit this problem on a build farm machine.
//!
//! ```text
//!   sessions change pages ──▶ pool ── checkpoints, one after the other, O_DIRECT ──▶ btrfs on a loop
//!   sessions read them  ──▶          afterwards: scrub, and every page is read from disk
//!   and set hint bits
//! ```

use std::fs;
use std::path::Path;

use trunkline_aio::facade::atomic::{AtomicU32, Ordering};
use trunkline_aio::facade::{Arc, thread};
use trunkline_aio::{Builder, MethodKind};
use trunkline_engine::checkpoint::{CheckpointOptions, checkpoint};
use trunkline_engine::pool::{BackendType, Pool};
use trunkline_engine::storage::{
    DEFAULT_TABLESPACE, Layout, OpenFiles, Relation, RelationLocator, Storage,
};
use trunkline_format::{
    BLOCK_SIZE, CheckOptions, Fork, HeapPageBuilder, Oid, PageBytes, Verdict, check_page,
};
use trunkline_sample::push_account;

use crate::looped::{Looped, run};
use crate::need;

const BLOCKS: u32 = 128;
const BUFFERS: u32 = 96;
const WRITERS: u32 = 3;
/// The fewest changes of each writer.
const STEPS: u32 = 2_500;
/// The fewest hint bits that the readers toggle, and the fewest checkpoints, while pages change.
const HINTS: u32 = 50;
const CHECKPOINTS: u32 = 3;
/// Large enough for mkfs.btrfs without special options.
const IMAGE_BYTES: u64 = 256 << 20;

fn page(block: u32, version: u32) -> PageBytes {
    let mut page = HeapPageBuilder::new(block);
    push_account(&mut page, block as i32, version as i32, 1).expect("room");
    page.finish(true)
}

/// What the threads have done so far.
#[derive(Default)]
struct Progress {
    hints: AtomicU32,
    checkpoints: AtomicU32,
    writers_done: AtomicU32,
}

impl Progress {
    /// Whether there was enough beside the writers.
    fn is_enough(&self) -> bool {
        self.hints.load(Ordering::SeqCst) >= HINTS
            && self.checkpoints.load(Ordering::SeqCst) >= CHECKPOINTS
    }

    fn is_writing(&self) -> bool {
        self.writers_done.load(Ordering::SeqCst) < WRITERS
    }
}

/// Changes pages until the other threads have done enough.
fn change(pool: &Pool, relation: &Relation, number: u32, progress: &Progress) {
    let mut backend = pool.backend(BackendType::Client).expect("a session");
    for step in (0..).take_while(|&step| step < STEPS || !progress.is_enough()) {
        let block = (step * 7 + number * 31) % BLOCKS;
        let pin = backend.read(relation, block).expect("reads");
        let mut bytes = backend.write_lock(pin.page()).expect("locks");
        bytes.mark_dirty();
        bytes.copy_from_slice(&page(block, step));
    }
    progress.writers_done.fetch_add(1, Ordering::SeqCst);
}

/// Reads pages and toggles hint bits until the writers are done.
fn look(pool: &Pool, relation: &Relation, progress: &Progress) {
    let mut backend = pool.backend(BackendType::Client).expect("a session");
    let mut block = 0;
    while progress.is_writing() {
        block = (block + 1) % BLOCKS;
        let pin = backend.read(relation, block).expect("reads");
        let mut bytes = backend.read_lock(pin.page()).expect("locks");
        assert_eq!(bytes[18..20], page(block, 0)[18..20], "the page's size and layout");
        if bytes.try_set_hints(change_hint) {
            progress.hints.fetch_add(1, Ordering::SeqCst);
        }
    }
}

/// Toggles the `HEAP_XMIN_COMMITTED` hint bit of the page's only row.
fn change_hint(bytes: &mut PageBytes) {
    let row = usize::from(u16::from_le_bytes([bytes[14], bytes[15]]));
    bytes[row + 21] ^= 1;
}

/// Changes pages of the first relation below `root` while checkpoints write them.
fn work(method: MethodKind, checksums: bool, root: &Path) {
    let aio = Builder::new().method(method).region_bytes(8 << 20).start().expect("starts");
    assert_eq!(aio.method_status().used, method);
    let layout = Layout { checksums, tablespace_directory: "PG_18_202506291".into() };
    let files = OpenFiles::kernel(&aio, 16);
    let storage = Storage::for_writing(root, layout, &files, true);
    let locator =
        RelationLocator { tablespace: DEFAULT_TABLESPACE, database: Oid(5), relfilenode: 16_384 };
    let relation = storage.relation(locator, Fork::Main);
    let pool = Pool::new(&aio, BUFFERS).expect("a pool");
    let progress = Arc::new(Progress::default());
    let mut threads = Vec::new();
    for number in 0..WRITERS {
        let (pool, relation, progress) = (pool.clone(), relation.clone(), Arc::clone(&progress));
        let body = move || change(&pool, &relation, number, &progress);
        threads.push(thread::spawn("writer", body).expect("a thread"));
    }
    for _ in 0..2 {
        let (pool, relation, progress) = (pool.clone(), relation.clone(), Arc::clone(&progress));
        let body = move || look(&pool, &relation, &progress);
        threads.push(thread::spawn("reader", body).expect("a thread"));
    }
    let mut backend = pool.backend(BackendType::Checkpointer).expect("a session");
    let mut run = || {
        checkpoint(&pool, &mut backend, CheckpointOptions::default(), |_| {}).expect("ends").buffers
    };
    while progress.is_writing() {
        // A checkpoint that found no dirty page has proved nothing.
        let written = run();
        progress.checkpoints.fetch_add(u32::from(written > 0), Ordering::SeqCst);
    }
    threads.into_iter().for_each(|thread| thread.join().expect("ends well"));
    run();
}

#[test]
fn pages_do_not_change_under_btrfs() {
    if !need::root() {
        return;
    }
    let Some(mount) = Looped::new(&["mkfs.btrfs", "-q", "-f"], IMAGE_BYTES, "btrfs", "defaults")
    else {
        return;
    };
    let methods = [MethodKind::Sync, MethodKind::Worker, MethodKind::IoUring];
    for (method, checksums) in methods.into_iter().flat_map(|m| [(m, true), (m, false)]) {
        let root = mount.path().join(format!("{method}-{checksums}"));
        let file = root.join("base/5/16384");
        fs::create_dir_all(root.join("base/5")).expect("a folder");
        let bytes: Vec<u8> = (0..BLOCKS).flat_map(|block| page(block, 0)).collect();
        fs::write(&file, bytes).expect("written");
        // Without data checksums, only btrfs can detect that a page changed during its write.
        work(method, checksums, &root);
        let path = mount.path();
        let scrub = run("btrfs", &["scrub", "start", "-B", path.to_str().expect("a name")]);
        let scrub = scrub.expect("scrubbed");
        assert!(scrub.contains("no errors found"), "{method}: {scrub}");
        // Unmounting drops the pages from the page cache.
        mount.detach().expect("unmounted");
        mount.attach().expect("mounted again");
        let left = fs::read(&file).unwrap_or_else(|error| panic!("{method}: {error}"));
        assert_eq!(left.len(), BLOCKS as usize * BLOCK_SIZE);
        for (found, block) in left.as_chunks::<BLOCK_SIZE>().0.iter().zip(0..) {
            let options = CheckOptions { checksums, fork: Fork::Main };
            assert_eq!(check_page(found, block, &options), Verdict::Good, "{method}, {block}");
        }
    }
}
