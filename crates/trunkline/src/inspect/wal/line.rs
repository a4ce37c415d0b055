//! Prints records, one line each: as `pg_waldump` does, or as JSON. In the history of a page, a line also
//! says what the record means for that page.

use std::fmt::Write as _;

use serde::Serialize;
use trunkline_engine::replay::PageEffect;
use trunkline_format::Fork;
use trunkline_format::wal::{BlockRef, LogRecord, RelationNames as _, ResourceManager, describe};

use super::names::Names;
use crate::exit::Failure;
use crate::output::{print, print_json};

/// How much text is collected before it is written.
const BUFFERED: usize = 64 << 10;

/// What a record means for the page whose history is printed.
pub(in crate::inspect) struct PageMark<'m> {
    pub(in crate::inspect) effects: &'m [PageEffect],
    /// Whether it is one of those that rebuild the page.
    pub(in crate::inspect) rebuilds: bool,
}

/// Writes the lines to standard output.
pub(in crate::inspect) struct Printer {
    is_json: bool,
    text: String,
}

#[derive(Serialize)]
struct JsonRecord<'r> {
    lsn: String,
    end: String,
    previous: String,
    timeline: u32,
    rmgr: String,
    operation: &'r str,
    xid: u32,
    length: u32,
    image_length: usize,
    description: &'r str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    blocks: Vec<JsonBlock>,
    #[serde(skip_serializing_if = "Option::is_none")]
    page: Option<JsonPage>,
}

#[derive(Serialize)]
struct JsonPage {
    effects: Vec<&'static str>,
    /// The block reference that names the page.
    #[serde(skip_serializing_if = "Option::is_none")]
    reference: Option<u8>,
    rebuilds: bool,
}

#[derive(Serialize)]
struct JsonBlock {
    id: u8,
    tablespace: u32,
    database: u32,
    file: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    relation: Option<String>,
    fork: String,
    block: u32,
    will_init: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    image: Option<JsonImage>,
    #[serde(skip_serializing_if = "Option::is_none")]
    data_length: Option<usize>,
}

#[derive(Serialize)]
struct JsonImage {
    length: usize,
    hole_offset: u16,
    hole_length: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    compression: Option<String>,
    applies: bool,
}

impl Printer {
    pub(in crate::inspect) fn new(is_json: bool) -> Printer {
        Printer { is_json, text: String::new() }
    }

    pub(in crate::inspect) fn print(
        &mut self,
        found: &LogRecord<'_>,
        names: &mut Names,
        page: Option<&PageMark<'_>>,
    ) -> Result<(), Failure> {
        let description = describe(&found.record, found.version, names);
        let header = found.record.header();
        let manager = ResourceManager(header.manager);
        let image_length = found.record.image_bytes();
        if self.is_json {
            let blocks = found.record.blocks().iter();
            return print_json(&JsonRecord {
                lsn: found.start.to_string(),
                end: found.end.to_string(),
                previous: header.previous.to_string(),
                timeline: found.timeline,
                rmgr: manager.to_string(),
                operation: &description.operation,
                xid: header.xid,
                length: header.length,
                image_length,
                description: &description.text,
                blocks: blocks.map(|block| json_block(block, names)).collect(),
                page: page.map(json_page),
            });
        }
        if let Some(page) = page {
            self.text.push_str(if page.rebuilds { "* " } else { "  " });
        }
        let record_length = (header.length as usize).saturating_sub(image_length);
        let _ = write!(
            self.text,
            "rmgr: {manager:<11} len (rec/tot): {record_length:6}/{:6}, tx: {:10}, lsn: {}, \
             prev {}, desc: {}",
            header.length, header.xid, found.start, header.previous, description.operation
        );
        if !description.text.is_empty() {
            let _ = write!(self.text, " {}", description.text);
        }
        for block in found.record.blocks() {
            self.block(block, names);
        }
        for meaning in page.into_iter().flat_map(|page| page.effects).filter_map(meaning) {
            let _ = write!(self.text, ", {meaning}");
        }
        self.text.push('\n');
        if self.text.len() >= BUFFERED { self.flush() } else { Ok(()) }
    }

    fn block(&mut self, block: &BlockRef<'_>, names: &mut Names) {
        let id = block.id;
        let _ = match names.name(block.relation) {
            Some(name) => write!(self.text, ", blkref #{id}: rel {name}"),
            None => write!(self.text, ", blkref #{id}: rel {}", block.relation),
        };
        if block.fork != Fork::Main {
            let _ = write!(self.text, " fork {}", block.fork);
        }
        let _ = write!(self.text, " blk {}", block.block);
        match block.image {
            Some(image) if image.applies() => self.text.push_str(" FPW"),
            Some(_) => self.text.push_str(" FPW for WAL verification"),
            None => {}
        }
    }

    fn flush(&mut self) -> Result<(), Failure> {
        print(&self.text)?;
        self.text.clear();
        Ok(())
    }

    /// Writes what is left.
    pub(in crate::inspect) fn finish(mut self) -> Result<(), Failure> {
        self.flush()
    }
}

/// What a block reference doesn't show.
fn meaning(effect: &PageEffect) -> Option<&'static str> {
    match effect {
        PageEffect::Image { .. } | PageEffect::Init { .. } | PageEffect::Change { .. } => None,
        PageEffect::Derived => Some("clears bits of this page"),
        PageEffect::Created => Some("creates the file"),
        PageEffect::Copied => Some("copies the database"),
        PageEffect::CutOff => Some("cuts this page off"),
        PageEffect::Removed => Some("removes the file"),
    }
}

fn json_page(page: &PageMark<'_>) -> JsonPage {
    let named = |effect: &PageEffect| match *effect {
        PageEffect::Image { reference } => ("image", Some(reference)),
        PageEffect::Init { reference } => ("init", Some(reference)),
        PageEffect::Change { reference } => ("change", Some(reference)),
        PageEffect::Derived => ("derived", None),
        PageEffect::Created => ("created", None),
        PageEffect::Copied => ("copied", None),
        PageEffect::CutOff => ("cut_off", None),
        PageEffect::Removed => ("removed", None),
    };
    JsonPage {
        effects: page.effects.iter().map(|effect| named(effect).0).collect(),
        reference: page.effects.iter().find_map(|effect| named(effect).1),
        rebuilds: page.rebuilds,
    }
}

fn json_block(block: &BlockRef<'_>, names: &mut Names) -> JsonBlock {
    JsonBlock {
        id: block.id,
        tablespace: block.relation.tablespace.0,
        database: block.relation.database.0,
        file: block.relation.number,
        relation: names.name(block.relation),
        fork: block.fork.to_string(),
        block: block.block,
        will_init: block.will_init,
        image: block.image.map(|image| JsonImage {
            length: image.stored().len(),
            hole_offset: image.hole_offset(),
            hole_length: image.hole_length(),
            compression: image.compression().map(|compression| compression.to_string()),
            applies: image.applies(),
        }),
        data_length: block.data.map(<[u8]>::len),
    }
}
