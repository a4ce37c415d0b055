//! How many clean buffers will be wanted soon, and how many there are: what the background writer goes
//! by. PostgreSQL's estimates (`BgBufferSync`), in buffers that the clock's hand has passed since the
//! pool was made, so that laps need no arithmetic of their own.
//!
//! ```text
//!   hand ───────────── next ─────────────────────── hand + pool
//!        looked at:           lap: still to look at,
//!        some of it reusable  as far as more is wanted
//! ```
//! What was looked at is not looked at again: a pool in which nobody takes a buffer is cleaned once,
//! little by little, and then left alone.

/// Rounds over which the estimates are smoothed (PostgreSQL's).
const SMOOTHING: f64 = 16.0;

/// A round looks at so small a part of the pool at least: all of it in so much time (PostgreSQL's).
const WHOLE_POOL_MILLIS: f64 = 120_000.0;

/// Buffers that the hand passes for one that can be had, before anything is known (PostgreSQL's).
const DENSITY: f64 = 10.0;

/// What was learned from round to round.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Supply {
    /// The hand at the last round; `None` before the first.
    hand: Option<u64>,
    /// The buffer to look at next.
    next: u64,
    /// Buffers taken in a round.
    taken: f64,
    /// Buffers that the hand passes for one that can be had.
    density: f64,
}

/// What a round is to look at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Plan {
    /// From this buffer on.
    pub(super) first: u64,
    /// So many at most.
    pub(super) lap: u64,
    /// Until so many can be had, those that are thought to lie between hand and `first` included.
    pub(super) wanted: u64,
    /// So many are thought to.
    pub(super) ready: u64,
}

impl Supply {
    pub(super) fn new() -> Self {
        Self { hand: None, next: 0, taken: 0.0, density: DENSITY }
    }

    /// Forgets where it was: the writer is off.
    pub(super) fn forget(&mut self) {
        self.hand = None;
    }

    /// A round begins: the hand is there, and so many buffers were taken since the last one.
    pub(super) fn plan(
        &mut self,
        hand: u64,
        taken: u64,
        pool: u32,
        delay_millis: f64,
        multiplier: f64,
    ) -> Plan {
        let pool = u64::from(pool);
        let moved = self.hand.map_or(0, |before| hand.saturating_sub(before));
        // The hand may have overtaken the scan, and then what was looked at has gone by.
        let first = if self.hand.is_some() { self.next.max(hand) } else { hand };
        self.hand = Some(hand);
        self.next = first;
        if moved > 0 && taken > 0 {
            self.density += (moved as f64 / taken as f64 - self.density) / SMOOTHING;
        }
        let ahead = (first - hand).min(pool);
        let ready = (ahead as f64 / self.density) as u64;
        let taken = taken as f64;
        // Up at once, down slowly.
        self.taken = taken.max(self.taken + (taken - self.taken) / SMOOTHING);
        let mut wanted = (self.taken * multiplier) as u64;
        if wanted == 0 {
            // No tail of fractions that is carried along for ever.
            self.taken = 0.0;
        }
        // At least one: a small pool is to be cleaned too.
        let least = ((pool as f64 / (WHOLE_POOL_MILLIS / delay_millis)) as u64).max(1);
        wanted = wanted.max(least + ready);
        Plan { first, lap: pool - ahead, wanted, ready }
    }

    /// So many buffers were looked at, of which so many can be had.
    pub(super) fn scanned(&mut self, looked: u64, found: u64) {
        self.next += looked;
        if looked > 0 && found > 0 {
            self.density += (looked as f64 / found as f64 - self.density) / SMOOTHING;
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
    fn an_idle_pool_is_looked_at_once() {
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
        assert_eq!(plan(&mut supply, 77, 0).lap, 0, "and not again");
        assert_eq!(plan(&mut supply, 87, 10).lap, 10, "until the hand goes on");
    }

    #[test]
    fn what_was_taken_is_wanted_again() {
        let mut supply = Supply::new();
        let first = plan(&mut supply, 0, 100);
        assert_eq!((first.first, first.wanted, first.ready), (0, 200, 0));
        supply.scanned(400, 200);
        // Density: from 10 a sixteenth of the way to 2; then to 1, as the hand has found them.
        let second = plan(&mut supply, 100, 100);
        assert_eq!((second.first, second.lap), (400, 900));
        let density = 9.5 - 8.5 / 16.0;
        assert_eq!((second.wanted, second.ready), (200, (300.0 / density) as u64));
        // Down slowly.
        let third = plan(&mut supply, 100, 0);
        assert_eq!(third.wanted, 187, "100 - 100 / 16, twice");
        // Up at once.
        assert_eq!(plan(&mut supply, 300, 500).wanted, 1000);
    }

    #[test]
    fn a_scan_that_was_overtaken_begins_at_the_hand() {
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
