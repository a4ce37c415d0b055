//! The rows of one block that index entries lead to. In a random order, most blocks have only one row
//! at a time, which needs no memory of its own.

use std::collections::VecDeque;

use trunkline_aio::facade::{Arc, Mutex};
use trunkline_format::{BlockNo, Tid};

use crate::btree::BtreeError;
use crate::heap::{ChainRoot, Wanted, WantedRows};
use crate::read_stream::Upcoming;

/// The damage that ended a source. The scan returns it after the rows of all earlier entries.
pub(super) type Failure = Arc<Mutex<Option<BtreeError>>>;

/// The HOT chains of a block.
#[derive(Debug)]
pub(super) enum RowList {
    One(ChainRoot),
    Many(Vec<ChainRoot>),
}

impl RowList {
    pub(super) fn push(&mut self, root: ChainRoot) {
        match self {
            Self::One(first) => *self = Self::Many(vec![*first, root]),
            Self::Many(roots) => roots.push(root),
        }
    }

    fn as_slice(&self) -> &[ChainRoot] {
        match self {
            Self::One(root) => std::slice::from_ref(root),
            Self::Many(roots) => roots,
        }
    }
}

impl WantedRows for RowList {
    fn wanted(&self) -> Wanted<'_> {
        Wanted::Chains { roots: self.as_slice(), recheck: false }
    }
}

/// Blocks with their rows, in the order of a scan.
#[derive(Debug, Default)]
pub(super) struct BlockLists(VecDeque<(BlockNo, RowList)>);

impl BlockLists {
    /// Adds a row. If it is on the same block as the row before it, the block is read only once.
    pub(super) fn push(&mut self, tid: Tid, entry: u32, place: (BlockNo, u16)) {
        let root = ChainRoot { item: tid.item, entry, place };
        match self.0.back_mut().filter(|(block, _)| *block == tid.block) {
            Some((_, list)) => list.push(root),
            None => self.0.push_back((tid.block, RowList::One(root))),
        }
    }

    pub(super) fn pop(&mut self) -> Option<(BlockNo, RowList)> {
        self.0.pop_front()
    }

    /// The block that comes after `ahead` others.
    pub(super) fn upcoming(&self, ahead: usize) -> Option<Upcoming> {
        let (block, list) = self.0.get(ahead)?;
        let item = list.as_slice().first().map_or(0, |root| root.item);
        Some(Upcoming { block: *block, item })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
