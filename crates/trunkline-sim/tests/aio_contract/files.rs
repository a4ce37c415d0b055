//! An I/O keeps its file open until it completes, whatever its issuer does (PG 14, 15).
//!
//! As long as an I/O is in flight, the kernel may still use its file descriptor. If we closed the
//! file, the next file to be opened could get the same number. Note that a thread completing
//! another session's I/O must not close the file either, because close(2) may block.

use trunkline_aio::facade::Arc;
use trunkline_aio::{Class, MethodKind, OpenOptions, Slots, State, Weight, WorkerSettings};
use trunkline_sim::matrix::Instance;
use trunkline_sim::matrix::io::{
    PassThrough, check, check_real, check_seeds, check_stoppable, memory, original, read, spawn,
    wait_ok, write,
};
use trunkline_sim::{BLOCK, content};

/// This process's descriptors that refer to `name` in the instance's directory.
fn descriptors(instance: &Instance, name: &str) -> Vec<String> {
    let path = instance.path(name);
    let entries = std::fs::read_dir("/proc/self/fd").expect("lists");
    let mut found = Vec::new();
    for entry in entries.flatten() {
        // Another test may close its descriptors while we look.
        if std::fs::read_link(entry.path()).is_ok_and(|target| target == path) {
            found.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    found
}

/// PG 14: issue an I/O in a batch, close the file, end the batch, and wait.
#[test]
fn pg14_a_file_closed_before_its_batch_ends_stays_open_for_it() {
    check(|environment| {
        let instance = environment.start_with(|builder| builder.try_cached_below(0));
        let file = instance.file("a", 4);
        let mut session = instance.session();
        let mut slots = instance.slots(2, 1);
        {
            let mut batch = session.batch();
            read(&mut batch, &file, 1, 1, &mut slots, 0);
            read(&mut batch, &file, 2, 1, &mut slots, 1);
            drop(file);
            assert_eq!(instance.aio.open_files(), 1, "the staged I/Os keep it open");
            if !environment.is_simulated() {
                assert_eq!(descriptors(&instance, "a").len(), 1);
            }
        }
        for slot in 0..2 {
            wait_ok(&mut session, &mut slots, slot);
            assert_eq!(memory(&mut slots, slot), original(1 + slot as u32, 1));
        }
        instance.wait_until("closed", || instance.aio.open_files() == 0);
        if !environment.is_simulated() {
            assert_eq!(descriptors(&instance, "a").len(), 0);
        }
    });
}

/// PG 15: the same without waiting, while another session reads the blocks.
#[test]
fn pg15_a_file_closed_without_waiting_does_not_disturb_others() {
    check(|environment| {
        let instance = environment.start_with(|builder| builder.try_cached_below(0));
        let file = instance.file("a", 4);
        let other = instance.file("a", 4);
        let mut session = instance.session();
        let mut slots = instance.slots(1, 2);
        let io = {
            let mut batch = session.batch();
            let io = read(&mut batch, &file, 1, 2, &mut slots, 0);
            drop(file);
            io
        };
        drop((slots, session));
        let mut session = instance.session();
        let mut slots = instance.slots(1, 2);
        read(&mut session, &other, 1, 2, &mut slots, 0);
        wait_ok(&mut session, &mut slots, 0);
        assert_eq!(memory(&mut slots, 0), original(1, 2));
        session.join(io).expect("not cancelled");
        drop(other);
        instance.wait_until("closed", || instance.aio.open_files() == 0);
    });
}

/// An in-flight I/O's descriptor number must not be reused, or the I/O would reach the wrong file.
#[test]
fn a_recycled_descriptor_does_not_get_the_io() {
    check_real(|environment| {
        // Without inline writes, the write is still staged when the file is closed.
        let instance = environment.start_with(|builder| builder.inline_write_max(0));
        for round in 0..10 {
            let (victim, target) = (format!("victim {round}"), format!("target {round}"));
            let file = instance.file(&target, 4);
            std::fs::write(instance.path(&victim), original(0, 4)).expect("writes the sample");
            let mut session = instance.session();
            let mut slots = instance.slots(1, 1);
            let number = descriptors(&instance, &target);
            let mut others = Vec::new();
            {
                let mut batch = session.batch();
                write(&mut batch, &file, 1, 1, 7, &mut slots, 0);
                drop(file);
                let options = OpenOptions { write: true, ..OpenOptions::default() };
                for _ in 0..8 {
                    others
                        .push(instance.aio.open(&instance.path(&victim), options).expect("opens"));
                }
                assert_eq!(descriptors(&instance, &target), number, "{environment:?}");
            }
            wait_ok(&mut session, &mut slots, 0);
            assert_eq!(
                instance.bytes(&target)[BLOCK..2 * BLOCK],
                content(0, 1, 7),
                "{environment:?}"
            );
            assert_eq!(
                instance.bytes(&victim),
                original(0, 4),
                "{environment:?}: the wrong file was written"
            );
        }
    });
}

/// As in the previous test, the issuer drops its file too early. In this case the I/O has already
/// been submitted, and we stop it just as it reaches COMPLETED_IO. The file must stay open until
/// the I/O is complete.
#[test]
fn the_file_of_an_io_under_way_is_open_until_its_completion() {
    check_stoppable(|environment| {
        let instance = environment.start();
        let file = instance.file("a", 4);
        let held = instance.probe.pause_at(State::CompletedIo, |_| true);
        let mut session = instance.session();
        let mut slots = instance.slots(1, 1);
        read(&mut session, &file, 1, 1, &mut slots, 0);
        held.wait();
        drop(file);
        assert_eq!(instance.aio.open_files(), 1);
        if !environment.is_simulated() {
            assert_eq!(descriptors(&instance, "a").len(), 1);
        }
        held.release();
        wait_ok(&mut session, &mut slots, 0);
        assert_eq!(memory(&mut slots, 0), original(1, 1));
    });
}

/// Closing a file may block, so the device thread must leave that to a worker. In this test the
/// only worker is stopped while it completes another I/O, so the file must stay open until we let
/// the worker continue.
#[test]
fn a_completing_thread_leaves_closing_to_a_worker() {
    check_seeds(&[MethodKind::Custom], 20, |environment| {
        let one = WorkerSettings { min: 1, max: 1, ..WorkerSettings::default() };
        let instance = environment.start_with(|builder| builder.workers(one));
        let (file, other) = (instance.file("a", 4), instance.file("b", 4));
        let mut session = instance.session();
        let mut light = instance.slots_with(1, 1, vec![Arc::new(PassThrough(Weight::Light))]);
        let mut heavy = instance.slots_with(1, 1, vec![Arc::new(PassThrough(Weight::Heavy))]);
        let held = instance.probe.pause_at(State::CompletedShared, |_| true);
        read(&mut session, &other, 1, 1, &mut heavy, 0);
        held.wait();
        read(&mut session, &file, 1, 1, &mut light, 0);
        drop(file);
        wait_ok(&mut session, &mut light, 0);
        instance.quiesce();
        session.acquire(Class::Foreground).expect("a handle").release();
        assert_eq!(instance.aio.open_files(), 2, "the device closed it, or the session");
        held.release();
        instance.wait_until("closed", || instance.aio.open_files() == 1);
        wait_ok(&mut session, &mut heavy, 0);
    });
}

/// A file that was never closed is closed at shutdown, after its last I/O.
#[test]
fn the_end_of_the_instance_waits_for_its_io_and_closes_everything() {
    check(|environment| {
        let instance = environment.start_with(|builder| builder.try_cached_below(0));
        let file = instance.file("a", 8);
        let mut session = instance.session();
        let mut slots: Slots = instance.slots(8, 1);
        {
            let mut batch = session.batch();
            for slot in 0..8 {
                write(&mut batch, &file, slot, 1, 1, &mut slots, slot as usize);
            }
        }
        let region = instance.aio.region().clone();
        drop((slots, file, session));
        let (disk, probe) = (Arc::clone(&instance.disk), Arc::clone(&instance.probe));
        let last = instance.aio.clone();
        let folder = instance.into_folder();
        drop(last);
        assert_eq!(probe.transitions(State::CompletedLocal, State::Idle), 8);
        assert_eq!(region.free_frames(), region.frames());
        let wanted: Vec<u8> = (0..8).flat_map(|block| content(0, block, 1)).collect();
        let found = match &folder {
            Some(folder) => std::fs::read(folder.path().join("a")).expect("reads"),
            None => disk.content("a"),
        };
        assert_eq!(found, wanted);
    });
}

/// Several threads open, read and close files concurrently.
#[test]
fn open_files_are_counted_over_many_threads() {
    check(|environment| {
        let instance = Arc::new(environment.start());
        drop(instance.file("a", 4));
        let threads: Vec<_> = (0..3)
            .map(|number| {
                let instance = Arc::clone(&instance);
                spawn("reader", move || {
                    let mut session = instance.session();
                    for block in 0..4 {
                        let file = instance.file("a", 4);
                        let mut slots = instance.slots(1, 1);
                        read(&mut session, &file, (block + number) % 4, 1, &mut slots, 0);
                        drop(file);
                        wait_ok(&mut session, &mut slots, 0);
                        assert_eq!(memory(&mut slots, 0), original((block + number) % 4, 1));
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().expect("reads"));
        instance.wait_until("closed", || instance.aio.open_files() == 0);
    });
}
