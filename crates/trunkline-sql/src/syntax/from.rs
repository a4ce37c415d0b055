//! **FROM**: relations, subqueries, functions and joins.
//!
//! `a join b join c on x on y` joins `b` and `c` first, because a condition belongs to the nearest JOIN
//! without one; `a cross join b join c on x` joins `a` and `b` first.

use super::clauses::{ColumnDefinition, JoinKind, RangeVariable};
use super::names::Alias;
use super::parse_nodes::{
    Expression, ExpressionKind, JoinCondition, JoinExpression, RangeFunction, RangeFunctionItem,
    RangeSubselect, RangeTableSample, SelectStatement, TableReference,
};
use super::parser::{Parser, is_column_id, is_type_function_name};
use crate::error::SqlError;

/// What parentheses in FROM contain.
enum FromParentheses {
    Query(Box<SelectStatement>),
    Join(Box<JoinExpression>),
}

impl Parser<'_> {
    /// Reads an item of FROM with the joins that follow it.
    pub(super) fn table_reference(&mut self) -> Result<TableReference, SqlError> {
        self.on_large_stack(|parser| {
            let start = parser.start();
            let first = parser.table_primary()?;
            parser.joined(first, start)
        })
    }

    /// Reads the joins that follow an item.
    fn joined(&mut self, mut left: TableReference, start: u32) -> Result<TableReference, SqlError> {
        loop {
            let natural = self.at("natural");
            let cross = self.at_words(&["cross", "join"]);
            let ahead = usize::from(natural || cross);
            let kind = match self.word(ahead) {
                "join" | "inner" => JoinKind::Inner,
                "left" => JoinKind::Left,
                "right" => JoinKind::Right,
                "full" => JoinKind::Full,
                _ if natural || self.at("cross") => {
                    self.advance();
                    return Err(self.unexpected());
                }
                _ => return Ok(left),
            };
            (0..ahead).for_each(|_| self.advance());
            if self.accept_one(&["left", "right", "full"]) {
                self.accept("outer");
            } else {
                self.accept("inner");
            }
            self.expect("join")?;
            let right =
                if natural || cross { self.table_primary()? } else { self.table_reference()? };
            let condition = if natural {
                JoinCondition::Natural
            } else if cross {
                JoinCondition::None
            } else {
                self.join_condition()?
            };
            let span = self.span_from(start);
            left = TableReference::Join(Box::new(JoinExpression {
                kind,
                left,
                right,
                condition,
                alias: None,
                span,
            }));
        }
    }

    fn join_condition(&mut self) -> Result<JoinCondition, SqlError> {
        if self.accept("using") {
            let columns = self.parenthesized_list(Self::column_id)?;
            let alias = if self.accept("as") { Some(self.column_id()?) } else { None };
            return Ok(JoinCondition::Using(columns, alias));
        }
        self.expect("on")?;
        Ok(JoinCondition::On(self.expression()?))
    }

    /// Reads an item of FROM without joins.
    fn table_primary(&mut self) -> Result<TableReference, SqlError> {
        let start = self.start();
        let lateral = self.accept("lateral");
        if self.at_symbol("(") {
            return self.table_in_parentheses(lateral, start);
        }
        if matches!(self.word(0), "xmltable" | "json_table" | "graph_table")
            && self.symbol(1) == "("
        {
            let name = self.word(0).to_ascii_uppercase();
            return Err(Self::unsupported(&name, self.start()));
        }
        if self.at_words(&["rows", "from"]) && self.symbol(2) == "(" {
            return self.rows_from(lateral, start);
        }
        if self.at_range_function() {
            let function = self.windowless_function()?;
            let item = RangeFunctionItem { function, columns: Vec::new() };
            return self.range_function(lateral, false, vec![item], start);
        }
        if lateral {
            // Only a function may follow, so its parenthesis is missing.
            self.column_label()?;
            while self.accept_symbol(".") {
                self.column_label()?;
            }
            return Err(self.unexpected());
        }
        if !self.is_name(0, is_column_id) && self.is_name(0, is_type_function_name) {
            // A function's name without its parenthesis.
            self.advance();
            return Err(self.unexpected());
        }
        self.relation_reference()
    }

    /// Whether a function is next, rather than a relation.
    fn at_range_function(&self) -> bool {
        if self.at_special_function(self.word(0)) {
            return true;
        }
        if self.symbol(1) == "(" {
            return self.is_name(0, is_type_function_name) && !self.at("only");
        }
        let mut ahead = 0;
        while self.symbol(ahead + 1) == "." && self.is_name(ahead + 2, |_| true) {
            ahead += 2;
        }
        ahead > 0 && self.symbol(ahead + 1) == "(" && self.is_name(0, is_column_id)
    }

    /// Reads a function as it may stand in FROM: without OVER and the like.
    fn windowless_function(&mut self) -> Result<Expression, SqlError> {
        if self.at_special_function(self.word(0)) {
            return self.special_function(self.word(0));
        }
        let start = self.start();
        let first = self.column_label()?;
        let name = self.dotted(first)?;
        let call = self.function_application(name)?;
        let kind = ExpressionKind::FunctionCall(Box::new(call));
        Ok(Expression::new(kind, self.span_from(start)))
    }

    fn rows_from(&mut self, lateral: bool, start: u32) -> Result<TableReference, SqlError> {
        self.expect("rows")?;
        self.expect("from")?;
        let items = self.parenthesized_list(|parser| {
            let function = parser.windowless_function()?;
            let columns = if parser.accept("as") {
                parser.parenthesized_list(Self::column_definition)?
            } else {
                Vec::new()
            };
            Ok(RangeFunctionItem { function, columns })
        })?;
        self.range_function(lateral, true, items, start)
    }

    /// Reads what follows the functions.
    fn range_function(
        &mut self,
        lateral: bool,
        rows_from: bool,
        functions: Vec<RangeFunctionItem>,
        start: u32,
    ) -> Result<TableReference, SqlError> {
        let ordinality = self.accept_words(&["with", "ordinality"]);
        let (alias, columns) = self.function_alias()?;
        let span = self.span_from(start);
        Ok(TableReference::Function(RangeFunction {
            lateral,
            ordinality,
            rows_from,
            functions,
            alias,
            columns,
            span,
        }))
    }

    /// Reads an alias that may have names of columns or their definitions.
    fn function_alias(&mut self) -> Result<(Option<Alias>, Vec<ColumnDefinition>), SqlError> {
        let written = self.accept("as");
        if written && self.at_symbol("(") {
            return Ok((None, self.parenthesized_list(Self::column_definition)?));
        }
        if !written && !self.is_name(0, is_column_id) {
            return Ok((None, Vec::new()));
        }
        let name = self.column_id()?;
        // A definition has a type behind the name.
        let defined = self.at_symbol("(") && !matches!(self.symbol(2), "," | ")");
        if defined {
            let columns = self.parenthesized_list(Self::column_definition)?;
            return Ok((Some(Alias { name, columns: Vec::new() }), columns));
        }
        let columns = self.column_list()?;
        Ok((Some(Alias { name, columns }), Vec::new()))
    }

    fn column_definition(&mut self) -> Result<ColumnDefinition, SqlError> {
        let name = self.column_id()?;
        let type_name = self.type_name()?;
        let collation = if self.accept("collate") { Some(self.qualified_name()?) } else { None };
        Ok(ColumnDefinition { name, type_name, collation })
    }

    /// Reads an alias, or nothing.
    fn optional_alias(&mut self) -> Result<Option<Alias>, SqlError> {
        if !self.accept("as") && !self.is_name(0, is_column_id) {
            return Ok(None);
        }
        let name = self.column_id()?;
        let columns = self.column_list()?;
        Ok(Some(Alias { name, columns }))
    }

    /// Reads a relation, with ONLY or `*`, without its alias.
    pub(super) fn relation(&mut self) -> Result<RangeVariable, SqlError> {
        let only = self.accept("only");
        let name = if only && self.accept_symbol("(") {
            let name = self.relation_name()?;
            self.expect_symbol(")")?;
            name
        } else {
            self.relation_name()?
        };
        if !only {
            self.accept_symbol("*");
        }
        Ok(RangeVariable { name, only, alias: None })
    }

    /// Reads the name of a relation, of at most three parts.
    pub(super) fn relation_name(&mut self) -> Result<super::names::QualifiedName, SqlError> {
        let name = self.qualified_name()?;
        if name.parts.len() > 3 {
            let parts: Vec<&str> = name.parts.iter().map(|part| part.text.as_str()).collect();
            let message =
                format!("improper qualified name (too many dotted names): {}", parts.join("."));
            return Err(Self::syntax_error(&message, name.span.start));
        }
        Ok(name)
    }

    fn relation_reference(&mut self) -> Result<TableReference, SqlError> {
        let mut relation = self.relation()?;
        relation.alias = self.optional_alias()?;
        if !self.accept("tablesample") {
            return Ok(TableReference::Relation(relation));
        }
        let first = self.column_label()?;
        let method = self.dotted(first)?;
        let arguments = self.parenthesized_list(Self::expression)?;
        let repeatable = if self.accept("repeatable") {
            self.expect_symbol("(")?;
            let seed = self.expression()?;
            self.expect_symbol(")")?;
            Some(seed)
        } else {
            None
        };
        Ok(TableReference::TableSample(RangeTableSample {
            relation,
            method,
            arguments,
            repeatable,
        }))
    }

    /// Reads a subquery or a join in parentheses, with its alias.
    fn table_in_parentheses(
        &mut self,
        lateral: bool,
        start: u32,
    ) -> Result<TableReference, SqlError> {
        match self.parenthesized_from()? {
            FromParentheses::Query(query) => {
                let alias = self.optional_alias()?;
                let span = self.span_from(start);
                Ok(TableReference::Subselect(RangeSubselect { lateral, query, alias, span }))
            }
            FromParentheses::Join(_) if lateral => Err(self.unexpected()),
            FromParentheses::Join(mut join) => {
                join.alias = self.optional_alias()?;
                Ok(TableReference::Join(join))
            }
        }
    }

    /// Reads parentheses in FROM. As with expressions, what the inner ones of several contain shows
    /// only behind them.
    fn parenthesized_from(&mut self) -> Result<FromParentheses, SqlError> {
        self.on_large_stack(Self::parenthesized_from_content)
    }

    fn parenthesized_from_content(&mut self) -> Result<FromParentheses, SqlError> {
        self.expect_symbol("(")?;
        if self.at_query(0) {
            let query = self.select_without_parentheses()?;
            self.expect_symbol(")")?;
            return Ok(FromParentheses::Query(Box::new(query)));
        }
        let start = self.start();
        let first = if self.at_symbol("(") {
            match self.parenthesized_from()? {
                FromParentheses::Query(query) => {
                    if self.accept_symbol(")") {
                        return Ok(FromParentheses::Query(query));
                    }
                    if self.at_query_clause() {
                        let query = self.select_continued(*query)?;
                        self.expect_symbol(")")?;
                        return Ok(FromParentheses::Query(Box::new(query)));
                    }
                    let alias = self.optional_alias()?;
                    let span = self.span_from(start);
                    let lateral = false;
                    TableReference::Subselect(RangeSubselect { lateral, query, alias, span })
                }
                FromParentheses::Join(mut join) => {
                    join.alias = self.optional_alias()?;
                    TableReference::Join(join)
                }
            }
        } else {
            self.table_primary()?
        };
        match self.joined(first, start)? {
            TableReference::Join(join) => {
                if join.alias.is_some() {
                    // `((a join b on x) as c)` is not a join in parentheses.
                    return Err(self.unexpected());
                }
                self.expect_symbol(")")?;
                Ok(FromParentheses::Join(join))
            }
            _ => Err(self.unexpected()),
        }
    }
}
