//! **Page kind**: determines which access method a page belongs to by looking at its special space.
//!
//! The page header does not say which access method the page belongs to. However, most index access
//! methods store a page ID at the end of the special space, so that tools can tell them apart. The
//! size of the special space also differs:
//!
//! ```text
//!   special space   signature                                   kind
//!   none            (tables)                                    Heap
//!   8 bytes         u64              0x1717                     Sequence
//!                   u16 at its end   0xF091 to 0xF093           Brin
//!                                    0xFF82                     SpGist
//!                                    a set of flags, to 0x01FF  Gin
//!   16 bytes        u16 at its end   0xFF80                     Hash
//!                                    0xFF81                     Gist
//!                                    a cycle id, to 0xFF7F      Btree
//!   else            (extensions)                                Other
//! ```
//!
//! There is one ambiguity. An inner GIN page whose right sibling happens to be block 0x1717 looks
//! just like a sequence page. When we check a page that looks like a sequence, we must therefore
//! also accept any valid inner GIN page.
//!
//! If a page is damaged, we may mistake it for a page of another kind. In a cluster with checksums,
//! the damage is detected before we get here.
//!
//! Mirrors the page identifiers in PostgreSQL's `access/hash.h`, `gist.h`, `spgist_private.h`,
//! `brin_page.h` and `nbtree.h`.

use crate::ids::{BLOCK_SIZE, Fork, PageBytes};
use crate::little_endian::read_at;
use crate::page::PageHeader;

/// The access method of a page.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum PageKind {
    /// A free space map or visibility map page, with its data between `pd_lower` and `pd_upper`.
    Map,
    /// A heap page. Its items are tuples.
    Heap,
    /// A sequence, which has one page with one tuple.
    Sequence,
    /// A B-tree index.
    Btree,
    /// A hash index.
    Hash,
    /// A GiST index.
    Gist,
    /// An SP-GiST index.
    SpGist,
    /// A GIN index.
    Gin,
    /// A BRIN (block range) index.
    Brin,
    /// An unknown access method, for example an extension's, or a damaged page.
    Other,
}

impl PageKind {
    /// Determines the kind of `page`, which belongs to fork `fork` and must not be new.
    pub fn of(page: &PageBytes, fork: Fork) -> Self {
        if matches!(fork, Fork::Fsm | Fork::Vm) {
            return Self::Map;
        }
        let start = usize::from(PageHeader::parse(page).special);
        let signature = read_at::<u16>(page, BLOCK_SIZE - 2).unwrap_or(0);
        match BLOCK_SIZE.checked_sub(start) {
            Some(0) => Self::Heap,
            Some(8) if read_at::<u64>(page, start) == Some(0x1717) => Self::Sequence,
            Some(8) => match signature {
                0xF091..=0xF093 => Self::Brin,
                0xFF82 => Self::SpGist,
                0..=0x01FF => Self::Gin,
                _ => Self::Other,
            },
            Some(16) => match signature {
                0xFF80 => Self::Hash,
                0xFF81 => Self::Gist,
                0..=0xFF7F => Self::Btree,
                _ => Self::Other,
            },
            _ => Self::Other,
        }
    }

    /// Returns true if there are line pointers after the header of `page`, which must be a page of
    /// this kind.
    ///
    /// Index pages of some kinds don't have any line pointers. These are metapages, bitmap pages,
    /// compressed posting lists and deleted pages.
    pub fn has_line_pointers(self, page: &PageBytes) -> bool {
        // The distance of the flags from the end of the page, and the flags that are set on pages
        // without line pointers.
        let (from_end, otherwise) = match self {
            Self::Heap | Self::Sequence => return true,
            Self::Map | Self::Other => return false,
            // Deleted, meta.
            Self::Btree => (4, 0x0004 | 0x0008),
            // Bitmap, meta.
            Self::Hash => (4, 0x0004 | 0x0008),
            // Deleted.
            Self::Gist => (4, 0x0002),
            // Meta.
            Self::SpGist => (8, 0x0001),
            // Posting tree, deleted, meta.
            Self::Gin => (2, 0x0001 | 0x0004 | 0x0008),
            Self::Brin => return read_at::<u16>(page, BLOCK_SIZE - 2) == Some(0xF093),
        };
        read_at::<u16>(page, BLOCK_SIZE - from_end).is_some_and(|flags| flags & otherwise == 0)
    }
}
