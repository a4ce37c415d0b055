//! **Tables** that random queries read, described by a fixture's expected output: `columns.tsv` has
//! a line for each column, such as `public⇥orders⇥r⇥id⇥bigint`, and `public.orders.copy` has the
//! rows. Some of the stored values become literals, so that comparisons with them find rows.

use std::fs;
use std::path::Path;

use super::kinds::Kind;

/// A table, materialized view or partitioned table.
#[derive(Debug)]
pub(crate) struct Table {
    /// With the schema, and quoted where necessary.
    pub(crate) name: String,
    /// About how many rows it has. Queries that join or correlate large tables aren't generated.
    pub(crate) rows: u64,
    pub(crate) columns: Vec<Column>,
}

/// A column of a type that can be compared.
#[derive(Debug)]
pub(crate) struct Column {
    pub(super) name: String,
    pub(super) kind: Kind,
    /// Texts of some of its values, for use between quotes.
    pub(super) samples: Vec<String>,
}

/// The estimate for a table whose rows we don't know.
const ROWS_UNKNOWN: u64 = 1000;
/// How many values of a column are kept.
const SAMPLES: usize = 12;
/// Longer values would make queries hard to read.
const SAMPLE_LENGTH_MAX: usize = 40;

/// The tables of a database, given the directory with the expected rows of its tables.
pub(crate) fn tables(expected: &Path) -> Vec<Table> {
    let columns = fs::read_to_string(expected.join("columns.tsv")).expect("columns");
    // A partitioned table has no rows of its own, and its partitions' rows aren't looked for.
    parse(&columns, |table| fs::read_to_string(expected.join(format!("{table}.copy"))).ok())
}

/// Reads the lines of `columns.tsv`; `rows` returns the rows of a table as COPY prints them, with
/// ctid as the first column.
pub(super) fn parse(columns: &str, rows: impl Fn(&str) -> Option<String>) -> Vec<Table> {
    let split = |line: &str| -> Vec<String> { line.split('\t').map(str::to_owned).collect() };
    let mut tables: Vec<Table> = Vec::new();
    let (mut content, mut position): (Vec<Vec<String>>, _) = (Vec::new(), 0);
    for line in columns.lines() {
        let fields = split(line);
        let [schema, table, relkind, column, kind] = &fields[..] else { panic!("{line}") };
        if !["r", "m", "p"].contains(&relkind.as_str()) {
            continue;
        }
        let name = format!("{}.{}", quoted(schema), quoted(table));
        if tables.last().is_none_or(|last| last.name != name) {
            let text = rows(&format!("{schema}.{table}"));
            content = text.iter().flat_map(|text| text.lines()).map(split).collect();
            let rows = text.map_or(ROWS_UNKNOWN, |_| content.len() as u64);
            tables.push(Table { name, rows, columns: Vec::new() });
            position = 0;
        }
        position += 1;
        if let (Some(kind), Some(last)) = (Kind::with_name(kind), tables.last_mut()) {
            let samples = samples(&content, position);
            last.columns.push(Column { name: quoted(column), kind, samples });
        }
    }
    tables.retain(|table| !table.columns.is_empty());
    tables
}

/// Values of a column from all parts of a table. Nulls and what COPY escapes are left out.
fn samples(rows: &[Vec<String>], column: usize) -> Vec<String> {
    let step = rows.len().div_ceil(SAMPLES).max(1);
    let values = rows.iter().step_by(step).filter_map(|row| row.get(column));
    let usable = values.filter(|text| !text.contains('\\') && text.len() <= SAMPLE_LENGTH_MAX);
    usable.map(|text| text.replace('\'', "''")).collect()
}

/// Some of our columns are named like keywords, so every column could need quotes; a few letters
/// less make queries readable.
fn quoted(name: &str) -> String {
    let is_plain = name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    let is_keyword = ["select", "table", "order", "group", "user", "end", "desc", "default"];
    if is_plain && !is_keyword.contains(&name) {
        return name.to_owned();
    }
    format!("\"{}\"", name.replace('"', "\"\""))
}
