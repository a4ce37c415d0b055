//! **Sweeps that write**: mixed reads and writes, random writes and writes in order, and durable
//! writes, each at rising depth or size.
//!
//! ```text
//!   mixed ─▶ random writes ─▶ writes in order ─▶ durable, more sessions ─▶ durable, larger
//!                                                                              │
//!                      what wasn't steady, again and longer, while time is left ◀┘
//! ```
//! No setting follows from them: they show how fast a device writes, and what writes do to reads.
//! They come after everything else, because they use up credit that reads need, and because an SSD
//! may have to erase blocks afterwards.
//!
//! All of them share one deadline (`TimePlan::end`), however long a step takes. On a slow device, a
//! step takes longer than planned, because what is in flight at its end has to complete. So a step
//! begins only if it ends in time, judged by the one before, and if the sweeps after it keep the time
//! that is planned for them.

use super::findings::DeviceFindings;
use super::load::{DEFAULT_DEPTH, Load, PAGE, SyncMethod, Work};
use super::search::{DEPTH_MAX, Ended, LARGE, METHOD_DEPTH_MAX, Search};
use super::step::Step;
use super::sweep;

/// Percentage of reads of a mixed load.
const READS: u32 = 70;
/// Most sessions that write durably.
const SESSIONS_MAX: u32 = 16;
/// The largest durable write, in bytes.
const DURABLE_MAX: u32 = 128 << 10;
/// A step that wasn't steady takes these times as long when it is measured again.
const LONGER: [u32; 3] = [2, 4, 8];

/// What rises, and with which load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sweep {
    Mixed,
    Random,
    Sequential,
    DurableSessions,
    DurableSizes,
}

impl Sweep {
    const ALL: [Self; 5] =
        [Self::Mixed, Self::Random, Self::Sequential, Self::DurableSessions, Self::DurableSizes];

    /// The name in messages.
    fn name(self) -> &'static str {
        match self {
            Self::Mixed => "mixed reads and writes",
            Self::Random => "random writes",
            Self::Sequential => "writes in order",
            Self::DurableSessions => "durable writes by sessions",
            Self::DurableSizes => "durable writes by size",
        }
    }

    fn steps(self, found: &mut DeviceFindings) -> &mut Vec<Step> {
        match self {
            Self::Mixed => &mut found.mixed_depths,
            Self::Random => &mut found.random_writes,
            Self::Sequential => &mut found.sequential_writes,
            Self::DurableSessions => &mut found.durable_sessions,
            Self::DurableSizes => &mut found.durable_sizes,
        }
    }
}

/// A step that was measured, to measure it again.
struct Measured {
    sweep: Sweep,
    /// Where its result is in the steps of the sweep.
    at: usize,
    load: Load,
    what: String,
    is_steady: bool,
    /// How much longer it took than its load says, in seconds.
    over: f64,
}

impl Search<'_> {
    /// Runs all sweeps that write.
    pub(super) fn writes(&mut self) -> Result<(), Ended> {
        let end = self.plan.end(self.begun, self.device.now());
        let sweeps = Sweep::ALL.map(|sweep| (sweep, self.write_loads(sweep)));
        let step = self.plan.write_step().as_secs_f64();
        let mut later: usize = sweeps.iter().map(|(_, loads)| loads.len()).sum();
        let mut measured = Vec::new();
        for (sweep, loads) in sweeps {
            later -= loads.len();
            let end = end - step * later as f64;
            self.survive(sweep.name(), |search| {
                search.write_sweep(sweep, loads, end, &mut measured)
            })?;
        }
        let unsteady: Vec<Measured> = measured.into_iter().filter(|it| !it.is_steady).collect();
        self.survive("unsteady writes again", |search| search.measure_again(unsteady, end))
    }

    /// Measures each step of a sweep once, as far as it gets before `end`. The first one that has a
    /// result always runs.
    fn write_sweep(
        &mut self,
        sweep: Sweep,
        loads: Vec<Load>,
        end: f64,
        measured: &mut Vec<Measured>,
    ) -> Result<(), Ended> {
        // What was in flight at the end of the step before, in bytes, and how long it took to complete.
        let mut last = None;
        for load in loads {
            let point = match sweep {
                Sweep::Mixed | Sweep::Random => format!("{} in flight", load.depth),
                Sweep::Sequential | Sweep::DurableSizes => format!("{} kB", load.size / 1024),
                Sweep::DurableSessions => format!("{} sessions", load.depth),
            };
            let in_flight = f64::from(load.depth) * f64::from(load.size);
            let over = last.map(|(before, over): (f64, f64)| over * in_flight / before);
            let begun = self.device.now();
            let planned = load.duration.as_secs_f64();
            if over.is_some_and(|over| begun + planned + over > end) {
                let text = format!("{} from {point} on: no time left", sweep.name());
                self.found.skipped.push(text);
                break;
            }
            let what = format!("{}: {point}", sweep.name());
            let windows = self.must(&load, &what)?;
            let over = (self.device.now() - begun - planned).max(0.0);
            let Some(step) = Step::of(&load, &windows) else {
                self.found.skipped.push(format!("{what}: nothing completed in time"));
                continue;
            };
            last = Some((in_flight, over));
            let (at, is_steady) = (sweep.steps(&mut self.found).len(), step.steady);
            self.keep_step(sweep, at, step);
            measured.push(Measured { sweep, at, load, what, is_steady, over });
            let steps = sweep.steps(&mut self.found).iter();
            let rates: Vec<f64> = steps.map(|step| step.ios_per_second.median).collect();
            if sweep == Sweep::Random && load.depth >= DEFAULT_DEPTH && sweep::is_over(&rates) {
                break;
            }
        }
        Ok(())
    }

    /// Measures steps again that weren't steady, with windows that are longer each time, while time is
    /// left. Sessions that commit in step leave many short windows empty. The last result counts.
    fn measure_again(&mut self, mut unsteady: Vec<Measured>, end: f64) -> Result<(), Ended> {
        for factor in LONGER {
            for Measured { sweep, at, load, what, is_steady, over } in &mut unsteady {
                let (duration, window) = (load.duration * factor, load.window * factor);
                if self.device.now() + duration.as_secs_f64() + *over > end {
                    continue;
                }
                let windows = self.must(&Load { duration, window, ..*load }, what)?;
                if let Some(step) = Step::of(load, &windows) {
                    *is_steady = step.steady;
                    self.keep_step(*sweep, *at, step);
                }
            }
            unsteady.retain(|step| !step.is_steady);
        }
        Ok(())
    }

    /// Stores the result of a step, or replaces it.
    fn keep_step(&mut self, sweep: Sweep, at: usize, step: Step) {
        let is_recommended = step.depth == self.mixed_depth();
        if sweep == Sweep::Mixed && is_recommended {
            self.found.mixed = Some(step.clone());
        }
        let steps = sweep.steps(&mut self.found);
        match steps.get_mut(at) {
            Some(old) => *old = step,
            None => steps.push(step),
        }
    }

    /// The depth of the mixed load that the summary shows.
    fn mixed_depth(&self) -> u32 {
        self.found.concurrency_or_default().min(METHOD_DEPTH_MAX)
    }

    /// The loads of a sweep, in order.
    fn write_loads(&self, sweep: Sweep) -> Vec<Load> {
        let rising = |first, last| rising(first, last, self.plan.write_doublings);
        let load = |work, depth, size| Load {
            duration: self.plan.write_step(),
            window: self.plan.write_window,
            ..self.load(work, depth, size)
        };
        // As a server writes its log.
        let durable = |depth, size| Load {
            is_direct: false,
            ..load(Work::Durable(self.faster_sync()), depth, size)
        };
        match sweep {
            Sweep::Mixed => {
                let recommended = self.mixed_depth();
                let mut depths = rising(1, recommended.max(DEFAULT_DEPTH));
                depths.push(recommended);
                depths.sort_unstable();
                depths.dedup();
                depths.into_iter().map(|depth| load(Work::Mixed(READS), depth, PAGE)).collect()
            }
            Sweep::Random => rising(1, DEPTH_MAX)
                .into_iter()
                .map(|depth| load(Work::RandomWrite, depth, PAGE))
                .collect(),
            Sweep::Sequential => rising(PAGE, LARGE)
                .into_iter()
                .map(|size| load(Work::SequentialWrite, DEFAULT_DEPTH, size))
                .collect(),
            Sweep::DurableSessions => {
                rising(1, SESSIONS_MAX).into_iter().map(|depth| durable(depth, PAGE)).collect()
            }
            Sweep::DurableSizes => {
                rising(PAGE, DURABLE_MAX).into_iter().map(|size| durable(1, size)).collect()
            }
        }
    }

    /// The faster one of the two methods that servers use, with one session.
    fn faster_sync(&self) -> SyncMethod {
        let rate = |method: SyncMethod| {
            let case = self.found.durable.iter().find(|case| case.name == method.name());
            case.map_or(0.0, |case| case.value.median)
        };
        match rate(SyncMethod::OpenDatasync) > rate(SyncMethod::Fdatasync) {
            true => SyncMethod::OpenDatasync,
            false => SyncMethod::Fdatasync,
        }
    }
}

/// Numbers from `first` on, doubled `doublings` times from one to the next. The last one is `last` if
/// that is a power of two times `first`, and otherwise less.
fn rising(first: u32, last: u32, doublings: u32) -> Vec<u32> {
    let doubled: Vec<u32> =
        std::iter::successors(Some(first), |at| at.checked_mul(2).filter(|at| *at <= last))
            .collect();
    let end = doubled.len().saturating_sub(1);
    let is_kept = |at: usize| at.is_multiple_of(doublings as usize) || at == end;
    doubled.iter().enumerate().filter(|(at, _)| is_kept(*at)).map(|(_, number)| *number).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depths_and_sizes_rise_to_the_last_one() {
        assert_eq!(rising(1, 16, 1), [1, 2, 4, 8, 16]);
        assert_eq!(rising(1, 16, 2), [1, 4, 16]);
        assert_eq!(rising(8, 1024, 2), [8, 32, 128, 512, 1024]);
        assert_eq!(rising(1, 31, 1), [1, 2, 4, 8, 16]);
        assert_eq!((rising(1, 1024, 1).len(), rising(1, 1024, 2).len()), (11, 6));
    }
}
