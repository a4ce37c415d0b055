//! What clients receive: messages, appended to a buffer.

use trunkline_format::Oid;
use trunkline_query::encode::{ClientEncoding, ValueFormat};
use trunkline_query::{Notice, ResultColumn, TransactionStatus};
use trunkline_sql::SqlError;

/// Appends a message, whose body `write` appends.
pub(crate) fn message(out: &mut Vec<u8>, kind: u8, write: impl FnOnce(&mut Vec<u8>)) {
    out.push(kind);
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    write(out);
    finish(out, start);
}

/// Sets the length of the message whose length field is at `start`.
fn finish(out: &mut [u8], start: usize) {
    let length = u32::try_from(out.len() - start).unwrap_or(u32::MAX);
    if let Some(place) = out.get_mut(start..start + 4) {
        place.copy_from_slice(&length.to_be_bytes());
    }
}

/// As [`message`], but if the body fails, nothing is appended.
///
/// # Errors
/// That of the body.
pub(crate) fn try_message<E>(
    out: &mut Vec<u8>,
    kind: u8,
    write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
) -> Result<(), E> {
    let before = out.len();
    out.push(kind);
    out.extend_from_slice(&[0; 4]);
    match write(out) {
        Ok(()) => {
            finish(out, before + 1);
            Ok(())
        }
        Err(error) => {
            out.truncate(before);
            Err(error)
        }
    }
}

/// Appends a text and the zero that ends it. Characters that the client's encoding lacks become `?`.
pub(crate) fn text(out: &mut Vec<u8>, encoding: &ClientEncoding, text: &str) {
    encoding.encode_lossy(text, out);
    out.push(0);
}

/// `ErrorResponse`. `statement` is the text in which the error's position is.
pub(crate) fn error(
    out: &mut Vec<u8>,
    encoding: &ClientEncoding,
    severity: &str,
    error: &SqlError,
    statement: &str,
) {
    message(out, b'E', |out| fields(out, encoding, severity, error, statement));
}

/// `NoticeResponse`.
pub(crate) fn notice(
    out: &mut Vec<u8>,
    encoding: &ClientEncoding,
    notice: &Notice,
    statement: &str,
) {
    let severity = notice.severity.name();
    message(out, b'N', |out| fields(out, encoding, severity, &notice.fields, statement));
}

fn fields(
    out: &mut Vec<u8>,
    encoding: &ClientEncoding,
    severity: &str,
    error: &SqlError,
    statement: &str,
) {
    let position = error.character(statement).map(|at| at.to_string());
    let fields = [
        (b'S', Some(severity)),
        (b'V', Some(severity)),
        (b'C', Some(error.code().as_str())),
        (b'M', Some(error.message())),
        (b'D', error.detail()),
        (b'H', error.hint()),
        (b'P', position.as_deref()),
    ];
    for (kind, value) in fields {
        if let Some(value) = value {
            out.push(kind);
            text(out, encoding, value);
        }
    }
    out.push(0);
}

/// `RowDescription`. `formats` are none, one for all, or one for each column;
/// `announced` gives the OID, length and modifier of a column's type.
pub(crate) fn row_description(
    out: &mut Vec<u8>,
    encoding: &ClientEncoding,
    columns: &[ResultColumn],
    formats: &[ValueFormat],
    announced: impl Fn(&ResultColumn) -> (Oid, i16, i32),
) {
    message(out, b'T', |out| {
        out.extend_from_slice(&count(columns.len()));
        for (at, column) in columns.iter().enumerate() {
            let format = match formats {
                [one] => *one,
                formats => formats.get(at).copied().unwrap_or_default(),
            };
            let (table, number) = column.origin.map_or((0, 0), |o| (o.table.0, o.number));
            text(out, encoding, &column.name);
            out.extend_from_slice(&table.to_be_bytes());
            out.extend_from_slice(&number.to_be_bytes());
            let (oid, length, modifier) = announced(column);
            out.extend_from_slice(&oid.0.to_be_bytes());
            out.extend_from_slice(&length.to_be_bytes());
            out.extend_from_slice(&modifier.to_be_bytes());
            out.extend_from_slice(&u16::from(format == ValueFormat::Binary).to_be_bytes());
        }
    });
}

/// A count in two bytes.
pub(crate) fn count(number: usize) -> [u8; 2] {
    u16::try_from(number).unwrap_or(u16::MAX).to_be_bytes()
}

/// `CommandComplete`.
pub(crate) fn complete(out: &mut Vec<u8>, tag: &str) {
    message(out, b'C', |out| {
        out.extend_from_slice(tag.as_bytes());
        out.push(0);
    });
}

/// `ReadyForQuery`.
pub(crate) fn ready(out: &mut Vec<u8>, status: TransactionStatus) {
    let status = match status {
        TransactionStatus::Idle => b'I',
        TransactionStatus::InTransaction => b'T',
        TransactionStatus::Failed => b'E',
    };
    message(out, b'Z', |out| out.push(status));
}

/// `ParameterStatus`.
pub(crate) fn parameter(out: &mut Vec<u8>, encoding: &ClientEncoding, name: &str, value: &str) {
    message(out, b'S', |out| {
        text(out, encoding, name);
        text(out, encoding, value);
    });
}
