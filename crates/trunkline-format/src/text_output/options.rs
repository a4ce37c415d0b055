//! The server version and the settings that output functions depend on.
//!
//! The output is the same as the server's only if these settings are the same as in the server's
//! session.

use super::catalog::TypeCatalog;

/// A time zone: its offset from UTC at any time.
///
/// The trait requires `Sync`, so that many threads can print with the same zone.
pub trait TimeZone: Send + Sync {
    /// Returns the offset from UTC at a given time, in seconds. It is positive east of Greenwich.
    /// `unix_s` is the time in seconds since 1970-01-01 00:00 UTC. It can be any time from 4714 BC
    /// to 294276 AD. The offset returned must be less than a day.
    fn offset_s(&self, unix_s: i64) -> i32;

    /// Returns what the zone's time is called at a given time, such as `CEST`.
    fn abbreviation(&self, unix_s: i64) -> String;

    /// Returns the offset at a given local time, which is expressed as the seconds since 1970 at which
    /// a clock in UTC would show it.
    ///
    /// If clocks are put forward, some local times are skipped; we then return the offset before the
    /// change. If they are put back, some local times occur twice; we then return the offset after
    /// the change. So in Berlin, both `2024-03-31 02:30` and `2024-10-27 02:30` are at `+01`. We assume
    /// that an offset lasts for at least two days.
    ///
    /// Mirrors `DetermineTimeZoneOffset` of PostgreSQL's `utils/adt/datetime.c`.
    fn local_offset_s(&self, local_s: i64) -> i32 {
        const DAY_S: i64 = 86_400;
        let before = self.offset_s(local_s - DAY_S);
        let after = self.offset_s(local_s + DAY_S);
        if before == after {
            return before;
        }
        let is_before = |offset: i32| self.offset_s(local_s - i64::from(offset)) == before;
        match (is_before(before), is_before(after)) {
            (true, true) => before,
            (false, false) => after,
            // The time is skipped if clocks are put forward, and occurs twice if they are put back.
            _ if after > before => before,
            _ => after,
        }
    }

    /// What an abbreviation in upper case, such as `MSK`, means in this zone, in seconds east of UTC.
    ///
    /// An abbreviation may have had several meanings. The one at `unix_s` is its latest use at or
    /// before that time, or else the earliest one after it. `None` if the zone has never used it, or
    /// if that isn't known; by default, it isn't.
    fn abbreviation_s(&self, abbreviation: &str, unix_s: i64) -> Option<i32> {
        let _ = (abbreviation, unix_s);
        None
    }
}

/// UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Utc;

impl TimeZone for Utc {
    fn offset_s(&self, _unix_s: i64) -> i32 {
        0
    }

    fn abbreviation(&self, _unix_s: i64) -> String {
        "UTC".to_owned()
    }
}

/// The setting `bytea_output`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ByteaOutput {
    /// `hex`: `\x`, followed by two hexadecimal digits per byte.
    #[default]
    Hex,
    /// `escape`: printable ASCII unchanged, any other byte as `\` and three octal digits.
    Escape,
}

/// The setting `IntervalStyle`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum IntervalStyle {
    /// `1 year 2 mons 3 days 04:05:06`.
    #[default]
    Postgres,
    /// `@ 1 year 2 mons 3 days 4 hours 5 mins 6 secs`.
    PostgresVerbose,
    /// `+1-2 +3 +4:05:06`.
    SqlStandard,
    /// `P1Y2M3DT4H5M6S`.
    Iso8601,
}

/// The settings, version and catalogs that values are printed with.
#[derive(Clone, Copy)]
pub struct TextOptions<'a> {
    /// The server's major version, from 15 to 19. We need it because the output format of some
    /// types differs between versions.
    pub major: u32,
    /// The catalogs that object names are looked up in.
    pub catalog: &'a dyn TypeCatalog,
    /// `TimeZone`, for timestamptz.
    pub zone: &'a dyn TimeZone,
    /// `extra_float_digits`. If this is greater than 0, we print the shortest digits that read back
    /// as exactly the same number. Otherwise, it is added to the default number of significant
    /// digits, which is 15 for `float8` and 6 for `float4`.
    pub extra_float_digits: i8,
    /// `bytea_output`.
    pub bytea_output: ByteaOutput,
    /// `IntervalStyle`.
    pub interval_style: IntervalStyle,
}

impl<'a> TextOptions<'a> {
    /// PostgreSQL's default settings, in UTC.
    pub fn new(major: u32, catalog: &'a dyn TypeCatalog) -> Self {
        Self {
            major,
            catalog,
            zone: &Utc,
            extra_float_digits: 1,
            bytea_output: ByteaOutput::default(),
            interval_style: IntervalStyle::default(),
        }
    }
}
