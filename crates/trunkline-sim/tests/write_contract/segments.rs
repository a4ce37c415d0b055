//! Extension across the end of a segment, and a checkpoint that writes to two tablespaces.

use trunkline_aio::facade::Arc;
use trunkline_aio::{Observed, Operation};
use trunkline_engine::checkpoint::CheckpointOptions;
use trunkline_engine::pool::ExtendMethod;
use trunkline_engine::storage::{Relation, RelationLocator};
use trunkline_format::{BLOCK_SIZE, Fork, Oid, SEGMENT_BLOCKS};
use trunkline_sim::matrix::cluster::{check_real, check_simulated};
use trunkline_sim::matrix::{Cluster, FileCall, Needs, page};

/// One extension fails at the end of a segment, and another one fails at the start of the next
/// segment. Between the two failures, a third session has added pages after the blocks of both.
/// Those pages must still be part of the relation.
#[test]
fn pages_behind_two_failures_are_found() {
    check_real(Needs::writable(), |cluster| {
        let relation = cluster.relation(3);
        cluster.create(3, 1);
        let file = std::fs::OpenOptions::new().write(true).open(relation.path(0));
        let length = u64::from(SEGMENT_BLOCKS - 12) * BLOCK_SIZE as u64;
        file.and_then(|file| file.set_len(length)).expect("made longer");
        let theirs = Arc::clone(cluster);
        // This runs just before the first session allocates at the end of the segment.
        cluster.files.before(FileCall::Allocate, move || {
            let third = Arc::clone(&theirs);
            theirs.files.before(FileCall::Open, move || put_behind(&third));
            let second = extend(&theirs);
            second.expect_err("no room for a second file");
            theirs.files.fail(FileCall::Allocate, libc::ENOSPC);
        });
        extend(cluster).expect_err("no room");
        cluster.files.clear_fault();
        let mut backend = cluster.backend();
        cluster.checkpoint(&mut backend).expect("a checkpoint");
        let blocks = relation.blocks().expect("a length");
        assert_eq!(blocks, SEGMENT_BLOCKS + 24, "pages of block {} and on", SEGMENT_BLOCKS + 12);
    });
}

/// Extends the relation by 12 blocks.
fn extend(cluster: &Arc<Cluster>) -> Result<(), String> {
    let extended = cluster.backend().extend(&cluster.relation(3), 12, ExtendMethod::PosixFallocate);
    extended.map(drop).map_err(|error| error.to_string())
}

/// The third session. It extends before the second session opens the next segment, and then makes
/// that open fail.
fn put_behind(cluster: &Arc<Cluster>) {
    let mut backend = cluster.backend();
    let method = ExtendMethod::PosixFallocate;
    let pins = backend.extend(&cluster.relation(3), 12, method).expect("room");
    assert_eq!(pins[0].page().block(), SEGMENT_BLOCKS + 12);
    pins.iter().for_each(|pin| cluster.change_pinned(&mut backend, 3, pin, 5));
    cluster.files.fail(FileCall::Open, libc::ENOSPC);
}

/// Creates a relation in a different tablespace, on a different mount.
fn elsewhere(cluster: &Cluster, blocks: u32) -> Relation {
    let relfilenode = cluster.relation(0).locator().relfilenode;
    let locator = RelationLocator { tablespace: Oid(40_000), database: Oid(5), relfilenode };
    let relation = cluster.storage.relation(locator, Fork::Main);
    let bytes: Vec<u8> = (0..blocks).flat_map(|block| page(0, block, 0, 0)).collect();
    cluster.disk.create(relation.path(0).to_str().expect("a name"), 2, &bytes);
    relation
}

/// Each tablespace may be on a different disk, so a checkpoint balances its writes across the
/// tablespaces, as in PostgreSQL. At any time, about the same fraction of the dirty pages must have
/// been written in each of them.
#[test]
fn tablespaces_are_written_in_turn() {
    const LARGE: u32 = 1024;
    const SMALL: u32 = 512;
    /// Number of pages written to one tablespace before the checkpoint turns to the other one.
    const TURN: u32 = 256;
    let needs = Needs { buffers: LARGE + SMALL + 16, blocks: LARGE, seeds: 1, ..Needs::writable() };
    check_simulated(needs, |cluster| {
        let (large, small) = (cluster.relation(0), elsewhere(cluster, SMALL));
        let mut backend = cluster.backend();
        for (relation, blocks) in [(&large, LARGE), (&small, SMALL)] {
            for block in 0..blocks {
                let pin = backend.read(relation, block).expect("reads");
                cluster.change_pinned(&mut backend, 0, &pin, 1);
            }
        }
        cluster.probe.record();
        let options = CheckpointOptions::default();
        let report = cluster.checkpoint_with(&mut backend, options).expect("a checkpoint");
        assert_eq!((report.buffers, report.files), (u64::from(LARGE + SMALL), 2));
        let written = cluster.probe.recorded().into_iter();
        let written = written.filter(|io: &Observed| io.operation == Operation::Writev);
        let file = large.locate(0).expect("open").file.id();
        let mut done = [0_u32; 2];
        for io in written {
            done[usize::from(io.file_id != file)] += io.length / BLOCK_SIZE as u32;
            // Cross-multiplied, so that we can compare integers.
            let parts = [done[0] * SMALL, done[1] * LARGE];
            let turn = (TURN + 16) * LARGE;
            assert!(parts[0].abs_diff(parts[1]) <= turn, "{done:?} of {LARGE} and {SMALL}");
        }
        assert_eq!(done, [LARGE, SMALL]);
    });
}
