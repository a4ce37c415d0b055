//! Definitions of objects as SQL: `pg_get_expr`, `pg_get_constraintdef`, `pg_get_indexdef`,
//! `pg_get_partkeydef`.
//!
//! They print what the catalogs store. The query of a view is printed by [`super::query_text`].

use arrow_array::ArrayRef;
use trunkline_format::Oid;
use trunkline_format::catalog::{ConstraintRow, array_shorts};

use super::deparse::Deparser;
use super::index_definition::index_definition;
use super::node_fields::{damaged, unsupported};
use super::partition_constraint::partition_constraint;
use crate::catalog::oids::TEXT;
use crate::error::SqlError;
use crate::functions::array::{ArrayBuilder, attribute_of};
use crate::functions::call::{Call, Kernel};
use crate::functions::rows::{Reader, each_row};

/// The kernels of this module.
pub(in crate::functions) const DEFINITIONS: &[(&str, Kernel)] = &[
    ("pg_get_expr", stored_expression),
    ("pg_get_expr_ext", stored_expression),
    ("pg_get_constraintdef", |call| {
        each(call, 1, |deparser, oid| match constraint_of(&deparser, oid)? {
            Some(row) => constraint(deparser, row).map(Some),
            None => Ok(None),
        })
    }),
    ("pg_get_constraintdef_ext", |call| {
        each(call, 1, |deparser, oid| match constraint_of(&deparser, oid)? {
            Some(row) => constraint(deparser, row).map(Some),
            None => Ok(None),
        })
    }),
    ("pg_get_indexdef", |call| each(call, 1, |deparser, oid| index_definition(deparser, oid, 0))),
    ("pg_get_indexdef_ext", |call| {
        let columns = Reader::<i32>::new(call, 1)?;
        let (oids, pretty) = (Reader::<u32>::new(call, 0)?, Reader::<bool>::new(call, 2)?);
        each_row(call.rows, |row| {
            let (Some(oid), Some(column), Some(pretty)) =
                (oids.get(row), columns.get(row), pretty.get(row))
            else {
                return Ok(None);
            };
            index_definition(deparser(call, pretty)?, Oid(oid), column)
        })
    }),
    ("pg_get_partkeydef", |call| each(call, 1, partition_key)),
    ("pg_get_statisticsobjdef_columns", |call| each(call, 1, statistics_columns)),
    ("pg_get_statisticsobjdef_expressions", |call| {
        let oids = Reader::<u32>::new(call, 0)?;
        each_row(call.rows, |row| match oids.get(row) {
            Some(oid) => statistics_expressions(&deparser(call, false)?, call, Oid(oid)),
            None => Ok(None),
        })
    }),
    ("pg_get_partition_constraintdef", |call| {
        each(call, 1, |deparser, oid| partition_constraint(&deparser, call.settings, oid))
    }),
    ("pg_get_viewdef", |call| each(call, 1, view)),
    ("pg_get_viewdef_ext", |call| each(call, 1, view)),
    ("pg_get_viewdef_wrap", |call| refuse(call, "the query of a view with lines of a given width")),
    ("pg_get_ruledef", |call| refuse(call, "a rule")),
    ("pg_get_ruledef_ext", |call| refuse(call, "a rule")),
    ("pg_get_triggerdef", |call| refuse(call, "a trigger")),
    ("pg_get_triggerdef_ext", |call| refuse(call, "a trigger")),
];

/// Fails for every row that has an argument, so that a statement without such rows works.
fn refuse(call: &Call<'_>, what: &str) -> Result<ArrayRef, SqlError> {
    let oids = Reader::<u32>::new(call, 0)?;
    each_row(call.rows, |row| match oids.get(row) {
        Some(_) => Err::<Option<String>, _>(unsupported(what)),
        None => Ok(None),
    })
}

fn deparser<'a>(call: &'a Call<'_>, pretty: bool) -> Result<Deparser<'a>, SqlError> {
    let names = call.settings.session()?.names();
    Ok(Deparser::new(call.settings, names, pretty))
}

/// Answers for each OID. Argument `pretty`, if there is one, leaves out parentheses.
fn each(
    call: &Call<'_>,
    pretty: usize,
    answer: impl Fn(Deparser<'_>, Oid) -> Result<Option<String>, SqlError>,
) -> Result<ArrayRef, SqlError> {
    let oids = Reader::<u32>::new(call, 0)?;
    let pretty =
        (call.arguments.len() > pretty).then(|| Reader::<bool>::new(call, pretty)).transpose()?;
    each_row(call.rows, |row| {
        let pretty = pretty.as_ref().map_or(Some(false), |pretty| pretty.get(row));
        let (Some(oid), Some(pretty)) = (oids.get(row), pretty) else { return Ok(None) };
        answer(deparser(call, pretty)?, Oid(oid))
    })
}

/// `pg_get_expr`: null if the relation doesn't exist.
fn stored_expression(call: &Call<'_>) -> Result<ArrayRef, SqlError> {
    let (texts, relations) = (Reader::<&str>::new(call, 0)?, Reader::<u32>::new(call, 1)?);
    let pretty = (call.arguments.len() > 2).then(|| Reader::<bool>::new(call, 2)).transpose()?;
    each_row(call.rows, |row| {
        let pretty = pretty.as_ref().map_or(Some(false), |pretty| pretty.get(row));
        let (Some(text), Some(relation), Some(pretty)) =
            (texts.get(row), relations.get(row), pretty)
        else {
            return Ok(None);
        };
        let made = Deparser { relation: Oid(relation), ..deparser(call, pretty)? };
        let is_there = made.names.catalog().database().relation(Oid(relation)).is_some();
        if relation != 0 && !is_there {
            return Ok(None);
        }
        made.stored(text.as_bytes()).map(Some)
    })
}

/// `pg_get_viewdef`: null unless the relation is a view.
fn view(deparser: Deparser<'_>, oid: Oid) -> Result<Option<String>, SqlError> {
    let catalog = deparser.names.catalog();
    let Some(relation) = catalog.database().relation(oid) else { return Ok(None) };
    let Some(stored) = catalog.view_query(oid)? else { return Ok(None) };
    let columns = catalog.database().columns(relation).map_err(|_| damaged("columns"))?.iter();
    let columns: Vec<String> = (columns.filter(|column| !column.dropped))
        .map(|column| catalog.encoding().decode(&column.name))
        .collect();
    let deparser = Deparser { indent: Some(0), ..deparser };
    Ok(Some(deparser.view(&stored, Some(&columns))? + ";"))
}

fn constraint_of<'a>(
    deparser: &Deparser<'a>,
    oid: Oid,
) -> Result<Option<&'a ConstraintRow>, SqlError> {
    deparser.names.catalog().definitions().constraint(oid)
}

fn numbers(array: Option<&[u8]>) -> Result<Vec<i16>, SqlError> {
    array.map_or(Ok(Vec::new()), |array| array_shorts(array).ok_or_else(|| damaged("int2[]")))
}

/// A constraint as `ALTER TABLE … ADD` takes it.
fn constraint(deparser: Deparser<'_>, row: &ConstraintRow) -> Result<String, SqlError> {
    let deparser = Deparser { relation: row.relation, ..deparser };
    let columns = numbers(row.columns.as_deref())?;
    let mut text = match row.kind {
        b'f' => foreign_key(&deparser, row, &columns)?,
        b'p' | b'u' => {
            let word = if row.kind == b'p' { "PRIMARY KEY" } else { "UNIQUE" };
            let index = deparser.names.catalog().database().index(row.index);
            let index = index.ok_or_else(|| damaged("index of a constraint"))?;
            let nulls = if index.nulls_not_distinct { " NULLS NOT DISTINCT" } else { "" };
            let overlaps = if row.period { " WITHOUT OVERLAPS" } else { "" };
            let names = deparser.columns(row.relation, &columns)?;
            let mut text = format!("{word}{nulls} ({names}{overlaps})");
            let included = index.columns.get(usize::from(index.key_count)..).unwrap_or_default();
            if !included.is_empty() {
                let names = deparser.columns(row.relation, included)?;
                text = format!("{text} INCLUDE ({names})");
            }
            text
        }
        b'c' => {
            let expression = row.expression.as_deref().ok_or_else(|| damaged("conbin"))?;
            let inherit = if row.no_inherit { " NO INHERIT" } else { "" };
            format!("CHECK ({}){inherit}", deparser.stored(expression)?)
        }
        b'n' if row.relation == Oid(0) => "NOT NULL".to_owned(),
        b'n' => {
            let inherit = if row.no_inherit { " NO INHERIT" } else { "" };
            format!("NOT NULL {}{inherit}", deparser.columns(row.relation, &columns)?)
        }
        b't' => "TRIGGER".to_owned(),
        _ => return Err(unsupported("an exclusion constraint")),
    };
    if row.deferrable {
        text.push_str(" DEFERRABLE");
    }
    if row.deferred {
        text.push_str(" INITIALLY DEFERRED");
    }
    if !row.enforced {
        text.push_str(" NOT ENFORCED");
    } else if !row.validated {
        text.push_str(" NOT VALID");
    }
    Ok(text)
}

fn foreign_key(
    deparser: &Deparser<'_>,
    row: &ConstraintRow,
    columns: &[i16],
) -> Result<String, SqlError> {
    if row.period {
        return Err(unsupported("a foreign key with PERIOD"));
    }
    let own = deparser.columns(row.relation, columns)?;
    let table = deparser.relation_name(row.referenced, false)?;
    let referenced = numbers(row.referenced_columns.as_deref())?;
    let referenced = deparser.columns(row.referenced, &referenced)?;
    let mut text = format!("FOREIGN KEY ({own}) REFERENCES {table}({referenced})");
    text.push_str(match row.match_type {
        b'f' => " MATCH FULL",
        b'p' => " MATCH PARTIAL",
        _ => "",
    });
    let action = |code: u8| match code {
        b'r' => Some("RESTRICT"),
        b'c' => Some("CASCADE"),
        b'n' => Some("SET NULL"),
        b'd' => Some("SET DEFAULT"),
        _ => None,
    };
    if let Some(action) = action(row.on_update) {
        text = format!("{text} ON UPDATE {action}");
    }
    if let Some(action) = action(row.on_delete) {
        text = format!("{text} ON DELETE {action}");
    }
    let set = numbers(row.set_columns.as_deref())?;
    if !set.is_empty() {
        text = format!("{text} ({})", deparser.columns(row.relation, &set)?);
    }
    Ok(text)
}

/// `pg_get_partkeydef`: null unless the table is partitioned.
fn partition_key(deparser: Deparser<'_>, table: Oid) -> Result<Option<String>, SqlError> {
    let deparser = Deparser { relation: table, ..deparser };
    let catalog = deparser.names.catalog();
    let Some(row) = catalog.definitions().partitioned_table(table)? else { return Ok(None) };
    let word = match row.strategy {
        b'h' => "HASH",
        b'l' => "LIST",
        _ => "RANGE",
    };
    if row.expressions.is_some() {
        return Err(unsupported("a partition key with expressions"));
    }
    let database = catalog.database();
    let relation = database.relation(table).ok_or_else(|| damaged("table"))?;
    let columns = database.columns(relation).map_err(|_| damaged("columns"))?;
    let mut parts = Vec::new();
    for (at, &number) in row.columns.iter().enumerate() {
        let column = usize::try_from(number - 1).ok().and_then(|at| columns.get(at));
        let column = column.ok_or_else(|| damaged("column"))?;
        let mut part = deparser.quoted(&column.name);
        part += &deparser.collation(row.collations.get(at), column.collation)?;
        part += &deparser.operator_class(row.classes.get(at), column.type_oid)?;
        parts.push(part);
    }
    Ok(Some(format!("{word} ({})", parts.join(", "))))
}

/// `pg_get_statisticsobjdef_expressions`, a `text[]`: null if there is no such object, or if it is only
/// about columns.
fn statistics_expressions(
    deparser: &Deparser<'_>,
    call: &Call<'_>,
    oid: Oid,
) -> Result<Option<Vec<u8>>, SqlError> {
    let catalog = deparser.names.catalog();
    let Some(row) = catalog.definitions().statistics(oid)? else { return Ok(None) };
    let Some(stored) = row.expressions.as_deref() else { return Ok(None) };
    let deparser = Deparser { relation: row.relation, ..*deparser };
    let mut array = ArrayBuilder::new(TEXT, attribute_of(TEXT, &*call.settings.catalog)?);
    for text in deparser.elements(stored)? {
        array.push(Some(&catalog.encoding().encode(&text).unwrap_or_default()))?;
    }
    array.finish_list().map(Some)
}

/// `pg_get_statisticsobjdef_columns`: null if there is no such object.
fn statistics_columns(deparser: Deparser<'_>, oid: Oid) -> Result<Option<String>, SqlError> {
    let Some(row) = deparser.names.catalog().definitions().statistics(oid)? else {
        return Ok(None);
    };
    if row.expressions.is_some() {
        return Err(unsupported("statistics on expressions"));
    }
    deparser.columns(row.relation, &row.columns).map(Some)
}
