//! Names of objects: `format_type`, `pg_get_userbyid`, `pg_encoding_to_char`, `to_regclass`.

use trunkline_engine::catalog::QualifiedName;
use trunkline_format::Oid;
use trunkline_format::catalog::encoding_name;

use crate::catalog::{ObjectName, SessionCatalog};
use crate::error::{SqlError, SqlState};
use crate::functions::call::{Call, Kernel};
use crate::functions::rows::{Reader, each_row, unary};

/// The kernels of this module.
pub(in crate::functions) const NAMING: &[(&str, Kernel)] = &[
    // Not strict: a null modifier is different from -1.
    ("format_type", |call| {
        let names = call.settings.session()?.names();
        let (types, modifiers) = (Reader::<u32>::new(call, 0)?, Reader::<i32>::new(call, 1)?);
        each_row(call.rows, |row| {
            let found = types.get(row);
            Ok(found.map(|oid| names.format_type(Oid(oid), modifiers.get(row))))
        })
    }),
    ("pg_get_userbyid", |call| {
        let catalog = &call.settings.session()?.catalog;
        unary(call, |oid: u32| {
            let found = catalog.definitions().role(Oid(oid))?;
            Ok(match found {
                Some(role) => catalog.encoding().decode(&role.name),
                None => format!("unknown (OID={oid})"),
            })
        })
    }),
    ("current_schemas", |call| {
        let session = call.settings.session()?;
        let database = session.catalog.database();
        unary(call, |implicit: bool| {
            let listed = match implicit {
                true => session.path.searched(),
                false => session.path.listed(),
            };
            let name = trunkline_format::deform::Attribute {
                len: 64,
                align: trunkline_format::Align::Char,
            };
            let mut array = crate::functions::array::ArrayBuilder::new(Oid(19), name);
            for schema in listed.iter().filter_map(|oid| database.schema(*oid)) {
                let mut padded = schema.name.to_vec();
                padded.resize(64, 0);
                array.push(Some(&padded))?;
            }
            array.finish_list()
        })
    }),
    ("pg_typeof", |call| {
        let ty = call.argument_types.first().map(|ty| ty.0);
        each_row(call.rows, |_| Ok(ty))
    }),
    ("PG_encoding_to_char", |call| unary(call, |encoding: i32| Ok(encoding_name(encoding)))),
    ("getdatabaseencoding", |call| {
        let encoding = call.settings.session()?.catalog.database().info().encoding;
        each_row(call.rows, |_| Ok(Some(encoding_name(encoding))))
    }),
    ("to_regclass", |call| {
        let session = call.settings.session()?;
        let texts = Reader::<&str>::new(call, 0)?;
        each_row(call.rows, |row| match texts.get(row) {
            Some(text) => {
                unless_missing(relation_named(session, text)).map(|oid| oid.map(|oid| oid.0))
            }
            None => Ok(None),
        })
    }),
    ("to_regnamespace", |call| {
        let session = call.settings.session()?;
        let texts = Reader::<&str>::new(call, 0)?;
        each_row(call.rows, |row| {
            let Some(text) = texts.get(row) else { return Ok(None) };
            match name_parts(text)? {
                (None, name) => {
                    unless_missing(session.names().schema(&name)).map(|oid| oid.map(|oid| oid.0))
                }
                (Some(_), _) => Err(SqlError::new(SqlState::INVALID_NAME, "invalid name syntax")),
            }
        })
    }),
    ("to_regrole", |call| {
        let catalog = &call.settings.session()?.catalog;
        let texts = Reader::<&str>::new(call, 0)?;
        each_row(call.rows, |row| {
            let Some(text) = texts.get(row) else { return Ok(None) };
            let (None, name) = name_parts(text)? else {
                return Err(SqlError::new(SqlState::INVALID_NAME, "invalid name syntax"));
            };
            let name = catalog.encoding().encode(&name).unwrap_or_default();
            Ok(catalog.definitions().role_named(&name)?.map(|role| role.oid.0))
        })
    }),
    ("pg_relation_filenode", |call| {
        let catalog = &call.settings.session()?.catalog;
        let oids = Reader::<u32>::new(call, 0)?;
        each_row(call.rows, |row| {
            let relation = oids.get(row).and_then(|oid| catalog.database().relation(Oid(oid)));
            Ok(relation.and_then(|found| found.locator).map(|locator| locator.relfilenode))
        })
    }),
    ("pg_relation_is_publishable", |call| each_relation(call, is_publishable)),
];

/// A table of the user that is logged: partitioned or plain, and not one of the system's.
fn is_publishable(relation: &trunkline_engine::catalog::RelationInfo) -> bool {
    use trunkline_format::catalog::{Persistence, RelationKind};
    matches!(relation.kind, RelationKind::Table | RelationKind::PartitionedTable)
        && relation.persistence == Persistence::Permanent
        && relation.oid.0 >= FIRST_NORMAL_OID
}

/// `FirstNormalObjectId`: objects of the system have smaller OIDs.
const FIRST_NORMAL_OID: u32 = 16_384;

/// Answers for each relation; null if there is none.
fn each_relation(
    call: &Call<'_>,
    answer: impl Fn(&trunkline_engine::catalog::RelationInfo) -> bool,
) -> Result<arrow_array::ArrayRef, SqlError> {
    let catalog = &call.settings.session()?.catalog;
    let oids = Reader::<u32>::new(call, 0)?;
    each_row(call.rows, |row| {
        let relation = oids.get(row).and_then(|oid| catalog.database().relation(Oid(oid)));
        Ok(relation.map(&answer))
    })
}

/// The relation that a text names.
pub(super) fn relation_named(session: &SessionCatalog, text: &str) -> Result<Oid, SqlError> {
    let (schema, name) = name_parts(text)?;
    let name = ObjectName { schema: schema.as_deref(), name: &name };
    Ok(session.names().relation_named(name)?.oid)
}

/// Splits a name as the input functions do: folded to lower case unless quoted.
pub(super) fn name_parts(text: &str) -> Result<(Option<String>, String), SqlError> {
    let wrong = || SqlError::new(SqlState::INVALID_NAME, "invalid name syntax");
    let name = QualifiedName::parse(text.as_bytes()).map_err(|_| wrong())?;
    let utf8 = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).map_err(|_| wrong());
    let schema = name.schema.as_deref().map(utf8).transpose()?;
    Ok((schema, utf8(&name.relation)?))
}

/// Null if an object doesn't exist.
fn unless_missing<T>(found: Result<T, SqlError>) -> Result<Option<T>, SqlError> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(error)
            if [
                SqlState::UNDEFINED_TABLE,
                SqlState::INVALID_SCHEMA_NAME,
                SqlState::UNDEFINED_OBJECT,
            ]
            .contains(&error.code()) =>
        {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}
