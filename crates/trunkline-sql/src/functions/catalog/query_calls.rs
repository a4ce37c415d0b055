//! Aggregates, window functions, subqueries, subscripts and fields of a stored query.

use trunkline_engine::catalog::ParameterMode;
use trunkline_format::node_tree::{Node, NodeValue};

use super::deparse::Deparser;
use super::node_fields::{child, damaged, oid, type_of, unsupported};
use super::query_names::{TableKind, strings};
use crate::catalog::oids;
use crate::error::SqlError;

/// `SubLinkType`.
const EXISTS: i64 = 0;
const ALL: i64 = 1;
const ANY: i64 = 2;
const ROW_COMPARE: i64 = 3;
const EXPRESSION: i64 = 4;
const ARRAY: i64 = 6;

/// The bits of `frameOptions`.
const NOT_DEFAULT: i64 = 0x1;
const RANGE: i64 = 0x2;
const ROWS: i64 = 0x4;
const BETWEEN: i64 = 0x10;
const START: [(i64, &str); 5] = [
    (0x20, "UNBOUNDED PRECEDING"),
    (0x80, "UNBOUNDED FOLLOWING"),
    (0x200, "CURRENT ROW"),
    (0x800, " PRECEDING"),
    (0x2000, " FOLLOWING"),
];
const END: [(i64, &str); 5] = [
    (0x40, "UNBOUNDED PRECEDING"),
    (0x100, "UNBOUNDED FOLLOWING"),
    (0x400, "CURRENT ROW"),
    (0x1000, " PRECEDING"),
    (0x4000, " FOLLOWING"),
];
const EXCLUDE: [(i64, &str); 3] = [(0x8000, "CURRENT ROW"), (0x10000, "GROUP"), (0x20000, "TIES")];

impl Deparser<'_> {
    /// An aggregate (`get_agg_expr`).
    pub(super) fn aggregate(&self, node: &Node) -> Result<String, SqlError> {
        let name = self.function(oid(node, "aggfnoid")?)?;
        let distinct = if node.list("aggdistinct").is_empty() { "" } else { "DISTINCT " };
        let mut text = format!("{name}({distinct}");
        let entries: Vec<&Node> = node.nodes("args").collect();
        if node.text("aggkind").is_some_and(|kind| kind != b"n") {
            text += &self.list(node.nodes("aggdirectargs"), true)?;
            let order = self.order(node.nodes("aggorder"), &entries, false)?;
            text += &format!(") WITHIN GROUP (ORDER BY {order}");
        } else {
            if node.flag("aggstar") {
                text.push('*');
            }
            let shown: Vec<&Node> =
                entries.iter().filter(|entry| !entry.flag("resjunk")).copied().collect();
            for (at, entry) in shown.iter().enumerate() {
                if at > 0 {
                    text.push_str(", ");
                }
                if node.flag("aggvariadic") && at + 1 == shown.len() {
                    text.push_str("VARIADIC ");
                }
                text += &self.expression(child(entry, "expr")?, true)?;
            }
            if !node.list("aggorder").is_empty() {
                let order = self.order(node.nodes("aggorder"), &entries, false)?;
                text += &format!(" ORDER BY {order}");
            }
        }
        if let Some(filter) = node.child("aggfilter") {
            text += &format!(") FILTER (WHERE {}", self.expression(filter, false)?);
        }
        Ok(text + ")")
    }

    /// A window function with its window (`get_windowfunc_expr`).
    pub(super) fn window_function(&self, node: &Node) -> Result<String, SqlError> {
        let name = self.function(oid(node, "winfnoid")?)?;
        let arguments = match node.flag("winstar") {
            true => "*".to_owned(),
            false => self.list(node.nodes("args"), true)?,
        };
        let mut text = format!("{name}({arguments}");
        if let Some(filter) = node.child("aggfilter") {
            text += &format!(") FILTER (WHERE {}", self.expression(filter, false)?);
        }
        let query = self.query.ok_or_else(|| damaged("window function"))?.query;
        let mut windows = query.nodes("windowClause");
        let window = windows.find(|window| window.number("winref") == node.number("winref"));
        let window = window.ok_or_else(|| damaged("winref"))?;
        let shown = match window.text("name") {
            Some(name) if !self.binding => self.quoted(name),
            _ => self.window(window, query)?,
        };
        Ok(format!("{text}) OVER {shown}"))
    }

    /// A window (`get_rule_windowspec`).
    pub(super) fn window(&self, window: &Node, query: &Node) -> Result<String, SqlError> {
        let targets: Vec<&Node> = query.nodes("targetList").collect();
        let mut parts = Vec::new();
        let inherited = window.text("refname").filter(|_| !self.binding);
        if let Some(name) = inherited {
            parts.push(self.quoted(name));
        }
        if inherited.is_none() && !window.list("partitionClause").is_empty() {
            let keys = window.nodes("partitionClause");
            let keys = keys.map(|key| self.sort_expression(key, &targets, false));
            let keys = keys.collect::<Result<Vec<_>, _>>()?.join(", ");
            parts.push(format!("PARTITION BY {keys}"));
        }
        let is_copied = window.flag("copiedOrder") && !self.binding;
        if !window.list("orderClause").is_empty() && !is_copied {
            let order = self.order(window.nodes("orderClause"), &targets, false)?;
            parts.push(format!("ORDER BY {order}"));
        }
        let options = window.number("frameOptions").ok_or_else(|| damaged("frameOptions"))?;
        if options & NOT_DEFAULT != 0 {
            let unit = match options {
                _ if options & RANGE != 0 => "RANGE",
                _ if options & ROWS != 0 => "ROWS",
                _ => "GROUPS",
            };
            let bound = |words: &[(i64, &str)], offset: &str| {
                let (_, words) = (words.iter().find(|(bit, _)| options & bit != 0))
                    .ok_or_else(|| damaged("frameOptions"))?;
                match words.starts_with(' ') {
                    true => Ok(self.expression(child(window, offset)?, false)? + words),
                    false => Ok::<_, SqlError>((*words).to_owned()),
                }
            };
            let start = bound(&START, "startOffset")?;
            parts.push(match options & BETWEEN != 0 {
                true => format!("{unit} BETWEEN {start} AND {}", bound(&END, "endOffset")?),
                false => format!("{unit} {start}"),
            });
            if let Some((_, words)) = EXCLUDE.iter().find(|(bit, _)| options & bit != 0) {
                parts.push(format!("EXCLUDE {words}"));
            }
        }
        Ok(format!("({})", parts.join(" ")))
    }

    /// A subquery (`get_sublink_expr`).
    pub(super) fn sub_link(&self, node: &Node) -> Result<String, SqlError> {
        let kind = node.number("subLinkType").ok_or_else(|| damaged("subLinkType"))?;
        let query = self.subquery(child(node, "subselect")?, None, false)?;
        let compared = match node.child("testexpr") {
            Some(test) => Some(self.compared(test)?),
            None => None,
        };
        let compared = |word: &str| {
            let (left, operator) = compared.as_ref().ok_or_else(|| damaged("testexpr"))?;
            Ok::<_, SqlError>(match (word, &**operator) {
                ("ANY ", "=") => format!("({left} IN ({query}))"),
                _ => format!("({left} {operator} {word}({query}))"),
            })
        };
        match kind {
            EXISTS => Ok(format!("(EXISTS ({query}))")),
            ALL => compared("ALL "),
            ANY => compared("ANY "),
            ROW_COMPARE => compared(""),
            EXPRESSION => Ok(format!("({query})")),
            ARRAY => Ok(format!("ARRAY({query})")),
            _ => Err(unsupported("this kind of subquery")),
        }
    }

    /// The left side of a comparison with a subquery, and the operator.
    fn compared(&self, test: &Node) -> Result<(String, String), SqlError> {
        match test.kind() {
            "OPEXPR" => {
                let left = test.nodes("args").next().ok_or_else(|| damaged("args"))?;
                Ok((self.expression(left, true)?, self.operator(oid(test, "opno")?)?))
            }
            "BOOLEXPR" => {
                let (mut lefts, mut operator) = (Vec::new(), None);
                for part in test.nodes("args") {
                    let left = part.nodes("args").next().ok_or_else(|| damaged("args"))?;
                    lefts.push(self.expression(left, true)?);
                    if operator.is_none() {
                        operator = Some(self.operator(oid(part, "opno")?)?);
                    }
                }
                let operator = operator.ok_or_else(|| damaged("testexpr"))?;
                Ok((format!("({})", lefts.join(", ")), operator))
            }
            "ROWCOMPARE" | "ROWCOMPAREEXPR" => {
                let lefts = self.list(test.nodes("largs"), true)?;
                Ok((format!("({lefts})"), self.first_operator(test)?))
            }
            kind => Err(unsupported(&format!("a comparison of kind {kind}"))),
        }
    }

    /// Subscripts of an array.
    pub(super) fn subscript(&self, node: &Node, implicit: bool) -> Result<String, SqlError> {
        if node.child("refassgnexpr").is_some() {
            return Err(unsupported("an assignment to an element"));
        }
        let array = child(node, "refexpr")?;
        let mut text = self.expression(array, implicit)?;
        if self.binding || !matches!(array.kind(), "VAR" | "FIELDSELECT") {
            text = format!("({text})");
        }
        let lowers = node.list("reflowerindexpr");
        for (at, upper) in node.list("refupperindexpr").iter().enumerate() {
            let bound = |value: &NodeValue| match value {
                NodeValue::Node(node) => self.expression(node, false),
                _ => Ok(String::new()),
            };
            text.push('[');
            if let Some(lower) = lowers.get(at) {
                text += &bound(lower)?;
                text.push(':');
            }
            text += &bound(upper)?;
            text.push(']');
        }
        Ok(text)
    }

    /// The name of a field of a row (`get_name_for_var_field`).
    pub(super) fn field_name(&self, row: &Node, number: i64) -> Result<String, SqlError> {
        let unknown = || unsupported("a field of a row whose type isn't known");
        let at = usize::try_from(number - 1).map_err(|_| damaged("fieldnum"))?;
        let ty = type_of(row);
        if let Some(ty) = ty.filter(|&ty| ty != oids::RECORD) {
            let relation = self.names.catalog().row_relation(ty).ok_or_else(unknown)?;
            let names = self.column_names(relation)?;
            return names.get(at).cloned().flatten().ok_or_else(|| damaged("fieldnum"));
        }
        match row.kind() {
            "FUNCEXPR" => {
                let function = oid(row, "funcid")?;
                let function = self.names.catalog().procedure(function).ok_or_else(unknown)?;
                let mut outputs = function.parameters().iter().filter(|parameter| {
                    !matches!(parameter.mode, ParameterMode::In | ParameterMode::Variadic)
                });
                let found = outputs.nth(at).ok_or_else(unknown)?;
                Ok(self.names.catalog().encoding().decode(&found.name))
            }
            "ROW" | "ROWEXPR" => Ok(format!("f{number}")),
            "VAR" => {
                let names = self.query.ok_or_else(unknown)?;
                let names = names.level(row.number("varlevelsup").unwrap_or_default())?;
                let table = names.table(row.number("varno").unwrap_or_default())?;
                let column = row.number("varattno").unwrap_or_default();
                if column == 0 {
                    let name = table.columns.get(at).cloned().flatten();
                    return name.ok_or_else(|| damaged("fieldnum"));
                }
                let place = usize::try_from(column - 1).ok();
                let (query, outer) = match table.kind {
                    TableKind::Join | TableKind::Group => {
                        let field = match table.kind {
                            TableKind::Join => "joinaliasvars",
                            _ => "groupexprs",
                        };
                        let beneath = place.and_then(|at| table.entry.list(field).get(at));
                        let beneath = beneath.and_then(NodeValue::node).ok_or_else(unknown)?;
                        return Deparser { query: Some(names), ..*self }
                            .field_name(beneath, number);
                    }
                    TableKind::Subquery => (child(table.entry, "subquery")?, names),
                    TableKind::Cte => {
                        let levels = table.entry.number("ctelevelsup").unwrap_or_default();
                        let outer = names.level(levels)?;
                        let mut ctes = outer.query.nodes("cteList");
                        let named = table.entry.text("ctename");
                        let cte = ctes.find(|cte| cte.text("ctename") == named);
                        (child(cte.ok_or_else(unknown)?, "ctequery")?, outer)
                    }
                    _ => return Err(unknown()),
                };
                let around = Deparser { query: Some(outer), ..*self };
                let inner = around.query_names(query)?;
                let mut targets = query.nodes("targetList");
                let target = targets.find(|target| target.number("resno") == Some(column));
                let expr = child(target.ok_or_else(unknown)?, "expr")?;
                Deparser { query: Some(&inner), ..*self }.field_name(expr, number)
            }
            _ => Err(unknown()),
        }
    }

    /// Names of columns as a list, such as those of `USING`.
    pub(super) fn name_list(&self, values: &[NodeValue]) -> String {
        strings(values).map(|name| self.quoted(name)).collect::<Vec<_>>().join(", ")
    }
}
