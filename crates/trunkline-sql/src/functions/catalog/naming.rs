//! Names of objects: `format_type`, `pg_get_userbyid`, `pg_encoding_to_char`, `to_regclass` and the
//! like.

use trunkline_format::Oid;
use trunkline_format::catalog::encoding_name;
use trunkline_format::text_output::{ObjectClass, RegType};

use crate::catalog::{ENCODINGS, SessionCatalog, encoding_by_name, oids};
use crate::error::{SqlError, SqlState};
use crate::functions::call::{Call, Kernel};
use crate::functions::rows::{Reader, each_row, unary};
use crate::resolve::{INVALID_TYPE_NAME, named_object, named_type_text};

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
    ("PG_encoding_to_char", |call| {
        unary(call, |encoding: i32| {
            let at = usize::try_from(encoding).ok();
            Ok(at.and_then(|at| ENCODINGS.get(at)).copied().unwrap_or_default())
        })
    }),
    ("PG_char_to_encoding", |call| {
        unary(call, |name: &str| Ok(encoding_by_name(name).unwrap_or(-1)))
    }),
    ("getdatabaseencoding", |call| {
        let encoding = call.settings.session()?.catalog.database().info().encoding;
        each_row(call.rows, |_| Ok(Some(encoding_name(encoding))))
    }),
    ("to_regclass", |call| look_up(call, RegType::Named(ObjectClass::Relation))),
    ("to_regcollation", |call| look_up(call, RegType::Named(ObjectClass::Collation))),
    ("to_regnamespace", |call| look_up(call, RegType::Named(ObjectClass::Schema))),
    ("to_regoper", |call| look_up(call, RegType::Oper)),
    ("to_regoperator", |call| look_up(call, RegType::Operator)),
    ("to_regproc", |call| look_up(call, RegType::Proc)),
    ("to_regprocedure", |call| look_up(call, RegType::Procedure)),
    ("to_regrole", |call| look_up(call, RegType::Named(ObjectClass::Role))),
    ("to_regtype", |call| look_up(call, RegType::Type)),
    ("to_regtypemod", |call| {
        let session = call.settings.session()?;
        let texts = Reader::<&str>::new(call, 0)?;
        each_row(call.rows, |row| {
            let Some(text) = texts.get(row) else { return Ok(None) };
            let found = named_type_text(session.names(), text).map(|(_, modifier)| modifier);
            unless_missing(found, RegType::Type, call.settings.major)
        })
    }),
    ("text_regclass", |call| {
        let session = call.settings.session()?;
        unary(call, |text: &str| relation_named(session, text).map(|oid| oid.0))
    }),
    ("pg_relation_filenode", |call| {
        let catalog = &call.settings.session()?.catalog;
        let oids = Reader::<u32>::new(call, 0)?;
        each_row(call.rows, |row| {
            let relation = oids.get(row).and_then(|oid| catalog.database().relation(Oid(oid)));
            Ok(relation.and_then(|found| found.locator).map(|locator| locator.relfilenode))
        })
    }),
    // Only B-trees have phases besides those of all indexes.
    ("pg_indexam_progress_phasename", |call| {
        let (methods, phases) = (Reader::<u32>::new(call, 0)?, Reader::<i64>::new(call, 1)?);
        each_row(call.rows, |row| {
            let method = methods.get(row).filter(|&method| Oid(method) == oids::BTREE);
            let phase = method.and_then(|_| phases.get(row)?.checked_sub(1));
            let phase = phase.and_then(|phase| usize::try_from(phase).ok());
            Ok(phase.and_then(|phase| BTREE_PHASES.get(phase)).copied())
        })
    }),
    ("pg_relation_is_publishable", |call| each_relation(call, is_publishable)),
];

/// The phases of building a B-tree, from number 1 on.
const BTREE_PHASES: [&str; 5] = [
    "initializing",
    "scanning table",
    "sorting live tuples",
    "sorting dead tuples",
    "loading tuples in tree",
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
    named_object(session.names(), RegType::Named(ObjectClass::Relation), text)
}

/// `to_regclass` and the like: null if there is no such object. Since version 16, they take numbers,
/// too.
fn look_up(call: &Call<'_>, kind: RegType) -> Result<arrow_array::ArrayRef, SqlError> {
    let session = call.settings.session()?;
    let major = call.settings.major;
    let is_operator = matches!(kind, RegType::Oper | RegType::Operator);
    let texts = Reader::<&str>::new(call, 0)?;
    each_row(call.rows, |row| {
        let Some(text) = texts.get(row) else { return Ok(None) };
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if major >= 16 && is_number {
            return Ok(text.parse().ok());
        }
        if major >= 16 && text == "-" && !is_operator {
            return Ok(Some(0));
        }
        let found = named_object(session.names(), kind, text).map(|oid| oid.0);
        unless_missing(found, kind, major)
    })
}

/// Null if an object doesn't exist. Since version 16, most wrong names give null, too.
fn unless_missing<T>(
    found: Result<T, SqlError>,
    kind: RegType,
    major: u32,
) -> Result<Option<T>, SqlError> {
    let of_name: &[SqlState] = match kind {
        // The types of the arguments must exist.
        RegType::Procedure | RegType::Operator => &[SqlState::UNDEFINED_FUNCTION],
        RegType::Proc | RegType::Oper => {
            &[SqlState::UNDEFINED_FUNCTION, SqlState::AMBIGUOUS_FUNCTION]
        }
        RegType::Type | RegType::Named(_) => {
            &[SqlState::UNDEFINED_TABLE, SqlState::INVALID_SCHEMA_NAME, SqlState::UNDEFINED_OBJECT]
        }
    };
    let later: &[SqlState] = &[
        SqlState::UNDEFINED_OBJECT,
        SqlState::INVALID_SCHEMA_NAME,
        SqlState::INVALID_NAME,
        SqlState::INVALID_TEXT_REPRESENTATION,
        SqlState::UNDEFINED_PARAMETER,
        SqlState::TOO_MANY_ARGUMENTS,
    ];
    let is_later = |error: &SqlError| {
        let is_type = error.message().starts_with(INVALID_TYPE_NAME);
        later.contains(&error.code()) || error.code() == SqlState::SYNTAX_ERROR && is_type
    };
    match found {
        Ok(found) => Ok(Some(found)),
        Err(error) if of_name.contains(&error.code()) || major >= 16 && is_later(&error) => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}
