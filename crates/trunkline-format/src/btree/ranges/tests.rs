//! Compares scans of key ranges with what the conditions mean, on random keys with many duplicates,
//! nulls and sort orders.

use super::super::tests::{entry, page, tid};
use super::super::{BtreePage, Children, Comparison, Fault, KeyLayout, LeafEnd, Step};
use super::*;
use crate::Align;
use crate::deform::Attribute;
use crate::ids::{BlockNo, PageBytes, Tid};
use crate::test_data::XorShift;

/// A row of small integers or nulls.
type Row = Vec<Option<i32>>;

fn column(order: Order, descending: bool, nulls_first: bool) -> KeyColumn {
    let attribute = Attribute { len: 4, align: Align::Int };
    KeyColumn { attribute, order, descending, nulls_first }
}

fn value(number: Option<i32>) -> KeyValue {
    number.map(|number| Box::from(number.to_le_bytes()))
}

/// What SQL says about a row, straight from the definition of each condition.
fn holds(condition: &Condition, row: &Row) -> bool {
    let number = |value: &KeyValue| {
        let bytes = value.as_deref()?.first_chunk()?;
        Some(i32::from_le_bytes(*bytes))
    };
    match condition {
        Condition::Compare { column, comparison, value } => match (row[*column], number(value)) {
            (Some(found), Some(wanted)) => comparison.holds(found.cmp(&wanted)),
            _ => false,
        },
        Condition::AnyOf { column, values } => {
            row[*column].is_some() && values.iter().any(|value| number(value) == row[*column])
        }
        Condition::IsNull { column } => row[*column].is_none(),
        Condition::IsNotNull { column } => row[*column].is_some(),
        Condition::Row { comparison, values } => {
            for (at, value) in values.iter().enumerate() {
                let (Some(found), Some(wanted)) = (row[at], number(value)) else { return false };
                if found != wanted || at + 1 == values.len() {
                    return comparison.holds(found.cmp(&wanted));
                }
            }
            false
        }
    }
}

fn random_value(random: &mut XorShift) -> Option<i32> {
    (random.below(8) > 0).then(|| random.below(9) as i32 - 1)
}

fn random_comparison(random: &mut XorShift) -> Comparison {
    use Comparison::*;
    [Less, LessOrEqual, Equal, GreaterOrEqual, Greater][random.below(5)]
}

fn random_condition(random: &mut XorShift, columns: usize) -> Condition {
    let column = random.below(columns);
    match random.below(9) {
        0 => Condition::IsNull { column },
        1 => Condition::IsNotNull { column },
        2 | 3 => {
            let values = (0..random.below(5)).map(|_| value(random_value(random))).collect();
            Condition::AnyOf { column, values }
        }
        4 => {
            let comparison = match random_comparison(random) {
                Comparison::Equal => Comparison::Less,
                other => other,
            };
            let values = (0..=column).map(|_| value(random_value(random))).collect();
            Condition::Row { comparison, values }
        }
        _ => {
            let comparison = random_comparison(random);
            Condition::Compare { column, comparison, value: value(random_value(random)) }
        }
    }
}

/// An index in memory: leaves from left to right, and the pages above them. Block 0 is unused.
struct Tree {
    layout: KeyLayout,
    pages: Vec<PageBytes>,
    root: (BlockNo, u32),
    rows: Vec<Row>,
    orders_rows: bool,
}

fn bytes_of(row: &[Option<i32>], target: Tid, info: u16) -> Vec<u8> {
    let nulls = row.iter().any(Option::is_none);
    let mut key = Vec::new();
    if nulls {
        let bits = row.iter().enumerate().map(|(at, value)| u32::from(value.is_some()) << at);
        key.extend(bits.sum::<u32>().to_le_bytes());
        key.extend([0; 4]);
    }
    row.iter().flatten().for_each(|value| key.extend(value.to_le_bytes()));
    let size = (8 + key.len()).next_multiple_of(8) as u16;
    entry(target, size | info | if nulls { 0x8000 } else { 0 }, &key)
}

impl Tree {
    fn random(random: &mut XorShift) -> Self {
        let columns = 1 + random.below(3);
        let layout: Vec<KeyColumn> = (0..columns)
            .map(|_| column(Order::Int4, random.below(2) == 0, random.below(2) == 0))
            .collect();
        let count = random.below(60);
        let mut rows: Vec<Row> =
            (0..count).map(|_| (0..columns).map(|_| random_value(random)).collect()).collect();
        let compare = |one: &Row, other: &Row| {
            let pairs = layout.iter().zip(one.iter().zip(other));
            pairs.fold(Ordering::Equal, |known, (column, (one, other))| {
                let (one, other) = (value(*one), value(*other));
                known.then_with(|| {
                    column.compare(one.as_deref(), other.as_deref()).expect("integers")
                })
            })
        };
        rows.sort_by(compare);
        let orders_rows = random.below(4) > 0;
        let mut tree = Self {
            layout: KeyLayout::new(layout, columns),
            pages: vec![[0; 8192]],
            root: (0, 0),
            rows,
            orders_rows,
        };
        tree.build(random);
        tree
    }

    /// The separator between two neighbours, truncated as a server would do it.
    fn separator(&self, left: &Row, right: &Row, child: BlockNo, row: usize) -> Vec<u8> {
        if !self.orders_rows {
            return bytes_of(left, tid(child, 1), 0);
        }
        let differ = left.iter().zip(right).position(|(left, right)| left != right);
        match differ {
            Some(at) => {
                let info = tid(child, at as u16 + 1);
                bytes_of(&right[..=at], info, 0x2000)
            }
            None => {
                let mut bytes = bytes_of(left, tid(child, left.len() as u16 | 0x1000), 0x2000);
                let size = bytes.len() as u16 + 8;
                bytes.extend([0, 0, 0, 0, 0, 0]);
                bytes.extend((row as u16 + 1).to_le_bytes());
                let flags = u16::from_le_bytes([bytes[6], bytes[7]]) & 0xE000;
                bytes[6..8].copy_from_slice(&(size | flags).to_le_bytes());
                bytes
            }
        }
    }

    /// Builds the leaves, and then each level from the one below.
    fn build(&mut self, random: &mut XorShift) {
        // The first row of each page of the level, and the page's block.
        let mut level: Vec<(usize, BlockNo)> = Vec::new();
        let mut at = 0;
        let first_block = self.pages.len() as u32;
        while at < self.rows.len() || level.is_empty() {
            let end = (at + random.below(6)).min(self.rows.len());
            level.push((at, first_block + level.len() as u32));
            at = if end == at && random.below(3) > 0 { at + 1 } else { end };
            at = at.min(self.rows.len());
        }
        // Pages without rows can't have a separator of their own, except for a lonely root.
        level.dedup_by_key(|page| page.0);
        if self.rows.is_empty() {
            level.truncate(1);
        }
        level.retain(|page| page.0 < self.rows.len() || page.0 == 0);
        for (place, page) in level.iter_mut().enumerate() {
            page.1 = first_block + place as u32;
        }
        let mut number = 0;
        loop {
            let pages = self.level(&level, number);
            self.pages.extend(pages);
            if let [(_, root)] = level.as_slice() {
                self.root = (*root, number);
                return;
            }
            let next = self.pages.len() as u32;
            let fan = 2 + random.below(4);
            level =
                level.chunks(fan).zip(next..).map(|(chunk, block)| (chunk[0].0, block)).collect();
            number += 1;
        }
    }

    /// The pages of one level. Those above the leaves have all pages of the level below as children.
    fn level(&self, level: &[(usize, BlockNo)], number: u32) -> Vec<PageBytes> {
        let below: Vec<(usize, BlockNo)> = match number {
            0 => Vec::new(),
            _ => {
                // The last pages built are the level below, in order.
                let is_below = |block: &u32| {
                    let page = BtreePage::parse(&self.pages[*block as usize]).expect("sound");
                    page.level() == number - 1
                };
                let blocks = (1..self.pages.len() as u32).filter(is_below);
                blocks.map(|block| (self.first_row(block), block)).collect()
            }
        };
        let mut built = Vec::new();
        for (at, &(start, block)) in level.iter().enumerate() {
            let end = level.get(at + 1).map_or(self.rows.len(), |next| next.0);
            let mut items = Vec::new();
            if end < self.rows.len() {
                items.push(self.separator(&self.rows[end - 1], &self.rows[end], 0, end));
            }
            let children = below.iter().filter(|(first, _)| (start..end.max(1)).contains(first));
            for (place, &(first, child)) in children.enumerate() {
                items.push(match place {
                    0 => entry(tid(child, 0), 0x2008, &[]),
                    _ => self.separator(&self.rows[first - 1], &self.rows[first], child, first),
                });
            }
            if number == 0 {
                let rows =
                    (start..end).map(|row| bytes_of(&self.rows[row], tid(0, row as u16 + 1), 0));
                items.extend(rows);
            }
            let left = if at == 0 { 0 } else { block - 1 };
            let right = if at + 1 == level.len() { 0 } else { block + 1 };
            let flags = if number == 0 { 1 } else { 0 };
            built.push(page(left, right, number, flags, &items));
        }
        built
    }

    /// The first row below a page.
    fn first_row(&self, block: BlockNo) -> usize {
        let page = BtreePage::parse(&self.pages[block as usize]).expect("sound");
        let Ok(entry) = page.entry(page.first()) else { return 0 };
        match entry.child() {
            Some(child) => self.first_row(child),
            None => usize::from(entry.first_row().expect("a row").item) - 1,
        }
    }

    fn page(&self, block: BlockNo) -> BtreePage<'_> {
        BtreePage::parse(&self.pages[block as usize]).expect("sound")
    }

    /// The page on level 1 where a scan goes on, or the root if it is a leaf.
    fn parent(&self, ranges: &KeyRanges, from: &Cut) -> BlockNo {
        let (mut block, mut level) = self.root;
        while level > 1 {
            match ranges.step(&self.page(block), from).expect("sound") {
                Step::Right(right) => block = right,
                Step::Down(child) => (block, level) = (child, level - 1),
                Step::Here(_) => unreachable!("above the leaves"),
            }
        }
        block
    }

    /// The rows that a scan returns, the leaves that it visits, going from parent to parent, and how often
    /// it has descended again.
    fn scan(&self, ranges: &KeyRanges) -> (Vec<usize>, Vec<BlockNo>, usize) {
        let (mut rows, mut leaves, mut last) = (Vec::new(), Vec::new(), Vec::new());
        let mut descents = 0;
        let mut from = ranges.start();
        let level = self.root.1;
        // The prediction is ahead of the leaves.
        let mut ahead = from.clone();
        let mut parent = Some(self.parent(ranges, &from));
        while let Some(block) = parent {
            let page = self.page(block);
            let children = match level {
                0 => Children { blocks: vec![block], rest: None, skips: false },
                _ => ranges.children(&page, &ahead).expect("sound"),
            };
            for leaf in children.blocks {
                leaves.push(leaf);
                let page = self.page(leaf);
                let orders_rows = self.orders_rows;
                let each = |entry: &Entry<'_>| {
                    rows.extend(entry.rows().map(|tid| usize::from(tid.item) - 1));
                };
                match ranges.scan_leaf(&self.layout, &page, &from, orders_rows, &mut last, each) {
                    Ok(LeafEnd::Ended) => return (rows, leaves, descents),
                    Ok(LeafEnd::Goes { on, .. }) => from = on,
                    Err(fault) => panic!("{fault}"),
                }
            }
            parent = match ranges.direction() {
                Direction::Forward => page.right(),
                Direction::Backward => page.left(),
            };
            let Some(rest) = children.rest else { break };
            ahead = rest;
            if children.skips {
                descents += 1;
                parent = Some(self.parent(ranges, &ahead));
            }
        }
        (rows, leaves, descents)
    }
}

#[test]
fn scans_return_what_the_conditions_mean() {
    let mut random = XorShift(0x5CA9);
    let (mut scans, mut found_rows, mut skipped, mut nothing) = (0, 0, 0, 0);
    for _ in 0..120 {
        let tree = Tree::random(&mut random);
        let columns = tree.layout.keys().len();
        for _ in 0..12 {
            let count = random.below(4);
            let conditions: Vec<Condition> =
                (0..count).map(|_| random_condition(&mut random, columns)).collect();
            let expected: Vec<usize> = (0..tree.rows.len())
                .filter(|&row| conditions.iter().all(|condition| holds(condition, &tree.rows[row])))
                .collect();
            for direction in [Direction::Forward, Direction::Backward] {
                let ranges = KeyRanges::new(&tree.layout, &conditions, direction);
                let Some(ranges) = ranges.expect("integers") else {
                    assert_eq!(expected, [], "{conditions:?}");
                    nothing += 1;
                    continue;
                };
                let (mut rows, leaves, _) = tree.scan(&ranges);
                if direction == Direction::Backward {
                    rows.reverse();
                }
                assert_eq!(
                    rows, expected,
                    "{direction:?} {:?} {conditions:?} {:?}",
                    tree.layout, tree.rows
                );
                let all = (1..tree.pages.len() as u32).filter(|&block| tree.page(block).is_leaf());
                skipped += all.count() - leaves.len();
                found_rows += rows.len();
                scans += 1;
            }
        }
    }
    assert!(scans > 1500 && nothing > 100, "{scans} {nothing}");
    assert!(found_rows > scans && skipped > scans, "{found_rows} {skipped}");
}

#[test]
fn a_list_visits_only_the_leaves_of_its_values() {
    let layout = KeyLayout::new(vec![column(Order::Int4, false, false); 2], 2);
    let rows: Vec<Row> = (0..60).map(|row| vec![Some(row / 10), Some(row % 10)]).collect();
    let mut tree = Tree { layout, pages: vec![[0; 8192]], root: (0, 0), rows, orders_rows: true };
    tree.build(&mut XorShift(7));
    let leaves = |conditions: &[Condition]| {
        let ranges = KeyRanges::new(&tree.layout, conditions, Direction::Forward);
        let (rows, leaves, _) = tree.scan(&ranges.expect("usable").expect("not empty"));
        (rows, leaves.len())
    };
    let values = vec![value(Some(5)), value(Some(0)), value(None), value(Some(5))];
    let (rows, few) = leaves(&[
        Condition::AnyOf { column: 0, values },
        Condition::Compare { column: 1, comparison: Comparison::Equal, value: value(Some(3)) },
    ]);
    // An entry that is equal to a separator may be on either side of it.
    assert!(rows == [3, 53] && few <= 4, "{rows:?} {few}");
    // No condition on the first column: one leaf, or two neighbours, for each of its six values.
    let equal = Comparison::Equal;
    let (rows, some) =
        leaves(&[Condition::Compare { column: 1, comparison: equal, value: value(Some(3)) }]);
    assert_eq!(rows, [3, 13, 23, 33, 43, 53]);
    let (_, all) = leaves(&[]);
    assert!(some <= 12 && all > 15, "{some} of {all}");
}

#[test]
fn what_cannot_be_used_has_a_reason() {
    let mut columns = vec![column(Order::Int4, false, false), column(Order::Unknown, false, false)];
    columns.push(column(Order::Int4, false, false));
    let layout = KeyLayout::new(columns, 2);
    let on = |column| Condition::IsNull { column };
    let new = |conditions: &[Condition]| KeyRanges::new(&layout, conditions, Direction::Forward);
    assert!(new(&[]).is_ok() && new(&[on(0)]).is_ok());
    assert_eq!(new(&[on(1)]), Err(Unusable::UnknownOrder { column: 2 }));
    // The third column is only included.
    assert_eq!(new(&[on(2)]), Err(Unusable::NoColumn { column: 3 }));
    let values = vec![value(Some(1))];
    assert_eq!(
        new(&[Condition::Row { comparison: Comparison::Equal, values }]),
        Err(Unusable::Row)
    );
    let text = Unusable::UnknownOrder { column: 2 }.to_string();
    assert_eq!(text, "the order of column 2 is known to a server only");
}

/// A value that isn't of the column's type is refused, in each kind of condition.
#[test]
fn values_of_another_type_are_refused() {
    let layout = KeyLayout::new(vec![column(Order::Int4, false, false); 2], 2);
    let bad: KeyValue = Some(Box::from([1]));
    let good = || value(Some(3));
    let less = |column, value| Condition::Compare { column, comparison: Comparison::Less, value };
    // In a list of this length, a sort with an order that isn't total would panic.
    let many = (0..100).map(|at| if at % 7 == 0 { bad.clone() } else { value(Some(-at)) });
    let row = |values| Condition::Row { comparison: Comparison::Less, values };
    let cases = [
        (1, vec![less(0, bad.clone())]),
        (2, vec![less(0, good()), less(1, bad.clone())]),
        (1, vec![Condition::AnyOf { column: 0, values: vec![bad.clone()] }]),
        (2, vec![Condition::AnyOf { column: 1, values: many.collect() }]),
        (1, vec![row(vec![bad.clone(), good()])]),
        (2, vec![row(vec![good(), bad.clone()])]),
        (2, vec![row(vec![good(), good()]), row(vec![good(), bad])]),
    ];
    for (column, conditions) in cases {
        for direction in [Direction::Forward, Direction::Backward] {
            let ranges = KeyRanges::new(&layout, &conditions, direction);
            assert_eq!(ranges, Err(Unusable::UnknownOrder { column }), "{conditions:?}");
        }
    }
}

/// A separator whose columns were truncated marks the place where its own child begins. A scan to the left
/// that comes to it has nothing to skip.
#[test]
fn a_scan_of_neighbours_does_not_descend_again() {
    let layout = KeyLayout::new(vec![column(Order::Int4, false, false); 2], 2);
    let mut random = XorShift(0x14);
    for _ in 0..20 {
        let rows: Vec<Row> = (0..60).map(|row| vec![Some(row / 2), Some(row % 2)]).collect();
        let mut tree = Tree {
            layout: layout.clone(),
            pages: vec![[0; 8192]],
            root: (0, 0),
            rows,
            orders_rows: true,
        };
        tree.build(&mut random);
        assert!(tree.root.1 > 1, "{:?}", tree.root);
        let comparison = Comparison::GreaterOrEqual;
        let all = Condition::Compare { column: 0, comparison, value: value(Some(0)) };
        for direction in [Direction::Forward, Direction::Backward] {
            let ranges = KeyRanges::new(&layout, std::slice::from_ref(&all), direction);
            let (rows, _, descents) = tree.scan(&ranges.expect("usable").expect("not empty"));
            assert_eq!((rows.len(), descents), (60, 0), "{direction:?}");
        }
    }
}

#[test]
fn entries_in_the_wrong_order_are_found() {
    let layout = KeyLayout::new(vec![column(Order::Int4, false, false)], 1);
    let leaf = |keys: &[i32]| {
        let items = (1..).zip(keys).map(|(row, key)| bytes_of(&[Some(*key)], tid(0, row), 0));
        page(0, 0, 0, 1, &items.collect::<Vec<_>>())
    };
    let scan = |keys: &[i32], last: &mut Vec<u8>, direction| {
        let ranges = KeyRanges::all(&layout, direction);
        let page = leaf(keys);
        let page = BtreePage::parse(&page).expect("sound");
        let from = ranges.start();
        ranges.scan_leaf(&layout, &page, &from, true, last, |_| {})
    };
    let ended = Ok(LeafEnd::Ended);
    assert_eq!(scan(&[1, 2, 3], &mut Vec::new(), Direction::Forward), ended);
    let wrong = scan(&[1, 3, 2], &mut Vec::new(), Direction::Forward);
    assert_eq!(wrong, Err(Fault::Order { item: 3 }));
    let wrong = scan(&[1, 3, 2], &mut Vec::new(), Direction::Backward);
    assert_eq!(wrong, Err(Fault::Order { item: 2 }));
    // The first entry of a page is compared with the last one of the page before it.
    let mut last = Vec::new();
    assert_eq!(scan(&[4, 5], &mut last, Direction::Forward), ended);
    assert_eq!(scan(&[3, 6], &mut last, Direction::Forward), Err(Fault::Order { item: 1 }));
}

/// Whatever the bytes are, a scan of a page ends.
#[test]
fn damaged_pages_end_a_scan() {
    let mut random = XorShift(0xDA3A6E);
    for _ in 0..60 {
        let tree = Tree::random(&mut random);
        let conditions: Vec<Condition> = (0..random.below(3))
            .map(|_| random_condition(&mut random, tree.layout.keys().len()))
            .collect();
        for direction in [Direction::Forward, Direction::Backward] {
            let ranges = KeyRanges::new(&tree.layout, &conditions, direction).expect("usable");
            let Some(ranges) = ranges else { continue };
            let from = ranges.start();
            for _ in 0..30 {
                let block = 1 + random.below(tree.pages.len() - 1);
                let mut bytes = tree.pages[block];
                for _ in 0..=random.below(4) {
                    let at = [24 + random.below(60), 7900 + random.below(292)][random.below(2)];
                    bytes[at] = random.next() as u8;
                }
                let Ok(page) = BtreePage::parse(&bytes) else { continue };
                let mut last = Vec::new();
                let _ = ranges.scan_leaf(&tree.layout, &page, &from, true, &mut last, |_| {});
                if !page.is_leaf() && !page.is_ignored() {
                    let _ = ranges.children(&page, &from);
                }
                let _ = ranges.step(&page, &from);
            }
        }
    }
}
