//! **Queries**: WITH, SELECT, VALUES, TABLE, set operations, and the clauses behind them.
//!
//! INTERSECT binds more tightly than UNION and EXCEPT. Clauses behind parentheses belong to the query
//! inside: `(select 1 order by 1) limit 1` is one query with both clauses, and a second ORDER BY
//! is an error.

use super::clauses::{ColumnReference, RangeVariable, SetOperation};
use super::names::{Alias, Name};
use super::parse_nodes::{
    CommonTableExpression, CycleClause, DistinctClause, Expression, ExpressionKind,
    GroupingElement, SearchClause, SelectBody, SelectCore, SelectStatement, TableReference,
    TargetEntry, ValuesRow, WithClause,
};
use super::parser::Parser;
use super::span::Span;
use super::token::TokenKind;
use crate::error::SqlError;

const UNION: u8 = 1;
const INTERSECT: u8 = 2;

impl Parser<'_> {
    /// Reads a query, which may be in parentheses.
    pub(super) fn select_statement(&mut self) -> Result<SelectStatement, SqlError> {
        let in_target = std::mem::replace(&mut self.in_target, false);
        let select = if self.at("with") {
            self.select_without_parentheses()
        } else {
            let first = self.select_operand()?;
            self.select_continued(first)
        };
        self.in_target = in_target;
        select
    }

    /// Reads a query that does not begin with a parenthesis.
    pub(super) fn select_without_parentheses(&mut self) -> Result<SelectStatement, SqlError> {
        self.on_large_stack(|parser| {
            let in_target = std::mem::replace(&mut parser.in_target, false);
            let with = if parser.at("with") { Some(parser.with_clause()?) } else { None };
            let select = parser.select_after_with(with)?;
            parser.in_target = in_target;
            Ok(select)
        })
    }

    /// Reads the rest of a query whose WITH has been read, if it has one.
    pub(super) fn select_after_with(
        &mut self,
        with: Option<WithClause>,
    ) -> Result<SelectStatement, SqlError> {
        let start = with.as_ref().map_or(self.start(), |with| with.span.start);
        let first = self.select_operand()?;
        let mut select = self.select_continued(first)?;
        if let Some(with) = with {
            if select.with.is_some() {
                return Err(Self::syntax_error("multiple WITH clauses not allowed", start));
            }
            select.with = Some(with);
        }
        select.span = self.span_from(start);
        Ok(select)
    }

    /// Whether a clause follows that continues a query behind its parentheses.
    pub(super) fn at_query_clause(&self) -> bool {
        matches!(
            self.word(0),
            "union" | "intersect" | "except" | "order" | "limit" | "offset" | "fetch" | "for"
        )
    }

    /// Reads the set operations and clauses that follow a query.
    pub(super) fn select_continued(
        &mut self,
        first: SelectStatement,
    ) -> Result<SelectStatement, SqlError> {
        let mut select = self.set_operations(first, UNION)?;
        self.select_options(&mut select)?;
        Ok(select)
    }

    /// Reads set operations that bind at least as tightly as `level_min`.
    fn set_operations(
        &mut self,
        mut left: SelectStatement,
        level_min: u8,
    ) -> Result<SelectStatement, SqlError> {
        loop {
            let (operation, level) = match self.word(0) {
                "union" => (SetOperation::Union, UNION),
                "except" => (SetOperation::Except, UNION),
                "intersect" => (SetOperation::Intersect, INTERSECT),
                _ => return Ok(left),
            };
            if level < level_min {
                return Ok(left);
            }
            self.advance();
            let all = self.accept("all");
            if !all {
                self.accept("distinct");
            }
            let right = self.select_operand()?;
            let right = self.set_operations(right, level + 1)?;
            let span = self.span_from(left.span.start);
            let (left_side, right) = (Box::new(left), Box::new(right));
            let body = SelectBody::SetOperation { operation, all, left: left_side, right };
            left = query(body, span);
        }
    }

    /// Reads an operand of a set operation: a simple query, or one in parentheses.
    fn select_operand(&mut self) -> Result<SelectStatement, SqlError> {
        let start = self.start();
        match self.word(0) {
            "select" => self.on_large_stack(Self::simple_select),
            "values" => {
                self.advance();
                let rows = self.list(|parser| {
                    let start = parser.start();
                    let columns = parser.parenthesized_list(Self::expression)?;
                    Ok(ValuesRow { columns, span: parser.span_from(start) })
                })?;
                Ok(query(SelectBody::Values(rows), self.span_from(start)))
            }
            "table" => {
                self.advance();
                let relation = self.relation()?;
                Ok(query(whole_relation(relation), self.span_from(start)))
            }
            _ if self.at_symbol("(") => Ok(*self.subquery()?),
            _ => Err(self.unexpected()),
        }
    }

    fn simple_select(&mut self) -> Result<SelectStatement, SqlError> {
        let start = self.start();
        self.expect("select")?;
        let distinct = if self.accept("distinct") {
            if self.accept("on") {
                DistinctClause::On(self.parenthesized_list(Self::expression)?)
            } else {
                DistinctClause::Distinct
            }
        } else {
            self.accept("all");
            DistinctClause::All
        };
        let targets = if self.at_target() || distinct != DistinctClause::All {
            self.list(Self::target)?
        } else {
            Vec::new()
        };
        if self.at("into") {
            self.select_into()?;
        }
        let from = if self.accept("from") { self.list(Self::table_reference)? } else { Vec::new() };
        let where_clause = self.clause_expression("where")?;
        let (group_distinct, group_by) = self.group_by()?;
        let having = self.clause_expression("having")?;
        let windows = self.window_clause()?;
        let body = SelectBody::Select(Box::new(SelectCore {
            distinct,
            targets,
            from,
            where_clause,
            group_by,
            group_distinct,
            having,
            windows,
        }));
        Ok(query(body, self.span_from(start)))
    }

    /// Whether an entry of a target list is next. The list may be empty.
    fn at_target(&self) -> bool {
        match self.peek(0) {
            TokenKind::End | TokenKind::Symbol(")" | ";") => false,
            TokenKind::Keyword(keyword) => !matches!(
                keyword.word,
                "from"
                    | "into"
                    | "where"
                    | "group"
                    | "having"
                    | "window"
                    | "union"
                    | "intersect"
                    | "except"
                    | "order"
                    | "limit"
                    | "offset"
                    | "fetch"
                    | "for"
            ),
            _ => true,
        }
    }

    fn target(&mut self) -> Result<TargetEntry, SqlError> {
        let start = self.start();
        if self.accept_symbol("*") {
            let column = ColumnReference { fields: Vec::new(), star: true };
            let kind = ExpressionKind::ColumnReference(column);
            let expression = Expression::new(kind, self.span_from(start));
            return Ok(TargetEntry { expression, name: None });
        }
        let in_target = std::mem::replace(&mut self.in_target, true);
        let expression = self.expression()?;
        self.in_target = in_target;
        let labelled = self.accept("as") || self.is_name(0, |keyword| keyword.bare_label);
        let name = if labelled { Some(self.column_label()?) } else { None };
        Ok(TargetEntry { expression, name })
    }

    /// Reads INTO, which makes the query a command that creates a table.
    fn select_into(&mut self) -> Result<(), SqlError> {
        let position = self.start();
        self.expect("into")?;
        self.accept_one(&["local", "global"]);
        self.accept_one(&["temporary", "temp", "unlogged"]);
        self.accept("table");
        self.relation_name()?;
        match self.into_position {
            None => self.into_position = Some(position),
            Some(_) => {
                let message = "SELECT ... INTO is not allowed here";
                return Err(Self::syntax_error(message, position));
            }
        }
        Ok(())
    }

    /// Reads an expression behind a keyword, or nothing.
    fn clause_expression(&mut self, word: &str) -> Result<Option<Expression>, SqlError> {
        if self.accept(word) { self.expression().map(Some) } else { Ok(None) }
    }

    fn group_by(&mut self) -> Result<(bool, Vec<GroupingElement>), SqlError> {
        if !self.accept("group") {
            return Ok((false, Vec::new()));
        }
        self.expect("by")?;
        let distinct = self.accept("distinct");
        if !distinct {
            self.accept("all");
        }
        Ok((distinct, self.list(Self::grouping_element)?))
    }

    fn grouping_element(&mut self) -> Result<GroupingElement, SqlError> {
        let start = self.start();
        if self.at_symbol("(") && self.symbol(1) == ")" {
            self.advance();
            self.advance();
            return Ok(GroupingElement::Empty(self.span_from(start)));
        }
        if self.symbol(1) == "(" && (self.at("rollup") || self.at("cube")) {
            let rollup = self.at("rollup");
            self.advance();
            let list = self.parenthesized_list(Self::expression)?;
            let span = self.span_from(start);
            return Ok(if rollup {
                GroupingElement::Rollup(list, span)
            } else {
                GroupingElement::Cube(list, span)
            });
        }
        if self.accept_words(&["grouping", "sets"]) {
            let list =
                self.on_large_stack(|parser| parser.parenthesized_list(Self::grouping_element))?;
            return Ok(GroupingElement::Sets(list, self.span_from(start)));
        }
        self.expression().map(GroupingElement::Expression)
    }

    /// Reads WITH.
    pub(super) fn with_clause(&mut self) -> Result<WithClause, SqlError> {
        let start = self.start();
        self.expect("with")?;
        // RECURSIVE may also be the name of the first query.
        let named = self.word(1) == "as" || self.symbol(1) == "(";
        let recursive = !named && self.accept("recursive");
        let ctes = self.list(Self::common_table_expression)?;
        Ok(WithClause { recursive, ctes, span: self.span_from(start) })
    }

    fn common_table_expression(&mut self) -> Result<CommonTableExpression, SqlError> {
        let name = self.column_id()?;
        let columns = self.column_list()?;
        self.expect("as")?;
        let materialized = if self.accept("materialized") {
            Some(true)
        } else if self.accept_words(&["not", "materialized"]) {
            Some(false)
        } else {
            None
        };
        self.expect_symbol("(")?;
        let with = if self.at("with") { Some(self.with_clause()?) } else { None };
        let query = if self.row_command().is_some() {
            // The command is refused as a whole, so the query stands for it only until then.
            self.modifying_position.get_or_insert(name.span.start);
            self.skip_to_parenthesis();
            let nothing = SelectBody::Values(Vec::new());
            Box::new(query(nothing, name.span))
        } else if with.is_some() {
            Box::new(self.select_after_with(with)?)
        } else {
            Box::new(self.select_statement()?)
        };
        self.expect_symbol(")")?;
        let search = if self.at("search") { Some(self.search_clause()?) } else { None };
        let cycle = if self.at("cycle") { Some(self.cycle_clause()?) } else { None };
        let alias = Alias { name, columns };
        Ok(CommonTableExpression { alias, materialized, query, search, cycle })
    }

    fn search_clause(&mut self) -> Result<SearchClause, SqlError> {
        let start = self.start();
        self.expect("search")?;
        let breadth = self.accept("breadth");
        if !breadth {
            self.expect("depth")?;
        }
        self.expect("first")?;
        self.expect("by")?;
        let columns = self.column_names()?;
        self.expect("set")?;
        let sequence = self.column_id()?;
        Ok(SearchClause { breadth, columns, sequence, span: self.span_from(start) })
    }

    fn cycle_clause(&mut self) -> Result<CycleClause, SqlError> {
        let start = self.start();
        self.expect("cycle")?;
        let columns = self.column_names()?;
        self.expect("set")?;
        let mark = self.column_id()?;
        let values = if self.accept("to") {
            let value = self.primary()?;
            self.expect("default")?;
            Some((value, self.primary()?))
        } else {
            None
        };
        self.expect("using")?;
        let path = self.column_id()?;
        Ok(CycleClause { columns, mark, values, path, span: self.span_from(start) })
    }

    fn column_names(&mut self) -> Result<Vec<Name>, SqlError> {
        let mut names = vec![self.column_id()?];
        while self.accept_symbol(",") {
            names.push(self.column_id()?);
        }
        Ok(names)
    }

    /// Steps to the parenthesis that closes the current one.
    pub(super) fn skip_to_parenthesis(&mut self) {
        let mut depth = 0_usize;
        while !matches!(self.peek(0), TokenKind::End | TokenKind::Malformed(_)) {
            match self.symbol(0) {
                "(" => depth += 1,
                ")" if depth == 0 => return,
                ")" => depth -= 1,
                _ => {}
            }
            self.advance();
        }
    }
}

/// A query without clauses.
fn query(body: SelectBody, span: Span) -> SelectStatement {
    SelectStatement {
        with: None,
        body,
        order_by: Vec::new(),
        offset: None,
        limit: None,
        with_ties: false,
        locking: Vec::new(),
        span,
    }
}

/// `SELECT * FROM relation`.
fn whole_relation(relation: RangeVariable) -> SelectBody {
    let column = ColumnReference { fields: Vec::new(), star: true };
    let kind = ExpressionKind::ColumnReference(column);
    let expression = Expression::new(kind, relation.name.span);
    SelectBody::Select(Box::new(SelectCore {
        distinct: DistinctClause::All,
        targets: vec![TargetEntry { expression, name: None }],
        from: vec![TableReference::Relation(relation)],
        where_clause: None,
        group_by: Vec::new(),
        group_distinct: false,
        having: None,
        windows: Vec::new(),
    }))
}
