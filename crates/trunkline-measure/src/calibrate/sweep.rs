//! **Sweeps**: the same load at rising depth or size, until the device doesn't get faster.
//!
//! ```text
//!   IOPS                  ___●___●  plateau
//!                    ●───┘ ▲
//!               ●          knee: where a line through the last two depths reaches 95 % of it
//!           ●
//!         1  2  4  8 …                depth
//! ```

use super::limit::DRAINED;
use super::load::Window;
use crate::estimate::Estimate;

/// The rate at the knee, as a part of the plateau.
pub(crate) const KNEE: f64 = 0.95;
/// A step has to be this much faster than all before it for the sweep to go on.
const GROWTH_MIN: f64 = 1.05;
/// Steps without growth that end a sweep.
const FLAT_STEPS: usize = 2;

/// Whether a sweep is over: the rates of its steps so far no longer grow.
pub(crate) fn is_over(rates: &[f64]) -> bool {
    let (mut best, mut flat) = (0.0_f64, 0);
    for &rate in rates {
        if rate < DRAINED * best {
            return true;
        }
        flat = if rate >= GROWTH_MIN * best { 0 } else { flat + 1 };
        best = best.max(rate);
    }
    flat >= FLAT_STEPS
}

/// Whether a credit ended in a step, while its rate would still have grown. `rates` are those of the
/// steps before it. The step is slower than the one before, from its beginning or from some window on,
/// although that one was faster than all before it.
pub(crate) fn is_cut(rates: &[f64], windows: &[&Window]) -> bool {
    let Some((&last, before)) = rates.split_last() else { return false };
    let best = before.iter().copied().fold(0.0, f64::max);
    let end = &windows[windows.len() - windows.len().min(2)..];
    let is_slow = end.iter().all(|window| window.ios_per_second() < DRAINED * last);
    last >= GROWTH_MIN * best && is_slow
}

/// The best of the rates; zero if there is none.
pub(crate) fn best(rates: impl Iterator<Item = Estimate>) -> Estimate {
    let nothing = Estimate { median: 0.0, low: 0.0, high: 0.0 };
    rates.max_by(|a, b| a.median.total_cmp(&b.median)).unwrap_or(nothing)
}

/// How many I/Os in flight it takes for [`KNEE`] of the best rate, between two measured depths.
pub(crate) fn knee(points: &[(f64, f64)]) -> Option<f64> {
    let best = points.iter().map(|(_, rate)| *rate).fold(f64::NAN, f64::max);
    let wanted = KNEE * best;
    let at = points.iter().position(|(_, rate)| *rate >= wanted)?;
    let (depth, rate) = points[at];
    let Some(&(below, slower)) = at.checked_sub(1).and_then(|at| points.get(at)) else {
        return Some(depth);
    };
    Some(below + (depth - below) * (wanted - slower) / (rate - slower).max(1e-9))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sweep_ends_when_two_steps_are_flat() {
        assert!(!is_over(&[100.0, 200.0, 400.0]));
        assert!(!is_over(&[100.0, 200.0, 400.0, 410.0]));
        assert!(is_over(&[100.0, 200.0, 400.0, 410.0, 412.0]));
        // One step that is flat by chance.
        assert!(!is_over(&[100.0, 200.0, 201.0, 400.0, 402.0]));
        // A credit has ended.
        assert!(is_over(&[100.0, 200.0, 400.0, 300.0]));
    }

    #[test]
    fn a_step_is_cut_if_a_credit_ends_in_it() {
        let windows = |counts: &[u64]| -> Vec<Window> {
            let window = |&count: &u64| Window { seconds: 1.0, count, ..Window::new(0.0) };
            counts.iter().map(window).collect()
        };
        let is_cut = |rates: &[f64], counts: &[u64]| {
            let windows = windows(counts);
            super::is_cut(rates, &windows.iter().collect::<Vec<_>>())
        };
        assert!(is_cut(&[100.0, 200.0, 400.0], &[100; 6]));
        assert!(is_cut(&[100.0, 200.0, 400.0], &[800, 800, 800, 100, 100]));
        assert!(!is_cut(&[100.0, 200.0, 400.0], &[800, 800, 100, 800, 100, 800]));
        // On a plateau, a lower rate says nothing about the knee.
        assert!(!is_cut(&[100.0, 400.0, 400.0], &[100; 6]));
        assert!(!is_cut(&[], &[100; 6]));
    }

    /// The knee of an ideal disk is within a factor of two of latency times throughput, wherever
    /// that is between two depths.
    #[test]
    fn the_knee_of_an_ideal_disk() {
        for tenths in 10..=10_000 {
            let product = f64::from(tenths) / 10.0;
            let depths = (0..=10).map(|power| f64::from(1 << power));
            let points: Vec<(f64, f64)> = depths.map(|depth| (depth, depth.min(product))).collect();
            let found = knee(&points).expect("a knee");
            assert!(found >= 0.9 * product && found <= 1.6 * product, "{product}: {found}");
        }
        assert_eq!(knee(&[(1.0, 5.0), (2.0, 5.0)]), Some(1.0));
        assert_eq!(knee(&[]), None);
    }
}
