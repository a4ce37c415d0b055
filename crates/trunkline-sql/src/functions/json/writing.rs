//! Writes values of any type as JSON.
//!
//! Numbers and booleans are JSON's, arrays are arrays, rows are objects, and anything else is a string
//! with what its output function prints. For example, `ROW(1, 'a')` is `{"f1":1,"f2":"a"}`.

use trunkline_format::text_output::{
    Base, RowTypes, StringType, Type, record_columns, row_fields, write_json_string, write_text,
};

use crate::error::SqlError;
use crate::functions::array::{ArrayView, attribute_of};
use crate::functions::call::CallSettings;
use crate::functions::printing::{damaged, resolve};

/// Appends a value in storage form as JSON, as `to_json` does. With `lines`, the parts of an array or a
/// row are in lines of their own.
///
/// # Errors
/// 0A000: a type that we can't convert. XX001: the value is damaged.
pub fn append_json(
    ty: &Type,
    value: &[u8],
    settings: &CallSettings,
    lines: bool,
    out: &mut Vec<u8>,
) -> Result<(), SqlError> {
    stacker::maybe_grow(64 << 10, 1 << 20, || append(ty, value, settings, lines, out))
}

fn append(
    ty: &Type,
    value: &[u8],
    settings: &CallSettings,
    lines: bool,
    out: &mut Vec<u8>,
) -> Result<(), SqlError> {
    let base = match ty {
        Type::Array(_) | Type::Base(Base::AnyArray | Base::Vector(_)) => {
            return append_array(value, settings, lines, out);
        }
        Type::Composite(_) | Type::Base(Base::Record) => {
            return append_row(value, settings, lines, out);
        }
        Type::Base(base) => Some(*base),
        _ => None,
    };
    let mut text = Vec::new();
    write_text(ty, value, &settings.text_options(), &mut text).map_err(damaged)?;
    match base {
        Some(Base::Bool) => {
            let value: &[u8] = if text == b"t" { b"true" } else { b"false" };
            out.extend_from_slice(value);
        }
        Some(Base::Jsonb | Base::Text(StringType::Json)) => out.extend_from_slice(&text),
        Some(
            Base::Int2 | Base::Int4 | Base::Int8 | Base::Float4 | Base::Float8 | Base::Numeric,
        ) if text.iter().any(u8::is_ascii_digit) => out.extend_from_slice(&text),
        Some(Base::Timestamp) => write_json_string(&with_t(text), out),
        Some(Base::Timestamptz) => write_json_string(&with_minutes(with_t(text)), out),
        _ => write_json_string(&text, out),
    }
    Ok(())
}

/// A separator between parts.
fn separate(at: usize, lines: bool, out: &mut Vec<u8>) {
    let separator: &[u8] = if lines { b",\n " } else { b"," };
    if at > 0 {
        out.extend_from_slice(separator);
    }
}

/// A row as an object.
fn append_row(
    value: &[u8],
    settings: &CallSettings,
    lines: bool,
    out: &mut Vec<u8>,
) -> Result<(), SqlError> {
    let record = RowTypes::default().of(value, &*settings.catalog).map_err(damaged)?;
    let columns = record_columns(value).map_err(damaged)?;
    let names: Vec<Vec<u8>> = match columns.is_empty() {
        false => columns.into_iter().map(|column| column.name).collect(),
        true => column_names(record.oid(), settings)?,
    };
    out.push(b'{');
    let fields = row_fields(value, &record).map_err(damaged)?;
    for (at, (field, name)) in fields.iter().zip(names).enumerate() {
        separate(at, lines, out);
        write_json_string(&name, out);
        out.push(b':');
        match &field.value {
            Some(value) => append_json(field.ty, value, settings, false, out)?,
            None => out.extend_from_slice(b"null"),
        }
    }
    out.push(b'}');
    Ok(())
}

/// The names of a composite type's columns.
pub(super) fn column_names(
    oid: trunkline_format::Oid,
    settings: &CallSettings,
) -> Result<Vec<Vec<u8>>, SqlError> {
    let catalog = &settings.session()?.catalog;
    let database = catalog.database();
    let found = catalog.row_relation(oid).and_then(|relation| database.relation(relation));
    let infos = found.map(|relation| database.columns(relation));
    let Some(Ok(infos)) = infos else { return Ok(Vec::new()) };
    let shown = infos.iter().filter(|info| !info.dropped);
    Ok(shown.map(|info| catalog.encoding().decode(&info.name).into_bytes()).collect())
}

/// Puts a `T` between date and time.
fn with_t(mut text: Vec<u8>) -> Vec<u8> {
    if let Some(blank) = text.iter_mut().find(|byte| **byte == b' ') {
        *blank = b'T';
    }
    text
}

/// Adds minutes to a zone that has hours only.
fn with_minutes(mut text: Vec<u8>) -> Vec<u8> {
    // The zone begins with the last sign, after the time.
    let time = text.iter().position(|&byte| byte == b'T').unwrap_or(text.len());
    let sign = text.iter().rposition(|byte| matches!(byte, b'+' | b'-')).filter(|&at| at > time);
    if let Some(end) = sign.map(|sign| sign + 3).filter(|&end| text.get(end) != Some(&b':')) {
        text.splice(end..end, *b":00");
    }
    text
}

/// An array, with an inner array for each dimension. Only the outermost one is in lines.
fn append_array(
    value: &[u8],
    settings: &CallSettings,
    lines: bool,
    out: &mut Vec<u8>,
) -> Result<(), SqlError> {
    let view = ArrayView::parse(value)?;
    let element = view.element();
    let ty = resolve(element, settings)?;
    let elements = view.elements(attribute_of(element, &*settings.catalog)?)?;
    if elements.is_empty() {
        out.extend_from_slice(b"[]");
        return Ok(());
    }
    // How many dimensions begin at an element, or end before it.
    let edges = |at: usize| {
        let mut rows = 1;
        let sizes = view.dimensions().iter().rev();
        sizes
            .take_while(|dimension| {
                rows *= dimension.size;
                at.is_multiple_of(rows)
            })
            .count()
    };
    let outermost = view.dimensions().len().saturating_sub(1);
    for (at, value) in elements.iter().enumerate() {
        separate(at, lines && edges(at) >= outermost, out);
        out.extend(std::iter::repeat_n(b'[', edges(at)));
        match value {
            Some(value) => append_json(&ty, value, settings, false, out)?,
            None => out.extend_from_slice(b"null"),
        }
        out.extend(std::iter::repeat_n(b']', edges(at + 1)));
    }
    Ok(())
}
