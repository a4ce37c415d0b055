//! Futures that recurse. The planner of DataFusion awaits itself for the inputs of a plan, so polling
//! the plan of a deeply nested statement takes much stack.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use trunkline_sql::bound::with_stack_for;

/// A future that is polled, and dropped, with enough stack for a statement that nests this deep.
pub(super) struct OnDeepStack<F: Future> {
    nesting: usize,
    /// `None` once it was dropped.
    future: Option<Pin<Box<F>>>,
}

impl<F: Future> fmt::Debug for OnDeepStack<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OnDeepStack").field("nesting", &self.nesting).finish_non_exhaustive()
    }
}

impl<F: Future> OnDeepStack<F> {
    pub(super) fn new(nesting: usize, future: F) -> Self {
        Self { nesting, future: Some(Box::pin(future)) }
    }
}

impl<F: Future> Future for OnDeepStack<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let nesting = self.nesting;
        match &mut self.future {
            Some(future) => with_stack_for(nesting, || future.as_mut().poll(context)),
            None => Poll::Pending,
        }
    }
}

impl<F: Future> Drop for OnDeepStack<F> {
    fn drop(&mut self) {
        let future = self.future.take();
        with_stack_for(self.nesting, || drop(future));
    }
}
