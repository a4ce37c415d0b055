//! `pg_get_indexdef`: the command that creates an index, or one of its columns.
//!
//! `CREATE UNIQUE INDEX sales_month ON public.sales USING btree (month) INCLUDE (orders)`

use trunkline_engine::catalog::ColumnInfo;
use trunkline_format::Oid;
use trunkline_format::catalog::{IndexRow, RelationKind};
use trunkline_format::node_tree::{Node, NodeValue};

use super::deparse::{Deparser, looks_like_function, parse};
use super::node_fields::{damaged, oid, unsupported};
use crate::catalog::oids;
use crate::error::SqlError;

/// `indoption`: `DESC` and `NULLS FIRST`.
const DESCENDING: i16 = 1;
const NULLS_FIRST: i16 = 2;

/// The definition of an index; with `column` above 0, only that column. Null if there is no such
/// index.
pub(super) fn index_definition(
    deparser: Deparser<'_>,
    index_oid: Oid,
    column: i32,
) -> Result<Option<String>, SqlError> {
    let catalog = deparser.names.catalog();
    let database = catalog.database();
    let (Some(index), Some(relation)) = (database.index(index_oid), database.relation(index_oid))
    else {
        return Ok(None);
    };
    let deparser = Deparser { relation: index.table, ..deparser };
    let table = database.relation(index.table).ok_or_else(|| damaged("table"))?;
    let columns = database.columns(table).map_err(|_| damaged("columns"))?;
    let stored = catalog.definitions().index_expressions(index_oid)?;
    let trees = stored.and_then(|row| row.expressions.as_deref()).map(parse).transpose()?;
    let trees: Vec<&Node> =
        trees.iter().flat_map(NodeValue::elements).filter_map(NodeValue::node).collect();
    let method = database.access_method(relation.access_method).unwrap_or_default();
    let mut parts = Parts { deparser, index, columns, expressions: trees.into_iter() };
    let keys = parts.keys(column)?;
    if column != 0 {
        return Ok(Some(keys));
    }
    if !matches!(method, b"btree" | b"hash") {
        // Operator classes of others can have options.
        return Err(unsupported("an index of this access method"));
    }
    if catalog.definitions().has_options(index_oid)? {
        return Err(unsupported("an index with storage parameters"));
    }
    let unique = if index.unique { "UNIQUE " } else { "" };
    let only = if relation.kind == RelationKind::PartitionedIndex { "ONLY " } else { "" };
    let name = deparser.quoted(&relation.name);
    let table = deparser.relation_name(index.table, !deparser.pretty)?;
    let method = deparser.quoted(method);
    let mut text = format!("CREATE {unique}INDEX {name} ON {only}{table} USING {method} ({keys})");
    if index.nulls_not_distinct {
        text.push_str(" NULLS NOT DISTINCT");
    }
    if let Some(predicate) = stored.and_then(|row| row.predicate.as_deref()) {
        let condition = match parse(predicate)? {
            NodeValue::Node(node) => deparser.expression(&node, false)?,
            // Several conditions are stored as a list.
            NodeValue::List(list) => match &*list {
                [NodeValue::Node(only)] => deparser.expression(only, false)?,
                _ => return Err(unsupported("this predicate of an index")),
            },
            _ => return Err(damaged("indpred")),
        };
        text = format!("{text} WHERE {condition}");
    }
    Ok(Some(text))
}

/// The columns of an index.
struct Parts<'a, 'n, E> {
    deparser: Deparser<'a>,
    index: &'n IndexRow,
    columns: &'n [ColumnInfo],
    expressions: E,
}

impl<'n, E: Iterator<Item = &'n Node>> Parts<'_, 'n, E> {
    /// All columns, or only the one with this number, without what follows its name.
    fn keys(&mut self, only: i32) -> Result<String, SqlError> {
        let (mut text, mut separator) = (String::new(), "");
        let keys = usize::from(self.index.key_count);
        for (at, &number) in self.index.columns.iter().enumerate() {
            let is_key = at < keys;
            if only == 0 && at == keys {
                text.push_str(") INCLUDE (");
                separator = "";
            }
            let (name, ty, collation) = self.key(number)?;
            if only != 0 && i32::try_from(at + 1) != Ok(only) {
                continue;
            }
            text.push_str(separator);
            separator = ", ";
            text.push_str(&name);
            if only == 0 && is_key {
                text += &self.deparser.collation(self.index.collations.get(at), collation)?;
                text += &self.deparser.operator_class(self.index.classes.get(at), ty)?;
                text.push_str(self.order(at));
            }
        }
        Ok(text)
    }

    /// A column or an expression, with its type and collation.
    fn key(&mut self, number: i16) -> Result<(String, Oid, Oid), SqlError> {
        if number != 0 {
            let at = usize::try_from(number - 1).map_err(|_| damaged("indkey"))?;
            let column = self.columns.get(at).ok_or_else(|| damaged("indkey"))?;
            return Ok((self.deparser.quoted(&column.name), column.type_oid, column.collation));
        }
        let node = self.expressions.next().ok_or_else(|| damaged("indexprs"))?;
        let text = self.deparser.expression(node, false)?;
        let text = if looks_like_function(node) { text } else { format!("({text})") };
        let (ty, collation) = type_of(node)?;
        Ok((text, ty, collation))
    }

    fn order(&self, at: usize) -> &'static str {
        let options = self.index.options.get(at).copied().unwrap_or_default();
        match (options & DESCENDING != 0, options & NULLS_FIRST != 0) {
            (true, true) => " DESC",
            (true, false) => " DESC NULLS LAST",
            (false, true) => " NULLS FIRST",
            (false, false) => "",
        }
    }
}

/// The type and collation of an index expression.
pub(super) fn type_of(node: &Node) -> Result<(Oid, Oid), SqlError> {
    let (ty, collation) = match node.kind() {
        "FUNCEXPR" => ("funcresulttype", "funccollid"),
        "OPEXPR" => ("opresulttype", "opcollid"),
        "VAR" => ("vartype", "varcollid"),
        "RELABELTYPE" => ("resulttype", "resultcollid"),
        "COERCEVIAIO" => ("resulttype", "resultcollid"),
        "COALESCE" | "COALESCEEXPR" => ("coalescetype", "coalescecollid"),
        "BOOLEXPR" | "NULLTEST" | "BOOLEANTEST" | "SCALARARRAYOPEXPR" => {
            return Ok((oids::BOOL, Oid(0)));
        }
        kind => return Err(unsupported(&format!("an index on an expression of kind {kind}"))),
    };
    Ok((oid(node, ty)?, oid(node, collation)?))
}
