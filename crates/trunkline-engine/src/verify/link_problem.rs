//! Contradictions between an index's pages.
//!
//! The pages are valid individually, but a page contradicts its siblings or its parent. If the
//! contradiction makes it impossible to continue the walk, we report a [`BtreeProblem`] instead.
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
    /// No downlink points to the page. Searches can still reach the page through its left sibling,
    /// but they are slower.
    #[error("no downlink points to this page")]
    NoDownlink,
    /// A downlink points to a page that isn't the next page on its level.
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
    /// The key of the downlink is different from the high key of the left sibling. A search for a
    /// key that lies between the two descends to the wrong page.
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
    /// The fast root in the metapage, where searches start, isn't the only page on its level.
    /// Searches can therefore miss keys on the other pages of that level.
    #[error("fast root is block {found}, which is not the only page of level {level}")]
    FastRoot {
        /// The fast root in the metapage.
        found: BlockNo,
        /// Its level in the metapage.
        level: u32,
    },
}
