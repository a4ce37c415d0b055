//! Sixteen and thirty-two buffers, all of them with something to write, and sessions that change pages
//! all the time: everybody goes on, nobody is refused a pin that is guaranteed, and nothing is lost.

use crate::rig::{Rig, Setup, Task, check, check_simulated};
use trunkline_aio::Operation;
use trunkline_aio::sync::Arc;
use trunkline_engine::checkpoint::CheckpointOptions;
use trunkline_engine::pool::PINS_GUARANTEED;

const SESSIONS: u32 = 8;
const BLOCKS: u32 = 48;

/// Changes the blocks of one session again and again; beside each it has as many pages pinned as it is
/// guaranteed.
fn work(rig: &Arc<Rig>, session: u32, steps: u32) {
    let mut backend = rig.backend();
    let relation = rig.relation(0);
    for step in 0..steps {
        let own = session + SESSIONS * (step % (BLOCKS / SESSIONS));
        let pin = backend.read(&relation, own).unwrap_or_else(|error| panic!("{error}"));
        let others: Vec<_> = (1..PINS_GUARANTEED * (step % 2))
            .map(|other| {
                let block = (own + other * 7) % BLOCKS;
                backend.read(&relation, block).unwrap_or_else(|error| panic!("{error}"))
            })
            .collect();
        rig.change_pinned(&mut backend, 0, &pin, step + 1);
        drop((others, pin));
    }
}

/// The version that `work` has left in a block.
fn last_version(block: u32, steps: u32) -> u32 {
    let (turn, turns) = (block / SESSIONS, BLOCKS / SESSIONS);
    (0..steps).rev().find(|step| step % turns == turn).map_or(0, |step| step + 1)
}

fn run(rig: &Arc<Rig>, sessions: u32) {
    let steps = if rig.is_simulated() { 12 } else { 120 };
    if rig.bench.local {
        (0..SESSIONS).for_each(|session| work(rig, session, steps));
    } else {
        let work = |session| rig.spawn("session", move |rig| work(rig, session, steps));
        let tasks: Vec<_> = (0..sessions).map(work).collect();
        tasks.into_iter().for_each(Task::join);
    }
    assert!(rig.pool.permits() <= rig.pool.buffers());
    rig.checkpoint(&mut rig.backend()).expect("a checkpoint");
    for block in 0..BLOCKS {
        assert!(rig.is_on_disk(block, last_version(block, steps)), "block {block}");
    }
}

#[test]
fn sixteen_buffers() {
    let setup = Setup { buffers: 16, blocks: BLOCKS, local: true, seeds: 2, ..Setup::default() };
    check(setup, |rig| run(rig, SESSIONS));
}

#[test]
fn thirty_two_buffers_and_few_handles() {
    let setup = Setup {
        buffers: 32,
        blocks: BLOCKS,
        local: true,
        seeds: 2,
        handles: 8,
        ..Setup::default()
    };
    check(setup, |rig| run(rig, SESSIONS));
}

/// Checkpoints one after the other meanwhile, and the background writer.
#[test]
fn with_checkpoints_and_the_background_writer() {
    use trunkline_engine::checkpoint::{BackgroundWriter, BackgroundWriterSettings};
    let setup = Setup { buffers: 16, blocks: BLOCKS, seeds: 2, ..Setup::default() };
    check(setup, |rig| {
        let settings = BackgroundWriterSettings {
            delay: std::time::Duration::from_millis(1),
            ..BackgroundWriterSettings::default()
        };
        let writer = BackgroundWriter::start(&rig.pool, settings).expect("starts");
        let worker = rig.spawn("all", |rig| run(rig, SESSIONS));
        let mut backend = rig.backend();
        while !worker.is_done() {
            rig.checkpoint(&mut backend).expect("a checkpoint");
            rig.let_others_go();
        }
        worker.join();
        drop(writer);
    });
}

/// Every handle that a session could have for a write is at a mount that hangs: who needs a buffer goes
/// on when somebody lets go of a clean one.
#[test]
fn a_buffer_comes_free_while_there_is_no_handle() {
    let setup = Setup { buffers: 16, blocks: 64, handles: 8, ..Setup::default() };
    check_simulated(setup, |rig| {
        // A session that writes by itself is where its write is, if the mount hangs from then on.
        if !rig.is_asynchronous() || rig.bench.at_once {
            return;
        }
        let mut backend = rig.backend();
        let clean = backend.read(&rig.relation(0), 0).expect("reads");
        (1..16).for_each(|block| rig.change(&mut backend, block, 1));
        let held: Vec<_> = (1..16).map(|block| rig.hold_write(block)).collect();
        let checkpoint = rig.spawn("checkpoint", |rig| {
            let options = CheckpointOptions { combine: 1, ..CheckpointOptions::default() };
            rig.checkpoint_with(&mut rig.backend(), options).expect("a checkpoint");
        });
        rig.wait_until("writes under way", || (1..16).any(|block| rig.is_under_io(block)));
        rig.let_others_go();
        let reader = rig.spawn("reader", |rig| rig.assert_reads(&mut rig.backend(), 20, 0));
        rig.let_others_go();
        assert!(!reader.is_done(), "there is no buffer");
        drop(clean);
        rig.wait_until("a page that is read meanwhile", || reader.is_done());
        assert!(!checkpoint.is_done());
        drop(held);
        reader.join();
        checkpoint.join();
    });
}

/// One page is clean, the one that was used most, and all others have something to write: it goes, and
/// nothing is written.
#[test]
fn a_clean_page_goes_before_anything_is_written() {
    let setup = Setup { buffers: 16, blocks: 64, local: true, seeds: 3, ..Setup::default() };
    check(setup, |rig| {
        let mut backend = rig.backend();
        (1..16).for_each(|block| rig.change(&mut backend, block, 1));
        (0..6).for_each(|_| rig.assert_reads(&mut backend, 0, 0));
        rig.hooks.record();
        for block in 20..40 {
            rig.assert_reads(&mut backend, block, 0);
        }
        let written = rig.hooks.recorded();
        let written = written.iter().filter(|io| io.operation == Operation::Writev).count();
        assert_eq!(written, 0);
        assert!((1..16).all(|block| rig.is_dirty(0, block)));
    });
}

/// Who writes is counted, for the relation that he has written of; and the system is told to write back
/// what a session has written to make room.
#[test]
fn writes_are_counted_by_who_made_them() {
    let setup = Setup { buffers: 64, blocks: 256, seeds: 2, ..Setup::default() };
    check(setup, |rig| {
        rig.create(1, 64);
        let mut backend = rig.backend();
        backend.set_flush_after(4);
        (0..64).for_each(|block| rig.change_in(&mut backend, 1, block, 1));
        (0..256).for_each(|block| rig.change(&mut backend, block, 1));
        rig.wait_until("no write under way", || rig.aio.handles_in_use() == 0);
        drop(backend);
        let before = rig.checkpoint(&mut rig.backend()).expect("a checkpoint").buffers;
        let mut written = [0; 2];
        let mut told = 0;
        for (key, tally) in rig.pool.counts() {
            assert_eq!(tally.writes > 0, tally.written_blocks > 0, "{key:?}");
            let number = key.relation.relfilenode - rig.relation(0).locator().relfilenode;
            written[number as usize] += tally.written_blocks;
            told += tally.writebacks;
        }
        assert_eq!(written, [256, 64], "{before} by the checkpoint");
        // What has ended together, and is near together, is told as one.
        assert!(told >= 2, "{told}");
    });
}
