//! Rows of `pgbench_accounts`, as a server stores them.
//!
//! The layout is fixed: three integers and a blank-padded `char(84)`, together 97 bytes of data.

use trunkline_format::HeapPageBuilder;
use trunkline_format::page_builder::{NewTuple, PushError};

/// Adds a frozen row of `pgbench_accounts` to a page and returns its line pointer number.
///
/// ```
/// use trunkline_format::{CheckOptions, Fork, HeapPageBuilder, Verdict, check_page};
/// use trunkline_sample::push_account;
/// let mut page = HeapPageBuilder::new(7);
/// let mut aid = 1;
/// while push_account(&mut page, aid, 1, 0).is_ok() {
///     aid += 1;
/// }
/// assert_eq!(page.len(), 61); // as many as pgbench fits into a page
/// let options = CheckOptions { checksums: true, fork: Fork::Main };
/// assert_eq!(check_page(&page.finish(true), 7, &options), Verdict::Good);
/// ```
///
/// # Errors
/// [`PushError::Full`] after the 61st row.
pub fn push_account(
    page: &mut HeapPageBuilder,
    aid: i32,
    bid: i32,
    abalance: i32,
) -> Result<u16, PushError> {
    let data = account_data(aid, bid, abalance);
    page.push(&NewTuple { natts: 4, nulls: &[], var_width: true, xmin: None, data: &data })
}

/// The attributes of a row: three integers and 84 blanks.
pub fn account_data(aid: i32, bid: i32, abalance: i32) -> [u8; 97] {
    let mut data = [b' '; 97];
    let numbers = [aid, bid, abalance].into_iter().flat_map(i32::to_le_bytes);
    for (place, byte) in data.iter_mut().zip(numbers) {
        *place = byte;
    }
    // The one-byte varlena header of `filler`. It contains the length of the header and the text,
    // shifted left by one. The lowest bit is set to indicate that this is a one-byte header.
    data[12] = 85 << 1 | 1;
    data
}

#[cfg(test)]
mod tests {
    use super::*;
    use trunkline_format::TupleBuilder;

    #[test]
    fn a_row_is_what_the_tuple_builder_makes() {
        let mut row = TupleBuilder::new();
        row.int4(1).int4(2).int4(-3).bpchar("", 84);
        assert_eq!(row.tuple().data, account_data(1, 2, -3));
    }
}
