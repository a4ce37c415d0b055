//! A checkpoint's fsync must use the same open file description as the writes.
//!
//! The kernel may report a writeback error only through file descriptors that were open when the
//! error happened. By the time a checkpoint calls fsync, the open-file table may already have
//! closed the file, and a different file may have the same name. PostgreSQL's checkpointer simply
//! opens the segment by name, so it relies on the kernel to remember the error.

use std::fs;
use trunkline_aio::facade::Arc;
use trunkline_aio::{Observed, Operation};
use trunkline_engine::checkpoint::CheckpointError;
use trunkline_engine::pool::Backend;
use trunkline_engine::write_stream::{WriteOptions, WriteStream};
use trunkline_sim::matrix::cluster::check;
use trunkline_sim::matrix::{Cluster, Needs, Pools};

/// The fate of a file between its writes and its fsync.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Since {
    /// The open-file table has closed it to make room for another file.
    Closed,
    /// It was closed, and its name now refers to a different file.
    Replaced,
    /// It was replaced, and the open-file table has opened the new file.
    Reopened,
}

const ALL: [Since; 3] = [Since::Closed, Since::Replaced, Since::Reopened];

const NEEDS: Needs = Needs {
    pools: Pools::Both,
    buffers: 64,
    blocks: 16,
    handles: 64,
    seeds: 2,
    ..Needs::writable()
};

/// Changes the pages of relation 0 and writes them without an fsync, as the background writer
/// would.
fn write_unsynced(cluster: &Cluster, backend: &mut Backend, version: u32) {
    (0..16).for_each(|block| cluster.change(backend, block, version));
    let mut stream = WriteStream::new(backend, WriteOptions::default());
    let relation = cluster.relation(0);
    let mut rows = cluster.pool.rows();
    rows.retain(|row| row.relation == relation.locator());
    rows.sort_unstable_by_key(|row| row.block);
    for row in rows {
        stream.write(backend, &relation, row.block, row.bufferid - 1).expect("gathered");
    }
    assert_eq!(stream.finish(backend).expect("written").blocks, 16);
}

/// Opens other files until the open-file table has closed relation 0's file.
fn push_out(cluster: &Cluster, backend: &mut Backend) {
    let relation = cluster.relation(0);
    for number in (10..30).cycle() {
        if !relation.is_open(0) {
            return;
        }
        cluster.relation(number).locate(0).expect("opens it");
        cluster.pool.evict_relation(&cluster.relation(number), 0);
        drop(backend.read(&cluster.relation(number), 0).expect("reads"));
    }
}

/// Replaces relation 0's file, bypassing the engine.
fn replace(cluster: &Cluster) {
    let path = cluster.relation(0).path(0);
    if cluster.is_simulated() {
        cluster.disk.remove(path.to_str().expect("a name"));
    } else {
        fs::rename(&path, path.with_extension("gone")).expect("renamed");
    }
    cluster.create(0, 16);
}

/// Writes the file's pages and closes the file. Depending on `since`, it then replaces the file as
/// well. Returns the id of the file that was written. The probe then records only the I/Os that
/// are issued after this.
fn prepare(cluster: &Cluster, backend: &mut Backend, since: Since, version: u32) -> u64 {
    cluster.probe.record();
    write_unsynced(cluster, backend, version);
    let written = files(cluster, Operation::Writev);
    assert_eq!(written.len(), 1, "one segment");
    push_out(cluster, backend);
    if since != Since::Closed {
        replace(cluster);
    }
    if since == Since::Reopened {
        let now = cluster.relation(0).locate(0).expect("opens it").file.id();
        assert_ne!(now, written[0]);
    }
    cluster.probe.record();
    written[0]
}

/// The distinct files on which an operation was issued since recording began.
fn files(cluster: &Cluster, operation: Operation) -> Vec<u64> {
    let recorded = cluster.probe.recorded().into_iter().filter(|io| io.operation == operation);
    let mut files: Vec<u64> = recorded.map(|io: Observed| io.file_id).collect();
    files.sort_unstable();
    files.dedup();
    files
}

/// The checkpoint must sync the file that was actually written, even if its name now refers to
/// another file.
#[test]
fn the_file_that_was_written_is_synced() {
    check(NEEDS, |cluster: &Arc<Cluster>| {
        (10..30).for_each(|number| cluster.create(number, 1));
        let mut backend = cluster.backend();
        for (since, version) in ALL.into_iter().zip(1..) {
            let written = prepare(cluster, &mut backend, since, version);
            let report = cluster.checkpoint(&mut backend).expect("a checkpoint");
            assert_eq!((report.buffers, report.files), (0, 1), "{since:?}: {report:?}");
            assert_eq!(files(cluster, Operation::Fsync), [written], "{since:?}");
        }
    });
}

/// The kernel may report a writeback error only through file descriptors that were open when the
/// error happened. The checkpoint must still see that error.
fn an_error_is_not_missed(cluster: &Arc<Cluster>, since: Since) {
    (10..30).for_each(|number| cluster.create(number, 1));
    let mut backend = cluster.backend();
    let written = prepare(cluster, &mut backend, since, 1);
    // Only this file's fsync fails, as if writeback had failed while it was open.
    cluster.probe.change_results(move |io, raw| {
        let failed = io.operation == Operation::Fsync && io.file_id == written;
        if failed { -libc::EIO } else { raw }
    });
    let error = cluster.checkpoint(&mut backend).expect_err("pages are lost");
    let CheckpointError::Sync { location, .. } = &error else {
        panic!("{since:?}: {error}");
    };
    assert!(location.path().ends_with("base/5/16384"), "{error}");
    cluster.clear_faults();
    let again = cluster.checkpoint(&mut backend).expect_err("permanent");
    assert!(matches!(again, CheckpointError::EarlierSync), "{again}");
}

#[test]
fn an_error_is_not_missed_when_the_file_was_closed() {
    check(NEEDS, |cluster| an_error_is_not_missed(cluster, Since::Closed));
}

#[test]
fn an_error_is_not_missed_when_the_file_was_replaced() {
    check(NEEDS, |cluster| an_error_is_not_missed(cluster, Since::Replaced));
}

#[test]
fn an_error_is_not_missed_when_another_file_was_opened() {
    check(NEEDS, |cluster| an_error_is_not_missed(cluster, Since::Reopened));
}
