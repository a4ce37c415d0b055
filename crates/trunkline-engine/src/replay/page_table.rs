//! **Page table**: values of the blocks of one fork, in order. Neighbouring blocks are in one line, as the records of a
//! log often change neighbouring pages.
//!
//! ```text
//!   lines, by block / 32 ──▶ bits of the blocks that have a value ╮
//!                            values of these, in order            ╯ 1 line
//! ```
//! Finding a block's value in a large table costs two cache misses, that of its line and that of the value. One tree of all
//! blocks costs several: it has many more levels.

use std::collections::BTreeMap;

use trunkline_format::BlockNo;

/// Blocks of a line: as many as its word has bits.
const BLOCKS: BlockNo = 32;

/// Roughly the memory of a line without its values, in bytes.
const LINE_BYTES: u64 = 64;

/// Values of blocks.
#[derive(Debug)]
pub(super) struct PageTable<T> {
    lines: BTreeMap<BlockNo, Line<T>>,
    /// The number of values.
    count: usize,
    bytes: u64,
}

#[derive(Debug)]
struct Line<T> {
    /// The blocks that have a value; the lowest bit is that of the first block.
    blocks: u32,
    values: Vec<T>,
}

impl<T> PageTable<T> {
    pub(super) const EMPTY: Self = Self { lines: BTreeMap::new(), count: 0, bytes: 0 };

    /// The number of values.
    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// The memory that the table takes, in bytes, without what its values point to.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The value of a block.
    pub(super) fn get(&self, block: BlockNo) -> Option<&T> {
        let line = self.lines.get(&(block / BLOCKS))?;
        let (has_value, at) = line.place(block);
        if has_value { line.values.get(at) } else { None }
    }

    /// Calls `change` for the value of a block, which is added if it has none.
    pub(super) fn change(&mut self, block: BlockNo, change: impl FnOnce(&mut T))
    where
        T: Default,
    {
        let Self { lines, count, bytes } = self;
        let line = lines.entry(block / BLOCKS).or_insert_with(|| {
            *bytes += LINE_BYTES;
            Line { blocks: 0, values: Vec::new() }
        });
        let (has_value, at) = line.place(block);
        if !has_value {
            *count += 1;
            *bytes -= line.value_bytes();
            line.grow();
            *bytes += line.value_bytes();
            line.blocks |= 1 << (block % BLOCKS);
            line.values.insert(at, T::default());
        }
        if let Some(value) = line.values.get_mut(at) {
            change(value);
        }
    }

    /// The blocks that have values, from `block` on.
    pub(super) fn blocks_from(&self, block: BlockNo) -> impl Iterator<Item = BlockNo> {
        let first = block / BLOCKS;
        self.lines.range(first..).flat_map(move |(number, line)| {
            let from = if *number == first { block % BLOCKS } else { 0 };
            let mut bits = line.blocks & u32::MAX << from;
            std::iter::from_fn(move || {
                let bit = bits.trailing_zeros();
                // Clears the lowest bit. There is none any more if there was none.
                bits &= bits.checked_sub(1)?;
                Some(number * BLOCKS + bit)
            })
        })
    }

    /// The values, by block.
    pub(super) fn values(&self) -> impl Iterator<Item = &T> {
        self.lines.values().flat_map(|line| &line.values)
    }

    /// The values, by block.
    pub(super) fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.lines.values_mut().flat_map(|line| &mut line.values)
    }

    /// Removes the values of all blocks from `block` on. `each` is called for each of them.
    pub(super) fn cut(&mut self, block: BlockNo, mut each: impl FnMut(T)) {
        let number = block / BLOCKS;
        let mut removed = self.lines.split_off(&number);
        if let Some(mut line) = removed.remove(&number) {
            let (_, kept) = line.place(block);
            if kept > 0 {
                line.values.drain(kept..).for_each(|value| {
                    self.count -= 1;
                    each(value);
                });
                line.blocks &= (1 << (block % BLOCKS)) - 1;
                self.lines.insert(number, line);
            } else {
                removed.insert(number, line);
            }
        }
        for line in removed.into_values() {
            self.bytes -= LINE_BYTES + line.value_bytes();
            self.count -= line.values.len();
            line.values.into_iter().for_each(&mut each);
        }
    }
}

impl<T> Line<T> {
    /// Whether a block of this line has a value, and where in the values that is, or would be.
    fn place(&self, block: BlockNo) -> (bool, usize) {
        let bit = 1 << (block % BLOCKS);
        (self.blocks & bit != 0, (self.blocks & (bit - 1)).count_ones() as usize)
    }

    /// Makes room for one more value. A single one takes no more than its own memory, since most lines of a sparse table
    /// have no other.
    fn grow(&mut self) {
        let count = self.values.len();
        if count == self.values.capacity() {
            self.values.reserve_exact(if count == 0 { 1 } else { count.max(3) });
        }
    }

    fn value_bytes(&self) -> u64 {
        (self.values.capacity() * size_of::<T>()) as u64
    }
}

impl<T> Default for PageTable<T> {
    fn default() -> Self {
        Self::EMPTY
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trunkline_aio::facade::random::Rng;

    /// The memory, counted anew.
    fn bytes(table: &PageTable<u64>) -> u64 {
        table.lines.values().map(|line| LINE_BYTES + line.value_bytes()).sum()
    }

    #[test]
    fn a_table_has_what_a_tree_has() {
        let mut rng = Rng::new(32);
        for span in [40, 700, u64::from(BlockNo::MAX) + 1] {
            let (mut table, mut tree) = (PageTable::default(), BTreeMap::new());
            for step in 1..3_000_u64 {
                let block = rng.below(span) as BlockNo;
                if rng.below(100) == 0 {
                    let mut removed = Vec::new();
                    table.cut(block, |value| removed.push(value));
                    assert_eq!(removed, tree.split_off(&block).into_values().collect::<Vec<_>>());
                } else {
                    table.change(block, |value| *value += step);
                    *tree.entry(block).or_default() += step;
                }
                let block = rng.below(span) as BlockNo;
                assert_eq!(table.get(block), tree.get(&block));
                let next = tree.range(block..).next().map(|(block, _)| *block);
                assert_eq!(table.blocks_from(block).next(), next);
                assert_eq!((table.len(), table.bytes()), (tree.len(), bytes(&table)));
            }
            assert!(table.values().eq(tree.values()));
            assert!(table.values_mut().map(|value| *value).eq(tree.values().copied()));
            assert!(table.blocks_from(0).eq(tree.keys().copied()));
            table.cut(0, drop);
            assert_eq!((table.len(), table.bytes()), (0, 0));
        }
    }
}
