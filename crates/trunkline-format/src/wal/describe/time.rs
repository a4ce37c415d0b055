//! Timestamps in records: microseconds since 2000, printed in UTC.

use std::fmt::{self, Display};

use crate::calendar::{DAY_US, civil};

/// Prints `2026-11-29 14:30:00.000123 UTC`. `pg_waldump` uses the machine's time zone.
pub(super) struct Timestamp(pub(super) i64);

impl Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (day, of_day) = (self.0.div_euclid(DAY_US), self.0.rem_euclid(DAY_US));
        let (year, month, day) = civil(day);
        let (seconds, micros) = (of_day / 1_000_000, of_day % 1_000_000);
        let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        write!(f, "{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}.{micros:06} UTC")
    }
}
