//! `trunkline inspect toast`: the chunks of one long value, and whether they make it whole.
//!
//! `inspect tuple` shows the number of a value where a row has a pointer to it.

use std::ffi::OsString;

use serde::Serialize;
use trunkline_aio::sync::Arc;
use trunkline_engine::settings::Settings;
use trunkline_engine::transactions::XidStatusCache;
use trunkline_format::deform::{Attribute, Deformer};
use trunkline_format::page::line_pointer;
use trunkline_format::transam::row_state;
use trunkline_format::varlena::Varlena;
use trunkline_format::{Align, HeapTuple, PageBytes, Tid};

use super::catalogued::Catalogued;
use crate::cli::Global;
use crate::cluster::DatabaseArgs;
use crate::exit::{Exit, Failure};
use crate::output::{self, Table};

/// Chunks that are listed.
const CHUNKS_SHOWN: usize = 40;

/// Options of the subject.
#[derive(Debug, clap::Args)]
pub(crate) struct ToastArgs {
    #[command(flatten)]
    database: DatabaseArgs,

    /// The table that the value is of, such as public.documents.
    table: OsString,

    /// The number of the value (chunk_id).
    value: u32,
}

#[derive(Serialize)]
struct Report {
    table: String,
    value: u32,
    bytes: u64,
    chunks: Vec<Chunk>,
}

#[derive(Serialize)]
struct Chunk {
    ctid: String,
    number: Option<i32>,
    bytes: Option<usize>,
    state: String,
}

pub(super) fn run(global: &Global, settings: &Settings, args: &ToastArgs) -> Result<Exit, Failure> {
    let mut open = Catalogued::open(global, settings, &args.database, &args.table)?;
    let relation = open.relation(&args.table)?;
    let name = open.database.qualified_name(&relation);
    let toast = open.database.table_files(&relation)?.toast;
    let toast = toast.ok_or_else(|| Failure::usage(format_args!("{name} has no TOAST table")))?;
    let value = args.value.to_le_bytes();
    let key: &[Option<&[u8]>] = &[Some(&value)];
    let backend = &mut open.cluster.backend;
    let mut scan = toast.index.scan(backend, key, key).map_err(Failure::findings)?;
    let mut rows = Vec::new();
    while scan.next_page(backend, &mut rows).map_err(Failure::findings)? {}
    if rows.is_empty() {
        let text = format!("no chunk of value {} is in the TOAST table of {name}", args.value);
        return Err(Failure::findings(text)
            .with_hint("inspect tuple shows the numbers of the values that a row has there"));
    }
    let mut report = Report { table: name, value: args.value, bytes: 0, chunks: Vec::new() };
    for row in rows {
        let page = open.page(&toast.heap, row.block)?;
        let chunk = chunk(&mut open, &page, row);
        if chunk.state == "live" {
            report.bytes += chunk.bytes.unwrap_or(0) as u64;
        }
        report.chunks.push(chunk);
    }
    if global.json {
        output::print_json(&report)?;
    } else {
        output::print(&report.text())?;
    }
    Ok(Exit::Good)
}

fn chunk(open: &mut Catalogued, page: &PageBytes, row: Tid) -> Chunk {
    let mut chunk =
        Chunk { ctid: row.to_string(), number: None, bytes: None, state: String::new() };
    let item = line_pointer(page, row.item).and_then(|pointer| pointer.item(page));
    let Ok(tuple) = HeapTuple::parse(row.item, item.unwrap_or_default()) else {
        chunk.state = "no row there".into();
        return chunk;
    };
    let mut memo = XidStatusCache::default();
    let transactions = Arc::clone(open.cluster.catalog.transactions());
    let mut lookup = transactions.lookup(open.cluster.backend.session(), &mut memo);
    let judged = row_state(&tuple, &mut lookup);
    chunk.state = judged.map_or_else(|error| error.to_string(), |state| state.to_string());
    let mut walk = Deformer::of(&tuple);
    let int4 = Attribute { len: 4, align: Align::Int };
    let mut next = |attribute| walk.next(attribute).ok()?.value();
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
        let lines = [
            ("table", self.table.clone()),
            ("value", self.value.to_string()),
            ("chunks", self.chunks.len().to_string()),
            ("bytes", format!("{} in live chunks", self.bytes)),
        ];
        let mut text: String =
            lines.iter().map(|(name, value)| format!("{name:<10}{value}\n")).collect();
        let mut table = Table::new(&[">chunk", ">bytes", "ctid", "state"]);
        for chunk in self.chunks.iter().take(CHUNKS_SHOWN) {
            table.row(vec![
                chunk.number.map_or("?".into(), |number| number.to_string()),
                chunk.bytes.map_or("?".into(), |bytes| bytes.to_string()),
                chunk.ctid.clone(),
                chunk.state.clone(),
            ]);
        }
        text.push('\n');
        text.push_str(&table.render());
        if self.chunks.len() > CHUNKS_SHOWN {
            text.push_str(&format!("… and {} more\n", self.chunks.len() - CHUNKS_SHOWN));
        }
        text
    }
}
