//! Signatures of functions: `pg_get_function_arguments`, `pg_get_function_result` and the like.
//!
//! For example, the arguments of `make_date` are `year integer, month integer, day integer`.

use trunkline_engine::catalog::{ParameterMode, Procedure};
use trunkline_format::Oid;
use trunkline_format::text_output::write_identifier;

use super::deparse::Deparser;
use crate::catalog::{Namespace, SqlCatalog};
use crate::error::SqlError;
use crate::functions::call::{Call, Kernel};
use crate::functions::rows::{Reader, each_row};

/// The kernels of this module.
pub(in crate::functions) const ROUTINES: &[(&str, Kernel)] = &[
    ("pg_get_function_arguments", |call| {
        each(call, |names, found| {
            let defaults = default_texts(call, names, found)?;
            arguments(names, found, false, &defaults).map(Some)
        })
    }),
    ("pg_get_function_identity_arguments", |call| {
        each(call, |names, found| arguments(names, found, false, &[]).map(Some))
    }),
    ("pg_get_function_result", |call| each(call, result)),
];

/// Answers for each function; null if there is none.
fn each(
    call: &Call<'_>,
    answer: impl Fn(Namespace<'_>, &Procedure) -> Result<Option<String>, SqlError>,
) -> Result<arrow_array::ArrayRef, SqlError> {
    let names = call.settings.session()?.names();
    let oids = Reader::<u32>::new(call, 0)?;
    each_row(call.rows, |row| {
        match oids.get(row).and_then(|oid| names.catalog().procedure(Oid(oid))) {
            Some(found) => answer(names, found),
            None => Ok(None),
        }
    })
}

/// The type of a function's results; null for a procedure.
pub(super) fn result(names: Namespace<'_>, found: &Procedure) -> Result<Option<String>, SqlError> {
    if found.kind == b'p' {
        return Ok(None);
    }
    let is_table = found.parameters().iter().any(|part| part.mode == ParameterMode::Table);
    if found.returns_set && is_table {
        return Ok(Some(format!("TABLE({})", arguments(names, found, true, &[])?)));
    }
    let set = if found.returns_set { "SETOF " } else { "" };
    Ok(Some(format!("{set}{}", names.type_name(found.result))))
}

/// The defaults of the last input arguments.
pub(super) fn default_texts(
    call: &Call<'_>,
    names: Namespace<'_>,
    found: &Procedure,
) -> Result<Vec<String>, SqlError> {
    let Some(stored) = found.defaults() else { return Ok(Vec::new()) };
    Deparser::new(call.settings, names, false).elements(stored)
}

/// The arguments of a function, or with `table`, the columns of its result.
pub(super) fn arguments(
    names: Namespace<'_>,
    found: &Procedure,
    table: bool,
    defaults: &[String],
) -> Result<String, SqlError> {
    // The arguments of an ordered-set aggregate come in two lists.
    let aggregate = names.catalog().aggregate(found.oid);
    let order_at = aggregate
        .filter(|row| row.kind != b'n' && !found.parameters().is_empty() && !table)
        .map(|row| usize::from(row.direct_arguments));
    let (mut text, mut printed, mut at, mut inputs) = (String::new(), 0, 0, 0);
    let without_default = found.arguments.len().saturating_sub(defaults.len());
    let parameters = found.parameters();
    while let Some(parameter) = parameters.get(at) {
        at += 1;
        if (parameter.mode == ParameterMode::Table) != table {
            continue;
        }
        if order_at == Some(printed) {
            text.push_str(if printed > 0 { " ORDER BY " } else { "ORDER BY " });
        } else if printed > 0 {
            text.push_str(", ");
        }
        text.push_str(match parameter.mode {
            ParameterMode::In if found.kind == b'p' => "IN ",
            ParameterMode::In | ParameterMode::Table => "",
            ParameterMode::InOut => "INOUT ",
            ParameterMode::Out => "OUT ",
            ParameterMode::Variadic => "VARIADIC ",
        });
        if !parameter.name.is_empty() {
            text.push_str(&quoted(names.catalog(), &parameter.name));
            text.push(' ');
        }
        text.push_str(&names.type_name(parameter.type_oid));
        if parameter.mode.is_input() {
            let default =
                (inputs >= without_default).then(|| defaults.get(inputs - without_default));
            if let Some(Some(default)) = default {
                text = format!("{text} DEFAULT {default}");
            }
            inputs += 1;
        }
        printed += 1;
        // The last argument of a variadic ordered-set aggregate belongs to both lists.
        if order_at == Some(printed) && at == parameters.len() {
            at -= 1;
        }
    }
    Ok(text)
}

/// A stored name as an identifier.
fn quoted(catalog: &SqlCatalog, name: &[u8]) -> String {
    let mut text = Vec::new();
    write_identifier(name, catalog.database().version().major(), &mut text);
    catalog.encoding().decode(&text)
}
