//! The model of a pool workload: what the files contain, and what a buffer may contain.
//!
//! Every page is a valid heap page built from its relation and block number, so we notice if a page
//! is in the wrong buffer. Clients always undo their changes to a page. A buffer can therefore
//! differ from the file only if a bit was flipped during the read, and then the outcome depends on
//! the reader's policy:
//! ```text
//!   no wrong bit                                  Original
//!   wrong bit, checksum ignored, header valid     Flipped
//!   wrong bit, damaged pages zeroed               Zeros
//!   wrong bit, no policy                          an error, and no page
//! ```

use crate::matrix;
use trunkline_engine::pool::Policy;
use trunkline_engine::storage::RelationLocator;
use trunkline_format::{BLOCK_SIZE, BlockNo, HeapPageBuilder, PageBytes, verify_page};
use trunkline_sample::push_account;

/// A relation of the workload. Its number is its index in [`SHAPES`].
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape {
    /// The pool it is read through: 0 is the shared pool, 1 the local pool.
    pub(super) pool: usize,
    /// Minimum length in blocks.
    pub(super) floor: BlockNo,
    /// Maximum length in blocks, which is also the initial length.
    pub(super) blocks: BlockNo,
}

/// Two relations of fixed length, one whose length varies, and two temporary relations.
pub(super) const SHAPES: [Shape; 5] = [
    Shape { pool: 0, floor: 150, blocks: 150 },
    Shape { pool: 0, floor: 20, blocks: 20 },
    Shape { pool: 0, floor: 16, blocks: 48 },
    Shape { pool: 1, floor: 80, blocks: 80 },
    Shape { pool: 1, floor: 12, blocks: 12 },
];

/// The relation whose length varies.
pub(super) const MOVING: usize = 2;

/// The locator of a workload relation.
pub(super) fn locator(relation: usize) -> RelationLocator {
    matrix::cluster::locator(relation as u32)
}

/// A relation's file name on the disk.
pub(super) fn name_of(relation: usize) -> String {
    format!("/sim/base/5/{}", locator(relation).relfilenode)
}

/// The contents of a valid buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Contents {
    /// The page as it is in the file.
    Original,
    /// Zeros, because the page was damaged and `zero_damaged_pages` is set.
    Zeros,
    /// The damaged page, because `ignore_checksum_failure` is set. This byte has a flipped bit.
    Flipped(usize),
}

/// All relations' pages.
pub(super) struct Model {
    files: Vec<Vec<PageBytes>>,
}

impl std::fmt::Debug for Model {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Model({} files)", self.files.len())
    }
}

impl Model {
    pub(super) fn new() -> Self {
        let page = |relation: usize, block: BlockNo| {
            let mut page = HeapPageBuilder::new(block);
            // No two pages have a row in common.
            let mut aid = (relation as i32 + 1) * 100_000 + block as i32 * 100;
            while push_account(&mut page, aid, relation as i32, block as i32).is_ok() {
                aid += 1;
            }
            page.finish(true)
        };
        let pages = |(relation, shape): (usize, &Shape)| {
            (0..shape.blocks).map(|block| page(relation, block)).collect()
        };
        Self { files: SHAPES.iter().enumerate().map(pages).collect() }
    }

    pub(super) fn page(&self, relation: usize, block: BlockNo) -> &PageBytes {
        &self.files[relation][block as usize]
    }

    /// The contents of a block range, as in the file.
    pub(super) fn bytes(&self, relation: usize, first: BlockNo, end: BlockNo) -> Vec<u8> {
        self.files[relation][first as usize..end as usize].as_flattened().to_vec()
    }

    /// Whether a page has these contents.
    pub(super) fn matches(
        &self,
        contents: Contents,
        relation: usize,
        block: BlockNo,
        page: &[u8],
    ) -> bool {
        let right = self.page(relation, block);
        match contents {
            Contents::Original => right[..] == *page,
            Contents::Zeros => page.len() == BLOCK_SIZE && page.iter().all(|&byte| byte == 0),
            Contents::Flipped(at) => flipped(right, at)[..] == *page,
        }
    }

    /// Determines what the engine should do with a page that was read with a flipped bit in byte
    /// `at`. We duplicate the engine's rules here, using [`verify_page`] and the reader's policy.
    pub(super) fn damaged(
        &self,
        relation: usize,
        block: BlockNo,
        at: usize,
        policy: Policy,
    ) -> Damage {
        let page = flipped(self.page(relation, block), at);
        let verdict = verify_page(&page, block, true);
        if verdict.is_valid() {
            Damage::Unnoticed
        } else if policy.ignore_checksum_failure && verdict.is_valid_but_for_checksum() {
            Damage::Ignored
        } else if policy.zero_damaged_pages {
            Damage::Zeroed
        } else {
            Damage::Refused
        }
    }
}

/// What happens to a damaged page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Damage {
    /// The checksum still matches by chance, which happens for one damaged page in 65,536.
    Unnoticed,
    /// The damaged page is used unchanged.
    Ignored,
    /// Zeros are used instead of the page.
    Zeroed,
    /// The read fails.
    Refused,
}

/// Flips a bit as the simulated disk does: the byte's offset determines the bit.
fn flipped(page: &PageBytes, at: usize) -> PageBytes {
    let mut page = *page;
    page[at] ^= 1 << (at % 8);
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_distinguishes_pages() {
        let model = Model::new();
        assert!(model.matches(Contents::Original, 0, 7, model.page(0, 7)));
        assert!(
            !model.matches(Contents::Original, 0, 7, model.page(0, 8)),
            "the neighbouring block"
        );
        assert!(!model.matches(Contents::Original, 0, 7, model.page(1, 7)), "another file");
        assert!(!model.matches(Contents::Original, 0, 7, &[0; BLOCK_SIZE]));
        assert!(model.matches(Contents::Zeros, 0, 7, &[0; BLOCK_SIZE]));
        assert!(!model.matches(Contents::Zeros, 0, 7, model.page(0, 7)));
        let bad = flipped(model.page(0, 7), 4000);
        assert!(model.matches(Contents::Flipped(4000), 0, 7, &bad));
        assert!(!model.matches(Contents::Original, 0, 7, &bad));
    }

    #[test]
    fn the_policy_decides_about_damaged_pages() {
        let model = Model::new();
        let policy = |zero_damaged_pages, ignore_checksum_failure| Policy {
            zero_damaged_pages,
            ignore_checksum_failure,
        };
        let end = |at, policy| model.damaged(0, 3, at, policy);
        assert_eq!(end(5000, policy(false, false)), Damage::Refused);
        assert_eq!(end(5000, policy(false, true)), Damage::Ignored);
        assert_eq!(end(5000, policy(true, false)), Damage::Zeroed);
        assert_eq!(end(5000, policy(true, true)), Damage::Ignored);
        // Undefined flag bits make the header invalid, which no policy ignores.
        assert_eq!(end(11, policy(false, true)), Damage::Refused);
        assert_eq!(end(11, policy(true, true)), Damage::Zeroed);
    }
}
