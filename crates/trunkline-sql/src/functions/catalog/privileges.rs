//! Privileges: `has_table_privilege`, `pg_has_role` and the like.
//!
//! Sessions have no users of their own: a program that opens a directory can read its files anyway. So
//! a session acts as a superuser, which has every privilege on every object that exists. If a call
//! names a role that is not a superuser, the answer would need access lists, and the call is refused.

use trunkline_format::Oid;
use trunkline_format::catalog::RelationKind;
use trunkline_format::text_output::RegType;

use super::naming::relation_named;
use crate::error::{SqlError, SqlState};
use crate::functions::call::{Call, Kernel};
use crate::functions::rows::{Reader, each_row};
use crate::resolve::named_object;

/// A class of objects with privileges.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Table,
    Column,
    Sequence,
    Database,
    Function,
    Language,
    Schema,
    Type,
    Role,
    Server,
    Wrapper,
    Tablespace,
    Parameter,
}

/// The kernels for a class: without and with a role, which is a name or an OID, as is the object.
macro_rules! has_privilege {
    ($($class:literal $kind:ident;)*) => {
        &[$(
            (concat!($class, "_name"), |call| check(call, Class::$kind, false)),
            (concat!($class, "_id"), |call| check(call, Class::$kind, false)),
            (concat!($class, "_name_name"), |call| check(call, Class::$kind, true)),
            (concat!($class, "_name_id"), |call| check(call, Class::$kind, true)),
            (concat!($class, "_id_name"), |call| check(call, Class::$kind, true)),
            (concat!($class, "_id_id"), |call| check(call, Class::$kind, true)),
        )*
        ("has_column_privilege_name_name", |call| check(call, Class::Column, false)),
        ("has_column_privilege_name_attnum", |call| check(call, Class::Column, false)),
        ("has_column_privilege_id_name", |call| check(call, Class::Column, false)),
        ("has_column_privilege_id_attnum", |call| check(call, Class::Column, false)),
        ("has_column_privilege_name_name_name", |call| check(call, Class::Column, true)),
        ("has_column_privilege_name_name_attnum", |call| check(call, Class::Column, true)),
        ("has_column_privilege_name_id_name", |call| check(call, Class::Column, true)),
        ("has_column_privilege_name_id_attnum", |call| check(call, Class::Column, true)),
        ("has_column_privilege_id_name_name", |call| check(call, Class::Column, true)),
        ("has_column_privilege_id_name_attnum", |call| check(call, Class::Column, true)),
        ("has_column_privilege_id_id_name", |call| check(call, Class::Column, true)),
        ("has_column_privilege_id_id_attnum", |call| check(call, Class::Column, true)),
        ("has_parameter_privilege_name", |call| check(call, Class::Parameter, false)),
        ("has_parameter_privilege_name_name", |call| check(call, Class::Parameter, true)),
        ("has_parameter_privilege_id_name", |call| check(call, Class::Parameter, true)),
        ("row_security_active", |call| {
            let oids = Reader::<u32>::new(call, 0)?;
            each_row(call.rows, |row| Ok(oids.get(row).map(|_| false)))
        }),
        ]
    };
}

/// The kernels of this module.
pub(in crate::functions) const PRIVILEGES: &[(&str, Kernel)] = has_privilege! {
    "has_table_privilege" Table;
    "has_any_column_privilege" Table;
    "has_sequence_privilege" Sequence;
    "has_database_privilege" Database;
    "has_function_privilege" Function;
    "has_language_privilege" Language;
    "has_schema_privilege" Schema;
    "has_type_privilege" Type;
    "has_server_privilege" Server;
    "has_foreign_data_wrapper_privilege" Wrapper;
    "has_tablespace_privilege" Tablespace;
    "pg_has_role" Role;
};

/// An argument: an object's name, its OID, or a column's number.
enum Value<'a> {
    Name(&'a str),
    Oid(Oid),
    Number(i16),
}

/// An argument of any of these types.
enum Values<'a> {
    Names(Reader<'a, &'a str>),
    Oids(Reader<'a, u32>),
    Numbers(Reader<'a, i16>),
}

impl<'a> Values<'a> {
    fn new(call: &'a Call<'_>, number: usize) -> Result<Self, SqlError> {
        if let Ok(names) = Reader::<&str>::new(call, number) {
            return Ok(Self::Names(names));
        }
        if let Ok(oids) = Reader::<u32>::new(call, number) {
            return Ok(Self::Oids(oids));
        }
        Reader::<i16>::new(call, number).map(Self::Numbers)
    }

    fn get(&self, row: usize) -> Option<Value<'a>> {
        match self {
            Self::Names(names) => names.get(row).map(Value::Name),
            Self::Oids(oids) => oids.get(row).map(|oid| Value::Oid(Oid(oid))),
            Self::Numbers(numbers) => numbers.get(row).map(Value::Number),
        }
    }
}

fn check(call: &Call<'_>, class: Class, has_role: bool) -> Result<arrow_array::ArrayRef, SqlError> {
    let count = call.arguments.len();
    let arguments = (0..count.saturating_sub(1)).map(|number| Values::new(call, number));
    let arguments: Vec<Values<'_>> = arguments.collect::<Result<_, _>>()?;
    let privileges = Reader::<&str>::new(call, count.saturating_sub(1))?;
    each_row(call.rows, |row| {
        let values = arguments.iter().map(|argument| argument.get(row));
        let values: Option<Vec<Value<'_>>> = values.collect();
        let (Some(values), Some(privilege)) = (values, privileges.get(row)) else {
            return Ok(None);
        };
        let objects = match (has_role, &*values) {
            (true, [role, objects @ ..]) => {
                require_superuser(call, role)?;
                objects
            }
            (_, objects) => objects,
        };
        // A name is looked up before the privilege is parsed, and an OID after it.
        let is_named = matches!(objects.first(), Some(Value::Name(_)));
        let early = if is_named { exists(call, class, objects)? } else { None };
        let any = parse_privileges(class, privilege, call.settings.major)?;
        let found = if is_named { early } else { exists(call, class, objects)? };
        Ok(found.map(|()| any))
    })
}

/// Refuses a role that doesn't have all privileges.
fn require_superuser(call: &Call<'_>, role: &Value<'_>) -> Result<(), SqlError> {
    let catalog = &call.settings.session()?.catalog;
    let found = match role {
        Value::Name(name) => {
            let stored = catalog.encoding().encode(name).unwrap_or_default();
            let found = catalog.definitions().role_named(&stored)?;
            if found.is_none() && *name != "public" {
                return Err(missing("role", name, SqlState::UNDEFINED_OBJECT));
            }
            found
        }
        Value::Oid(oid) => catalog.definitions().role(*oid)?,
        Value::Number(_) => None,
    };
    if found.is_some_and(|role| role.superuser) {
        return Ok(());
    }
    let message = "privileges of a role that is not a superuser are not supported by trunkline";
    Err(SqlError::unsupported(message))
}

fn missing(what: &str, name: &str, code: SqlState) -> SqlError {
    SqlError::new(code, format!("{what} \"{name}\" does not exist"))
}

/// `None` if an OID or a column number stands for nothing.
///
/// # Errors
/// A name stands for nothing, or the object is of another class.
fn exists(call: &Call<'_>, class: Class, objects: &[Value<'_>]) -> Result<Option<()>, SqlError> {
    let session = call.settings.session()?;
    let (catalog, names) = (&session.catalog, session.names());
    let Some(object) = objects.first() else { return Ok(None) };
    // Since version 17, a superuser's privileges are known before the object is looked up.
    let shortcut = call.settings.major >= 17;
    let is_there = match (class, object) {
        (Class::Table | Class::Column | Class::Sequence, object) => {
            let oid = match object {
                Value::Name(name) => relation_named(session, name)?,
                Value::Oid(oid) => *oid,
                Value::Number(_) => return Ok(None),
            };
            let Some(relation) = catalog.database().relation(oid) else { return Ok(None) };
            let name = catalog.encoding().decode(&relation.name);
            if class == Class::Sequence && relation.kind != RelationKind::Sequence {
                let message = format!("\"{name}\" is not a sequence");
                return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message));
            }
            match objects.get(1) {
                Some(column) => has_column(call, relation, &name, column)?,
                None => true,
            }
        }
        (Class::Schema, Value::Name(name)) => names.schema(name).map(|_| true)?,
        (Class::Schema, Value::Oid(oid)) => catalog.database().schema(*oid).is_some() || shortcut,
        (Class::Database, Value::Name(name)) => {
            let stored = catalog.encoding().encode(name).unwrap_or_default();
            let mut all = catalog.database().databases().iter();
            if !all.any(|row| *row.name == *stored) {
                return Err(missing("database", name, SqlState::INVALID_CATALOG_NAME));
            }
            true
        }
        (Class::Database, Value::Oid(oid)) => {
            catalog.database().databases().iter().any(|row| row.oid == *oid) || shortcut
        }
        (Class::Function, Value::Name(text)) => {
            named_object(names, RegType::Procedure, text).map(|_| true)?
        }
        (Class::Function, Value::Oid(oid)) => catalog.procedure(*oid).is_some() || shortcut,
        (Class::Language, Value::Name(name)) => {
            if !catalog.has_language(name) {
                return Err(missing("language", name, SqlState::UNDEFINED_OBJECT));
            }
            true
        }
        (Class::Language, Value::Oid(oid)) => catalog.language(*oid).is_some() || shortcut,
        (Class::Type, Value::Name(text)) => {
            named_object(names, RegType::Type, text).map(|_| true)?
        }
        (Class::Type, Value::Oid(oid)) => catalog.data_type(*oid).is_some() || shortcut,
        (Class::Role, Value::Name(name)) => {
            let stored = catalog.encoding().encode(name).unwrap_or_default();
            if catalog.definitions().role_named(&stored)?.is_none() {
                return Err(missing("role", name, SqlState::UNDEFINED_OBJECT));
            }
            true
        }
        // The server doesn't check whether a role with this OID exists, nor a setting.
        (Class::Role | Class::Parameter, _) => true,
        (Class::Server, object) => {
            let rows = catalog.definitions().catalogs()?.foreign_servers.iter();
            let rows = rows.map(|row| (row.oid, &*row.name));
            is_among(call, object, rows, "server")? || shortcut
        }
        (Class::Wrapper, object) => {
            let rows = catalog.definitions().catalogs()?.foreign_data_wrappers.iter();
            let rows = rows.map(|row| (row.oid, &*row.name));
            is_among(call, object, rows, "foreign-data wrapper")? || shortcut
        }
        (Class::Tablespace, object) => {
            let rows = catalog.database().tablespaces().iter();
            is_among(call, object, rows.map(|row| (row.oid, &*row.name)), "tablespace")? || shortcut
        }
        (_, Value::Number(_)) => return Err(SqlError::internal("an object by a number")),
    };
    Ok(is_there.then_some(()))
}

/// Whether an object is among those of a catalog, which are given as OID and stored name.
///
/// # Errors
/// A name stands for none of them.
fn is_among<'r>(
    call: &Call<'_>,
    object: &Value<'_>,
    mut rows: impl Iterator<Item = (Oid, &'r [u8])>,
    what: &str,
) -> Result<bool, SqlError> {
    match object {
        Value::Name(name) => {
            let stored = call.settings.session()?.catalog.encoding().encode(name);
            if !stored.is_some_and(|stored| rows.any(|(_, found)| *found == *stored)) {
                return Err(missing(what, name, SqlState::UNDEFINED_OBJECT));
            }
            Ok(true)
        }
        Value::Oid(oid) => Ok(rows.any(|(found, _)| found == *oid)),
        Value::Number(_) => Ok(false),
    }
}

fn has_column(
    call: &Call<'_>,
    relation: &trunkline_engine::catalog::RelationInfo,
    table: &str,
    column: &Value<'_>,
) -> Result<bool, SqlError> {
    let catalog = &call.settings.session()?.catalog;
    let columns = catalog.database().columns(relation);
    let columns =
        columns.map_err(|error| SqlError::new(SqlState::DATA_CORRUPTED, error.to_string()))?;
    let mut present = columns.iter().filter(|info| !info.dropped);
    match column {
        Value::Name(name) => {
            let stored = catalog.encoding().encode(name).unwrap_or_default();
            let is_system =
                crate::catalog::SYSTEM_COLUMNS.iter().any(|column| column.name == *name);
            if !is_system && !present.any(|info| *info.name == *stored) {
                let message = format!("column \"{name}\" of relation \"{table}\" does not exist");
                return Err(SqlError::new(SqlState::UNDEFINED_COLUMN, message));
            }
            Ok(true)
        }
        Value::Number(number) if *number < 0 => Ok(*number >= -6),
        Value::Number(number) => Ok(present.any(|info| info.number as i16 == *number)),
        Value::Oid(_) => Ok(false),
    }
}

/// Whether a list of privileges names any that exists. Versions before 18 accept
/// `RULE`, which means nothing.
fn parse_privileges(class: Class, text: &str, major: u32) -> Result<bool, SqlError> {
    let known: &[&str] = match class {
        Class::Table => {
            &["SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE", "REFERENCES", "TRIGGER"]
        }
        Class::Column => &["SELECT", "INSERT", "UPDATE", "REFERENCES"],
        Class::Sequence => &["USAGE", "SELECT", "UPDATE"],
        Class::Database => &["CREATE", "TEMPORARY", "TEMP", "CONNECT"],
        Class::Function => &["EXECUTE"],
        Class::Language | Class::Type | Class::Server | Class::Wrapper => &["USAGE"],
        Class::Tablespace => &["CREATE"],
        Class::Parameter => &["SET", "ALTER SYSTEM"],
        Class::Schema => &["CREATE", "USAGE"],
        Class::Role if major >= 16 => &["USAGE", "MEMBER", "SET"],
        Class::Role => &["USAGE", "MEMBER"],
    };
    let mut any = false;
    for part in text.split(',') {
        let part = part.trim_matches(|char: char| char.is_ascii_whitespace());
        let upper = part.to_ascii_uppercase();
        let word = upper.strip_suffix(" WITH GRANT OPTION");
        let admin = upper.strip_suffix(" WITH ADMIN OPTION").filter(|_| class == Class::Role);
        let word = word.or(admin).unwrap_or(&upper);
        let is_of_version = class == Class::Table
            && match word {
                "RULE" => major < 18,
                "MAINTAIN" => major >= 17,
                _ => false,
            };
        if !known.contains(&word) && !is_of_version {
            let message = format!("unrecognized privilege type: \"{part}\"");
            return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message));
        }
        any |= word != "RULE";
    }
    Ok(any)
}
