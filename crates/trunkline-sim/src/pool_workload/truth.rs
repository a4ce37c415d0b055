//! What the files hold, and what a buffer may show of it: the oracle of the pool's workload.
//!
//! Every page is a sound heap page made from its file and block, so a page in the wrong place is
//! noticed at once. What a buffer shows differs from the file only where a bit was wrong when it was
//! read, and then in exactly the way that the reader's policy asks for:
//!
//! ```text
//!   bit right                                   Right      policy zero    Zeros
//!   bit wrong, policy ignore, header sane       Flipped    no policy      nothing: an error
//! ```

use trunkline_engine::pool::Policy;
use trunkline_format::{BLOCK_SIZE, BlockNo, HeapPageBuilder, PageBytes, verify_page};
use trunkline_sample::push_account;

/// One relation of the workload; its number is its place among them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape {
    /// Which pool it is read through: 0 shared, 1 local.
    pub(super) pool: usize,
    /// Blocks that it always has.
    pub(super) floor: BlockNo,
    /// Blocks that it has at most, and at the start.
    pub(super) blocks: BlockNo,
}

/// Relations: two that stay, one whose end moves, and two temporary ones.
pub(super) const SHAPES: [Shape; 5] = [
    Shape { pool: 0, floor: 150, blocks: 150 },
    Shape { pool: 0, floor: 20, blocks: 20 },
    Shape { pool: 0, floor: 16, blocks: 48 },
    Shape { pool: 1, floor: 80, blocks: 80 },
    Shape { pool: 1, floor: 12, blocks: 12 },
];

/// The relation of [`SHAPES`] whose end moves.
pub(super) const MOVING: usize = 2;

/// What a valid buffer shows of its block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shown {
    /// The page as it is in the file.
    Right,
    /// Zeros, since it was read damaged under `zero_damaged_pages`.
    Zeros,
    /// The damaged page, under `ignore_checksum_failure`: a bit of this byte is wrong.
    Flipped(usize),
}

/// The pages of all relations.
pub(super) struct Truth {
    files: Vec<Vec<PageBytes>>,
}

impl std::fmt::Debug for Truth {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Truth({} files)", self.files.len())
    }
}

impl Truth {
    pub(super) fn new() -> Self {
        let page = |relation: usize, block: BlockNo| {
            let mut page = HeapPageBuilder::new(block);
            // No two pages have an account in common.
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

    /// The bytes of blocks of a relation's file.
    pub(super) fn bytes(&self, relation: usize, first: BlockNo, end: BlockNo) -> Vec<u8> {
        self.files[relation][first as usize..end as usize].as_flattened().to_vec()
    }

    /// Whether a buffer shows what it should.
    pub(super) fn is(&self, shown: Shown, relation: usize, block: BlockNo, page: &[u8]) -> bool {
        let right = self.page(relation, block);
        match shown {
            Shown::Right => right[..] == *page,
            Shown::Zeros => page.len() == BLOCK_SIZE && page.iter().all(|&byte| byte == 0),
            Shown::Flipped(at) => flipped(right, at)[..] == *page,
        }
    }

    /// What becomes of a page that is read with a wrong bit in byte `at`.
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

/// What becomes of a damaged page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Damage {
    /// The checksum happens to be right all the same: one page in 65,536.
    Unnoticed,
    /// It is used as it is.
    Ignored,
    /// It is used as zeros.
    Zeroed,
    /// It is an error.
    Refused,
}

/// As the simulated disk damages it: which bit of the byte goes by its position.
fn flipped(page: &PageBytes, at: usize) -> PageBytes {
    let mut page = *page;
    page[at] ^= 1 << (at % 8);
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oracle_tells_pages_apart() {
        let truth = Truth::new();
        assert!(truth.is(Shown::Right, 0, 7, truth.page(0, 7)));
        assert!(!truth.is(Shown::Right, 0, 7, truth.page(0, 8)), "the neighbour's");
        assert!(!truth.is(Shown::Right, 0, 7, truth.page(1, 7)), "another file's");
        assert!(!truth.is(Shown::Right, 0, 7, &[0; BLOCK_SIZE]));
        assert!(truth.is(Shown::Zeros, 0, 7, &[0; BLOCK_SIZE]));
        assert!(!truth.is(Shown::Zeros, 0, 7, truth.page(0, 7)));
        let bad = flipped(truth.page(0, 7), 4000);
        assert!(truth.is(Shown::Flipped(4000), 0, 7, &bad));
        assert!(!truth.is(Shown::Right, 0, 7, &bad));
    }

    #[test]
    fn damage_ends_as_the_policy_says() {
        let truth = Truth::new();
        let policy = |zero_damaged_pages, ignore_checksum_failure| Policy {
            zero_damaged_pages,
            ignore_checksum_failure,
        };
        let end = |at, policy| truth.damaged(0, 3, at, policy);
        assert_eq!(end(5000, policy(false, false)), Damage::Refused);
        assert_eq!(end(5000, policy(false, true)), Damage::Ignored);
        assert_eq!(end(5000, policy(true, false)), Damage::Zeroed);
        assert_eq!(end(5000, policy(true, true)), Damage::Ignored);
        // Flags that do not exist: a bad header, which nobody ignores.
        assert_eq!(end(11, policy(false, true)), Damage::Refused);
        assert_eq!(end(11, policy(true, true)), Damage::Zeroed);
    }
}
