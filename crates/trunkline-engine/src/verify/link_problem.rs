//! Contradictions between an index's pages.
//!
//! Each of these pages is valid by itself. The contradiction only shows when we compare a page with
//! its siblings and its parent. If a contradiction ends the walk, it's a [`BtreeProblem`] instead.
//!
//! [`BtreeProblem`]: crate::btree::BtreeProblem

use thiserror::Error;
use trunkline_format::BlockNo;

/// How a page of an index contradicts another page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum LinkProblem {
    /// The left link does not point to the left sibling.
    #[error("left link points to block {found}, expected {expected}")]
    Left {
        /// The target of the left link; 0 for none.
        found: BlockNo,
        /// The left sibling.
        expected: BlockNo,
    },
    /// No downlink points to the page. Searches still find it through its left sibling, but more
    /// slowly.
    #[error("no downlink points to this page")]
    NoDownlink,
    /// A downlink points to a page that is not the next page of its level.
    #[error(
        "entry {item} of block {parent} points to block {child}, which is not the next of its level"
    )]
    WrongDownlink {
        /// The parent page.
        parent: BlockNo,
        /// The line pointer of the downlink.
        item: u16,
        /// The target of the downlink.
        child: BlockNo,
    },
    /// The downlink's key differs from the left sibling's high key. Searches for keys between the
    /// two then descend to the wrong page.
    #[error(
        "key of entry {item} of block {parent} differs from the high key of the page to the left"
    )]
    Separator {
        /// The parent page.
        parent: BlockNo,
        /// The line pointer of the downlink.
        item: u16,
    },
    /// The first entry is below the left sibling's high key, so a search does not find it.
    #[error("first entry is below the high key of block {left} to the left")]
    BelowLeft {
        /// The left sibling.
        left: BlockNo,
    },
    /// The root flag of the page contradicts the metapage.
    #[error("root flag contradicts the metapage, which has root {expected}")]
    Root {
        /// The root in the metapage.
        expected: BlockNo,
    },
    /// The metapage's fast root, where searches start, isn't the only page of its level. Searches
    /// then miss the level's other pages.
    #[error("fast root is block {found}, which is not the only page of level {level}")]
    FastRoot {
        /// The fast root in the metapage.
        found: BlockNo,
        /// Its level in the metapage.
        level: u32,
    },
}
