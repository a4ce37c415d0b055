//! **Steady state**: whether a rate has settled, and whether it fell on the way.
//!
//! A disk with burst credit is fast until the credit is used up, an empty SSD until it has to erase
//! blocks. A number from the beginning is then wrong for the rest of the disk's life.
//!
//! ```text
//!   rate ██████████████████▄▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂
//!        └──── burst ─────┘└─ sustained: steady? ─┘
//!                          shift
//! ```
//! - **Steady** is the rule of the Solid State Storage Performance Test Specification (SNIA, PTS 2.0):
//!   over five rounds, the largest and the smallest rate differ by at most 20 % of the mean, and a
//!   line through them rises or falls by at most 10 % of the mean. Our rounds are the last half of
//!   the windows in five equal parts.
//! - **A shift** is the split of a series that explains most of its variance, if the rate falls by
//!   at least 10 % there and by more than its noise, within a few windows, and hardly returns. The
//!   noise is what differs from one window to the next, so another fall on either side isn't noise.

/// Rounds that are compared.
const ROUNDS: usize = 5;
/// Largest difference between two rounds, as a fraction of their mean.
const RANGE_MAX: f64 = 0.20;
/// Largest change of the fitted line over all rounds, as a fraction of their mean.
const SLOPE_MAX: f64 = 0.10;
/// Windows on either side of a shift, at least.
const SIDE_MIN: usize = 4;
/// A fall to more than this part isn't a shift.
const FALL_MAX: f64 = 0.90;
/// A fall has to be this many times the noise.
const NOISE_FACTOR: f64 = 4.0;
/// Turns a median absolute deviation into a standard deviation of normally distributed noise.
const MAD_TO_DEVIATION: f64 = 1.4826;
/// The windows next to a shift fall by this part of it, at least. A slow decline isn't a shift.
const SHARP_MIN: f64 = 0.5;
/// This part of the windows may be on the wrong side of the middle between both rates.
const STRAY_MAX: f64 = 0.1;

/// Whether the end of a series of rates is steady.
pub(crate) fn is_steady(rates: &[f64]) -> bool {
    if rates.len() < ROUNDS {
        return false;
    }
    let last = &rates[rates.len() - judged(rates.len())..];
    let rounds: Vec<f64> = last.chunks(last.len() / ROUNDS).map(mean).collect();
    let middle = mean(&rounds);
    let (low, high) = rounds
        .iter()
        .fold((f64::INFINITY, 0.0_f64), |(low, high), &rate| (low.min(rate), high.max(rate)));
    middle > 0.0
        && high - low <= RANGE_MAX * middle
        && (slope(&rounds) * (ROUNDS - 1) as f64).abs() <= SLOPE_MAX * middle
}

/// How many windows at the end of a series of `count` [`is_steady`] looks at. A rate that is called
/// steady is the rate of these.
pub(crate) fn judged(count: usize) -> usize {
    if count < ROUNDS { count } else { (count / 2 / ROUNDS).max(1) * ROUNDS }
}

/// The first fall of a series, and where its last one is: the number of windows before each. Both are
/// the same unless the rate falls more than once.
pub(crate) fn falls(rates: &[f64]) -> Option<(usize, usize)> {
    let found = find_shift(rates)?.at;
    let (mut first, mut last) = (found, found);
    while let Some(shift) = find_shift(&rates[..first]) {
        first = shift.at;
    }
    // The window in which the rate fell belongs to neither side.
    while let Some(shift) = find_shift(&rates[last + 1..]) {
        last += 1 + shift.at;
    }
    Some((first, last))
}

/// Slope of the least-squares line, per round.
fn slope(rounds: &[f64]) -> f64 {
    let (middle, centre) = (mean(rounds), (rounds.len() - 1) as f64 / 2.0);
    let at = |number: usize| number as f64 - centre;
    let products: f64 = rounds.iter().enumerate().map(|(n, rate)| at(n) * (rate - middle)).sum();
    let squares: f64 = (0..rounds.len()).map(|number| at(number).powi(2)).sum();
    products / squares
}

/// A fall of a rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Shift {
    /// Number of windows before it.
    pub(crate) at: usize,
    /// The rate before it.
    pub(crate) before: f64,
    /// The rate after it.
    pub(crate) after: f64,
}

/// The fall of a series of rates that explains most of its variance, if there is one.
pub(crate) fn find_shift(rates: &[f64]) -> Option<Shift> {
    if rates.len() < 2 * SIDE_MIN {
        return None;
    }
    let total: f64 = rates.iter().sum();
    let mut left: f64 = rates[..SIDE_MIN - 1].iter().sum();
    let mut best = (0.0, 0);
    for at in SIDE_MIN..=rates.len() - SIDE_MIN {
        left += rates[at - 1];
        let (before, after) = (at as f64, (rates.len() - at) as f64);
        let fall = left / before - (total - left) / after;
        // The variance between both sides. Only falls count.
        let explained = fall.max(0.0).powi(2) * before * after;
        if explained > best.0 {
            best = (explained, at);
        }
    }
    let (_, at) = best;
    let (first, last) = rates.split_at(at);
    if at == 0 {
        return None;
    }
    let (before, after) = (median(first), median(last));
    let fall = before - after;
    let near = median(&first[at - SIDE_MIN..]) - median(&last[..SIDE_MIN]);
    let middle = f64::midpoint(before, after);
    let stray = |part: &[f64], is_stray: fn(f64, f64) -> bool| {
        let count = part.iter().filter(|rate| is_stray(**rate, middle)).count();
        count as f64 > STRAY_MAX * part.len() as f64
    };
    let is_shift = after <= FALL_MAX * before
        && fall > NOISE_FACTOR * noise(rates)
        && near >= SHARP_MIN * fall
        && !stray(first, |rate, middle| rate < middle)
        && !stray(last, |rate, middle| rate > middle);
    is_shift.then_some(Shift { at, before, after })
}

fn mean(numbers: &[f64]) -> f64 {
    numbers.iter().sum::<f64>() / numbers.len().max(1) as f64
}

fn median(numbers: &[f64]) -> f64 {
    crate::estimate::Estimate::of(numbers.to_vec()).median
}

/// The standard deviation of single rates, from the differences of neighbours, most of which no fall
/// is between. It ignores outliers.
fn noise(rates: &[f64]) -> f64 {
    let differences = rates.windows(2).map(|pair| (pair[1] - pair[0]).abs()).collect::<Vec<f64>>();
    median(&differences) * MAD_TO_DEVIATION / std::f64::consts::SQRT_2
}

#[cfg(test)]
mod tests {
    use super::*;
    use trunkline_aio::facade::random::Rng;

    /// Rates around `level` with uniform noise of this part.
    fn around(rng: &mut Rng, level: f64, noise: f64, count: usize) -> Vec<f64> {
        let mut part = || rng.below(2_000_001) as f64 / 1e6 - 1.0;
        (0..count).map(|_| level * (1.0 + noise * part())).collect()
    }

    #[test]
    fn a_level_is_steady_and_has_no_shift() {
        for seed in 0..200 {
            let mut rng = Rng::new(seed);
            let level = 10.0 + rng.below(1_000_000) as f64;
            let count = 20 + rng.below(200) as usize;
            let rates = around(&mut rng, level, 0.04, count);
            assert!(is_steady(&rates), "seed {seed}");
            assert_eq!(find_shift(&rates), None, "seed {seed}");
        }
    }

    #[test]
    fn what_still_falls_or_swings_is_not_steady() {
        // A line that falls by 30 % in the second half, which is what the rounds are made of.
        let falling: Vec<f64> = (0..100).map(|n| 100.0 - 0.6 * f64::from(n)).collect();
        let swinging = (0..100).map(|n| if n / 10 % 2 == 0 { 100.0 } else { 75.0 });
        let swinging: Vec<f64> = swinging.collect();
        assert!(!is_steady(&falling) && !is_steady(&swinging));
        assert!(!is_steady(&[100.0; 4]) && is_steady(&[100.0; 5]));
        assert!(!is_steady(&[0.0; 50]));
        // The limits themselves: a range of 20 % and of 21 %, without a slope.
        assert!(is_steady(&[110.0, 90.0, 100.0, 90.0, 110.0]));
        assert!(!is_steady(&[110.6, 89.4, 100.0, 89.4, 110.6]));
        // A slope of 9 % and of 11 %.
        let line = |part: f64| (0..5).map(move |n| 100.0 + part * 25.0 * (f64::from(n) - 2.0));
        assert!(is_steady(&line(0.09).collect::<Vec<f64>>()));
        assert!(!is_steady(&line(0.11).collect::<Vec<f64>>()));
    }

    #[test]
    fn a_fall_is_found_where_it_is() {
        for seed in 0..200 {
            let mut rng = Rng::new(seed);
            let (first, last) = (4 + rng.below(100) as usize, 4 + rng.below(100) as usize);
            let part = 0.1 + rng.below(75) as f64 / 100.0;
            let mut rates = around(&mut rng, 1000.0, 0.02, first);
            rates.extend(around(&mut rng, 1000.0 * part, 0.02, last));
            let shift = find_shift(&rates).unwrap_or_else(|| panic!("seed {seed}: no shift"));
            assert_eq!(shift.at, first, "seed {seed}");
            assert!((shift.before / 1000.0 - 1.0).abs() < 0.02, "seed {seed}: {shift:?}");
            assert!((shift.after / (1000.0 * part) - 1.0).abs() < 0.02, "seed {seed}: {shift:?}");
        }
    }

    #[test]
    fn a_rise_or_a_small_fall_is_no_shift() {
        let steps = |before: f64, after: f64| [[before; 20], [after; 20]].concat();
        assert_eq!(find_shift(&steps(100.0, 200.0)), None);
        assert_eq!(find_shift(&steps(100.0, 91.0)), None);
        assert!(find_shift(&steps(100.0, 89.0)).is_some());
        assert_eq!(find_shift(&[100.0, 100.0, 100.0, 10.0, 10.0, 10.0]), None);
        let falling: Vec<f64> = (0..100).map(|n| 100.0 - 0.6 * f64::from(n)).collect();
        let swinging = (0..100).map(|n| if n / 10 % 2 == 0 { 100.0 } else { 75.0 });
        assert_eq!(find_shift(&falling), None);
        assert_eq!(find_shift(&swinging.collect::<Vec<f64>>()), None);
    }

    #[test]
    fn a_rate_may_fall_more_than_once() {
        let levels = |levels: &[f64]| levels.iter().flat_map(|&it| [it; 20]).collect::<Vec<f64>>();
        assert_eq!(falls(&levels(&[1000.0, 500.0, 300.0])), Some((20, 40)));
        assert_eq!(falls(&levels(&[1000.0, 600.0, 300.0])), Some((20, 40)));
        assert_eq!(falls(&levels(&[1000.0, 300.0])), Some((20, 20)));
        assert_eq!(falls(&levels(&[100.0, 200.0])), None);
        assert_eq!([judged(3), judged(9), judged(10), judged(120)], [3, 5, 5, 60]);
    }
}
