//! What the log says about one fork of a relation: the chains of its pages, and its length.

use std::num::NonZeroU64;

use trunkline_format::BlockNo;

use super::chain_link::{ChainLink, Part};
use super::page_table::PageTable;

/// The records of one page.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Chain {
    /// The newest links; all of them if none is spilled.
    pub(super) links: Vec<ChainLink>,
    /// Where older links are in the scratch file ([`SpilledLinks`]).
    pub(super) spilled: Option<NonZeroU64>,
    /// The number of all links, spilled ones included.
    pub(super) count: u32,
    /// Whether the first link makes the page from scratch.
    pub(super) is_from_scratch: bool,
}

/// Where the contents of a block are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PageSource {
    /// In the file, and so are those of the blocks behind it, as many as this in all.
    File {
        /// From 1 on.
        blocks: u32,
    },
    /// In the log: the page must be built ([`Replay::build`]).
    ///
    /// [`Replay::build`]: super::Replay::build
    Log,
}

/// What the log says about one fork.
#[derive(Debug, Default)]
pub(crate) struct ForkChanges {
    pages: PageTable<Chain>,
    /// One more than the highest block that has a chain, or had one.
    end: BlockNo,
    /// The length after the last truncation, and the lowest length of all truncations: what the file has from there on is void.
    cut: Option<Cut>,
    /// Whether the log has created the fork (true) or removed it (false) last. The first record of one of
    /// its pages creates it too.
    exists: Option<bool>,
}

/// [`ForkChanges::of_dropped`], for forks of which the log has no record.
pub(super) static DROPPED: ForkChanges = ForkChanges::of_dropped();

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Cut {
    length: BlockNo,
    void_from: BlockNo,
}

/// The length of a fork without blocks that it can't have, and the first of those.
struct Reach {
    length: BlockNo,
    impossible: Option<BlockNo>,
}

/// How many blocks of a fork may be in neither the file nor the log, besides twice those that are. A
/// map of a large table begins with as many blocks as this: a visibility map has at most 131,456.
const UNNAMED_MIN: u64 = 131_456;

impl Chain {
    /// Adds a record. Returns by how much the memory of the links has changed, in bytes.
    fn add(&mut self, link: ChainLink, is_from_scratch: bool) -> i64 {
        let before = self.link_bytes() as i64;
        if is_from_scratch {
            self.links.clear();
            self.spilled = None;
            self.count = 0;
            // A hot page may have had thousands of records before.
            self.links.shrink_to(4);
            self.is_from_scratch = true;
        }
        self.links.push(link);
        self.count = self.count.saturating_add(1);
        self.link_bytes() as i64 - before
    }

    /// The memory of the links, in bytes.
    pub(super) fn link_bytes(&self) -> u64 {
        (self.links.capacity() * size_of::<ChainLink>()) as u64
    }
}

impl ForkChanges {
    /// Adds a record to the chain of a page. If it makes the page from scratch, earlier records are forgotten. Returns by
    /// how much the memory of the fork has changed, in bytes.
    pub(super) fn add(&mut self, block: BlockNo, link: ChainLink, is_from_scratch: bool) -> i64 {
        // A truncation doesn't add the map, or the page, that it would clear bits of.
        if link.part != Part::TruncatedMap {
            self.end = self.end.max(block.saturating_add(1));
            self.exists = Some(true);
        }
        let (pages, mut links) = (self.pages.bytes() as i64, 0);
        self.pages.change(block, |chain| links = chain.add(link, is_from_scratch));
        self.pages.bytes() as i64 - pages + links
    }

    /// The fork was created (true) or removed (false).
    pub(super) fn set_exists(&mut self, exists: bool) {
        self.exists = Some(exists);
    }

    /// The fork was cut off. Returns the memory that this has freed, in bytes.
    pub(super) fn cut(&mut self, length: BlockNo) -> u64 {
        let (pages, mut links) = (self.pages.bytes(), 0);
        self.pages.cut(length, |chain| links += chain.link_bytes());
        self.end = self.end.min(length);
        let void_from = self.cut.map_or(length, |cut| cut.void_from.min(length));
        self.cut = Some(Cut { length, void_from });
        pages - self.pages.bytes() + links
    }

    /// What the log says about a fork that was in a dropped database.
    pub(super) const fn of_dropped() -> Self {
        let cut = Some(Cut { length: 0, void_from: 0 });
        Self { pages: PageTable::EMPTY, end: 0, cut, exists: Some(false) }
    }

    /// All chains, by block.
    pub(super) fn chains(&self) -> impl Iterator<Item = &Chain> {
        self.pages.values()
    }

    /// All chains, by block.
    pub(super) fn chains_mut(&mut self) -> impl Iterator<Item = &mut Chain> {
        self.pages.values_mut()
    }

    /// The number of pages that have a chain.
    pub(super) fn page_count(&self) -> usize {
        self.pages.len()
    }

    /// The chain of a page.
    pub(super) fn chain(&self, block: BlockNo) -> Option<&Chain> {
        self.pages.get(block)
    }

    /// The first block at or after `block` whose contents are not those of the file.
    pub(super) fn next_changed(&self, block: BlockNo) -> Option<BlockNo> {
        let chain = self.pages.blocks_from(block).next();
        let void = self.cut.map(|cut| cut.void_from.max(block));
        match (chain, void) {
            (Some(chain), Some(void)) => Some(chain.min(void)),
            (chain, void) => chain.or(void),
        }
    }

    /// Where the contents of a block are, if the file has it.
    pub(crate) fn source(&self, block: BlockNo) -> PageSource {
        match self.next_changed(block) {
            Some(changed) if changed == block => PageSource::Log,
            Some(changed) => PageSource::File { blocks: changed - block },
            None => PageSource::File { blocks: BlockNo::MAX },
        }
    }

    /// Whether the file's contents at `block` mean nothing.
    pub(super) fn is_void(&self, block: BlockNo) -> bool {
        self.cut.is_some_and(|cut| block >= cut.void_from)
    }

    /// The fork's length, if the file has `in_file` blocks, or doesn't exist. `None` if the fork
    /// doesn't exist. Impossible blocks don't count.
    pub(super) fn length(&self, in_file: Option<BlockNo>) -> Option<BlockNo> {
        match (self.exists, in_file) {
            (Some(false), _) | (None, None) => None,
            _ => Some(self.reach(in_file).length),
        }
    }

    /// The first block that the fork can't have although a record names it.
    pub(super) fn impossible(&self, in_file: Option<BlockNo>) -> Option<BlockNo> {
        self.length(in_file)?;
        self.reach(in_file).impossible
    }

    /// How long the fork can be. A relation grows block by block, and each block that is used gets
    /// into the log, so only some blocks are in neither the file nor the log: those that a server has
    /// added in advance. A hash index doubles in one step. A longer gap comes from a record that is
    /// wrong, and would make a relation of terabytes.
    fn reach(&self, in_file: Option<BlockNo>) -> Reach {
        let file = in_file.unwrap_or(0);
        let base = self.cut.map_or(file, |cut| cut.void_from.min(file));
        let wanted = self.cut.map_or(file, |cut| cut.length).max(self.end).max(base);
        let known = u64::from(base) + self.pages.len() as u64;
        let unnamed_max = UNNAMED_MIN + 2 * known;
        if u64::from(wanted) <= u64::from(base) + unnamed_max {
            return Reach { length: wanted, impossible: None };
        }
        let (mut length, mut unnamed) = (base, 0);
        let mut impossible = None;
        for block in self.pages.blocks_from(base) {
            unnamed += u64::from(block - length);
            if unnamed > unnamed_max {
                impossible = Some(block);
                break;
            }
            length = block.saturating_add(1);
        }
        let cut = self.cut.map_or(0, |cut| cut.length);
        // A server ignores a truncation to more blocks than there are.
        if unnamed + u64::from(cut.saturating_sub(length)) <= unnamed_max {
            length = length.max(cut);
        }
        Reach { length, impossible }
    }

    /// Whether the log has created (true) or removed (false) the fork last.
    pub(crate) fn exists(&self) -> Option<bool> {
        self.exists
    }
}
