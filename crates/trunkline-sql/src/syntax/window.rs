//! **ORDER BY and windows.**
//!
//! `(w order by a rows 2 preceding)` is a window that takes over the clauses of `w` and has a frame from
//! two rows before the current one to the current one.

use super::clauses::{FrameExclusion, FrameUnits};
use super::names::Name;
use super::parse_nodes::{FrameBound, SortBy, SortDirection, WindowDefinition, WindowFrame};
use super::parser::Parser;
use crate::error::{SqlError, SqlState};

impl Parser<'_> {
    /// Reads ORDER BY with its keys, or nothing.
    pub(super) fn order_by(&mut self) -> Result<Vec<SortBy>, SqlError> {
        if !self.accept("order") {
            return Ok(Vec::new());
        }
        self.expect("by")?;
        self.list(Self::sort_by)
    }

    fn sort_by(&mut self) -> Result<SortBy, SqlError> {
        let expression = self.expression()?;
        let direction = if self.accept("asc") {
            SortDirection::Ascending
        } else if self.accept("desc") {
            SortDirection::Descending
        } else if self.accept("using") {
            SortDirection::Using(self.operator_name()?)
        } else {
            SortDirection::Default
        };
        let nulls_first = if self.accept_words(&["nulls", "first"]) {
            Some(true)
        } else if self.accept_words(&["nulls", "last"]) {
            Some(false)
        } else {
            None
        };
        Ok(SortBy { expression, direction, nulls_first })
    }

    /// Reads the WINDOW clause, or nothing.
    pub(super) fn window_clause(&mut self) -> Result<Vec<WindowDefinition>, SqlError> {
        if !self.accept("window") {
            return Ok(Vec::new());
        }
        self.list(|parser| {
            let name = parser.column_id()?;
            parser.expect("as")?;
            parser.window_specification(Some(name))
        })
    }

    /// Reads a window in parentheses.
    pub(super) fn window_specification(
        &mut self,
        name: Option<Name>,
    ) -> Result<WindowDefinition, SqlError> {
        let in_target = std::mem::replace(&mut self.in_target, false);
        let start = self.start();
        self.expect_symbol("(")?;
        let reference = match self.word(0) {
            "partition" | "range" | "rows" | "groups" => None,
            _ => self.optional_column_id()?,
        };
        let partition_by = if self.accept("partition") {
            self.expect("by")?;
            self.list(Self::expression)?
        } else {
            Vec::new()
        };
        let order_by = self.order_by()?;
        let frame = self.window_frame()?;
        self.expect_symbol(")")?;
        self.in_target = in_target;
        let span = self.span_from(start);
        Ok(WindowDefinition { name, reference, partition_by, order_by, frame, span })
    }

    fn window_frame(&mut self) -> Result<Option<WindowFrame>, SqlError> {
        let start = self.start();
        let units = match self.word(0) {
            "rows" => FrameUnits::Rows,
            "range" => FrameUnits::Range,
            "groups" => FrameUnits::Groups,
            _ => return Ok(None),
        };
        self.advance();
        let between = self.accept("between");
        let first = self.start();
        let from = self.frame_bound()?;
        let (to, second) = if between {
            self.expect("and")?;
            let second = self.start();
            (self.frame_bound()?, second)
        } else {
            (FrameBound::CurrentRow, first)
        };
        frame_order(&from, &to, first, second)?;
        let exclusion = self.frame_exclusion()?;
        let span = self.span_from(start);
        Ok(Some(WindowFrame { units, start: from, end: to, exclusion, span }))
    }

    fn frame_bound(&mut self) -> Result<FrameBound, SqlError> {
        if self.accept_words(&["current", "row"]) {
            return Ok(FrameBound::CurrentRow);
        }
        if self.accept_words(&["unbounded", "preceding"]) {
            return Ok(FrameBound::UnboundedPreceding);
        }
        if self.accept_words(&["unbounded", "following"]) {
            return Ok(FrameBound::UnboundedFollowing);
        }
        let offset = Box::new(self.expression()?);
        if self.accept("preceding") {
            return Ok(FrameBound::Preceding(offset));
        }
        self.expect("following")?;
        Ok(FrameBound::Following(offset))
    }

    fn frame_exclusion(&mut self) -> Result<FrameExclusion, SqlError> {
        if !self.accept("exclude") {
            return Ok(FrameExclusion::None);
        }
        if self.accept_words(&["current", "row"]) {
            return Ok(FrameExclusion::CurrentRow);
        }
        if self.accept("group") {
            return Ok(FrameExclusion::Group);
        }
        if self.accept("ties") {
            return Ok(FrameExclusion::Ties);
        }
        self.expect("no")?;
        self.expect("others")?;
        Ok(FrameExclusion::None)
    }
}

/// Refuses frames that end before they start, whatever the offsets are. `first` and `second` are the
/// places of the bounds, and equal if only one is written.
fn frame_order(
    from: &FrameBound,
    to: &FrameBound,
    first: u32,
    second: u32,
) -> Result<(), SqlError> {
    use FrameBound::{CurrentRow, Following, Preceding, UnboundedFollowing, UnboundedPreceding};
    let (problem, position) = match (from, to) {
        (UnboundedFollowing, _) => ("frame start cannot be UNBOUNDED FOLLOWING", first),
        (_, UnboundedPreceding) => ("frame end cannot be UNBOUNDED PRECEDING", second),
        (CurrentRow, Preceding(_)) => {
            ("frame starting from current row cannot have preceding rows", second)
        }
        (Following(_), CurrentRow) if first == second => {
            ("frame starting from following row cannot end with current row", first)
        }
        (Following(_), Preceding(_) | CurrentRow) => {
            ("frame starting from following row cannot have preceding rows", second)
        }
        _ => return Ok(()),
    };
    Err(SqlError::new(SqlState::WINDOWING_ERROR, problem).at(position))
}
