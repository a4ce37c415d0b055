//! Supply of clean buffers: estimates how many buffers the background writer should clean in each
//! round.
//!
//! The estimates are the same as in PostgreSQL's `BgBufferSync`. A position is the number of
//! buffers the clock hand has passed since the pool was created, so positions can be compared
//! directly. PostgreSQL, in contrast, first has to combine a buffer number with the number of
//! complete passes.
//!
//! ```text
//!   hand ───────────── next ─────────────────────── hand + pool
//!        already scanned:     lap: not scanned yet,
//!        some are reusable    scanned as far as more buffers are wanted
//! ```
//!
//! We never scan a buffer again until the clock hand has passed it. If the pool is idle, it's
//! therefore cleaned once, a little in each round, and then left alone.

/// Rounds over which the estimates are smoothed (PostgreSQL's `smoothing_samples`).
const SMOOTHING: f64 = 16.0;

/// The whole pool should be scanned at least once within this time (PostgreSQL's
/// `scan_whole_pool_milliseconds`).
const WHOLE_POOL_MILLIS: f64 = 120_000.0;

/// Initial density: how many buffers the clock hand passes, on average, for each reusable buffer it
/// finds (PostgreSQL's `smoothed_density`).
const DENSITY: f64 = 10.0;

/// Estimates that are kept from round to round.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Supply {
    /// Position of the clock hand in the last round, or `None` before the first round.
    hand: Option<u64>,
    /// The next buffer to scan.
    next: u64,
    /// Buffers allocated in a round, smoothed.
    allocated: f64,
    /// Buffers that the clock hand passes for each reusable buffer, smoothed.
    density: f64,
}

/// What a round should scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Plan {
    /// First buffer to scan.
    pub(super) first: u64,
    /// Maximum number of buffers to scan.
    pub(super) lap: u64,
    /// Number of reusable buffers we want to have. This includes those between the hand and
    /// `first`.
    pub(super) wanted: u64,
    /// Estimated number of reusable buffers between the hand and `first`.
    pub(super) ready: u64,
}

impl Supply {
    /// Creates the estimates before the first round.
    pub(super) fn new() -> Self {
        Self { hand: None, next: 0, allocated: 0.0, density: DENSITY }
    }

    /// Forgets the position, because the background writer is off.
    pub(super) fn forget(&mut self) {
        self.hand = None;
    }

    /// Plans one round. `hand` is the current position of the clock hand, and `allocated` is the
    /// number of buffers allocated since the last round.
    pub(super) fn plan(
        &mut self,
        hand: u64,
        allocated: u64,
        pool: u32,
        delay_millis: f64,
        multiplier: f64,
    ) -> Plan {
        let pool = u64::from(pool);
        let moved = self.hand.map_or(0, |before| hand.saturating_sub(before));
        // If the clock hand has overtaken the scan, all buffers we have scanned so far are behind
        // the hand, so there's no point in counting them. Start over at the hand.
        let first = if self.hand.is_some() { self.next.max(hand) } else { hand };
        self.hand = Some(hand);
        self.next = first;
        if moved > 0 && allocated > 0 {
            self.density += (moved as f64 / allocated as f64 - self.density) / SMOOTHING;
        }
        let ahead = (first - hand).min(pool);
        let ready = (ahead as f64 / self.density) as u64;
        let allocated = allocated as f64;
        // Follow increases immediately but decreases slowly, because running out of clean buffers
        // is worse than cleaning a few too many.
        self.allocated = allocated.max(self.allocated + (allocated - self.allocated) / SMOOTHING);
        let mut wanted = (self.allocated * multiplier) as u64;
        if wanted == 0 {
            // Otherwise the smoothed value would never reach 0.
            self.allocated = 0.0;
        }
        // Scan at least one buffer per round, so that small pools get cleaned as well.
        let least = ((pool as f64 / (WHOLE_POOL_MILLIS / delay_millis)) as u64).max(1);
        wanted = wanted.max(least + ready);
        Plan { first, lap: pool - ahead, wanted, ready }
    }

    /// Records the result of a scan.
    pub(super) fn scanned(&mut self, scanned: u64, reusable: u64) {
        self.next += scanned;
        if scanned > 0 && reusable > 0 {
            self.density += (scanned as f64 / reusable as f64 - self.density) / SMOOTHING;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POOL: u32 = 1_200;

    fn plan(supply: &mut Supply, hand: u64, taken: u64) -> Plan {
        supply.plan(hand, taken, POOL, 200.0, 2.0)
    }

    #[test]
    fn an_idle_pool_is_scanned_once() {
        let mut supply = Supply::new();
        // 1200 buffers in two minutes, 5 rounds a second.
        let mut rounds = 0;
        loop {
            let Plan { first, lap, wanted, ready } = plan(&mut supply, 77, 0);
            if lap == 0 {
                break;
            }
            let looked = lap.min(wanted - ready);
            assert!(first >= 77 && looked <= 2, "{looked}");
            supply.scanned(looked, looked);
            rounds += 1;
        }
        assert_eq!(rounds, 600);
        assert_eq!(plan(&mut supply, 77, 0).lap, 0, "it is not scanned again");
        assert_eq!(plan(&mut supply, 87, 10).lap, 10, "until the hand moves");
    }

    #[test]
    fn demand_follows_an_increase_at_once_and_a_decrease_slowly() {
        let mut supply = Supply::new();
        let first = plan(&mut supply, 0, 100);
        assert_eq!((first.first, first.wanted, first.ready), (0, 200, 0));
        supply.scanned(400, 200);
        // The density starts at 10. It first moves a sixteenth of the way towards 2, and then a
        // sixteenth of the way towards 1, which is the value measured from the clock hand.
        let second = plan(&mut supply, 100, 100);
        assert_eq!((second.first, second.lap), (400, 900));
        let density = 9.5 - 8.5 / 16.0;
        assert_eq!((second.wanted, second.ready), (200, (300.0 / density) as u64));
        // A slow decrease.
        let third = plan(&mut supply, 100, 0);
        assert_eq!(third.wanted, 187, "100 - 100 / 16, twice");
        // An immediate increase.
        assert_eq!(plan(&mut supply, 300, 500).wanted, 1000);
    }

    #[test]
    fn a_scan_that_was_overtaken_restarts_at_the_hand() {
        let mut supply = Supply::new();
        plan(&mut supply, 0, 10);
        supply.scanned(50, 20);
        let overtaken = plan(&mut supply, 70, 70);
        assert_eq!((overtaken.first, overtaken.lap, overtaken.ready), (70, 1200, 0));
        supply.scanned(30, 30);
        supply.forget();
        assert_eq!(plan(&mut supply, 80, 10).first, 80);
    }
}
