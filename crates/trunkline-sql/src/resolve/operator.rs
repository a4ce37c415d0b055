//! Operators by name and operand types (`parse_oper.c`).

use trunkline_format::Oid;

use super::choice::{Choice, choose};
use super::polymorphic::settle;
use crate::catalog::{Namespace, ObjectName, TypeOperators, oids};
use crate::error::{SqlError, SqlState};

/// An operator that was chosen, and the types of its use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolvedOperator {
    /// `pg_operator.oid`.
    pub operator: Oid,
    /// `pg_proc.oid` of the function that computes it.
    pub function: Oid,
    /// The types to which the operands are converted: one for a prefix operator, else two.
    pub arguments: Vec<Oid>,
    /// The type of the result.
    pub result: Oid,
    /// Whether it returns a set.
    pub returns_set: bool,
}

/// The infix operator for operands of these types.
///
/// # Errors
/// 42883: there is none. 42725: there are several. 42804: polymorphic operands contradict each other.
/// 3F000: the name's schema doesn't exist.
pub fn binary_operator(
    names: &Namespace<'_>,
    name: ObjectName<'_>,
    left: Oid,
    right: Oid,
) -> Result<ResolvedOperator, SqlError> {
    let operator = match exact(names, name, left, right)? {
        Some(operator) => operator,
        None => chosen(names, name, b'b', &[left, right])?,
    };
    resolved(names, name, operator, &[left, right])
}

/// The prefix operator for an operand of this type.
///
/// # Errors
/// As [`binary_operator`].
pub fn prefix_operator(
    names: &Namespace<'_>,
    name: ObjectName<'_>,
    operand: Oid,
) -> Result<ResolvedOperator, SqlError> {
    let operator = match names.exact_operator(name, oids::NONE, operand)? {
        Some(operator) => operator,
        None => chosen(names, name, b'l', &[operand])?,
    };
    resolved(names, name, operator, &[operand])
}

/// The operator of `left operator ANY (array)` or `ALL (array)`. The second of the types to which
/// operands are converted is that of the array.
///
/// # Errors
/// As [`binary_operator`]. 42809: the right operand isn't an array, or the operator doesn't return a
/// boolean.
pub fn array_operator(
    names: &Namespace<'_>,
    name: ObjectName<'_>,
    left: Oid,
    array: Oid,
) -> Result<ResolvedOperator, SqlError> {
    let catalog = names.catalog();
    let wrong = |what: &str| {
        SqlError::new(SqlState::WRONG_OBJECT_TYPE, format!("op ANY/ALL (array) requires {what}"))
    };
    let element = match array {
        oids::UNKNOWN => oids::UNKNOWN,
        _ => catalog.base_element_type(array).ok_or_else(|| wrong("array on right side"))?,
    };
    let mut found = binary_operator(names, name, left, element)?;
    if found.result != oids::BOOL {
        return Err(wrong("operator to yield boolean"));
    }
    if found.returns_set {
        return Err(wrong("operator not to return a set"));
    }
    let declared = catalog.operator(found.operator).map_or(oids::NONE, |row| row.right);
    if let Some(right) = found.arguments.get_mut(1) {
        // A polymorphic operator takes the array as it is.
        *right = match oids::is_polymorphic_exact(declared) && array != oids::UNKNOWN {
            true => array,
            false => catalog.array_type(*right).ok_or_else(|| {
                let shown = names.type_name(*right);
                let message = format!("could not find array type for data type {shown}");
                SqlError::new(SqlState::UNDEFINED_OBJECT, message)
            })?,
        };
    }
    Ok(found)
}

/// The operators with which values of a type are sorted and grouped (`get_sort_group_operators`).
///
/// # Errors
/// 42883: the type has no order, if `needs_order`, or no equality.
pub fn sort_operators(
    names: &Namespace<'_>,
    oid: Oid,
    needs_order: bool,
) -> Result<TypeOperators, SqlError> {
    let found = names.catalog().type_operators(oid);
    let missing = |what: &str| {
        let shown = names.type_name(oid);
        let message = format!("could not identify {what} operator for type {shown}");
        SqlError::new(SqlState::UNDEFINED_FUNCTION, message)
    };
    if needs_order && (found.less.is_none() || found.greater.is_none()) {
        let hint = "Use an explicit ordering operator or modify the query.";
        return Err(missing("an ordering").with_hint(hint));
    }
    if found.equal.is_none() {
        return Err(missing("an equality"));
    }
    Ok(found)
}

/// The operator with exactly these operand types. A literal is taken to have the type of the other
/// operand, or if that is a domain, the type under it (`binary_oper_exact`).
fn exact(
    names: &Namespace<'_>,
    name: ObjectName<'_>,
    left: Oid,
    right: Oid,
) -> Result<Option<Oid>, SqlError> {
    let assumed = match (left, right) {
        (oids::UNKNOWN, other) | (other, oids::UNKNOWN) => other,
        _ => return names.exact_operator(name, left, right),
    };
    if let Some(found) = names.exact_operator(name, assumed, assumed)? {
        return Ok(Some(found));
    }
    match names.catalog().base_type(assumed) {
        base if base != assumed => names.exact_operator(name, base, base),
        _ => Ok(None),
    }
}

/// The best operator of a kind for operands that none takes exactly.
fn chosen(
    names: &Namespace<'_>,
    name: ObjectName<'_>,
    kind: u8,
    types: &[Oid],
) -> Result<Oid, SqlError> {
    let candidates = names.operator_candidates(name, kind)?;
    match choose(names.catalog(), types, candidates) {
        Choice::One(found) => found.oid.ok_or_else(|| ambiguous(names, name, types)),
        Choice::Ambiguous => Err(ambiguous(names, name, types)),
        Choice::NotFound => {
            let message = format!("operator does not exist: {}", signature(names, name, types));
            let (type_word, cast_words) = match types.len() {
                1 => ("type", "an explicit type cast"),
                _ => ("types", "explicit type casts"),
            };
            let hint = format!(
                "No operator matches the given name and argument {type_word}. \
                 You might need to add {cast_words}."
            );
            Err(SqlError::new(SqlState::UNDEFINED_FUNCTION, message).with_hint(hint))
        }
    }
}

fn ambiguous(names: &Namespace<'_>, name: ObjectName<'_>, types: &[Oid]) -> SqlError {
    let message = format!("operator is not unique: {}", signature(names, name, types));
    SqlError::new(SqlState::AMBIGUOUS_FUNCTION, message).with_hint(
        "Could not choose a best candidate operator. You might need to add explicit type casts.",
    )
}

/// The operator and its operands for messages, such as `integer + date` (`op_signature_string`).
fn signature(names: &Namespace<'_>, name: ObjectName<'_>, types: &[Oid]) -> String {
    match *types {
        [left, right] => format!("{} {name} {}", names.type_name(left), names.type_name(right)),
        [right] => format!("{name} {}", names.type_name(right)),
        _ => name.to_string(),
    }
}

/// The use of an operator for operands of these types (`make_op`).
fn resolved(
    names: &Namespace<'_>,
    name: ObjectName<'_>,
    operator: Oid,
    types: &[Oid],
) -> Result<ResolvedOperator, SqlError> {
    let catalog = names.catalog();
    let row = catalog.operator(operator);
    let row = row.ok_or_else(|| SqlError::internal("an operator that was found has no row"))?;
    let mut arguments =
        if row.left == oids::NONE { vec![row.right] } else { vec![row.left, row.right] };
    if row.function == oids::NONE {
        let message = format!("operator is only a shell: {}", signature(names, name, &arguments));
        return Err(SqlError::new(SqlState::UNDEFINED_FUNCTION, message));
    }
    let result = settle(names, types, &mut arguments, row.result)?;
    let returns_set = catalog.procedure(row.function).is_some_and(|found| found.returns_set);
    Ok(ResolvedOperator { operator, function: row.function, arguments, result, returns_set })
}
