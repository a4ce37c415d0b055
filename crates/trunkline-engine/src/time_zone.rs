//! Looks up time zones by name in the system's time zone database. If the system doesn't have one,
//! we use the copy that is built into our library.
//!
//! PostgreSQL can be built with its own copy of the time zone database, or to use the system's. Our
//! offsets may therefore differ from the server's if the two databases are from different releases.
//!
//! For dates after the last year in the database, we keep applying the last rules, as the server
//! does. Our library only supports years up to 9999, but timestamptz goes up to 294276 AD. Since
//! the calendar repeats every 400 years, including the days of the week, we map a later date to an
//! equivalent earlier one.
//!
//! ```
//! let berlin = trunkline_engine::time_zone::zone("europe/berlin").expect("a name in the database");
//! assert_eq!(berlin.offset_s(1_719_792_000), 7200);
//! assert_eq!(berlin.abbreviation(1_719_792_000), "CEST");
//! ```

use jiff::Timestamp;
use jiff::tz::{TimeZone as Rules, TimeZoneTransition};
use trunkline_aio::facade::Arc;
use trunkline_format::text_output::{TimeZone, Utc};

/// Seconds in 400 years.
const CYCLE_S: i64 = 146_097 * 86_400;
/// 9000-01-01 in seconds since 1970. Later times are looked up whole cycles earlier.
const LATEST_S: i64 = 221_845_392_000;
/// The most changes of a zone that we search for an abbreviation. No zone has had more, but the last
/// rules go on forever.
const CHANGES_MAX: usize = 1000;

/// Looks up a time zone. As with the `TimeZone` setting, `name` can be either a name in the
/// database or a POSIX rule such as `<+0530>-05:30`.
pub fn zone(name: &str) -> Option<Arc<dyn TimeZone>> {
    if ["UTC", "Etc/UTC"].iter().any(|utc| utc.eq_ignore_ascii_case(name)) {
        return Some(Arc::new(Utc));
    }
    let rules = Rules::get(name).or_else(|_| Rules::posix(name)).ok()?;
    Some(match rules.to_fixed_offset() {
        Ok(offset) => {
            let abbreviation = abbreviation(&rules, 0);
            Arc::new(FixedZone { offset_s: offset.seconds(), abbreviation })
        }
        Err(_) => Arc::new(RuledZone(rules)),
    })
}

/// The name of a time zone as `SHOW TimeZone` prints it: a name of the database in its own case, a
/// rule as it is written. `None` if there is no such zone.
pub fn zone_name(name: &str) -> Option<String> {
    if name.eq_ignore_ascii_case("UTC") {
        return Some("UTC".to_owned());
    }
    match Rules::get(name) {
        Ok(rules) => Some(rules.iana_name().unwrap_or(name).to_owned()),
        Err(_) => Rules::posix(name).ok().map(|_| name.to_owned()),
    }
}

/// A constant offset, in seconds east of UTC.
struct FixedZone {
    offset_s: i32,
    abbreviation: String,
}

impl TimeZone for FixedZone {
    fn offset_s(&self, _unix_s: i64) -> i32 {
        self.offset_s
    }

    fn abbreviation(&self, _unix_s: i64) -> String {
        self.abbreviation.clone()
    }

    fn abbreviation_s(&self, abbreviation: &str, _unix_s: i64) -> Option<i32> {
        (abbreviation == self.abbreviation).then_some(self.offset_s)
    }
}

/// A zone with more than one offset.
struct RuledZone(Rules);

impl TimeZone for RuledZone {
    fn offset_s(&self, unix_s: i64) -> i32 {
        let instant = Timestamp::from_second(equivalent(unix_s));
        instant.map_or(0, |instant| self.0.to_offset(instant).seconds())
    }

    fn abbreviation(&self, unix_s: i64) -> String {
        abbreviation(&self.0, unix_s)
    }

    fn abbreviation_s(&self, abbreviation: &str, unix_s: i64) -> Option<i32> {
        let time = Timestamp::from_second(equivalent(unix_s)).ok()?;
        let now = self.0.to_offset_info(time);
        if now.abbreviation() == abbreviation {
            return Some(now.offset().seconds());
        }
        let same = |change: &TimeZoneTransition<'_>| change.abbreviation() == abbreviation;
        let earlier = || self.0.preceding(time).take(CHANGES_MAX).find(same);
        let later = || self.0.following(time).take(CHANGES_MAX).find(same);
        if let Some(change) = earlier().or_else(later) {
            return Some(change.offset().seconds());
        }
        // No change leads to the offset that the zone began with.
        let first = self.0.to_offset_info(Timestamp::MIN);
        (first.abbreviation() == abbreviation).then(|| first.offset().seconds())
    }
}

/// A time within our library's range at which the same rules apply.
fn equivalent(unix_s: i64) -> i64 {
    let beyond = unix_s.saturating_sub(LATEST_S).max(0);
    // The library supports times back to 9999 BC. This is sufficient, because timestamptz starts in
    // 4714 BC.
    unix_s - CYCLE_S * (beyond.div_euclid(CYCLE_S) + i64::from(beyond > 0))
}

fn abbreviation(rules: &Rules, unix_s: i64) -> String {
    let instant = Timestamp::from_second(equivalent(unix_s)).unwrap_or_default();
    rules.to_offset_info(instant).abbreviation().to_owned()
}

#[cfg(test)]
mod tests {
    use super::{zone, zone_name};

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
        assert_eq!(zone_name("europe/berlin").as_deref(), Some("Europe/Berlin"));
        assert_eq!(zone_name("<+02>-02").as_deref(), Some("<+02>-02"));
        assert_eq!(zone_name("Nowhere/Land"), None);
        let name = |name: &str, unix_s| zone(name).map(|zone| zone.abbreviation(unix_s));
        assert_eq!(name("Europe/Berlin", summer).as_deref(), Some("CEST"));
        assert_eq!(name("GMT", winter).as_deref(), Some("GMT"));
        assert_eq!(name("<+0530>-05:30", winter).as_deref(), Some("+0530"));
        // An abbreviation that has meant several offsets, as PostgreSQL 18 reads it.
        let meaning = |name: &str, unix_s| zone("Europe/Moscow")?.abbreviation_s(name, unix_s);
        let (in_1990, in_2000, in_2012) = (646_833_600, 962_452_800, 1_341_144_000);
        assert_eq!(meaning("MSK", in_1990), Some(10_800));
        assert_eq!(meaning("MSK", in_2012), Some(14_400));
        assert_eq!(meaning("MSD", in_2000), Some(14_400));
        assert_eq!(meaning("CET", in_2000), None);
        // A local time that is skipped, one that occurs twice, and those around them.
        let local = |local_s| zone("Europe/Berlin").map(|zone| zone.local_offset_s(local_s));
        let (forward, back) = (1_711_850_400, 1_729_994_400);
        let offsets = [-1, 0, 3599, 3600].map(|after| local(forward + after));
        assert_eq!(offsets, [3600, 3600, 3600, 7200].map(Some));
        let offsets = [-1, 0, 3599, 3600].map(|after| local(back + after));
        assert_eq!(offsets, [7200, 3600, 3600, 3600].map(Some));
        // Local mean time, before time zones were introduced.
        assert_eq!(offset("Europe/Berlin", -3_000_000_000), Some(3208));
        // July of the years 200024 and 9024, and a day in 4714 BC.
        let cycles = |count: i64| summer + count * 146_097 * 86_400;
        assert_eq!(offset("Europe/Berlin", cycles(495)), Some(7200));
        assert_eq!(offset("Europe/Berlin", cycles(18)), Some(7200));
        assert_eq!(offset("Europe/Berlin", -210_866_803_200), Some(3208));
    }
}
