//! `trunkline inspect btree`: describes the levels of a B-tree index, or decodes one of its pages.
//!
//! ```text
//!   inspect btree -d DB INDEX         metapage, then pages, entries and fill of each level
//!   inspect btree -d DB INDEX BLOCK   one page: sibling links, high key, entries with their keys
//! ```

use std::ffi::OsString;
use std::fmt::Display;

use serde::Serialize;
use trunkline_engine::btree::{Index, LevelWalk};
use trunkline_engine::catalog::{ColumnInfo, RelationInfo};
use trunkline_engine::read_stream::StreamOptions;
use trunkline_format::btree::{BtreePage, Entry, Fault, Meta, Target};
use trunkline_format::catalog::RelationKind;
use trunkline_format::page::PageHeader;
use trunkline_format::{BLOCK_SIZE, BlockNo, PageBytes};

use super::open_database::{OpenDatabase, shortened};
use crate::exit::{Exit, Failure};
use crate::number::number;
use crate::options::{Context, DatabaseArgs};
use crate::output::{Column, object, print_report, properties, table};

/// Maximum number of TIDs of a posting list that are shown.
const TIDS_SHOWN_MAX: usize = 3;

/// Options of the command.
#[derive(Debug, clap::Args)]
pub(crate) struct BtreeArgs {
    #[command(flatten)]
    database: DatabaseArgs,

    /// B-tree index, such as public.accounts_pkey.
    index: OsString,

    /// Block number of the page to decode [default: describe all levels].
    #[arg(value_parser = number(0..=u32::MAX))]
    block: Option<BlockNo>,
}

pub(super) fn run(context: &Context<'_>, args: &BtreeArgs) -> Result<Exit, Failure> {
    let mut open = OpenDatabase::open(context, &args.database, &args.index)?;
    let relation = open.relation(&args.index)?;
    let name = open.database.qualified_name(&relation);
    let row = open.database.index(relation.oid).cloned();
    let index = row.and_then(|row| open.database.btree(&row));
    let Some(index) = index else {
        let method = open.database.access_method(relation.access_method);
        let method = method.filter(|_| relation.kind == RelationKind::Index);
        let method = method.map(String::from_utf8_lossy);
        let actual = method.map(|name| format!(": its access method is \"{name}\""));
        let text = format!("{name} is not a B-tree index{}", actual.unwrap_or_default());
        let failure = Failure::usage(text);
        return Err(match relation.kind {
            RelationKind::PartitionedIndex => {
                failure.with_hint("each partition has one of its own")
            }
            _ => failure,
        });
    };
    // Block 0 is the metapage, which has a different layout from all other pages.
    match args.block {
        None => {
            // The walk doesn't know that a tablespace has been moved.
            open.blocks(index.relation())?;
            let report = describe_levels(&mut open, &index, name)?;
            print_report(context.global, &report.json(), || report.text())?;
        }
        Some(0) => {
            let page = open.page(index.relation(), 0)?;
            let meta = Meta::parse(&page).map_err(Failure::findings)?;
            let report = IndexReport { index: name, meta, levels: Vec::new() };
            print_report(context.global, &report.json(), || report.text())?;
        }
        Some(block) => {
            let columns = open.database.columns(&relation)?.to_vec();
            let types: Vec<_> = columns.iter().map(|column| column.type_oid).collect();
            open.load_names(&types)?;
            let page = open.page(index.relation(), block)?;
            let report = PageReport::new(&open, (&relation, &columns), &index, block, &page);
            let report = report.map_err(Failure::findings)?;
            print_report(context.global, &report, || report.text())?;
        }
    }
    Ok(Exit::Good)
}

/// The metapage, and the levels if all of them were read.
struct IndexReport {
    index: String,
    meta: Meta,
    levels: Vec<Level>,
}

/// Counts over all pages of a level.
#[derive(Default, Serialize)]
struct Level {
    level: u32,
    first: BlockNo,
    pages: u64,
    deleted: u64,
    entries: u64,
    /// TIDs. More than `entries` if the index has posting lists.
    rows: u64,
    /// Entries marked `LP_DEAD`, which the next insertion into the page may remove.
    dead: u64,
    /// Fraction of the space for entries that is used.
    fill: f64,
}

/// The table of levels.
const LEVEL_COLUMNS: [Column<Level>; 8] = [
    (">level", |level| level.level.to_string()),
    (">first", |level| level.first.to_string()),
    (">pages", |level| level.pages.to_string()),
    (">deleted", |level| level.deleted.to_string()),
    (">entries", |level| level.entries.to_string()),
    (">rows", |level| level.rows.to_string()),
    (">dead", |level| level.dead.to_string()),
    (">fill", |level| format!("{:.0} %", level.fill * 100.0)),
];

impl IndexReport {
    fn json(&self) -> impl Serialize {
        let Meta { version, root, level, fast_root, fast_level, all_equal_image, .. } = self.meta;
        let levels = Some(&self.levels).filter(|levels| !levels.is_empty());
        object! {
            index: &self.index,
            version: version,
            root: root,
            level: level,
            fast_root: fast_root,
            fast_level: fast_level,
            all_equal_image: all_equal_image,
            #[serde(flatten)]
            levels: levels.map(|levels| object! { levels: levels }),
        }
    }

    fn text(&self) -> String {
        let Meta { version, root, level, fast_root, fast_level, all_equal_image, .. } = self.meta;
        let lines: [(&str, &dyn Display); _] = [
            ("index", &self.index),
            ("version", &version),
            ("root", &format!("{root} (level {level})")),
            ("fast root", &format!("{fast_root} (level {fast_level})")),
            ("equal image", if all_equal_image { &"yes" } else { &"no" }),
        ];
        let mut text = properties(13, &lines);
        if !self.levels.is_empty() {
            text += "\n";
            text += &table(&self.levels, &LEVEL_COLUMNS);
        }
        text
    }
}

/// Reads all levels of the index, from the root down to the leaves (level 0). Unlike a search, this
/// follows the right links on every level, so it also finds pages that have no downlink, such as
/// the right half of an incomplete split. An empty index has no root and therefore no levels.
fn describe_levels(
    open: &mut OpenDatabase,
    index: &Index,
    name: String,
) -> Result<IndexReport, Failure> {
    let backend = &mut open.session.backend;
    let meta = index.meta(backend).map_err(Failure::findings)?;
    let numbers = if meta.root == 0 { 0..0 } else { 0..meta.level + 1 };
    let mut levels = Vec::new();
    for number in numbers.rev() {
        let options = StreamOptions::default();
        let mut walk =
            LevelWalk::of_level(index, backend, number, options).map_err(Failure::findings)?;
        let mut level = Level { level: number, ..Level::default() };
        let mut free = 0;
        while let Some(found) = walk.next(backend).map_err(Failure::findings)? {
            let page = BtreePage::parse(found.page).map_err(Failure::findings)?;
            if level.pages + level.deleted == 0 {
                level.first = found.block;
            }
            // By following sibling links, we may reach deleted or half-dead pages (`P_IGNORE`). We
            // must not use their entries, which no longer mean anything.
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
        // Usable space per page: BLCKSZ minus the page header (24 bytes) and nbtree's special space
        // (16 bytes).
        let space = level.pages * (BLOCK_SIZE as u64 - 40);
        level.fill = 1.0 - free as f64 / space.max(1) as f64;
        levels.push(level);
    }
    Ok(IndexReport { index: name, meta, levels })
}

/// One page below the metapage.
#[derive(Serialize)]
struct PageReport {
    index: String,
    block: BlockNo,
    level: u32,
    left: Option<BlockNo>,
    right: Option<BlockNo>,
    flags: Vec<&'static str>,
    high_key: Option<Vec<Option<String>>>,
    entries: Vec<PageEntry>,
}

/// An index tuple.
#[derive(Serialize)]
struct PageEntry {
    item: u16,
    bytes: u16,
    dead: bool,
    /// The child page, on an internal page.
    #[serde(skip_serializing_if = "Option::is_none")]
    child: Option<BlockNo>,
    /// The TIDs of the rows, on a leaf page.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    rows: Vec<String>,
    /// The columns as text, without those removed by suffix truncation.
    key: Vec<Option<String>>,
}

impl PageReport {
    fn new(
        open: &OpenDatabase,
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
            (page.is_split_incomplete(), "incomplete split"),
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
            entries.push(PageEntry { item, bytes, dead, child, rows, key });
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
        let lines: [(&str, &dyn Display); _] = [
            ("index", &self.index),
            ("block", &self.block),
            ("level", &self.level),
            ("flags", &self.flags.join(", ")),
            ("left", &link(self.left)),
            ("right", &link(self.right)),
        ];
        let mut text = properties(10, &lines);
        if let Some(high) = &self.high_key {
            text += &properties(10, &[("high key", &key_text(high))]);
        }
        if !self.entries.is_empty() {
            let columns: [Column<PageEntry>; _] = [
                (">item", |entry| entry.item.to_string()),
                (">bytes", |entry| entry.bytes.to_string()),
                ("points to", PageEntry::target_text),
                ("key", |entry| key_text(&entry.key)),
            ];
            text += "\n";
            text += &table(&self.entries, &columns);
        }
        text
    }
}

impl PageEntry {
    /// Returns what the entry points to, which is either a child page or one or more rows.
    fn target_text(&self) -> String {
        let mut target = match self.child {
            Some(child) => format!("block {child}"),
            None => self.rows.get(..TIDS_SHOWN_MAX).unwrap_or(&self.rows).join(" "),
        };
        if self.rows.len() > TIDS_SHOWN_MAX {
            target.push_str(&format!(" … {} rows", self.rows.len()));
        }
        if self.dead {
            target.push_str(" (dead)");
        }
        target
    }
}

fn key_text(key: &[Option<String>]) -> String {
    if key.is_empty() {
        return "(minus infinity)".into();
    }
    // Only pivot tuples can have no key columns at all. The first entry of an internal page is
    // always of this kind: it represents "minus infinity", so nbtree truncates its whole key.
    let columns: Vec<&str> = key.iter().map(|it| it.as_deref().unwrap_or("null")).collect();
    columns.join(", ")
}

/// Formats the columns of an entry.
fn key(
    open: &OpenDatabase,
    columns: &[ColumnInfo],
    index: &Index,
    entry: &Entry<'_>,
) -> Result<Vec<Option<String>>, Fault> {
    let layout = index.layout();
    let mut room = Vec::new();
    let mut key = Vec::new();
    for ((stored, column), info) in layout.attributes(entry).zip(layout.columns()).zip(columns) {
        let text = stored?.map(|stored| match column.payload(stored, &mut room) {
            // Indexes store columns of type name as cstring, without the padding.
            Ok(payload) if column.attribute.len == -2 => shortened(payload),
            Ok(payload) => open.text(info.type_oid, payload),
            Err(error) => format!("(damaged: {error})"),
        });
        key.push(text);
    }
    Ok(key)
}
