//! `FROM` of a stored query: tables, subqueries, functions, `VALUES` and joins.

use trunkline_format::Oid;
use trunkline_format::node_tree::{Node, NodeValue};

use super::node_fields::{child, damaged, oid, unsupported};
use super::query_names::{TableKind, TableNames, strings};
use super::query_text::{COLUMN, QueryText, STANDARD};
use crate::error::SqlError;

/// How far joins are indented (`PRETTYINDENT_JOIN`).
const JOIN: i32 = 4;

impl QueryText<'_> {
    /// `FROM`, if there is any (`get_from_clause`).
    pub(super) fn tables_clause(&mut self, tree: &Node) -> Result<(), SqlError> {
        for (at, item) in tree.nodes("fromlist").enumerate() {
            if at == 0 {
                self.layout.start(" FROM ", -STANDARD, STANDARD, 2);
            } else {
                self.layout.text.push_str(", ");
                if self.layout.lines {
                    self.layout.start("", -STANDARD, STANDARD, COLUMN);
                }
            }
            self.item(item)?;
        }
        Ok(())
    }

    fn item(&mut self, item: &Node) -> Result<(), SqlError> {
        match item.kind() {
            "RANGETBLREF" => self.table(item.number("rtindex").unwrap_or_default()),
            "JOINEXPR" => self.join(item),
            kind => Err(unsupported(&format!("an item of FROM of kind {kind}"))),
        }
    }

    /// A table with its alias.
    fn table(&mut self, number: i64) -> Result<(), SqlError> {
        let names = self.deparser.query.ok_or_else(|| damaged("query"))?;
        let table = names.table(number)?;
        let entry = table.entry;
        if entry.flag("lateral") {
            self.layout.text.push_str("LATERAL ");
        }
        let mut definitions = None;
        match table.kind {
            TableKind::Relation => {
                if entry.child("tablesample").is_some() {
                    return Err(unsupported("TABLESAMPLE"));
                }
                if !entry.flag("inh") {
                    self.layout.text.push_str("ONLY ");
                }
                let relation = oid(entry, "relid")?;
                let name = self.deparser.relation_name(relation, self.deparser.binding)?;
                self.layout.text.push_str(&name);
            }
            TableKind::Subquery => {
                let query = child(entry, "subquery")?;
                let text = self.expressions().subquery(query, None, true)?;
                self.layout.text += &format!("({text})");
            }
            TableKind::Function => definitions = self.functions(entry)?,
            TableKind::Values => {
                self.layout.text.push('(');
                self.values(entry.list("values_lists"))?;
                self.layout.text.push(')');
            }
            TableKind::Cte => {
                let name = entry.text("ctename").ok_or_else(|| damaged("ctename"))?;
                self.layout.text.push_str(&self.deparser.quoted(name));
            }
            TableKind::XmlTable => return Err(unsupported("XMLTABLE or JSON_TABLE")),
            TableKind::Join | TableKind::Group | TableKind::Other => {
                return Err(unsupported("this kind of table"));
            }
        }
        let shows_name = self.shows_name(table)?;
        let name = table.name.as_deref().unwrap_or_default();
        if shows_name {
            self.layout.text += &format!(" {}", self.deparser.quoted_text(name));
        }
        match definitions {
            Some(function) => {
                self.layout.text.push_str(if shows_name { "(" } else { " AS (" });
                let text = self.column_definitions(function, table)?;
                self.layout.text.push_str(&text);
                self.layout.text.push(')');
            }
            None => self.column_names(table),
        }
        Ok(())
    }

    /// Whether a table's name must be printed (`get_rte_alias`).
    fn shows_name(&self, table: &TableNames<'_>) -> Result<bool, SqlError> {
        if self.deparser.binding || table.entry.child("alias").is_some() {
            return Ok(true);
        }
        let own = |name: &[u8]| {
            let name = self.deparser.names.catalog().encoding().decode(name);
            table.name.as_deref() != Some(&*name)
        };
        Ok(match table.kind {
            TableKind::Relation => {
                let database = self.deparser.names.catalog().database();
                let relation = database.relation(oid(table.entry, "relid")?);
                own(&relation.ok_or_else(|| damaged("relation"))?.name)
            }
            TableKind::Cte => own(table.entry.text("ctename").unwrap_or_default()),
            TableKind::Subquery | TableKind::Values => {
                let eref = table.entry.child("eref").and_then(|alias| alias.text("aliasname"));
                !matches!(eref, Some(b"unnamed_subquery")) || own(eref.unwrap_or_default())
            }
            _ => true,
        })
    }

    /// The names of a table's columns in parentheses, where they are printed.
    fn column_names(&mut self, table: &TableNames<'_>) {
        let names = table.columns.iter().flatten().map(|name| self.deparser.quoted_text(name));
        let names = names.collect::<Vec<_>>().join(", ");
        if table.lists_columns && !names.is_empty() {
            self.layout.text += &format!("({names})");
        }
    }

    /// Functions in `FROM`. Returns the function whose columns are defined after the name.
    fn functions<'n>(&mut self, entry: &'n Node) -> Result<Option<&'n Node>, SqlError> {
        let functions: Vec<&Node> = entry.nodes("functions").collect();
        let ordinality = entry.flag("funcordinality");
        let has_definitions = |function: &Node| !function.list("funccolnames").is_empty();
        let deparser = self.expressions();
        let mut definitions = None;
        let text = match *functions {
            [only] if !(has_definitions(only) && ordinality) => {
                definitions = Some(only).filter(|only| has_definitions(only));
                deparser.expression(child(only, "funcexpr")?, true)?
            }
            _ => {
                let mut texts = Vec::new();
                for function in functions {
                    if has_definitions(function) {
                        return Err(unsupported("ROWS FROM with definitions of columns"));
                    }
                    texts.push(deparser.expression(child(function, "funcexpr")?, true)?);
                }
                format!("ROWS FROM({})", texts.join(", "))
            }
        };
        self.layout.push(&text);
        if ordinality {
            self.layout.text.push_str(" WITH ORDINALITY");
        }
        Ok(definitions)
    }

    /// The columns of a function that returns `record`, with their types.
    fn column_definitions(
        &self,
        function: &Node,
        table: &TableNames<'_>,
    ) -> Result<String, SqlError> {
        let number = |field: &str, at: usize| {
            let value = match function.list(field).get(at) {
                Some(NodeValue::Token(token)) => str::from_utf8(token).ok(),
                _ => None,
            };
            value.and_then(|token| token.parse::<i64>().ok()).ok_or_else(|| damaged(field))
        };
        let mut texts = Vec::new();
        for (at, own) in strings(function.list("funccolnames")).enumerate() {
            let ty = u32::try_from(number("funccoltypes", at)?).map_err(|_| damaged("type"))?;
            let modifier = i32::try_from(number("funccoltypmods", at)?).unwrap_or(-1);
            let name = match table.columns.get(at) {
                Some(Some(name)) => self.deparser.quoted_text(name),
                _ => self.deparser.quoted(own),
            };
            let ty = self.deparser.names.format_type(Oid(ty), Some(modifier));
            texts.push(format!("{name} {ty}"));
        }
        Ok(texts.join(", "))
    }

    /// A join.
    fn join(&mut self, join: &Node) -> Result<(), SqlError> {
        let (pretty, binding) = (self.deparser.pretty, self.deparser.binding);
        let alias = join.child("alias").filter(|_| !binding);
        let right = child(join, "rarg")?;
        let is_simple = match right.kind() {
            "RANGETBLREF" => true,
            _ => right.kind() == "JOINEXPR" && right.child("alias").is_some(),
        };
        let outer = !pretty || alias.is_some();
        if outer {
            self.layout.text.push('(');
        }
        self.item(child(join, "larg")?)?;
        let condition = join.child("quals");
        let kind = join.number("jointype");
        let words = match kind {
            Some(0) if condition.is_some() => " JOIN ",
            Some(0) => " CROSS JOIN ",
            Some(1) => " LEFT JOIN ",
            Some(2) => " FULL JOIN ",
            Some(3) => " RIGHT JOIN ",
            _ => return Err(damaged("jointype")),
        };
        self.layout.start(words, -STANDARD, STANDARD, JOIN);
        let parenthesized = pretty && !is_simple;
        if parenthesized {
            self.layout.text.push('(');
        }
        self.item(right)?;
        if parenthesized {
            self.layout.text.push(')');
        }
        let using = join.list("usingClause");
        if !using.is_empty() && !binding {
            self.layout.text += &format!(" USING ({})", self.deparser.name_list(using));
            let merged = join.child("join_using_alias");
            if let Some(name) = merged.and_then(|alias| alias.text("aliasname")) {
                self.layout.text += &format!(" AS {}", self.deparser.quoted(name));
            }
        } else if let Some(condition) = condition {
            let text = self.expressions().expression(condition, false)?;
            let text = if pretty { text } else { format!("({text})") };
            self.layout.text.push_str(" ON ");
            self.layout.push(&text);
        } else if kind != Some(0) {
            self.layout.text.push_str(" ON TRUE");
        }
        if outer {
            self.layout.text.push(')');
        }
        if alias.is_some() {
            let names = self.deparser.query.ok_or_else(|| damaged("query"))?;
            let table = names.table(join.number("rtindex").unwrap_or_default())?;
            let name = table.name.as_deref().unwrap_or_default();
            self.layout.text += &format!(" {}", self.deparser.quoted_text(name));
            self.column_names(table);
        }
        Ok(())
    }

    /// The rows, if the query is nothing but `VALUES` (`get_simple_values_rte`).
    pub(super) fn plain_values<'n>(
        &self,
        query: &'n Node,
    ) -> Result<Option<&'n [NodeValue]>, SqlError> {
        let names = self.deparser.query.ok_or_else(|| damaged("query"))?;
        let mut shown = names
            .tables
            .iter()
            .filter(|table| table.kind != TableKind::Relation || table.entry.flag("inFromCl"));
        let (Some(table), None) = (shown.next(), shown.next()) else { return Ok(None) };
        if self.deparser.binding || table.kind != TableKind::Values {
            return Ok(None);
        }
        let mut entries = query.nodes("rtable");
        let entry = entries.find(|entry| entry.number("rtekind") == Some(5));
        let mut columns = table.columns.iter();
        let decode = |name: &[u8]| self.deparser.names.catalog().encoding().decode(name);
        let is_plain = query.nodes("targetList").all(|target| {
            let name = target.text("resname").map(decode);
            columns.next().is_some_and(|column| *column == name) && !target.flag("resjunk")
        });
        let is_plain = is_plain && columns.next().is_none();
        Ok(entry.filter(|_| is_plain).map(|entry| entry.list("values_lists")))
    }

    /// `VALUES` with its rows.
    pub(super) fn values(&mut self, rows: &[NodeValue]) -> Result<(), SqlError> {
        self.layout.text.push_str("VALUES ");
        for (at, row) in rows.iter().enumerate() {
            if at > 0 {
                self.layout.text.push_str(", ");
            }
            let deparser = self.expressions();
            let values = row.elements().iter().filter_map(NodeValue::node);
            let values = values.map(|value| deparser.whole(value, false));
            let values = values.collect::<Result<Vec<_>, _>>()?.join(",");
            self.layout.text += &format!("({values})");
        }
        Ok(())
    }
}
