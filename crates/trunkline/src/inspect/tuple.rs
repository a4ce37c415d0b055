//! `trunkline inspect tuple`: decodes a row version, showing its header and how each column is
//! stored.
//!
//! `inspect page` can only show tuple headers, because the page doesn't record the columns' types.
//! This command reads the types from the catalog. It describes TOAST values but doesn't fetch them;
//! the subcommand `toast` can be used for that.

use std::ffi::OsString;
use std::fmt::Display;

use serde::Serialize;
use trunkline_aio::facade::Arc;
use trunkline_engine::catalog::ColumnInfo;
use trunkline_format::deform::{self, Deformer};
use trunkline_format::page::{LinePointerFlags, PageHeader, line_pointer};
use trunkline_format::varlena::{Compressed, Varlena};
use trunkline_format::{HeapTuple, Tid};

use super::open_database::OpenDatabase;
use super::tuple_header::TupleHeader;
use crate::exit::{Exit, Failure, plain};
use crate::options::{Context, DatabaseArgs};
use crate::output::{Column, print_report, properties, table};

/// Options of the command.
#[derive(Debug, clap::Args)]
pub(crate) struct TupleArgs {
    #[command(flatten)]
    database: DatabaseArgs,

    /// Table, such as public.accounts.
    table: OsString,

    /// ctid of the row version: (block,line pointer); the parentheses may be omitted.
    #[arg(value_parser = parse_ctid)]
    ctid: Tid,
}

/// Accepts a ctid without parentheses too, because a shell requires quotes around them.
fn parse_ctid(text: &str) -> Result<Tid, String> {
    let inner = text.trim().trim_start_matches('(').trim_end_matches(')');
    let (block, item) = inner.split_once(',').ok_or("expected (block,line pointer)")?;
    let block = block.trim().parse().map_err(|_| "invalid block number")?;
    let item = item.trim().parse().map_err(|_| "invalid line pointer number")?;
    Ok(Tid { block, item })
}

pub(super) fn run(context: &Context<'_>, args: &TupleArgs) -> Result<Exit, Failure> {
    let mut open = OpenDatabase::open(context, &args.database, &args.table)?;
    let relation = open.relation(&args.table)?;
    let files = open.database.table_files(&relation)?;
    let columns = open.database.columns(&relation)?.to_vec();
    let types: Vec<_> = columns.iter().map(|column| column.type_oid).collect();
    open.load_names(&types)?;
    let Tid { block, item } = args.ctid;
    let page = open.page(&files.rows, block)?;
    let count = PageHeader::parse(&page).line_pointer_count();
    let pointer = line_pointer(&page, item).filter(|_| item <= count).ok_or_else(|| {
        let text = format!("line pointer {item} does not exist: block {block} has {count}");
        Failure::usage(text)
    })?;
    let state = match pointer.flags {
        LinePointerFlags::Normal => None,
        LinePointerFlags::Unused => Some("the line pointer is unused".to_owned()),
        LinePointerFlags::Dead => {
            Some("the line pointer is dead: its row version was pruned".to_owned())
        }
        LinePointerFlags::Redirect => {
            Some(format!("the line pointer redirects to ({block},{})", pointer.offset))
        }
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
                let transactions = Arc::clone(open.session.catalog.transactions());
                let session = open.session.backend.session();
                let state = transactions.row_state(session, &tuple);
                report.state = match state {
                    Ok(state) => state.to_string(),
                    Err(error) => {
                        exit = Exit::Findings;
                        plain(error)
                    }
                };
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
    print_report(context.global, &report, || report.text())?;
    Ok(exit)
}

/// A row version. `None` in the header means that the line pointer doesn't point to a tuple.
#[derive(Serialize)]
struct Report {
    table: String,
    ctid: String,
    state: String,
    header: Option<TupleHeader>,
    columns: Vec<ReportColumn>,
}

/// A column, with the way its value is stored. The value itself is included if we could decode it.
#[derive(Serialize)]
struct ReportColumn {
    number: u16,
    name: String,
    #[serde(rename = "type")]
    type_name: String,
    /// Offset in the row's data and length, both in bytes. They are `None` if no value is stored.
    offset: Option<usize>,
    length: Option<usize>,
    stored: String,
    value: Option<String>,
    #[serde(skip)]
    damaged: bool,
}

/// Describes the columns, up to the first that is damaged.
fn report_columns(
    open: &OpenDatabase,
    tuple: &HeapTuple<'_>,
    columns: &[ColumnInfo],
) -> Vec<ReportColumn> {
    let mut deformer = Deformer::of(tuple);
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
        match deformer.next(column.attribute) {
            Ok(deform::Column::Null) => line.stored = "null".into(),
            Ok(deform::Column::Missing) => {
                line.stored = "not stored: the row is older than the column".into();
                // `pg_attribute.attmissingval`: the value of the column in such rows.
                if let Some(default) = &column.missing {
                    line.value = describe(open, column, default).1;
                }
            }
            Ok(deform::Column::Value(stored)) => {
                // The stored length of a C string includes its terminating NUL.
                let length = stored.len() + usize::from(column.attribute.len == -2);
                line.offset = Some(deformer.offset() - length);
                line.length = Some(length);
                let (form, value) = describe(open, column, stored);
                (line.stored, line.value) = (form, value);
            }
            Err(error) => {
                line.stored = error.to_string();
                line.damaged = true;
            }
        }
        // The offset of a column depends on the lengths of all columns before it. We therefore
        // can't decode anything after a damaged column.
        let damaged = line.damaged;
        reported.push(line);
        if damaged {
            break;
        }
    }
    reported
}

/// Describes how a value is stored, and formats the value. The text is `None` for a TOAST pointer,
/// and also for a dropped column, because we no longer know its type.
fn describe(open: &OpenDatabase, column: &ColumnInfo, stored: &[u8]) -> (String, Option<String>) {
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
            (format!("{header}-byte header"), text(payload))
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
                "TOAST value {} in {}: {} bytes, {} stored, {}",
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
        let lines: [(&str, &dyn Display); _] =
            [("table", &self.table), ("ctid", &self.ctid), ("state", &self.state)];
        let mut text = properties(10, &lines);
        if let Some(header) = &self.header {
            let lines: [(&str, &dyn Display); _] = [
                ("xmin", &header.xmin),
                ("xmax", &header.xmax),
                ("next", &header.ctid_text()),
                ("data at", &header.hoff),
                ("columns", &header.attributes),
                ("flags", &header.flags.join(", ")),
            ];
            text += &properties(10, &lines);
        }
        if !self.columns.is_empty() {
            text += "\n";
            text += &table(&self.columns, &COLUMNS);
        }
        text
    }
}

/// The table of columns.
const COLUMNS: [Column<ReportColumn>; 7] = [
    (">#", |column| column.number.to_string()),
    ("column", |column| column.name.clone()),
    ("type", |column| column.type_name.clone()),
    (">at", |column| column.offset.map_or(String::new(), |offset| offset.to_string())),
    (">bytes", |column| column.length.map_or(String::new(), |length| length.to_string())),
    ("stored", |column| column.stored.clone()),
    ("value", |column| column.value.clone().unwrap_or_default()),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ctid_may_have_parentheses_and_blanks() {
        let expected = Ok(Tid { block: 3, item: 5 });
        for text in ["(3,5)", "3,5", " ( 3 , 5 ) "] {
            assert_eq!(parse_ctid(text), expected, "{text}");
        }
        for text in ["", "3", "(3,)", "(,5)", "(3,70000)", "(-1,5)"] {
            assert!(parse_ctid(text).is_err(), "{text}");
        }
    }
}
