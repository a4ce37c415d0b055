//! The words that dates, times and intervals can contain: months, days of the week, units and names
//! such as `today`.
//!
//! Only the first ten letters of a word count (`TOKMAXLEN`), so that `microsecond` and `microseconds`
//! are the same. All words are in lower case here.

/// The letters that count.
const LETTERS_MAX: usize = 10;

/// A word in a date or time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Word {
    Special(Special),
    /// 1 to 12.
    Month(i32),
    /// A day of the week, which is ignored.
    Weekday,
    /// True for BC.
    Era(bool),
    /// True for PM.
    Meridian(bool),
    /// A label for the number that follows.
    Unit(Unit),
    /// `t` between a date and a time.
    IsoTime,
    /// `dst` after a time zone: one hour further east.
    DaylightSaving,
    /// `at` and `on`.
    Ignored,
}

/// A word that stands for a time of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Special {
    Now,
    Today,
    Tomorrow,
    Yesterday,
    /// `allballs`: 00:00 UTC.
    Zulu,
    Epoch,
    Infinity,
    MinusInfinity,
}

/// A unit of an interval, or a label in a date.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    Microsecond,
    Millisecond,
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Year,
    Decade,
    Century,
    Millennium,
    Julian,
    /// A unit that is known but not accepted in any input, such as `quarter`.
    Other,
}

/// The first ten letters. A word has only ASCII letters, except for a leading sign.
fn cut(word: &str) -> &str {
    word.get(..LETTERS_MAX).unwrap_or(word)
}

/// Looks up a word of a date or time (`DecodeSpecial`).
pub(super) fn date_word(word: &str, major: u32) -> Option<Word> {
    const MONTHS: [&str; 12] = [
        "january",
        "february",
        "march",
        "april",
        "may",
        "june",
        "july",
        "august",
        "september",
        "october",
        "november",
        "december",
    ];
    const DAYS: [&str; 18] = [
        "sun",
        "sunday",
        "mon",
        "monday",
        "tue",
        "tues",
        "tuesday",
        "wed",
        "wednesday",
        "weds",
        "thu",
        "thur",
        "thurs",
        "thursday",
        "fri",
        "friday",
        "sat",
        "saturday",
    ];
    let word = cut(word);
    let month =
        MONTHS.iter().zip(1..).find(|(name, _)| name.get(..3) == Some(word) || **name == word);
    if let Some((_, number)) = month {
        return Some(Word::Month(number));
    }
    if DAYS.contains(&word) {
        return Some(Word::Weekday);
    }
    Some(match word {
        "sept" => Word::Month(9),
        "now" => Word::Special(Special::Now),
        "today" => Word::Special(Special::Today),
        "tomorrow" => Word::Special(Special::Tomorrow),
        "yesterday" => Word::Special(Special::Yesterday),
        "allballs" => Word::Special(Special::Zulu),
        "epoch" => Word::Special(Special::Epoch),
        "infinity" => Word::Special(Special::Infinity),
        "+infinity" if major >= 16 => Word::Special(Special::Infinity),
        "-infinity" => Word::Special(Special::MinusInfinity),
        "ad" => Word::Era(false),
        "bc" => Word::Era(true),
        "am" => Word::Meridian(false),
        "pm" => Word::Meridian(true),
        "at" | "on" => Word::Ignored,
        "t" => Word::IsoTime,
        "dst" => Word::DaylightSaving,
        "j" | "jd" | "julian" => Word::Unit(Unit::Julian),
        "d" => Word::Unit(Unit::Day),
        "h" => Word::Unit(Unit::Hour),
        "m" => Word::Unit(Unit::Month),
        "mm" => Word::Unit(Unit::Minute),
        "s" => Word::Unit(Unit::Second),
        "y" => Word::Unit(Unit::Year),
        "dow" | "doy" | "isodow" | "isoyear" => Word::Unit(Unit::Other),
        _ => return None,
    })
}

/// Looks up a unit of an interval (`DecodeUnits`).
pub(super) fn unit(word: &str) -> Option<Unit> {
    Some(match cut(word) {
        "microsecon" | "us" | "usec" | "usecond" | "useconds" | "usecs" => Unit::Microsecond,
        "millisecon" | "ms" | "msec" | "msecond" | "mseconds" | "msecs" => Unit::Millisecond,
        "s" | "sec" | "second" | "seconds" | "secs" => Unit::Second,
        "m" | "min" | "mins" | "minute" | "minutes" => Unit::Minute,
        "h" | "hour" | "hours" | "hr" | "hrs" => Unit::Hour,
        "d" | "day" | "days" => Unit::Day,
        "w" | "week" | "weeks" => Unit::Week,
        "mon" | "mons" | "month" | "months" => Unit::Month,
        "y" | "year" | "years" | "yr" | "yrs" => Unit::Year,
        "dec" | "decade" | "decades" | "decs" => Unit::Decade,
        "c" | "cent" | "centuries" | "century" => Unit::Century,
        "mil" | "millennia" | "millennium" | "mils" => Unit::Millennium,
        "qtr" | "quarter" | "timezone" | "timezone_h" | "timezone_m" => Unit::Other,
        _ => return None,
    })
}
