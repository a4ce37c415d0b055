//! The sum of an `int4` column over one heap page, at memory speed.
//!
//! If all columns before a given column have a fixed width and are not null, the column is always
//! at the same offset within a tuple. We can then find it with just two additions, and don't have
//! to go through all attributes before it (compare PostgreSQL's `attcacheoff`). If a row does not
//! meet this condition, we only count it, and leave it to the caller to read it in a slower way.
//!
//! ```text
//!   line pointer ─▶ item ─▶ t_infomask: visible? nulls? ─▶ t_hoff + offset ─▶ value
//!                   └──────────── one cache line ─────────────────────────────┘
//! ```
//!
//! We must not trust anything on the page, because it may be corrupt. For speed, all the checks
//! that an ordinary row must pass are combined into a single condition, which is nearly always
//! true. The CPU can therefore predict the branch and start to load the following rows. If the
//! condition is false, we take a slow path, which deals with nulls, hint bits and corruption.

use trunkline_format::heap_tuple::{
    HAS_NULL, MIN_TUPLE_SIZE, NATTS, XMAX_INVALID, XMIN_COMMITTED, is_all_visible,
};
use trunkline_format::page::{HEADER_SIZE, load_into_cache};
use trunkline_format::{
    BLOCK_SIZE, HeapTuple, LinePointer, LinePointerFlags, PageBytes, PageHeader, Visible,
};

/// A column's position in rows without nulls before the column.
///
/// ```
/// # use trunkline_sample::FixedColumn;
/// // pgbench_accounts: aid int, bid int, abalance int, filler char(84)
/// let abalance = FixedColumn { number: 3, offset: 8 };
/// # assert_eq!(abalance, FixedColumn::ABALANCE);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct FixedColumn {
    /// Its number in the table, from 1 (`attnum`). Dropped columns are counted too.
    pub number: u16,
    /// Its offset from the start of the tuple's data, in bytes.
    pub offset: u16,
}

impl FixedColumn {
    /// `abalance` of `pgbench_accounts`.
    pub const ABALANCE: Self = Self { number: 3, offset: 8 };
}

/// The result of [`fixed_int4`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum FixedInt4 {
    /// The value.
    Value(i32),
    /// The column is null.
    Null,
    /// The column is not at its fixed offset. Either an earlier column is null, or the column was
    /// added after the tuple was written, in which case its value must be taken from the catalog
    /// (`attmissingval`).
    Elsewhere,
    /// The tuple ends before the value does.
    Corrupt,
}

/// The `int4` at `column` of `tuple`. Accepts any bytes.
#[inline]
fn fixed_int4(tuple: &HeapTuple<'_>, column: FixedColumn) -> FixedInt4 {
    if tuple.natts() < column.number {
        return FixedInt4::Elsewhere;
    }
    if !tuple.nulls().is_empty()
        && let Some(found) = without_value(tuple.nulls(), column.number)
    {
        return found;
    }
    let value = tuple.data().get(usize::from(column.offset)..).and_then(|rest| rest.first_chunk());
    value.map_or(FixedInt4::Corrupt, |bytes| FixedInt4::Value(i32::from_le_bytes(*bytes)))
}

/// Returns the reason why column `number` is not at its fixed offset, or `None` if it is. Note that
/// a bit in the null bitmap is set if the attribute is not null.
#[cold]
fn without_value(nulls: &[u8], number: u16) -> Option<FixedInt4> {
    let last = number.saturating_sub(1);
    let present = |attribute: u16| {
        nulls.get(usize::from(attribute / 8)).is_some_and(|byte| byte >> (attribute % 8) & 1 == 1)
    };
    if !present(last) {
        return Some(FixedInt4::Null);
    }
    (!(0..last).all(present)).then_some(FixedInt4::Elsewhere)
}

/// The sum of a column over the visible rows of one or more pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PageSum {
    /// Visible rows: the result of `count(*)` if the sum is exact.
    pub rows: u64,
    /// Visible rows in which the column is null. They are not part of the sum.
    pub nulls: u64,
    /// The sum of the other values.
    pub sum: i64,
    /// Number of rows whose hint bits are not set, so that we would have to look in the commit log
    /// to find out whether they are visible. They are not included in `rows`.
    pub in_doubt: u64,
    /// Number of visible rows in which the column is not at its fixed offset. They are included in
    /// `rows`, but not in `sum`.
    pub elsewhere: u64,
    /// The first line pointer that leads to an invalid tuple. Not in `rows`.
    pub corrupt: Option<u16>,
}

impl PageSum {
    /// Whether `rows` and `sum` cover all visible rows.
    pub fn is_exact(&self) -> bool {
        self.in_doubt == 0 && self.elsewhere == 0 && self.corrupt.is_none()
    }

    fn note_corrupt(&mut self, item: u16) {
        self.corrupt = Some(self.corrupt.map_or(item, |least| least.min(item)));
    }

    /// Adds the result for another page to this one. If both have a corrupt line pointer, we keep
    /// our own. The sum wraps around on overflow, but that can't happen with fewer than 2^32 rows.
    pub fn add(&mut self, other: &Self) {
        self.rows += other.rows;
        self.nulls += other.nulls;
        self.sum = self.sum.wrapping_add(other.sum);
        self.in_doubt += other.in_doubt;
        self.elsewhere += other.elsewhere;
        self.corrupt = self.corrupt.or(other.corrupt);
    }
}

/// Sums the `int4` at `column` over the visible rows of a heap page. Accepts any bytes.
///
/// ```
/// use trunkline_format::HeapPageBuilder;
/// use trunkline_sample::{FixedColumn, push_account, sum_int4};
/// let mut page = HeapPageBuilder::new(0);
/// push_account(&mut page, 1, 1, 500)?;
/// push_account(&mut page, 2, 1, -700)?;
/// let sum = sum_int4(&page.finish(false), FixedColumn::ABALANCE);
/// assert_eq!((sum.rows, sum.sum), (2, -200));
/// # Ok::<(), trunkline_format::page_builder::PushError>(())
/// ```
pub fn sum_int4(page: &PageBytes, column: FixedColumn) -> PageSum {
    let fast = Fast::new(page, column);
    load_into_cache(page);
    let mut total = PageSum::default();
    // Process the line pointers in reverse order. Tuples are added to a page from the end towards
    // the beginning, so by going backwards we read them in order of increasing address, which is
    // 20% faster if the page is not in the CPU cache.
    for (before, pointer) in pointers(page).iter().enumerate().rev() {
        let bits = u32::from_le_bytes(*pointer);
        if let Some(value) = fast.value(page, bits) {
            total.rows += 1;
            total.sum += i64::from(value);
        } else {
            let pointer = LinePointer::from_bits(bits);
            if pointer.flags == LinePointerFlags::Normal {
                add_tuple(page, before as u16 + 1, pointer, column, &mut total);
            }
        }
    }
    total
}

/// The line pointers before `pd_lower`, but not beyond the end of the page.
fn pointers(page: &PageBytes) -> &[[u8; 4]] {
    let count = usize::from(PageHeader::parse(page).line_pointer_count());
    let all = page.get(usize::from(HEADER_SIZE)..).unwrap_or_default().as_chunks().0;
    all.get(..count).unwrap_or(all)
}

/// The infomask bits of an ordinary row. They are precomputed, so that we can recognise such a row
/// with a single comparison. On an all-visible page, we ignore the hint bits.
struct Fast {
    /// The bits of `t_infomask` to compare.
    mask: u16,
    /// Their values in a row that is visible and has no nulls.
    bits: u16,
    column: FixedColumn,
}

impl Fast {
    fn new(page: &PageBytes, column: FixedColumn) -> Self {
        let visible = if is_all_visible(page) { 0 } else { XMIN_COMMITTED | XMAX_INVALID };
        Self { mask: HAS_NULL | visible, bits: visible, column }
    }

    /// Returns the column's value if line pointer `bits` points to a tuple that is valid, visible,
    /// has no nulls, and is long enough to contain the column. If it returns `None`, the caller
    /// must use the slow path. We combine the conditions with `&` rather than `&&`, so that the
    /// compiler generates only one branch.
    #[inline(always)]
    fn value(&self, page: &PageBytes, bits: u32) -> Option<i32> {
        let LinePointer { offset, length, .. } = LinePointer::from_bits(bits);
        let (start, length) = (usize::from(offset), usize::from(length));
        let header: &[u8; MIN_TUPLE_SIZE as usize] = page.get(start..)?.first_chunk()?;
        let infomask2 = u16::from_le_bytes([header[18], header[19]]);
        let infomask = u16::from_le_bytes([header[20], header[21]]);
        let hoff = usize::from(header[22]);
        let at = hoff + usize::from(self.column.offset);
        let sound = (bits >> 15 & 3 == 1)
            & (start + length <= BLOCK_SIZE)
            & (hoff >= usize::from(MIN_TUPLE_SIZE))
            & hoff.is_multiple_of(8)
            & (at + size_of::<i32>() <= length)
            & (infomask & self.mask == self.bits)
            & (infomask2 & NATTS >= self.column.number);
        if !sound {
            return None;
        }
        // In bounds: `sound` checked it.
        page.get(start + at..)?.first_chunk().map(|bytes| i32::from_le_bytes(*bytes))
    }
}

/// The slow path. If possible, adds the column of line pointer `item` to the sum. Otherwise, counts
/// the tuple as null, not at the fixed offset, in doubt, or corrupt.
#[cold]
fn add_tuple(
    page: &PageBytes,
    item: u16,
    pointer: LinePointer,
    column: FixedColumn,
    total: &mut PageSum,
) {
    let Ok(tuple) = HeapTuple::parse(item, pointer.item(page).unwrap_or_default()) else {
        total.note_corrupt(item);
        return;
    };
    match if is_all_visible(page) { Visible::Yes } else { tuple.visible() } {
        Visible::Yes => {}
        Visible::No => return,
        Visible::InDoubt => {
            total.in_doubt += 1;
            return;
        }
    }
    match fixed_int4(&tuple, column) {
        FixedInt4::Value(value) => total.sum += i64::from(value),
        FixedInt4::Null => total.nulls += 1,
        FixedInt4::Elsewhere => total.elsewhere += 1,
        FixedInt4::Corrupt => {
            total.note_corrupt(item);
            return;
        }
    }
    total.rows += 1;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page_writer::put;
    use crate::push_account;
    use trunkline_aio::facade::random::Rng;
    use trunkline_format::page::line_pointers;
    use trunkline_format::page_builder::NewTuple;
    use trunkline_format::{HeapPageBuilder, TupleBuilder, heap_rows};

    const COLUMN: FixedColumn = FixedColumn::ABALANCE;

    fn accounts(random: &mut Rng) -> (PageBytes, i64) {
        let mut builder = HeapPageBuilder::new(0);
        let mut sum = 0;
        loop {
            let balance = random.next_u64() as i32;
            if push_account(&mut builder, 1, 1, balance).is_err() {
                return (builder.finish(false), sum);
            }
            sum += i64::from(balance);
        }
    }

    #[test]
    fn a_page_of_accounts() {
        let (mut page, sum) = accounts(&mut Rng::new(0xACC0));
        let expected = PageSum { rows: 61, sum, ..PageSum::default() };
        assert_eq!(sum_int4(&page, COLUMN), expected);
        assert!(expected.is_exact());
        let bids = sum_int4(&page, FixedColumn { number: 2, offset: 4 });
        assert_eq!((bids.rows, bids.sum), (61, 61));
        // A column added later, and a column beyond the end of the tuple.
        let later = sum_int4(&page, FixedColumn { number: 5, offset: 8 });
        assert_eq!((later.rows, later.elsewhere, later.is_exact()), (61, 61, false));
        let behind = sum_int4(&page, FixedColumn { number: 4, offset: 94 });
        assert_eq!(behind, PageSum { corrupt: Some(1), ..PageSum::default() });
        // Mark one of the last two rows as deleted, clear the other one's xmin hint bit, and then
        // mark the page all-visible.
        let tuple = |item: usize| 8192 - 128 * item;
        put(&mut page, tuple(61) + 20, &0x0502_u16.to_le_bytes());
        put(&mut page, tuple(60), &[9, 0, 0, 0]);
        put(&mut page, tuple(60) + 20, &0x0802_u16.to_le_bytes());
        let found = sum_int4(&page, COLUMN);
        assert_eq!((found.rows, found.in_doubt), (59, 1));
        page[10] = 4;
        assert_eq!(sum_int4(&page, COLUMN), expected);
        // An item that points outside the page.
        put(&mut page, 24 + 4, &(8100_u32 | 1 << 15 | 121 << 17).to_le_bytes());
        let found = sum_int4(&page, COLUMN);
        assert_eq!((found.rows, found.corrupt), (60, Some(2)));
        let mut twice = found;
        twice.add(&PageSum { corrupt: Some(9), ..expected });
        assert_eq!((twice.rows, twice.sum, twice.corrupt), (121, found.sum + sum, Some(2)));
        assert_eq!(sum_int4(&[0; BLOCK_SIZE], COLUMN), PageSum::default());
    }

    #[test]
    fn nulls() {
        let mut builder = HeapPageBuilder::new(0);
        let mut row = TupleBuilder::new();
        let mut push = |row: &mut TupleBuilder| {
            builder.push(&row.tuple()).expect("room");
            row.clear();
        };
        push(row.int4(1).int4(1).int4(100).null());
        push(row.int4(1).int4(1).null().text("filler"));
        push(row.int4(1).null().int4(1000).text("filler"));
        push(row.int4(1).null().null().text("filler"));
        push(row.int4(1).int4(1));
        let found = sum_int4(&builder.finish(false), COLUMN);
        let expected = PageSum { rows: 5, nulls: 2, sum: 100, elsewhere: 2, ..PageSum::default() };
        assert_eq!(found, expected);
    }

    #[test]
    fn any_bytes() {
        let mut random = Rng::new(0xDEAD);
        let (mut full, mut partly) = (0, 0);
        for round in 0..100_000 {
            let (mut page, _) = if round % 4 == 0 {
                let mut page = [0; BLOCK_SIZE];
                page.fill_with(|| random.next_u64() as u8);
                (page, 0)
            } else {
                accounts(&mut random)
            };
            for _ in 0..random.below(6) {
                page[[random.below(8192), random.below(300)][random.below(2) as usize] as usize] =
                    random.next_u64() as u8;
            }
            let offset = [8, 0, 96, 65_535, random.below(200) as u16][random.below(5) as usize];
            let column = FixedColumn { number: random.below(7) as u16, offset };
            let found = sum_int4(&page, column);
            assert_eq!(found, slow_sum(&page, column), "round {round}");
            if found.is_exact() { full += 1 } else { partly += 1 }
        }
        assert!(full > 10_000 && partly > 10_000, "{full} and {partly}");
    }

    /// The same sum without the fast path.
    fn slow_sum(page: &PageBytes, column: FixedColumn) -> PageSum {
        let mut total = PageSum::default();
        for (item, pointer) in line_pointers(page) {
            if pointer.flags == LinePointerFlags::Normal {
                add_tuple(page, item, pointer, column, &mut total);
            }
        }
        assert!(total.rows + total.in_doubt <= heap_rows(page).count() as u64);
        assert!(total.nulls + total.elsewhere <= total.rows);
        total
    }

    #[test]
    fn builder_tuples_are_read_back() {
        let mut builder = HeapPageBuilder::new(0);
        let tuple = NewTuple { natts: 1, nulls: &[], var_width: false, xmin: Some(77), data: &[7] };
        builder.push(&tuple).expect("room");
        let page = builder.finish(false);
        let found = heap_rows(&page).next().expect("one").expect("sound");
        assert_eq!((found.xmin(), found.natts(), found.data()), (77, 1, &[7][..]));
        assert_eq!(found.visible(), Visible::InDoubt);
    }
}
