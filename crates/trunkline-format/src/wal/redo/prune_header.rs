//! The main data of prune records since 17.

use crate::control::PgVersion;
use crate::wal::fields::Fields;
use crate::wal::record::Record;

use super::error::RedoError;

/// Both bits of a block.
pub(super) const ALL_BITS: u8 = 3;

/// `VISIBILITYMAP_ALL_FROZEN`.
pub(super) const ALL_FROZEN: u8 = 2;

/// Since 19: the visibility map's bits begin here.
const MAP_BITS_SHIFT: u32 = 8;

/// The main data of a prune record since 17.
#[derive(Clone, Copy, Debug)]
pub(super) struct PruneHeader {
    pub(super) flags: u16,
}

impl PruneHeader {
    pub(super) fn parse(record: &Record<'_>, version: PgVersion) -> Option<Self> {
        let mut main = Fields::of(record.main_data());
        if version < PgVersion::V17 {
            return None;
        }
        // In 19, the flags take the place of the reason, too.
        if version >= PgVersion::V19 {
            return Some(Self { flags: main.u16()? });
        }
        let _reason = main.u8()?;
        Some(Self { flags: main.u8()?.into() })
    }

    pub(super) fn has(self, flag: u16) -> bool {
        self.flags & flag != 0
    }

    /// The bits that the record sets in the visibility map. A page whose rows are all frozen is all-visible, too.
    pub(super) fn map_bits(self) -> Result<u8, RedoError> {
        match (self.flags >> MAP_BITS_SHIFT) as u8 & ALL_BITS {
            ALL_FROZEN => Err(RedoError::Flags { flags: self.flags }),
            bits => Ok(bits),
        }
    }
}
