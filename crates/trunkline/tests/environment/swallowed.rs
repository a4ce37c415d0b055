//! A device runs out of space during writeback, so pages are lost long after write(2) has returned
//! success. The kernel reports the error only once per open file. Either fsync(2) or a
//! sync_file_range(2) that waits for writeback gets the error, whichever is called first. In both
//! cases, the checkpoint must fail.
//!
//! ```text
//!   checkpoint ──▶ page cache ──▶ ext4 on a loop ──▶ image with holes ──▶ tmpfs that is full
//!       ▲ beside other sessions, it waits for writeback itself     ENOSPC ◀──┘
//! ```

use std::fs;
use std::path::Path;

use trunkline_aio::{Builder, Class, Io, MethodKind, OpenOptions, Outcome, Slots, Status};
use trunkline_engine::checkpoint::{CheckpointError, CheckpointOptions, checkpoint};
use trunkline_engine::pool::{BackendType, Pool};
use trunkline_engine::storage::{DEFAULT_TABLESPACE, Layout, OpenFiles, RelationLocator, Storage};
use trunkline_format::{BLOCK_SIZE, Fork, HeapPageBuilder, Oid, PageBytes};
use trunkline_sample::push_account;

use crate::looped::{Looped, run};
use crate::need;

const BLOCKS: u32 = 1024;
/// Number of file system blocks for which the device loses its space.
const LOST: u64 = 512;
/// Block size of ext4 in bytes.
const FS_BLOCK: u64 = 4096;
const IMAGE_BYTES: u64 = 64 << 20;
const ROOM_BYTES: u64 = 24 << 20;

fn page(block: u32, version: u32) -> PageBytes {
    let mut page = HeapPageBuilder::new(block);
    push_account(&mut page, block as i32, version as i32, 1).expect("room");
    page.finish(true)
}

/// A file system without a journal, because the journal would fail first.
fn mount() -> Option<Looped> {
    let make = ["mkfs.ext4", "-q", "-b", "4096", "-O", "^has_journal"];
    let lazily = ["-E", "lazy_itable_init=0,nodiscard"];
    let kind = ("ext4", "noatime,lazytime");
    Looped::in_memory(&[&make[..], &lazily].concat(), IMAGE_BYTES, kind, ROOM_BYTES)
}

/// Punches holes in the image where the file's first blocks are stored. Then fills up the tmpfs, so
/// that writing these blocks fails with ENOSPC.
fn take_room(mount: &Looped, file: &Path) {
    let (name, image) = (file.to_str().expect("a name"), mount.image());
    run("sync", &["-f", name]).expect("synced");
    let listed = run("filefrag", &["-v", "-b4096", name]).expect("listed");
    let mut holes = 0;
    for line in listed.lines() {
        let fields = line.split([' ', ':', '.']).filter(|field| !field.is_empty());
        let numbers: Vec<u64> = fields.map_while(|field| field.parse().ok()).collect();
        // Extent number, first and last block in the file, first and last block on the device, and
        // length.
        let &[_, first, _, place, _, length, ..] = &numbers[..] else { continue };
        let wanted = LOST * (BLOCK_SIZE as u64 / FS_BLOCK);
        let blocks = length.min(wanted.saturating_sub(first));
        if blocks > 0 {
            let (from, bytes) = ((place * FS_BLOCK).to_string(), (blocks * FS_BLOCK).to_string());
            let image = image.to_str().expect("a name");
            run("fallocate", &["-p", "-o", &from, "-l", &bytes, image]).expect("a hole");
            holes += blocks;
        }
    }
    assert_eq!(holes, LOST * (BLOCK_SIZE as u64 / FS_BLOCK), "{listed}");
    let filler = mount.image_folder().join("filler");
    let full = fs::write(filler, vec![1; ROOM_BYTES as usize]);
    assert_eq!(full.map_err(|error| error.kind()), Err(std::io::ErrorKind::StorageFull));
}

/// Changes every page of the relation in the cluster at `root` and runs a checkpoint. If `others`
/// is set, another session holds a handle during the checkpoint.
fn change_all(method: MethodKind, root: &Path, others: bool) -> Result<String, CheckpointError> {
    let aio = Builder::new().method(method).region_bytes(32 << 20).start().expect("starts");
    let layout = Layout { checksums: true, tablespace_directory: "PG_18_202506291".into() };
    let files = OpenFiles::kernel(&aio, 16);
    let storage = Storage::for_writing(root, layout, &files, false);
    let locator =
        RelationLocator { tablespace: DEFAULT_TABLESPACE, database: Oid(5), relfilenode: 16_384 };
    let relation = storage.relation(locator, Fork::Main);
    let pool = Pool::new(&aio, BLOCKS + 64).expect("a pool");
    let mut backend = pool.backend(BackendType::Checkpointer).expect("a session");
    for block in 0..BLOCKS {
        let pin = backend.read(&relation, block).expect("reads");
        let mut bytes = backend.write_lock(pin.page()).expect("locks");
        bytes.mark_dirty();
        bytes.copy_from_slice(&page(block, 1));
    }
    let mut other = aio.session().expect("a session");
    let held = others.then(|| other.acquire(Class::Foreground).expect("a handle"));
    let done = checkpoint(&pool, &mut backend, CheckpointOptions::default(), |_| {});
    drop(held);
    let again = checkpoint(&pool, &mut backend, CheckpointOptions::default(), |_| {});
    assert!(again.is_err() || done.is_ok(), "for ever");
    done.map(|report| report.to_string())
}

#[test]
fn a_checkpoint_fails_if_the_kernel_lost_pages() {
    if !need::root() {
        return;
    }
    for method in [MethodKind::Sync, MethodKind::Worker, MethodKind::IoUring] {
        for others in [false, true] {
            let Some(mount) = mount() else { return };
            let file = mount.path().join("base/5/16384");
            fs::create_dir_all(mount.path().join("base/5")).expect("a folder");
            let bytes: Vec<u8> = (0..BLOCKS).flat_map(|block| page(block, 0)).collect();
            fs::write(&file, bytes).expect("written");
            take_room(&mount, &file);
            let case = format!("{method}, others about: {others}");
            let error = change_all(method, &mount.path(), others).expect_err(&case);
            assert!(matches!(error, CheckpointError::Sync { .. }), "{case}: {error}");
            assert!(error.to_string().contains("No space left"), "{case}: {error}");
        }
    }
}

/// Writes a block, durably or not.
fn write(method: MethodKind, file: &Path, durable: bool) -> Outcome {
    let aio = Builder::new().method(method).region_bytes(1 << 20).start().expect("starts");
    let file = aio.open(file, OpenOptions { write: true, ..OpenOptions::default() });
    let (mut session, mut slots) = (aio.session().expect("a session"), Slots::new(1));
    slots.memory(0).expect("idle").push(aio.region().lease(1).expect("a frame"));
    let io = session.acquire(Class::Log).expect("a handle");
    let io = if durable { Io::durable(io) } else { io };
    io.write(&file.expect("opened"), 0, BLOCK_SIZE as u32, &mut slots, 0).expect("defined");
    session.wait(&mut slots, 0).expect("not cancelled")
}

/// A durable write reaches the storage before it completes, so it gets the storage's error. Any
/// other write ends in the page cache.
#[test]
fn a_durable_write_gets_the_error_of_the_storage() {
    if !need::root() {
        return;
    }
    for method in [MethodKind::Sync, MethodKind::Worker, MethodKind::IoUring] {
        let Some(mount) = mount() else { return };
        let file = mount.path().join("log");
        fs::write(&file, vec![0; BLOCKS as usize * BLOCK_SIZE]).expect("written");
        assert_eq!(write(method, &file, true).status, Status::Ok, "{method}, on a sound device");
        take_room(&mount, &file);
        assert_eq!(write(method, &file, false).status, Status::Ok, "{method}");
        assert_eq!(write(method, &file, true).status, Status::Error, "{method}");
    }
}
