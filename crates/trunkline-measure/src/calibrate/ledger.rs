//! **Ledger**: all the work that a device was given, so that a burst credit can be computed from it.
//!
//! A credit is spent by everything since the beginning, not only by the run in which it ends. While
//! the device does less than its sustained rate, it earns the credit back. So what has been spent at
//! some time follows from the sustained rate, which is known only afterwards:
//!
//! ```text
//!   spent = max(0, spent + work of a window - sustained rate * its seconds)
//! ```

use super::load::Window;

/// The unit of a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    Ios,
    Bytes,
}

impl Unit {
    /// How a window's rate is computed.
    pub(crate) fn rate_of(self) -> fn(&Window) -> f64 {
        match self {
            Self::Ios => Window::ios_per_second,
            Self::Bytes => Window::bytes_per_second,
        }
    }

    /// A window's rate.
    pub(crate) fn rate(self, window: &Window) -> f64 {
        self.rate_of()(window)
    }
}

/// The work of one window.
#[derive(Debug, Clone, Copy)]
struct Entry {
    begin: f64,
    end: f64,
    ios: u64,
    bytes: u64,
}

/// The work so far, in order of time.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    entries: Vec<Entry>,
}

impl Ledger {
    /// Adds a window.
    pub(crate) fn add(&mut self, window: &Window) {
        let Window { begin, seconds, count, bytes, .. } = *window;
        self.entries.push(Entry { begin, end: begin + seconds, ios: count, bytes });
    }

    /// How much of a credit is spent at `time`, if the device earns `rate` units per second. A
    /// window counts as a whole if it begins before that time.
    pub(crate) fn spent(&self, unit: Unit, rate: f64, time: f64) -> f64 {
        let (mut spent, mut now) = (0.0_f64, 0.0);
        for entry in self.entries.iter().take_while(|entry| entry.begin < time) {
            spent = (spent - rate * (entry.begin - now).max(0.0)).max(0.0);
            let work = match unit {
                Unit::Ios => entry.ios,
                Unit::Bytes => entry.bytes,
            };
            spent = (spent + work as f64 - rate * (entry.end - entry.begin)).max(0.0);
            now = entry.end;
        }
        spent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(begin: f64, seconds: f64, count: u64) -> Window {
        Window { seconds, count, bytes: count * 8192, ..Window::new(begin) }
    }

    #[test]
    fn a_credit_is_spent_above_the_rate_and_earned_below_it() {
        let mut ledger = Ledger::default();
        // 10 seconds at 300, 2 idle, 1 at 50, 10 more idle, and 1 at 120; the rate is 100.
        for (begin, seconds, count) in [(0.0, 10.0, 3000), (12.0, 1.0, 50), (23.0, 1.0, 120)] {
            ledger.add(&window(begin, seconds, count));
        }
        let spent = |time| ledger.spent(Unit::Ios, 100.0, time);
        assert_eq!([spent(1.0), spent(12.5), spent(24.0)], [2000.0, 1750.0, 770.0]);
        assert_eq!(ledger.spent(Unit::Bytes, 100.0 * 8192.0, 1.0), 2000.0 * 8192.0);
        // Nothing is earned beyond the full credit.
        assert_eq!(ledger.spent(Unit::Ios, 280.0, 24.0), 0.0);
    }
}
