//! `trunkline inspect page`: decodes a page of a relation.
//!
//! ```text
//!   NAME  ─▶ FILE               by the catalog, if it is a name rather than a file
//!   FILE BLOCK ─▶ PageAddress   segment file, fork and block
//!              ─▶ Report        header, checksum, verdict, line pointers, tuple headers
//!              ─▶ text or JSON
//! ```
//! A checksum mismatch is a finding only if the cluster has checksums enabled, which is recorded in
//! the control file. We look for the control file in the directories above the given file, and then
//! in the data directory given by `-D`. If there is no control file, we treat a non-zero checksum
//! field as a sign that checksums are enabled.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use serde::Serialize;
use trunkline_engine::datadir::read_control_file;
use trunkline_format::page::{FLAG_ALL_VISIBLE, FLAG_FREE_LINES, FLAG_FULL, line_pointers};
use trunkline_format::segment::segment_of;
use trunkline_format::{
    BLOCK_SIZE, BlockNo, CheckOptions, Fork, LinePointer, LinePointerFlags, PageBytes, PageHeader,
    PageKind, RelationFile, SEGMENT_BLOCKS, TempRelationFile, Verdict, check_page, page_checksum,
};

use super::relation_file;
use super::tuple_header::TupleHeader;
use crate::exit::{Exit, Failure, message};
use crate::number::number;
use crate::options::{Context, DatabaseArgs, Global, fork};
use crate::output::{Column, object, print_report, properties, table};

/// Options of the command.
#[derive(Debug, clap::Args)]
pub(crate) struct PageArgs {
    #[command(flatten)]
    database: DatabaseArgs,

    /// Relation by name, such as public.accounts, or by file numbers, such as 5/16384; or a file,
    /// such as base/5/16384_vm. Only a name requires the catalog, and so a stopped cluster.
    #[arg(value_name = "RELATION|FILE")]
    relation: OsString,

    /// Block number in the relation, counted across all segments [default: the first block of the
    /// file].
    #[arg(value_parser = number(0..=u32::MAX))]
    block: Option<u32>,

    /// Fork of the relation [default: main, or the fork of the file].
    #[arg(long, value_parser = fork())]
    fork: Option<Fork>,
}

pub(super) fn run(context: &Context<'_>, args: &PageArgs) -> Result<Exit, Failure> {
    let file = relation_file::find(context, &args.database, &args.relation, args.fork)?;
    let address = PageAddress::find(&file, args.block)?;
    let page = address.read()?;
    let cluster = cluster_checksums(context.global, &address.path);
    let report = Report::of(address, &page, cluster);
    print_report(context.global, &report.json(), || report.text())?;
    Ok(if report.finding.is_some() { Exit::Findings } else { Exit::Good })
}

/// The segment file of a page, and its block number in the relation.
#[derive(Debug)]
struct PageAddress {
    path: PathBuf,
    fork: Fork,
    segment: u32,
    block: BlockNo,
}

impl PageAddress {
    /// Determines the segment file and the block within it. If the user gives us the relation's
    /// first segment, but the block is in a later one, we open that later segment instead.
    fn find(file: &Path, block: Option<BlockNo>) -> Result<PageAddress, Failure> {
        let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let parsed = RelationFile::parse(name)
            .or_else(|| TempRelationFile::parse(name).map(|temporary| temporary.file));
        if parsed.is_none() {
            let text = "does not have the name of a relation file; assuming the first segment of \
                        a main fork";
            message("warning", format_args!("\"{}\" {text}", file.display()));
        }
        let (fork, named) = parsed.map_or((Fork::Main, 0), |parsed| (parsed.fork, parsed.segment));
        let first = named * SEGMENT_BLOCKS;
        let block = block.unwrap_or(first);
        let (segment, _) = segment_of(block);
        let path = if segment == named || parsed.is_none() {
            file.to_owned()
        } else if named == 0 {
            file.with_file_name(format!("{name}.{segment}"))
        } else {
            let last = first.saturating_add(SEGMENT_BLOCKS - 1);
            return Err(Failure::usage(format_args!(
                "block {block} is not in \"{}\", expected {first} to {last}",
                file.display()
            ))
            .with_hint("block numbers count across all segments of a relation"));
        };
        Ok(PageAddress { path, fork, segment: if parsed.is_none() { 0 } else { segment }, block })
    }

    /// Reads the page with a plain pread(2). We don't take any locks, so we may see a torn page if
    /// a server is running.
    fn read(&self) -> Result<Box<PageBytes>, Failure> {
        let path = self.path.display();
        let failed = |operation: &str, error: io::Error| {
            Failure::cannot_run(format_args!("could not {operation} \"{path}\": {error}"))
        };
        let metadata = match std::fs::metadata(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && self.is_past_the_end() => {
                return Err(Failure::usage(format_args!(
                    "block {} is past the end of the relation: \"{path}\" does not exist",
                    self.block
                )));
            }
            found => found.map_err(|error| failed("open file", error))?,
        };
        if !metadata.is_file() {
            return Err(Failure::cannot_run(format_args!("\"{path}\" is not a regular file")));
        }
        let file = File::open(&self.path).map_err(|e| failed("open file", e))?;
        let first = self.segment * SEGMENT_BLOCKS;
        let offset = u64::from(self.block - first) * BLOCK_SIZE as u64;
        let mut page = Box::new([0; BLOCK_SIZE]);
        match file.read_exact_at(&mut page[..], offset) {
            Ok(()) => Ok(page),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                let (bytes, expected) = (metadata.len(), offset + BLOCK_SIZE as u64);
                let found = format!("{bytes} bytes found, at least {expected} expected");
                let block = self.block;
                Err(if bytes > offset {
                    Failure::findings(format_args!("block {block} of \"{path}\" is torn: {found}"))
                } else {
                    let text = format!("block {block} is past the end of \"{path}\": {found}");
                    Failure::usage(text).with_hint(blocks_hint(first, bytes))
                })
            }
            Err(error) => Err(failed("read", error)),
        }
    }

    /// Whether the relation exists but ends before this segment. It ends at the first segment that
    /// is missing.
    fn is_past_the_end(&self) -> bool {
        self.segment > 0 && self.path.with_extension("").is_file()
    }
}

/// Returns a hint that lists the blocks the file contains. It's easy to confuse a block number in
/// the relation with one counted from the start of the segment.
fn blocks_hint(first: BlockNo, bytes: u64) -> String {
    match bytes / BLOCK_SIZE as u64 {
        0 => "the file does not contain a complete block".to_owned(),
        blocks => {
            format!("the file contains blocks {first} to {}", u64::from(first) + blocks - 1)
        }
    }
}

/// Returns whether checksums are enabled in the cluster that the file belongs to. Returns `None` if
/// we can't find the control file, or if we can't decode it.
fn cluster_checksums(global: &Global, file: &Path) -> Option<bool> {
    let above = file.canonicalize().unwrap_or_default();
    let candidates = above.ancestors().skip(1).chain(global.pgdata().map(PathBuf::as_path));
    let control =
        candidates.map(|directory| directory.join("global/pg_control")).find(|p| p.exists());
    control.and_then(|path| read_control_file(&path).ok()).map(|control| control.checksums())
}

/// A decoded page.
#[derive(Debug)]
struct Report {
    address: PageAddress,
    /// `good`, `new` or `bad`.
    verdict: &'static str,
    /// What is wrong with a bad page.
    finding: Option<String>,
    /// The access method the page belongs to.
    kind: &'static str,
    header: PageHeader,
    flag_names: Vec<&'static str>,
    computed_checksum: u16,
    /// Whether the cluster has checksums; `None` if there is no control file.
    cluster_checksums: Option<bool>,
    line_pointers: Vec<Item>,
}

/// A line pointer, and the header of the tuple that it points to.
#[derive(Debug, Serialize)]
struct Item {
    item: u16,
    state: &'static str,
    offset: u16,
    length: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    tuple: Option<TupleHeader>,
}

/// The flag bits of a page header.
const FLAG_NAMES: [(u16, &str); 3] = [
    (FLAG_FREE_LINES, "has free line pointers"),
    (FLAG_FULL, "page full"),
    (FLAG_ALL_VISIBLE, "all visible"),
];

/// Columns of the list of line pointers.
const ITEM_COLUMNS: [Column<Item>; 4] = [
    (">item", |item| item.item.to_string()),
    ("state", |item| item.state.to_owned()),
    (">offset", |item| item.offset.to_string()),
    (">length", |item| item.length.to_string()),
];

/// Additional columns for pages that contain tuples. For other items on these pages, the cells are
/// empty.
const TUPLE_COLUMNS: [Column<Item>; 7] = [
    (">xmin", |item| item.of_tuple(|tuple| tuple.xmin.to_string())),
    (">xmax", |item| item.of_tuple(|tuple| tuple.xmax.to_string())),
    (">cid", |item| item.of_tuple(|tuple| tuple.command_id.to_string())),
    ("ctid", |item| item.of_tuple(TupleHeader::ctid_text)),
    (">hoff", |item| item.of_tuple(|tuple| tuple.hoff.to_string())),
    (">attributes", |item| item.of_tuple(|tuple| tuple.attributes.to_string())),
    ("flags", |item| item.of_tuple(|tuple| tuple.flags.join(", "))),
];

impl Report {
    fn of(address: PageAddress, page: &PageBytes, cluster_checksums: Option<bool>) -> Report {
        let header = PageHeader::parse(page);
        // Without a control file we have to guess. If the checksum field isn't zero, the cluster
        // probably has checksums enabled.
        let checksums = cluster_checksums.unwrap_or(header.checksum != 0);
        let options = CheckOptions { checksums, fork: address.fork };
        let verdict = check_page(page, address.block, &options);
        let kind = PageKind::of(page, address.fork);
        let has_items = verdict != Verdict::New && kind.has_line_pointers(page);
        let (verdict, finding) = match verdict {
            Verdict::Good => ("good", None),
            Verdict::New => ("new", None),
            Verdict::Bad(finding) => ("bad", Some(finding.to_string())),
        };
        // New pages are all zeros. Some other kinds of pages, such as those of the free space map,
        // have no line pointers either.
        let items = line_pointers(page).filter(|_| has_items);
        let flag_names = FLAG_NAMES.into_iter().filter(|(bit, _)| header.flags & bit != 0);
        Report {
            verdict,
            finding,
            kind: if verdict == "new" { "new" } else { kind_name(kind) },
            flag_names: flag_names.map(|(_, name)| name).collect(),
            computed_checksum: page_checksum(page, address.block),
            cluster_checksums,
            line_pointers: items
                .map(|(item, pointer)| Item::of(item, pointer, kind, page))
                .collect(),
            address,
            header,
        }
    }

    fn json(&self) -> impl Serialize {
        let PageAddress { path, fork, segment, block } = &self.address;
        let header = &self.header;
        object! {
            file: path.to_string_lossy(),
            fork: fork.to_string(),
            segment: segment,
            block: block,
            verdict: self.verdict,
            #[serde(flatten)]
            finding: self.finding.as_ref().map(|finding| object! { finding: finding }),
            kind: self.kind,
            header: object! {
                lsn: header.lsn.to_string(),
                flags: header.flags,
                flag_names: &self.flag_names,
                lower: header.lower,
                upper: header.upper,
                special: header.special,
                page_size: header.page_size,
                version: header.version,
                prune_xid: header.prune_xid,
            },
            checksum: object! {
                stored: header.checksum,
                computed: self.computed_checksum,
                right: header.checksum == self.computed_checksum,
                cluster: self.cluster_checksums,
            },
            line_pointers: &self.line_pointers,
        }
    }

    fn text(&self) -> String {
        let PageAddress { path, fork, segment, block } = &self.address;
        let header = &self.header;
        let finding = self.finding.iter().map(|finding| format!(": {finding}"));
        let mut text = properties(
            10,
            &[
                ("file", &path.to_string_lossy()),
                ("block", &format_args!("{block} ({fork} fork, segment {segment})")),
                ("kind", &self.kind),
                ("verdict", &(self.verdict.to_owned() + &finding.collect::<String>())),
            ],
        );
        if self.verdict != "new" {
            let names = match self.flag_names.as_slice() {
                [] => "none".to_owned(),
                names => names.join(", "),
            };
            let PageHeader { flags, page_size, version, .. } = header;
            text += &properties(
                10,
                &[
                    ("checksum", &self.checksum_text()),
                    ("lsn", &header.lsn),
                    ("flags", &format_args!("{flags:#06X} ({names})")),
                    ("lower", &header.lower),
                    ("upper", &header.upper),
                    ("special", &header.special),
                    ("page size", &format_args!("{page_size}, layout version {version}")),
                    ("prune xid", &header.prune_xid),
                ],
            );
        }
        if !self.line_pointers.is_empty() {
            let has_tuples = self.line_pointers.iter().any(|item| item.tuple.is_some());
            let tuple_columns = TUPLE_COLUMNS.into_iter().filter(|_| has_tuples);
            let columns: Vec<_> = ITEM_COLUMNS.into_iter().chain(tuple_columns).collect();
            text += "\n";
            text += &table(&self.line_pointers, &columns);
        }
        text
    }

    /// We don't call a mismatch incorrect if checksums are disabled, because the checksum field has
    /// no meaning in that case.
    fn checksum_text(&self) -> String {
        let (stored, computed) = (self.header.checksum, self.computed_checksum);
        match (self.cluster_checksums, stored == computed) {
            (Some(false), _) => {
                format!("{stored:#06X} (checksums are off; computed {computed:#06X})")
            }
            (_, true) => format!("{stored:#06X} (correct)"),
            (None, false) if stored == 0 => {
                format!("{stored:#06X} (probably not set; computed {computed:#06X})")
            }
            (_, false) => format!("{stored:#06X} (incorrect, expected {computed:#06X})"),
        }
    }
}

impl Item {
    fn of(item: u16, pointer: LinePointer, kind: PageKind, page: &PageBytes) -> Item {
        // Only heap tables and sequences contain heap tuples. Index tuples have a different header,
        // so we can't decode them here.
        let tuples = matches!(kind, PageKind::Heap | PageKind::Sequence);
        let bytes =
            pointer.item(page).filter(|_| tuples && pointer.flags == LinePointerFlags::Normal);
        Item {
            item,
            state: match pointer.flags {
                LinePointerFlags::Unused => "unused",
                LinePointerFlags::Normal => "normal",
                LinePointerFlags::Redirect => "redirect",
                LinePointerFlags::Dead => "dead",
            },
            offset: pointer.offset,
            length: pointer.length,
            tuple: bytes.and_then(TupleHeader::parse),
        }
    }

    /// A cell with a field of the tuple header.
    fn of_tuple(&self, cell: fn(&TupleHeader) -> String) -> String {
        self.tuple.as_ref().map(cell).unwrap_or_default()
    }
}

fn kind_name(kind: PageKind) -> &'static str {
    match kind {
        PageKind::Map => "map",
        PageKind::Heap => "heap",
        PageKind::Sequence => "sequence",
        PageKind::Btree => "btree",
        PageKind::Hash => "hash",
        PageKind::Gist => "gist",
        PageKind::SpGist => "spgist",
        PageKind::Gin => "gin",
        PageKind::Brin => "brin",
        PageKind::Other => "other",
    }
}
