//! Decodes heap tuple headers, the first 23 bytes of every row version.
//!
//! Mirrors `HeapTupleHeaderData` in PostgreSQL's `access/htup_details.h`. We show the fields
//! exactly as they are stored and don't check them, because this command is often used to look at
//! damaged tuples.

use serde::Serialize;

/// Bytes before the null bitmap.
const HEADER_BYTES: usize = 23;

/// `HEAP_XMIN_FROZEN`: both `HEAP_XMIN_COMMITTED` and `HEAP_XMIN_INVALID`.
const FROZEN: u16 = 0x0300;
/// `HEAP_XMAX_SHR_LOCK`: both `HEAP_XMAX_EXCL_LOCK` and `HEAP_XMAX_KEYSHR_LOCK`.
const SHARE_LOCK: u16 = 0x0050;

/// Bits of `t_infomask`, lowest first, with PostgreSQL's names spelled out. Some combinations of
/// bits have a meaning of their own; those are handled by [`flags`].
const INFOMASK: [(u16, &str); 16] = [
    (0x0001, "has nulls"),
    (0x0002, "has varwidth"),
    (0x0004, "has external"),
    (0x0008, "has oid"),
    (0x0010, "xmax key-share lock"),
    (0x0020, "combo cid"),
    (0x0040, "xmax exclusive lock"),
    (0x0080, "xmax lock only"),
    (0x0100, "xmin committed"),
    (0x0200, "xmin invalid"),
    (0x0400, "xmax committed"),
    (0x0800, "xmax invalid"),
    (0x1000, "xmax is multi"),
    (0x2000, "updated"),
    (0x4000, "moved off"),
    (0x8000, "moved in"),
];

/// Flag bits of `t_infomask2`. The lower bits hold the number of attributes.
const INFOMASK2: [(u16, &str); 3] =
    [(0x2000, "keys updated"), (0x4000, "hot updated"), (0x8000, "heap only")];

/// The header of one tuple.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct TupleHeader {
    /// The inserting transaction.
    pub(super) xmin: u32,
    /// The deleting or locking transaction, or a multixact; 0 if there is none.
    pub(super) xmax: u32,
    /// `t_cid`: the inserting or deleting command, or a combo command id.
    pub(super) command_id: u32,
    /// Block and line pointer of the next version of the row, or of this version if it is the
    /// latest one.
    pub(super) ctid: (u32, u16),
    pub(super) infomask2: u16,
    pub(super) infomask: u16,
    /// Offset of the data from the start of the tuple.
    pub(super) hoff: u8,
    /// Number of attributes stored.
    pub(super) attributes: u16,
    /// Names of the set bits of both masks.
    pub(super) flags: Vec<&'static str>,
}

impl TupleHeader {
    /// Decodes the header of an item. Returns `None` if the item is too short.
    pub(super) fn parse(item: &[u8]) -> Option<TupleHeader> {
        let header: &[u8; HEADER_BYTES] = item.first_chunk()?;
        let word = |at: usize| u16::from_le_bytes([header[at], header[at + 1]]);
        let double = |low: u16, high: u16| u32::from(high) << 16 | u32::from(low);
        let (infomask2, infomask) = (word(18), word(20));
        Some(TupleHeader {
            xmin: double(word(0), word(2)),
            xmax: double(word(4), word(6)),
            command_id: double(word(8), word(10)),
            // The block number is stored as two halves, the upper one first.
            ctid: (double(word(14), word(12)), word(16)),
            infomask2,
            infomask,
            hoff: header[22],
            attributes: infomask2 & 0x07FF,
            flags: flags(infomask, infomask2),
        })
    }

    /// `(block,item)` as PostgreSQL prints it.
    pub(super) fn ctid_text(&self) -> String {
        format!("({},{})", self.ctid.0, self.ctid.1)
    }
}

/// Names the set bits of both masks.
fn flags(infomask: u16, infomask2: u16) -> Vec<&'static str> {
    let mut rest = infomask;
    let mut flags = Vec::new();
    for (bits, name) in [(FROZEN, "xmin frozen"), (SHARE_LOCK, "xmax share lock")] {
        if rest & bits == bits {
            rest &= !bits;
            flags.push(name);
        }
    }
    flags.extend(INFOMASK.iter().filter(|(bit, _)| rest & bit != 0).map(|(_, name)| name));
    flags.extend(INFOMASK2.iter().filter(|(bit, _)| infomask2 & bit != 0).map(|(_, name)| name));
    flags
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_decoded() {
        let mut item = [0; 24];
        item[..4].copy_from_slice(&717_u32.to_le_bytes());
        item[4..8].copy_from_slice(&718_u32.to_le_bytes());
        item[12..18].copy_from_slice(&[1, 0, 2, 0, 3, 0]);
        item[18..20].copy_from_slice(&0xA003_u16.to_le_bytes());
        item[20..22].copy_from_slice(&0x0B50_u16.to_le_bytes());
        item[22] = 24;
        let tuple = TupleHeader::parse(&item).expect("long enough");
        assert_eq!((tuple.xmin, tuple.xmax, tuple.ctid), (717, 718, (65_538, 3)));
        assert_eq!(tuple.ctid_text(), "(65538,3)");
        assert_eq!((tuple.attributes, tuple.hoff), (3, 24));
        assert_eq!(
            tuple.flags,
            ["xmin frozen", "xmax share lock", "xmax invalid", "keys updated", "heap only"]
        );
        assert_eq!(TupleHeader::parse(&item[..22]), None);
    }
}
