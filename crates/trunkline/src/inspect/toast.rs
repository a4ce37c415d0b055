//! `trunkline inspect toast`: lists the chunks of a TOAST value and their state.
//!
//! `inspect tuple` shows the `chunk_id` of each TOAST value that a row references. This command
//! lists that value's chunks. It includes chunks that are no longer live, because they help to
//! explain why a value has missing, repeated or deleted chunks.

use std::ffi::OsString;
use std::fmt::Display;

use serde::Serialize;
use trunkline_aio::facade::Arc;
use trunkline_format::deform::{Attribute, Deformer};
use trunkline_format::page::line_pointer;
use trunkline_format::varlena::Varlena;
use trunkline_format::{Align, HeapTuple, PageBytes, Tid};

use super::open_database::OpenDatabase;
use crate::exit::{Exit, Failure, plain};
use crate::number::number;
use crate::options::{Context, DatabaseArgs};
use crate::output::{Column, print_report, properties, table};

/// Maximum number of chunks that are listed as text.
const CHUNKS_SHOWN_MAX: usize = 40;

/// Options of the command.
#[derive(Debug, clap::Args)]
pub(crate) struct ToastArgs {
    #[command(flatten)]
    database: DatabaseArgs,

    /// Table that the value belongs to, such as public.documents.
    table: OsString,

    /// chunk_id of the value.
    #[arg(value_parser = number(0..=u32::MAX))]
    value: u32,
}

#[derive(Serialize)]
struct Report {
    table: String,
    value: u32,
    bytes: u64,
    chunks: Vec<Chunk>,
}

/// A row of the TOAST table. `number` and `bytes` are `None` if the row can't be decoded.
#[derive(Serialize)]
struct Chunk {
    ctid: String,
    number: Option<i32>,
    bytes: Option<usize>,
    state: String,
    /// Whether looking up the state failed, or the page is missing.
    #[serde(skip)]
    is_finding: bool,
}

pub(super) fn run(context: &Context<'_>, args: &ToastArgs) -> Result<Exit, Failure> {
    let mut open = OpenDatabase::open(context, &args.database, &args.table)?;
    let relation = open.relation(&args.table)?;
    let name = open.database.qualified_name(&relation);
    let toast = open.database.table_files(&relation)?.toast;
    let toast = toast.ok_or_else(|| Failure::usage(format_args!("{name} has no TOAST table")))?;
    // The index scan doesn't know that a tablespace has been moved.
    open.blocks(toast.index.relation())?;
    let blocks = open.blocks(&toast.heap)?;
    // A TOAST index has the key (chunk_id, chunk_seq). If we search by just the first column, we
    // get all of the value's chunks in the right order.
    let value = args.value.to_le_bytes();
    let key: &[Option<&[u8]>] = &[Some(&value)];
    let backend = &mut open.session.backend;
    let mut scan = toast.index.scan(backend, key, key).map_err(Failure::findings)?;
    let mut rows = Vec::new();
    while scan.next_page(backend, &mut rows).map_err(Failure::findings)? {}
    if rows.is_empty() {
        let text = format!("the TOAST table of {name} has no chunks of value {}", args.value);
        return Err(Failure::findings(text)
            .with_hint("inspect tuple shows the TOAST values that a row refers to"));
    }
    let mut report = Report { table: name, value: args.value, bytes: 0, chunks: Vec::new() };
    for row in rows {
        if row.block >= blocks {
            let (ctid, state) = (row.to_string(), "past the end of the TOAST table".to_owned());
            let is_finding = true;
            report.chunks.push(Chunk { ctid, number: None, bytes: None, state, is_finding });
            continue;
        }
        let page = open.page(&toast.heap, row.block)?;
        let chunk = chunk(&mut open, &page, row);
        if chunk.state == "live" {
            report.bytes += chunk.bytes.unwrap_or(0) as u64;
        }
        report.chunks.push(chunk);
    }
    print_report(context.global, &report, || report.text())?;
    let has_findings = report.chunks.iter().any(|chunk| chunk.is_finding);
    Ok(if has_findings { Exit::Findings } else { Exit::Good })
}

/// Decodes the row of a chunk: `chunk_id`, `chunk_seq`, `chunk_data`.
fn chunk(open: &mut OpenDatabase, page: &PageBytes, row: Tid) -> Chunk {
    let mut chunk = Chunk {
        ctid: row.to_string(),
        number: None,
        bytes: None,
        state: String::new(),
        is_finding: false,
    };
    let item = line_pointer(page, row.item).and_then(|pointer| pointer.item(page));
    let Ok(tuple) = HeapTuple::parse(row.item, item.unwrap_or_default()) else {
        chunk.state = "no row at this ctid".into();
        return chunk;
    };
    let transactions = Arc::clone(open.session.catalog.transactions());
    let state = transactions.row_state(open.session.backend.session(), &tuple);
    chunk.is_finding = state.is_err();
    chunk.state = state.map_or_else(plain, |state| state.to_string());
    let mut deformer = Deformer::of(&tuple);
    let int4 = Attribute { len: 4, align: Align::Int };
    let mut next = |attribute| deformer.next(attribute).ok()?.value();
    // Skip chunk_id, which we already know.
    next(int4);
    let number = next(int4).and_then(|bytes| bytes.first_chunk().copied());
    chunk.number = number.map(i32::from_le_bytes);
    let data = next(Attribute { len: -1, align: Align::Int });
    if let Some(Ok(Varlena::Plain(payload))) = data.map(Varlena::parse) {
        chunk.bytes = Some(payload.len());
    }
    chunk
}

impl Report {
    fn text(&self) -> String {
        let count = self.chunks.len();
        let lines: [(&str, &dyn Display); _] = [
            ("table", &self.table),
            ("value", &self.value),
            ("chunks", &count),
            ("bytes", &format!("{} in live chunks", self.bytes)),
        ];
        let columns: [Column<Chunk>; _] = [
            (">chunk", |chunk| chunk.number.map_or("?".into(), |number| number.to_string())),
            (">bytes", |chunk| chunk.bytes.map_or("?".into(), |bytes| bytes.to_string())),
            ("ctid", |chunk| chunk.ctid.clone()),
            ("state", |chunk| chunk.state.clone()),
        ];
        let shown = self.chunks.iter().take(CHUNKS_SHOWN_MAX);
        let mut text = properties(10, &lines) + "\n" + &table(shown, &columns);
        if count > CHUNKS_SHOWN_MAX {
            text.push_str(&format!("… and {} more\n", count - CHUNKS_SHOWN_MAX));
        }
        text
    }
}
