//! Coverage meter for a test matrix. It records which cells of the matrix must be reached, and
//! which of them actually were.
//!
//! A cell is one combination of what the matrix varies, such as the fault, the operation, the
//! executor and the state of the I/O handle. It is possible for a test case to pass without ever
//! reaching its cell, for example because the fault was injected into a different I/O, or because
//! the I/O had already completed. For this reason, the meter makes the test fail if any cell was
//! not reached. It also makes the test fail if the number of cells is not the expected one, so that
//! we notice if part of the matrix gets lost.
//! ```
//! let coverage = trunkline_sim::matrix::Coverage::new(vec![(1, 'a'), (1, 'b')]);
//! coverage.hit((1, 'a'));
//! coverage.hit((1, 'b'));
//! coverage.assert_complete(2);
//! ```

use std::collections::BTreeSet;
use std::fmt::Debug;
use trunkline_aio::facade::{Arc, Mutex};

/// The cells of one matrix. All clones share the record of which cells have been reached, so that
/// cases that run on other threads can add to it.
#[derive(Debug, Clone)]
pub struct Coverage<C> {
    /// All cells of the matrix.
    wanted: Arc<Vec<C>>,
    /// Indexes of the cells reached so far.
    reached: Arc<Mutex<BTreeSet<usize>>>,
}

impl<C: Copy + PartialEq + Debug> Coverage<C> {
    /// A meter for these cells.
    pub fn new(wanted: Vec<C>) -> Self {
        Self { wanted: Arc::new(wanted), reached: Arc::default() }
    }

    /// All cells, in their original order.
    pub fn cells(&self) -> impl Iterator<Item = C> {
        let wanted = Arc::clone(&self.wanted);
        (0..wanted.len()).map(move |at| wanted[at])
    }

    /// Records that a cell was reached.
    ///
    /// # Panics
    /// If the matrix has no such cell.
    pub fn hit(&self, cell: C) {
        let at = self.wanted.iter().position(|wanted| *wanted == cell);
        self.reached.lock().insert(at.expect("a cell of the matrix"));
    }

    /// Asserts that every cell was reached, and that the matrix has `count` cells.
    ///
    /// # Panics
    /// If a cell was missed, or the size of the matrix is not `count`.
    pub fn assert_complete(&self, count: usize) {
        let reached = self.reached.lock();
        let missed: Vec<&C> = (0..self.wanted.len())
            .filter(|at| !reached.contains(at))
            .map(|at| &self.wanted[at])
            .collect();
        let total = self.wanted.len();
        assert!(
            missed.is_empty(),
            "{} of {total} cells were not reached: {missed:?}",
            missed.len()
        );
        assert_eq!(total, count, "the matrix has gained or lost cells");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "1 of 2 cells were not reached: [2]")]
    fn a_cell_that_is_not_reached_fails_the_test() {
        let coverage = Coverage::new(vec![1, 2]);
        coverage.hit(1);
        coverage.assert_complete(2);
    }
}
