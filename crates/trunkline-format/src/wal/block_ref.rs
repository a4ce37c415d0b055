//! **Block references**: the blocks that one record changes.
//!
//! Nearly all records have at most two of them. A scan of the log decodes millions of records per
//! second, so these two are stored in place; only longer lists, such as those of a page split or a
//! `CREATE INDEX`, need an allocation.

use crate::ids::{BlockNo, Fork, Oid};

use super::image::PageImage;
use super::locator::RelFileLocator;

/// A block that a record changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BlockRef<'b> {
    /// The number of the reference, by which the resource manager knows it. There may be gaps.
    pub id: u8,
    /// The relation.
    pub relation: RelFileLocator,
    /// The fork.
    pub fork: Fork,
    /// The block.
    pub block: BlockNo,
    /// `BKPBLOCK_WILL_INIT`: redo makes the page from scratch.
    pub will_init: bool,
    /// The image of the page after the change.
    pub image: Option<PageImage<'b>>,
    /// What the resource manager has logged about this block. It is never empty.
    pub data: Option<&'b [u8]>,
}

/// Number of references that are stored in place. Records with more are rare, and each place makes every record larger,
/// which is moved several times.
const IN_PLACE: usize = 2;

/// Fills the places that no reference uses.
const UNUSED: BlockRef<'static> = BlockRef {
    id: 0,
    relation: RelFileLocator { tablespace: Oid(0), database: Oid(0), number: 0 },
    fork: Fork::Main,
    block: 0,
    will_init: false,
    image: None,
    data: None,
};

/// A list of block references.
#[derive(Clone, Debug)]
pub(super) enum BlockRefs<'b> {
    Few([BlockRef<'b>; IN_PLACE], usize),
    Many(Vec<BlockRef<'b>>),
}

impl Default for BlockRefs<'_> {
    fn default() -> Self {
        Self::Few([UNUSED; IN_PLACE], 0)
    }
}

impl PartialEq for BlockRefs<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.as_slice() == other.as_slice()
    }
}

impl Eq for BlockRefs<'_> {}

impl<'b> BlockRefs<'b> {
    pub(super) fn push(&mut self, block: BlockRef<'b>) {
        match self {
            Self::Few(places, count) => match places.get_mut(*count) {
                Some(place) => {
                    *place = block;
                    *count += 1;
                }
                None => {
                    let mut many = places.to_vec();
                    many.push(block);
                    *self = Self::Many(many);
                }
            },
            Self::Many(many) => many.push(block),
        }
    }

    pub(super) fn as_slice(&self) -> &[BlockRef<'b>] {
        match self {
            Self::Few(places, count) => places.get(..*count).unwrap_or_default(),
            Self::Many(many) => many,
        }
    }

    pub(super) fn as_mut_slice(&mut self) -> &mut [BlockRef<'b>] {
        match self {
            Self::Few(places, count) => places.get_mut(..*count).unwrap_or_default(),
            Self::Many(many) => many,
        }
    }
}
