//! **The split point**: how many entries stay on the left page.
//!
//! Both halves become equally full. On the last page of a level, where new keys are often the greatest, the left half becomes fuller:
//! 90 % of a leaf, and 70 % of a page above (`fillfactor`). A simpler rule than that of PostgreSQL's `nbtsplitloc.c`, which also
//! looks for a point nearby with a shorter separator.

use trunkline_format::btree::SPECIAL;
use trunkline_format::page::{HEADER_SIZE, LINE_POINTER_SIZE};

/// The bytes of a page for entries and their line pointers.
const SPACE: usize = (SPECIAL - HEADER_SIZE) as usize;

const POINTER: usize = LINE_POINTER_SIZE as usize;

/// The row at the end of a separator, and the first downlink of a page, which has no key.
const ROW: usize = 8;
const FIRST_DOWNLINK: usize = 8;

/// Default fill factors, in percent.
const LEAF_FILL: usize = 90;
const INNER_FILL: usize = 70;

/// A page that is split.
#[derive(Clone, Copy, Debug)]
pub(super) struct PageShape {
    pub(super) is_leaf: bool,
    /// The size of its high key in bytes, unless it is the last page of its level.
    pub(super) high_key: Option<usize>,
}

/// The number of entries that stay on the left page, at least 1 and less than all. `sizes` are the sizes of all entries in bytes,
/// with the new one. `None` if there is no such number, because entries are too long.
pub(super) fn split_point(shape: PageShape, sizes: &[usize]) -> Option<usize> {
    let used = |size: usize| size.next_multiple_of(8) + POINTER;
    let total: usize = sizes.iter().copied().map(used).sum();
    let right_high = shape.high_key.map_or(0, used);
    let fill = match shape {
        PageShape { high_key: Some(_), .. } => 50,
        PageShape { is_leaf: true, .. } => LEAF_FILL,
        PageShape { is_leaf: false, .. } => INNER_FILL,
    };
    let (mut left, mut best) = (0, None);
    for (at, pair) in (1..).zip(sizes.windows(2)) {
        let [last_left, first_right] = [pair[0], pair[1]].map(used);
        left += last_left;
        // A separator may need a row. The first downlink on the right loses its key.
        let (row, lost) = match shape.is_leaf {
            true => (ROW, 0),
            false => (0, first_right.saturating_sub(used(FIRST_DOWNLINK))),
        };
        let left_free = SPACE.checked_sub(left + first_right + row);
        let right_free = SPACE.checked_sub(total - left - lost + right_high);
        let (Some(left_free), Some(right_free)) = (left_free, right_free) else { continue };
        let distance = (left_free * fill).abs_diff(right_free * (100 - fill));
        if best.is_none_or(|(least, _)| distance < least) {
            best = Some((distance, at));
        }
    }
    best.map(|(_, at)| at)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEAF: PageShape = PageShape { is_leaf: true, high_key: Some(16) };
    const LAST_LEAF: PageShape = PageShape { is_leaf: true, high_key: None };
    const LAST_INNER: PageShape = PageShape { is_leaf: false, high_key: None };

    #[test]
    fn halves_are_as_full_as_they_should_be() {
        let sizes = [16; 400];
        let share = |shape| split_point(shape, &sizes).expect("a point") * 20 * 100 / SPACE;
        assert!((47..=50).contains(&share(LEAF)), "{}", share(LEAF));
        assert!((88..=90).contains(&share(LAST_LEAF)), "{}", share(LAST_LEAF));
        assert!((67..=70).contains(&share(LAST_INNER)), "{}", share(LAST_INNER));
    }

    #[test]
    fn the_longest_entries_can_be_split() {
        let most = trunkline_format::index_tuple::ENTRY_MAX;
        for shape in [LEAF, LAST_LEAF, PageShape { high_key: Some(most + 8), ..LEAF }] {
            for at in 0..4 {
                let mut sizes = [most; 4];
                if shape.high_key.is_some_and(|high| high > most) {
                    sizes[at] = 16;
                }
                let point = split_point(shape, &sizes);
                assert!(point.is_some(), "{shape:?}, {sizes:?}");
            }
        }
        assert_eq!(split_point(LEAF, &[8000, 8000]), None);
        assert_eq!(split_point(LEAF, &[16]), None);
    }
}
