//! The proleptic Gregorian calendar, in which the year before 1 is 1 BC.
//!
//! Days count from 2000-01-01 (`POSTGRES_EPOCH_JDATE`), and years are astronomical: 0 is 1 BC, and -1
//! is 2 BC. A week of ISO 8601 starts on Monday and belongs to the year that has its Thursday.
//!
//! ```
//! use trunkline_format::calendar::{civil, days, iso_week, weekday};
//! let day = days(2024, 12, 30);
//! assert_eq!(civil(day), (2024, 12, 30));
//! assert_eq!(weekday(day), 1, "a Monday");
//! assert_eq!(iso_week(day), (2025, 1));
//! ```
//!
//! Mirrors `j2date`, `date2j` and `j2day` of PostgreSQL's `utils/adt/datetime.c`, and `date2isoweek`
//! and its neighbours of `utils/adt/timestamp.c`.

/// Days from 0000-03-01, where a 400-year era begins, to 2000-01-01.
const DAYS_TO_2000: i64 = 730_425;
/// Days in an era of 400 years.
const ERA: i64 = 146_097;
/// The Julian day number of 2000-01-01 (`POSTGRES_EPOCH_JDATE`).
pub const JULIAN_2000: i64 = 2_451_545;
/// Seconds from 1970-01-01 to 2000-01-01.
pub const UNIX_TO_2000_S: i64 = 946_684_800;
/// Microseconds in a day.
pub const DAY_US: i64 = 86_400_000_000;
/// The first value of `date`: 4714-11-24 BC, day 0 of the Julian calendar.
pub const FIRST_DATE: i32 = -2_451_545;
/// The last value of `date`: 5874897-12-31.
pub const LAST_DATE: i32 = 2_145_031_948;
/// The first timestamp: midnight of the first date, in microseconds since 2000.
pub const FIRST_TIMESTAMP: i64 = FIRST_DATE as i64 * DAY_US;
/// One past the last timestamp: midnight of 294277-01-01, in microseconds since 2000.
pub const TIMESTAMP_END: i64 = 9_223_371_331_200_000_000;

/// Year (0 is 1 BC), month and day of a day number relative to 2000-01-01.
#[inline]
pub fn civil(day: i64) -> (i64, u32, u32) {
    let day = day + DAYS_TO_2000;
    let era = day.div_euclid(ERA);
    let of_era = day.rem_euclid(ERA) as u32;
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    // Months are counted from March, because any five months from there have 153 days.
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (i64::from(year) + era * 400 + i64::from(month <= 2), month, day)
}

/// The day number of a date. `month` is from 1 to 12. `day` may be any number: day 0 is the last day
/// of the month before.
#[inline]
pub fn days(year: i64, month: u32, day: u32) -> i64 {
    debug_assert!((1..=12).contains(&month), "month {month}");
    let year = year - i64::from(month <= 2);
    let month = if month > 2 { month - 3 } else { month + 9 };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = i64::from((153 * month + 2) / 5);
    era * ERA + of_era * 365 + of_era / 4 - of_era / 100 + of_year + i64::from(day)
        - 1
        - DAYS_TO_2000
}

/// Whether a year has 366 days.
pub fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

/// The number of days in a month from 1 to 12.
pub fn days_of_month(year: i64, month: u32) -> u32 {
    match month {
        2 => 28 + u32::from(is_leap(year)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// The day of the week, from 0 for Sunday to 6.
pub fn weekday(day: i64) -> u32 {
    (day + 6).rem_euclid(7) as u32
}

/// The Monday that week `week` of an ISO year starts with. Week 1 has January 4.
pub fn iso_week_start(year: i64, week: i64) -> i64 {
    let fourth = days(year, 1, 4);
    fourth - i64::from(weekday(fourth - 1)) + (week - 1) * 7
}

/// The ISO year, and the week within it from 1 to 53.
pub fn iso_week(day: i64) -> (i64, u32) {
    let thursday = day - i64::from(weekday(day - 1)) + 3;
    let (year, ..) = civil(thursday);
    (year, ((thursday - days(year, 1, 1)) / 7 + 1) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_number_is_the_inverse_of_its_date() {
        // All days of eight centuries around the epoch, and both ends of the type date.
        for day in (-146_100..146_100).chain([-2_451_545, 2_145_031_948]) {
            let (year, month, of_month) = civil(day);
            assert_eq!(days(year, month, of_month), day);
            assert!(of_month <= days_of_month(year, month), "{year}-{month}-{of_month}");
            let (iso_year, week) = iso_week(day);
            let monday = iso_week_start(iso_year, i64::from(week));
            assert!((monday..monday + 7).contains(&day), "week of {year}-{month}-{of_month}");
        }
    }
}
