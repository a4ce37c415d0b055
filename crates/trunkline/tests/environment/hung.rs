//! Runs `verify` on a file system that hangs. Files on other file systems must still be verified,
//! and Ctrl-C must end the command.
//!
//! Whether the process can exit depends on where its threads are blocked in the kernel. A thread
//! that is waiting for a page of the page cache can be killed. But if a thread is waiting for the
//! file system itself (when it opens a file, lists a directory or does a direct read), it can't
//! exit until the file system replies, and the process remains a zombie. In that case, the test
//! first checks that the process has written all its output, and only then releases the reply.

use rustix::process::Signal;

use crate::child::Running;
use crate::cluster::{Cluster, database, file, relation};
use crate::doctor::doctor;
use crate::fuse::{Event, Fault, Mount, Tree};
use crate::need;
use crate::verify::{DIRECT, Report, binary, verify};

/// Number of files in the tablespace that works.
const FILES: u32 = 20;
const BLOCKS: u32 = 40;

struct Case {
    method: &'static str,
    direct: bool,
    fault: Fault,
    /// Whether the process can exit while the file system hangs.
    killable: bool,
}

/// Interrupts `verify` on a cluster with two tablespaces, the second of which hangs.
fn check(case: &Case) {
    let name = format!("{}, direct {}, {:?}", case.method, case.direct, case.fault);
    println!("{name}");
    let cluster = Cluster::new();
    let sound = (0..FILES).fold(Tree::new(), |tree, number| {
        tree.file(&file(16_500 + number), relation(BLOCKS), Fault::None)
    });
    let mut sound = Mount::new(cluster.beside("sound"), sound);
    let hung = Tree::new().file(&file(16_600), relation(400), case.fault.clone());
    let mut hung = Mount::new(cluster.beside("hung"), hung);
    cluster.link_tablespace(16_400, sound.path());
    cluster.link_tablespace(16_401, hung.path());

    let mut command = verify(&[], binary(), &cluster.path, case.method);
    let mut running = Running::start(command.args(DIRECT[usize::from(case.direct)]));
    hung.wait_for(Event::Hung, 1);
    sound.wait_for(Event::Finished, FILES as usize);
    running.signal(Signal::INT);
    running.wait_for_message("\"text\":\"interrupted");
    if !case.killable {
        hung.release();
    }
    let report = Report::of(running.wait_for_end());
    assert_eq!(report.code, 130, "{name}: {report:?}");
    assert_eq!(report.summary["complete"], false, "{name}: {report:?}");
    assert_eq!(report.summary["blocks_scanned"], FILES * BLOCKS, "{name}: {report:?}");
    assert_eq!(report.summary["findings"].as_array().map(Vec::len), Some(0), "{name}: {report:?}");
}

#[test]
fn ctrl_c_while_a_read_hangs() {
    if !need::fuse() {
        return;
    }
    for method in ["worker", "io_uring", "sync"] {
        check(&Case { method, direct: false, fault: Fault::HangRead, killable: true });
    }
}

#[test]
fn ctrl_c_while_a_direct_read_hangs() {
    if !need::fuse() {
        return;
    }
    for method in ["worker", "io_uring", "sync"] {
        check(&Case { method, direct: true, fault: Fault::HangRead, killable: false });
    }
}

#[test]
fn ctrl_c_while_an_open_hangs() {
    if !need::fuse() {
        return;
    }
    check(&Case { method: "worker", direct: false, fault: Fault::HangOpen, killable: false });
}

/// Listing the directory hangs, before `verify` knows how many blocks there are.
#[test]
fn ctrl_c_while_a_listing_hangs() {
    if !need::fuse() {
        return;
    }
    let cluster = Cluster::with_files(1, 1);
    for fault in [Fault::HangRead, Fault::HangOpen] {
        let case = format!("{fault:?}");
        let oid = if fault == Fault::HangRead { 16_400 } else { 16_401 };
        let tree = Tree::new().directory(&database(), fault);
        let mut hung = Mount::new(cluster.beside(&oid.to_string()), tree);
        cluster.link_tablespace(oid, hung.path());
        let mut running = Running::start(&mut verify(&[], binary(), &cluster.path, "worker"));
        hung.wait_for(Event::Hung, 1);
        running.signal(Signal::INT);
        running.wait_for_message("\"text\":\"interrupted");
        hung.release();
        let report = Report::of(running.wait_for_end());
        assert_eq!(report.code, 130, "{case}: {report:?}");
        assert_eq!(report.summary["complete"], false, "{case}: {report:?}");
        assert_eq!(report.summary["blocks_scanned"], 0, "{case}: {report:?}");
    }
}

/// `doctor` reads a cluster's version and configuration before it tries anything.
#[test]
fn ctrl_c_while_doctor_opens_a_file() {
    if !need::fuse() {
        return;
    }
    let cluster = Cluster::with_files(1, 1);
    for name in ["PG_VERSION", "postgresql.conf"] {
        let mut tree = Tree::new().directory("global", Fault::None);
        if name != "PG_VERSION" {
            tree = tree.file("PG_VERSION", b"18\n".to_vec(), Fault::None);
        }
        let tree = tree.file(name, b"18\n".to_vec(), Fault::HangOpen);
        let mut hung = Mount::new(cluster.beside(name), tree);
        let mut running = Running::start(&mut doctor(&[], hung.path(), &[]));
        hung.wait_for(Event::Hung, 1);
        running.signal(Signal::INT);
        running.wait_for_message("\"text\":\"interrupted");
        hung.release();
        assert_eq!(running.wait_for_end().status.code(), Some(130), "{name}");
    }
}

/// A mount that hangs for a while is verified like any other.
#[test]
fn a_mount_that_recovers() {
    if !need::fuse() {
        return;
    }
    for method in ["worker", "io_uring", "sync"] {
        let cluster = Cluster::with_files(1, 1);
        let tree = Tree::new().file(&file(16_600), relation(400), Fault::AnswersLate);
        let mut hung = Mount::new(cluster.beside("hung"), tree);
        cluster.link_tablespace(16_400, hung.path());
        let running = Running::start(&mut verify(&[], binary(), &cluster.path, method));
        hung.wait_for(Event::Hung, 1);
        hung.release();
        let report = Report::of(running.wait_for_end());
        assert_eq!(report.code, 0, "{method}: {report:?}");
        assert_eq!(report.summary["blocks_scanned"], 401, "{method}: {report:?}");
    }
}
