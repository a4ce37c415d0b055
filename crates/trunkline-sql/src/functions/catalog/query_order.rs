//! `ORDER BY` and `GROUP BY` of a stored query.
//!
//! Both refer to entries of the target list by a number that the entry has (`ressortgroupref`).

use trunkline_format::node_tree::{Node, NodeValue};

use super::deparse::Deparser;
use super::node_fields::{child, damaged, oid};
use crate::error::SqlError;

/// `GroupingSetKind`.
const EMPTY: i64 = 0;
const SIMPLE: i64 = 1;
const ROLLUP: i64 = 2;
const CUBE: i64 = 3;

fn target_of<'n>(targets: &[&'n Node], reference: Option<i64>) -> Result<&'n Node, SqlError> {
    let mut targets = targets.iter().copied();
    let found = targets.find(|target| target.number("ressortgroupref") == reference);
    found.filter(|_| reference.is_some()).ok_or_else(|| damaged("ressortgroupref"))
}

impl Deparser<'_> {
    /// Sort keys (`get_rule_orderby`). With `numbered`, they are numbers of columns.
    pub(super) fn order<'n>(
        &self,
        keys: impl Iterator<Item = &'n Node>,
        targets: &[&Node],
        numbered: bool,
    ) -> Result<String, SqlError> {
        let mut texts = Vec::new();
        for key in keys {
            let text = self.sort_expression(key, targets, numbered)?;
            let operator = oid(key, "sortop")?;
            let nulls_first = key.flag("nulls_first");
            let row = self.names.catalog().operator(operator).ok_or_else(|| damaged("sortop"))?;
            let own = self.names.catalog().type_operators(row.left);
            let (less, greater) = match &*row.name {
                b"<" => (own.less == Some(operator) || own.less.is_none(), false),
                b">" => (false, own.greater == Some(operator) || own.greater.is_none()),
                _ => (false, false),
            };
            texts.push(match (less, greater, nulls_first) {
                (true, _, false) => text,
                (true, _, true) => format!("{text} NULLS FIRST"),
                (_, true, true) => format!("{text} DESC"),
                (_, true, false) => format!("{text} DESC NULLS LAST"),
                _ => {
                    let nulls = if nulls_first { "FIRST" } else { "LAST" };
                    format!("{text} USING {} NULLS {nulls}", self.operator(operator)?)
                }
            });
        }
        Ok(texts.join(", "))
    }

    /// The expression of a key (`get_rule_sortgroupclause`).
    pub(super) fn sort_expression(
        &self,
        key: &Node,
        targets: &[&Node],
        numbered: bool,
    ) -> Result<String, SqlError> {
        self.sort_reference(key.number("tleSortGroupRef"), targets, numbered)
    }

    fn sort_reference(
        &self,
        reference: Option<i64>,
        targets: &[&Node],
        numbered: bool,
    ) -> Result<String, SqlError> {
        let target = target_of(targets, reference)?;
        if numbered {
            let number = target.number("resno").ok_or_else(|| damaged("resno"))?;
            return Ok(number.to_string());
        }
        let mut expr = child(target, "expr")?;
        // Since version 18, columns of GROUP BY are those of a table of their own.
        if let (Some(names), "VAR") = (self.query, expr.kind())
            && expr.number("varlevelsup") == Some(0)
        {
            let table = names.table(expr.number("varno").unwrap_or_default())?;
            let at = expr.number("varattno").and_then(|number| usize::try_from(number - 1).ok());
            let beneath = at.and_then(|at| table.entry.list("groupexprs").get(at));
            expr = beneath.and_then(NodeValue::node).unwrap_or(expr);
        }
        match expr.kind() {
            // A bare number would be the number of a column.
            "CONST" => self.constant(expr, Some(true)),
            "VAR" => self.expression(expr, false),
            kind => {
                let text = self.expression(expr, true)?;
                let parenthesized = self.pretty
                    || matches!(kind, "FUNCEXPR" | "AGGREF" | "WINDOWFUNC" | "JSONCONSTRUCTOREXPR");
                Ok(if parenthesized { format!("({text})") } else { text })
            }
        }
    }

    /// One of `GROUPING SETS` (`get_rule_groupingset`).
    pub(super) fn grouping_set(
        &self,
        set: &Node,
        targets: &[&Node],
        bare: bool,
    ) -> Result<String, SqlError> {
        let content = set.list("content");
        let kind = set.number("kind").ok_or_else(|| damaged("kind"))?;
        if kind == EMPTY {
            return Ok("()".to_owned());
        }
        if kind == SIMPLE {
            let keys = content.iter().map(|reference| {
                let number = match reference {
                    NodeValue::Token(token) => str::from_utf8(token).ok(),
                    _ => None,
                };
                let number = number.and_then(|token| token.parse().ok());
                self.sort_reference(number, targets, false)
            });
            let keys = keys.collect::<Result<Vec<_>, _>>()?.join(", ");
            return Ok(if bare && content.len() == 1 { keys } else { format!("({keys})") });
        }
        let (word, bare) = match kind {
            ROLLUP => ("ROLLUP", true),
            CUBE => ("CUBE", true),
            _ => ("GROUPING SETS ", false),
        };
        let sets = content.iter().filter_map(NodeValue::node);
        let sets = sets.map(|set| self.grouping_set(set, targets, bare));
        Ok(format!("{word}({})", sets.collect::<Result<Vec<_>, _>>()?.join(", ")))
    }
}
