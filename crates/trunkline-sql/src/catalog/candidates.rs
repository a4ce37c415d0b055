//! The functions and operators that a name can stand for in a call (`namespace.c`).
//!
//! A candidate has one argument type for each argument of the call, so that candidates can be compared
//! with each other. To this end, the array of a variadic function is spread over the arguments that it
//! takes, and arguments with defaults that the call omits are left out at the end:
//!
//! ```text
//!   f(a int, variadic b text[])                called with 3 arguments: (int4, text, text)
//!   f(a int, b text default 'x')               called with 1 argument:  (int4) + a default of type text
//!   f(a int, b text), called as f(b => …, a => …): (text, int4), parameters 1, 0
//! ```

use trunkline_engine::catalog::Procedure;
use trunkline_format::Oid;

use super::namespace::{Namespace, ObjectName};
use super::oids;
use crate::error::SqlError;

/// The arguments of a call, as far as they limit which functions it can stand for.
#[derive(Debug, Clone, Copy)]
pub struct CallShape<'a> {
    /// The number of arguments.
    pub count: usize,
    /// The names of the last arguments (`name => value`); empty if there are none.
    pub names: &'a [&'a str],
    /// Whether the last argument is marked `VARIADIC`, so that it is the array itself.
    pub is_variadic: bool,
}

/// A function or an operator with the types that it takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// Its OID; `None` if several functions are equally good.
    pub oid: Option<Oid>,
    /// The type for each argument of the call, and then those of the defaults.
    pub arguments: Vec<Oid>,
    /// For each of these arguments, the number of the parameter it is for, from 0.
    pub parameters: Vec<usize>,
    /// How many of the arguments are elements of a variadic array.
    pub variadic_count: usize,
    /// How many of the arguments are defaults.
    pub default_count: usize,
    /// The place of its schema in the search.
    place: usize,
}

impl<'c> Namespace<'c> {
    /// The functions, procedures, aggregates and window functions that a call can stand for
    /// (`FuncnameGetCandidates`). Of functions that take the same arguments, only the best is returned.
    ///
    /// # Errors
    /// 3F000: the name's schema doesn't exist.
    pub fn function_candidates(
        &self,
        name: ObjectName<'_>,
        shape: CallShape<'_>,
    ) -> Result<Vec<Candidate>, SqlError> {
        let given = name.schema.map(|schema| self.schema(schema)).transpose()?;
        let Some(stored) = self.catalog().encoding().encode(name.name) else {
            return Ok(Vec::new());
        };
        let mut found: Vec<Candidate> = Vec::new();
        for procedure in self.catalog().procedures_named(&stored) {
            let Some(place) = self.place(given, procedure.schema) else { continue };
            if let Some(candidate) = self.candidate(procedure, shape, place) {
                add(candidate, &mut found);
            }
        }
        Ok(found)
    }

    /// How a function can be called, or `None` if it doesn't take such arguments.
    fn candidate(
        &self,
        procedure: &Procedure,
        shape: CallShape<'_>,
        place: usize,
    ) -> Option<Candidate> {
        let (parameters, count) = (procedure.arguments.len(), shape.count);
        let can_spread = !shape.is_variadic;
        let is_spread = shape.names.is_empty()
            && can_spread
            && parameters <= count
            && procedure.variadic != oids::NONE;
        if !shape.names.is_empty() && can_spread && procedure.variadic != oids::NONE {
            // Without a name, there is no way to match the elements of the variadic array.
            return None;
        }
        let has_defaults =
            parameters > count && count + usize::from(procedure.default_count) >= parameters;
        if parameters != count && !is_spread && !has_defaults {
            return None;
        }
        let numbers = match shape.names {
            [] => {
                (0..parameters.max(count)).map(|at| at.min(parameters.saturating_sub(1))).collect()
            }
            names => self.named_parameters(procedure, count, names)?,
        };
        let variadic_count = if is_spread { count + 1 - parameters } else { 0 };
        let first_variadic = numbers.len() - variadic_count;
        let argument = |(at, &number): (usize, &usize)| match at >= first_variadic && is_spread {
            true => Some(procedure.variadic),
            false => procedure.arguments.get(number).copied(),
        };
        Some(Candidate {
            oid: Some(procedure.oid),
            arguments: numbers.iter().enumerate().map(argument).collect::<Option<_>>()?,
            parameters: numbers,
            variadic_count,
            default_count: parameters.saturating_sub(count),
            place,
        })
    }

    /// For a call with named arguments, the parameter that each argument is for, and then those that
    /// need a default (`MatchNamedCall`).
    fn named_parameters(
        &self,
        procedure: &Procedure,
        count: usize,
        names: &[&str],
    ) -> Option<Vec<usize>> {
        let parameters = procedure.arguments.len();
        let mut numbers: Vec<usize> = (0..count - names.len()).collect();
        for name in names {
            let stored = self.catalog().encoding().encode(name)?;
            let number = procedure.inputs().position(|parameter| *parameter.name == *stored)?;
            if numbers.contains(&number) {
                return None;
            }
            numbers.push(number);
        }
        let first_default = parameters - usize::from(procedure.default_count);
        for number in 0..parameters {
            if !numbers.contains(&number) {
                if number < first_default {
                    return None;
                }
                numbers.push(number);
            }
        }
        Some(numbers)
    }

    /// The operator with exactly these operand types; `left` is 0 for a prefix operator
    /// (`OpernameGetOprid`).
    ///
    /// # Errors
    /// 3F000: the name's schema doesn't exist.
    pub fn exact_operator(
        &self,
        name: ObjectName<'_>,
        left: Oid,
        right: Oid,
    ) -> Result<Option<Oid>, SqlError> {
        let given = name.schema.map(|schema| self.schema(schema)).transpose()?;
        let rows = self.catalog().operators_named(name.name.as_bytes());
        let rows = rows.filter(|row| (row.left, row.right) == (left, right));
        let placed = rows.filter_map(|row| Some((self.place(given, row.schema)?, row.oid)));
        Ok(placed.min().map(|(_, oid)| oid))
    }

    /// The operators of a kind with a name: `b` for infix, `l` for prefix operators, whose only
    /// argument is the right operand (`OpernameGetCandidates`). Of operators with the same operands,
    /// only the one whose schema is searched first is returned.
    ///
    /// # Errors
    /// 3F000: the name's schema doesn't exist.
    pub fn operator_candidates(
        &self,
        name: ObjectName<'_>,
        kind: u8,
    ) -> Result<Vec<Candidate>, SqlError> {
        let given = name.schema.map(|schema| self.schema(schema)).transpose()?;
        let mut found: Vec<Candidate> = Vec::new();
        for row in self.catalog().operators_named(name.name.as_bytes()) {
            let Some(place) = self.place(given, row.schema).filter(|_| row.kind == kind) else {
                continue;
            };
            let arguments = if kind == b'l' { vec![row.right] } else { vec![row.left, row.right] };
            let parameters = (0..arguments.len()).collect();
            let (variadic_count, default_count) = (0, 0);
            let oid = Some(row.oid);
            add(
                Candidate { oid, arguments, parameters, variadic_count, default_count, place },
                &mut found,
            );
        }
        Ok(found)
    }
}

/// Adds a candidate unless there is one with the same arguments that is better. If neither is better,
/// the one that is there becomes ambiguous.
fn add(new: Candidate, found: &mut Vec<Candidate>) {
    let supplied = |candidate: &Candidate| candidate.arguments.len() - candidate.default_count;
    let same =
        |old: &Candidate| old.arguments.get(..supplied(old)) == new.arguments.get(..supplied(&new));
    let Some(at) = found.iter().position(same) else { return found.push(new) };
    let Some(old) = found.get_mut(at) else { return };
    if new.place != old.place {
        if new.place < old.place {
            *old = new;
        }
    } else if (new.variadic_count > 0) != (old.variadic_count > 0) {
        // A function that takes the arguments as they are needs no array.
        if new.variadic_count == 0 {
            *old = new;
        }
    } else {
        old.oid = None;
    }
}
