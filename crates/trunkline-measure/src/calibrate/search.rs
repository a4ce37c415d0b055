//! **Search**: which loads run, in which order, and for how long.
//!
//! ```text
//!   fill ─▶ sizes ─▶ long sequential run ─▶ latency ─▶ depths ─▶ long random run
//!                                                           │
//!     writes ◀─ flush settings ◀─ durable writes ◀─ I/O methods
//! ```
//! What uses up bandwidth comes first, without a pause, because a credit for bytes is earned back
//! while small reads run. The latency is measured with long pauses: a closed loop without pauses
//! can't tell a latency of 0.2 ms from a limit of 5,000 I/Os per second. Mixed loads and writes at
//! rising depth and size (`write_search`) come last, because a device may read slower after them.

use std::time::Duration;

use trunkline_aio::MethodKind;
use trunkline_aio::facade::Arc;

use super::comparison::{Contestant, Measure, is_late, is_over};
use super::findings::{Concurrency, DeviceFindings, Series};
use super::ledger::{Ledger, Unit};
use super::limit::{DRAINED, Limit, find_limit};
use super::load::{DEFAULT_DEPTH, Device, DeviceError, Load, PAGE, SyncMethod, Window, Work};
use super::steady::is_steady;
use super::step::{Step, rate, settled, work_name};
use super::sweep;
use super::time_plan::{TimePlan, WINDOWS};
use crate::error::MeasureError;
use crate::rounding::rounded;
use crate::watcher::Watcher;

/// Size of large reads.
pub(crate) const LARGE: u32 = 1 << 20;
/// Large I/Os in flight.
pub(crate) const LARGE_DEPTH: u32 = 32;
/// Deepest queue.
pub(crate) const DEPTH_MAX: u32 = 1024;
/// Most workers of PostgreSQL (`io_workers`, `io_max_workers`).
pub(crate) const WORKERS_MAX: u32 = 32;
/// A method is compared with at most this many reads in flight.
pub(crate) const METHOD_DEPTH_MAX: u32 = 256;
/// Pause between two reads while the latency is measured.
const PAUSE: Duration = Duration::from_millis(10);
/// A step that a credit permits isn't shorter than this, in seconds.
const CUT_STEP_MIN: f64 = 0.15;
/// Pause between two reads while a device earns its credit back.
const IDLE: Duration = Duration::from_millis(100);
/// A long run ends early when it is steady for this many windows after a credit has ended.
const WINDOWS_AFTER: usize = 32;
/// A smaller scratch file would be cached by the device.
pub(crate) const FILE_MIN: u64 = 16 << 20;
/// Bytes after which page writes are flushed, in a comparison.
pub(crate) const FLUSH_AFTER: [u64; 5] = [0, 256 << 10, 512 << 10, 1 << 20, 2 << 20];
/// The default of `io_combine_limit`, in bytes.
pub(crate) const COMBINE: u32 = 128 << 10;
/// Sessions that write durably in one more case.
pub(crate) const DURABLE_SESSIONS: u32 = 8;

/// Why a search ended early. What was found until then stays.
pub(crate) enum Ended {
    Cancelled,
    Failed(MeasureError),
}

/// A search that is running.
pub(crate) struct Search<'d> {
    pub(super) device: &'d mut dyn Device,
    watcher: Arc<dyn Watcher>,
    pub(super) plan: TimePlan,
    pub(super) ledger: Ledger,
    pub(super) begun: f64,
    /// The largest `io_combine_limit` that may be recommended.
    combine_max: u32,
    /// Whether an I/O failed, so that a part is missing.
    pub(crate) has_failed: bool,
    pub(crate) found: DeviceFindings,
}

impl<'d> Search<'d> {
    pub(crate) fn new(
        device: &'d mut dyn Device,
        time: Duration,
        combine_max: u32,
        watcher: Arc<dyn Watcher>,
    ) -> Self {
        let begun = device.now();
        let (plan, ledger, found) =
            (TimePlan::new(time), Ledger::default(), DeviceFindings::default());
        Self { device, watcher, plan, ledger, begun, combine_max, has_failed: false, found }
    }

    /// Runs everything.
    pub(crate) fn run(&mut self) -> Result<(), Ended> {
        let end = self.device.now() + self.plan.sequential().as_secs_f64();
        self.fill()?;
        self.survive("reads in order", |search| search.sequential(end))?;
        self.latency()?;
        self.survive("random reads", Self::random)?;
        self.found.tell_limits_apart(LARGE, DEPTH_MAX);
        self.survive("I/O methods", Self::methods)?;
        self.survive("durable writes", Self::durable)?;
        self.survive("flush settings", Self::flush)?;
        self.writes()
    }

    /// Runs a part without which the others still have their results. An I/O that fails ends only this
    /// part.
    pub(super) fn survive(
        &mut self,
        what: &str,
        part: impl FnOnce(&mut Self) -> Result<(), Ended>,
    ) -> Result<(), Ended> {
        match part(self) {
            Err(Ended::Failed(error)) => {
                self.found.skipped.push(format!("{what}: {error}"));
                self.has_failed = true;
                Ok(())
            }
            ended => ended,
        }
    }

    fn fill(&mut self) -> Result<(), Ended> {
        let load = Load { duration: self.plan.fill(), ..self.load(Work::Fill, 16, LARGE) };
        let windows = self.must(&load, "writing the scratch file")?;
        self.found.fill = Step::of(&load, &windows);
        self.found.file_bytes = self.device.file_bytes();
        if self.found.file_bytes < FILE_MIN {
            return Err(Ended::Failed(MeasureError::Count {
                work: "scratch file".into(),
                unit: "bytes written in the time for it",
                found: self.found.file_bytes,
                expected: FILE_MIN,
            }));
        }
        Ok(())
    }

    fn sequential(&mut self, end: f64) -> Result<(), Ended> {
        let mut swept = Vec::new();
        for power in 0..=7 {
            let load = self.load(Work::Sequential, DEFAULT_DEPTH, PAGE << power);
            let what = format!("sequential reads of {} kB", load.size / 1024);
            let windows = self.must(&load, &what)?;
            self.found.sizes.extend(Step::of(&load, &windows));
            swept.extend(windows);
        }
        self.compare_sizes()?;
        let best = sweep::best(self.found.sizes.iter().map(|step| step.bytes_per_second));
        let load = self.load(Work::Sequential, LARGE_DEPTH, LARGE);
        let (run, ended) =
            self.long(load, end, (Unit::Bytes, best.median), "sequential reads until steady");
        let mut limit = find_limit(Unit::Bytes, &self.ledger, (best, &swept), &run);
        self.keep_series("sequential reads", "bytes per second", &run, Unit::Bytes);
        let confirmed = ended.and_then(|()| {
            let fastest = self.found.sizes.iter().find(|it| it.bytes_per_second == best);
            let load = fastest.map(|step| self.load(Work::Sequential, step.depth, step.size));
            self.confirm_burst(limit.as_mut(), load, (Unit::Bytes, best.median))
        });
        self.found.bandwidth = limit;
        confirmed
    }

    /// Runs the load that was best in a sweep once more, if a burst seems to have ended since.
    fn confirm_burst(
        &mut self,
        limit: Option<&mut Limit>,
        load: Option<Load>,
        (unit, best): (Unit, f64),
    ) -> Result<(), Ended> {
        let (Some(limit), Some(load)) = (limit.filter(|limit| limit.burst.is_some()), load) else {
            return Ok(());
        };
        let what = format!("{} again", work_name(load.work));
        let windows = self.must(&load, &what)?;
        let again = rate(&settled(&windows), unit.rate_of()).median;
        if limit.confirm_burst(best, again) {
            let text = format!("{what}: fast again at once, so something else slowed the long run");
            self.found.skipped.push(text);
        }
        Ok(())
    }

    /// Compares the size that the sweep suggests for `io_combine_limit` with the default, buffered, as a
    /// server reads unless its settings say otherwise.
    fn compare_sizes(&mut self) -> Result<(), Ended> {
        let enough = self.found.size_that_is_enough().map(|size| size.min(self.combine_max));
        let Some(enough) = enough.filter(|size| *size > COMBINE) else { return Ok(()) };
        let mut cases: Vec<Contestant> = [COMBINE, enough]
            .map(|size| {
                let load =
                    Load { is_direct: false, ..self.load(Work::Sequential, DEFAULT_DEPTH, size) };
                Contestant::new(format!("{} kB", size / 1024), load)
            })
            .into();
        let time = self.plan.comparison(cases.len());
        let ended = self.compare(&mut cases, time, Measure::Rate, "combined reads");
        self.found.combined = cases.into_iter().filter_map(Contestant::finish).collect();
        ended
    }

    /// Compares the number of reads in flight that the sweep suggests, and those that other settings
    /// limit a session to, with the default.
    fn compare_depths(&mut self, recommended: u32) -> Result<(), Ended> {
        let mut depths = vec![DEFAULT_DEPTH, recommended.min(WORKERS_MAX), recommended];
        depths.retain(|depth| *depth >= DEFAULT_DEPTH);
        depths.dedup();
        if depths.len() < 2 {
            return Ok(());
        }
        let case = |&depth: &u32| {
            Contestant::new(format!("{depth} in flight"), self.load(Work::Random, depth, PAGE))
        };
        let mut cases: Vec<Contestant> = depths.iter().map(case).collect();
        let time = self.plan.comparison(cases.len());
        let ended = self.compare(&mut cases, time, Measure::Rate, "reads in flight");
        self.found.in_flight = cases.into_iter().filter_map(Contestant::finish).collect();
        ended
    }

    fn latency(&mut self) -> Result<(), Ended> {
        let duration = self.plan.latency();
        let load = Load { pause: PAUSE, duration, ..self.load(Work::Random, 1, PAGE) };
        let windows = self.must(&load, "latency")?;
        self.found.latency = Step::of(&load, &windows);
        Ok(())
    }

    fn random(&mut self) -> Result<(), Ended> {
        let end = self.device.now() + self.plan.random().as_secs_f64();
        let (swept, is_cut) = self.sweep_depths(end)?;
        let points: Vec<(f64, f64)> = self.found.depths.iter().map(point).collect();
        let best = sweep::best(self.found.depths.iter().map(|step| step.ios_per_second));
        let knee = sweep::knee(&points).unwrap_or(1.0);
        let latency = self.found.latency_seconds();
        let deepest = self.found.depths.last().map(|step| step.depth);
        let cut_after = deepest.filter(|_| is_cut);
        let concurrency =
            |rate| latency.map(|latency| Concurrency::of(latency, rate, knee, cut_after));
        self.found.concurrency = concurrency(best.median);
        self.compare_depths(self.found.concurrency_or_default())?;
        let depth = ((2.0 * knee).ceil() as u32).clamp(2, DEPTH_MAX);
        let load = self.load(Work::Random, depth, PAGE);
        let (run, ended) =
            self.long(load, end, (Unit::Ios, best.median), "random reads until steady");
        let mut limit = find_limit(Unit::Ios, &self.ledger, (best, &swept), &run);
        self.keep_series("random reads", "I/Os per second", &run, Unit::Ios);
        let confirmed = ended.and_then(|()| {
            let fastest = self.found.depths.iter().find(|it| it.ios_per_second == best);
            let load = fastest.map(|step| self.load(Work::Random, step.depth, PAGE));
            self.confirm_burst(limit.as_mut(), load, (Unit::Ios, best.median))
        });
        if let Some(limit) = &limit {
            self.found.concurrency = concurrency(limit.highest().max(best.median));
        }
        self.found.iops = limit;
        confirmed
    }

    /// Measures rising depths until the rate doesn't grow. Returns the windows, and whether a credit
    /// ended while the rate still grew and there was no time to earn it back, so that neither the
    /// highest rate nor its depth is known.
    fn sweep_depths(&mut self, end: f64) -> Result<(Vec<Window>, bool), Ended> {
        // The other half of the time belongs to the long run.
        let late = end - self.plan.random().as_secs_f64() / 2.0;
        let (mut swept, mut depth, mut step) = (Vec::new(), 1, self.plan.step);
        let mut window = self.plan.window;
        while depth <= DEPTH_MAX {
            let load = Load { duration: step, window, ..self.load(Work::Random, depth, PAGE) };
            let windows = self.must(&load, &format!("random reads, {depth} in flight"))?;
            let rates: Vec<f64> =
                self.found.depths.iter().map(|step| step.ios_per_second.median).collect();
            if sweep::is_cut(&rates, &settled(&windows)) {
                let drained = rate(&settled(&windows), Window::ios_per_second).low;
                let best = rates.last().copied().unwrap_or(0.0);
                let spent = self.ledger.spent(Unit::Ios, drained, self.device.now());
                swept.extend(windows);
                // Half of the credit must be enough for a step at twice the rate. An idle device earns
                // a whole one back in this time.
                let wanted = step.as_secs_f64().min(spent / (2.0 * best) / 2.0);
                let idle = Duration::from_secs_f64((spent / drained.max(1e-9)).clamp(0.1, 1e6));
                if wanted < CUT_STEP_MIN || self.device.now() + idle.as_secs_f64() + wanted > late {
                    return Ok((swept, true));
                }
                let load = Load { duration: idle, pause: IDLE, ..self.load(Work::Random, 1, PAGE) };
                swept.extend(self.must(&load, "waiting for the burst credit")?);
                step = Duration::from_secs_f64(wanted);
                window = window.min(step / WINDOWS);
                continue;
            }
            self.found.depths.extend(Step::of(&load, &windows));
            swept.extend(windows);
            let rates: Vec<f64> =
                self.found.depths.iter().map(|step| step.ios_per_second.median).collect();
            // The default's depth is always measured, since it is what settings are compared with.
            if depth >= DEFAULT_DEPTH && sweep::is_over(&rates) {
                break;
            }
            depth *= 2;
        }
        Ok((swept, false))
    }

    fn methods(&mut self) -> Result<(), Ended> {
        let depth = self.found.concurrency_or_default().clamp(DEFAULT_DEPTH, METHOD_DEPTH_MAX);
        let most = depth.min(WORKERS_MAX);
        let case = |name: &str, method, workers: u32, size: u32| {
            let kind = if size == PAGE { Work::Random } else { Work::Sequential };
            let depth = if size == PAGE { depth } else { DEFAULT_DEPTH };
            let load = Load {
                is_direct: false,
                method: Some(method),
                workers: workers as usize,
                ..self.load(kind, depth, size)
            };
            Contestant::new(name, load)
        };
        let large = 128 << 10;
        let mut cases = vec![
            case("sync", MethodKind::Sync, 3, PAGE),
            case("worker, 3 workers", MethodKind::Worker, 3, PAGE),
            case("worker, 8 workers", MethodKind::Worker, 8, PAGE),
            case(&most_workers(most), MethodKind::Worker, most, PAGE),
            case("io_uring", MethodKind::IoUring, 3, PAGE),
            case("sequential, worker, 3 workers", MethodKind::Worker, 3, large),
            case("sequential, worker, 8 workers", MethodKind::Worker, 8, large),
            case(&format!("sequential, {}", most_workers(most)), MethodKind::Worker, most, large),
            case("sequential, io_uring", MethodKind::IoUring, 3, large),
        ];
        // At the least depth, these are the same.
        let mut names: Vec<String> = Vec::new();
        cases.retain(|case| {
            let is_new = !names.contains(&case.name);
            names.push(case.name.clone());
            is_new
        });
        let ended = self.compare(&mut cases, self.plan.methods(), Measure::Rate, "I/O methods");
        self.found.methods = cases.into_iter().filter_map(Contestant::finish).collect();
        ended
    }

    fn durable(&mut self) -> Result<(), Ended> {
        let mut cases: Vec<Contestant> = SyncMethod::ALL
            .map(|method| Contestant::new(method.name(), self.load(Work::Durable(method), 1, PAGE)))
            .into();
        for method in [SyncMethod::Fdatasync, SyncMethod::OpenDatasync] {
            let name = format!("{}, {DURABLE_SESSIONS} sessions", method.name());
            let load = self.load(Work::Durable(method), DURABLE_SESSIONS, PAGE);
            cases.push(Contestant::new(name, load));
        }
        let ended = self.compare(&mut cases, self.plan.durable(), Measure::Rate, "durable writes");
        self.found.durable = cases.into_iter().filter_map(Contestant::finish).collect();
        ended
    }

    fn flush(&mut self) -> Result<(), Ended> {
        let case = |bytes: u64| {
            let name = if bytes == 0 { "0".to_owned() } else { format!("{}kB", bytes / 1024) };
            Contestant::new(name, self.load(Work::Flush(bytes), 1, PAGE))
        };
        let mut cases = FLUSH_AFTER.map(case).into_iter().collect::<Vec<_>>();
        let ended = self.compare(&mut cases, self.plan.flush(), Measure::Mean, "flush settings");
        self.found.flush = cases.into_iter().filter_map(Contestant::finish).collect();
        ended
    }

    /// Measures the cases in turn. The order alternates, so that no case always follows the same one.
    fn compare(
        &mut self,
        cases: &mut [Contestant],
        time: Duration,
        measure: Measure,
        what: &str,
    ) -> Result<(), Ended> {
        let begun = self.device.now();
        let round_time = Contestant::round(time, cases.len());
        for round in 0.. {
            let spent = Duration::from_secs_f64((self.device.now() - begun).max(0.0));
            let all_skipped = cases.iter().all(Contestant::is_skipped);
            // The first round warms up.
            if all_skipped || round > 0 && is_over(round - 1, spent, time) {
                break;
            }
            let mut order: Vec<usize> = (0..cases.len()).collect();
            if round % 2 == 1 {
                order.reverse();
            }
            for at in order.into_iter().filter(|&at| !cases[at].is_skipped()).collect::<Vec<_>>() {
                // A single case may take much longer than planned.
                if is_late(self.device.now() - begun, time) {
                    break;
                }
                // Several windows in a round, so that its end can be left out.
                let window = self.plan.window.min(round_time / 4);
                let load = Load { duration: round_time, window, ..cases[at].load };
                let name = format!("{what}: {}", cases[at].name);
                let mut windows = Vec::new();
                match self.observe(&load, &name, &mut |_| true, &mut windows) {
                    Ok(()) if round > 0 => cases[at].add(measure, windows),
                    Ok(()) => {}
                    Err(Refused::Unsupported(reason)) => {
                        if cases[at].load.method == Some(MethodKind::IoUring) {
                            self.found.no_uring = Some(reason.clone());
                        }
                        self.found.skipped.push(format!("{name}: {reason}"));
                        cases[at].skip();
                    }
                    Err(Refused::Ended(ended)) => return Err(ended),
                }
            }
        }
        Ok(())
    }

    /// A run at full speed until `end`, or until it is steady after its credit has ended. `best` is
    /// the best rate before it. The windows of a run that was cancelled are still worth something.
    fn long(
        &mut self,
        load: Load,
        end: f64,
        (unit, best): (Unit, f64),
        what: &str,
    ) -> (Vec<Window>, Result<(), Ended>) {
        let left = Duration::from_secs_f64((end - self.device.now()).max(0.0));
        let load = Load { duration: left.max(self.plan.step), ..load };
        let (mut rates, mut windows): (Vec<f64>, _) = (Vec::new(), Vec::new());
        let mut goes_on = |window: &Window| {
            rates.push(unit.rate(window));
            // Also if the credit has ended before this run.
            let after = rates.iter().rev().take_while(|rate| **rate < DRAINED * best).count();
            after < WINDOWS_AFTER || !is_steady(&rates[rates.len() - after..])
        };
        let ran = self.observe(&load, what, &mut goes_on, &mut windows);
        (windows, ran.map_err(|refused| refused.of_needed(what)))
    }

    /// A load that every device must be able to do.
    pub(super) fn must(&mut self, load: &Load, what: &str) -> Result<Vec<Window>, Ended> {
        let mut windows = Vec::new();
        let ran = self.observe(load, what, &mut |_| true, &mut windows);
        ran.map_err(|refused| refused.of_needed(what))?;
        Ok(windows)
    }

    /// Runs a load, enters it into the ledger, and shows the progress.
    fn observe(
        &mut self,
        load: &Load,
        what: &str,
        goes_on: &mut dyn FnMut(&Window) -> bool,
        windows: &mut Vec<Window>,
    ) -> Result<(), Refused> {
        let total = self.plan.total.as_millis() as u64;
        let (begun, watcher, ledger) = (self.begun, &self.watcher, &mut self.ledger);
        let show = |now: f64| {
            // The last phases may take a little longer than planned.
            let done = ((now - begun) * 1e3) as u64;
            watcher.progressed(done.min(total.saturating_sub(1)), total, &what);
        };
        show(self.device.now());
        let ran = self.device.run(load, &mut |window| {
            show(window.begin + window.seconds);
            ledger.add(&window);
            let is_tail = window.is_tail;
            windows.push(window);
            let last = windows.last();
            !watcher.cancelled() && (is_tail || last.is_some_and(&mut *goes_on))
        });
        // A wait that was cancelled may look like a failure.
        if self.watcher.cancelled() {
            return Err(Refused::Ended(Ended::Cancelled));
        }
        match ran {
            Ok(()) => Ok(()),
            Err(DeviceError::Unsupported(reason)) => Err(Refused::Unsupported(reason)),
            Err(DeviceError::Failed(error)) => Err(Refused::Ended(Ended::Failed(error))),
        }
    }

    /// A load with the usual values.
    pub(super) fn load(&self, work: Work, depth: u32, size: u32) -> Load {
        Load {
            work,
            is_direct: self.device.is_direct(),
            method: None,
            workers: DEPTH_MAX as usize,
            depth,
            size,
            pause: Duration::ZERO,
            duration: self.plan.step,
            window: self.plan.window,
        }
    }

    fn keep_series(&mut self, name: &str, unit: &str, run: &[Window], of: Unit) {
        let begin = run.first().map_or(0.0, |window| window.begin);
        let point = |window: &&Window| {
            (rounded(window.begin - begin + window.seconds, 2), rounded(of.rate(window), 0))
        };
        let points = settled(run).iter().map(point).collect();
        self.found.series.push(Series { name: name.to_owned(), unit: unit.to_owned(), points });
    }
}

/// Why a load has no windows.
enum Refused {
    Unsupported(String),
    Ended(Ended),
}

impl Refused {
    /// The end of a search that can't do without the load.
    fn of_needed(self, what: &str) -> Ended {
        match self {
            Self::Unsupported(reason) => {
                Ended::Failed(MeasureError::Thread(format!("could not run {what}: {reason}")))
            }
            Self::Ended(ended) => ended,
        }
    }
}

/// The name of the case with as many workers as reads in flight.
pub(crate) fn most_workers(count: u32) -> String {
    format!("worker, {count} workers")
}

/// Depth and rate of a step.
fn point(step: &Step) -> (f64, f64) {
    (f64::from(step.depth), step.ios_per_second.median)
}
