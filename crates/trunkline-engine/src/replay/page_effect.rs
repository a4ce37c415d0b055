//! **Page effects**: what a record means for one page, for the scan and for the history of a page.
//!
//! ```text
//!   record ─▶ block references ─▶ image, initialisation or change   ╮
//!          ─▶ derived pages ────▶ bits of a map page are cleared    ├─▶ effects on this page
//!          ─▶ effect ───────────▶ file created, cut off or removed  ╯
//! ```
//! For example, `Storage/TRUNCATE` to 10 blocks cuts off block 12 of a table, and clears bits on the last
//! page of its visibility map.

use trunkline_format::wal::redo::{derived_pages, requires_base};
use trunkline_format::wal::resource_manager::number;
use trunkline_format::wal::{BlockRef, Effect, EffectError, LogRecord, RelFileLocator};
use trunkline_format::{BlockNo, Oid};

use super::chain_link::{ChainLink, Part};
use super::page_chains::{ForkKey, cuts};

/// What a record means for a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageEffect {
    /// A full-page image replaces it.
    Image {
        /// The number of the block reference.
        reference: u8,
    },
    /// It is initialised, whatever it contained.
    Init {
        /// The number of the block reference.
        reference: u8,
    },
    /// It is changed.
    Change {
        /// The number of the block reference.
        reference: u8,
    },
    /// Bits of this page of a visibility map are cleared. The record doesn't name the page.
    Derived,
    /// The file is created, and so has no page yet.
    Created,
    /// Its database is created as a copy of another one's files, so that the page is what it is there.
    Copied,
    /// The relation is truncated so that the page is gone.
    CutOff,
    /// The relation or its database is removed.
    Removed,
}

impl PageEffect {
    fn of(block: &BlockRef<'_>) -> Self {
        let reference = block.id;
        match block.image {
            _ if requires_base(block) => Self::Change { reference },
            Some(image) if image.applies() => Self::Image { reference },
            _ => Self::Init { reference },
        }
    }

    /// Whether the page can be built from here on, whatever it was before.
    pub fn is_from_scratch(self) -> bool {
        matches!(self, Self::Image { .. } | Self::Init { .. })
    }

    /// Whether the record changes the contents of the page, so that it may be part of what rebuilds it.
    pub fn is_change(self) -> bool {
        !matches!(self, Self::Created | Self::Copied | Self::CutOff | Self::Removed)
    }
}

/// The pages that a record changes: each with the link of its chain, and whether that is the first one.
pub(super) fn changed_pages(
    record: &LogRecord<'_>,
) -> impl Iterator<Item = (ForkKey, BlockNo, ChainLink, bool)> {
    let place = record.start;
    // Locks and the like name no block; consistency images are not applied.
    let named = record.record.blocks().iter().map(move |block| {
        let link = ChainLink { record: place, part: Part::Block(block.id) };
        ((block.relation, block.fork), block.block, link, !requires_base(block))
    });
    // A truncation changes no other page.
    let is_truncation = record.record.header().manager == number::STORAGE;
    let part = if is_truncation { Part::TruncatedMap } else { Part::DerivedMap };
    let derived = derived_pages(&record.record, record.version).map(move |page| {
        let link = ChainLink { record: place, part };
        ((page.relation, page.fork), page.block, link, false)
    });
    named.chain(derived)
}

/// What a record means for a page, in the order in which it happens.
///
/// # Errors
/// [`EffectError`]: the record can't be decoded.
pub fn page_effects(
    record: &LogRecord<'_>,
    key: &ForkKey,
    block: BlockNo,
) -> Result<Vec<PageEffect>, EffectError> {
    let changes = changed_pages(record).filter(|(of, at, ..)| of == key && *at == block);
    let effect_of = |link: ChainLink| match link.part {
        Part::Block(id) => record.record.block(id).map(PageEffect::of),
        Part::DerivedMap | Part::TruncatedMap => Some(PageEffect::Derived),
    };
    let mut effects: Vec<_> = changes.filter_map(|(_, _, link, _)| effect_of(link)).collect();
    if let Some(effect) = Effect::of(&record.record, record.version)? {
        effects.extend(effect_on_file(&effect, key, block));
    }
    Ok(effects)
}

fn effect_on_file(effect: &Effect<'_>, key: &ForkKey, block: BlockNo) -> Option<PageEffect> {
    let (RelFileLocator { tablespace, database, .. }, _) = *key;
    let is = |condition: bool, effect| condition.then_some(effect);
    match effect {
        Effect::Create { relation, fork } => is((*relation, *fork) == *key, PageEffect::Created),
        Effect::Truncate(truncation) => {
            let mut cuts = cuts(truncation);
            is(cuts.any(|(cut, length)| cut == *key && block >= length), PageEffect::CutOff)
        }
        Effect::TransactionEnd(end) => is(end.dropped.contains(&key.0), PageEffect::Removed),
        Effect::CopyDatabase { to, .. } => is(*to == (tablespace, database), PageEffect::Copied),
        Effect::DropDatabase { database: dropped, tablespaces } => {
            let is_of_it = *dropped == database && database != Oid(0);
            is(is_of_it && tablespaces.contains(&tablespace), PageEffect::Removed)
        }
        _ => None,
    }
}
