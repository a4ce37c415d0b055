//! A file that takes long to be opened, since its mount hangs, keeps nobody's pages locked but its own:
//! what was claimed before is submitted first.

use crate::rig::{Rig, Setup, check_simulated};
use trunkline_aio::sync::Arc;
use trunkline_engine::pool::ExtendMethod;
use trunkline_sim::Gate;

/// The file of relation 1 is to be opened anew, as happens with more files than the table may have open,
/// and that takes until the second gate is opened. The first says when it has begun.
fn close_and_hold(rig: &Rig) -> (Gate, Gate) {
    rig.storage.forget(rig.relation(1).locator());
    let (opening, go) = (Gate::new(), Gate::new());
    let (told, gate) = (opening.clone(), go.clone());
    rig.files.before_open(move || {
        told.open();
        gate.pass();
    });
    (opening, go)
}

/// `work` writes pages of relation 0, then of 1, whose file is not open: meanwhile `block` of the former
/// can be changed.
fn assert_free_meanwhile(rig: &Arc<Rig>, block: u32, work: fn(&Arc<Rig>)) {
    let (opening, go) = close_and_hold(rig);
    let worker = rig.spawn("worker", work);
    rig.wait_until("it opens the second file", || opening.is_open());
    let writer = rig.spawn("writer", move |rig| rig.change(&mut rig.backend(), block, 2));
    rig.let_others_go();
    rig.let_others_go();
    let free = writer.is_done();
    go.open();
    writer.join();
    worker.join();
    assert!(free, "block {block} is locked by a write that nobody has submitted");
}

/// Where sessions write at once, nothing is ever staged.
fn stages(rig: &Rig) -> bool {
    rig.is_asynchronous() && !rig.bench.at_once
}

#[test]
fn by_a_checkpoint() {
    check_simulated(Setup { seeds: 4, ..Setup::default() }, |rig| {
        if !stages(rig) {
            return;
        }
        rig.create(1, 4);
        let mut backend = rig.backend();
        rig.change(&mut backend, 3, 1);
        rig.change_in(&mut backend, 1, 2, 1);
        assert_free_meanwhile(rig, 3, |rig| {
            rig.checkpoint(&mut rig.backend()).map(drop).expect("a checkpoint");
        });
    });
}

#[test]
fn by_a_session_that_makes_room() {
    check_simulated(Setup { buffers: 16, seeds: 4, ..Setup::default() }, |rig| {
        if !stages(rig) {
            return;
        }
        rig.create(1, 16);
        let mut backend = rig.backend();
        (0..8).for_each(|block| rig.change(&mut backend, block, 1));
        (0..8).for_each(|block| rig.change_in(&mut backend, 1, block, 1));
        assert_free_meanwhile(rig, 3, |rig| rig.assert_reads(&mut rig.backend(), 20, 0));
    });
}

/// A load goes round in a ring with pages of two relations.
#[test]
fn by_a_load() {
    let setup = Setup { buffers: 256, blocks: 0, seeds: 4, ..Setup::default() };
    check_simulated(setup, |rig| {
        if !stages(rig) {
            return;
        }
        rig.create(1, 0);
        let mut backend = rig.backend();
        let mut bulk = backend.bulk_write();
        for number in [0, 1] {
            let relation = rig.relation(number);
            let method = ExtendMethod::PosixFallocate;
            let pins = backend.extend_in_bulk(&mut bulk, &relation, 12, method).expect("room");
            pins.iter().for_each(|pin| rig.change_pinned(&mut backend, number, pin, 1));
        }
        let (opening, go) = close_and_hold(rig);
        let loader = rig.spawn("load", move |rig| {
            for _ in 0..4 {
                let (relation, method) = (rig.relation(2), ExtendMethod::PosixFallocate);
                let pins = backend.extend_in_bulk(&mut bulk, &relation, 8, method).expect("room");
                pins.iter().for_each(|pin| rig.change_pinned(&mut backend, 2, pin, 1));
            }
            bulk.finish(&mut backend).expect("writes");
        });
        rig.create(2, 0);
        rig.wait_until("it opens the second file", || opening.is_open());
        let writer = rig.spawn("writer", |rig| {
            let mut backend = rig.backend();
            (0..12).for_each(|block| rig.change(&mut backend, block, 2));
        });
        rig.let_others_go();
        rig.let_others_go();
        let free = writer.is_done();
        go.open();
        writer.join();
        loader.join();
        assert!(free, "pages are locked by a write that nobody has submitted");
    });
}
