//! Times as PostgreSQL prints them, such as `2026-11-29 20:31:00.123456+00` or
//! `2026-11-29 21:31:00 Europe/Berlin`, for `--until`.
//!
//! A time without a zone is refused: a server would take its own `TimeZone` for it, which we don't know,
//! and a wrong guess would show another moment without a word.

use trunkline_aio::facade::Arc;
use trunkline_engine::time_zone;
use trunkline_format::Oid;
use trunkline_format::catalog::{ObjectRow, TypeRow};
use trunkline_format::text_input::{InputNames, InputOptions, timestamptz};
use trunkline_format::text_output::{ColumnRow, ObjectClass, TimeZone, TypeCatalog};

/// A zone that is never the user's, to see whether a time has one.
const ELSEWHERE: &str = "<+0500>-05";

/// Parses a time with its zone. The result is in microseconds since 2000-01-01 00:00 UTC.
pub(crate) fn parse_time(text: &str) -> Result<i64, String> {
    let read = |zone: &dyn TimeZone| {
        // Versions differ in details that are no times of a log.
        let options = InputOptions { names: &Zones, zone, ..InputOptions::new(18, &NoCatalog, 0) };
        timestamptz(text, &options).map_err(|error| error.to_string())
    };
    let find = |name| time_zone::zone(name).ok_or_else(|| format!("no time zone \"{name}\""));
    let (time, elsewhere) = (read(&*find("UTC")?)?, read(&*find(ELSEWHERE)?)?);
    if time != elsewhere {
        return Err("the time has no time zone; add one, such as +00".to_owned());
    }
    // `now` and its like have no zone either, but no log has a record of their time.
    let is_written = text.starts_with(|first: char| first.is_ascii_digit());
    if !is_written || matches!(time, i64::MIN | i64::MAX) {
        return Err("expected a time such as 2026-11-29 20:31:00+00".to_owned());
    }
    Ok(time)
}

/// Finds time zones by name, but no objects.
struct Zones;

impl InputNames for Zones {
    fn time_zone(&self, name: &str) -> Option<Arc<dyn TimeZone>> {
        time_zone::zone(name)
    }
}

/// No catalogs: a time doesn't need any.
struct NoCatalog;

impl TypeCatalog for NoCatalog {
    fn type_row(&self, _oid: Oid) -> Option<TypeRow> {
        None
    }

    fn columns(&self, _relation: Oid) -> Option<Vec<ColumnRow>> {
        None
    }

    fn enum_labels(&self, _enum_type: Oid) -> Vec<(Oid, Vec<u8>)> {
        Vec::new()
    }

    fn range_subtype(&self, _range: Oid) -> Option<Oid> {
        None
    }

    fn multirange_range(&self, _multirange: Oid) -> Option<Oid> {
        None
    }

    fn printed_as(&self, _base_type: Oid) -> Option<Oid> {
        None
    }

    fn object(&self, _class: ObjectClass, _oid: Oid) -> Option<ObjectRow> {
        None
    }

    fn objects_named(&self, _class: ObjectClass, _name: &[u8]) -> Vec<ObjectRow> {
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_postgresql_prints_them_and_need_a_zone() {
        // `select extract(epoch from '2026-11-29 20:31:00.5+00'::timestamptz - '2000-01-01 00:00+00')`
        const EXPECTED: i64 = 849_299_460_500_000;
        for text in [
            "2026-11-29 20:31:00.5+00",
            "2026-11-29 20:31:00.500000 UTC",
            "2026-11-29T20:31:00.5Z",
            "2026-11-29 21:31:00.5+01",
            "2026-11-29 21:31:00.5 CET",
            "2026-11-29 21:31:00.5 Europe/Berlin",
            "2026-11-30 02:01:00.5+05:30",
        ] {
            assert_eq!(parse_time(text), Ok(EXPECTED), "{text}");
        }
        for text in ["2026-11-29 20:31:00", "2026-11-29"] {
            let error = parse_time(text).expect_err(text);
            assert!(error.contains("has no time zone"), "{error}");
        }
        for text in ["now", "infinity", "epoch", "", "yesterday", "2026-13-29 20:31:00+00", "730"] {
            assert!(parse_time(text).is_err(), "{text}");
        }
    }
}
