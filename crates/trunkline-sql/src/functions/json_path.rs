//! **SQL/JSON paths**: `jsonb_path_query` and its like, `@?` and `@@`.
//!
//! ```text
//!   '{"a": [1, 2, 3]}' with '$.a[*] ? (@ > 1)'
//!
//!   $        {"a": [1, 2, 3]}
//!   .a       [1, 2, 3]
//!   [*]      1, 2, 3
//!   ?(…)     2, 3
//! ```
//! Each item of a path is applied to the values that the one before it gives. In lax mode, arrays are
//! unwrapped where other values are wanted, and members that don't exist are no errors.
//!
//! Mirrors PostgreSQL's `utils/adt/jsonpath_exec.c`. Methods of dates and times are refused.

mod arithmetic;
mod failure;
mod kernels;
mod methods;
mod predicates;
mod value;
mod walk;

pub(in crate::functions) use kernels::{PATH_QUERIES, PATH_SETS};
