//! B-tree records.
//!
//! Mirrors PostgreSQL's `access/nbtxlog.h`.

use std::fmt::{self, Display};

use crate::control::PgVersion;
use crate::wal::fields::Fields;
use crate::wal::record::Record;

use super::heap::true_or_false;
use super::list::List;
use super::text::Text;

pub(super) fn describe(record: &Record<'_>, version: PgVersion, text: &mut Text<'_>) -> Option<()> {
    let mut fields = Fields::of(record.main_data());
    let has_catalog_flag = version >= PgVersion::V16;
    let catalog_flag = |fields: &mut Fields<'_>, text: &mut Text<'_>| {
        if has_catalog_flag {
            text.part(format_args!("isCatalogRel: {}", true_or_false(fields.u8()? != 0)));
        }
        Some(())
    };
    match record.header().operation() {
        0x00 | 0x10 | 0x20 | 0x50 => text.part(format_args!("off: {}", fields.u16()?)),
        0x30 | 0x40 => {
            let (level, first_right) = (fields.u32()?, fields.u16()?);
            let (new, posting) = (fields.u16()?, fields.u16()?);
            text.part(format_args!("level: {level}, firstrightoff: {first_right}"));
            text.part(format_args!("newitemoff: {new}, postingoff: {posting}"));
        }
        0x60 => text.part(format_args!("nintervals: {}", fields.u16()?)),
        0x70 => {
            let (horizon, deleted, updated) = (fields.u32()?, fields.u16()?, fields.u16()?);
            text.part(format_args!("snapshotConflictHorizon: {horizon}"));
            text.part(format_args!("ndeleted: {deleted}, nupdated: {updated}"));
            catalog_flag(&mut fields, text)?;
            entries(record, deleted, updated, text)?;
        }
        0xC0 => {
            let (deleted, updated) = (fields.u16()?, fields.u16()?);
            text.part(format_args!("ndeleted: {deleted}, nupdated: {updated}"));
            entries(record, deleted, updated, text)?;
        }
        0x80 | 0x90 => {
            let [left, right, level] = [fields.u32()?, fields.u32()?, fields.u32()?];
            let safe: u64 = fields.skip_to(16).take()?;
            let mut leaf = fields.skip_to(24);
            let [leaf_left, leaf_right, top] = [leaf.u32()?, leaf.u32()?, leaf.u32()?];
            let (epoch, xid) = (safe >> 32, safe as u32);
            text.part(format_args!("left: {left}, right: {right}, level: {level}"));
            text.part(format_args!("safexid: {epoch}:{xid}, leafleft: {leaf_left}"));
            text.part(format_args!("leafright: {leaf_right}, leaftopparent: {top}"));
        }
        0xA0 => {
            let _root = fields.u32()?;
            text.part(format_args!("level: {}", fields.u32()?));
        }
        0xB0 => {
            let mut blocks = fields.skip_to(4);
            let [leaf, left, right, top] =
                [blocks.u32()?, blocks.u32()?, blocks.u32()?, blocks.u32()?];
            text.part(format_args!("topparent: {top}, leaf: {leaf}, left: {left}, right: {right}"));
        }
        0xD0 => {
            let relation = fields.relation()?;
            let mut rest = fields.skip_to(16);
            let horizon: u64 = rest.take()?;
            text.part(format_args!(
                "rel: {relation}, snapshotConflictHorizon: {}:{}",
                horizon >> 32,
                horizon as u32
            ));
            catalog_flag(&mut rest, text)?;
        }
        0xE0 => {
            let data = record.block(0).and_then(|block| block.data).unwrap_or_default();
            let pages = Fields::of(data).skip_to(20).u32()?;
            text.part(format_args!("last_cleanup_num_delpages: {pages}"));
        }
        _ => {}
    }
    Some(())
}

/// A posting list from which some TIDs are removed.
struct Update {
    offset: u16,
    places: Vec<u16>,
}

impl Display for Update {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (offset, count) = (self.offset, self.places.len());
        write!(f, "{{ off: {offset}, nptids: {count}, ptids: {} }}", List(&self.places))
    }
}

/// The entries that are deleted or updated; not logged if there is an image instead.
fn entries(record: &Record<'_>, deleted: u16, updated: u16, text: &mut Text<'_>) -> Option<()> {
    let Some(data) = record.block(0).and_then(|block| block.data) else { return Some(()) };
    let mut fields = Fields::of(data);
    let deleted = fields.list(deleted.into(), Fields::u16)?;
    let offsets = fields.list(updated.into(), Fields::u16)?;
    let mut updates = Vec::new();
    for offset in offsets {
        let count = fields.u16()?;
        updates.push(Update { offset, places: fields.list(count.into(), Fields::u16)? });
    }
    text.part(format_args!("deleted: {}, updated: {}", List(&deleted), List(&updates)));
    Some(())
}
