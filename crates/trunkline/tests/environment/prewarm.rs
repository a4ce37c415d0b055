//! `prewarm` into a pool on file systems that fail, report wrong sizes or hang. Failures must be
//! reported with file and block, the other blocks loaded, and Ctrl-C must end the command.

use std::path::Path;
use std::process::Command;

use rustix::process::Signal;
use trunkline_format::BLOCK_SIZE;

use crate::child::Running;
use crate::cluster::{Cluster, file, relation};
use crate::fuse::{Event, Fault, Mount, Tree};
use crate::need;
use crate::verify::{DIRECT, METHODS, Report, binary, run};

const BLOCKS: u32 = 100;

fn prewarm(directory: &Path, method: &str) -> Command {
    let mut command = Command::new(binary());
    command.env_remove("PGDATA").env_remove("PGDATABASE").current_dir("/");
    let options = ["--json", "--io-method", method, "--shared-buffers", "4MB", "-D"];
    command.arg("prewarm").args(options).arg(directory);
    command
}

/// Prewarms a tablespace with a valid relation, a faulty relation of `blocks` blocks and another
/// valid one.
fn check(fault: Fault, blocks: u32, prewarmed: u32, expected: &[&str]) {
    let cluster = Cluster::with_files(3, 1);
    let tree = Tree::new()
        .file(&file(16_500), relation(BLOCKS), Fault::None)
        .file(&file(16_501), relation(blocks), fault.clone())
        .file(&file(16_502), relation(BLOCKS), Fault::None);
    let mount = Mount::new(cluster.beside("faulty"), tree);
    cluster.link_tablespace(16_400, mount.path());
    for method in METHODS {
        for direct in DIRECT {
            let report = run(prewarm(&cluster.path, method).args(direct));
            let case = format!("{fault:?}, {method}, {direct:?}: {report:?}");
            assert_eq!(report.code, 1, "{case}");
            assert_eq!(report.summary["complete"], true, "{case}");
            assert_eq!(report.summary["blocks"], 3 + 2 * BLOCKS + prewarmed, "{case}");
            assert_eq!(report.summary["failures"], expected.len(), "{case}");
            for text in expected {
                let name = file(16_501);
                let line = format!("pg_tblspc/16400/{name}: {text}");
                assert!(report.has_message("warning", &line), "{line}: {case}");
            }
        }
    }
}

#[test]
fn blocks_that_cannot_be_read() {
    if !need::fuse() {
        return;
    }
    let block = BLOCK_SIZE as u64;
    let errors = [15, 16].map(|block| format!("block {block}: could not be read: Input/output"));
    let errors = errors.each_ref().map(String::as_str);
    check(Fault::Eio(15 * block..17 * block), BLOCKS, BLOCKS - 2, &errors);
}

#[test]
fn a_length_that_lies() {
    if !need::fuse() {
        return;
    }
    let claims = Fault::Claims(u64::from(BLOCKS) * BLOCK_SIZE as u64);
    let text = "block 10: file ended while it was read; 89 blocks after it";
    check(claims, 10, 10, &[text]);
}

/// Interrupts `prewarm` on a cluster with two tablespaces, the second of which hangs.
fn interrupted(method: &str, direct: &[&str], fault: Fault, killable: bool) {
    let case = format!("{method}, {direct:?}, {fault:?}");
    println!("{case}");
    let cluster = Cluster::new();
    let sound = Tree::new().file(&file(16_500), relation(BLOCKS), Fault::None);
    let mut sound = Mount::new(cluster.beside("sound"), sound);
    let hung = Tree::new().file(&file(16_600), relation(400), fault);
    let mut hung = Mount::new(cluster.beside("hung"), hung);
    cluster.link_tablespace(16_400, sound.path());
    cluster.link_tablespace(16_401, hung.path());
    let mut running = Running::start(prewarm(&cluster.path, method).args(direct));
    hung.wait_for(Event::Hung, 1);
    // Prewarm keeps the file open, so there's no `Finished` event to wait for.
    sound.wait_for(Event::End, 1);
    running.signal(Signal::INT);
    running.wait_for_message("\"text\":\"interrupted");
    if !killable {
        hung.release();
    }
    let report = Report::of(running.wait_for_end());
    assert_eq!(report.code, 130, "{case}: {report:?}");
    assert_eq!(report.summary["complete"], false, "{case}: {report:?}");
    assert_eq!(report.summary["failures"], 0, "{case}: {report:?}");
}

#[test]
fn ctrl_c_while_a_read_hangs() {
    if !need::fuse() {
        return;
    }
    for method in METHODS {
        interrupted(method, DIRECT[0], Fault::HangRead, true);
        interrupted(method, DIRECT[1], Fault::HangRead, false);
    }
}

#[test]
fn ctrl_c_while_an_open_hangs() {
    if !need::fuse() {
        return;
    }
    interrupted("worker", DIRECT[0], Fault::HangOpen, false);
}
