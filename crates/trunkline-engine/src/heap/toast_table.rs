//! TOAST tables and their rows.
//!
//! A TOAST table has one row per chunk. Its columns are `chunk_id`, `chunk_seq` and `chunk_data`.

use trunkline_format::deform::{Attribute, Deformer};
use trunkline_format::varlena::Varlena;
use trunkline_format::{Align, HeapTuple, Oid, Tid};

use super::toast_error::ToastProblem;
use crate::btree::Index;
use crate::storage::Relation;

/// Number of bytes in every chunk except the last one (`TOAST_MAX_CHUNK_SIZE`), chosen so that four
/// chunks fit on a page. The control file contains this number, and a server refuses to start on a
/// cluster with a different one.
pub const CHUNK_BYTES: u32 = 1996;

/// `HEAP_HASEXTERNAL` in `t_infomask`: the tuple has a TOAST pointer.
const HAS_EXTERNAL: u16 = 0x0004;

/// Whether the tuple has a TOAST pointer. We only have to test one bit for this, so we don't need
/// to deform rows without TOAST values, and most rows don't have any.
#[inline]
pub fn has_external(tuple: &HeapTuple<'_>) -> bool {
    tuple.infomask() & HAS_EXTERNAL != 0
}

/// A TOAST table and its index.
#[derive(Debug, Clone)]
pub struct ToastTable {
    /// The OID that TOAST pointers refer to it by.
    pub oid: Oid,
    /// Its rows.
    pub heap: Relation,
    /// Its index on value id and chunk number ([`Index::of_toast`]).
    pub index: Index,
}

/// The columns of a TOAST row: `chunk_id`, `chunk_seq` and `chunk_data`.
pub(super) fn chunk_columns<'p>(
    tuple: &HeapTuple<'p>,
    tid: Tid,
) -> Result<(u32, i32, &'p [u8]), ToastProblem> {
    const INT4: Attribute = Attribute { len: 4, align: Align::Int };
    const BYTEA: Attribute = Attribute { len: -1, align: Align::Int };
    let mut walk = Deformer::of(tuple);
    let mut next = |attribute| {
        let column = walk.next(attribute);
        let column = column.map_err(|error| ToastProblem::Column { tid, error })?;
        column.value().ok_or(ToastProblem::NullColumn { tid })
    };
    let (value_id, chunk, bytes) = (next(INT4)?, next(INT4)?, next(BYTEA)?);
    let word = |bytes: &[u8]| bytes.first_chunk().copied().unwrap_or_default();
    match Varlena::parse(bytes) {
        Ok(Varlena::Plain(bytes)) => {
            Ok((u32::from_le_bytes(word(value_id)), i32::from_le_bytes(word(chunk)), bytes))
        }
        _ => Err(ToastProblem::Stored { tid }),
    }
}
