//! Constants of stored expressions as literals, such as `'new'::order_status` (`get_const_expr`).

use trunkline_format::Oid;
use trunkline_format::node_tree::{Node, NodeValue};
use trunkline_format::text_output::{TextOptions, Type, write_text};

use super::node_fields::{damaged, oid};
use crate::catalog::{Namespace, oids};
use crate::error::SqlError;

/// A constant. `label` says whether its type is shown: always, if it is needed, or (`None`) never.
pub(super) fn constant(
    options: &TextOptions<'_>,
    names: Namespace<'_>,
    node: &Node,
    label: Option<bool>,
) -> Result<String, SqlError> {
    let ty = oid(node, "consttype")?;
    let modifier = i32::try_from(node.number("consttypmod").unwrap_or(-1)).unwrap_or(-1);
    let value = match node.flag("constisnull") {
        true => None,
        false => Some(payload(node)?),
    };
    literal(options, names, (ty, modifier), value, label)
}

/// A value of a type with a modifier as a literal. `label` says whether its type is shown: always, if
/// it is needed, or (`None`) never.
///
/// # Errors
/// 0A000: values of the type can't be printed.
pub fn literal(
    options: &TextOptions<'_>,
    names: Namespace<'_>,
    (ty, modifier): (Oid, i32),
    value: Option<&[u8]>,
    label: Option<bool>,
) -> Result<String, SqlError> {
    let cast = || format!("::{}", names.format_type(ty, Some(modifier)));
    let Some(value) = value else {
        return Ok(match label {
            Some(_) => format!("NULL{}", cast()),
            None => "NULL".to_owned(),
        });
    };
    let text = value_text(options, names, value, ty)?;
    let (shown, mut needs_label) = match ty {
        oids::INT4 if !text.starts_with('-') => (text, false),
        oids::INT4 => (format!("'{text}'"), true),
        oids::NUMERIC
            if text.starts_with(|char: char| char.is_ascii_digit())
                && text.contains(['e', 'E', '.']) =>
        {
            (text, modifier >= 0)
        }
        oids::NUMERIC => (format!("'{text}'"), true),
        oids::BOOL => ((if text == "t" { "true" } else { "false" }).to_owned(), false),
        oids::UNKNOWN => (quoted_literal(&text), false),
        _ => (quoted_literal(&text), true),
    };
    match label {
        None => return Ok(shown),
        Some(always) => needs_label |= always,
    }
    Ok(if needs_label { shown + &cast() } else { shown })
}

/// A constant that stands for an object, such as `'pg_class'::regclass`, by its OID, so that it
/// doesn't depend on the search path. `None` for others.
pub(super) fn object_number(node: &Node) -> Result<Option<String>, SqlError> {
    let name = match oid(node, "consttype")?.0 {
        24 => "regproc",
        2202 => "regprocedure",
        2203 => "regoper",
        2204 => "regoperator",
        2205 => "regclass",
        2206 => "regtype",
        3734 => "regconfig",
        3769 => "regdictionary",
        4089 => "regnamespace",
        4096 => "regrole",
        4191 => "regcollation",
        _ => return Ok(None),
    };
    match node.field("constvalue") {
        Some(NodeValue::Datum(bytes)) => {
            let number = bytes.first_chunk().map(|bytes| u32::from_le_bytes(*bytes));
            let number = number.ok_or_else(|| damaged("constvalue"))?;
            Ok(Some(format!("'{number}'::pg_catalog.{name}")))
        }
        _ => Ok(None),
    }
}

/// The stored value of a constant.
pub(super) fn payload(node: &Node) -> Result<&[u8], SqlError> {
    let Some(NodeValue::Datum(bytes)) = node.field("constvalue") else {
        return Err(damaged("constvalue"));
    };
    let length = node.number("constlen").unwrap_or_default();
    // A value that is passed by value fills a Datum; one of variable length has a header.
    let payload = match usize::try_from(length) {
        Ok(length) => bytes.get(..length),
        Err(_) if length == -1 => bytes.get(4..),
        Err(_) => bytes.strip_suffix(b"\0"),
    };
    payload.ok_or_else(|| damaged("constvalue"))
}

/// The value as its output function prints it.
fn value_text(
    options: &TextOptions<'_>,
    names: Namespace<'_>,
    payload: &[u8],
    ty: Oid,
) -> Result<String, SqlError> {
    let mut text = Vec::new();
    if matches!(ty, Oid(705 | 2275)) {
        text.extend(payload);
    } else {
        let resolved = Type::resolve(ty, options.catalog)
            .map_err(|error| SqlError::unsupported(error.to_string()))?;
        write_text(&resolved, payload, options, &mut text)
            .map_err(|error| damaged(&error.to_string()))?;
    }
    Ok(names.catalog().encoding().decode(&text))
}

/// A text as a literal (`simple_quote_literal`). The escapes of `E''` are never used.
fn quoted_literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}
