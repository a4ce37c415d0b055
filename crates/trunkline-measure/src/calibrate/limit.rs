//! **Limits**: how fast a device is for long, and how long it can be faster.
//!
//! A limit is found in two parts. The rates of a sweep are measured for a second or two each, while
//! a credit may still last. The long run after it, at a depth that keeps the device busy, shows
//! whether the rate falls. If it was low from its beginning, the credit ended within the sweep.

use serde::{Deserialize, Serialize};

use super::ledger::{Ledger, Unit};
use super::load::Window;
use super::steady::{falls, is_steady, judged};
use super::step::{rate, settled};
use crate::estimate::Estimate;
use crate::rounding::rounded;

/// A credit has ended if the device is slower than this part of the best rate of a sweep.
pub(crate) const DRAINED: f64 = 0.85;

/// A burst that would last less than this many seconds is noise.
const BURST_MIN: f64 = 1.0;

/// A limit on I/Os or bytes per second.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Limit {
    /// What the device delivers for long, with the 95 % interval.
    pub sustained: Estimate,
    /// Whether the last part of the run was steady.
    pub steady: bool,
    /// False if something else was reached first, so that the limit is at least this high.
    pub reached: bool,
    /// What the device delivers while it has credit.
    pub burst: Option<Burst>,
    /// How long it was measured at full speed, in seconds. A credit that lasts longer isn't seen.
    pub measured_seconds: f64,
}

/// A rate above the sustained one that ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Burst {
    /// The rate.
    pub rate: f64,
    /// The units above the sustained rate that were used before it ended.
    pub credit: f64,
    /// How long a full credit lasts at this rate, in seconds.
    pub lasts_seconds: f64,
}

impl Limit {
    /// The highest rate, which lasts as long as the credit.
    pub fn highest(&self) -> f64 {
        self.burst.as_ref().map_or(self.sustained.median, |burst| burst.rate)
    }
}

impl Limit {
    /// Withdraws the burst if the load that was best before the long run is fast again right after it:
    /// a credit doesn't come back at once, so something else slowed the run, such as another program.
    /// `best` and `again` are that load's rates. Then the sustained rate isn't to be trusted either.
    /// Returns whether the burst was withdrawn.
    pub(crate) fn confirm_burst(&mut self, best: f64, again: f64) -> bool {
        if self.burst.is_none() || again < DRAINED * best {
            return false;
        }
        (self.burst, self.steady) = (None, false);
        true
    }
}

/// Finds a limit. `best` is the best rate of the sweep before the long run, and `swept` are the
/// windows of that sweep.
pub(crate) fn find_limit(
    unit: Unit,
    ledger: &Ledger,
    (best, swept): (Estimate, &[Window]),
    run: &[Window],
) -> Option<Limit> {
    let of = unit.rate_of();
    let windows = settled(run);
    if windows.is_empty() {
        return None;
    }
    let rates: Vec<f64> = windows.iter().map(|window| of(window)).collect();
    let falls = falls(&rates);
    // The window in which the credit ended belongs to neither side.
    let last = falls.map_or(&windows[..], |(_, at)| &windows[(at + 1).min(rates.len() - 1)..]);
    // A rate may also rise, so only those windows count that are judged.
    let sustained = rate(&last[last.len() - judged(last.len())..], of);
    let level = sustained.median;
    let burst = match falls {
        Some((first, _)) => Some((rate(&windows[..first], of).median, windows[first].begin)),
        None if level < DRAINED * best.median && sustained.high < best.low => {
            // It ended in the sweep: after the last window that was clearly above the level.
            let middle = f64::midpoint(best.median, level);
            let fast = swept.iter().rfind(|window| of(window) > middle);
            fast.map(|window| (best.median, window.begin + window.seconds))
        }
        None => None,
    };
    let burst = burst.and_then(|(rate, end)| {
        // The window after it still has a part of the burst.
        let end = end + windows.last().map_or(0.0, |window| window.seconds) / 2.0;
        let credit = ledger.spent(unit, level, end);
        let lasts_seconds = rounded(credit / (rate - level).max(1e-9), 1);
        let (rate, credit) = (rounded(rate, 1), rounded(credit, 0));
        (lasts_seconds >= BURST_MIN).then_some(Burst { rate, credit, lasts_seconds })
    });
    let steady = is_steady(&last.iter().map(|window| of(window)).collect::<Vec<f64>>());
    let measured = windows.iter().map(|window| window.seconds).sum();
    Some(Limit { sustained, steady, reached: true, burst, measured_seconds: rounded(measured, 1) })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Windows of a second with these counts, from `begin`.
    fn series(begin: f64, counts: &[u64]) -> Vec<Window> {
        let window = |(number, &count): (usize, &u64)| Window {
            seconds: 1.0,
            count,
            ..Window::new(begin + number as f64)
        };
        counts.iter().enumerate().map(window).collect()
    }

    fn check(swept: &[u64], run: &[u64]) -> Limit {
        let swept = series(0.0, swept);
        let run = series(swept.len() as f64, run);
        let mut ledger = Ledger::default();
        swept.iter().chain(&run).for_each(|window| ledger.add(window));
        let best = Estimate::of(vec![swept.iter().map(Window::ios_per_second).fold(0.0, f64::max)]);
        find_limit(Unit::Ios, &ledger, (best, &swept), &run).expect("a limit")
    }

    #[test]
    fn the_end_of_a_burst_is_not_part_of_the_sustained_rate() {
        // 900 above the rate for 2 + 9 seconds and 400 in the next one.
        let run = [[1000; 9].as_slice(), &[500], &[100; 20]].concat();
        let limit = check(&[1000; 2], &run);
        assert_eq!(limit.sustained.median, 100.0);
        let burst = limit.burst.as_ref().expect("a burst");
        assert_eq!((burst.rate, burst.credit), (1000.0, 11.0 * 900.0 + 400.0));
        assert!((limit.highest() - 1000.0).abs() < 1e-9 && limit.steady);
        assert!((burst.lasts_seconds - 11.4).abs() < 0.1, "{burst:?}");
    }

    #[test]
    fn the_sustained_rate_is_that_of_the_end() {
        let run = |levels: &[u64], each: usize| {
            levels.iter().flat_map(|&level| vec![level; each]).collect::<Vec<u64>>()
        };
        // A rise, as when another program ends.
        let limit = check(&[100; 2], &run(&[100, 200], 60));
        assert_eq!((limit.sustained.median, limit.steady, limit.burst), (200.0, true, None));
        for levels in [[1000, 500, 300], [1000, 600, 300]] {
            let limit = check(&[1000; 2], &run(&levels, 20));
            assert_eq!((limit.sustained.median, limit.steady), (300.0, true), "{levels:?}");
            let burst = limit.burst.expect("a burst");
            // 700 above the end's rate, for 2 + 20 seconds, and up to a part of the next level.
            assert_eq!(burst.rate, 1000.0);
            assert!((burst.credit / 15_400.0 - 1.0).abs() < 0.03, "{burst:?}");
        }
    }

    #[test]
    fn a_credit_does_not_come_back_at_once() {
        let fallen = || check(&[500, 1000, 1000], &[750; 40]);
        let mut limit = fallen();
        assert!(limit.burst.is_some() && !limit.confirm_burst(1000.0, 800.0));
        assert_eq!(limit, fallen());
        assert!(limit.confirm_burst(1000.0, 900.0) && !limit.steady);
        assert_eq!(limit.burst, None);
        assert!(!limit.confirm_burst(1000.0, 900.0));
    }

    #[test]
    fn a_burst_may_end_before_the_long_run() {
        let limit = check(&[500, 1000, 1000, 100, 100], &[100; 20]);
        let burst = limit.burst.expect("a burst");
        assert_eq!((burst.rate, burst.credit), (1000.0, 400.0 + 2.0 * 900.0));
        assert_eq!(check(&[50, 100], &[100; 20]).burst, None);
    }
}
