//! **EXPLAIN**: physical plans in PostgreSQL's words.
//!
//! ```text
//!   physical plan ── instrument ──▶ the same plan, which counts rows and time ── run ──▶ counts
//!        │                                                                             │
//!        └──────────── describe: names, expressions ──▶ PlanNode ◀─────────────────────┘
//!                                                          │
//!                                                          └ text or JSON
//! ```
//!
//! A plan's nodes are DataFusion's, and its columns have names such as `c5`. [`Describer`] gives nodes
//! the names that they have in PostgreSQL, and `Expressions` prints expressions with the names of the
//! statement. Nodes that PostgreSQL doesn't have, such as projections, are left out: they are part of
//! the node below.

mod aggregate;
mod alternatives;
mod columns;
mod describe;
mod expressions;
mod folding;
mod index_conditions;
mod index_join;
mod index_scan;
mod instrument;
mod joins;
mod json;
mod leaf;
mod literals;
mod names;
mod node;
mod options;
mod scan;
mod shape;
mod shown;
mod subplans;
mod text;
mod window;

pub(crate) use describe::Describer;
pub(crate) use instrument::{instrumented, is_complete};
pub(crate) use json::json_report;
pub(crate) use node::Summary;
pub(crate) use options::{ExplainFormat, ExplainOptions};
pub(crate) use text::text_report;
