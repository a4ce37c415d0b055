//! Two threads that wake each other through one futex: the price of a hop between threads. The core shares wake-ups
//! among reads, so that it pays this price less than once per read.

use crate::work::Done;
use std::io;
use trunkline_aio::sync::atomic::{AtomicU32, Ordering};

/// Where the two threads may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Placement {
    /// As the scheduler likes.
    Free,
    /// Both on the first CPU.
    OneCpu,
    /// On the first two CPUs.
    TwoCpus,
}

/// Plays `round_trips` there and back.
pub(crate) fn ping_pong(placement: Placement, round_trips: u32) -> io::Result<Done> {
    let turn = AtomicU32::new(0);
    std::thread::scope(|scope| {
        // Threads of their own, so that pinning does not touch the caller.
        let pinger = scope.spawn(|| play(placement, &turn, 0, round_trips));
        let ponger = scope.spawn(|| play(placement, &turn, 1, round_trips));
        for player in [pinger, ponger] {
            player.join().unwrap_or_else(|_| Err(io::Error::other("a thread panicked")))?;
        }
        Ok(Done { operations: u64::from(round_trips), ..Done::default() })
    })
}

/// Waits for turns of its own parity and passes each on.
fn play(placement: Placement, turn: &AtomicU32, parity: u32, rounds: u32) -> io::Result<()> {
    pin(placement, parity as usize)?;
    for round in 0..rounds {
        let mine = round * 2 + parity;
        loop {
            let now = turn.load(Ordering::Acquire);
            if now == mine {
                break;
            }
            futex(turn, libc::FUTEX_WAIT, now);
        }
        turn.store(mine + 1, Ordering::Release);
        futex(turn, libc::FUTEX_WAKE, 1);
    }
    Ok(())
}

fn pin(placement: Placement, player: usize) -> io::Result<()> {
    let cpu = match placement {
        Placement::Free => return Ok(()),
        Placement::OneCpu => 0,
        Placement::TwoCpus => player,
    };
    let mut set = rustix::thread::CpuSet::new();
    set.set(cpu);
    Ok(rustix::thread::sched_setaffinity(None, &set)?)
}

fn futex(word: &AtomicU32, operation: i32, value: u32) {
    let operation = operation | libc::FUTEX_PRIVATE_FLAG;
    let none = std::ptr::null::<libc::timespec>();
    // SAFETY: the word outlives the call; the kernel only reads it. A wake-up without cause or a
    // value that has changed is seen by the caller's loop.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), operation, value, none) };
}
