//! Expressions that only queries have: columns of tables, aggregates, window functions, subqueries.

use trunkline_format::Oid;
use trunkline_format::node_tree::{Node, NodeValue};

use super::deparse::Deparser;
use super::node_fields::{child, damaged, oid, unsupported};
use super::query_names::{QueryNames, TableKind};
use crate::catalog::{SYSTEM_COLUMNS, oids};
use crate::error::SqlError;

/// A column as it is printed.
pub(super) struct ColumnText {
    pub(super) text: String,
    /// The name that a target has by itself; `None` for a whole row.
    pub(super) name: Option<String>,
}

impl<'a> Deparser<'a> {
    /// A column of a table of a query (`get_variable`). With `is_whole`, where a list of columns could
    /// stand, a whole row gets a cast.
    pub(super) fn query_column(
        &self,
        names: &QueryNames<'_>,
        node: &Node,
        is_whole: bool,
    ) -> Result<ColumnText, SqlError> {
        let level = names.level(node.number("varlevelsup").unwrap_or_default())?;
        let table = level.table(node.number("varno").ok_or_else(|| damaged("varno"))?)?;
        let number = node.number("varattno").ok_or_else(|| damaged("varattno"))?;
        let at = usize::try_from(number - 1).ok();
        let beneath = match table.kind {
            TableKind::Group => at.and_then(|at| table.entry.list("groupexprs").get(at)),
            TableKind::Join if self.binding || table.name.is_none() => {
                at.and_then(|at| table.entry.list("joinaliasvars").get(at))
            }
            _ => None,
        };
        if let Some(NodeValue::Node(beneath)) = beneath {
            let there = Deparser { query: Some(level), ..*self };
            if beneath.kind() == "VAR" {
                return there.query_column(level, beneath, is_whole);
            }
            if self.binding || table.kind == TableKind::Group {
                return Ok(ColumnText { text: there.expression(beneath, true)?, name: None });
            }
        }
        if number == 0 {
            let name = table.name.as_deref();
            let name = name.ok_or_else(|| unsupported("a whole row of a join"))?;
            let mut text = format!("{}.*", self.quoted_text(name));
            if is_whole {
                let ty = self.names.format_type(oid(node, "vartype")?, None);
                text = format!("{text}::{ty}");
            }
            return Ok(ColumnText { text, name: None });
        }
        let system = SYSTEM_COLUMNS.iter().find(|column| i64::from(column.number) == number);
        let column = match system {
            Some(system) => system.name,
            None => {
                let column = at.and_then(|at| table.columns.get(at));
                column.and_then(Option::as_deref).ok_or_else(|| damaged("varattno"))?
            }
        };
        let shown = self.quoted_text(column);
        let is_prefixed = self.binding || self.query.is_none_or(QueryNames::has_prefixes);
        let text = match table.name.as_deref().filter(|_| is_prefixed) {
            Some(name) => format!("{}.{shown}", self.quoted_text(name)),
            None => shown,
        };
        Ok(ColumnText { text, name: Some(column.to_owned()) })
    }

    /// A name in UTF-8 as an identifier.
    pub(super) fn quoted_text(&self, name: &str) -> String {
        match self.names.catalog().encoding().encode(name) {
            Some(stored) => self.quoted(&stored),
            None => format!("\"{}\"", name.replace('"', "\"\"")),
        }
    }

    /// An expression where a whole row would be taken for a list of columns.
    pub(super) fn whole(&self, node: &Node, implicit: bool) -> Result<String, SqlError> {
        match self.query {
            Some(names) if node.kind() == "VAR" => Ok(self.query_column(names, node, true)?.text),
            _ => self.expression(node, implicit),
        }
    }

    /// The kinds of nodes that only queries have.
    pub(super) fn query_expression(&self, node: &Node, implicit: bool) -> Result<String, SqlError> {
        match node.kind() {
            "AGGREF" => self.aggregate(node),
            "WINDOWFUNC" => self.window_function(node),
            "SUBLINK" => self.sub_link(node),
            "FIELDSELECT" => {
                let argument = child(node, "arg")?;
                let text = self.expression(argument, true)?;
                let bare = matches!(argument.kind(), "SUBSCRIPTINGREF" | "FIELDSELECT");
                let text = if bare && !self.binding { text } else { format!("({text})") };
                let number = node.number("fieldnum").ok_or_else(|| damaged("fieldnum"))?;
                let name = self.field_name(argument, number)?;
                Ok(format!("{text}.{}", self.quoted_text(&name)))
            }
            "SUBSCRIPTINGREF" => self.subscript(node, implicit),
            "ROW" | "ROWEXPR" => {
                let fields = node.nodes("args").map(|field| self.whole(field, true));
                let fields = fields.collect::<Result<Vec<_>, _>>()?.join(", ");
                let ty = oid(node, "row_typeid")?;
                let is_cast = match self.binding {
                    true => ty != oids::RECORD,
                    false => node.number("row_format") == Some(1),
                };
                Ok(match is_cast {
                    true => format!("ROW({fields})::{}", self.names.format_type(ty, None)),
                    false => format!("ROW({fields})"),
                })
            }
            "ROWCOMPARE" | "ROWCOMPAREEXPR" => {
                let row = |field: &str| {
                    let fields = node.nodes(field).map(|field| self.whole(field, true));
                    Ok::<_, SqlError>(fields.collect::<Result<Vec<_>, _>>()?.join(", "))
                };
                let operator = self.first_operator(node)?;
                Ok(format!("(ROW({}) {operator} ROW({}))", row("largs")?, row("rargs")?))
            }
            "COLLATE" | "COLLATEEXPR" => {
                let argument = self.operand(child(node, "arg")?, implicit, node)?;
                let collation = oid(node, "collOid")?;
                let collation = self.collation(Some(&collation), Oid(0))?;
                Ok(self.wrapped(format!("{argument}{collation}")))
            }
            "GROUPINGFUNC" => {
                let arguments = node.nodes("args").map(|node| self.expression(node, true));
                let arguments = arguments.collect::<Result<Vec<_>, _>>()?.join(", ");
                Ok(format!("GROUPING({arguments})"))
            }
            kind => Err(unsupported(&format!("an expression of kind {kind}"))),
        }
    }

    pub(super) fn first_operator(&self, node: &Node) -> Result<String, SqlError> {
        let operator = match node.list("opnos").first() {
            Some(NodeValue::Token(token)) => str::from_utf8(token).ok(),
            _ => None,
        };
        let operator = operator.and_then(|token| token.parse().ok()).map(Oid);
        self.operator(operator.ok_or_else(|| damaged("opnos"))?)
    }
}
