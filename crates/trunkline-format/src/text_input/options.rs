//! The server version, settings and look-ups that input functions depend on.

use crate::ids::Oid;
use crate::text_output::{IntervalStyle, RegType, TimeZone, TypeCatalog};
use std::sync::Arc;

/// The order of day, month and year in the setting `DateStyle`. It only matters if a date does not
/// start with a year of more than two digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum DateOrder {
    /// `MDY`: month, day, year.
    #[default]
    Mdy,
    /// `DMY`: day, month, year.
    Dmy,
    /// `YMD`: year, month, day.
    Ymd,
}

/// Look-ups of time zones and of named objects. All methods have defaults that find nothing.
pub trait InputNames: Send + Sync {
    /// A time zone by its name in the time zone database, in any case, or by a POSIX rule.
    fn time_zone(&self, name: &str) -> Option<Arc<dyn TimeZone>> {
        let _ = name;
        None
    }

    /// The object that a `reg*` value names. Values in digits, and `-`, are not looked up.
    ///
    /// # Errors
    ///
    /// As the server's: for example 42P01, `relation "t" does not exist`.
    fn object(&self, kind: RegType, name: &str) -> Result<Oid, super::InputError> {
        let _ = kind;
        let message = format!("looking up \"{name}\" by name is not supported by trunkline");
        Err(super::error::InputError::unsupported(message))
    }
}

/// Finds no zones and no names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NoNames;

impl InputNames for NoNames {}

/// The settings, version and catalogs that values are read with.
#[derive(Clone, Copy)]
pub struct InputOptions<'a> {
    /// The server's major version, from 15 to 19. For example, `0x1F` is a number since 16.
    pub major: u32,
    /// The catalogs in which the names of types are looked up, for messages.
    pub catalog: &'a dyn TypeCatalog,
    /// The look-ups of time zones and of objects by name.
    pub names: &'a dyn InputNames,
    /// `TimeZone`, for times without a zone.
    pub zone: &'a dyn TimeZone,
    /// `DateStyle`, the part after the comma.
    pub date_order: DateOrder,
    /// `IntervalStyle`. Under `sql_standard`, a leading minus applies to all fields.
    pub interval_style: IntervalStyle,
    /// What `now` and `today` mean: the start of the transaction, in microseconds since 2000-01-01
    /// 00:00 UTC.
    pub now_us: i64,
}

impl<'a> InputOptions<'a> {
    /// PostgreSQL's default settings, in UTC.
    pub fn new(major: u32, catalog: &'a dyn TypeCatalog, now_us: i64) -> Self {
        Self {
            major,
            catalog,
            names: &NoNames,
            zone: &crate::text_output::Utc,
            date_order: DateOrder::default(),
            interval_style: IntervalStyle::default(),
            now_us,
        }
    }
}
