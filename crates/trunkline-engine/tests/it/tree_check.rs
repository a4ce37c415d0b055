//! Walks a whole B-tree, checks what holds between its pages, and returns its entries in order.

use trunkline_engine::btree::{Index, LevelWalk};
use trunkline_engine::pool::Backend;
use trunkline_engine::read_stream::StreamOptions;
use trunkline_format::btree::{BtreePage, Entry};
use trunkline_format::{BlockNo, Tid};

/// An entry: the payloads of its columns, and its row.
pub(crate) type IndexEntry = (Vec<Option<Vec<u8>>>, Tid);

/// What a walk has found.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    /// The entries in order.
    pub(crate) entries: Vec<IndexEntry>,
    /// The number of levels.
    pub(crate) height: u32,
    /// The number of splits that are not finished.
    pub(crate) unfinished: usize,
}

/// Checks each page of a tree, and compares it with its left sibling and its parent.
pub(crate) fn walk(index: &Index, backend: &mut Backend) -> Tree {
    let (meta, layout) = (index.meta(backend).expect("sound"), index.layout());
    assert_eq!((meta.fast_root, meta.fast_level), (meta.root, meta.level));
    let mut tree = Tree::default();
    if meta.root == 0 {
        return tree;
    }
    tree.height = meta.level + 1;
    for level in (0..=meta.level).rev() {
        let options = StreamOptions::default();
        let mut walk = LevelWalk::of_level(index, backend, level, options).expect("begins");
        let (mut left, mut left_high): (Option<BlockNo>, Vec<u8>) = (None, Vec::new());
        let mut is_right_half = false;
        while let Some(next) = walk.next(backend).expect("sound") {
            let (block, page) = (next.block, BtreePage::parse(next.page).expect("sound"));
            page.check(true).expect("sound");
            layout.check(&page, true).expect("in order");
            assert_eq!(page.left(), left, "{block}");
            let is_left_half = page.is_split_incomplete();
            assert!(page.is_root() == (block == meta.root) || is_left_half, "{block}");
            match next.downlink {
                None => assert!(block == meta.root || is_right_half, "{block}"),
                Some(downlink) if left_high.is_empty() => assert!(downlink.bound.is_empty()),
                Some(downlink) => {
                    let bound = Entry::of_separator(1, &downlink.bound).expect("sound");
                    let high = Entry::of_separator(1, &left_high).expect("sound");
                    assert_eq!(layout.same_separator(&bound, &high, true), Ok(true), "{block}");
                }
            }
            if page.is_leaf() {
                tree.entries
                    .extend(page.entries().map(|entry| decode(index, &entry.expect("sound"))));
            }
            left_high = page
                .high_key()
                .expect("sound")
                .map_or(Vec::new(), |_| page.item(1).expect("sound").to_vec());
            left = Some(block);
            is_right_half = is_left_half;
            tree.unfinished += usize::from(is_left_half);
        }
        assert_eq!(walk.unmatched_downlink(), None);
    }
    tree
}

fn decode(index: &Index, entry: &Entry<'_>) -> IndexEntry {
    let columns = index.layout().columns();
    let values = entry.attributes(columns).zip(columns).map(|(value, column)| {
        let mut room = Vec::new();
        value.expect("sound").map(|it| column.payload(it, &mut room).expect("sound").to_vec())
    });
    (values.collect(), entry.first_row().expect("a leaf entry"))
}
