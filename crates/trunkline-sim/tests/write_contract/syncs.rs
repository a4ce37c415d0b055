//! A sync at the end of a checkpoint goes through the very file that was written: the system may tell an
//! error of writing back to nobody else, whatever has become of the name and of the table of open files.

use crate::rig::{Rig, Setup, check};
use std::fs;
use trunkline_aio::sync::Arc;
use trunkline_aio::{Observed, Operation};
use trunkline_engine::checkpoint::CheckpointError;
use trunkline_engine::pool::Backend;
use trunkline_engine::write_stream::{WriteOptions, WriteStream};

/// What has become of a file between its writes and its sync.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Since {
    /// The table of open files has let go of it, for others.
    Closed,
    /// The same, and there is another file of that name by now.
    Replaced,
    /// The same, and the table has opened that.
    Reopened,
}

const ALL: [Since; 3] = [Since::Closed, Since::Replaced, Since::Reopened];

const SETUP: Setup =
    Setup { local: true, buffers: 64, blocks: 16, handles: 64, seeds: 2, direct: false };

/// Changes the pages of relation 0 and writes them, as the background writer does: nothing is synced.
fn write_unsynced(rig: &Rig, backend: &mut Backend, version: u32) {
    (0..16).for_each(|block| rig.change(backend, block, version));
    let mut stream = WriteStream::new(backend, WriteOptions::default());
    let relation = rig.relation(0);
    let mut rows = rig.pool.rows();
    rows.retain(|row| row.relation == relation.locator());
    rows.sort_unstable_by_key(|row| row.block);
    for row in rows {
        stream.write(backend, &relation, row.block, row.bufferid - 1).expect("gathered");
    }
    assert_eq!(stream.finish(backend).expect("written").blocks, 16);
}

/// Opens other files until the table has no room for that of relation 0.
fn push_out(rig: &Rig, backend: &mut Backend) {
    let relation = rig.relation(0);
    for number in (10..30).cycle() {
        if !relation.is_open(0) {
            return;
        }
        rig.relation(number).locate(0).expect("opens it");
        rig.pool.evict_relation(&rig.relation(number), 0);
        drop(backend.read(&rig.relation(number), 0).expect("reads"));
    }
}

/// Replaces the file of relation 0 past the engine.
fn replace(rig: &Rig) {
    let path = rig.relation(0).path(0);
    if rig.is_simulated() {
        rig.disk.remove(path.to_str().expect("a name"));
    } else {
        fs::rename(&path, path.with_extension("gone")).expect("renamed");
    }
    rig.create(0, 16);
}

/// The file that was written, after all that; its syncs are recorded from now on.
fn prepare(rig: &Rig, backend: &mut Backend, since: Since, version: u32) -> u64 {
    rig.hooks.record();
    write_unsynced(rig, backend, version);
    let written = files(rig, Operation::Writev);
    assert_eq!(written.len(), 1, "one segment");
    push_out(rig, backend);
    if since != Since::Closed {
        replace(rig);
    }
    if since == Since::Reopened {
        let now = rig.relation(0).locate(0).expect("opens it").file.id();
        assert_ne!(now, written[0]);
    }
    rig.hooks.record();
    written[0]
}

/// Files that met an operation since the rig began to record, each once.
fn files(rig: &Rig, operation: Operation) -> Vec<u64> {
    let recorded = rig.hooks.recorded().into_iter().filter(|io| io.operation == operation);
    let mut files: Vec<u64> = recorded.map(|io: Observed| io.file_id).collect();
    files.sort_unstable();
    files.dedup();
    files
}

#[test]
fn what_was_written_is_synced() {
    check(SETUP, |rig: &Arc<Rig>| {
        (10..30).for_each(|number| rig.create(number, 1));
        let mut backend = rig.backend();
        for (since, version) in ALL.into_iter().zip(1..) {
            let written = prepare(rig, &mut backend, since, version);
            let report = rig.checkpoint(&mut backend).expect("a checkpoint");
            assert_eq!((report.buffers, report.files), (0, 1), "{since:?}: {report:?}");
            assert_eq!(files(rig, Operation::Fsync), [written], "{since:?}");
        }
    });
}

fn an_error_is_not_missed(rig: &Arc<Rig>, since: Since) {
    (10..30).for_each(|number| rig.create(number, 1));
    let mut backend = rig.backend();
    let written = prepare(rig, &mut backend, since, 1);
    // The system could not write back; it tells who had the file open then.
    rig.hooks.change_results(move |io, raw| {
        let told = io.operation == Operation::Fsync && io.file_id == written;
        if told { -libc::EIO } else { raw }
    });
    let error = rig.checkpoint(&mut backend).expect_err("pages are lost");
    let CheckpointError::Sync { path: Some(path), .. } = &error else {
        panic!("{since:?}: {error}");
    };
    assert!(path.ends_with("base/5/16384"), "{error}");
    rig.no_trouble();
    let again = rig.checkpoint(&mut backend).expect_err("for ever");
    assert!(matches!(again, CheckpointError::Sync { path: None, .. }), "{again}");
}

#[test]
fn an_error_is_not_missed_when_the_file_was_closed() {
    check(SETUP, |rig| an_error_is_not_missed(rig, Since::Closed));
}

#[test]
fn an_error_is_not_missed_when_the_file_was_replaced() {
    check(SETUP, |rig| an_error_is_not_missed(rig, Since::Replaced));
}

#[test]
fn an_error_is_not_missed_when_another_file_was_opened() {
    check(SETUP, |rig| an_error_is_not_missed(rig, Since::Reopened));
}
