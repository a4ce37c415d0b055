//! **Confidence**: how much a measured number can be trusted, in three words.
//!
//! | Word | The 95 % interval is at most this wide |
//! |---|---|
//! | high | 10 % of the median |
//! | medium | 25 % of the median |
//! | low | anything else |
//!
//! One word less if the end of the run wasn't steady, and one word less if the calibration was
//! interrupted. A comparison with fewer than seven rounds has no interval, so it is low.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::estimate::Estimate;

/// Largest widths of an interval, as a fraction of its median.
const HIGH_MAX: f64 = 0.10;
const MEDIUM_MAX: f64 = 0.25;

/// How much a number can be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Confidence {
    /// The interval is wide, or there is none.
    Low,
    /// In between.
    Medium,
    /// The interval is narrow, and the run was steady.
    High,
}

impl Confidence {
    /// The confidence of an estimate.
    pub(crate) fn of(estimate: &Estimate, is_steady: bool, is_complete: bool) -> Self {
        let spread = estimate.spread();
        let by_width = match spread {
            spread if spread <= HIGH_MAX => Self::High,
            spread if spread <= MEDIUM_MAX => Self::Medium,
            _ => Self::Low,
        };
        let by_end = if is_steady { by_width } else { by_width.lower() };
        if is_complete { by_end } else { by_end.lower() }
    }

    /// One word less.
    pub(crate) fn lower(self) -> Self {
        match self {
            Self::High => Self::Medium,
            Self::Medium | Self::Low => Self::Low,
        }
    }
}

impl fmt::Display for Confidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::High => "high",
            Self::Medium => "medium",
            Self::Low => "low",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_that_is_wide_or_not_steady_is_trusted_less() {
        use Confidence::{High, Low, Medium};
        let of = |width: f64| Estimate { median: 100.0, low: 100.0 - width, high: 100.0 };
        for (width, steady, complete, expected) in [
            (10.0, true, true, High),
            (10.1, true, true, Medium),
            (25.1, true, true, Low),
            (5.0, false, true, Medium),
            (5.0, false, false, Low),
            (5.0, true, false, Medium),
            (f64::NAN, true, true, Low),
        ] {
            assert_eq!(Confidence::of(&of(width), steady, complete), expected, "{width}");
        }
        assert!(High > Medium && Medium > Low);
    }
}
