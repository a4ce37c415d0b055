//! Functions, aggregates and window functions by name and argument types (`parse_func.c`).
//!
//! A call can also be another spelling of a cast: `text(x)` and `float8('1')` convert their argument if
//! no function of that name takes exactly its type. That is decided here too, because it depends on
//! which functions there are. A third meaning, `name(row)` for a column of a row, needs the columns
//! and is left to the binder: it tries that one if this module reports 42883.

use trunkline_format::Oid;

use super::choice::{Choice, choose};
use super::coercion::{Coercion, CoercionContext, coercion};
use super::polymorphic::settle;
use crate::catalog::{CallShape, Candidate, Category, Namespace, ObjectName, oids};
use crate::error::{SqlError, SqlState};

/// The message for `VARIADIC` with something else than an array.
pub const NOT_AN_ARRAY: &str = "VARIADIC argument must be an array";

/// `FUNC_MAX_ARGS`.
const ARGUMENTS_MAX: usize = 100;

/// The arguments of a call.
#[derive(Debug, Clone, Copy)]
pub struct FunctionArguments<'a> {
    /// The types, in the order of the call.
    pub types: &'a [Oid],
    /// The names of the last arguments (`name => value`); empty if there are none.
    pub names: &'a [&'a str],
    /// Whether the last argument is marked `VARIADIC`.
    pub is_variadic: bool,
}

impl<'a> FunctionArguments<'a> {
    /// Arguments without names and without `VARIADIC`.
    pub fn positional(types: &'a [Oid]) -> Self {
        Self { types, names: &[], is_variadic: false }
    }
}

/// What a call stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResolvedCall {
    /// A function.
    Function(ResolvedFunction),
    /// A cast of the only argument to this type.
    Cast(Oid),
}

/// The kinds of functions that an expression can call (`prokind`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FunctionKind {
    /// An ordinary function.
    Plain,
    /// An aggregate. [`crate::catalog::SqlCatalog::aggregate`] says whether it is an ordered-set
    /// aggregate.
    Aggregate,
    /// A window function.
    Window,
}

/// A function that was chosen, and the types of its call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolvedFunction {
    /// `pg_proc.oid`.
    pub function: Oid,
    /// Its kind.
    pub kind: FunctionKind,
    /// The types to which the arguments of the call are converted, in the order of the call.
    pub arguments: Vec<Oid>,
    /// For each argument of the call, the parameter that it is for, from 0.
    pub parameters: Vec<usize>,
    /// The parameters that need their default, and their types.
    pub defaults: Vec<(usize, Oid)>,
    /// The last arguments, if they become the elements of an array.
    pub variadic: Option<VariadicArray>,
    /// The type of the result.
    pub result: Oid,
    /// Whether it returns a set.
    pub returns_set: bool,
}

/// The arguments of a variadic function that become one array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VariadicArray {
    /// The place of the first of them in the call.
    pub first: usize,
    /// Their type.
    pub element: Oid,
    /// The type of the array.
    pub array: Oid,
}

/// The function that a call stands for.
///
/// # Errors
/// 42883: there is none. 42725: there are several. 42804: polymorphic arguments contradict each other,
/// or an argument marked `VARIADIC` isn't an array. 42809: it is a procedure. 42601: an argument name
/// is used twice. 54023: there are too many arguments. 3F000: the name's schema doesn't exist. 0A000:
/// a polymorphic argument would need its default.
pub fn function(
    names: &Namespace<'_>,
    name: ObjectName<'_>,
    arguments: FunctionArguments<'_>,
) -> Result<ResolvedCall, SqlError> {
    let types = arguments.types;
    check_arguments(arguments)?;
    let shape = CallShape {
        count: types.len(),
        names: arguments.names,
        is_variadic: arguments.is_variadic,
    };
    let mut candidates = names.function_candidates(name, shape)?;
    let is_exact = |candidate: &Candidate| candidate.arguments.get(..types.len()) == Some(types);
    let found = match candidates.iter().position(is_exact) {
        Some(at) => candidates.swap_remove(at),
        None => {
            if let Some(target) = cast_target(names, name, arguments)? {
                return Ok(ResolvedCall::Cast(target));
            }
            match choose(names.catalog(), types, candidates) {
                Choice::One(found) => found,
                Choice::NotFound => return Err(not_found(names, name, arguments)),
                Choice::Ambiguous => return Err(ambiguous(names, name, arguments)),
            }
        }
    };
    let Some(oid) = found.oid else { return Err(ambiguous(names, name, arguments)) };
    let last = types.len().checked_sub(1).filter(|_| arguments.is_variadic);
    if !arguments.names.is_empty()
        && let Some(last) = last
        && found.parameters.get(last) != Some(&last)
    {
        return Err(not_found(names, name, arguments));
    }
    resolved(names, name, arguments, &found, oid).map(ResolvedCall::Function)
}

fn check_arguments(arguments: FunctionArguments<'_>) -> Result<(), SqlError> {
    if arguments.types.len() > ARGUMENTS_MAX {
        let message = format!("cannot pass more than {ARGUMENTS_MAX} arguments to a function");
        return Err(SqlError::new(SqlState::TOO_MANY_ARGUMENTS, message));
    }
    for (at, name) in arguments.names.iter().enumerate() {
        if arguments.names.iter().take(at).any(|earlier| earlier == name) {
            let message = format!("argument name \"{name}\" used more than once");
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, message));
        }
    }
    Ok(())
}

/// The type to which a call converts its argument, if it is another spelling of a cast. Casts by a
/// function are found under the function's name, so they don't belong here.
fn cast_target(
    names: &Namespace<'_>,
    name: ObjectName<'_>,
    arguments: FunctionArguments<'_>,
) -> Result<Option<Oid>, SqlError> {
    let (&[source], []) = (arguments.types, arguments.names) else { return Ok(None) };
    let found = names.find_type(name)?.filter(|row| row.defined && row.relation == oids::NONE);
    let Some(target) = found.map(|row| row.oid) else { return Ok(None) };
    let catalog = names.catalog();
    let is_cast = source == oids::UNKNOWN
        || match coercion(catalog, source, target, CoercionContext::Explicit) {
            Some(Coercion::Relabel) => true,
            // For a row it would rarely be what was meant.
            Some(Coercion::ViaText) => {
                let is_row = source == oids::RECORD || catalog.is_composite(source);
                !(is_row && catalog.category(target) == Category::STRING)
            }
            _ => false,
        };
    Ok(is_cast.then_some(target))
}

/// The call of a function with arguments of these types.
fn resolved(
    names: &Namespace<'_>,
    name: ObjectName<'_>,
    arguments: FunctionArguments<'_>,
    found: &Candidate,
    oid: Oid,
) -> Result<ResolvedFunction, SqlError> {
    let (catalog, types) = (names.catalog(), arguments.types);
    let row = catalog.procedure(oid);
    let row = row.ok_or_else(|| SqlError::internal("a function that was found has no row"))?;
    let kind = match row.kind {
        b'p' => {
            let message = format!("{} is a procedure", signature(names, name, arguments));
            return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message)
                .with_hint("To call a procedure, use CALL."));
        }
        b'a' => FunctionKind::Aggregate,
        b'w' => FunctionKind::Window,
        _ => FunctionKind::Plain,
    };
    let mut declared = found.arguments.clone();
    let omitted = declared.get(types.len()..).unwrap_or_default().to_vec();
    if omitted.iter().any(|&oid| oids::is_polymorphic(oid)) {
        let message =
            format!("defaults of polymorphic arguments of {name} are not supported by trunkline");
        return Err(SqlError::unsupported(message));
    }
    let actual = [types, &omitted].concat();
    let result = settle(names, &actual, &mut declared, row.result)?;
    let defaults = found.parameters.iter().zip(&declared).skip(types.len());
    let defaults = defaults.map(|(&parameter, &oid)| (parameter, oid)).collect();
    declared.truncate(types.len());
    if arguments.is_variadic
        && row.variadic == oids::ANY
        && let Some(&last) = types.last()
        && catalog.base_element_type(last).is_none()
    {
        return Err(SqlError::new(SqlState::DATATYPE_MISMATCH, NOT_AN_ARRAY));
    }
    let variadic = match found.variadic_count {
        count if count > 0 && row.variadic != oids::ANY => {
            Some(variadic_array(names, &declared, types.len() - count)?)
        }
        _ => None,
    };
    Ok(ResolvedFunction {
        function: oid,
        kind,
        arguments: declared,
        parameters: found.parameters.iter().copied().take(types.len()).collect(),
        defaults,
        variadic,
        result,
        returns_set: row.returns_set,
    })
}

fn variadic_array(
    names: &Namespace<'_>,
    declared: &[Oid],
    first: usize,
) -> Result<VariadicArray, SqlError> {
    let element = declared.get(first).copied().unwrap_or(oids::NONE);
    let array = names.catalog().array_type(element).ok_or_else(|| {
        let shown = names.type_name(element);
        let message = format!("could not find array type for data type {shown}");
        SqlError::new(SqlState::UNDEFINED_OBJECT, message)
    })?;
    Ok(VariadicArray { first, element, array })
}

fn not_found(
    names: &Namespace<'_>,
    name: ObjectName<'_>,
    arguments: FunctionArguments<'_>,
) -> SqlError {
    let message = format!("function {} does not exist", signature(names, name, arguments));
    SqlError::new(SqlState::UNDEFINED_FUNCTION, message).with_hint(
        "No function matches the given name and argument types. \
         You might need to add explicit type casts.",
    )
}

fn ambiguous(
    names: &Namespace<'_>,
    name: ObjectName<'_>,
    arguments: FunctionArguments<'_>,
) -> SqlError {
    let message = format!("function {} is not unique", signature(names, name, arguments));
    SqlError::new(SqlState::AMBIGUOUS_FUNCTION, message).with_hint(
        "Could not choose a best candidate function. You might need to add explicit type casts.",
    )
}

/// The call for messages, such as `f(integer, b => text)` (`func_signature_string`).
fn signature(
    names: &Namespace<'_>,
    name: ObjectName<'_>,
    arguments: FunctionArguments<'_>,
) -> String {
    let unnamed = arguments.types.len().saturating_sub(arguments.names.len());
    let shown = arguments.types.iter().enumerate().map(|(at, &oid)| {
        let shown = names.type_name(oid);
        match at.checked_sub(unnamed).and_then(|at| arguments.names.get(at)) {
            Some(argument) => format!("{argument} => {shown}"),
            None => shown,
        }
    });
    format!("{name}({})", shown.collect::<Vec<_>>().join(", "))
}
