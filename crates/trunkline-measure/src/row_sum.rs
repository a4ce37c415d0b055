//! **Row sums**: what a query of the tuning guide computes from a page, so that our scans look at
//! each row as the server's do.
//!
//! ```text
//!   SELECT sum(b) FROM uniform WHERE a BETWEEN low AND high
//! ```
//! Both columns are the first ones of a row, `int4` and never null. All rows are frozen, so they
//! are visible to every query. A sequential or bitmap scan looks at all rows of a page. An index scan
//! fetches those that the index names, and then goes on to another page, perhaps to return later.

use trunkline_aio::facade::Arc;
use trunkline_format::page::{line_pointer, line_pointers};
use trunkline_format::{LinePointer, LinePointerFlags, PageBytes};

/// Offset of `t_hoff`, which is the length of a tuple's header, in a tuple.
const HOFF: usize = 22;

/// The values that a query selects, inclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Selected {
    pub(crate) low: i32,
    pub(crate) high: i32,
}

/// The rows that an index scan fetches in each visit of a page.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Visits {
    /// Line pointers of all visits.
    items: Vec<u16>,
    /// Where each visit's begin.
    starts: Vec<usize>,
}

/// What is done with each page of a scan.
#[derive(Debug, Clone)]
pub(crate) enum RowWork {
    /// All rows are looked at.
    Selected(Selected),
    /// Rows are fetched.
    Visits(Arc<Visits>),
}

impl Visits {
    /// Adds a row to the last visit, or to a new one.
    pub(crate) fn push(&mut self, item: u16, is_new: bool) {
        if is_new {
            self.starts.push(self.items.len());
        }
        self.items.push(item);
    }

    /// Line pointers of a visit.
    fn of(&self, visit: usize) -> &[u16] {
        let end = self.starts.get(visit + 1).copied().unwrap_or(self.items.len());
        self.starts.get(visit).and_then(|&start| self.items.get(start..end)).unwrap_or_default()
    }
}

impl RowWork {
    /// The sum of `b` over the rows of a page that a scan needs when it visits its `visit`-th page,
    /// from 0.
    pub(crate) fn sum(&self, page: &PageBytes, visit: usize) -> i64 {
        match self {
            Self::Selected(selected) => selected.sum(page),
            Self::Visits(visits) => {
                let values = visits.of(visit).iter().filter_map(|&item| {
                    values(page, line_pointer(page, item)?).map(|(_, b)| i64::from(b))
                });
                values.sum()
            }
        }
    }
}

/// The two columns of a row. `None` if the tuple ends too early.
fn values(page: &PageBytes, item: LinePointer) -> Option<(i32, i32)> {
    let tuple = item.item(page).filter(|_| item.flags == LinePointerFlags::Normal)?;
    let data = tuple.get(usize::from(*tuple.get(HOFF)?)..)?;
    let (a, rest) = data.split_first_chunk()?;
    Some((i32::from_le_bytes(*a), i32::from_le_bytes(*rest.first_chunk()?)))
}

impl Selected {
    /// Every row.
    pub(crate) const ALL: Self = Self { low: i32::MIN, high: i32::MAX };

    /// The sum of `b` over the selected rows of a page. A tuple that ends too early adds nothing, so
    /// that the total is wrong, which the caller notices.
    fn sum(self, page: &PageBytes) -> i64 {
        let rows = line_pointers(page).filter_map(|(_, item)| values(page, item));
        rows.filter(|(a, _)| self.low <= *a && *a <= self.high).map(|(_, b)| i64::from(b)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trunkline_format::HeapPageBuilder;
    use trunkline_sample::push_account;

    #[test]
    fn selected_rows_are_added_up() {
        // The first two columns of an account are its number and its branch.
        let mut page = HeapPageBuilder::new(3);
        for (account, branch) in [(1, 10), (2, 20), (3, 40)] {
            push_account(&mut page, account, branch, 7).expect("room");
        }
        let page = page.finish(false);
        assert_eq!(Selected::ALL.sum(&page), 70);
        assert_eq!(Selected { low: 2, high: 3 }.sum(&page), 60);
        assert_eq!(Selected { low: 4, high: 9 }.sum(&page), 0);
        assert_eq!(Selected::ALL.sum(&[0; 8192]), 0);
        let mut visits = Visits::default();
        for (item, is_new) in [(3, true), (1, true), (2, false), (9, true)] {
            visits.push(item, is_new);
        }
        let work = RowWork::Visits(Arc::new(visits));
        // A line pointer that isn't there adds nothing.
        assert_eq!([0, 1, 2, 3].map(|visit| work.sum(&page, visit)), [40, 30, 0, 0]);
    }
}
