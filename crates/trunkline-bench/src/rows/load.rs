//! **Mixed load**: sessions that read random pages of a table and modify half of them.
//!
//! Each operation pins a page. It then takes either the share lock, to read a byte, or the
//! exclusive lock, to modify the page and mark it dirty.
//!
//! Sessions run either at full speed or at a fixed pace. At a fixed pace, operation `i` is due `i`
//! steps after the start, and a session that is early sleeps until then. We normally measure the
//! latency from the time the session begins the operation. But if an earlier operation has made it
//! late, we measure from the time the operation was due. Otherwise a long stall would count only
//! once, which would hide the delay of all the operations queued behind it ("coordinated
//! omission").

use super::checkpoint_table::change;
use crate::failure::Result;
use crate::pairs::cpu_seconds;
use crate::threads::beside;
use crate::work::{Done, Random};
use std::time::{Duration, Instant};
use trunkline_aio::clock::{self, Time};
use trunkline_aio::facade::Futex;
use trunkline_engine::pool::Backend;
use trunkline_engine::storage::Relation;
use trunkline_format::BlockNo;

/// Number of concurrent sessions.
pub(super) const SESSIONS: u32 = 4;

/// How many operations each session performs, and how fast.
#[derive(Debug, Clone, Copy)]
pub(super) struct Load {
    /// Number of operations per session.
    pub(super) operations: u32,
    /// Interval between two operations of a session; `None` runs them back to back.
    pub(super) step: Option<Duration>,
}

impl Load {
    /// Runs all sessions. `round` seeds the random page sequence, so each round accesses different
    /// pages.
    pub(super) fn run(
        self,
        backends: &mut [Backend],
        relation: &Relation,
        blocks: BlockNo,
        round: u64,
    ) -> Result<Done> {
        let (cpu, started) = (cpu_seconds(), Instant::now());
        let begun = clock::now();
        let operate = |(number, backend)| {
            let random = Random(((round << 8) | u64::from(number)) * 2 + 1);
            // Stagger the sessions, so that their operations aren't all due together.
            let schedule = self.step.map(|step| Schedule {
                next: begun.after(step * number / SESSIONS),
                step,
                never_woken: Futex::new(0),
            });
            self.operate(backend, relation, blocks, random, schedule)
        };
        let micros = beside((0_u32..).zip(backends), operate, || Ok(()))?.concat();
        let took = (started.elapsed().as_secs_f64(), cpu_seconds() - cpu);
        Ok(Done::timed(micros, took))
    }

    fn operate(
        self,
        backend: &mut Backend,
        relation: &Relation,
        blocks: BlockNo,
        mut random: Random,
        mut schedule: Option<Schedule>,
    ) -> Result<Vec<f32>> {
        let mut micros = Vec::with_capacity(self.operations as usize);
        for _ in 0..self.operations {
            let number = random.next();
            let block = ((number >> 8) % u64::from(blocks)) as BlockNo;
            let began = schedule.as_mut().map_or_else(clock::now, Schedule::wait);
            let pin = backend.read(relation, block)?;
            if number & 1 == 0 {
                std::hint::black_box(backend.read_lock(pin.page())?[0]);
            } else {
                let mut bytes = backend.write_lock(pin.page())?;
                change(&mut bytes);
                bytes.mark_dirty();
            }
            drop(pin);
            micros.push(clock::now().since(began).as_secs_f32() * 1e6);
        }
        backend.publish_counts();
        Ok(micros)
    }
}

/// A session's schedule.
struct Schedule {
    next: Time,
    step: Duration,
    never_woken: Futex,
}

impl Schedule {
    /// Sleeps until the next operation is due. Returns the time from which its latency counts.
    fn wait(&mut self) -> Time {
        let due = self.next;
        self.next = due.after(self.step);
        let mut now = clock::now();
        if now >= due {
            return due;
        }
        while now < due {
            self.never_woken.wait(0, Some(due.since(now)));
            now = clock::now();
        }
        now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_done_before_it_is_due_and_what_is_late_counts_from_then() {
        let begun = clock::now();
        let step = Duration::from_millis(2);
        let mut schedule = Schedule { next: begun, step, never_woken: Futex::new(0) };
        assert_eq!(schedule.wait(), begun, "the first is late");
        assert!(schedule.wait() >= begun.after(step));
        schedule.next = Time::from_nanos(begun.nanos() - 7);
        assert_eq!(schedule.wait().nanos(), begun.nanos() - 7);
        assert_eq!(schedule.next, begun.after(step - Duration::from_nanos(7)));
    }
}
