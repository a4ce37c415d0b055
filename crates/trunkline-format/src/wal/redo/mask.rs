//! **Masks**: what may differ between a page that redo has made and the server's own.
//!
//! A server changes some bits of its pages without logging them, such as hint bits, and doesn't log
//! some that don't matter later, such as command numbers. `wal_consistency_checking` compares pages
//! after it has overwritten these in both. We overwrite the same ones, with two exceptions:
//!
//! - A server masks visibility map pages like heap pages, so it compares nothing on them. We compare
//!   them.
//! - A lock resets the command number in redo, but not when it is taken. If the row is frozen, a server
//!   compares the bit that says what the command number means, and stops its own recovery. We mask it.
//!
//! Mirrors `heap_mask`, `btree_mask` and `seq_mask` of PostgreSQL, and its `access/common/bufmask.c`.

use crate::btree::{LEAF, SPECIAL};
use crate::heap_tuple::{
    COMBO_COMMAND, TUPLE_HEADER_SIZE, XMAX_COMMITTED, XMAX_INVALID, XMIN_FROZEN,
};
use crate::ids::{BlockNo, Fork, PageBytes, Tid};
use crate::little_endian::read_at;
use crate::page::{
    FLAGS_KNOWN, HEADER_SIZE, LinePointer, LinePointerFlags, PageHeader, line_pointer,
};
use crate::wal::resource_manager::{ResourceManager, number};

use super::index_page::HAS_GARBAGE;
use super::page_editor::{align, place_of, put};

/// In `t_infomask`: all bits about transactions, which may be set later as hints.
const TRANSACTION_BITS: u16 = 0xFFF0;
/// The line pointer number of a speculative insertion.
const SPECULATIVE: u16 = 0xFFFE;
/// In the flags of a B-tree page: the last page of a group of splits.
const SPLIT_END: u16 = 0x0020;

/// Overwrites everything on a page that the records of a manager don't determine.
fn mask(page: &mut PageBytes, manager: ResourceManager, fork: Fork, block: BlockNo) {
    // Position and checksum.
    put(page, 0, &[0; 10]);
    if fork == Fork::Vm {
        return;
    }
    if manager.0 != number::SEQUENCE {
        let flags = read_at::<u16>(page, 10).unwrap_or_default() & !FLAGS_KNOWN;
        put(page, 10, &flags.to_le_bytes());
        put(page, 20, &[0; 4]);
    }
    mask_hole(page);
    match manager.0 {
        number::HEAP | number::HEAP2 => mask_rows(page, block),
        number::BTREE => mask_index(page),
        _ => {}
    }
}

/// The first byte in which two pages differ, except for everything that the records of a manager don't
/// determine.
pub fn first_difference(
    one: &PageBytes,
    other: &PageBytes,
    manager: ResourceManager,
    fork: Fork,
    block: BlockNo,
) -> Option<usize> {
    let (mut one, mut other) = (*one, *other);
    mask(&mut one, manager, fork, block);
    mask(&mut other, manager, fork, block);
    one.iter().zip(&other).position(|(one, other)| one != other)
}

/// What lies between the line pointers and the items.
fn mask_hole(page: &mut PageBytes) {
    let header = PageHeader::parse(page);
    let hole = usize::from(header.lower)..usize::from(header.upper);
    if header.lower >= HEADER_SIZE
        && let Some(hole) = page.get_mut(hole)
    {
        hole.fill(0);
    }
}

fn mask_rows(page: &mut PageBytes, block: BlockNo) {
    for item in 1..=PageHeader::parse(page).line_pointer_count() {
        let Some(pointer) = line_pointer(page, item) else { return };
        let start = usize::from(pointer.offset);
        if pointer.flags == LinePointerFlags::Normal && pointer.length >= TUPLE_HEADER_SIZE {
            mask_row(page, start, Tid { block, item });
        }
        if pointer.length > 0 {
            let end = usize::from(pointer.end());
            // The item of a damaged page may end anywhere.
            page.get_mut(end..align(end)).unwrap_or_default().fill(0);
        }
    }
}

fn mask_row(page: &mut PageBytes, start: usize, own: Tid) {
    let Some(infomask) = read_at::<u16>(page, start + 20) else { return };
    let masked = match infomask & XMIN_FROZEN == XMIN_FROZEN {
        true => XMAX_INVALID | XMAX_COMMITTED | COMBO_COMMAND,
        false => TRANSACTION_BITS,
    };
    put(page, start + 20, &(infomask & !masked).to_le_bytes());
    // The command number.
    put(page, start + 8, &[0; 4]);
    if read_at::<u16>(page, start + 16) == Some(SPECULATIVE) {
        put(page, start + 12, &own.to_bytes());
    }
}

fn mask_index(page: &mut PageBytes) {
    let flags_at = usize::from(SPECIAL) + 12;
    let flags = read_at::<u16>(page, flags_at).unwrap_or_default();
    if flags & LEAF != 0 {
        // Scans mark items as dead.
        for item in 1..=PageHeader::parse(page).line_pointer_count() {
            let Some(pointer) = line_pointer(page, item) else { break };
            let flags = LinePointerFlags::Unused;
            let masked = LinePointer { flags, ..pointer };
            put(page, place_of(item), &masked.to_bits().to_le_bytes());
        }
    }
    put(page, flags_at, &(flags & !(HAS_GARBAGE | SPLIT_END)).to_le_bytes());
    // The cycle number.
    put(page, flags_at + 2, &[0; 2]);
}
