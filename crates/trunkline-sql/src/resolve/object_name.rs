//! **Objects by the texts that name them**, as the input functions of the `reg*` types find them
//! (`regproc.c`).
//!
//! ```text
//!   regclass      public.orders           regoper       pg_catalog.||/
//!   regproc       pg_catalog.now          regoperator   -(NONE, integer)
//!   regprocedure  abs(double precision)   regtype       numeric(10,2)[]
//! ```
//!
//! A name is folded to lower case unless it is quoted. Values in digits, and `-`, stand for OIDs and
//! are not looked up here.

use trunkline_format::Oid;
use trunkline_format::text_input::{InputError, InputNames};
use trunkline_format::text_output::{ObjectClass, RegType, TimeZone, TypeCatalog as _};

use super::name_parts::{name_parts, wrong_syntax};
use super::signature::{Signature, parse_signature};
use crate::catalog::{Namespace, ObjectName, SessionCatalog, oids};
use crate::error::{SqlError, SqlState};
use crate::syntax::{ExpressionKind, SelectBody, Statement, TypeModifierValue, TypeName, parse};

/// The object of a `reg*` type that a text names.
///
/// # Errors
/// 42883, 42P01, 42704, 3F000, 3D000: there is none. 42725: there are several. 42602, 42601, 22P02,
/// 42P02, 54023: the text isn't a name. 0A000: it names another database.
pub fn named_object(names: Namespace<'_>, kind: RegType, text: &str) -> Result<Oid, SqlError> {
    match kind {
        RegType::Proc => {
            let parts = name_parts(text)?;
            let missing = || {
                let message = format!("function \"{text}\" does not exist");
                SqlError::new(SqlState::UNDEFINED_FUNCTION, message)
            };
            let found = names.functions_named(object_name(names, &parts)?);
            let message = format!("more than one function named \"{text}\"");
            only(&found, missing, &message).map(|row| row.oid)
        }
        RegType::Procedure => {
            let Signature { parts, types } = parse_signature(text, false)?;
            let types = argument_types(names, &types)?;
            let found = names.functions_named(object_name(names, &parts)?);
            let found = found.into_iter().find(|row| row.arguments == types).map(|row| row.oid);
            found.ok_or_else(|| {
                let message = format!("function \"{text}\" does not exist");
                SqlError::new(SqlState::UNDEFINED_FUNCTION, message)
            })
        }
        RegType::Oper => {
            let parts = name_parts(text)?;
            let found = names.operators_named(object_name(names, &parts)?);
            let message = format!("more than one operator named {text}");
            only(&found, || no_operator(text), &message).map(|row| row.oid)
        }
        RegType::Operator => operator(names, text),
        RegType::Type => named_type_text(names, text).map(|(oid, _)| oid),
        RegType::Named(class) => named_in_class(names, class, text),
    }
}

/// `regoperator`.
fn operator(names: Namespace<'_>, text: &str) -> Result<Oid, SqlError> {
    let Signature { parts, types } = parse_signature(text, true)?;
    let types = argument_types(names, &types)?;
    let (left, right) = match *types {
        [left, right] => (left, right),
        [_] => {
            let hint = "Use NONE to denote the missing argument of a unary operator.";
            let error = SqlError::new(SqlState::UNDEFINED_PARAMETER, "missing argument");
            return Err(error.with_hint(hint));
        }
        _ => {
            let error = SqlError::new(SqlState::TOO_MANY_ARGUMENTS, "too many arguments");
            return Err(error.with_hint("Provide two argument types for operator."));
        }
    };
    let found = names.operators_named(object_name(names, &parts)?);
    let found = found.into_iter().find(|row| (row.left, row.right) == (left, right));
    found.map(|row| row.oid).ok_or_else(|| no_operator(text))
}

fn no_operator(text: &str) -> SqlError {
    SqlError::new(SqlState::UNDEFINED_FUNCTION, format!("operator does not exist: {text}"))
}

/// The only one of several objects.
fn only<'r, R>(
    found: &[&'r R],
    missing: impl FnOnce() -> SqlError,
    ambiguous: &str,
) -> Result<&'r R, SqlError> {
    match found {
        [only] => Ok(only),
        [] => Err(missing()),
        _ => Err(SqlError::new(SqlState::AMBIGUOUS_FUNCTION, ambiguous)),
    }
}

/// The types of a list, of which an empty text stands for none.
fn argument_types(names: Namespace<'_>, types: &[Option<&str>]) -> Result<Vec<Oid>, SqlError> {
    let each = types.iter().map(|ty| match ty {
        Some(ty) => named_type_text(names, ty).map(|(oid, _)| oid),
        None => Ok(oids::NONE),
    });
    each.collect()
}

/// The other types, each of which stands for the objects of a class.
fn named_in_class(names: Namespace<'_>, class: ObjectClass, text: &str) -> Result<Oid, SqlError> {
    let catalog = names.catalog();
    let parts = name_parts(text)?;
    let missing = |what: &str, code: SqlState| {
        SqlError::new(code, format!("{what} \"{}\" does not exist", parts.join(".")))
    };
    match class {
        ObjectClass::Relation => {
            let name = relation_name(names, &parts)?;
            match names.virtual_relation(name) {
                Some(found) => Ok(found.oid),
                None => Ok(names.relation_named(name)?.oid),
            }
        }
        ObjectClass::Collation => {
            let name = object_name(names, &parts)?;
            names.collation_named(name).map(|row| row.oid).map_err(|error| match error.code() {
                SqlState::INVALID_SCHEMA_NAME => names.no_collation(name),
                _ => error,
            })
        }
        ObjectClass::TextSearchConfig => {
            let name = object_name(names, &parts)?;
            let rows = catalog.definitions().catalogs()?.text_search_configs.iter();
            let rows = rows.map(|row| (row.oid, row.schema, &*row.name));
            let found = names.object_named(name, rows);
            found.ok_or_else(|| missing("text search configuration", SqlState::UNDEFINED_OBJECT))
        }
        ObjectClass::TextSearchDictionary => {
            let name = object_name(names, &parts)?;
            let rows = catalog.definitions().catalogs()?.text_search_dictionaries.iter();
            let rows = rows.map(|row| (row.oid, row.schema, &*row.name));
            let found = names.object_named(name, rows);
            found.ok_or_else(|| missing("text search dictionary", SqlState::UNDEFINED_OBJECT))
        }
        ObjectClass::Role => {
            let stored = catalog.encoding().encode(single_part(&parts)?).unwrap_or_default();
            let found = catalog.definitions().role_named(&stored)?.map(|row| row.oid);
            found.ok_or_else(|| missing("role", SqlState::UNDEFINED_OBJECT))
        }
        ObjectClass::Schema => names.schema(single_part(&parts)?),
        ObjectClass::Database => {
            let stored = catalog.encoding().encode(single_part(&parts)?).unwrap_or_default();
            let found = catalog.database().objects_named(ObjectClass::Database, &stored);
            let found = found.first().map(|row| row.oid);
            found.ok_or_else(|| missing("database", SqlState::INVALID_CATALOG_NAME))
        }
        // These have kinds of their own.
        ObjectClass::Procedure | ObjectClass::Operator | ObjectClass::Type => {
            Err(SqlError::internal("a name of a class that has a type of its own"))
        }
    }
}

/// How the message of an error begins that says that a text is empty or has `SETOF`, where a type is
/// wanted. Functions that look names up return null for it since version 16, but not for other wrong
/// texts, although the code is the same.
pub(crate) const INVALID_TYPE_NAME: &str = "invalid type name";

/// The type and the modifier that a text stands for, in the spelling of casts (`parseTypeString`).
///
/// # Errors
/// 42601: it isn't a type name. Otherwise, as for [`named_type`].
pub fn named_type_text(names: Namespace<'_>, text: &str) -> Result<(Oid, i32), SqlError> {
    let invalid = || {
        let message = format!("{INVALID_TYPE_NAME} \"{text}\"");
        SqlError::new(SqlState::SYNTAX_ERROR, message)
    };
    let wrong = || {
        let message = format!("syntax error in type name \"{text}\"");
        SqlError::new(SqlState::SYNTAX_ERROR, message)
    };
    if text.trim_ascii().is_empty() {
        return Err(invalid());
    }
    // The grammar of types is that of casts. A position would be one in the text made here.
    let sql = format!("select null::{text}");
    let parsed =
        parse(&sql).map_err(|error| SqlError::new(SqlState::SYNTAX_ERROR, error.message()))?;
    let [statement] = &*parsed else { return Err(wrong()) };
    let Statement::Select(select) = &statement.statement else { return Err(wrong()) };
    let SelectBody::Select(core) = &select.body else { return Err(wrong()) };
    match &*core.targets {
        [target] => match &target.expression.kind {
            ExpressionKind::TypeCast { type_name, .. } if target.name.is_none() => {
                let behind = sql.get(type_name.span.end() as usize..).unwrap_or_default();
                if !behind.trim().is_empty() {
                    return Err(wrong());
                }
                if type_name.setof {
                    return Err(invalid());
                }
                let found = named_type(names, type_name);
                found.map_err(|error| SqlError::new(error.code(), error.message()))
            }
            _ => Err(wrong()),
        },
        _ => Err(wrong()),
    }
}

/// The type that a type name stands for, and its modifier; -1 if it has none.
///
/// # Errors
/// 42704, 3F000: there is no such type. Otherwise, those of its modifiers.
pub fn named_type(names: Namespace<'_>, type_name: &TypeName) -> Result<(Oid, i32), SqlError> {
    let at = type_name.span.start;
    let parts: Vec<String> = type_name.name.parts.iter().map(|part| part.text.clone()).collect();
    let name = object_name(names, &parts).map_err(|error| error.at(type_name.name.span.start))?;
    let row = names.type_named(name).map_err(|error| error.at(at))?;
    let constants: Vec<String> = (type_name.modifiers.iter())
        .map(|modifier| match &modifier.value {
            TypeModifierValue::Integer(number) => number.to_string(),
            TypeModifierValue::Text(text) => text.clone(),
        })
        .collect();
    let constants: Vec<&str> = constants.iter().map(String::as_str).collect();
    let modifier = names.catalog().type_modifier(row.oid, name, &constants);
    let modifier = modifier.map_err(|error| error.at(at))?;
    if type_name.array_bounds.is_empty() {
        return Ok((row.oid, modifier));
    }
    let array = names.catalog().promoted_array_type(row.oid).ok_or_else(|| {
        let name = names.type_name(row.oid);
        let message = format!("could not find array type for data type {name}");
        SqlError::new(SqlState::UNDEFINED_OBJECT, message).at(at)
    })?;
    Ok((array, modifier))
}

/// Schema and name (`DeconstructQualifiedName`).
///
/// # Errors
/// 0A000: the name is that of another database's object. 42601: it has too many parts.
pub fn object_name<'n>(
    names: Namespace<'_>,
    parts: &'n [String],
) -> Result<ObjectName<'n>, SqlError> {
    let whole = || parts.join(".");
    qualified(names, parts)?.ok_or_else(|| {
        let message = match parts.len() {
            3 => format!("cross-database references are not implemented: {}", whole()),
            _ => format!("improper qualified name (too many dotted names): {}", whole()),
        };
        SqlError::new(code_of(parts), message)
    })
}

/// The same for a relation, about which the errors have other words.
fn relation_name<'n>(
    names: Namespace<'_>,
    parts: &'n [String],
) -> Result<ObjectName<'n>, SqlError> {
    let whole = || parts.join(".");
    qualified(names, parts)?.ok_or_else(|| {
        let message = match parts.len() {
            3 => format!("cross-database references are not implemented: \"{}\"", whole()),
            _ => format!("improper relation name (too many dotted names): {}", whole()),
        };
        SqlError::new(code_of(parts), message)
    })
}

fn code_of(parts: &[String]) -> SqlState {
    match parts.len() {
        3 => SqlState::FEATURE_NOT_SUPPORTED,
        _ => SqlState::SYNTAX_ERROR,
    }
}

/// `None` if the name is that of another database's object, or has too many parts.
fn qualified<'n>(
    names: Namespace<'_>,
    parts: &'n [String],
) -> Result<Option<ObjectName<'n>>, SqlError> {
    let catalog = names.catalog();
    Ok(match parts {
        [] => return Err(wrong_syntax()),
        [name] => Some(ObjectName { schema: None, name }),
        [schema, name] => Some(ObjectName { schema: Some(schema), name }),
        [database, schema, name]
            if *database == catalog.encoding().decode(&catalog.database().info().name) =>
        {
            Some(ObjectName { schema: Some(schema), name })
        }
        _ => None,
    })
}

/// The name of an object that belongs to no schema.
fn single_part(parts: &[String]) -> Result<&str, SqlError> {
    match parts {
        [only] => Ok(only),
        _ => Err(wrong_syntax()),
    }
}

/// The input of values finds objects as the session sees them.
impl InputNames for SessionCatalog {
    fn time_zone(&self, name: &str) -> Option<std::sync::Arc<dyn TimeZone>> {
        trunkline_engine::time_zone::zone(name)
    }

    fn object(&self, kind: RegType, name: &str) -> Result<Oid, InputError> {
        named_object(self.names(), kind, name).map_err(|error| {
            InputError::of_name(error.code().as_str(), error.message(), error.hint())
        })
    }
}
