//! **Stored queries as SQL text**: what a view does.
//!
//! ```text
//!   {QUERY :rtable ({RTE …}) :jointree … :targetList …} ─▶ SELECT t.a FROM t WHERE (t.b > 1)
//! ```
//!
//! There are two ways to print a query. For people it is laid out as `pg_get_viewdef` does: a line for
//! each column, and clauses at the right of a margin. For binding, it is one line in which every name
//! has its schema, every cast is shown, and a join has its condition instead of `USING`, so that
//! binding it gives the same functions, operators and types again.

use trunkline_format::node_tree::{Node, NodeValue};

use super::deparse::{Deparser, STACK_RED_ZONE, STACK_SIZE, parse};
use super::node_fields::{child, damaged, unsupported};
use super::query_names::TableKind;
use crate::error::SqlError;

/// How far clauses are indented (`PRETTYINDENT_STD`).
pub(super) const STANDARD: i32 = 8;
/// How far columns are indented beyond that (`PRETTYINDENT_VAR`).
pub(super) const COLUMN: i32 = 4;
/// The largest indentation that grows with the nesting (`PRETTYINDENT_LIMIT`).
const LIMIT: i32 = 40;

/// A text in which the next clause may start a line.
pub(super) struct Layout {
    pub(super) text: String,
    pub(super) indent: i32,
    /// Whether there are lines at all.
    pub(super) lines: bool,
}

impl Layout {
    /// Starts a line with `word`, if there are lines (`appendContextKeyword`).
    pub(super) fn start(&mut self, word: &str, before: i32, after: i32, more: i32) {
        if self.lines {
            self.indent += before;
            self.trim();
            let level = match self.indent {
                indent if indent < LIMIT => indent.max(0),
                indent => (LIMIT + (indent - LIMIT) / (STANDARD / 2)) % LIMIT,
            };
            let spaces = usize::try_from(level + more).unwrap_or_default();
            self.text.push('\n');
            self.text.extend(std::iter::repeat_n(' ', spaces));
        }
        self.text.push_str(word);
        if self.lines {
            self.indent = (self.indent + after).max(0);
        }
    }

    /// Removes spaces at the end.
    pub(super) fn trim(&mut self) {
        self.text.truncate(self.text.trim_end_matches(' ').len());
    }

    /// Appends a text that may start with a line of its own.
    pub(super) fn push(&mut self, text: &str) {
        if text.starts_with('\n') {
            self.trim();
        }
        self.text.push_str(text);
    }
}

/// Prints one query.
pub(super) struct QueryText<'a> {
    pub(super) deparser: Deparser<'a>,
    pub(super) layout: Layout,
    /// The names of the columns, if the query is that of a view.
    columns: Option<&'a [String]>,
    /// Whether anything sees the names of the columns.
    named: bool,
}

impl Deparser<'_> {
    /// The query of a view. `columns` are the names of the view's columns; without them, the columns
    /// are `c1` and so on.
    pub(crate) fn view(
        &self,
        stored: &[u8],
        columns: Option<&[String]>,
    ) -> Result<String, SqlError> {
        let tree = parse(stored)?;
        match tree.elements() {
            [NodeValue::Node(query)] => {
                let text = self.subquery(query, columns, true)?;
                Ok(if self.indent.is_some() { without_spaces(&text) } else { text })
            }
            _ => Err(unsupported("a rule of several queries")),
        }
    }

    /// The body of a function in SQL: one query.
    pub(crate) fn body(&self, stored: &[u8]) -> Result<String, SqlError> {
        let tree = parse(stored)?;
        let query = match &tree {
            // `RETURN …`
            NodeValue::Node(query) => Some(query),
            // `BEGIN ATOMIC … END`
            _ => match tree.elements() {
                [only] => match only.elements() {
                    [NodeValue::Node(query)] => Some(query),
                    _ => None,
                },
                _ => None,
            },
        };
        let query = query.ok_or_else(|| unsupported("a function of several statements"))?;
        self.subquery(query, None, true)
    }

    /// A query inside those that are being printed (`get_query_def`).
    pub(super) fn subquery(
        &self,
        query: &Node,
        columns: Option<&[String]>,
        named: bool,
    ) -> Result<String, SqlError> {
        let names = self.query_names(query)?;
        let (lines, indent) = (self.indent.is_some(), self.indent.unwrap_or_default());
        let layout = Layout { text: String::new(), indent, lines };
        let deparser = Deparser { query: Some(&names), ..*self };
        let mut text = QueryText { deparser, layout, columns, named };
        stacker::maybe_grow(STACK_RED_ZONE, STACK_SIZE, || text.statement(query))?;
        Ok(text.layout.text)
    }
}

/// The text without spaces at the ends of lines, except in literals and quoted names.
pub(super) fn without_spaces(text: &str) -> String {
    let (mut shown, mut quote) = (String::with_capacity(text.len()), None);
    for letter in text.chars() {
        match (letter, quote) {
            ('\'' | '"', None) => quote = Some(letter),
            (letter, Some(open)) if letter == open => quote = None,
            ('\n', None) => shown.truncate(shown.trim_end_matches(' ').len()),
            _ => {}
        }
        shown.push(letter);
    }
    shown
}

impl QueryText<'_> {
    /// The deparser for expressions at the current indentation.
    pub(super) fn expressions(&self) -> Deparser<'_> {
        let indent = self.layout.lines.then_some(self.layout.indent);
        Deparser { indent, ..self.deparser }
    }

    fn statement(&mut self, query: &Node) -> Result<(), SqlError> {
        if query.kind() != "QUERY" || query.number("commandType") != Some(1) {
            return Err(unsupported("a query that is not SELECT"));
        }
        if query.flag("hasForUpdate") || !query.list("rowMarks").is_empty() {
            return Err(unsupported("FOR UPDATE in a query"));
        }
        self.with_clause(query)?;
        let is_set = match query.child("setOperations") {
            Some(operation) => self.set_operation(operation).map(|()| true)?,
            None => self.select(query).map(|()| false)?,
        };
        if !query.list("sortClause").is_empty() {
            self.layout.start(" ORDER BY ", -STANDARD, STANDARD, 1);
            let targets: Vec<&Node> = query.nodes("targetList").collect();
            let order = self.expressions().order(query.nodes("sortClause"), &targets, is_set)?;
            self.layout.push(&order);
        }
        if let Some(offset) = query.child("limitOffset") {
            self.layout.start(" OFFSET ", -STANDARD, STANDARD, 0);
            let text = self.expressions().expression(offset, false)?;
            self.layout.push(&text);
        }
        if let Some(count) = query.child("limitCount") {
            let text = self.expressions().expression(count, false)?;
            if query.number("limitOption") == Some(1) {
                self.layout.start(" FETCH FIRST ", -STANDARD, STANDARD, 0);
                self.layout.push(&format!("({text}) ROWS WITH TIES"));
            } else {
                self.layout.start(" LIMIT ", -STANDARD, STANDARD, 0);
                let is_all = count.kind() == "CONST" && count.flag("constisnull");
                self.layout.push(if is_all { "ALL" } else { &text });
            }
        }
        Ok(())
    }

    fn with_clause(&mut self, query: &Node) -> Result<(), SqlError> {
        if query.list("cteList").is_empty() {
            return Ok(());
        }
        if self.layout.lines {
            self.layout.indent += STANDARD;
            self.layout.text.push(' ');
        }
        let words = if query.flag("hasRecursive") { "WITH RECURSIVE " } else { "WITH " };
        self.layout.text.push_str(words);
        for (at, cte) in query.nodes("cteList").enumerate() {
            if at > 0 {
                self.layout.text.push_str(", ");
            }
            if cte.child("search_clause").is_some() || cte.child("cycle_clause").is_some() {
                return Err(unsupported("SEARCH or CYCLE in a query"));
            }
            let name = cte.text("ctename").ok_or_else(|| damaged("ctename"))?;
            self.layout.text.push_str(&self.deparser.quoted(name));
            let aliases = cte.list("aliascolnames");
            if !aliases.is_empty() && !self.deparser.binding {
                self.layout.text += &format!("({})", self.deparser.name_list(aliases));
            }
            self.layout.text.push_str(match cte.number("ctematerialized") {
                Some(1) => " AS MATERIALIZED (",
                Some(2) => " AS NOT MATERIALIZED (",
                _ => " AS (",
            });
            if self.layout.lines {
                self.layout.start("", 0, 0, 0);
            }
            let text = self.expressions().subquery(child(cte, "ctequery")?, None, true)?;
            self.layout.push(&text);
            if self.layout.lines {
                self.layout.start("", 0, 0, 0);
            }
            self.layout.text.push(')');
        }
        match self.layout.lines {
            true => self.layout.start("", -STANDARD, 0, 0),
            false => self.layout.text.push(' '),
        }
        Ok(())
    }

    /// One `SELECT` without the clauses that a set operation has too (`get_basic_select_query`).
    fn select(&mut self, query: &Node) -> Result<(), SqlError> {
        if self.layout.lines {
            self.layout.indent += STANDARD;
            self.layout.text.push(' ');
        }
        if let Some(values) = self.plain_values(query)? {
            return self.values(values);
        }
        self.layout.text.push_str("SELECT");
        let targets: Vec<&Node> = query.nodes("targetList").collect();
        if !query.list("distinctClause").is_empty() {
            self.layout.text.push_str(" DISTINCT");
            if query.flag("hasDistinctOn") {
                let deparser = self.expressions();
                let keys = query.nodes("distinctClause");
                let keys = keys.map(|key| deparser.sort_expression(key, &targets, false));
                let keys = keys.collect::<Result<Vec<_>, _>>()?.join(", ");
                self.layout.push(&format!(" ON ({keys})"));
            }
        }
        self.targets(&targets)?;
        let from = child(query, "jointree")?;
        self.tables_clause(from)?;
        if let Some(condition) = from.child("quals") {
            self.layout.start(" WHERE ", -STANDARD, STANDARD, 1);
            let text = self.expressions().expression(condition, false)?;
            self.layout.push(&text);
        }
        self.group_by(query, &targets)?;
        if let Some(condition) = query.child("havingQual") {
            self.layout.start(" HAVING ", -STANDARD, STANDARD, 0);
            let text = self.expressions().expression(condition, false)?;
            self.layout.push(&text);
        }
        let named = query.nodes("windowClause").filter_map(|window| {
            let name = window.text("name")?;
            (!self.deparser.binding).then_some((name, window))
        });
        let mut separator = None;
        for (name, window) in named {
            match separator {
                Some(separator) => self.layout.text.push_str(separator),
                None => self.layout.start(" WINDOW ", -STANDARD, STANDARD, 1),
            }
            let deparser = self.expressions();
            let text = format!("{} AS {}", deparser.quoted(name), deparser.window(window, query)?);
            self.layout.push(&text);
            separator = Some(", ");
        }
        Ok(())
    }

    fn group_by(&mut self, query: &Node, targets: &[&Node]) -> Result<(), SqlError> {
        let sets = query.list("groupingSets");
        let keys: Vec<&Node> = query.nodes("groupClause").collect();
        if sets.is_empty() && keys.is_empty() {
            return Ok(());
        }
        self.layout.start(" GROUP BY ", -STANDARD, STANDARD, 1);
        if query.flag("groupDistinct") {
            self.layout.text.push_str("DISTINCT ");
        }
        let deparser = self.expressions();
        let texts: Result<Vec<String>, SqlError> = match sets.is_empty() {
            true => keys.iter().map(|key| deparser.sort_expression(key, targets, false)).collect(),
            false => (query.nodes("groupingSets"))
                .map(|set| deparser.grouping_set(set, targets, true))
                .collect(),
        };
        let text = texts?.join(", ");
        self.layout.push(&text);
        Ok(())
    }

    /// The columns of the result (`get_target_list`).
    fn targets(&mut self, targets: &[&Node]) -> Result<(), SqlError> {
        let shown = targets.iter().filter(|target| !target.flag("resjunk"));
        for (at, target) in shown.enumerate() {
            self.layout.text.push_str(if at == 0 { " " } else { ", " });
            let expr = child(target, "expr")?;
            let deparser = self.expressions();
            let (text, own) = match (expr.kind(), deparser.query) {
                ("VAR", Some(names)) => {
                    let column = deparser.query_column(names, expr, true)?;
                    (column.text, column.name)
                }
                _ => {
                    let own = (!self.named).then(|| "?column?".to_owned());
                    (deparser.expression(expr, true)?, own)
                }
            };
            let name = match (self.columns, target.text("resname")) {
                (Some(columns), _) => columns.get(at).cloned(),
                (None, _) if deparser.binding => Some(format!("c{}", at + 1)),
                (None, Some(name)) => Some(deparser.names.catalog().encoding().decode(name)),
                (None, None) => None,
            };
            let text = match name {
                Some(name) if own.as_deref() != Some(&name) || deparser.binding => {
                    format!("{text} AS {}", deparser.quoted_text(&name))
                }
                _ => text,
            };
            if self.layout.lines {
                let starts_line = text.starts_with('\n');
                if at > 0 && !starts_line {
                    self.layout.start("", -STANDARD, STANDARD, COLUMN);
                }
            }
            self.layout.push(&text);
        }
        Ok(())
    }

    /// `UNION` and so on (`get_setop_query`).
    fn set_operation(&mut self, node: &Node) -> Result<(), SqlError> {
        if node.kind() == "RANGETBLREF" {
            return self.set_leaf(node);
        }
        let (left, right) = (child(node, "larg")?, child(node, "rarg")?);
        let same = |field: &str| left.field(field) == node.field(field);
        let is_operation = left.kind() == "SETOPERATIONSTMT";
        let parenthesized = is_operation && (self.deparser.binding || !(same("op") && same("all")));
        if parenthesized {
            self.layout.text.push('(');
            self.layout.start("", STANDARD, 0, 0);
        }
        self.set_operation(left)?;
        match (parenthesized, self.layout.lines) {
            (true, _) => self.layout.start(") ", -STANDARD, 0, 0),
            (false, true) => self.layout.start("", 0, 0, 0),
            (false, false) => self.layout.text.push(' '),
        }
        self.layout.text.push_str(match node.number("op") {
            Some(1) => "UNION ",
            Some(2) => "INTERSECT ",
            Some(3) => "EXCEPT ",
            _ => return Err(damaged("op")),
        });
        if node.flag("all") {
            self.layout.text.push_str("ALL ");
        }
        let parenthesized = right.kind() == "SETOPERATIONSTMT";
        let indent = if parenthesized { STANDARD } else { 0 };
        if parenthesized {
            self.layout.text.push('(');
        }
        self.layout.start("", indent, 0, 0);
        let named = std::mem::replace(&mut self.named, false);
        self.set_operation(right)?;
        self.named = named;
        if self.layout.lines {
            self.layout.indent -= indent;
        }
        if parenthesized {
            self.layout.start(")", 0, 0, 0);
        }
        Ok(())
    }

    /// A query of a set operation. Its tables can't see those of the set operation.
    fn set_leaf(&mut self, node: &Node) -> Result<(), SqlError> {
        let names = self.deparser.query.ok_or_else(|| damaged("query"))?;
        let table = names.table(node.number("rtindex").unwrap_or_default())?;
        if table.kind != TableKind::Subquery {
            return Err(damaged("set operation"));
        }
        let query = child(table.entry, "subquery")?;
        let has = |field: &str| !query.list(field).is_empty() || query.child(field).is_some();
        let parenthesized = self.deparser.binding
            || ["cteList", "sortClause", "rowMarks", "limitOffset", "limitCount", "setOperations"]
                .iter()
                .any(|field| has(field));
        let text = self.expressions().subquery(query, self.columns, self.named)?;
        self.layout.push(&if parenthesized { format!("({text})") } else { text });
        Ok(())
    }
}
