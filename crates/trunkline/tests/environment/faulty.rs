//! Runs `verify` on file systems that return errors, report wrong sizes or refuse direct I/O. It
//! must report each failure with the file and the block, and it must still verify everything else.

use serde_json::{Value, json};
use trunkline_format::BLOCK_SIZE;

use crate::cluster::{Cluster, file, relation};
use crate::fuse::{Fault, Mount, Tree};
use crate::need;
use crate::verify::{DIRECT, METHODS, binary, run, verify};

const BLOCKS: u32 = 100;

/// Mounts a tablespace that contains a valid file, a faulty file and another valid file.
fn mounted(cluster: &Cluster, fault: Fault, blocks: u32) -> Mount {
    let tree = Tree::new()
        .file(&file(16_500), relation(BLOCKS), Fault::None)
        .file(&file(16_501), relation(blocks), fault)
        .file(&file(16_502), relation(BLOCKS), Fault::None);
    let mount = Mount::new(cluster.beside("faulty"), tree);
    cluster.link_tablespace(16_400, mount.path());
    mount
}

/// The faulty file's name in a report.
fn faulty_file() -> String {
    format!("pg_tblspc/16400/{}", file(16_501))
}

/// Runs `verify` with every method, buffered and direct. `scanned` is the number of blocks it must
/// have read from the faulty file. Each expected finding consists of a block, a kind, and a text
/// that must appear in the message.
fn check(fault: Fault, blocks: u32, scanned: u32, expected: &[(Value, &str, &str)]) {
    let cluster = Cluster::with_files(3, 1);
    let _mount = mounted(&cluster, fault.clone(), blocks);
    for method in METHODS {
        for direct in DIRECT {
            let mut command = verify(&[], binary(), &cluster.path, method);
            let report = run(command.args(direct));
            let case = format!("{fault:?}, {method}, {direct:?}: {report:?}");
            assert_eq!(report.code, 1, "{case}");
            assert_eq!(report.summary["complete"], true, "{case}");
            assert_eq!(report.summary["files_scanned"], 6, "{case}");
            assert_eq!(report.summary["blocks_scanned"], 3 + 2 * BLOCKS + scanned, "{case}");
            let findings = report.summary["findings"].as_array().expect("a list");
            assert_eq!(findings.len(), expected.len(), "{case}");
            for (finding, (block, kind, text)) in findings.iter().zip(expected) {
                assert_eq!(finding["file"], faulty_file(), "{case}");
                assert_eq!(&finding["block"], block, "{case}");
                assert_eq!(finding["kind"], *kind, "{case}");
                assert!(finding["text"].as_str().expect("text").contains(text), "{case}");
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
    let error = |number: u32| (json!(number), "unreadable", "Input/output error");
    check(Fault::Eio(17 * block..18 * block), BLOCKS, BLOCKS - 1, &[error(17)]);
    // Two bytes that straddle a block boundary which is also a read boundary.
    let edge = 16 * block;
    check(Fault::Eio(edge - 1..edge + 1), BLOCKS, BLOCKS - 2, &[error(15), error(16)]);
}

#[test]
fn lengths_that_lie() {
    if !need::fuse() {
        return;
    }
    let shrank = |block: u32| (json!(block), "shrank", "file ended while it was read");
    let claims = |blocks: u64| Fault::Claims(blocks * BLOCK_SIZE as u64);
    check(claims(u64::from(BLOCKS)), 10, 10, &[shrank(10)]);
    check(claims(u64::from(BLOCKS)), 0, 0, &[shrank(0)]);
    // A size larger than a segment, and the largest size the kernel accepts.
    let long = (Value::Null, "file", "");
    check(claims(200_000), 10, 10, &[long.clone(), shrank(10)]);
    check(claims(i64::MAX as u64 / BLOCK_SIZE as u64), 10, 10, &[long, shrank(10)]);
}

#[test]
fn direct_reads_refused() {
    if !need::fuse() {
        return;
    }
    let cluster = Cluster::with_files(3, 1);
    let tree = Tree::new().file(&file(16_501), relation(BLOCKS), Fault::NoDirect);
    let mount = Mount::new(cluster.beside("refusing"), tree);
    cluster.link_tablespace(16_400, mount.path());
    for method in METHODS {
        let report = run(&mut verify(&[], binary(), &cluster.path, method));
        assert_eq!(report.code, 0, "{method}: {report:?}");
        let mut command = verify(&[], binary(), &cluster.path, method);
        let report = run(command.args(["--io-direct", "data"]));
        assert_eq!((report.code, report.stdout.as_str()), (3, ""), "{method}: {report:?}");
        let file = cluster.path.join(faulty_file());
        let expected = format!(
            "\"{}\" cannot be opened for direct I/O: the file system, fuse, does not support it",
            file.display(),
        );
        assert!(report.has_message("error", &expected), "{method}: {report:?}");
    }
}
