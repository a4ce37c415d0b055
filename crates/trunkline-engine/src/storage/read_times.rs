//! Read times: how long reads of a tablespace take, as far as that was measured.
//!
//! A planner that compares random reads with sequential ones needs these times, and the settings
//! `seq_page_cost` and `random_page_cost` only guess them. A `ReadTimer`
//! measures them. They are kept for a while, because measuring takes some reads, and a tablespace's
//! storage doesn't change from statement to statement.

use std::time::Duration;

use trunkline_aio::clock::{self, Time};
use trunkline_aio::facade::Mutex;
use trunkline_aio::facade::hash::Map;
use trunkline_format::Oid;

/// How long times are used after they have been measured. Storage is shared with others, and may be
/// faster or slower later.
const AGE_MAX: Duration = Duration::from_mins(10);

/// How long reads take that come from the storage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadTimes {
    /// One read of one block, with no other read in flight.
    pub latency: Duration,
    /// One of many reads of single blocks, [`ReadTimes::in_flight`] at a time: the time of all of
    /// them, divided by their number.
    pub random: Duration,
    /// One block of many consecutive ones, likewise.
    pub sequential: Duration,
    /// The number of reads that were in flight.
    pub in_flight: u32,
}

/// The times of a cluster's tablespaces, for each number of reads in flight.
#[derive(Debug, Default)]
pub(super) struct ReadTimesTable(Mutex<Map<(Oid, u32), Entry>>);

#[derive(Debug, Clone, Copy)]
struct Entry {
    times: Option<ReadTimes>,
    /// When the measurement began.
    begin: Time,
}

impl ReadTimesTable {
    /// The times of a tablespace with this number of reads in flight, even if they are old.
    pub(super) fn find(&self, tablespace: Oid, in_flight: u32) -> Option<ReadTimes> {
        self.0.lock().get(&(tablespace, in_flight)).and_then(|known| known.times)
    }

    /// Whether the caller should measure the times of a tablespace with this number of reads in
    /// flight. This is so for one caller if they aren't known or are old.
    pub(super) fn claim(&self, tablespace: Oid, in_flight: u32) -> bool {
        let mut entries = self.0.lock();
        let now = clock::now();
        let known = entries.get(&(tablespace, in_flight)).copied();
        let is_current = known.is_some_and(|known| now.since(known.begin) < AGE_MAX);
        if !is_current {
            // Until the new times are known, others use the old ones.
            let times = known.and_then(|known| known.times);
            entries.insert((tablespace, in_flight), Entry { times, begin: now });
        }
        !is_current
    }

    /// Stores times that were measured.
    pub(super) fn set(&self, tablespace: Oid, times: ReadTimes) {
        let entry = Entry { times: Some(times), begin: clock::now() };
        self.0.lock().insert((tablespace, times.in_flight), entry);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMES: ReadTimes = ReadTimes {
        latency: Duration::from_micros(5000),
        random: Duration::from_micros(80),
        sequential: Duration::from_micros(5),
        in_flight: 64,
    };

    #[test]
    fn one_caller_measures_and_the_others_use_what_is_known() {
        let table = ReadTimesTable::default();
        let (one, other) = (Oid(1663), Oid(16385));
        assert!(table.claim(one, 64) && !table.claim(one, 64));
        assert!(table.claim(other, 64) && table.find(one, 64).is_none());
        table.set(one, TIMES);
        assert!(!table.claim(one, 64));
        // With another number of reads in flight, the times are other ones.
        assert!(table.claim(one, 16) && !table.claim(one, 16) && !table.claim(one, 64));
        assert_eq!((table.find(one, 64), table.find(one, 16)), (Some(TIMES), None));
        assert_eq!(table.find(other, 64), None);
    }
}
