//! How many rows of a scan are passed on together.
//!
//! A consumer may stop after any batch, and doesn't say so in advance. So batches begin small, and double.
//! With a limit, a batch has the rows that are still wanted, of which filters may remove some:
//!
//! ```text
//!   no limit                                256  512  1024  2048  …  8192  8192
//!   LIMIT 10, one row of ten passes          10    9     9     8  …     1
//!   LIMIT 10, one row of a thousand passes   10   10    10    10  …   154   1/64 of the rows before
//! ```

use trunkline_engine::index_scan::ExpectedRows;

/// The rows of the first batch, so that the first rows are available soon.
pub(super) const FIRST_ROWS: usize = 256;

/// The most rows of any other batch. Without a limit, each has twice as many as the one before, so that a
/// consumer that stops early has not let the scan read much more than it needed.
pub(super) const BATCH_ROWS: usize = 8192;

/// The length of values at which a batch is complete, however few rows it has. Nodes keep whole batches,
/// so this limits their memory where rows are wide.
pub(super) const BATCH_BYTES: usize = 1 << 20;

/// With a limit, a scan that finds one row now and then would have too many batches, so one may have this
/// fraction of all rows before.
const BATCH_FRACTION: usize = 64;

/// Decides when batches are complete.
#[derive(Debug)]
pub(super) struct BatchSize {
    /// The most rows of the next batch.
    most: usize,
    /// The rows of all batches before, and the length of their values.
    returned: usize,
    returned_bytes: usize,
}

impl BatchSize {
    /// No batch has been returned yet.
    pub(super) fn new() -> Self {
        Self { most: FIRST_ROWS, returned: 0, returned_bytes: 0 }
    }

    /// Whether this many rows, with values of this length, are enough. `wanted` are the rows that a limit
    /// still needs.
    pub(super) fn is_complete(&self, rows: usize, bytes: usize, wanted: Option<usize>) -> bool {
        rows >= self.rows(wanted) || bytes >= BATCH_BYTES
    }

    /// How many more rows the consumer is expected to take, in addition to these. Certain are those that
    /// complete the batch, if their values are as long as those so far. Without a limit, half as many as
    /// in all batches before are likely, so that reads for the next batch are in flight before it begins.
    /// The first batch of a limit is probably the last: if it isn't, filters have removed rows.
    pub(super) fn expected(
        &self,
        rows: usize,
        bytes: usize,
        wanted: Option<usize>,
    ) -> ExpectedRows {
        let missing = self.rows(wanted).saturating_sub(rows);
        let (all, length) = (self.returned + rows, self.returned_bytes + bytes);
        let room = BATCH_BYTES.saturating_sub(bytes).saturating_mul(all);
        let certain = missing.min(room.checked_div(length).unwrap_or(missing)) as u64;
        let more = if wanted.is_none() { self.returned as u64 / 2 } else { 0 };
        let ends = wanted.is_some() && self.returned == 0;
        ExpectedRows { certain, likely: certain + more, ends }
    }

    /// The rows that complete the next batch.
    fn rows(&self, wanted: Option<usize>) -> usize {
        let limited = wanted.map(|wanted| wanted.max(self.returned / BATCH_FRACTION));
        limited.unwrap_or(self.most).clamp(1, self.most)
    }

    /// A batch with this many rows, with values of this length, is returned.
    pub(super) fn returned(&mut self, rows: usize, bytes: usize) {
        self.most = (2 * self.most).min(BATCH_ROWS);
        self.returned += rows;
        self.returned_bytes += bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rows of the first batches, if this many rows of a hundred pass a filter.
    fn batches(limit: Option<usize>, passing: usize, count: usize) -> Vec<usize> {
        let (mut size, mut found) = (BatchSize::new(), Vec::new());
        let mut read = 0;
        while found.len() < count {
            let left = limit.map(|limit| limit.saturating_sub(read * passing / 100));
            if left == Some(0) {
                break;
            }
            let rows = size.rows(left);
            assert!(size.is_complete(rows, 0, left) && !size.is_complete(rows - 1, 0, left));
            size.returned(rows, 0);
            read += rows;
            found.push(rows);
        }
        found
    }

    #[test]
    fn batches_double_without_a_limit() {
        assert_eq!(batches(None, 100, 7), [256, 512, 1024, 2048, 4096, 8192, 8192]);
    }

    #[test]
    fn a_limit_reads_little_in_vain() {
        assert_eq!(batches(Some(10), 100, 9), [10]);
        assert_eq!(batches(Some(9000), 100, 9), [256, 512, 1024, 2048, 4096, 1064]);
        for (limit, passing) in [(1, 10), (10, 10), (10, 1), (300, 1)] {
            let read: usize = batches(Some(limit), passing, usize::MAX).iter().sum();
            let needed = limit * 100 / passing;
            assert!(read >= needed && read <= needed + needed / 64 + 1, "{read}, not {needed}");
        }
    }

    #[test]
    fn wide_rows_complete_a_batch() {
        let size = BatchSize::new();
        assert!(!size.is_complete(1, BATCH_BYTES - 1, None));
        assert!(size.is_complete(1, BATCH_BYTES, None));
    }

    #[test]
    fn long_values_complete_a_batch_earlier() {
        let mut size = BatchSize::new();
        let expected = |size: &BatchSize, rows, bytes, wanted| {
            let ExpectedRows { certain, likely, ends } = size.expected(rows, bytes, wanted);
            (certain, likely, ends)
        };
        assert_eq!(expected(&size, 0, 0, None), (256, 256, false));
        assert_eq!(expected(&size, 0, 0, Some(10)), (10, 10, true));
        // Values of 64 kB, of which 16 fill a batch.
        assert_eq!(expected(&size, 4, 4 << 16, Some(100)), (12, 12, true));
        size.returned(16, BATCH_BYTES);
        assert_eq!(expected(&size, 0, 0, Some(100)), (16, 16, false));
        assert_eq!(expected(&size, 0, 0, Some(3)), (3, 3, false));
        assert_eq!(expected(&size, 0, 0, None), (16, 16 + 8, false));
        assert_eq!(expected(&size, 16, BATCH_BYTES, Some(100)), (0, 0, false));
    }
}
