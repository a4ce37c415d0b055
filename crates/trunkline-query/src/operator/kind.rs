//! What an operator is, for `EXPLAIN`.

use std::any::Any;
use std::sync::Arc;

use super::barrier::Barrier;
use super::definition::Operator;
use super::project_set::ProjectSet;
use super::window::Window;

/// The kinds of operators.
#[derive(Clone, Copy)]
pub(crate) enum OperatorKind<'a> {
    /// Calls set-returning functions.
    ProjectSet(&'a ProjectSet),
    /// Window functions.
    Window(&'a Window),
    /// `FETCH FIRST … WITH TIES`, and limits that are columns.
    Limit,
    /// Passes rows on.
    Barrier,
}

impl<'a> OperatorKind<'a> {
    /// The kind of an operator.
    pub(crate) fn of(operator: &'a dyn Operator) -> Self {
        let operator: &dyn Any = operator;
        if let Some(set) = operator.downcast_ref::<Arc<ProjectSet>>() {
            return Self::ProjectSet(set);
        }
        if operator.is::<Barrier>() {
            return Self::Barrier;
        }
        match operator.downcast_ref::<Arc<Window>>() {
            Some(window) => Self::Window(window),
            None => Self::Limit,
        }
    }
}
