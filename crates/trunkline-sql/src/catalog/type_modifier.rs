//! Type modifiers as they are written in SQL: the `20` of `varchar(20)`.
//!
//! PostgreSQL passes them to the type's `typmodin` function as an array of strings. We have those of
//! the built-in types, which types of extensions and array types use too.

use trunkline_format::Oid;

use super::namespace::ObjectName;
use super::oids;
use super::sql_catalog::SqlCatalog;
use crate::error::{SqlError, SqlState};

/// `VARHDRSZ`, which several modifiers include.
const HEADER: i32 = 4;

/// `MaxAttrSize`: the longest value of any type.
const LENGTH_MAX: i32 = 10 * 1024 * 1024;

/// `NUMERIC_MAX_PRECISION`, which limits the scale as well.
const NUMERIC_PRECISION_MAX: i32 = 1000;

/// `MAX_TIMESTAMP_PRECISION`, the same for all types of date and time.
const TIME_PRECISION_MAX: i32 = 6;

/// `INTERVAL_FULL_RANGE`: an interval with all fields.
const INTERVAL_FIELDS_ALL: i32 = 0x7FFF;

/// `INTERVAL_FULL_PRECISION`: an interval whose seconds are not rounded.
const INTERVAL_PRECISION_ALL: i32 = 0xFFFF;

/// The sets of fields that the grammar of `interval` has, such as `day to hour`. Bits: 1 month, 2 year,
/// 3 day, 10 hour, 11 minute, 12 second.
const INTERVAL_FIELDS: [i32; 14] = [
    1 << 2,
    1 << 1,
    1 << 3,
    1 << 10,
    1 << 11,
    1 << 12,
    1 << 2 | 1 << 1,
    1 << 3 | 1 << 10,
    1 << 3 | 1 << 10 | 1 << 11,
    1 << 3 | 1 << 10 | 1 << 11 | 1 << 12,
    1 << 10 | 1 << 11,
    1 << 10 | 1 << 11 | 1 << 12,
    1 << 11 | 1 << 12,
    INTERVAL_FIELDS_ALL,
];

impl SqlCatalog {
    /// The modifier of a type for the constants in parentheses after it; -1 if there are none. `name`
    /// is for errors. For `interval`, the first constant is the set of fields, as in PostgreSQL's
    /// grammar.
    ///
    /// # Errors
    /// 42601, 22023, 22P02, 22003: the type takes no modifier, or not this one. 0A000: its modifier is
    /// read by a function of an extension.
    pub fn type_modifier(
        &self,
        type_oid: Oid,
        name: ObjectName<'_>,
        constants: &[&str],
    ) -> Result<i32, SqlError> {
        if constants.is_empty() {
            return Ok(-1);
        }
        let function = self.data_type(type_oid).map_or(oids::NONE, |row| row.modifier_in);
        if function == oids::NONE {
            let message = format!("type modifier is not allowed for type \"{name}\"");
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, message));
        }
        let source = self.procedure(function).map_or(&b""[..], |found| found.source());
        let read: fn(&[i32]) -> Result<i32, SqlError> = match source {
            b"varchartypmodin" => |list| length("varchar", list, LENGTH_MAX).map(|n| n + HEADER),
            b"bpchartypmodin" => |list| length("char", list, LENGTH_MAX).map(|n| n + HEADER),
            b"bittypmodin" => |list| length("bit", list, LENGTH_MAX * 8),
            b"varbittypmodin" => |list| length("varbit", list, LENGTH_MAX * 8),
            b"numerictypmodin" => numeric,
            b"timetypmodin" => |list| time("TIME", "", list),
            b"timetztypmodin" => |list| time("TIME", " WITH TIME ZONE", list),
            b"timestamptypmodin" => |list| time("TIMESTAMP", "", list),
            b"timestamptztypmodin" => |list| time("TIMESTAMP", " WITH TIME ZONE", list),
            b"intervaltypmodin" => interval,
            _ => {
                let message = format!("modifiers of type {name} are not supported by trunkline");
                return Err(SqlError::unsupported(message));
            }
        };
        let numbers: Result<Vec<i32>, SqlError> =
            constants.iter().map(|text| number(text)).collect();
        read(&numbers?)
    }
}

fn invalid(message: String) -> SqlError {
    SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

fn number(text: &str) -> Result<i32, SqlError> {
    let digits = text.trim_matches(|char: char| char.is_ascii_whitespace());
    digits.parse().map_err(|_| {
        let unsigned = digits.strip_prefix(['-', '+']).unwrap_or(digits);
        if !unsigned.is_empty() && unsigned.bytes().all(|byte| byte.is_ascii_digit()) {
            let message = format!("value \"{text}\" is out of range for type integer");
            return SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, message);
        }
        let message = format!("invalid input syntax for type integer: \"{text}\"");
        SqlError::new(SqlState::INVALID_TEXT_REPRESENTATION, message)
    })
}

fn length(name: &str, list: &[i32], max: i32) -> Result<i32, SqlError> {
    match *list {
        [length] if length < 1 => {
            Err(invalid(format!("length for type {name} must be at least 1")))
        }
        [length] if length > max => {
            Err(invalid(format!("length for type {name} cannot exceed {max}")))
        }
        [length] => Ok(length),
        _ => Err(invalid("invalid type modifier".to_owned())),
    }
}

fn numeric(list: &[i32]) -> Result<i32, SqlError> {
    const MAX: i32 = NUMERIC_PRECISION_MAX;
    let (precision, scale) = match *list {
        [precision] => (precision, 0),
        [precision, scale] => (precision, scale),
        _ => return Err(invalid("invalid NUMERIC type modifier".to_owned())),
    };
    if !(1..=MAX).contains(&precision) {
        let message = format!("NUMERIC precision {precision} must be between 1 and {MAX}");
        return Err(invalid(message));
    }
    if !(-MAX..=MAX).contains(&scale) {
        return Err(invalid(format!("NUMERIC scale {scale} must be between -{MAX} and {MAX}")));
    }
    Ok((precision << 16 | scale & 0x7FF) + HEADER)
}

/// A precision above the maximum is reduced to it, as the server does after a warning.
fn time(name: &str, suffix: &str, list: &[i32]) -> Result<i32, SqlError> {
    match *list {
        [precision] if precision < 0 => {
            Err(invalid(format!("{name}({precision}){suffix} precision must not be negative")))
        }
        [precision] => Ok(precision.min(TIME_PRECISION_MAX)),
        _ => Err(invalid("invalid type modifier".to_owned())),
    }
}

fn interval(list: &[i32]) -> Result<i32, SqlError> {
    let wrong = || invalid("invalid INTERVAL type modifier".to_owned());
    let (&fields, precision) = list.split_first().ok_or_else(wrong)?;
    if !INTERVAL_FIELDS.contains(&fields) {
        return Err(wrong());
    }
    let precision = match *precision {
        [] if fields == INTERVAL_FIELDS_ALL => return Ok(-1),
        [] => INTERVAL_PRECISION_ALL,
        [precision] if precision < 0 => {
            return Err(invalid(format!("INTERVAL({precision}) precision must not be negative")));
        }
        [precision] => precision.min(TIME_PRECISION_MAX),
        _ => return Err(wrong()),
    };
    Ok(fields << 16 | precision)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected values are those of `pg_attribute.atttypmod`, and the server's messages.
    #[test]
    fn modifiers_are_those_of_the_server() {
        let shown = |found: Result<i32, SqlError>| found.map_err(|error| error.to_string());
        let numbers = |list: &[i32]| shown(numeric(list));
        assert_eq!(numbers(&[10, 2]), Ok(655_366));
        assert_eq!(numbers(&[3, -2]), Ok(198_658));
        assert_eq!(numbers(&[5]), Ok(327_684));
        let error = "NUMERIC precision 1001 must be between 1 and 1000";
        assert_eq!(numbers(&[1001]), Err(error.to_owned()));
        let error = "NUMERIC scale 1001 must be between -1000 and 1000";
        assert_eq!(numbers(&[10, 1001]), Err(error.to_owned()));
        assert_eq!(numbers(&[1, 2, 3]), Err("invalid NUMERIC type modifier".to_owned()));
        assert_eq!(shown(interval(&[0x7FFF])), Ok(-1));
        assert_eq!(shown(interval(&[0x7FFF, 3])), Ok(2_147_418_115));
        assert_eq!(shown(interval(&[6])), Ok(458_751));
        assert_eq!(shown(interval(&[5])), Err("invalid INTERVAL type modifier".to_owned()));
        let error = "TIMESTAMP(-1) WITH TIME ZONE precision must not be negative";
        assert_eq!(shown(time("TIMESTAMP", " WITH TIME ZONE", &[-1])), Err(error.to_owned()));
        assert_eq!(shown(time("TIME", "", &[9])), Ok(6));
        let error = "length for type char cannot exceed 10485760";
        assert_eq!(shown(length("char", &[10_485_761], LENGTH_MAX)), Err(error.to_owned()));
    }

    #[test]
    fn constants_that_are_no_numbers_are_refused() {
        for (text, expected) in [
            ("a", "22P02: invalid input syntax for type integer: \"a\""),
            ("1.5", "22P02: invalid input syntax for type integer: \"1.5\""),
            ("99999999999", "22003: value \"99999999999\" is out of range for type integer"),
        ] {
            let error = number(text).expect_err("refused");
            assert_eq!(format!("{}: {error}", error.code().as_str()), expected);
        }
        assert_eq!(number(" 7 "), Ok(7));
    }
}
