//! Sessions that read random pages of a table and change every second one.
//!
//! An operation reads a page and looks at it, or locks it exclusively, changes it and marks it dirty. Sessions run as
//! fast as possible or at a pace: operation `i` is due `i` steps after the start, and an early session sleeps until
//! then. The time of an operation counts from its start. If the operation before delayed it, its time counts from
//! when it was due; otherwise one long wait would count once and hide all operations that were waiting behind it.

use crate::Result;
use crate::pairs::cpu_seconds;
use crate::rows::checkpoint_table::change;
use crate::statistics::Latency;
use crate::work::{Done, Random};
use std::time::{Duration, Instant};
use trunkline_aio::clock::{self, Time};
use trunkline_aio::sync::Futex;
use trunkline_engine::pool::Backend;
use trunkline_engine::storage::Relation;
use trunkline_format::{BLOCK_SIZE, BlockNo};

/// Sessions.
pub(super) const SESSIONS: u32 = 4;

/// See the module.
#[derive(Debug, Clone, Copy)]
pub(super) struct Load {
    /// Operations of a session.
    pub(super) operations: u32,
    /// From one operation of a session to its next; `None`: as fast as it can.
    pub(super) step: Option<Duration>,
}

impl Load {
    /// One run of all sessions; each number of a round has its own pages.
    pub(super) fn run(
        self,
        backends: &mut [Backend],
        relation: &Relation,
        blocks: BlockNo,
        round: u64,
    ) -> Result<Done> {
        let (cpu, started) = (cpu_seconds(), Instant::now());
        let begun = clock::now();
        let micros = std::thread::scope(|scope| {
            let start = |(number, backend)| {
                let random = Random(((round << 8) | u64::from(number)) * 2 + 1);
                // One after the other, and not all at once.
                let schedule = self.step.map(|step| Schedule {
                    next: begun.after(step * number / SESSIONS),
                    step,
                    never_woken: Futex::new(0),
                });
                scope.spawn(move || self.operate(backend, relation, blocks, random, schedule))
            };
            let threads: Vec<_> = (0_u32..).zip(backends).map(start).collect();
            let mut all = Vec::new();
            for thread in threads {
                all.extend(thread.join().map_err(|_| "a thread panicked")??);
            }
            Ok::<_, crate::Failure>(all)
        })?;
        let took = Some((started.elapsed().as_secs_f64(), cpu_seconds() - cpu));
        let operations = micros.len() as u64;
        let (bytes, latency) = (operations * BLOCK_SIZE as u64, Latency::of(micros));
        Ok(Done { operations, bytes, took, latency, ..Done::default() })
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

/// When a session's operations are due.
struct Schedule {
    next: Time,
    step: Duration,
    never_woken: Futex,
}

impl Schedule {
    /// Sleeps until the next operation is due; from when its time counts.
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
