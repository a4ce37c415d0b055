//! Chooses the tables to copy into a directory: all of them, those of schemas (`-n`), those that
//! match a pattern (`-t`), or those that were named.
//!
//! The rules are those of `pg_dump`, except where its rules would copy something else than the user
//! expects, without a message:
//!
//! - Every pattern must match something, patterns of exclusions included. A misspelt exclusion would
//!   otherwise copy what should be left out.
//! - A partitioned table stands for its partitions, in exclusions too: we copy rows, and it has none.
//! - Patterns don't match system catalogs, which could not be loaded again. They can be named.
//! - A sequence is copied only if it matches by itself. `pg_dump` also brings the sequences that a
//!   matching table owns, but the columns of our copies have no defaults that would use them.
//! - A pattern without a schema matches in `public` only, like a name. In `pg_dump`, this depends on
//!   the `search_path` of the role that connects, and we have no role.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

use trunkline_engine::catalog::{Database, RelationInfo, is_system_schema};
use trunkline_format::Oid;
use trunkline_format::catalog::RelationKind;

use super::args::CopyArgs;
use super::pattern::{NamePattern, TablePattern};
use crate::encoding::{NameForm, resolve};
use crate::exit::Failure;

/// The schema in which patterns without a schema match.
const DEFAULT_SCHEMA: &[u8] = b"public";

/// The hint if no table matches.
const TABLE_HINT: &str = "a pattern without a schema matches only tables in public; use \
     SCHEMA.PATTERN; system catalogs are copied by name only";

/// The hint if no schema matches.
const SCHEMA_HINT: &str = "patterns don't match system schemas; system catalogs are copied by name";

/// The hint if nothing matches and the pattern was changed to lower case.
const CAPITALS_HINT: &str =
    "capital letters need double quotes, and the shell needs more around them: '\"Name\"'";

/// Returns the relations to copy, by OID. They include sequences if there will be a script that loads
/// the copies, and foreign tables, whose rows are elsewhere, so that the caller can say so.
pub(super) fn selected<'d>(
    args: &CopyArgs,
    database: &'d Database,
) -> Result<Vec<&'d RelationInfo>, Failure> {
    let mut wanted: BTreeSet<Oid> = BTreeSet::new();
    for name in &args.tables {
        let relation = resolve(database, name)?;
        if !relation.is_partitioned() {
            database.table_files(relation)?;
        }
        wanted.extend(database.leaves(relation).iter().map(|leaf| leaf.oid));
    }
    for text in &args.patterns {
        wanted.extend(matching_tables(database, text, args.writes_script())?);
    }
    if args.tables.is_empty() && args.patterns.is_empty() {
        let of_schemas = match args.schemas.is_empty() {
            true => database.schemas().iter().map(|schema| schema.oid).collect(),
            false => matching_schemas(database, &args.schemas)?,
        };
        let excluded = matching_schemas(database, &args.exclude_schemas)?;
        let in_schema = |relation: &&RelationInfo| {
            of_schemas.contains(&relation.schema) && !excluded.contains(&relation.schema)
        };
        wanted.extend(user_tables(database).filter(in_schema).map(|relation| relation.oid));
    }
    for text in &args.exclude_tables {
        for oid in matching_tables(database, text, true)? {
            wanted.remove(&oid);
        }
    }
    let relations = database.relations().iter();
    // Sequences are for the script that loads the copies.
    let is_copied = |it: &&RelationInfo| match it.kind {
        RelationKind::Sequence => args.writes_script(),
        _ => !it.is_partitioned(),
    };
    Ok(relations.filter(|it| wanted.contains(&it.oid)).filter(is_copied).collect())
}

/// Returns the relations that patterns can match: tables with rows, or with partitions that have
/// rows, foreign tables and sequences. Temporary tables are in system schemas.
fn user_tables(database: &Database) -> impl Iterator<Item = &RelationInfo> {
    use RelationKind::{ForeignTable, MaterializedView, PartitionedTable, Sequence, Table};
    database.relations().iter().filter(|relation| {
        let kind = relation.kind;
        matches!(kind, Table | MaterializedView | PartitionedTable | ForeignTable | Sequence)
            && !is_system_schema(&database.schema_name(relation))
    })
}

/// Returns the tables that match a pattern, and the partitions of those that are partitioned. As in
/// `pg_dump`, the children of other parents have to match by themselves. A pattern that matches only
/// sequences is an error unless there are `sequences` to copy.
fn matching_tables(
    database: &Database,
    text: &OsString,
    sequences: bool,
) -> Result<BTreeSet<Oid>, Failure> {
    let pattern = TablePattern::parse(text.as_bytes()).map_err(Failure::usage)?;
    let encoding = database.info().encoding;
    for form in NameForm::of_pattern(text) {
        let mut found = BTreeSet::new();
        for relation in user_tables(database) {
            let schema = database.schema_name(relation);
            let in_schema = match &pattern.schema {
                Some(wanted) => wanted.matches(&form.of(&schema, encoding)),
                None => schema == DEFAULT_SCHEMA,
            };
            let may_match = sequences || relation.kind != RelationKind::Sequence;
            if in_schema && may_match && pattern.table.matches(&form.of(&relation.name, encoding)) {
                found.extend(database.leaves(relation).iter().map(|leaf| leaf.oid));
                found.insert(relation.oid);
            }
        }
        if !found.is_empty() {
            return Ok(found);
        }
    }
    Err(no_match("tables", text, TABLE_HINT))
}

/// Returns the schemas that match any of the patterns.
fn matching_schemas(database: &Database, texts: &[OsString]) -> Result<BTreeSet<Oid>, Failure> {
    let mut found = BTreeSet::new();
    for text in texts {
        let pattern = NamePattern::parse(text.as_bytes()).map_err(Failure::usage)?;
        let encoding = database.info().encoding;
        let matching = |form: &NameForm| {
            let schemas = database.schemas().iter().filter(|it| !is_system_schema(&it.name));
            let matching = schemas.filter(|it| pattern.matches(&form.of(&it.name, encoding)));
            let oids: Vec<Oid> = matching.map(|schema| schema.oid).collect();
            (!oids.is_empty()).then_some(oids)
        };
        match NameForm::of_pattern(text).iter().find_map(matching) {
            Some(oids) => found.extend(oids),
            None => return Err(no_match("schemas", text, SCHEMA_HINT)),
        }
    }
    Ok(found)
}

/// The failure for a pattern that matches nothing, in the words of `pg_dump`. `hint` is given
/// unless the pattern has capitals, which patterns change to lower case like SQL does.
fn no_match(what: &str, pattern: &OsString, hint: &str) -> Failure {
    let pattern = pattern.to_string_lossy();
    let is_folded = !pattern.contains('"') && pattern.bytes().any(|byte| byte.is_ascii_uppercase());
    let text = format!("no matching {what} were found for pattern \"{pattern}\"");
    Failure::usage(text).with_hint(match is_folded {
        true => CAPITALS_HINT,
        false => hint,
    })
}
