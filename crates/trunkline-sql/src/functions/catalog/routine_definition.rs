//! Definitions of functions: `pg_get_functiondef`, `pg_get_function_sqlbody`,
//! `pg_get_function_arg_default`.
//!
//! ```text
//!   CREATE OR REPLACE FUNCTION public.next_of(a integer)
//!    RETURNS integer
//!    LANGUAGE sql
//!    IMMUTABLE STRICT
//!   RETURN (a + 1)
//! ```

use arrow_array::ArrayRef;
use trunkline_engine::catalog::Procedure;
use trunkline_format::Oid;
use trunkline_format::node_tree::{Node, NodeValue};

use super::deparse::{Deparser, parse};
use super::node_fields::{child, damaged, unsupported};
use super::query_text::without_spaces;
use super::routines::{arguments, default_texts, result};
use crate::catalog::Namespace;
use crate::error::{SqlError, SqlState};
use crate::functions::call::{Call, CallSettings, Kernel};
use crate::functions::rows::{Reader, each_row};
use crate::resolve::name_parts;

/// The kernels of this module.
pub(in crate::functions) const ROUTINE_DEFINITIONS: &[(&str, Kernel)] = &[
    ("pg_get_functiondef", |call| each(call, |call, found| definition(call, found).map(Some))),
    ("pg_get_function_sqlbody", |call| {
        each(call, |call, found| {
            let names = call.settings.session()?.names();
            let body = found.body().filter(|_| found.language == SQL);
            body.map(|body| body_text(call.settings, names, found, body)).transpose()
        })
    }),
    ("pg_get_function_arg_default", |call| {
        let numbers = Reader::<i32>::new(call, 1)?;
        let oids = Reader::<u32>::new(call, 0)?;
        let names = call.settings.session()?.names();
        each_row(call.rows, |row| {
            let (Some(oid), Some(number)) = (oids.get(row), numbers.get(row)) else {
                return Ok(None);
            };
            let Some(found) = names.catalog().procedure(Oid(oid)) else { return Ok(None) };
            argument_default(call, names, found, number)
        })
    }),
];

/// `INTERNALlanguageId` and `ClanguageId`.
const BUILT_IN_LANGUAGES: [Oid; 2] = [Oid(12), Oid(13)];

/// `SQLlanguageId`.
const SQL: Oid = Oid(14);

/// Settings whose values are lists of names, each of which is quoted (`GUC_LIST_QUOTE`).
const LISTS: [&str; 6] = [
    "local_preload_libraries",
    "search_path",
    "session_preload_libraries",
    "shared_preload_libraries",
    "temp_tablespaces",
    "unix_socket_directories",
];

/// Answers for each function; null if there is none.
fn each(
    call: &Call<'_>,
    answer: impl Fn(&Call<'_>, &Procedure) -> Result<Option<String>, SqlError>,
) -> Result<ArrayRef, SqlError> {
    let names = call.settings.session()?.names();
    let oids = Reader::<u32>::new(call, 0)?;
    each_row(call.rows, |row| {
        match oids.get(row).and_then(|oid| names.catalog().procedure(Oid(oid))) {
            Some(found) => answer(call, found),
            None => Ok(None),
        }
    })
}

/// `CREATE OR REPLACE FUNCTION`.
fn definition(call: &Call<'_>, found: &Procedure) -> Result<String, SqlError> {
    let names = call.settings.session()?.names();
    let catalog = names.catalog();
    let deparser = Deparser::new(call.settings, names, false);
    if found.kind == b'a' {
        let name = catalog.encoding().decode(&found.name);
        let message = format!("\"{name}\" is an aggregate function");
        return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message));
    }
    if found.has_transforms() {
        return Err(unsupported("a function with TRANSFORM"));
    }
    let schema = catalog.database().schema(found.schema).ok_or_else(|| damaged("schema"))?;
    let kind = if found.kind == b'p' { "PROCEDURE" } else { "FUNCTION" };
    let defaults = default_texts(call, names, found)?;
    let mut text = format!(
        "CREATE OR REPLACE {kind} {}.{}({})\n",
        deparser.quoted(&schema.name),
        deparser.quoted(&found.name),
        arguments(names, found, false, &defaults)?
    );
    if let Some(result) = result(names, found)? {
        text += &format!(" RETURNS {result}\n");
    }
    let language = catalog.language_name(found.language).ok_or_else(|| damaged("prolang"))?;
    text += &format!(" LANGUAGE {}\n", deparser.quoted(language));
    let properties = properties(&deparser, found)?;
    if !properties.is_empty() {
        text += &format!("{properties}\n");
    }
    let settings = found.settings().ok_or_else(|| damaged("proconfig"))?;
    for (name, value) in settings {
        let (name, value) = (catalog.encoding().decode(name), catalog.encoding().decode(value));
        let quoted = deparser.quoted_text(&name);
        text += &format!(" SET {quoted} TO {}\n", setting_value(&name, &value)?);
    }
    match found.body().filter(|_| found.language == SQL) {
        Some(body) => text += &body_text(call.settings, names, found, body)?,
        None => {
            text += "AS ";
            if let Some(file) = found.binary() {
                text += &format!("{}, ", literal(&catalog.encoding().decode(file)));
            }
            let source = catalog.encoding().decode(found.source());
            let mut tag = format!("${}", kind.to_ascii_lowercase());
            while source.contains(&tag) {
                tag.push('x');
            }
            text += &format!("{tag}${source}{tag}$");
        }
    }
    text.push('\n');
    Ok(text)
}

/// The line of properties that differ from the defaults; empty if none does.
fn properties(deparser: &Deparser<'_>, found: &Procedure) -> Result<String, SqlError> {
    let catalog = deparser.names.catalog();
    let mut text = String::new();
    let mut add = |is_shown: bool, word: &str| {
        if is_shown {
            text.push(' ');
            text.push_str(word);
        }
    };
    add(found.kind == b'w', "WINDOW");
    add(found.volatility == b'i', "IMMUTABLE");
    add(found.volatility == b's', "STABLE");
    add(found.parallel == b's', "PARALLEL SAFE");
    add(found.parallel == b'r', "PARALLEL RESTRICTED");
    add(found.strict, "STRICT");
    add(found.security_definer, "SECURITY DEFINER");
    add(found.leakproof, "LEAKPROOF");
    let usual = if BUILT_IN_LANGUAGES.contains(&found.language) { 1.0 } else { 100.0 };
    add(found.cost != usual, &format!("COST {}", general(found.cost)));
    let has_rows = found.rows > 0.0 && found.rows != 1000.0;
    add(has_rows, &format!("ROWS {}", general(found.rows)));
    if found.support != Oid(0) {
        let row = catalog.procedure(found.support).ok_or_else(|| damaged("prosupport"))?;
        let name = deparser.quoted(&row.name);
        let schema = catalog.database().schema(row.schema).ok_or_else(|| damaged("schema"))?;
        match deparser.names.is_function_visible(row.oid) {
            Some(true) => add(true, &format!("SUPPORT {name}")),
            _ => add(true, &format!("SUPPORT {}.{name}", deparser.quoted(&schema.name))),
        }
    }
    Ok(text)
}

/// A number as `%g` prints it, with six digits.
fn general(number: f32) -> String {
    let number = f64::from(number);
    let scientific = format!("{number:.5e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    let without_zeros = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text.to_owned(),
    };
    if (-4..6).contains(&exponent) {
        let decimals = usize::try_from(5 - exponent).unwrap_or_default();
        return without_zeros(&format!("{number:.decimals$}"));
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", without_zeros(digits), exponent.abs())
}

/// The value of a setting.
fn setting_value(name: &str, value: &str) -> Result<String, SqlError> {
    if !LISTS.contains(&name.to_ascii_lowercase().as_str()) || value.is_empty() {
        return Ok(literal(value));
    }
    // The names are quoted where they need it, and are separated by commas.
    let (mut shown, mut rest) = (Vec::new(), value);
    while !rest.is_empty() {
        let mut is_quoted = false;
        let end = rest.find(|letter| {
            is_quoted ^= letter == '"';
            letter == ',' && !is_quoted
        });
        let (name, behind) = rest.split_at(end.unwrap_or(rest.len()));
        let name = name.trim();
        shown.push(literal(&match name.starts_with('"') {
            true => name_parts(name)?.concat(),
            false => name.to_owned(),
        }));
        rest = behind.strip_prefix(',').unwrap_or(behind);
    }
    Ok(shown.join(", "))
}

/// A text as a literal (`simple_quote_literal`).
fn literal(text: &str) -> String {
    let start = if text.contains('\\') { "E'" } else { "'" };
    format!("{start}{}'", text.replace('\\', "\\\\").replace('\'', "''"))
}

/// `RETURN …`, or `BEGIN ATOMIC … END`.
fn body_text(
    settings: &CallSettings,
    names: Namespace<'_>,
    found: &Procedure,
    body: &[u8],
) -> Result<String, SqlError> {
    let deparser = Deparser { function: Some(found), ..Deparser::new(settings, names, false) };
    let tree = parse(body)?;
    let statements = match &tree {
        NodeValue::Node(query) => {
            let names = deparser.query_names(query)?;
            let deparser = Deparser { query: Some(&names), ..deparser };
            let target = query.nodes("targetList").next().ok_or_else(|| damaged("prosqlbody"))?;
            let value = deparser.expression(child(target, "expr")?, true)?;
            return Ok(format!("RETURN {value}"));
        }
        lists => lists.elements().iter().flat_map(NodeValue::elements),
    };
    let mut text = "BEGIN ATOMIC\n".to_owned();
    for statement in statements.filter_map(NodeValue::node) {
        let deparser = Deparser { indent: Some(1), ..deparser };
        let statement = statement_text(&deparser, statement)?;
        text += &format!("{statement};\n");
    }
    Ok(text + "END")
}

fn statement_text(deparser: &Deparser<'_>, query: &Node) -> Result<String, SqlError> {
    Ok(without_spaces(&deparser.subquery(query, None, false)?))
}

/// The default of an argument, counted from 1; null if it has none.
fn argument_default(
    call: &Call<'_>,
    names: Namespace<'_>,
    found: &Procedure,
    number: i32,
) -> Result<Option<String>, SqlError> {
    let Some(at) = usize::try_from(number).ok().and_then(|number| number.checked_sub(1)) else {
        return Ok(None);
    };
    let parameters = found.parameters();
    if !parameters.get(at).is_some_and(|parameter| parameter.mode.is_input()) {
        return Ok(None);
    }
    let before = parameters.iter().take(at).filter(|parameter| parameter.mode.is_input()).count();
    let defaults = default_texts(call, names, found)?;
    let first = found.arguments.len().saturating_sub(defaults.len());
    Ok(before.checked_sub(first).and_then(|at| defaults.into_iter().nth(at)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected texts are those of `printf`.
    #[test]
    fn numbers_have_six_digits() {
        for (number, expected) in [
            (5.0, "5"),
            (0.5, "0.5"),
            (1000.0, "1000"),
            (123_456.0, "123456"),
            (1_234_567.0, "1.23457e+06"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (10_000_000.0, "1e+07"),
        ] {
            assert_eq!(general(number), expected);
        }
    }

    #[test]
    fn names_of_lists_are_quoted_each() {
        let shown = |name, value| setting_value(name, value).expect("a value");
        assert_eq!(shown("search_path", "public, \"Foo, b\""), "'public', 'Foo, b'");
        assert_eq!(shown("work_mem", "1MB"), "'1MB'");
        assert_eq!(shown("search_path", ""), "''");
    }
}
