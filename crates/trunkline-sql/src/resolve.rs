//! **Type resolution**: which function or operator a call stands for, and how its arguments are
//! converted.
//!
//! These are the rules of PostgreSQL's `parse_coerce.c`, `parse_oper.c` and `parse_func.c`, on OIDs
//! alone. They take the types of the arguments and return OIDs; the binder makes the expressions.
//! [`UNKNOWN`](crate::catalog::oids::UNKNOWN) is the type of a string literal or a `NULL` whose type
//! is still open.
//!
//! ```text
//!   1 + '2'   →  operators named "+", for (int4, unknown)  →  int4pl: (int4, int4) → int4
//!   abs('2')  →  functions named "abs", for (unknown)      →  float8 abs: preferred among numbers
//! ```
//!
//! ```no_run
//! use trunkline_sql::catalog::{Namespace, ObjectName, oids};
//! use trunkline_sql::resolve::binary_operator;
//!
//! fn sum(names: &Namespace<'_>) -> Result<(), trunkline_sql::SqlError> {
//!     let plus = binary_operator(names, ObjectName::unqualified("+"), oids::INT4, oids::UNKNOWN)?;
//!     assert_eq!(plus.arguments, [oids::INT4, oids::INT4]);
//!     Ok(())
//! }
//! ```

mod choice;
mod coercion;
mod common_type;
mod function;
mod name_parts;
mod object_name;
mod operator;
mod polymorphic;
mod signature;

pub use coercion::{Coercion, CoercionContext, ModifierCoercion, coercion, modifier_coercion};
pub use common_type::{common_modifier, common_type, is_common_type};
pub use function::{
    FunctionArguments, FunctionKind, NOT_AN_ARRAY, ResolvedCall, ResolvedFunction, VariadicArray,
    function,
};
pub use name_parts::name_parts;
pub(crate) use object_name::INVALID_TYPE_NAME;
pub use object_name::{named_object, named_type, named_type_text, object_name};
pub use operator::{
    ResolvedOperator, array_operator, binary_operator, prefix_operator, sort_operators,
};
pub use polymorphic::can_coerce;
