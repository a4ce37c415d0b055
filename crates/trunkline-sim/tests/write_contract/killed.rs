//! A process is killed (`SIGKILL`) while it writes, under each I/O method.
//!
//! The page cache is not lost when a process is killed, so all pages that were written before a
//! checkpoint completed must be in the file. Only a page that was being written at the time may be
//! torn, and then its checksum must be wrong. With direct I/O, the same is true of the data on the
//! device.
//!
//! The child process runs this test binary with an extra argument. Whenever it completes a
//! checkpoint, it prints the version that all pages had reached when the checkpoint began.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use trunkline_aio::facade::Arc;
use trunkline_aio::facade::atomic::{AtomicU32, Ordering};
use trunkline_aio::facade::thread;
use trunkline_aio::{Builder, MethodKind};
use trunkline_engine::checkpoint::{CheckpointOptions, checkpoint};
use trunkline_engine::pool::{BackendType, Pool};
use trunkline_engine::storage::KernelFiles;
use trunkline_format::BLOCK_SIZE;
use trunkline_sim::matrix::cluster::relation;
use trunkline_sim::matrix::pages;
use trunkline_sim::matrix::{REAL, is_sound, is_version};

/// Prefix of the child's argument and of its output lines.
const MARK: &str = "killed-child:";
const BLOCKS: u32 = 96;
/// Fewer buffers than pages, so that pages are also evicted.
const BUFFERS: u32 = 64;

/// The child. A second thread changes all pages, one version after the other, while this thread
/// runs checkpoints.
fn change_until_killed(method: &str, direct: bool, root: &Path) {
    let method = REAL.into_iter().find(|kind| kind.to_string() == method).expect("a method");
    let aio = Builder::new().method(method).region_bytes(8 << 20).start().expect("starts");
    let storage =
        trunkline_sim::matrix::cluster::storage(root, Arc::new(KernelFiles::new(&aio)), direct);
    let pool = Pool::new(&aio, BUFFERS).expect("a pool");
    let made = Arc::new(AtomicU32::new(0));
    let (theirs, pool_too, relation) = (Arc::clone(&made), pool.clone(), relation(&storage, 0));
    let writer = thread::spawn("writer", move || {
        let mut backend = pool_too.backend(BackendType::Client).expect("a session");
        for version in 1.. {
            for at in 0..BLOCKS {
                // 35 and 96 have no common factor, so this visits every block in scattered order.
                let block = at * 35 % BLOCKS;
                let pin = backend.read(&relation, block).expect("reads");
                let mut bytes = backend.write_lock(pin.page()).expect("locks");
                bytes.mark_dirty();
                bytes.copy_from_slice(&trunkline_sim::matrix::page(0, block, version, 0));
            }
            theirs.store(version, Ordering::SeqCst);
        }
    });
    let mut backend = pool.backend(BackendType::Client).expect("a session");
    loop {
        let version = made.load(Ordering::SeqCst);
        checkpoint(&pool, &mut backend, CheckpointOptions::default(), |_| {}).expect("ends");
        let mut out = std::io::stdout().lock();
        if writeln!(out, "\n{MARK}{version}").and_then(|()| out.flush()).is_err() {
            break;
        }
    }
    drop(writer);
}

/// The parent. Kills the child after a number of checkpoints, and checks the file.
fn kill(method: MethodKind, direct: bool, checkpoints: usize) {
    let root = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let path = root.path().join("base/5/16384");
    std::fs::create_dir_all(root.path().join("base/5")).expect("a folder");
    std::fs::write(&path, pages(0, BLOCKS)).expect("written");
    let order = format!("{MARK}{method}:{direct}:{}", root.path().display());
    let mut child = Command::new(std::env::current_exe().expect("own path"))
        .args(["killed::a_killed_process_leaves_whole_pages", &order, "--exact", "--nocapture"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("a child");
    let out = BufReader::new(child.stdout.take().expect("a pipe"));
    let mut seen = 0;
    let mut durable = 0;
    for line in out.lines() {
        let line = line.expect("a line");
        let Some(version) = line.strip_prefix(MARK) else { continue };
        durable = version.parse().expect("a version");
        seen += 1;
        // The first checkpoints may have found nothing to write.
        if seen >= checkpoints && durable > 3 {
            break;
        }
    }
    child.kill().expect("killed");
    assert!(!child.wait().expect("it ended").success());
    assert!(seen >= checkpoints, "the child ended early");
    let left = std::fs::read(&path).expect("reads");
    assert_eq!(left.len(), BLOCKS as usize * BLOCK_SIZE);
    let mut torn = 0;
    for (found, block) in left.chunks(BLOCK_SIZE).zip(0..) {
        if !is_sound(found, block) {
            torn += 1;
            continue;
        }
        let version = (durable..durable + 100_000).find(|&it| is_version(found, 0, block, it));
        assert!(version.is_some(), "block {block} is older than {durable}: {method}, {direct}");
    }
    // A write in flight may contain up to 16 blocks, and the kill may end it mid-block.
    assert!(torn <= 32, "{torn} pages are torn: {method}, direct {direct}");
}

/// Runs as the child if given the extra argument, and otherwise as the parent.
#[test]
fn a_killed_process_leaves_whole_pages() {
    if let Some(order) = std::env::args().find(|arg| arg.starts_with(MARK)) {
        let mut parts = order[MARK.len()..].splitn(3, ':');
        let mut part = || parts.next().expect("three parts");
        let (method, direct, root) = (part(), part() == "true", part());
        return change_until_killed(method, direct, Path::new(root));
    }
    for method in REAL {
        for direct in [false, true] {
            for checkpoints in [3, 8] {
                kill(method, direct, checkpoints);
            }
        }
    }
}
