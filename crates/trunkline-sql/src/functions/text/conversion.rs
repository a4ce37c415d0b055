//! `convert_from`, `convert_to` and `convert`: bytes in one encoding and another.
//!
//! For example, `convert_from('\xe9', 'LATIN1')` is `é`. We convert between UTF8 and LATIN1.

use std::borrow::Cow;

use crate::catalog::encoding_by_name;
use crate::error::{SqlError, SqlState};
use crate::functions::call::{CallSettings, Kernel};
use crate::functions::printing::into_text;
use crate::functions::rows::{binary, ternary};
use trunkline_format::catalog::encoding_name;

/// The kernels of this module.
pub(in crate::functions) const CONVERSION: &[(&str, Kernel)] = &[
    ("pg_convert_from", |call| {
        let own = own_encoding(call.settings)?;
        binary(call, |bytes: &[u8], from: &str| {
            into_text(converted(bytes, named(from, "source")?, own)?.into_owned())
        })
    }),
    ("pg_convert_to", |call| {
        let own = own_encoding(call.settings)?;
        binary(call, |text: &str, to: &str| {
            let to = named(to, "destination")?;
            Ok(converted(text.as_bytes(), own, to)?.into_owned())
        })
    }),
    ("pg_convert", |call| {
        ternary(call, |bytes: &[u8], from: &str, to: &str| {
            let (from, to) = (named(from, "source")?, named(to, "destination")?);
            Ok(converted(bytes, from, to)?.into_owned())
        })
    }),
];

/// `pg_enc`.
const SQL_ASCII: i32 = 0;
const UTF8: i32 = 6;
const LATIN1: i32 = 8;

/// The encoding of the database. Texts are in UTF-8 here, so there is no other.
fn own_encoding(settings: &CallSettings) -> Result<i32, SqlError> {
    let found = settings.session.as_ref();
    match found.map_or(UTF8, |session| session.catalog.database().info().encoding) {
        UTF8 => Ok(UTF8),
        other => Err(unsupported(other)),
    }
}

fn unsupported(encoding: i32) -> SqlError {
    let name = encoding_name(encoding);
    SqlError::unsupported(format!("converting encoding {name} is not supported by trunkline"))
}

fn named(name: &str, role: &str) -> Result<i32, SqlError> {
    encoding_by_name(name).ok_or_else(|| {
        let message = format!("invalid {role} encoding name \"{name}\"");
        SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
    })
}

/// Bytes of one encoding in another one (`pg_do_encoding_conversion`).
fn converted(bytes: &[u8], from: i32, to: i32) -> Result<Cow<'_, [u8]>, SqlError> {
    match (from, to) {
        // From SQL_ASCII, the bytes must be valid in the other encoding.
        (SQL_ASCII, other) | (other, SQL_ASCII) => check(bytes, other)?,
        (from, to) if from == to => check(bytes, from)?,
        (UTF8, LATIN1) => {
            check(bytes, UTF8)?;
            let text = String::from_utf8_lossy(bytes);
            let found = text.chars().map(|letter| {
                u8::try_from(letter).map_err(|_| {
                    let mut buffer = [0; 4];
                    let shown = shown(letter.encode_utf8(&mut buffer).as_bytes());
                    let message = format!(
                        "character with byte sequence {shown} in encoding \"UTF8\" has no \
                         equivalent in encoding \"LATIN1\""
                    );
                    SqlError::new(SqlState::UNTRANSLATABLE_CHARACTER, message)
                })
            });
            return found.collect::<Result<Vec<u8>, _>>().map(Cow::Owned);
        }
        (LATIN1, UTF8) => {
            check(bytes, LATIN1)?;
            let text: String = bytes.iter().copied().map(char::from).collect();
            return Ok(Cow::Owned(text.into_bytes()));
        }
        (UTF8 | LATIN1, other) | (other, _) => return Err(unsupported(other)),
    }
    Ok(Cow::Borrowed(bytes))
}

/// Checks bytes of an encoding, none of which may be zero.
fn check(bytes: &[u8], encoding: i32) -> Result<(), SqlError> {
    let invalid = |bytes: &[u8]| {
        let (name, shown) = (encoding_name(encoding), shown(bytes));
        let message = format!("invalid byte sequence for encoding \"{name}\": {shown}");
        Err(SqlError::new(SqlState::CHARACTER_NOT_IN_REPERTOIRE, message))
    };
    match encoding {
        UTF8 => Ok(trunkline_format::text_input::check_text(bytes)?),
        SQL_ASCII | LATIN1 if bytes.contains(&0) => invalid(&[0]),
        SQL_ASCII | LATIN1 => Ok(()),
        other => Err(unsupported(other)),
    }
}

fn shown(bytes: &[u8]) -> String {
    let digits: Vec<String> = bytes.iter().map(|byte| format!("0x{byte:02x}")).collect();
    digits.join(" ")
}
