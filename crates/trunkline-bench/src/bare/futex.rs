//! **Futex round trip**: two threads wake each other in turn, which measures what it costs to hand
//! work to another thread and back. A read that we hand to another thread costs a full round trip,
//! unless it shares its wake-ups with other reads. The core lets several reads share a wake-up, so
//! it should need less than one round trip per read.

use crate::work::Done;
use std::io;
use trunkline_aio::facade::atomic::{AtomicU32, Ordering};

/// CPU affinity of the two threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Placement {
    /// No affinity; the kernel's scheduler decides.
    Free,
    /// Both on the first CPU.
    OneCpu,
    /// On the first two CPUs.
    TwoCpus,
}

/// Runs `round_trips` round trips and returns the number of trips.
pub(crate) fn ping_pong(placement: Placement, round_trips: u32) -> io::Result<Done> {
    let turn = AtomicU32::new(0);
    std::thread::scope(|scope| {
        // We spawn both threads, so that setting the affinity doesn't affect the caller.
        let pinger = scope.spawn(|| play(placement, &turn, 0, round_trips));
        let ponger = scope.spawn(|| play(placement, &turn, 1, round_trips));
        for player in [pinger, ponger] {
            player.join().unwrap_or_else(|_| Err(io::Error::other("a thread panicked")))?;
        }
        Ok(Done { operations: u64::from(round_trips), ..Done::default() })
    })
}

/// Waits until the turn counter has this thread's parity, then increments the counter and wakes
/// the other thread.
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
    // SAFETY: the word outlives the call, and the kernel only reads it. Spurious wake-ups and a
    // changed value are harmless, because the caller rechecks the word in a loop.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), operation, value, none) };
}
