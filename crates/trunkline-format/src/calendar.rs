//! The proleptic Gregorian calendar, in which the year before 1 is 1 BC.
//!
//! Days count from 2000-01-01 (`POSTGRES_EPOCH_JDATE`). Mirrors `j2date` of PostgreSQL's
//! `utils/adt/datetime.c`.

/// Days from 0000-03-01, where a 400-year era begins, to 2000-01-01.
const DAYS_TO_2000: i64 = 730_425;

/// Year (0 is 1 BC), month and day of a day number relative to 2000-01-01.
#[inline]
pub(crate) fn civil(day: i64) -> (i64, u32, u32) {
    const ERA: i64 = 146_097;
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
