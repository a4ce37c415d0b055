//! **Subplans**: subqueries that are executed for the rows of an outer query, as PostgreSQL does with
//! its `SubPlan` nodes.
//!
//! ```text
//!   SELECT a, (SELECT sum(b) FROM t WHERE t.x = s.x) FROM s
//!
//!   Subplan $c1#1 = c1 → c9        for each distinct x of s: the value of the inner plan
//!     Scan s [c1, c2]
//!                                  inner plan: … Filter c5 = $c1#1 … (planned once)
//! ```
//!
//! A subplan can contain anything that a query can contain, and it is only executed for rows that need
//! its value. Its cost is that of the subquery times the number of distinct outer values, so lowering
//! makes a join of a subquery where it can.
//!
//! While the inner plan is optimized, outer columns are placeholders, which the optimizer can move
//! like columns but can't evaluate. Then they become functions that read a slot, into which the
//! executing node puts the values.

mod exec;
mod inner_plan;
mod node;
mod outer;
mod planner;
mod rows;
mod unused;
mod value;

pub(crate) use exec::SubplanExec;
pub(crate) use node::{Inner, SubplanNode, placeholder};
pub(crate) use planner::SubplanPlanner;
pub(crate) use unused::DropUnusedSubplans;
pub(crate) use value::SubplanKind;
