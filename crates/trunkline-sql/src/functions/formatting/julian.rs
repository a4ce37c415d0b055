//! Julian days of dates that needn't exist, such as the fields of an interval.
//!
//! `to_char(interval '1 mon', 'J')` takes the interval's years, months and days as a date. What comes out
//! is defined by the formula alone.
//!
//! Mirrors `date2j` of PostgreSQL's `utils/adt/datetime.c`, and `date2isoweek`, `date2isoyear` and
//! `isoweek2j` of `utils/adt/timestamp.c`.

/// The Julian day of a year (0 is 1 BC), a month and a day.
pub(super) fn julian(year: i64, month: i64, day: i64) -> i64 {
    let (month, year) = match month > 2 {
        true => (month + 1, year + 4800),
        false => (month + 13, year + 4799),
    };
    let century = year / 100;
    let julian = year * 365 - 32_167 + year / 4 - century + century / 4 + 7834 * month / 256 + day;
    // The server computes in 32 bits.
    i64::from(julian as i32)
}

/// The day of the week, from 0 for Sunday.
fn weekday(julian: i64) -> i64 {
    (julian + 1).rem_euclid(7)
}

/// The Julian day of the first day of a week in an ISO year.
pub(super) fn iso_week_start(year: i64, week: i64) -> i64 {
    let fourth = julian(year, 1, 4);
    (week - 1) * 7 + fourth - weekday(fourth - 1)
}

/// The ISO year and the week of a date.
pub(super) fn iso_week(year: i64, month: i64, day: i64) -> (i64, i64) {
    let date = julian(year, month, day);
    let mut iso_year = year;
    if date < iso_week_start(year, 1) {
        iso_year -= 1;
    }
    let week = (date - iso_week_start(iso_year, 1)) / 7 + 1;
    // The last days of a year can be in the first week of the next one.
    if week >= 52 && date >= iso_week_start(year + 1, 1) {
        return (iso_year + 1, (date - iso_week_start(year + 1, 1)) / 7 + 1);
    }
    (iso_year, week)
}
