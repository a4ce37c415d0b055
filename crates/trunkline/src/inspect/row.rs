//! `trunkline inspect tuple`: one row version, its header and each of its columns as it is stored.
//!
//! Where a page alone shows only a header, the catalog says what the bytes behind it are.

use std::ffi::OsString;

use serde::Serialize;
use trunkline_aio::sync::Arc;
use trunkline_engine::catalog::ColumnInfo;
use trunkline_format::deform::{Column, Deformer};
use trunkline_format::page::{LinePointerFlags, PageHeader, line_pointer};
use trunkline_format::transam::row_state;
use trunkline_format::varlena::{Compressed, Varlena};
use trunkline_format::{HeapTuple, Tid};

use super::catalogued::Catalogued;
use super::tuple::TupleHeader;
use crate::cli::Global;
use crate::cluster::DatabaseArgs;
use crate::exit::{Exit, Failure};
use crate::output::{self, Table};
use trunkline_engine::settings::Settings;
use trunkline_engine::transactions::XidStatusCache;

/// Options of the subject.
#[derive(Debug, clap::Args)]
pub(crate) struct TupleArgs {
    #[command(flatten)]
    database: DatabaseArgs,

    /// A table, such as public.accounts.
    table: OsString,

    /// Where the row version is, as ctid shows it: (block,line pointer), or without parentheses.
    #[arg(value_parser = parse_ctid)]
    ctid: Tid,
}

fn parse_ctid(text: &str) -> Result<Tid, String> {
    let inner = text.trim().trim_start_matches('(').trim_end_matches(')');
    let (block, item) = inner.split_once(',').ok_or("expected (block,line pointer)")?;
    let block = block.trim().parse().map_err(|_| "no block number before the comma")?;
    let item = item.trim().parse().map_err(|_| "no line pointer behind the comma")?;
    Ok(Tid { block, item })
}

pub(super) fn run(global: &Global, settings: &Settings, args: &TupleArgs) -> Result<Exit, Failure> {
    let mut open = Catalogued::open(global, settings, &args.database, &args.table)?;
    let relation = open.relation(&args.table)?;
    let files = open.database.table_files(&relation)?;
    let columns = open.database.columns(&relation)?.to_vec();
    let types: Vec<_> = columns.iter().map(|column| column.type_oid).collect();
    open.load_names(&types)?;
    let Tid { block, item } = args.ctid;
    let page = open.page(&files.rows, block)?;
    let count = PageHeader::parse(&page).line_pointer_count();
    let pointer = line_pointer(&page, item).filter(|_| item <= count).ok_or_else(|| {
        let text = format!("block {block} has {count} line pointers, {item} is none of them");
        Failure::usage(text)
    })?;
    let state = match pointer.flags {
        LinePointerFlags::Normal => None,
        LinePointerFlags::Unused => Some("the line pointer is unused".to_owned()),
        LinePointerFlags::Dead => Some("the line pointer is dead: its row was removed".to_owned()),
        LinePointerFlags::Redirect => Some(format!("redirects to ({block},{})", pointer.offset)),
    };
    let name = open.database.qualified_name(&relation);
    let mut report = Report {
        table: name,
        ctid: args.ctid.to_string(),
        state: String::new(),
        header: None,
        columns: Vec::new(),
    };
    let mut exit = Exit::Good;
    if let Some(state) = state {
        report.state = state;
    } else {
        let bytes = pointer.item(&page).unwrap_or_default();
        report.header = TupleHeader::parse(bytes);
        match HeapTuple::parse(item, bytes) {
            Ok(tuple) => {
                let mut memo = XidStatusCache::default();
                let transactions = Arc::clone(open.cluster.catalog.transactions());
                let session = open.cluster.backend.session();
                let judged = row_state(&tuple, &mut transactions.lookup(session, &mut memo));
                report.state = judged.map_or_else(|error| error.to_string(), |it| it.to_string());
                report.columns = report_columns(&open, &tuple, &columns);
            }
            Err(error) => {
                report.state = error.to_string();
                exit = Exit::Findings;
            }
        }
    }
    if report.columns.iter().any(|column| column.damaged) {
        exit = Exit::Findings;
    }
    if global.json {
        output::print_json(&report)?;
    } else {
        output::print(&report.text())?;
    }
    Ok(exit)
}

#[derive(Serialize)]
struct Report {
    table: String,
    ctid: String,
    state: String,
    header: Option<TupleHeader>,
    columns: Vec<ReportColumn>,
}

#[derive(Serialize)]
struct ReportColumn {
    number: u16,
    name: String,
    #[serde(rename = "type")]
    type_name: String,
    /// Where it starts and how long it is, within the row's data; `None` if it is not there.
    offset: Option<usize>,
    length: Option<usize>,
    stored: String,
    value: Option<String>,
    #[serde(skip)]
    damaged: bool,
}

fn report_columns(
    open: &Catalogued,
    tuple: &HeapTuple<'_>,
    columns: &[ColumnInfo],
) -> Vec<ReportColumn> {
    let mut walk = Deformer::of(tuple);
    let mut reported = Vec::new();
    for column in columns {
        let mut line = ReportColumn {
            number: column.number,
            name: String::from_utf8_lossy(&column.name).into_owned(),
            type_name: match column.dropped {
                true => "(dropped)".into(),
                false => open.type_name(column.type_oid),
            },
            offset: None,
            length: None,
            stored: String::new(),
            value: None,
            damaged: false,
        };
        match walk.next(column.attribute) {
            Ok(Column::Null) => line.stored = "null".into(),
            Ok(Column::Missing) => {
                line.stored = "missing: the row is older than the column".into();
                // Kept by the catalog for such rows.
                if let Some(default) = &column.missing {
                    line.value = describe(open, column, default).1;
                }
            }
            Ok(Column::Value(stored)) => {
                // A C string's NUL belongs to it.
                let length = stored.len() + usize::from(column.attribute.len == -2);
                line.offset = Some(walk.offset() - length);
                line.length = Some(length);
                let (form, value) = describe(open, column, stored);
                (line.stored, line.value) = (form, value);
            }
            Err(error) => {
                line.stored = error.to_string();
                line.damaged = true;
            }
        }
        let damaged = line.damaged;
        reported.push(line);
        if damaged {
            break;
        }
    }
    reported
}

/// How a value is stored, and the value.
fn describe(open: &Catalogued, column: &ColumnInfo, stored: &[u8]) -> (String, Option<String>) {
    let text = |payload: &[u8]| (!column.dropped).then(|| open.text(column.type_oid, payload));
    if column.attribute.len != -1 {
        return ("plain".into(), text(stored));
    }
    let parsed = match Varlena::parse(stored) {
        Ok(parsed) => parsed,
        Err(error) => return (error.to_string(), None),
    };
    match parsed {
        Varlena::Plain(payload) => {
            let header = stored.len() - payload.len();
            (format!("header of {header}"), text(payload))
        }
        Varlena::Compressed(Compressed { method, raw_size, .. }) => {
            let form = format!("{method:?}, {raw_size} bytes uncompressed").to_lowercase();
            let mut room = Vec::new();
            let value = parsed.payload(&mut room).ok().and_then(text);
            (form, value)
        }
        Varlena::External(pointer) => {
            let how =
                pointer.method.map_or("not compressed".into(), |method| format!("{method:?}"));
            let form = format!(
                "TOAST value {} of {}: {} bytes, {} stored, {}",
                pointer.value_id,
                pointer.toast_relation,
                pointer.raw_size,
                pointer.stored_size,
                how.to_lowercase()
            );
            (form, None)
        }
    }
}

impl Report {
    fn text(&self) -> String {
        let mut lines = vec![
            ("table", self.table.clone()),
            ("ctid", self.ctid.clone()),
            ("state", self.state.clone()),
        ];
        if let Some(header) = &self.header {
            lines.extend([
                ("xmin", header.xmin.to_string()),
                ("xmax", header.xmax.to_string()),
                ("next", header.ctid_text()),
                ("data at", header.hoff.to_string()),
                ("columns", header.attributes.to_string()),
                ("flags", header.flags.join(", ")),
            ]);
        }
        let head: String =
            lines.iter().map(|(name, value)| format!("{name:<10}{value}\n")).collect();
        if self.columns.is_empty() {
            return head;
        }
        let headings = [">#", "column", "type", ">at", ">bytes", "stored", "value"];
        let mut table = Table::new(&headings);
        let number = |number: Option<usize>| number.map_or(String::new(), |it| it.to_string());
        for column in &self.columns {
            table.row(vec![
                column.number.to_string(),
                column.name.clone(),
                column.type_name.clone(),
                number(column.offset),
                number(column.length),
                column.stored.clone(),
                column.value.clone().unwrap_or_default(),
            ]);
        }
        head + "\n" + &table.render()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_as_people_write_them() {
        let expected = Ok(Tid { block: 3, item: 5 });
        for text in ["(3,5)", "3,5", " ( 3 , 5 ) "] {
            assert_eq!(parse_ctid(text), expected, "{text}");
        }
        for text in ["", "3", "(3,)", "(,5)", "(3,70000)", "(-1,5)"] {
            assert!(parse_ctid(text).is_err(), "{text}");
        }
    }
}
