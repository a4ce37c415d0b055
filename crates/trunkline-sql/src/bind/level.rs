//! What the expressions of one `SELECT` need beyond its rows: aggregates, window functions and
//! set-returning functions.
//!
//! While the expressions of a query are bound, calls of these functions are moved here, and each is
//! replaced by the column that shows its result. The query then becomes a chain of relations:
//!
//! ```text
//!   FROM, WHERE ─▶ Aggregate ─▶ HAVING ─▶ Window … ─▶ ProjectSet … ─▶ target list
//! ```

use crate::bound::{Aggregate, ColumnId, Expr, RowSource, Window};

/// The calls of one query that need more than one row.
#[derive(Debug, Default)]
pub(super) struct Level {
    /// Aggregates, each with the column of its result.
    pub(super) aggregates: Vec<(ColumnId, Aggregate)>,
    /// Calls of `GROUPING`, each with the column of its result.
    pub(super) groupings: Vec<(ColumnId, Vec<Expr>)>,
    /// Window functions by window.
    pub(super) windows: Vec<(Window, Vec<(ColumnId, Aggregate)>)>,
    /// Set-returning functions. Those at place `n` may use the results of those before it.
    pub(super) sets: Vec<Vec<RowSource>>,
    /// Whether the only one of them returns rows of several columns.
    pub(super) has_row_set: bool,
    /// The windows of the `WINDOW` clause.
    pub(super) named_windows: Vec<NamedWindow>,
}

/// An aggregate in a subquery that belongs to a query around it, which hasn't been found yet.
#[derive(Debug)]
pub(super) struct OuterAggregate {
    /// The column of its result.
    pub(super) id: ColumnId,
    pub(super) aggregate: Aggregate,
    /// Where it is written.
    pub(super) at: u32,
}

/// A window of the `WINDOW` clause.
#[derive(Debug, Clone)]
pub(super) struct NamedWindow {
    pub(super) name: Box<str>,
    pub(super) window: Window,
    /// Whether the frame was written, in which case another window can't refer to this one.
    pub(super) has_frame: bool,
}

impl Level {
    /// Adds an aggregate, or finds the same one. Returns the column of its result; `add` makes it.
    pub(super) fn aggregate(
        &mut self,
        aggregate: Aggregate,
        add: impl FnOnce() -> ColumnId,
    ) -> ColumnId {
        if let Some((id, _)) = self.aggregates.iter().find(|(_, found)| *found == aggregate) {
            return *id;
        }
        let id = add();
        self.aggregates.push((id, aggregate));
        id
    }

    /// Adds a window function, or finds the same one.
    pub(super) fn window_function(
        &mut self,
        window: Window,
        function: Aggregate,
        add: impl FnOnce() -> ColumnId,
    ) -> ColumnId {
        if let Some((_, functions)) = self.windows.iter_mut().find(|(found, _)| *found == window) {
            if let Some((id, _)) = functions.iter().find(|(_, found)| *found == function) {
                return *id;
            }
            let id = add();
            functions.push((id, function));
            return id;
        }
        let id = add();
        self.windows.push((window, vec![(id, function)]));
        id
    }

    /// Adds a set-returning function. If its arguments use the results of others, it comes after
    /// them.
    pub(super) fn set(&mut self, source: RowSource, uses: impl Fn(ColumnId) -> bool) {
        let after = self.sets.iter().rposition(|sources| {
            sources.iter().flat_map(|source| &source.columns).any(|&column| uses(column))
        });
        let place = after.map_or(0, |at| at + 1);
        match self.sets.get_mut(place) {
            Some(sources) => sources.push(source),
            None => self.sets.push(vec![source]),
        }
    }

    /// Whether any of the columns is the result of a set-returning function.
    pub(super) fn is_set_column(&self, column: ColumnId) -> bool {
        self.sets.iter().flatten().any(|source| source.columns.contains(&column))
    }

    /// Whether there is anything to compute over groups.
    pub(super) fn has_aggregates(&self) -> bool {
        !self.aggregates.is_empty() || !self.groupings.is_empty()
    }

    /// Whether the column is the result of an aggregate or of `GROUPING`.
    pub(super) fn is_aggregate(&self, column: ColumnId) -> bool {
        let groupings = self.groupings.iter().map(|(id, _)| *id);
        self.aggregates.iter().map(|(id, _)| *id).chain(groupings).any(|id| id == column)
    }

    /// Whether there is anything to compute over windows.
    pub(super) fn is_window_column(&self, column: ColumnId) -> bool {
        let mut functions = self.windows.iter().flat_map(|(_, functions)| functions);
        functions.any(|(id, _)| *id == column)
    }
}

/// A target of a query: an expression, its column and its name.
#[derive(Debug, Clone)]
pub(super) struct Target {
    pub(super) expr: Expr,
    pub(super) name: Box<str>,
    /// Only used for sorting.
    pub(super) is_hidden: bool,
}
