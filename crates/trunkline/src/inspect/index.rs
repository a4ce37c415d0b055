//! `trunkline inspect btree`: an index level by level, or one of its pages entry by entry.
//!
//! ```text
//!   inspect btree -d DB INDEX         metapage, then for each level its pages, entries and room
//!   inspect btree -d DB INDEX BLOCK   one page: links, high key, entries with their keys as text
//! ```

use std::ffi::OsString;

use serde::Serialize;
use trunkline_engine::btree::{Index, LevelWalk};
use trunkline_engine::catalog::{ColumnInfo, RelationInfo};
use trunkline_engine::read_stream::StreamOptions;
use trunkline_engine::settings::Settings;
use trunkline_format::btree::{BtreePage, Entry, Fault, Meta, Target};
use trunkline_format::catalog::RelationKind;
use trunkline_format::page::PageHeader;
use trunkline_format::{BLOCK_SIZE, BlockNo, PageBytes};

use super::catalogued::Catalogued;
use crate::cli::Global;
use crate::cluster::DatabaseArgs;
use crate::exit::{Exit, Failure};
use crate::output::{self, Table};

/// Rows of a list that are shown.
const ROWS_SHOWN: usize = 3;

/// Options of the subject.
#[derive(Debug, clap::Args)]
pub(crate) struct BtreeArgs {
    #[command(flatten)]
    database: DatabaseArgs,

    /// A B-tree index, such as public.accounts_pkey.
    index: OsString,

    /// A page of it; by default all, one line for each level.
    block: Option<BlockNo>,
}

pub(super) fn run(global: &Global, settings: &Settings, args: &BtreeArgs) -> Result<Exit, Failure> {
    let mut open = Catalogued::open(global, settings, &args.database, &args.index)?;
    let relation = open.relation(&args.index)?;
    let name = open.database.qualified_name(&relation);
    let row = open.database.index(relation.oid).cloned();
    let index = row.and_then(|row| open.database.btree(&row));
    let Some(index) = index else {
        let method = open.database.access_method(relation.access_method);
        let method = method.filter(|_| relation.kind == RelationKind::Index);
        let method = method.map(String::from_utf8_lossy);
        let of = method.map(|name| format!(", but of access method \"{name}\""));
        let text = format!("{name} is no B-tree index{}", of.unwrap_or_default());
        let failure = Failure::usage(text);
        return Err(match relation.kind {
            RelationKind::PartitionedIndex => {
                failure.with_hint("each partition has one of its own")
            }
            _ => failure,
        });
    };
    match args.block {
        None => whole(global, &mut open, &index, name),
        Some(0) => {
            let page = open.page(index.relation(), 0)?;
            let meta = Meta::parse(&page).map_err(Failure::findings)?;
            show(global, &JsonMeta::new(name, &meta), JsonMeta::text)
        }
        Some(block) => {
            let columns = open.database.columns(&relation)?.to_vec();
            let types: Vec<_> = columns.iter().map(|column| column.type_oid).collect();
            open.load_names(&types)?;
            let page = open.page(index.relation(), block)?;
            let page = PageReport::new(&open, (&relation, &columns), &index, block, &page);
            show(global, &page.map_err(Failure::findings)?, PageReport::text)
        }
    }
}

fn show<T: Serialize>(
    global: &Global,
    report: &T,
    text: impl FnOnce(&T) -> String,
) -> Result<Exit, Failure> {
    if global.json {
        output::print_json(report)?;
    } else {
        output::print(&text(report))?;
    }
    Ok(Exit::Good)
}

#[derive(Serialize)]
struct JsonMeta {
    index: String,
    version: u32,
    root: BlockNo,
    level: u32,
    fast_root: BlockNo,
    fast_level: u32,
    all_equal_image: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    levels: Vec<JsonLevel>,
}

/// The pages of a level together.
#[derive(Default, Serialize)]
struct JsonLevel {
    level: u32,
    first: BlockNo,
    pages: u64,
    deleted: u64,
    entries: u64,
    rows: u64,
    dead: u64,
    /// Of the room for entries, what is used.
    fill: f64,
}

impl JsonMeta {
    fn new(index: String, meta: &Meta) -> JsonMeta {
        JsonMeta {
            index,
            version: meta.version,
            root: meta.root,
            level: meta.level,
            fast_root: meta.fast_root,
            fast_level: meta.fast_level,
            all_equal_image: meta.all_equal_image,
            levels: Vec::new(),
        }
    }

    fn text(&self) -> String {
        let image = if self.all_equal_image { "yes" } else { "no" };
        let lines = [
            ("index", self.index.clone()),
            ("version", self.version.to_string()),
            ("root", format!("{} (level {})", self.root, self.level)),
            ("fast root", format!("{} (level {})", self.fast_root, self.fast_level)),
            ("equal image", image.to_owned()),
        ];
        let head: String =
            lines.iter().map(|(name, value)| format!("{name:<13}{value}\n")).collect();
        if self.levels.is_empty() {
            return head;
        }
        let headings =
            [">level", ">first", ">pages", ">deleted", ">entries", ">rows", ">dead", ">fill"];
        let mut table = Table::new(&headings);
        for level in &self.levels {
            table.row(vec![
                level.level.to_string(),
                level.first.to_string(),
                level.pages.to_string(),
                level.deleted.to_string(),
                level.entries.to_string(),
                level.rows.to_string(),
                level.dead.to_string(),
                format!("{:.0} %", level.fill * 100.0),
            ]);
        }
        head + "\n" + &table.render()
    }
}

/// All levels, from the root's down.
fn whole(
    global: &Global,
    open: &mut Catalogued,
    index: &Index,
    name: String,
) -> Result<Exit, Failure> {
    let backend = &mut open.cluster.backend;
    let meta = index.meta(backend).map_err(Failure::findings)?;
    let mut report = JsonMeta::new(name, &meta);
    let levels = if meta.root == 0 { 0..0 } else { 0..meta.level + 1 };
    for number in levels.rev() {
        let options = StreamOptions::default();
        let mut walk =
            LevelWalk::of_level(index, backend, number, options).map_err(Failure::findings)?;
        let mut level = JsonLevel { level: number, ..JsonLevel::default() };
        let mut free = 0;
        while let Some(found) = walk.next(backend).map_err(Failure::findings)? {
            let page = BtreePage::parse(found.page).map_err(Failure::findings)?;
            if level.pages + level.deleted == 0 {
                level.first = found.block;
            }
            if page.is_ignored() {
                level.deleted += 1;
                continue;
            }
            level.pages += 1;
            let header = PageHeader::parse(found.page);
            free += u64::from(header.upper.saturating_sub(header.lower));
            for entry in page.entries() {
                let entry = entry.map_err(Failure::findings)?;
                level.entries += 1;
                level.rows += entry.rows().count() as u64;
                level.dead += u64::from(entry.is_dead());
            }
        }
        // What a page has beside its header and its special space.
        let room = level.pages * (BLOCK_SIZE as u64 - 40);
        level.fill = 1.0 - free as f64 / room.max(1) as f64;
        report.levels.push(level);
    }
    show(global, &report, JsonMeta::text)
}

#[derive(Serialize)]
struct PageReport {
    index: String,
    block: BlockNo,
    level: u32,
    left: Option<BlockNo>,
    right: Option<BlockNo>,
    flags: Vec<&'static str>,
    high_key: Option<Vec<Option<String>>>,
    entries: Vec<JsonEntry>,
}

#[derive(Serialize)]
struct JsonEntry {
    item: u16,
    bytes: u16,
    dead: bool,
    /// The page that it leads to.
    #[serde(skip_serializing_if = "Option::is_none")]
    child: Option<BlockNo>,
    /// The rows that it leads to.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    rows: Vec<String>,
    /// Its columns as text, those that were cut left out.
    key: Vec<Option<String>>,
}

impl PageReport {
    fn new(
        open: &Catalogued,
        relation: (&RelationInfo, &[ColumnInfo]),
        index: &Index,
        block: BlockNo,
        page: &PageBytes,
    ) -> Result<PageReport, Fault> {
        let (relation, columns) = relation;
        let page = BtreePage::parse(page)?;
        let key = |entry: &Entry<'_>| key(open, columns, index, entry);
        let flags = [
            (page.is_leaf(), "leaf"),
            (page.is_root(), "root"),
            (page.is_deleted(), "deleted"),
            (page.is_half_dead(), "half-dead"),
            (page.is_split_incomplete(), "split not finished"),
        ];
        let mut entries = Vec::new();
        for entry in page.entries().filter(|_| !page.is_ignored()) {
            let entry = entry?;
            let rows = match entry.target() {
                Target::Child { .. } => Vec::new(),
                _ => entry.rows().map(|row| row.to_string()).collect(),
            };
            let (item, bytes, dead) = (entry.item(), entry.size(), entry.is_dead());
            let (child, key) = (entry.child(), key(&entry)?);
            entries.push(JsonEntry { item, bytes, dead, child, rows, key });
        }
        Ok(PageReport {
            index: open.database.qualified_name(relation),
            block,
            level: page.level(),
            left: page.left(),
            right: page.right(),
            flags: flags.iter().filter(|(set, _)| *set).map(|(_, name)| *name).collect(),
            high_key: page.high_key()?.map(|high| key(&high)).transpose()?,
            entries,
        })
    }

    fn text(&self) -> String {
        let link = |block: Option<BlockNo>| block.map_or("none".into(), |block| block.to_string());
        let mut lines = vec![
            ("index", self.index.clone()),
            ("block", self.block.to_string()),
            ("level", self.level.to_string()),
            ("flags", self.flags.join(", ")),
            ("left", link(self.left)),
            ("right", link(self.right)),
        ];
        if let Some(high) = &self.high_key {
            lines.push(("high key", key_text(high)));
        }
        let head: String =
            lines.iter().map(|(name, value)| format!("{name:<10}{value}\n")).collect();
        if self.entries.is_empty() {
            return head;
        }
        let mut table = Table::new(&[">item", ">bytes", "leads to", "key"]);
        for entry in &self.entries {
            let mut target = match entry.child {
                Some(child) => format!("block {child}"),
                None => entry.rows.iter().take(ROWS_SHOWN).cloned().collect::<Vec<_>>().join(" "),
            };
            if entry.rows.len() > ROWS_SHOWN {
                target.push_str(&format!(" … {} rows", entry.rows.len()));
            }
            if entry.dead {
                target.push_str(" (dead)");
            }
            let key = key_text(&entry.key);
            table.row(vec![entry.item.to_string(), entry.bytes.to_string(), target, key]);
        }
        head + "\n" + &table.render()
    }
}

fn key_text(key: &[Option<String>]) -> String {
    if key.is_empty() {
        return "(below everything)".into();
    }
    let columns: Vec<&str> = key.iter().map(|it| it.as_deref().unwrap_or("null")).collect();
    columns.join(", ")
}

/// The columns of an entry as text.
fn key(
    open: &Catalogued,
    columns: &[ColumnInfo],
    index: &Index,
    entry: &Entry<'_>,
) -> Result<Vec<Option<String>>, Fault> {
    let layout = index.layout();
    let mut room = Vec::new();
    let mut key = Vec::new();
    for ((stored, column), info) in layout.attributes(entry).zip(layout.columns()).zip(columns) {
        let text = stored?.map(|stored| match column.payload(stored, &mut room) {
            // Names are stored without their padding, as C strings.
            Ok(payload) if column.attribute.len == -2 => super::catalogued::shortened(payload),
            Ok(payload) => open.text(info.type_oid, payload),
            Err(error) => format!("(damaged: {error})"),
        });
        key.push(text);
    }
    Ok(key)
}
