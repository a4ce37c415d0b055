//! What `inspect page` prints about a page: header, checksum, verdict, line pointers, tuple headers.

use serde::Serialize;
use trunkline_format::page::{FLAG_ALL_VISIBLE, FLAG_FREE_LINES, FLAG_FULL, line_pointers};
use trunkline_format::{
    CheckOptions, LinePointer, LinePointerFlags, PageBytes, PageHeader, PageKind, Verdict,
    check_page, page_checksum,
};

use super::super::tuple_header::TupleHeader;
use super::address::PageAddress;
use super::source::Source;
use crate::output::{Column, object, properties, table};

/// A decoded page.
#[derive(Debug)]
pub(super) struct Report {
    address: PageAddress,
    source: Source,
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
    pub(super) fn of(
        address: PageAddress,
        page: &PageBytes,
        source: Source,
        cluster_checksums: Option<bool>,
    ) -> Report {
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
        let (verdict, finding) = match (finding, source.finding()) {
            (None, Some(finding)) => ("bad", Some(finding)),
            (finding, _) => (verdict, finding),
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
            source,
            header,
        }
    }

    /// Whether something is wrong with the page.
    pub(super) fn has_finding(&self) -> bool {
        self.finding.is_some()
    }

    pub(super) fn json(&self) -> impl Serialize {
        let PageAddress { path, fork, segment, block } = &self.address;
        let header = &self.header;
        object! {
            file: path.to_string_lossy(),
            fork: fork.to_string(),
            segment: segment,
            block: block,
            source: self.source.json(),
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

    pub(super) fn text(&self) -> String {
        let PageAddress { path, fork, segment, block } = &self.address;
        let header = &self.header;
        let finding = self.finding.iter().map(|finding| format!(": {finding}"));
        let mut text = properties(
            10,
            &[
                ("file", &path.to_string_lossy()),
                ("block", &format_args!("{block} ({fork} fork, segment {segment})")),
                ("source", &self.source),
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
