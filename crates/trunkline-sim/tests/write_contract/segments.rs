//! Borders: the end of a segment and the beginning of the next, and two tablespaces in one checkpoint.

use crate::rig::{Call, Rig, Setup, check_real, check_simulated, page};
use trunkline_aio::sync::Arc;
use trunkline_aio::{Observed, Operation};
use trunkline_engine::checkpoint::CheckpointOptions;
use trunkline_engine::pool::ExtendMethod;
use trunkline_engine::storage::{Relation, RelationLocator};
use trunkline_format::{BLOCK_SIZE, Fork, Oid, SEGMENT_BLOCKS};

/// The end of a segment and the beginning of the next one are given out, and fail; what a third session
/// has put behind them is there all the same.
#[test]
fn pages_behind_two_failures_are_found() {
    check_real(Setup::default(), |rig| {
        let relation = rig.relation(3);
        rig.create(3, 1);
        let file = std::fs::OpenOptions::new().write(true).open(relation.path(0));
        let length = u64::from(SEGMENT_BLOCKS - 12) * BLOCK_SIZE as u64;
        file.and_then(|file| file.set_len(length)).expect("made longer");
        let theirs = Arc::clone(rig);
        // While the first session is about to make room at the end of the segment.
        rig.files.before_allocation(move || {
            let third = Arc::clone(&theirs);
            theirs.files.before_open(move || put_behind(&third));
            let second = extend(&theirs);
            second.expect_err("no room for a second file");
            theirs.files.refuse(Call::Allocate, libc::ENOSPC);
        });
        extend(rig).expect_err("no room");
        rig.files.refuse_nothing();
        let mut backend = rig.backend();
        rig.checkpoint(&mut backend).expect("a checkpoint");
        let blocks = relation.blocks().expect("looks");
        assert_eq!(blocks, SEGMENT_BLOCKS + 24, "pages of block {} and on", SEGMENT_BLOCKS + 12);
    });
}

fn extend(rig: &Arc<Rig>) -> Result<(), String> {
    let extended = rig.backend().extend(&rig.relation(3), 12, ExtendMethod::PosixFallocate);
    extended.map(drop).map_err(|error| error.to_string())
}

/// The third session, when the second is about to make the next segment, and fails to.
fn put_behind(rig: &Arc<Rig>) {
    let mut backend = rig.backend();
    let method = ExtendMethod::PosixFallocate;
    let pins = backend.extend(&rig.relation(3), 12, method).expect("room");
    assert_eq!(pins[0].page().block(), SEGMENT_BLOCKS + 12);
    pins.iter().for_each(|pin| rig.change_pinned(&mut backend, 3, pin, 5));
    rig.files.refuse(Call::Open, libc::ENOSPC);
}

/// A relation in a tablespace of its own.
fn elsewhere(rig: &Rig, blocks: u32) -> Relation {
    let relfilenode = rig.relation(0).locator().relfilenode;
    let locator = RelationLocator { tablespace: Oid(40_000), database: Oid(5), relfilenode };
    let relation = rig.storage.relation(locator, Fork::Main);
    let bytes: Vec<u8> = (0..blocks).flat_map(|block| page(0, block, 0, 0)).collect();
    rig.disk.create(relation.path(0).to_str().expect("a name"), 2, &bytes);
    relation
}

/// Each may be a disk of its own: at any time about the same part of each is written.
#[test]
fn tablespaces_are_written_in_turn() {
    const LARGE: u32 = 1024;
    const SMALL: u32 = 512;
    /// Pages of one turn.
    const TURN: u32 = 256;
    let setup = Setup { buffers: LARGE + SMALL + 16, blocks: LARGE, seeds: 1, ..Setup::default() };
    check_simulated(setup, |rig| {
        let (large, small) = (rig.relation(0), elsewhere(rig, SMALL));
        let mut backend = rig.backend();
        for (relation, blocks) in [(&large, LARGE), (&small, SMALL)] {
            for block in 0..blocks {
                let pin = backend.read(relation, block).expect("reads");
                rig.change_pinned(&mut backend, 0, &pin, 1);
            }
        }
        rig.hooks.record();
        let options = CheckpointOptions::default();
        let report = rig.checkpoint_with(&mut backend, options).expect("a checkpoint");
        assert_eq!((report.buffers, report.files), (u64::from(LARGE + SMALL), 2));
        let written = rig.hooks.recorded().into_iter();
        let written = written.filter(|io: &Observed| io.operation == Operation::Writev);
        let file = large.locate(0).expect("open").file.id();
        let mut done = [0_u32; 2];
        for io in written {
            done[usize::from(io.file_id != file)] += io.length / BLOCK_SIZE as u32;
            // In pages of both together, so that whole numbers can be compared.
            let parts = [done[0] * SMALL, done[1] * LARGE];
            let turn = (TURN + 16) * LARGE;
            assert!(parts[0].abs_diff(parts[1]) <= turn, "{done:?} of {LARGE} and {SMALL}");
        }
        assert_eq!(done, [LARGE, SMALL]);
    });
}
