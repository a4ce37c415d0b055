//! Walks a whole B-tree, checks what holds between its pages, and returns its entries in order.

use trunkline_engine::btree::{Index, LevelWalk};
use trunkline_engine::pool::Backend;
use trunkline_engine::read_stream::StreamOptions;
use trunkline_format::btree::{BtreePage, Entry};
use trunkline_format::{BlockNo, PageBytes, Tid};

/// An entry: the payloads of its columns, and its row.
pub(crate) type Found = (Vec<Option<Vec<u8>>>, Tid);

/// The entries of a tree in order, and its height. Each page is checked, and compared with its left sibling and its parent.
pub(crate) fn entries(index: &Index, backend: &mut Backend) -> (Vec<Found>, u32) {
    let (meta, layout) = (index.meta(backend).expect("sound"), index.layout());
    assert_eq!((meta.fast_root, meta.fast_level), (meta.root, meta.level));
    let mut found = Vec::new();
    if meta.root == 0 {
        return (found, 0);
    }
    for level in (0..=meta.level).rev() {
        let options = StreamOptions::default();
        let mut walk = LevelWalk::of_level(index, backend, level, options).expect("begins");
        let (mut left, mut left_high): (Option<BlockNo>, Vec<u8>) = (None, Vec::new());
        while let Some(next) = walk.next(backend).expect("sound") {
            let (block, page) = (next.block, BtreePage::parse(next.page).expect("sound"));
            page.check(true).expect("sound");
            layout.check(&page, true).expect("in order");
            assert_eq!((page.left(), page.is_split_incomplete()), (left, false), "{block}");
            assert_eq!(page.is_root(), block == meta.root, "{block}");
            match next.downlink {
                None => assert_eq!(block, meta.root),
                Some(downlink) if left_high.is_empty() => assert!(downlink.bound.is_empty()),
                Some(downlink) => {
                    let bound = Entry::of_separator(1, &downlink.bound).expect("sound");
                    let high = Entry::of_separator(1, &left_high).expect("sound");
                    assert_eq!(layout.same_separator(&bound, &high, true), Ok(true), "{block}");
                }
            }
            if page.is_leaf() {
                found.extend(page.entries().map(|entry| decode(index, &entry.expect("sound"))));
            }
            left_high = page
                .high_key()
                .expect("sound")
                .map_or(Vec::new(), |_| page.item(1).expect("sound").to_vec());
            left = Some(block);
        }
        assert_eq!(walk.unmatched_downlink(), None);
    }
    (found, meta.level + 1)
}

fn decode(index: &Index, entry: &Entry<'_>) -> Found {
    let columns = index.layout().columns();
    let values = entry.attributes(columns).zip(columns).map(|(value, column)| {
        let mut room = Vec::new();
        value.expect("sound").map(|it| column.payload(it, &mut room).expect("sound").to_vec())
    });
    (values.collect(), entry.first_row().expect("a leaf entry"))
}

/// All pages of a relation, without checksums: they are set when a page is written.
pub(crate) fn pages(index: &Index, backend: &mut Backend) -> Vec<PageBytes> {
    let relation = index.relation();
    let blocks = 0..relation.blocks().expect("it exists");
    let pages = blocks.map(|block| {
        let pin = backend.read(relation, block).expect("valid");
        let mut page = *backend.read_lock(pin.page()).expect("locked");
        page[8..10].fill(0);
        page
    });
    pages.collect()
}
