//! A mount that hangs while it is the only one in use: it must leave places in a ring, and kernel
//! threads behind them, to other mounts and to the log.
//!
//! The I/O core is used directly. The command line has no more than 64 reads in flight, and a ring
//! has 510 places.

use std::path::Path;
use std::task::{Context, Poll, Waker};

use trunkline_aio::facade::thread;
use trunkline_aio::{
    Aio, Builder, Class, File, MethodKind, OpenOptions, Outcome, Session, Slots, Status, clock,
};
use trunkline_format::BLOCK_SIZE;

use crate::cluster::{Cluster, relation};
use crate::fuse::PATIENCE;
use crate::fuse::{Event, Fault, Mount, Tree};
use crate::need;

/// Reads of the mount that hangs, more than a ring has places. The mount first answers as many.
const READS: usize = 600;
/// The share of a mount that is the only one with I/O. This many of its reads hang, and each of
/// them occupies a kernel thread.
const HUNG: usize = 450;

fn open(aio: &Aio, path: &Path, options: OpenOptions) -> File {
    aio.open(path, options).expect("opened")
}

/// Slots with memory for one block each.
fn slots(aio: &Aio, count: usize) -> Slots {
    let mut slots = Slots::new(count);
    for slot in 0..count {
        slots.memory(slot).expect("idle").push(aio.region().lease(1).expect("a frame"));
    }
    slots
}

/// Reads one block into each slot.
fn read(session: &mut Session, class: Class, file: &File, slots: &mut Slots) {
    let mut batch = session.batch();
    for slot in 0..slots.len() {
        let io = batch.acquire(class).expect("a handle");
        let offset = (slot * BLOCK_SIZE) as u64;
        io.read(file, offset, BLOCK_SIZE as u32, slots, slot).expect("defined");
    }
}

/// Waits for one slot, with a deadline: a test that fails must not hang.
fn wait(session: &mut Session, slots: &mut Slots, slot: usize, what: &str) -> Outcome {
    let deadline = clock::now().after(PATIENCE);
    let (mut context, mut wait) = (Context::from_waker(Waker::noop()), session.polled_wait());
    loop {
        if let Poll::Ready(outcome) = session.poll(&mut context, &mut wait, slots, slot) {
            return outcome.expect("not cancelled");
        }
        assert!(clock::now() < deadline, "no {what} within {PATIENCE:?}");
        thread::yield_now();
    }
}

#[test]
fn a_mount_that_hangs_alone_leaves_places_in_the_ring() {
    // The kernel starts a thread for each read that hangs, and some more.
    if !need::fuse() || !need::threads(HUNG + 100) {
        return;
    }
    let cluster = Cluster::new();
    let builder = Builder::new().method(MethodKind::IoUring).handles(2048, 32, 64);
    // Everything goes through the ring, even what is cached.
    let aio = builder.session_quota(1024).try_cached_below(0).inline_write_max(0);
    let aio = aio.region_bytes(64 << 20).start().expect("starts");
    if aio.method_status().used != MethodKind::IoUring {
        need::skip("no io_uring");
        return;
    }
    let data = relation(READS as u32);
    let tree = Tree::new().file("good", data.clone(), Fault::None);
    // Dropped before the instance, which waits for its I/O.
    let mut mount = Mount::new(cluster.beside("mount"), tree.file("hung", data, Fault::HangRead));
    let direct = OpenOptions { direct: true, ..OpenOptions::default() };
    let good = open(&aio, &mount.path().join("good"), direct);
    let hung = open(&aio, &mount.path().join("hung"), direct);
    let local = cluster.beside("local");
    std::fs::write(&local, relation(1)).expect("written");
    let local = open(&aio, &local, OpenOptions { write: true, ..OpenOptions::default() });

    let mut session = aio.session().expect("a session");
    let mut many = slots(&aio, READS);
    read(&mut session, Class::LookAhead, &good, &mut many);
    for slot in 0..READS {
        assert_eq!(wait(&mut session, &mut many, slot, "answer").status, Status::Ok);
    }
    read(&mut session, Class::LookAhead, &hung, &mut many);
    mount.wait_for(Event::Hung, HUNG);

    for class in [Class::LookAhead, Class::Foreground, Class::Log] {
        let mut one = slots(&aio, 1);
        read(&mut session, class, &local, &mut one);
        let outcome = wait(&mut session, &mut one, 0, &format!("read for {class:?}"));
        assert_eq!(outcome.status, Status::Ok, "{class:?}");
        for durable in [false, true] {
            let io = session.acquire(class).expect("a handle");
            let io = if durable { io.durable() } else { io };
            io.write(&local, 0, BLOCK_SIZE as u32, &mut one, 0).expect("defined");
            let what = format!("write for {class:?}, durable {durable}");
            let outcome = wait(&mut session, &mut one, 0, &what);
            assert_eq!(outcome.status, Status::Ok, "{what}");
        }
        // A kernel thread executes this.
        session.acquire(class).expect("a handle").fsync(&local, &mut one, 0);
        let outcome = wait(&mut session, &mut one, 0, &format!("fsync for {class:?}"));
        assert_eq!(outcome.status, Status::Ok, "{class:?}");
    }
    assert_eq!(many.pending(), READS);
    assert_eq!((many.done_count(), mount.held()), (0, HUNG), "the others have to wait");
    mount.release();
    for slot in 0..READS {
        assert_eq!(wait(&mut session, &mut many, slot, "end").status, Status::Error);
    }
}
