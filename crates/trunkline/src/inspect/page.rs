//! `trunkline inspect page`: decodes a page of a relation file without the catalog.
//!
//! ```text
//!   FILE BLOCK ─▶ PageAddress   segment file, fork and block
//!              ─▶ Report        header, checksum, verdict, line pointers, tuple headers
//!              ─▶ text or JSON
//! ```
//! Whether a checksum mismatch is a finding depends on whether the cluster has checksums enabled,
//! which is recorded in the control file. We search for it in the directories above the file, then
//! in the data directory given by `-D`. Without a control file, a non-zero checksum field decides.

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

use super::tuple_header::TupleHeader;
use crate::exit::{Exit, Failure, message};
use crate::options::Global;
use crate::output::{Table, print_report, properties};

pub(super) fn run(global: &Global, file: &Path, block: Option<BlockNo>) -> Result<Exit, Failure> {
    let address = PageAddress::find(file, block)?;
    let page = address.read()?;
    let report = Report::of(&address, &page, cluster_checksums(global, &address.path));
    print_report(global, &report, Report::text)?;
    Ok(if report.verdict == "bad" { Exit::Findings } else { Exit::Good })
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
    /// Works out the segment file and the block. If `file` is the first segment but the block is in
    /// a later segment, we use that segment's file instead.
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

    /// Reads the page with a plain pread(2). There's no locking, so if a server is running, we may
    /// read a torn page.
    fn read(&self) -> Result<Box<PageBytes>, Failure> {
        let path = self.path.display();
        let failed = |operation: &str, error: io::Error| {
            Failure::cannot_run(format_args!("could not {operation} \"{path}\": {error}"))
        };
        let metadata = std::fs::metadata(&self.path).map_err(|e| failed("open file", e))?;
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
                let bytes = metadata.len();
                Err(Failure::cannot_run(format_args!(
                    "block {} is past the end of \"{path}\": {bytes} bytes found, at least {} expected",
                    self.block,
                    offset + BLOCK_SIZE as u64
                ))
                .with_hint(blocks_hint(first, bytes)))
            }
            Err(error) => Err(failed("read", error)),
        }
    }
}

fn blocks_hint(first: BlockNo, bytes: u64) -> String {
    match bytes / BLOCK_SIZE as u64 {
        0 => "the file does not contain a complete block".to_owned(),
        blocks => {
            format!("the file contains blocks {first} to {}", u64::from(first) + blocks - 1)
        }
    }
}

/// Whether the cluster that the file belongs to has checksums. `None` if no control file is found,
/// or if it cannot be decoded.
fn cluster_checksums(global: &Global, file: &Path) -> Option<bool> {
    let above = file.canonicalize().unwrap_or_default();
    let candidates = above.ancestors().skip(1).chain(global.pgdata.as_deref());
    let control =
        candidates.map(|directory| directory.join("global/pg_control")).find(|p| p.exists());
    control.and_then(|path| read_control_file(&path).ok()).map(|control| control.checksums())
}

/// A decoded page.
#[derive(Debug, Serialize)]
struct Report {
    file: String,
    fork: String,
    segment: u32,
    block: BlockNo,
    /// `good`, `new` or `bad`.
    verdict: &'static str,
    /// What is wrong with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    finding: Option<String>,
    /// The access method the page belongs to.
    kind: &'static str,
    header: Header,
    checksum: Checksum,
    line_pointers: Vec<Item>,
}

#[derive(Debug, Serialize)]
struct Header {
    lsn: String,
    flags: u16,
    flag_names: Vec<&'static str>,
    lower: u16,
    upper: u16,
    special: u16,
    page_size: u16,
    version: u8,
    prune_xid: u32,
}

#[derive(Debug, Serialize)]
struct Checksum {
    stored: u16,
    computed: u16,
    right: bool,
    /// Whether the cluster has checksums; null if there is no control file.
    cluster: Option<bool>,
}

#[derive(Debug, Serialize)]
struct Item {
    item: u16,
    state: &'static str,
    offset: u16,
    length: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    tuple: Option<TupleHeader>,
}

impl Report {
    fn of(address: &PageAddress, page: &PageBytes, cluster: Option<bool>) -> Report {
        let header = PageHeader::parse(page);
        let computed = page_checksum(page, address.block);
        // Without a control file we have to guess: a non-zero checksum field suggests that the
        // cluster has checksums enabled.
        let checksums = cluster.unwrap_or(header.checksum != 0);
        let options = CheckOptions { checksums, fork: address.fork };
        let verdict = check_page(page, address.block, &options);
        let kind = PageKind::of(page, address.fork);
        let has_items = verdict != Verdict::New && kind.has_line_pointers(page);
        let (verdict, finding) = match verdict {
            Verdict::Good => ("good", None),
            Verdict::New => ("new", None),
            Verdict::Bad(finding) => ("bad", Some(finding.to_string())),
        };
        // New pages are all zeros, and some kinds of pages, such as maps, have no line pointers.
        let items = line_pointers(page).filter(|_| has_items);
        Report {
            file: address.path.to_string_lossy().into(),
            fork: address.fork.to_string(),
            segment: address.segment,
            block: address.block,
            verdict,
            finding,
            kind: if verdict == "new" { "new" } else { kind_name(kind) },
            header: Header::of(&header),
            checksum: Checksum {
                stored: header.checksum,
                computed,
                right: header.checksum == computed,
                cluster,
            },
            line_pointers: items
                .map(|(item, pointer)| Item::of(item, pointer, kind, page))
                .collect(),
        }
    }

    fn text(&self) -> String {
        let header = &self.header;
        let verdict = match &self.finding {
            Some(finding) => format!("bad: {finding}"),
            None => self.verdict.to_owned(),
        };
        let names = match header.flag_names.as_slice() {
            [] => "none".to_owned(),
            names => names.join(", "),
        };
        let mut lines = vec![
            ("file", self.file.clone()),
            ("block", format!("{} ({} fork, segment {})", self.block, self.fork, self.segment)),
            ("kind", self.kind.to_owned()),
            ("verdict", verdict),
        ];
        if self.verdict != "new" {
            lines.extend([
                ("checksum", self.checksum.text()),
                ("lsn", header.lsn.clone()),
                ("flags", format!("{:#06X} ({names})", header.flags)),
                ("lower", header.lower.to_string()),
                ("upper", header.upper.to_string()),
                ("special", header.special.to_string()),
                ("page size", format!("{}, layout version {}", header.page_size, header.version)),
                ("prune xid", header.prune_xid.to_string()),
            ]);
        }
        let head = properties(10, &lines);
        if self.line_pointers.is_empty() { head } else { head + "\n" + &self.items_text() }
    }

    fn items_text(&self) -> String {
        let plain = [">item", "state", ">offset", ">length"];
        let tuples = [">xmin", ">xmax", ">cid", "ctid", ">hoff", ">attributes", "flags"];
        let has_tuples = self.line_pointers.iter().any(|item| item.tuple.is_some());
        let headings = plain.iter().chain(tuples.iter().filter(|_| has_tuples));
        let mut table = Table::new(&headings.copied().collect::<Vec<_>>());
        for item in &self.line_pointers {
            let mut cells = vec![
                item.item.to_string(),
                item.state.to_owned(),
                item.offset.to_string(),
                item.length.to_string(),
            ];
            if let Some(tuple) = &item.tuple {
                cells.extend([
                    tuple.xmin.to_string(),
                    tuple.xmax.to_string(),
                    tuple.command_id.to_string(),
                    tuple.ctid_text(),
                    tuple.hoff.to_string(),
                    tuple.attributes.to_string(),
                    tuple.flags.join(", "),
                ]);
            }
            table.row(cells);
        }
        table.render()
    }
}

impl Header {
    fn of(header: &PageHeader) -> Header {
        let names = [
            (FLAG_FREE_LINES, "has free line pointers"),
            (FLAG_FULL, "page full"),
            (FLAG_ALL_VISIBLE, "all visible"),
        ];
        let set = names.into_iter().filter(|(bit, _)| header.flags & bit != 0);
        Header {
            lsn: header.lsn.to_string(),
            flags: header.flags,
            flag_names: set.map(|(_, name)| name).collect(),
            lower: header.lower,
            upper: header.upper,
            special: header.special,
            page_size: header.page_size,
            version: header.version,
            prune_xid: header.prune_xid,
        }
    }
}

impl Checksum {
    fn text(&self) -> String {
        let Checksum { stored, computed, right, cluster } = *self;
        match (cluster, right) {
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
        // Only heap pages and sequences contain heap tuples. Index tuples have a different header.
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
