//! **Materialized rows**: a query of `WITH` that is evaluated once for all references to it.
//!
//! ```text
//!   WITH c AS (SELECT random() r) SELECT * FROM c a, c b
//!
//!   Join
//!     Materialized #1 ─┐
//!     Materialized #1 ─┴─ one cell: the first node that is executed fills it
//! ```
//!
//! Each reference has a copy of the plan, of which only the first one to be executed runs. Any of them
//! can be the first, so none has to wait for another one that isn't polled.

mod exec;
mod node;
mod planner;

pub(crate) use node::MaterializedNode;
pub(crate) use planner::MaterializedPlanner;
