//! Values of settings: what is accepted, and how it is shown.

use std::sync::Arc;

use trunkline_engine::settings::SettingError;
use trunkline_engine::time_zone;
use trunkline_format::text_output::TimeZone;
use trunkline_sql::{SqlError, SqlState};

use super::definition::{Definition, ValueKind};
use crate::encode::{CLIENT_ENCODINGS, ClientEncoding};

/// What the meaning of a value depends on.
pub(super) struct Surroundings<'a> {
    /// The server's major version.
    pub(super) major: u32,
    /// The number of the database's encoding.
    pub(super) encoding: i32,
    /// The setting's present value.
    pub(super) present: &'a str,
    /// The setting's default.
    pub(super) default: &'a str,
}

/// The error for a value that isn't accepted.
pub(super) fn invalid(name: &str, value: &str) -> SqlError {
    let message = format!("invalid value for parameter \"{name}\": \"{value}\"");
    SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

/// Checks a value and returns it as it is shown.
pub(super) fn checked(
    definition: &Definition,
    value: &str,
    around: &Surroundings<'_>,
) -> Result<String, SqlError> {
    let name = definition.name;
    match definition.kind {
        ValueKind::Plain(_) => plain(definition, value, around.major),
        ValueKind::Text => Ok(printable(value, around.major)),
        ValueKind::Names => match identifiers(value) {
            Some(_) => Ok(value.to_owned()),
            None => Err(invalid(name, value).with_detail("List syntax is invalid.")),
        },
        ValueKind::DateStyle => date_style(name, value, around),
        ValueKind::TimeZone => zone(value).ok_or_else(|| invalid(name, value)),
        ValueKind::Encoding => encoding(name, value, around.encoding),
    }
}

fn plain(definition: &Definition, value: &str, major: u32) -> Result<String, SqlError> {
    let Some(spec) = definition.spec() else { return Ok(value.to_owned()) };
    if spec.name == "client_min_messages" {
        // Two words that the server accepts without listing them.
        for (word, shown) in [("info", "info"), ("debug", "debug2")] {
            if value.eq_ignore_ascii_case(word) {
                return Ok(shown.to_owned());
            }
        }
    }
    let number = spec.parse(value).map_err(|error| setting_error(&error, major))?;
    Ok(spec.show(number))
}

/// The SQL error of a setting's error.
pub(super) fn setting_error(error: &SettingError, major: u32) -> SqlError {
    let code = match error {
        SettingError::Unknown { .. } => SqlState::UNDEFINED_OBJECT,
        SettingError::NotYet { .. } => SqlState::FEATURE_NOT_SUPPORTED,
        _ => SqlState::INVALID_PARAMETER_VALUE,
    };
    let message = match error {
        // Version 18 shows the unit of the bounds too.
        SettingError::OutOfRange { name, number, min, max } if major >= 18 => {
            let unit = number.find(' ').map_or("", |at| &number[at..]);
            format!(
                "{number} is outside the valid range for parameter \"{name}\" \
                 ({min}{unit} .. {max}{unit})"
            )
        }
        error => error.to_string(),
    };
    let sql = SqlError::new(code, message);
    match error.hint() {
        Some(hint) => sql.with_hint(hint),
        None => sql,
    }
}

/// A text of printable ASCII characters.
fn printable(value: &str, major: u32) -> String {
    let mut shown = String::with_capacity(value.len());
    for byte in value.bytes() {
        match byte {
            b' '..=b'~' => shown.push(char::from(byte)),
            _ if major >= 16 => shown.push_str(&format!("\\x{byte:02x}")),
            _ => shown.push('?'),
        }
    }
    shown
}

/// The names in a list. Those without quotes are in lower case. `None`: the syntax is wrong.
pub(crate) fn identifiers(list: &str) -> Option<Vec<String>> {
    let mut names = Vec::new();
    let mut rest = list.trim_ascii();
    if rest.is_empty() {
        return Some(names);
    }
    loop {
        if let Some(mut quoted) = rest.strip_prefix('"') {
            let mut name = String::new();
            loop {
                let (part, after) = quoted.split_once('"')?;
                name.push_str(part);
                match after.strip_prefix('"') {
                    Some(after) => {
                        name.push('"');
                        quoted = after;
                    }
                    None => {
                        rest = after.trim_ascii_start();
                        break;
                    }
                }
            }
            names.push(name);
        } else {
            let end = rest.find([',', ' ', '\t', '\n', '\r']).unwrap_or(rest.len());
            let (name, after) = rest.split_at(end);
            if name.is_empty() {
                return None;
            }
            names.push(name.to_ascii_lowercase());
            rest = after.trim_ascii_start();
        }
        if rest.is_empty() {
            return Some(names);
        }
        rest = rest.strip_prefix(',')?.trim_ascii_start();
    }
}

/// `DateStyle`: a style and an order, either of which may be missing.
fn date_style(name: &str, value: &str, around: &Surroundings<'_>) -> Result<String, SqlError> {
    let wrong = |detail: String| invalid(name, value).with_detail(detail);
    let words = identifiers(value).ok_or_else(|| wrong("List syntax is invalid.".to_owned()))?;
    let mut order: Option<&str> = None;
    let mut style: Option<&str> = None;
    for word in &words {
        let (target, meaning) = match &**word {
            "iso" => (&mut style, "ISO"),
            "sql" => (&mut style, "SQL"),
            word if word.starts_with("postgres") => (&mut style, "Postgres"),
            word if word.starts_with("german") => (&mut style, "German"),
            "ymd" => (&mut order, "YMD"),
            "dmy" => (&mut order, "DMY"),
            "mdy" | "us" => (&mut order, "MDY"),
            word if word.starts_with("euro") => (&mut order, "DMY"),
            word if word.starts_with("noneuro") => (&mut order, "MDY"),
            "default" => {
                order = order.or(around.default.split(", ").nth(1));
                style = style.or(Some("ISO"));
                continue;
            }
            _ => return Err(wrong(format!("Unrecognized key word: \"{word}\"."))),
        };
        if target.is_some_and(|present| present != meaning) {
            return Err(wrong("Conflicting \"DateStyle\" specifications.".to_owned()));
        }
        *target = Some(meaning);
    }
    if let Some(style) = style.filter(|style| *style != "ISO") {
        let message = format!("DateStyle {style} is not supported by trunkline");
        return Err(SqlError::unsupported(message).with_hint("The only style is ISO."));
    }
    let order = order.or(around.present.split(", ").nth(1)).unwrap_or("MDY");
    Ok(format!("ISO, {order}"))
}

/// A time zone as it is shown. A number means hours east of UTC.
fn zone(value: &str) -> Option<String> {
    let Ok(hours) = value.trim_ascii().parse::<f64>() else {
        return time_zone::zone_name(value);
    };
    let seconds = (hours * 3600.0).trunc();
    // As in the server, a zone is less than a week from UTC; our rules allow one day.
    let shown = (seconds.abs() <= 86_399.0).then(|| zone_of_offset(seconds as i32))?;
    zone_shown_as(&shown).map(|_| shown)
}

/// The time zone of a value as it is shown.
pub(crate) fn zone_shown_as(shown: &str) -> Option<Arc<dyn TimeZone>> {
    time_zone::zone(shown).or_else(|| {
        // The server allows colons in the abbreviation of a rule, our library does not.
        let (abbreviation, rule) = shown.strip_prefix('<')?.split_once('>')?;
        time_zone::zone(&format!("<{}>{rule}", abbreviation.replace(':', "")))
    })
}

/// The rule of a constant offset, in seconds east of UTC.
fn zone_of_offset(seconds: i32) -> String {
    let size = seconds.unsigned_abs();
    let (hours, minutes, rest) = (size / 3600, size / 60 % 60, size % 60);
    let mut clock = format!("{hours:02}");
    if minutes != 0 || rest != 0 {
        clock.push_str(&format!(":{minutes:02}"));
    }
    if rest != 0 {
        clock.push_str(&format!(":{rest:02}"));
    }
    let (sign, opposite) = if seconds < 0 { ('-', '+') } else { ('+', '-') };
    format!("<{sign}{clock}>{opposite}{clock}")
}

fn encoding(name: &str, value: &str, database: i32) -> Result<String, SqlError> {
    let number = ClientEncoding::by_name(value).ok_or_else(|| invalid(name, value))?;
    let name_of = |number: i32| {
        let index = usize::try_from(number).ok();
        index.and_then(|index| CLIENT_ENCODINGS.get(index)).copied().unwrap_or("SQL_ASCII")
    };
    let (client, database_name) = (name_of(number), name_of(database));
    match ClientEncoding::new(database, number) {
        Ok(_) => Ok(client.to_owned()),
        Err(_) => {
            let detail =
                format!("Conversion between {client} and {database_name} is not supported.");
            let message = format!("invalid value for parameter \"{name}\": \"{value}\"");
            Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message).with_detail(detail))
        }
    }
}
