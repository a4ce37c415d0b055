//! Time zones by their names, from the system's database or else from the one that is built in.
//!
//! Beyond the years that the database knows the rules of its last years go on, as in the server: the
//! calendar repeats itself every 400 years, days of the week included.

use jiff::Timestamp;
use jiff::tz::TimeZone as Rules;
use trunkline_aio::sync::Arc;
use trunkline_format::text_output::{TimeZone, Utc};

/// Seconds in 400 years.
const CYCLE_S: i64 = 146_097 * 86_400;
/// 9000-01-01, since 1970: everything later is looked up as many cycles earlier as it takes.
const LATEST_S: i64 = 221_845_392_000;

/// The zone of this name, as the setting `TimeZone` takes it: a name of the database, or a rule such
/// as `<+0530>-05:30`.
pub(super) fn zone(name: &str) -> Option<Arc<dyn TimeZone>> {
    if ["UTC", "GMT", "Etc/UTC", "Etc/GMT"].iter().any(|utc| utc.eq_ignore_ascii_case(name)) {
        return Some(Arc::new(Utc));
    }
    let rules = Rules::get(name).or_else(|_| Rules::posix(name)).ok()?;
    Some(match rules.to_fixed_offset() {
        Ok(offset) => Arc::new(Fixed(offset.seconds())),
        Err(_) => Arc::new(Ruled(rules)),
    })
}

/// So many seconds east of UTC, always.
struct Fixed(i32);

impl TimeZone for Fixed {
    fn offset_s(&self, _unix_s: i64) -> i32 {
        self.0
    }
}

/// A zone whose clocks were or are changed.
struct Ruled(Rules);

impl TimeZone for Ruled {
    fn offset_s(&self, unix_s: i64) -> i32 {
        let beyond = unix_s.saturating_sub(LATEST_S).max(0);
        let known = unix_s - CYCLE_S * (beyond.div_euclid(CYCLE_S) + i64::from(beyond > 0));
        // Years before 9999 BC are not asked for.
        Timestamp::from_second(known).map_or(0, |instant| self.0.to_offset(instant).seconds())
    }
}

#[cfg(test)]
mod tests {
    use super::zone;

    #[test]
    fn zones_by_name_and_by_rule() {
        let offset = |name: &str, unix_s| zone(name).map(|zone| zone.offset_s(unix_s));
        let (winter, summer) = (1_704_067_200, 1_719_792_000);
        assert_eq!(offset("UTC", winter), Some(0));
        assert_eq!(offset("europe/berlin", winter), Some(3600));
        assert_eq!(offset("Europe/Berlin", summer), Some(7200));
        assert_eq!(offset("<+0530>-05:30", summer), Some(19_800));
        assert_eq!(offset("PST8PDT", summer), Some(-7 * 3600));
        assert_eq!(offset("Nowhere/Land", 0), None);
        // Before there were zones every place had its own noon.
        assert_eq!(offset("Europe/Berlin", -3_000_000_000), Some(3208));
        // July of the years 200024 and 9024, and the year 4714 BC.
        let cycles = |count: i64| summer + count * 146_097 * 86_400;
        assert_eq!(offset("Europe/Berlin", cycles(495)), Some(7200));
        assert_eq!(offset("Europe/Berlin", cycles(18)), Some(7200));
        assert_eq!(offset("Europe/Berlin", -210_866_803_200), Some(3208));
    }
}
