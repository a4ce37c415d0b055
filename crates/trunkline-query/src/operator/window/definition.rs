//! A window and the functions over it, as plans contain them.

use std::fmt;
use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_schema::{DataType, SortOptions};
use trunkline_sql::bound::{Aggregate as BoundCall, WindowFrame};
use trunkline_sql::functions::{AggregateCall, AggregateDefinition, CallSettings};

use super::frame::{Bound, FrameDefinition};
use crate::expression::Program;

/// A window with its functions.
pub(crate) struct Window {
    /// The columns whose values make partitions: keys.
    pub(crate) partition_by: Vec<String>,
    /// The columns by which a partition is sorted: keys.
    pub(crate) order_by: Vec<(String, SortOptions)>,
    pub(crate) frame: FrameDefinition,
    /// The frame as the statement has it.
    pub(crate) shown_frame: WindowFrame,
    pub(crate) calls: Vec<WindowCall>,
    /// The session's settings.
    pub(crate) settings: Arc<CallSettings>,
}

/// A call of a function over the window.
pub(crate) struct WindowCall {
    pub(crate) function: WindowFunction,
    pub(crate) arguments: Vec<Program>,
    /// The column of the results.
    pub(crate) column: String,
    pub(crate) ty: DataType,
    /// The function's name.
    pub(crate) text: String,
    /// The call as the statement has it.
    pub(crate) call: BoundCall,
}

/// The kinds of functions.
pub(crate) enum WindowFunction {
    Rank(RankFunction),
    Value(ValueFunction),
    Aggregate(Box<AggregateOver>),
}

/// Functions of a row's place in its partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RankFunction {
    RowNumber,
    Rank,
    DenseRank,
    PercentRank,
    CumeDist,
    Ntile,
}

/// Functions that return the value of an expression in another row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ValueFunction {
    Lag,
    Lead,
    First,
    Last,
    Nth,
}

/// An aggregate over a window.
pub(crate) struct AggregateOver {
    pub(crate) definition: &'static AggregateDefinition,
    pub(crate) call: AggregateCall,
    /// Arguments that are constants.
    pub(crate) constants: Vec<Option<ArrayRef>>,
    pub(crate) filter: Option<Program>,
}

impl fmt::Debug for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let calls: Vec<&str> = self.calls.iter().map(|call| &*call.text).collect();
        write!(f, "WindowAgg: {}", calls.join(", "))
    }
}

impl Window {
    /// All expressions.
    pub(super) fn programs(&self) -> impl Iterator<Item = &Program> {
        let arguments = self.calls.iter().flat_map(|call| &call.arguments);
        let filters = self.calls.iter().filter_map(|call| match &call.function {
            WindowFunction::Aggregate(aggregate) => aggregate.filter.as_ref(),
            _ => None,
        });
        let bounds = [&self.frame.start, &self.frame.end].into_iter();
        let ranges = bounds.filter_map(|bound| match bound {
            Bound::Preceding(offset) | Bound::Following(offset) => offset.range.as_ref(),
            _ => None,
        });
        arguments.chain(filters).chain(ranges.map(|range| &range.value))
    }
}
