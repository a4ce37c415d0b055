//! **Operators**: nodes of plans that DataFusion doesn't have.
//!
//! ```text
//!   OperatorNode { input, operator }  ── planner ──▶  OperatorExec { input, operator }
//!     a logical plan                                    │ execute
//!                                                       ▼
//!                                                     Process: batches in, batches out
//! ```
//!
//! An operator adds columns to the rows of its input, and may repeat or drop rows. It says which
//! columns it reads and in which order it wants the rows. For example, [`ProjectSet`] calls
//! set-returning functions.

mod barrier;
mod definition;
mod exec;
mod kind;
mod limit_by;
mod limit_with_ties;
mod node;
mod planner;
mod project_set;
mod window;

pub(crate) use barrier::Barrier;
pub(crate) use definition::Operator;
pub(crate) use exec::OperatorExec;
pub(crate) use kind::OperatorKind;
pub(crate) use limit_by::LimitBy;
pub(crate) use limit_with_ties::LimitWithTies;
pub(crate) use node::OperatorNode;
pub(crate) use planner::OperatorPlanner;
pub(crate) use project_set::{ProjectSet, SetCall};
pub(crate) use window::{
    AggregateOver, Bound, FrameDefinition, Offset, RangeTest, RankFunction, ValueFunction,
    Window as WindowOperator, WindowCall, WindowFunction,
};
