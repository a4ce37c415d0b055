//! Which commands a relation can take: `pg_relation_is_updatable` and `pg_column_is_updatable`.
//!
//! A table can be inserted into, updated and deleted from. A view can if its rules replace the command,
//! or if its query is so simple that PostgreSQL rewrites the command for the table under it
//! (`view_query_is_auto_updatable`). The information schema shows this, although nothing can be
//! written here.

use trunkline_format::Oid;
use trunkline_format::catalog::RelationKind;
use trunkline_format::node_tree::{Node, NodeValue};

use super::deparse::parse;
use super::node_fields::{child, damaged, oid};
use crate::catalog::SqlCatalog;
use crate::error::{SqlError, SqlState};
use crate::functions::call::{Call, Kernel};
use crate::functions::rows::{Reader, each_row};

/// Commands as bits: the second is `UPDATE`, the third `INSERT`, the fourth `DELETE`.
const UPDATE: u32 = 1 << 2;
const INSERT: u32 = 1 << 3;
const DELETE: u32 = 1 << 4;
const ALL: u32 = UPDATE | INSERT | DELETE;

/// How many views may be on each other.
const DEPTH_MAX: u32 = 64;

/// The kernels of this module.
pub(in crate::functions) const UPDATABLE: &[(&str, Kernel)] = &[
    ("pg_relation_is_updatable", |call| {
        let relations = Reader::<u32>::new(call, 0)?;
        let with_triggers = Reader::<bool>::new(call, 1)?;
        let catalog = catalog(call)?;
        each_row(call.rows, |row| match (relations.get(row), with_triggers.get(row)) {
            (Some(relation), Some(_)) => {
                let found = commands(catalog, Oid(relation), None, 0)?;
                Ok(Some(i32::try_from(found).unwrap_or_default()))
            }
            _ => Ok(None),
        })
    }),
    ("pg_column_is_updatable", |call| {
        let relations = Reader::<u32>::new(call, 0)?;
        let numbers = Reader::<i16>::new(call, 1)?;
        let with_triggers = Reader::<bool>::new(call, 2)?;
        let catalog = catalog(call)?;
        each_row(call.rows, |row| {
            match (relations.get(row), numbers.get(row), with_triggers.get(row)) {
                // System columns are never updatable.
                (Some(_), Some(number), Some(_)) if number <= 0 => Ok(Some(false)),
                (Some(relation), Some(number), Some(_)) => {
                    let wanted = [i64::from(number)];
                    let found = commands(catalog, Oid(relation), Some(&wanted), 0)?;
                    Ok(Some(found & (UPDATE | DELETE) == UPDATE | DELETE))
                }
                _ => Ok(None),
            }
        })
    }),
];

fn catalog<'a>(call: &'a Call<'_>) -> Result<&'a SqlCatalog, SqlError> {
    Ok(&call.settings.session()?.catalog)
}

/// The commands that a relation can take, for all columns or for these (`relation_is_updatable`).
fn commands(
    catalog: &SqlCatalog,
    relation: Oid,
    wanted: Option<&[i64]>,
    depth: u32,
) -> Result<u32, SqlError> {
    let Some(info) = catalog.database().relation(relation) else { return Ok(0) };
    match info.kind {
        RelationKind::Table | RelationKind::PartitionedTable => return Ok(ALL),
        RelationKind::ForeignTable => {
            let message = "whether a foreign table is updatable is not known to trunkline, which is \
                           not supported by trunkline";
            return Err(SqlError::unsupported(message));
        }
        RelationKind::View => {}
        _ => return Ok(0),
    }
    if info.has_triggers {
        let message = "whether a view with triggers is updatable is not supported by trunkline";
        return Err(SqlError::unsupported(message));
    }
    if depth >= DEPTH_MAX {
        let message = "views are nested too deeply";
        return Err(SqlError::new(SqlState::STATEMENT_TOO_COMPLEX, message));
    }
    let replaced = catalog.replaced_commands(relation)? & ALL;
    if replaced == ALL {
        return Ok(ALL);
    }
    let Some(stored) = catalog.view_query(relation)? else { return Ok(replaced) };
    let tree = parse(&stored)?;
    let [NodeValue::Node(query)] = tree.elements() else { return Ok(replaced) };
    let Some((number, base)) = simple_base(catalog, query)? else { return Ok(replaced) };
    let mut columns = Vec::new();
    for (target, at) in query.nodes("targetList").zip(1..) {
        let expr = child(target, "expr")?;
        let is_column = !target.flag("resjunk")
            && expr.kind() == "VAR"
            && expr.number("varno") == Some(number)
            && expr.number("varlevelsup") == Some(0);
        let column = expr.number("varattno").filter(|column| is_column && *column > 0);
        let is_wanted = wanted.is_none_or(|wanted| wanted.contains(&at));
        columns.extend(column.filter(|_| is_wanted));
    }
    let own = if columns.is_empty() { DELETE } else { ALL };
    let kind = catalog.database().relation(base).map(|info| info.kind);
    let of_base = match kind {
        Some(RelationKind::Table | RelationKind::PartitionedTable) => ALL,
        _ => commands(catalog, base, Some(&columns), depth + 1)?,
    };
    Ok(replaced | (own & of_base))
}

/// The only table of a query that is simple enough: its number and its OID.
fn simple_base(catalog: &SqlCatalog, query: &Node) -> Result<Option<(i64, Oid)>, SqlError> {
    let lists = ["distinctClause", "groupClause", "groupingSets", "cteList"];
    let nodes = ["havingQual", "setOperations", "limitOffset", "limitCount"];
    let flags = ["hasAggs", "hasWindowFuncs", "hasTargetSRFs"];
    let is_simple = lists.iter().all(|field| query.list(field).is_empty())
        && nodes.iter().all(|field| query.child(field).is_none())
        && !flags.iter().any(|field| query.flag(field));
    let items: Vec<&Node> = child(query, "jointree")?.nodes("fromlist").collect();
    let [item] = *items else { return Ok(None) };
    if !is_simple || item.kind() != "RANGETBLREF" {
        return Ok(None);
    }
    let number = item.number("rtindex").ok_or_else(|| damaged("rtindex"))?;
    let at = usize::try_from(number - 1).map_err(|_| damaged("rtindex"))?;
    let entry = query.nodes("rtable").nth(at).ok_or_else(|| damaged("rtindex"))?;
    if entry.number("rtekind") != Some(0) || entry.child("tablesample").is_some() {
        return Ok(None);
    }
    let base = oid(entry, "relid")?;
    let kind = catalog.database().relation(base).map(|info| info.kind);
    let is_base = matches!(
        kind,
        Some(
            RelationKind::Table
                | RelationKind::PartitionedTable
                | RelationKind::ForeignTable
                | RelationKind::View
        )
    );
    Ok(is_base.then_some((number, base)))
}
