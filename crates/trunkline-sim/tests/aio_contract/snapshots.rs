//! The snapshot of all handles, our equivalent of the `pg_aios` view. It is taken without a lock
//! while I/O is running, so we check that each row is consistent. A column must be null if and only
//! if `pg_aios` would show null there.

use trunkline_aio::facade::Arc;
use trunkline_aio::{Class, IoRow, STATES, State};
use trunkline_sim::BLOCK;
use trunkline_sim::matrix::io::{check, read, spawn};
use trunkline_sim::matrix::{Environment, Instance, Matrix, REAL, SIMULATED};

/// The state shown by a row.
fn state_of(row: &IoRow) -> State {
    let state = STATES.into_iter().find(|state| state.name() == row.state);
    state.expect("a state of the diagram")
}

/// Checks that a row is consistent. An I/O that starts at block b reads b % 3 + 1 blocks and has
/// the same number of data words. If a row contained values from two different I/Os, these numbers
/// wouldn't match.
fn check_row(row: &IoRow) {
    let state = state_of(row);
    assert_ne!(state, State::Idle, "{row:?}");
    assert!(row.io_generation > 0 && row.pid > 0, "{row:?}");
    assert!(!row.f_localmem, "{row:?}");
    if state == State::HandedOut {
        assert_eq!((row.operation, row.off, row.length), (None, None, None), "{row:?}");
        assert_eq!((row.target, row.handle_data_len), (None, None), "{row:?}");
        assert_eq!((row.raw_result, row.result), (None, None), "{row:?}");
        assert_eq!((&row.target_desc, row.method), (&None, None), "{row:?}");
        assert!(!row.f_sync && !row.f_buffered, "{row:?}");
        return;
    }
    let (Some(offset), Some(length), Some(data)) = (row.off, row.length, row.handle_data_len)
    else {
        panic!("null in {row:?}");
    };
    assert_eq!((row.target, row.f_buffered), (Some("file"), true), "{row:?}");
    let description = row.target_desc.as_deref().expect("a description");
    match row.operation {
        Some("readv") => {
            let block = offset / BLOCK as u64;
            let wanted = block % 3 + 1;
            assert_eq!(u64::from(length), wanted * BLOCK as u64, "{row:?}");
            assert_eq!(u64::from(data), wanted, "{row:?}");
            assert!(description.starts_with("block"), "{row:?}");
        }
        Some("fsync") => assert_eq!((offset, length), (0, 0), "{row:?}"),
        _ => panic!("{row:?}"),
    }
    assert_eq!(row.raw_result.is_some(), state >= State::CompletedIo, "{row:?}");
    assert_eq!(row.method.is_some(), state >= State::Submitted, "{row:?}");
    let wanted = match row.raw_result {
        _ if state < State::CompletedShared => "UNKNOWN",
        Some(raw) if raw < 0 => "ERROR",
        Some(raw) if raw as u32 == length => "OK",
        _ => "PARTIAL",
    };
    assert_eq!(row.result, Some(wanted), "{row:?}");
}

/// Issues reads, fsyncs and unused handles that follow the rule in `check_row`.
fn load(instance: &Instance, number: u32, rounds: u32) {
    let file = instance.file("a", 64);
    let mut session = instance.session();
    let mut slots = instance.slots_with::<Vec<u64>>(4, 3, Vec::new());
    for round in 0..rounds {
        let mut batch = session.batch();
        for slot in 0..4_usize {
            let block = (round * 7 + slot as u32 * 5 + number) % 60;
            let count = block % 3 + 1;
            let data = slots.payload(slot).expect("idle");
            data.clear();
            data.resize(count as usize, 0);
            if block % 10 == 9 {
                let io = batch.acquire(Class::Checkpoint).expect("a handle");
                io.fsync(&file, &mut slots, slot);
            } else {
                read(&mut batch, &file, block, count, &mut slots, slot);
            }
        }
        drop(batch);
        if round % 5 == 4 {
            // Some handles are acquired but never used.
            session.acquire(Class::Log).expect("a handle").release();
        }
        while slots.pending() > 0 {
            session.wait_any(&mut slots).expect("not cancelled");
        }
    }
}

/// Takes a snapshot at every transition while several sessions issue I/O.
fn under_load(environment: Environment) {
    let (tasks, rounds) = if environment.is_simulated() { (2, 3) } else { (3, 300) };
    let instance = Arc::new(environment.start());
    instance.probe.change_results(|io, raw| match io.offset / BLOCK as u64 % 7 {
        1 => -5,
        2 if raw > 100 => 100,
        _ => raw,
    });
    instance.probe.start_observing();
    let theirs = Arc::clone(&instance);
    let watcher = spawn("watcher", move || {
        theirs.probe.observe(|| theirs.aio.snapshot().iter().for_each(check_row));
    });
    let threads: Vec<_> = (0..tasks)
        .map(|number| {
            let instance = Arc::clone(&instance);
            spawn("load", move || load(&instance, number, rounds))
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
    instance.probe.stop_observing();
    watcher.join().expect("no impossible row");
    instance.settle();
    assert!(instance.aio.snapshot().is_empty());
}

#[test]
fn a_snapshot_under_load_never_shows_an_impossible_row() {
    check(under_load);
}

/// Every state but IDLE must appear, with its columns.
#[test]
fn a_snapshot_shows_a_handle_in_each_of_its_states() {
    let matrix = Matrix::simulated(&SIMULATED, 3).and(Matrix::real(&REAL));
    matrix.run(|environment| each_state(environment, &STATES[1..]));
}

/// Stops a read in each state and checks its row.
fn each_state(environment: Environment, states: &[State]) {
    let instance = Arc::new(environment.start());
    for &state in states {
        let held = instance.probe.pause_at(state, |_| true);
        let theirs = Arc::clone(&instance);
        let issuer = spawn("issuer", move || {
            let file = theirs.file("a", 64);
            let mut session = theirs.session();
            let mut slots = theirs.slots_with::<Vec<u64>>(1, 3, Vec::new());
            slots.payload(0).expect("idle").extend([0, 0]);
            read(&mut session, &file, 4, 2, &mut slots, 0);
            trunkline_sim::matrix::io::wait_ok(&mut session, &mut slots, 0);
        });
        let io = held.wait();
        // In COMPLETED_IO, the waiting issuer may already have completed the I/O.
        match instance.row(io) {
            Some(row) => {
                check_row(&row);
                let passed = state == State::CompletedIo && state_of(&row) > state;
                assert!(state_of(&row) == state || passed, "{environment:?} {row:?}");
                if state > State::HandedOut {
                    let description = row.target_desc.as_deref().expect("a description");
                    assert!(description.starts_with("blocks 4..5 in file \""), "{description}");
                }
            }
            None => assert_eq!(state, State::CompletedIo, "{environment:?}"),
        }
        held.release();
        issuer.join().expect("ends");
        instance.settle();
    }
}
