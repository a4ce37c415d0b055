//! Decides what the fields of a date, a time or both mean.
//!
//! Each field sets some parts. A field that sets a part again is an error, and what was set before
//! decides what a field can mean: after a date, `120000` is a time.
//!
//! Mirrors `DecodeDateTime` and `DecodeTimeOnly` of PostgreSQL's `utils/adt/datetime.c`.

use super::c_text::{first, signed_32};
use super::date_fields::{DateError, Field, FieldKind};
use super::date_parts::{
    DATE, DAY, DAY_US, DAYLIGHT_SAVING, ERA, MERIDIAN, MONTH, Mask, Parts, SECOND_US, SUMMER_ZONE,
    TIME, WEEKDAY, ZONE, fraction, offset_west,
};
use super::date_words::{Special, Unit, Word, date_word};
use super::options::InputOptions;
use super::zone_abbreviations::{self, Abbreviation};
use crate::text_output::TimeZone;
use std::sync::Arc;

type Result<T> = std::result::Result<T, DateError>;

/// Seconds from 1970-01-01 to 2000-01-01.
const UNIX_TO_2000_S: i64 = 946_684_800;
/// The years 1700 and 2300, before and after all changes of the meaning of an abbreviation.
const FIRST_S: i64 = -8_520_336_000;
const LAST_S: i64 = 10_413_792_000;
/// One hour, by which `DST` moves a zone.
const HOUR_S: i32 = 3600;

/// What a text means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Decoded {
    /// A date and time, and the offset in seconds west of UTC.
    Parts(Parts, i32),
    /// `epoch` or an infinity.
    Special(Special),
}

/// A word after which the next field has a certain meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Label {
    Julian,
    /// `t`.
    Time,
    /// A unit that no date can have.
    Other,
}

/// A zone whose offset depends on the date.
enum NamedZone<'a> {
    Zone(Arc<dyn TimeZone>),
    /// A zone, and an abbreviation that is one of its names for an offset.
    Abbreviation(Arc<dyn TimeZone>, &'a str),
    /// An abbreviation of the session's zone.
    OfSession(&'a str),
}

struct Decoder<'a> {
    options: &'a InputOptions<'a>,
    /// Whether a time without a date is wanted.
    time_only: bool,
    parts: Parts,
    /// The parts that were set.
    known: Mask,
    label: Option<Label>,
    special: Option<Special>,
    /// True for PM.
    meridian: Option<bool>,
    text_month: bool,
    julian: bool,
    before_christ: bool,
    /// Seconds west of UTC.
    west: i32,
    zone: Option<NamedZone<'a>>,
}

/// Decodes a date and time.
pub(super) fn date_time(fields: &[Field], options: &InputOptions<'_>) -> Result<Decoded> {
    decode(fields, false, options)
}

/// Decodes a time with an optional zone. A date is only accepted to find the zone's offset.
pub(super) fn time_only(fields: &[Field], options: &InputOptions<'_>) -> Result<(Parts, i32)> {
    match decode(fields, true, options)? {
        Decoded::Parts(parts, west) => Ok((parts, west)),
        Decoded::Special(_) => Err(DateError::Format),
    }
}

/// The date and time in the session's zone at the start of the transaction, and the offset in
/// seconds west.
pub(super) fn current(options: &InputOptions<'_>) -> (Parts, i32) {
    let unix_s = options.now_us.div_euclid(SECOND_US) + UNIX_TO_2000_S;
    let east = options.zone.offset_s(unix_s);
    let local = options.now_us.saturating_add(i64::from(east) * SECOND_US);
    let mut parts = Parts::default();
    parts.set_day(local.div_euclid(DAY_US));
    parts.set_time(local.rem_euclid(DAY_US));
    (parts, -east)
}

fn decode(fields: &[Field], time_only: bool, options: &InputOptions<'_>) -> Result<Decoded> {
    let mut decoder = Decoder {
        options,
        time_only,
        parts: Parts::default(),
        known: 0,
        label: None,
        special: None,
        meridian: None,
        text_month: false,
        julian: false,
        before_christ: false,
        west: 0,
        zone: None,
    };
    for (at, field) in fields.iter().enumerate() {
        let text = field.text.as_str();
        let mask = match field.kind {
            FieldKind::Date => decoder.date(at, fields)?,
            FieldKind::Time => {
                // A `t` may precede it.
                if !matches!(decoder.label.take(), None | Some(Label::Time)) {
                    return Err(DateError::Format);
                }
                let mask = decoder.parts.clock(text)?;
                if !time_only && decoder.parts.time_overflows() {
                    return Err(DateError::FieldOverflow);
                }
                mask
            }
            FieldKind::Signed => {
                decoder.west = offset_west(text)?;
                ZONE
            }
            FieldKind::Number => match decoder.label.take() {
                Some(label) => decoder.labelled(label, text)?,
                None if time_only => decoder.number_of_time(at, fields)?,
                None => decoder.number(text)?,
            },
            FieldKind::Word | FieldKind::SignedWord => match decoder.word(text)? {
                Some(mask) => mask,
                None => continue,
            },
        };
        if mask & decoder.known != 0 {
            return Err(DateError::Format);
        }
        decoder.known |= mask;
    }
    decoder.finish()
}

impl<'a> Decoder<'a> {
    fn knows(&self, mask: Mask) -> bool {
        self.known & mask == mask
    }

    /// A field with delimiters: a date, a zone's name, or a time with an offset.
    fn date(&mut self, at: usize, fields: &'a [Field]) -> Result<Mask> {
        let text = fields.get(at).map_or("", |field| field.text.as_str());
        let kind = |at: usize| fields.get(at).map(|field| field.kind);
        if !self.time_only && self.label == Some(Label::Julian) {
            let (day, rest) = signed_32(text);
            let day = day.filter(|&day| day >= 0).ok_or(DateError::FieldOverflow)?;
            self.parts.set_julian(day);
            (self.julian, self.label) = (true, None);
            self.west = offset_west(rest)?;
            return Ok(DATE | TIME | ZONE);
        }
        let is_date = match self.time_only {
            true => {
                let last = kind(fields.len().saturating_sub(1)) == Some(FieldKind::Date);
                at == 0 && fields.len() >= 2 && (last || kind(1) == Some(FieldKind::Time))
            }
            false => self.label.is_none() && !self.knows(MONTH | DAY),
        };
        let InputOptions { date_order, major, .. } = *self.options;
        if is_date {
            return self.parts.date(text, self.known, date_order, major);
        }
        let labelled = !self.time_only && self.label.is_some();
        if !first(text).is_ascii_digit() && !labelled {
            let zone = self.options.names.time_zone(text);
            let zone = zone.ok_or_else(|| DateError::Zone(text.to_owned()))?;
            self.zone = Some(NamedZone::Zone(zone));
            return Ok(ZONE);
        }
        if labelled && self.label.take() != Some(Label::Time) || self.knows(TIME) {
            return Err(DateError::Format);
        }
        let minus = text.find('-').ok_or(DateError::Format)?;
        let (time, offset) = text.split_at_checked(minus).ok_or(DateError::Format)?;
        self.west = offset_west(offset)?;
        let known = if self.time_only { self.known | DATE } else { self.known };
        Ok(self.parts.run_together(time, known)? | ZONE)
    }

    /// A number after a word that says what it is.
    fn labelled(&mut self, label: Label, text: &str) -> Result<Mask> {
        let (value, rest) = signed_32(text);
        let value = value.ok_or(DateError::FieldOverflow)?;
        if !rest.is_empty() && !rest.starts_with('.') {
            return Err(DateError::Format);
        }
        match label {
            Label::Julian => {
                self.parts.set_julian(value);
                self.julian = true;
                if rest.is_empty() {
                    return Ok(DATE);
                }
                self.parts.set_time((fraction(rest)? * DAY_US as f64) as i64);
                Ok(DATE | TIME)
            }
            Label::Time => match self.parts.run_together(text, self.known | DATE)? {
                TIME => Ok(TIME),
                _ => Err(DateError::Format),
            },
            Label::Other => Err(DateError::Format),
        }
    }

    /// A number in a date and time.
    fn number(&mut self, text: &str) -> Result<Mask> {
        let InputOptions { date_order, major, .. } = *self.options;
        let point = text.find('.');
        if point.is_some() && self.known & DATE == 0 {
            return self.parts.date(text, self.known, date_order, major);
        }
        let incomplete = self.known & DATE == 0 || self.known & TIME == 0;
        let long = point.is_none() && text.len() >= 6 && incomplete;
        if point.is_some_and(|point| point > 2) || long {
            return self.parts.run_together(text, self.known);
        }
        self.parts.number(text, self.text_month, self.known, date_order)
    }

    /// A number in a time.
    fn number_of_time(&mut self, at: usize, fields: &'a [Field]) -> Result<Mask> {
        let text = fields.get(at).map_or("", |field| field.text.as_str());
        let InputOptions { date_order, major, .. } = *self.options;
        let known = self.known | DATE;
        match text.find('.') {
            Some(_)
                if at == 0
                    && fields.len() >= 2
                    && fields.last().is_some_and(|field| field.kind == FieldKind::Date) =>
            {
                self.parts.date(text, self.known, date_order, major)
            }
            Some(point) if point > 2 => self.parts.run_together(text, known),
            Some(_) => Err(DateError::Format),
            None if text.len() > 4 => self.parts.run_together(text, known),
            None => self.parts.number(text, false, known, date_order),
        }
    }

    /// A word. `None` if it means nothing.
    fn word(&mut self, text: &'a str) -> Result<Option<Mask>> {
        if let Some(mask) = self.abbreviation(text)? {
            return Ok(Some(mask));
        }
        let Some(word) = date_word(text, self.options.major) else {
            let zone = self.options.names.time_zone(text).ok_or(DateError::Format)?;
            self.zone = Some(NamedZone::Zone(zone));
            return Ok(Some(ZONE));
        };
        Ok(Some(match word {
            Word::Ignored => return Ok(None),
            Word::Special(special) => self.special(special)?,
            Word::Month(month) => {
                if self.time_only {
                    return Err(DateError::Format);
                }
                let mut mask = MONTH;
                // A number that was taken for the month is the day.
                let was_day = (1..=31).contains(&self.parts.month) && !self.text_month;
                if self.knows(MONTH) && self.known & DAY == 0 && was_day {
                    self.parts.day = self.parts.month;
                    mask = DAY;
                }
                (self.text_month, self.parts.month) = (true, month);
                mask
            }
            Word::Weekday if self.time_only => return Err(DateError::Format),
            Word::Weekday => WEEKDAY,
            Word::Era(before_christ) => {
                self.before_christ = before_christ;
                ERA
            }
            Word::Meridian(pm) => {
                self.meridian = Some(pm);
                MERIDIAN
            }
            Word::DaylightSaving => {
                self.west -= HOUR_S;
                DAYLIGHT_SAVING | SUMMER_ZONE
            }
            Word::IsoTime | Word::Unit(_) => {
                let iso_time = word == Word::IsoTime;
                if iso_time && !self.time_only && !self.knows(DATE) || self.label.is_some() {
                    return Err(DateError::Format);
                }
                self.label = Some(match word {
                    Word::IsoTime => Label::Time,
                    Word::Unit(Unit::Julian) => Label::Julian,
                    _ => Label::Other,
                });
                0
            }
        }))
    }

    /// A word such as `today`.
    fn special(&mut self, special: Special) -> Result<Mask> {
        let (now, west) = current(self.options);
        let day = now.day_number().unwrap_or(0);
        match special {
            Special::Now => {
                let short_year = self.parts.short_year;
                self.parts = Parts { short_year, ..now };
                if self.time_only {
                    return Ok(TIME);
                }
                self.west = west;
                Ok(DATE | TIME | ZONE)
            }
            Special::Zulu => {
                self.parts.set_time(0);
                self.west = 0;
                Ok(TIME | ZONE)
            }
            _ if self.time_only => Err(DateError::Format),
            Special::Today | Special::Tomorrow | Special::Yesterday => {
                self.parts.set_day(match special {
                    Special::Tomorrow => day + 1,
                    Special::Yesterday => day - 1,
                    _ => day,
                });
                Ok(DATE)
            }
            Special::Epoch | Special::Infinity | Special::MinusInfinity => {
                self.special = Some(special);
                Ok(DATE | TIME | ZONE)
            }
        }
    }

    /// Sets the zone if the word is an abbreviation. Since PostgreSQL 18, the abbreviations that the
    /// session's zone uses come first.
    fn abbreviation(&mut self, text: &'a str) -> Result<Option<Mask>> {
        let upper = text.to_ascii_uppercase();
        if self.options.major >= 18 {
            let meaning = |unix_s| self.options.zone.abbreviation_s(&upper, unix_s);
            if let Some(first) = meaning(FIRST_S) {
                match meaning(LAST_S) == Some(first) {
                    true => self.west = -first,
                    false => self.zone = Some(NamedZone::OfSession(text)),
                }
                return Ok(Some(ZONE));
            }
        }
        match zone_abbreviations::find(text) {
            None => return Ok(None),
            Some(Abbreviation::Fixed(east)) => self.west = -east,
            Some(Abbreviation::Dynamic(name)) => {
                let zone = self.options.names.time_zone(name);
                let abbreviation = upper.to_ascii_lowercase();
                let unknown = DateError::Abbreviation { zone: name, abbreviation };
                self.zone = Some(NamedZone::Abbreviation(zone.ok_or(unknown)?, text));
            }
        }
        Ok(Some(ZONE))
    }

    fn finish(mut self) -> Result<Decoded> {
        if self.label.is_some() {
            return Err(DateError::Format);
        }
        if let Some(special) = self.special {
            return Ok(Decoded::Special(special));
        }
        self.parts.validate(self.known, self.julian, self.before_christ)?;
        if let Some(pm) = self.meridian {
            self.parts.hour = match self.parts.hour {
                13.. => return Err(DateError::FieldOverflow),
                12 if !pm => 0,
                hour if pm && hour != 12 => hour + 12,
                hour => hour,
            };
        }
        if self.time_only {
            if self.parts.time_overflows() {
                return Err(DateError::FieldOverflow);
            }
            if !self.knows(TIME) {
                return Err(DateError::Format);
            }
        } else if !self.knows(DATE) {
            return Err(DateError::Format);
        }
        self.resolve_zone()?;
        Ok(Decoded::Parts(self.parts, self.west))
    }

    /// Finds the offset of a zone that depends on the date, or of the session's zone.
    fn resolve_zone(&mut self) -> Result<()> {
        let zone = self.zone.take();
        if zone.is_none() && self.known & ZONE != 0 {
            return Ok(());
        }
        if self.known & DAYLIGHT_SAVING != 0 {
            return Err(DateError::Format);
        }
        let known_date = self.known & DATE;
        let mut date = self.parts;
        if self.time_only && known_date == 0 {
            if let Some(NamedZone::Zone(zone)) = &zone {
                // Without a date, only a zone with a single offset is unambiguous.
                let east = fixed_offset(zone.as_ref()).ok_or(DateError::Format)?;
                self.west = -east;
                return Ok(());
            }
            (date.year, date.month, date.day) = {
                let (now, _) = current(self.options);
                (now.year, now.month, now.day)
            };
        } else if known_date != DATE {
            return Err(DateError::Format);
        }
        let Some(day) = date.day_number() else {
            self.west = 0;
            return Ok(());
        };
        let seconds = date.time_us().div_euclid(SECOND_US);
        let local_s = day * 86_400 + seconds + UNIX_TO_2000_S;
        let session = self.options.zone;
        let (rules, abbreviation) = match &zone {
            None => (session, None),
            Some(NamedZone::Zone(zone)) => (zone.as_ref(), None),
            Some(NamedZone::Abbreviation(zone, text)) => (zone.as_ref(), Some(*text)),
            Some(NamedZone::OfSession(text)) => (session, Some(*text)),
        };
        let east = rules.local_offset_s(local_s);
        let meaning = abbreviation.and_then(|text| {
            rules.abbreviation_s(&text.to_ascii_uppercase(), local_s - i64::from(east))
        });
        self.west = -meaning.unwrap_or(east);
        Ok(())
    }
}

/// The offset of a zone that never changes. We look at the two seasons of each year in which the
/// time zone database has rules.
fn fixed_offset(zone: &dyn TimeZone) -> Option<i32> {
    const HALF_YEAR_S: i64 = 182 * 86_400;
    /// 1840, before the first railway time.
    const FIRST_S: i64 = -4_102_444_800;
    let east = zone.offset_s(FIRST_S);
    let same = |at: i64| zone.offset_s(FIRST_S + at * HALF_YEAR_S) == east;
    (0..500).all(same).then_some(east)
}
