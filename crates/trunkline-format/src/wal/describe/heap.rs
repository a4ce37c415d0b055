//! Heap records: Heap and Heap2.
//!
//! Mirrors PostgreSQL's `access/heapam_xlog.h`.

use std::fmt::{self, Display};

use crate::control::PgVersion;
use crate::ids::Tid;
use crate::wal::fields::Fields;
use crate::wal::record::Record;

use super::list::{List, bit_names};
use super::text::Text;
use super::transaction;

/// `infobits_set`: what a record says about the new `xmax` of a tuple.
const INFO_BITS: [(u8, &str); 5] = [
    (0x01, "IS_MULTI"),
    (0x02, "LOCK_ONLY"),
    (0x04, "EXCL_LOCK"),
    (0x08, "KEYSHR_LOCK"),
    (0x10, "KEYS_UPDATED"),
];

/// `XLH_INSERT_ALL_FROZEN_SET`: since 19, such a record also sets both bits of the visibility map.
const ALL_FROZEN_SET: u8 = 0x20;

pub(super) fn heap(record: &Record<'_>, version: PgVersion, text: &mut Text<'_>) -> Option<()> {
    let mut fields = Fields::of(record.main_data());
    match record.header().operation() & 0x70 {
        0x00 => {
            let (offset, flags) = (fields.u16()?, fields.u8()?);
            text.part(format_args!("off: {offset}, flags: 0x{flags:02X}"));
        }
        0x10 | 0x60 => lock(&mut fields, text)?,
        0x20 | 0x40 => {
            let (xmax, offset) = (fields.u32()?, fields.u16()?);
            let (bits, flags) = (bit_names(fields.u8()?, &INFO_BITS), fields.u8()?);
            let (new_xmax, new_offset) = (fields.u32()?, fields.u16()?);
            text.part(format_args!(
                "old_xmax: {xmax}, old_off: {offset}, old_infobits: {}, flags: 0x{flags:02X}, \
                 new_xmax: {new_xmax}, new_off: {new_offset}",
                List(&bits)
            ));
        }
        0x30 => {
            let (_database, count) = (fields.u32()?, fields.u32()?);
            let flags = bit_names(fields.u8()?, &[(1, "CASCADE"), (2, "RESTART_SEQS")]);
            fields.align(4);
            let relations = fields.list(count as usize, Fields::u32)?;
            let (flags, relations) = (List(&flags), List(&relations));
            text.part(format_args!("flags: {flags}, nrelids: {count}, relids: {relations}"));
        }
        0x50 => text.part(format_args!("off: {}", fields.u16()?)),
        0x70 => {
            text.part(format_args!("off: {}", fields.u16()?));
            if version >= PgVersion::V18 {
                fields.align(4);
                transaction::stored_invalidations(&mut fields, text)?;
            }
        }
        _ => {}
    }
    Some(())
}

/// Delete, lock, and lock of an updated version.
fn lock(fields: &mut Fields<'_>, text: &mut Text<'_>) -> Option<()> {
    let (xmax, offset) = (fields.u32()?, fields.u16()?);
    let (bits, flags) = (bit_names(fields.u8()?, &INFO_BITS), fields.u8()?);
    let bits = List(&bits);
    text.part(format_args!("xmax: {xmax}, off: {offset}, infobits: {bits}, flags: 0x{flags:02X}"));
    Some(())
}

pub(super) fn heap2(record: &Record<'_>, version: PgVersion, text: &mut Text<'_>) -> Option<()> {
    let mut fields = Fields::of(record.main_data());
    match record.header().operation() & 0x70 {
        operation @ (0x10 | 0x20 | 0x30) if version < PgVersion::V17 => {
            prune_before_17(operation, record, version, text)?;
        }
        0x10 | 0x20 | 0x30 => prune(record, version, text)?,
        0x40 => {
            let (horizon, flags) = (fields.u32()?, fields.u8()?);
            text.part(format_args!("snapshotConflictHorizon: {horizon}, flags: 0x{flags:02X}"));
        }
        0x50 => {
            let flags = fields.u8()?;
            fields.align(2);
            let count = fields.u16()?;
            text.part(format_args!("ntuples: {count}, flags: 0x{flags:02X}"));
            if version >= PgVersion::V19 && flags & ALL_FROZEN_SET != 0 {
                text.part(format_args!("vm_flags: 0x03"));
            }
            let is_init = record.header().operation() & 0x80 != 0;
            if !is_init && record.block(0).is_some_and(|block| block.data.is_some()) {
                let offsets = fields.list(count.into(), Fields::u16)?;
                text.part(format_args!("offsets: {}", List(&offsets)));
            }
        }
        0x60 => lock(&mut fields, text)?,
        0x70 => {
            let [_top, cmin, cmax, combo] =
                [fields.u32()?, fields.u32()?, fields.u32()?, fields.u32()?];
            let (relation, tid) = (fields.relation()?, Tid::from_bytes(fields.take()?));
            text.part(format_args!(
                "rel: {relation}, tid: {}/{}, cmin: {cmin}, cmax: {cmax}, combo: {combo}",
                tid.block, tid.item
            ));
        }
        _ => {}
    }
    Some(())
}

/// What happens to some tuples of a page: the new `xmax` and its flags.
struct FreezePlan {
    xmax: u32,
    infomask2: u16,
    infomask: u16,
    count: u16,
    offsets: Vec<u16>,
}

impl FreezePlan {
    /// 12 bytes: `xlhp_freeze_plan`.
    fn parse(fields: &mut Fields<'_>) -> Option<Self> {
        let (xmax, infomask2, infomask) = (fields.u32()?, fields.u16()?, fields.u16()?);
        let _flags = fields.u16()?;
        Some(Self { xmax, infomask2, infomask, count: fields.u16()?, offsets: Vec::new() })
    }

    /// The offsets of all plans follow each other.
    fn take_offsets(plans: &mut [Self], fields: &mut Fields<'_>) -> Option<()> {
        for plan in plans {
            plan.offsets = fields.list(plan.count.into(), Fields::u16)?;
        }
        Some(())
    }
}

impl Display for FreezePlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{{ xmax: {}, infomask: {}, infomask2: {}, ntuples: {}, offsets: {} }}",
            self.xmax,
            self.infomask,
            self.infomask2,
            self.count,
            List(&self.offsets)
        )
    }
}

/// A line pointer that points to another one.
struct Redirect(u16, u16);

impl Redirect {
    fn parse(fields: &mut Fields<'_>) -> Option<Self> {
        Some(Self(fields.u16()?, fields.u16()?))
    }
}

impl Display for Redirect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}->{}", self.0, self.1)
    }
}

/// 17 and later: one format for pruning, vacuuming and freezing.
fn prune(record: &Record<'_>, version: PgVersion, text: &mut Text<'_>) -> Option<()> {
    let mut fields = Fields::of(record.main_data());
    // In 19, the flags take the place of the reason, too.
    let flags = if version >= PgVersion::V19 {
        fields.u16()?
    } else {
        let _reason = fields.u8()?;
        u16::from(fields.u8()?)
    };
    if flags & 0x08 != 0 {
        text.part(format_args!("snapshotConflictHorizon: {}", fields.u32()?));
    }
    text.part(format_args!("isCatalogRel: {}", true_or_false(flags & 0x02 != 0)));
    let map_bits = flags >> 8 & 0x03;
    if map_bits != 0 {
        text.part(format_args!("vm_flags: 0x{map_bits:02X}"));
    }
    let Some(data) = record.block(0).and_then(|block| block.data) else { return Some(()) };
    let mut fields = Fields::of(data);
    let counted = |flag: u16, fields: &mut Fields<'_>| -> Option<usize> {
        if flags & flag != 0 { fields.u16().map(usize::from) } else { Some(0) }
    };
    let plan_count = counted(0x10, &mut fields)?;
    if plan_count > 0 {
        fields.align(4);
    }
    let mut plans = fields.list(plan_count, FreezePlan::parse)?;
    let redirect_count = counted(0x20, &mut fields)?;
    let redirected = fields.list(redirect_count, Redirect::parse)?;
    let dead_count = counted(0x40, &mut fields)?;
    let dead = fields.list(dead_count, Fields::u16)?;
    let unused_count = counted(0x80, &mut fields)?;
    let unused = fields.list(unused_count, Fields::u16)?;
    FreezePlan::take_offsets(&mut plans, &mut fields)?;
    text.part(format_args!(
        "nplans: {plan_count}, nredirected: {redirect_count}, ndead: {dead_count}, \
         nunused: {unused_count}"
    ));
    list_part(text, "plans", &plans);
    list_part(text, "redirected", &redirected);
    list_part(text, "dead", &dead);
    list_part(text, "unused", &unused);
    Some(())
}

fn list_part<T: Display>(text: &mut Text<'_>, name: &str, list: &[T]) {
    if !list.is_empty() {
        text.part(format_args!("{name}: {}", List(list)));
    }
}

fn prune_before_17(
    operation: u8,
    record: &Record<'_>,
    version: PgVersion,
    text: &mut Text<'_>,
) -> Option<()> {
    let mut fields = Fields::of(record.main_data());
    let data = record.block(0).and_then(|block| block.data);
    let mut of_block = Fields::of(data.unwrap_or_default());
    let is_16 = version >= PgVersion::V16;
    match operation {
        0x10 => {
            let (horizon, redirect_count) = (fields.u32()?, fields.u16()?);
            let dead_count = fields.u16()?;
            text.part(format_args!("snapshotConflictHorizon: {horizon}"));
            text.part(format_args!("nredirected: {redirect_count}, ndead: {dead_count}"));
            if is_16 {
                text.part(format_args!("isCatalogRel: {}", true_or_false(fields.u8()? != 0)));
            }
            if data.is_some() {
                let redirected = of_block.list(redirect_count.into(), Redirect::parse)?;
                let dead = of_block.list(dead_count.into(), Fields::u16)?;
                let count = of_block.rest().len() / 2;
                let unused = of_block.list(count, Fields::u16)?;
                text.part(format_args!("nunused: {count}"));
                list_part(text, "redirected", &redirected);
                list_part(text, "dead", &dead);
                list_part(text, "unused", &unused);
            }
        }
        0x20 => {
            let count = fields.u16()?;
            text.part(format_args!("nunused: {count}"));
            if data.is_some() {
                list_part(text, "unused", &of_block.list(count.into(), Fields::u16)?);
            }
        }
        _ => {
            let (horizon, count) = (fields.u32()?, fields.u16()?);
            text.part(format_args!("snapshotConflictHorizon: {horizon}"));
            if !is_16 {
                text.part(format_args!("ntuples: {count}"));
                return Some(());
            }
            text.part(format_args!("nplans: {count}"));
            text.part(format_args!("isCatalogRel: {}", true_or_false(fields.u8()? != 0)));
            if data.is_some() {
                let mut plans = of_block.list(count.into(), FreezePlan::parse)?;
                FreezePlan::take_offsets(&mut plans, &mut of_block)?;
                list_part(text, "plans", &plans);
            }
        }
    }
    Some(())
}

/// How `pg_waldump` prints flags.
pub(super) fn true_or_false(flag: bool) -> char {
    if flag { 'T' } else { 'F' }
}
