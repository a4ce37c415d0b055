//! The recursive queries around what is being bound, and where they can't be referred to.

use crate::error::{SqlError, SqlState};

/// Recursive queries that are being bound.
#[derive(Debug, Default)]
pub(super) struct Recursions {
    open: Vec<Recursion>,
    /// Where references are not allowed, from the outside: `a subquery` and so on.
    places: Vec<&'static str>,
}

/// A recursive query whose recursive term is being bound.
#[derive(Debug)]
pub(super) struct Recursion {
    number: u32,
    references: usize,
    /// The number of places around the recursive term.
    places: usize,
    /// The number of the query whose `FROM` refers to it.
    query: u32,
}

impl Recursions {
    /// Enters a place where references are not allowed.
    pub(super) fn enter(&mut self, place: &'static str) {
        self.places.push(place);
    }

    /// Leaves it.
    pub(super) fn leave(&mut self) {
        self.places.pop();
    }

    /// Begins to bind the recursive term of a query.
    pub(super) fn begin(&mut self, number: u32) {
        let places = self.places.len();
        self.open.push(Recursion { number, references: 0, places, query: 0 });
    }

    /// The recursive term is bound. Returns whether it refers to the query.
    pub(super) fn end(&mut self) -> bool {
        self.open.pop().is_some_and(|recursion| recursion.references > 0)
    }

    /// The recursive query with this number, and the place within it where no reference is allowed.
    pub(super) fn reference(
        &mut self,
        number: u32,
    ) -> (Option<&'static str>, Option<&mut Recursion>) {
        let Some(open) = self.open.iter_mut().find(|open| open.number == number) else {
            return (None, None);
        };
        (self.places.get(open.places..).and_then(<[_]>::last).copied(), Some(open))
    }

    /// Whether the query with this number refers to a recursive one in its `FROM`.
    pub(super) fn is_recursive_term(&self, query: u32) -> bool {
        self.open.iter().any(|open| open.references > 0 && open.query == query)
    }
}

impl Recursion {
    /// Counts a reference from the query with this number, and returns how many there are.
    pub(super) fn count(&mut self, query: u32) -> usize {
        self.references += 1;
        self.query = query;
        self.references
    }
}

/// The error for a clause that needs a recursive query.
pub(super) fn not_recursive(at: u32) -> SqlError {
    SqlError::new(SqlState::SYNTAX_ERROR, "WITH query is not recursive").at(at)
}
