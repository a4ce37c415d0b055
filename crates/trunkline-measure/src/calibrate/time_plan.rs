//! **Time plan**: how the time of a calibration is divided.
//!
//! Comparisons need their rounds, however short the calibration is. The rest goes into the two long
//! runs, because a credit that lasts a minute looks like a steady state until it ends:
//!
//! | Part | Share | At least | Of 180 s |
//! |---|---|---|---|
//! | I/O methods, interleaved | 6 % | 6.4 s | 11 s |
//! | durable writes, interleaved | 3.5 % | 4.8 s | 6 s |
//! | flush settings, interleaved | 6 % | 5 s | 11 s |
//! | latency | 1 % | one step | 2 s |
//! | mixed reads and writes, and writes, at rising depth and size | 7 % | 3.2 s | 13 s |
//! | fill the scratch file, sequential reads at rising size, then one long run | half of the rest | | 69 s |
//! | of these, filling takes at most | 9 % | | 16 s |
//! | random reads at rising depth, then one long run | half of the rest | | 69 s |
//!
//! Of 180 s, each long run has at least 55 s; filling belongs to the first one, because it uses up
//! credit, too. A calibration of less than 78 s writes with every second depth and size only.
//!
//! Steps and rounds take longer than planned on a slow device. The sweeps that write come last and
//! make up for it: they end 3 % after the total time, at the latest, unless other parts have used up
//! their share. Then they still have 5/4 of it.

use std::time::Duration;

/// Time of a step of a sweep, as a part of the total.
const STEP: f64 = 1.0 / 200.0;
/// Windows of a step. The first one isn't used, and six samples give an interval.
pub(crate) const WINDOWS: u32 = 7;
/// A window isn't shorter, because a slow disk completes few I/Os in it.
const WINDOW_MIN: Duration = Duration::from_millis(40);
/// A window isn't longer.
const WINDOW_MAX: Duration = Duration::from_millis(250);
/// Time of all sweeps that write, as a part of the total.
const WRITES: f64 = 0.07;
/// How late the sweeps that write may end, as a part of the total.
const LATE: f64 = 0.03;
/// The time that these sweeps have if other parts have used up theirs, as a part of what is planned.
const WRITES_LEAST: f64 = 1.25;
/// A window of a sweep that writes isn't shorter. Its rate decides nothing, so it may be noisier.
const WRITE_WINDOW_MIN: Duration = Duration::from_millis(20);
/// Steps of all sweeps that write, at most: with each depth and size, and with every second one.
const WRITE_STEPS: [u32; 2] = [39, 23];

/// The parts of a calibration, in seconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TimePlan {
    pub(crate) total: Duration,
    pub(crate) window: Duration,
    pub(crate) step: Duration,
    /// A window of a sweep that writes.
    pub(crate) write_window: Duration,
    /// Sweeps that write double their depth or size this many times from one step to the next.
    pub(crate) write_doublings: u32,
}

impl TimePlan {
    pub(crate) fn new(total: Duration) -> Self {
        let window = total.mul_f64(STEP) / WINDOWS;
        let window = window.clamp(WINDOW_MIN, WINDOW_MAX);
        let [all, half] = WRITE_STEPS.map(|steps| total.mul_f64(WRITES) / steps / WINDOWS);
        let (write_doublings, write_window) =
            if all < WRITE_WINDOW_MIN { (2, half) } else { (1, all) };
        let write_window = write_window.clamp(WRITE_WINDOW_MIN, WINDOW_MAX);
        Self { total, window, step: window * WINDOWS, write_window, write_doublings }
    }

    fn part(&self, share: f64) -> Duration {
        self.total.mul_f64(share)
    }

    /// Filling the scratch file, at most.
    pub(crate) fn fill(&self) -> Duration {
        self.part(0.09)
    }

    /// Everything that reads in order, with the filling.
    pub(crate) fn sequential(&self) -> Duration {
        let others = self.methods() + self.durable() + self.flush();
        self.total.saturating_sub(others + self.latency() + self.writes()) / 2
    }

    /// Everything that reads at random.
    pub(crate) fn random(&self) -> Duration {
        self.sequential()
    }

    pub(crate) fn latency(&self) -> Duration {
        self.part(0.01).max(self.step)
    }

    /// A step of a sweep that writes.
    pub(crate) fn write_step(&self) -> Duration {
        self.write_window * WINDOWS
    }

    /// All sweeps that write.
    pub(crate) fn writes(&self) -> Duration {
        let [all, half] = WRITE_STEPS;
        self.write_step() * if self.write_doublings == 1 { all } else { half }
    }

    /// When the sweeps that write end at the latest, in seconds on the clock on which the calibration
    /// began at `begun` and these sweeps begin at `now`.
    pub(crate) fn end(&self, begun: f64, now: f64) -> f64 {
        let end = begun + self.total.mul_f64(1.0 + LATE).as_secs_f64();
        end.max(now + self.writes().mul_f64(WRITES_LEAST).as_secs_f64())
    }

    pub(crate) fn methods(&self) -> Duration {
        self.part(0.06).max(Duration::from_millis(6_400))
    }

    /// A comparison of this many cases in the middle of a sweep, whose time it is a part of.
    pub(crate) fn comparison(&self, cases: usize) -> Duration {
        let cases = u32::try_from(cases).unwrap_or(u32::MAX);
        self.part(0.02).max(Duration::from_millis(700) * cases)
    }

    pub(crate) fn durable(&self) -> Duration {
        self.part(0.035).max(Duration::from_millis(4_800))
    }

    pub(crate) fn flush(&self) -> Duration {
        self.part(0.06).max(Duration::from_secs(5))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_are_no_more_than_the_whole() {
        for seconds in [30, 45, 60, 180, 3600] {
            let plan = TimePlan::new(Duration::from_secs(seconds));
            let steps = plan.latency() + plan.writes();
            let parts = plan.sequential() + plan.random() + plan.methods() + plan.durable();
            let all = parts + plan.flush() + steps;
            assert!(all <= plan.total, "{seconds}: {all:?}");
            // Both sweeps leave time for the long runs.
            assert!(plan.step * 8 + plan.fill() < plan.sequential(), "{seconds}");
            assert!(plan.step * 11 < plan.random(), "{seconds}");
        }
    }

    #[test]
    fn a_credit_of_a_minute_ends_within_the_long_runs() {
        let plan = TimePlan::new(Duration::from_secs(180));
        let left = plan.random() - plan.step * 11 - plan.comparison(3);
        let with_fill = plan.sequential() - plan.step * 8 - plan.comparison(2);
        assert!(left.min(with_fill) >= Duration::from_secs(55), "{left:?}, {with_fill:?}");
    }

    #[test]
    fn a_short_calibration_writes_with_fewer_steps() {
        let doublings = |seconds| TimePlan::new(Duration::from_secs(seconds)).write_doublings;
        assert_eq!([30, 60, 77, 78, 180].map(doublings), [2, 2, 2, 1, 1]);
    }

    #[test]
    fn sweeps_that_write_end_soon_after_the_total_time() {
        let plan = TimePlan::new(Duration::from_secs(100));
        let near = |end: f64, expected: f64| (end - expected).abs() < 0.1;
        assert!(near(plan.end(7.0, 60.0), 110.0) && near(plan.end(7.0, 101.0), 110.0));
        // Other parts took longer.
        assert!(near(plan.end(7.0, 105.0), 113.75) && near(plan.end(7.0, 200.0), 208.75));
    }
}
