//! Reads a text by a picture: the fields that `to_timestamp` and `to_date` find in it.
//!
//! ```text
//!   '05 Dec 2000' by 'DD Mon YYYY'  ──▶  day 5, month 12, year 2000
//! ```
//!
//! Blanks are skipped between fields unless there is `FX`. A number takes as many digits as its keyword
//! has letters, or all that there are if what follows in the picture is no digit.
//!
//! Mirrors `DCH_from_char` of PostgreSQL's `utils/adt/formatting.c`.

use super::date_picture::{Field, Key, Node, is_separator, is_space};
use super::date_to_char::{DAYS, MONTHS, ROMAN_MONTHS};
use crate::error::{SqlError, SqlState};

/// The fields of a text. What it doesn't have is 0.
#[derive(Debug, Clone, Default)]
pub(super) struct Fields {
    convention: Option<Convention>,
    pub(super) hour: i32,
    pub(super) afternoon: i32,
    pub(super) minute: i32,
    pub(super) second: i32,
    pub(super) seconds_of_day: i32,
    /// From 1 for Sunday.
    pub(super) weekday: i32,
    pub(super) day: i32,
    pub(super) day_of_year: i32,
    pub(super) month: i32,
    pub(super) millisecond: i32,
    pub(super) year: i32,
    pub(super) before_christ: i32,
    pub(super) week: i32,
    pub(super) week_of_month: i32,
    pub(super) century: i32,
    pub(super) julian: i32,
    pub(super) microsecond: i32,
    /// The digits of the keyword of the year.
    pub(super) year_digits: u32,
    pub(super) is_12_hours: bool,
    /// 1 for east and -1 for west of Greenwich; 0 without a zone.
    pub(super) zone_sign: i32,
    pub(super) zone_hours: i32,
    pub(super) zone_minutes: i32,
}

/// How a text counts days.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Convention {
    Gregorian,
    IsoWeek,
}

impl Fields {
    pub(super) fn is_iso(&self) -> bool {
        self.convention == Some(Convention::IsoWeek)
    }
}

fn invalid(message: String) -> SqlError {
    SqlError::new(SqlState::INVALID_DATETIME_FORMAT, message)
}

/// Which convention a keyword belongs to.
fn convention(key: Key) -> Option<Convention> {
    match key {
        Key::IsoDayOfYear | Key::IsoWeekday | Key::IsoWeek | Key::IsoYear(_) => {
            Some(Convention::IsoWeek)
        }
        Key::DayOfYear
        | Key::Day
        | Key::Weekday
        | Key::Month
        | Key::MonthName
        | Key::MonthShort
        | Key::RomanMonth
        | Key::WeekOfYear
        | Key::WeekOfMonth
        | Key::YearWithComma
        | Key::Year(_) => Some(Convention::Gregorian),
        _ => None,
    }
}

/// Whether a keyword stands for digits.
fn is_digits(key: Key) -> bool {
    !matches!(
        key,
        Key::Meridian(_)
            | Key::Era(_)
            | Key::DayName
            | Key::DayShort
            | Key::Fraction(_)
            | Key::Exact
            | Key::MonthName
            | Key::MonthShort
            | Key::Offset
            | Key::RomanMonth
            | Key::ZoneHours
            | Key::Zone
    )
}

/// Sets a field, which must not have had another value.
fn set(field: &mut i32, value: i32, keyword: &Field) -> Result<(), SqlError> {
    if *field != 0 && *field != value {
        let name = keyword.name();
        let message = format!("conflicting values for \"{name}\" field in formatting string");
        let detail = "This value contradicts a previous setting for the same field type.";
        return Err(invalid(message).with_detail(detail));
    }
    *field = value;
    Ok(())
}

/// A number as C's `strtol` reads it: its value, and how many bytes it takes; none if it is no number.
/// The value is `None` if it has more than 64 bits.
fn c_number(text: &str) -> Option<(Option<i64>, usize)> {
    let blanks = text.len() - text.trim_start_matches(is_space).len();
    let rest = text.get(blanks..).unwrap_or_default();
    let sign = usize::from(rest.starts_with(['+', '-']));
    let digits = rest.get(sign..).unwrap_or_default();
    let count = digits.bytes().take_while(u8::is_ascii_digit).count();
    if count == 0 {
        return None;
    }
    let number = rest.get(..sign + count).unwrap_or_default();
    Some((number.parse().ok(), blanks + sign + count))
}

/// A text that is being read.
pub(super) struct Reader<'a> {
    text: &'a str,
    /// How far it has been read, in bytes.
    at: usize,
    nodes: &'a [Node],
    major: u32,
    fields: Fields,
    /// Blanks that were skipped and that the picture doesn't have.
    skipped: i32,
}

/// Reads the fields of a text.
///
/// # Errors
/// 22007: the text isn't of that form. 22008: a number is too large. 0A000: a field that only
/// `to_char` has, or that we can't read.
pub(super) fn read(text: &str, nodes: &[Node], major: u32) -> Result<Fields, SqlError> {
    let fields = Fields::default();
    let mut reader = Reader { text, at: 0, nodes, major, fields, skipped: 0 };
    reader.read()?;
    Ok(reader.fields)
}

impl Reader<'_> {
    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn skip_character(&mut self) {
        self.at += self.rest().chars().next().map_or(0, char::len_utf8);
    }

    fn skip_blanks(&mut self) -> i32 {
        let blanks = self.rest().len() - self.rest().trim_start_matches(is_space).len();
        self.at += blanks;
        blanks as i32
    }

    fn read(&mut self) -> Result<(), SqlError> {
        let mut exact = false;
        for (place, node) in self.nodes.iter().enumerate() {
            if self.rest().is_empty() {
                break;
            }
            let is_exact = matches!(node, Node::Field(field) if field.key == Key::Exact);
            let is_field = matches!(node, Node::Field(_));
            if !exact && !is_exact && (is_field || place == 0) {
                self.skipped += self.skip_blanks();
            }
            match node {
                Node::Space(_) | Node::Separator(_) if exact => self.skip_character(),
                Node::Space(_) | Node::Separator(_) => {
                    self.skipped -= 1;
                    let next = self.rest().chars().next();
                    if next.is_some_and(|c| is_space(c) || is_separator(c)) {
                        self.skip_character();
                        self.skipped += 1;
                    }
                }
                Node::Literal(_) if !exact && self.skipped > 0 => self.skipped -= 1,
                Node::Literal(_) => self.skip_character(),
                Node::Field(field) if field.key == Key::Exact => exact = true,
                Node::Field(field) => {
                    self.check_convention(field.key)?;
                    self.field(field, place)?;
                }
            }
            if is_field && !exact {
                self.skipped = self.skip_blanks();
            }
        }
        Ok(())
    }

    fn check_convention(&mut self, key: Key) -> Result<(), SqlError> {
        let Some(own) = convention(key) else { return Ok(()) };
        if *self.fields.convention.get_or_insert(own) == own {
            return Ok(());
        }
        let hint = "Do not mix Gregorian and ISO week date conventions in a formatting template.";
        Err(invalid("invalid combination of date conventions".to_owned()).with_hint(hint))
    }

    fn field(&mut self, field: &Field, place: usize) -> Result<(), SqlError> {
        match field.key {
            Key::Exact => {}
            Key::Meridian(dots) => {
                let names = if dots { ["a.m.", "p.m."] } else { ["am", "pm"] };
                let found = self.one_of(&names, field)?;
                set(&mut self.fields.afternoon, found, field)?;
                self.fields.is_12_hours = true;
            }
            Key::Era(dots) => {
                let names = if dots { ["a.d.", "b.c."] } else { ["ad", "bc"] };
                let found = self.one_of(&names, field)?;
                set(&mut self.fields.before_christ, found, field)?;
            }
            Key::MonthName => {
                let found = self.one_of(&MONTHS, field)?;
                set(&mut self.fields.month, found + 1, field)?;
            }
            Key::MonthShort => {
                let found = self.one_of(&MONTHS.map(short), field)?;
                set(&mut self.fields.month, found + 1, field)?;
            }
            Key::RomanMonth => {
                let found = self.one_of(&ROMAN_MONTHS, field)?;
                set(&mut self.fields.month, 12 - found, field)?;
            }
            Key::DayName | Key::DayShort => {
                let found = match field.key {
                    Key::DayName => self.one_of(&DAYS, field)?,
                    _ => self.one_of(&DAYS.map(short), field)?,
                };
                set(&mut self.fields.weekday, found, field)?;
                self.fields.weekday += 1;
            }
            Key::Zone | Key::Offset | Key::ZoneHours | Key::ZoneMinutes => {
                self.zone(field, place)?;
            }
            Key::YearWithComma => self.year_with_comma(field)?,
            _ => self.number_field(field, place)?,
        }
        Ok(())
    }

    /// A field that is a number.
    fn number_field(&mut self, field: &Field, place: usize) -> Result<(), SqlError> {
        let width = match field.key {
            Key::Hour12 | Key::Hour24 => 2,
            Key::Millisecond | Key::IsoDayOfYear => 3,
            Key::Microsecond => 6,
            Key::Fraction(digits) => digits as usize,
            Key::IsoWeekday => 1,
            _ => field.len(),
        };
        let (value, length) = self.number(field, place, width)?;
        let fields = &mut self.fields;
        let target = match field.key {
            Key::Hour12 | Key::Hour24 => &mut fields.hour,
            Key::Minute => &mut fields.minute,
            Key::Second => &mut fields.second,
            Key::Millisecond => &mut fields.millisecond,
            Key::Microsecond | Key::Fraction(_) => &mut fields.microsecond,
            Key::SecondsOfDay => &mut fields.seconds_of_day,
            Key::Month => &mut fields.month,
            Key::DayOfYear | Key::IsoDayOfYear => &mut fields.day_of_year,
            Key::Day => &mut fields.day,
            Key::Weekday | Key::IsoWeekday => &mut fields.weekday,
            Key::WeekOfYear | Key::IsoWeek => &mut fields.week,
            Key::WeekOfMonth => &mut fields.week_of_month,
            Key::Century => &mut fields.century,
            Key::Julian => &mut fields.julian,
            Key::Year(_) | Key::IsoYear(_) => &mut fields.year,
            // A quarter is read and ignored.
            _ => {
                self.skip_ordinal(field);
                return Ok(());
            }
        };
        set(target, value, field)?;
        match field.key {
            Key::Hour12 => fields.is_12_hours = true,
            // '25' is 0.25 seconds, as '250' is.
            Key::Millisecond => fields.millisecond *= scale(length, 3),
            Key::Microsecond | Key::Fraction(_) => fields.microsecond *= scale(length, 6),
            // Sunday is the first day in the other convention.
            Key::IsoWeekday => {
                fields.weekday = if fields.weekday >= 7 { 1 } else { fields.weekday + 1 };
            }
            Key::Year(digits) | Key::IsoYear(digits) => {
                if digits < 4 && length < 4 {
                    fields.year = full_year(fields.year);
                }
                fields.year_digits = digits;
            }
            _ => {}
        }
        if field.key != Key::IsoWeekday {
            self.skip_ordinal(field);
        }
        Ok(())
    }

    /// Skips the two letters of `TH`.
    fn skip_ordinal(&mut self, field: &Field) {
        if field.ordinal.is_some() {
            self.skip_character();
            self.skip_character();
        }
    }

    /// Whether what follows a keyword in the picture is no digit.
    fn ends_at_separator(&self, field: &Field, place: usize) -> bool {
        field.ordinal.is_some()
            || match self.nodes.get(place + 1) {
                None => true,
                Some(Node::Field(next)) => !is_digits(next.key),
                Some(Node::Literal(c) | Node::Separator(c) | Node::Space(c)) => !c.is_ascii_digit(),
            }
    }

    /// A number, and how many bytes it takes (`from_char_parse_int_len`).
    fn number(
        &mut self,
        field: &Field,
        place: usize,
        width: usize,
    ) -> Result<(i32, usize), SqlError> {
        let start = self.at;
        let name = field.name();
        self.skip_blanks();
        let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
        let copy = String::from_utf8_lossy(rest.get(..width.min(rest.len())).unwrap_or_default());
        let copy = copy.into_owned();
        let hint = "If your source string is not fixed-width, try using the \"FM\" modifier.";
        let found = if field.fill || self.ends_at_separator(field, place) {
            let found = c_number(self.text.get(start..).unwrap_or_default());
            self.at = start + found.map_or(0, |(_, length)| length);
            found
        } else {
            if rest.len() < width {
                let message = format!("source string too short for \"{name}\" formatting field");
                let detail =
                    format!("Field requires {width} characters, but only {} remain.", rest.len());
                return Err(invalid(message).with_detail(detail).with_hint(hint));
            }
            let found = c_number(&copy);
            let used = found.map_or(0, |(_, length)| length);
            if used > 0 && used < width {
                let message = format!("invalid value \"{copy}\" for \"{name}\"");
                let detail =
                    format!("Field requires {width} characters, but only {used} could be parsed.");
                return Err(invalid(message).with_detail(detail).with_hint(hint));
            }
            self.at += used;
            found
        };
        if self.at == start {
            let message = format!("invalid value \"{copy}\" for \"{name}\"");
            return Err(invalid(message).with_detail("Value must be an integer."));
        }
        let value = match found {
            None => Some(0),
            Some((value, _)) => value.and_then(|value| i32::try_from(value).ok()),
        };
        let value = value.ok_or_else(|| {
            let message = format!("value for \"{name}\" in source string is out of range");
            let detail = format!("Value must be in the range {} to {}.", i32::MIN, i32::MAX);
            SqlError::new(SqlState::DATETIME_FIELD_OVERFLOW, message).with_detail(detail)
        })?;
        Ok((value, self.at - start))
    }

    /// One of several names, in any case. Returns its place.
    fn one_of(&mut self, names: &[&str], field: &Field) -> Result<i32, SqlError> {
        if field.translated {
            let message = "names of days and months in the language of a locale are not supported \
                           by trunkline";
            return Err(SqlError::unsupported(message));
        }
        let rest = self.rest();
        let is_next = |name: &&str| {
            rest.get(..name.len()).is_some_and(|head| head.eq_ignore_ascii_case(name))
        };
        match names.iter().position(is_next) {
            Some(place) => {
                self.at += names.get(place).map_or(0, |name| name.len());
                Ok(place as i32)
            }
            None => {
                let word = rest.split(is_space).next().unwrap_or_default();
                let message = format!("invalid value \"{word}\" for \"{}\"", field.name());
                let detail =
                    "The given value did not match any of the allowed values for this field.";
                Err(invalid(message).with_detail(detail))
            }
        }
    }

    /// `Y,YYY`.
    fn year_with_comma(&mut self, field: &Field) -> Result<(), SqlError> {
        let rest = self.rest();
        let wrong = || invalid("invalid input string for \"Y,YYY\"".to_owned());
        let (thousands, length) = c_number(rest).ok_or_else(wrong)?;
        let after = rest.get(length..).and_then(|after| after.strip_prefix(','));
        let digits: String =
            after.ok_or_else(wrong)?.chars().take(3).take_while(char::is_ascii_digit).collect();
        let years: i64 = digits.parse().map_err(|_| wrong())?;
        let year = thousands.and_then(|thousands| thousands.checked_mul(1000)?.checked_add(years));
        let year = year.and_then(|year| i32::try_from(year).ok()).ok_or_else(|| {
            let message = "value for \"Y,YYY\" in source string is out of range";
            SqlError::new(SqlState::DATETIME_FIELD_OVERFLOW, message)
        })?;
        self.at += length + 1 + digits.len();
        set(&mut self.fields.year, year, field)?;
        self.fields.year_digits = 4;
        self.skip_ordinal(field);
        Ok(())
    }

    /// `TZ`, `OF`, `TZH` and `TZM`.
    fn zone(&mut self, field: &Field, place: usize) -> Result<(), SqlError> {
        let is_name = field.key == Key::Zone;
        if self.major < 17 && matches!(field.key, Key::Zone | Key::Offset) {
            let message =
                format!("formatting field \"{}\" is only supported in to_char", field.name());
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
        }
        if is_name && self.rest().starts_with(|c: char| c.is_ascii_alphabetic()) {
            let message = "reading a time zone abbreviation with to_timestamp is not supported by \
                           trunkline";
            return Err(SqlError::unsupported(message));
        }
        if field.key == Key::ZoneMinutes {
            if self.fields.zone_sign == 0 {
                self.fields.zone_sign = 1;
            }
            let (minutes, _) = self.number(field, place, 2)?;
            return set(&mut self.fields.zone_minutes, minutes, field);
        }
        // A minus sign before the field may have been taken for a separator.
        let before = self.at.checked_sub(1).and_then(|at| self.text.as_bytes().get(at));
        let is_west = self.skipped > 0 && before == Some(&b'-');
        self.fields.zone_sign = match self.rest().as_bytes().first().copied() {
            Some(sign @ (b'+' | b'-' | b' ')) => {
                self.at += 1;
                if sign == b'-' { -1 } else { 1 }
            }
            _ if is_west => -1,
            _ => 1,
        };
        let (hours, _) = self.number(field, place, 2)?;
        set(&mut self.fields.zone_hours, hours, field)?;
        if field.key != Key::ZoneHours && self.rest().starts_with(':') {
            self.at += 1;
            let (minutes, _) = self.number(field, place, 2)?;
            set(&mut self.fields.zone_minutes, minutes, field)?;
        }
        Ok(())
    }
}

/// The first three letters of a name.
fn short(name: &'static str) -> &'static str {
    name.get(..3).unwrap_or(name)
}

/// By what a fraction with fewer digits is multiplied.
fn scale(length: usize, digits: usize) -> i32 {
    10_i32.pow(digits.saturating_sub(length) as u32)
}

/// The year nearest to 2020 that ends with these digits (`adjust_partial_year_to_2020`).
fn full_year(year: i32) -> i32 {
    match year {
        ..70 => year + 2000,
        70..100 => year + 1900,
        100..520 => year + 2000,
        520..1000 => year + 1000,
        _ => year,
    }
}
