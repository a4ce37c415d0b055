//! **Primary expressions**: constants, columns, parameters, subscripts, CASE, arrays and rows.
//!
//! `t.a[1].b` is a column reference `t.a` with two steps; `(t.a).b` is a column reference with one. A
//! name before a parenthesis is a function, a name before a string the type of a constant:
//! `date '2000-01-01'`.

use super::clauses::ColumnReference;
use super::constant::Constant;
use super::expression::system_call;
use super::keyword::Category;
use super::names::{Name, QualifiedName};
use super::parenthesized::{Parenthesized, sub_link};
use super::parse_nodes::{CaseBranch, Expression, ExpressionKind, IndirectionStep, SubLinkKind};
use super::parser::{Parser, is_column_id, is_type_function_name};
use super::span::Span;
use super::token::TokenKind;
use crate::error::SqlError;

/// The message if anything is selected from a `*`.
const IMPROPER_STAR: &str = "improper use of \"*\"";

impl Parser<'_> {
    /// Reads an expression without operators: PostgreSQL's `c_expr`.
    pub(super) fn primary(&mut self) -> Result<Expression, SqlError> {
        let start = self.start();
        let constant = match self.peek(0) {
            TokenKind::Integer(value) => Constant::Integer(*value),
            TokenKind::Float(text) => Constant::Float(text.clone()),
            TokenKind::String(text) => Constant::String(text.clone()),
            TokenKind::BitString(text) => Constant::BitString(text.clone()),
            TokenKind::Parameter(number) => {
                let kind = ExpressionKind::Parameter(*number);
                self.advance();
                let base = Expression::new(kind, self.span_from(start));
                return self.with_indirection(base);
            }
            TokenKind::Symbol("(") => {
                let content = self.parenthesized()?;
                return self.primary_of(content, start);
            }
            TokenKind::Identifier(_) => return self.name_expression(),
            TokenKind::Keyword(keyword) => match keyword.word {
                "null" => Constant::Null,
                "true" => Constant::Boolean(true),
                "false" => Constant::Boolean(false),
                word => {
                    let category = keyword.category;
                    return self.keyword_expression(word, category);
                }
            },
            _ => return Err(self.unexpected()),
        };
        self.advance();
        Ok(Expression::new(ExpressionKind::Constant(constant), self.span_from(start)))
    }

    /// Reads an expression that begins with a keyword.
    fn keyword_expression(
        &mut self,
        word: &'static str,
        category: Category,
    ) -> Result<Expression, SqlError> {
        match word {
            "case" => return self.on_large_stack(Self::case),
            "array" => return self.array(),
            "exists" if self.symbol(1) == "(" => {
                let start = self.start();
                self.advance();
                let query = self.subquery()?;
                return Ok(sub_link(SubLinkKind::Exists, query, self.span_from(start)));
            }
            "unique" => {
                let start = self.start();
                self.advance();
                self.subquery()?;
                let message = "UNIQUE predicate is not yet implemented";
                return Err(SqlError::unsupported(message).at(start));
            }
            "row" if self.symbol(1) == "(" => {
                let row = self.explicit_row()?;
                return self.overlaps(row);
            }
            "grouping" if self.symbol(1) == "(" => {
                let start = self.start();
                self.advance();
                let list = self.parenthesized_list(Self::expression)?;
                let kind = ExpressionKind::Grouping(list);
                return Ok(Expression::new(kind, self.span_from(start)));
            }
            _ => {}
        }
        if self.at_special_function(word) {
            return self.special_function(word);
        }
        if self.at_type_constant(word) {
            return self.type_constant();
        }
        if category == Category::Reserved {
            return Err(self.unexpected());
        }
        self.name_expression()
    }

    /// Reads a column reference, a function call, or a constant with its type before it.
    fn name_expression(&mut self) -> Result<Expression, SqlError> {
        let start = self.start();
        let is_column = self.is_name(0, is_column_id);
        let is_function = self.is_name(0, is_type_function_name);
        let first = self.column_label()?;
        if !is_column && !matches!(self.peek(0), TokenKind::Symbol("(") | TokenKind::String(_)) {
            return Err(self.unexpected());
        }
        let mut fields = vec![first];
        let mut star = false;
        while self.at_symbol(".") && !star {
            self.advance();
            star = self.accept_symbol("*");
            if !star {
                fields.push(self.column_label()?);
            }
        }
        if !star && (is_function || fields.len() > 1) {
            let name = QualifiedName { span: self.span_from(start), parts: fields };
            match self.peek(0) {
                TokenKind::Symbol("(") => return self.function_call(name),
                TokenKind::String(_) => return self.generic_constant(name, Vec::new()),
                _ => fields = name.parts,
            }
        }
        let kind = ExpressionKind::ColumnReference(ColumnReference { fields, star });
        let base = Expression::new(kind, self.span_from(start));
        let whole = self.with_indirection(base)?;
        match whole.kind {
            ExpressionKind::Indirection { .. } if star => Err(self.error(IMPROPER_STAR)),
            _ => Ok(whole),
        }
    }

    /// Reads the fields and subscripts that follow an expression.
    pub(super) fn with_indirection(&mut self, base: Expression) -> Result<Expression, SqlError> {
        let mut steps = Vec::new();
        loop {
            let start = self.start();
            if self.accept_symbol(".") {
                if self.accept_symbol("*") {
                    steps.push(IndirectionStep::Star(self.span_from(start)));
                } else {
                    steps.push(IndirectionStep::Field(self.column_label()?));
                }
            } else if self.at_symbol("[") {
                steps.push(self.on_large_stack(Self::subscript)?);
            } else {
                break;
            }
        }
        let Some((_, before_last)) = steps.split_last() else { return Ok(base) };
        if before_last.iter().any(|step| matches!(step, IndirectionStep::Star(_))) {
            return Err(self.error(IMPROPER_STAR));
        }
        let (span, location) = (self.span_from(base.span.start), base.location);
        let kind = ExpressionKind::Indirection { base: Box::new(base), steps };
        Ok(Expression { kind, span, location })
    }

    /// Reads `[index]` or `[lower:upper]`.
    fn subscript(&mut self) -> Result<IndirectionStep, SqlError> {
        let start = self.start();
        self.expect_symbol("[")?;
        let lower = if self.at_symbol(":") { None } else { Some(self.expression()?) };
        if !self.accept_symbol(":") {
            self.expect_symbol("]")?;
            return lower.map(IndirectionStep::Subscript).ok_or_else(|| self.unexpected());
        }
        let upper = if self.at_symbol("]") { None } else { Some(Box::new(self.expression()?)) };
        self.expect_symbol("]")?;
        let lower = lower.map(Box::new);
        Ok(IndirectionStep::Slice { lower, upper, span: self.span_from(start) })
    }

    fn case(&mut self) -> Result<Expression, SqlError> {
        let start = self.start();
        self.expect("case")?;
        let argument = if self.at("when") { None } else { Some(Box::new(self.expression()?)) };
        let mut branches = Vec::new();
        loop {
            let start = self.start();
            self.expect("when")?;
            let condition = self.expression()?;
            self.expect("then")?;
            let result = self.expression()?;
            branches.push(CaseBranch { condition, result, span: self.span_from(start) });
            if !self.at("when") {
                break;
            }
        }
        let default = if self.accept("else") { Some(Box::new(self.expression()?)) } else { None };
        self.expect("end")?;
        let kind = ExpressionKind::Case { argument, branches, default };
        Ok(Expression::new(kind, self.span_from(start)))
    }

    /// Reads `ARRAY[…]` or `ARRAY(query)`.
    fn array(&mut self) -> Result<Expression, SqlError> {
        let start = self.start();
        self.expect("array")?;
        if self.at_symbol("(") {
            let query = self.subquery()?;
            return Ok(sub_link(SubLinkKind::Array, query, self.span_from(start)));
        }
        let elements = self.array_elements()?;
        Ok(Expression::new(ExpressionKind::Array(elements), self.span_from(start)))
    }

    fn array_elements(&mut self) -> Result<Vec<Expression>, SqlError> {
        self.expect_symbol("[")?;
        if self.accept_symbol("]") {
            return Ok(Vec::new());
        }
        let nested = self.at_symbol("[");
        let elements = self.list(|parser| {
            if !nested {
                return parser.expression();
            }
            let start = parser.start();
            let inner = parser.on_large_stack(Self::array_elements)?;
            Ok(Expression::new(ExpressionKind::Array(inner), parser.span_from(start)))
        })?;
        self.expect_symbol("]")?;
        Ok(elements)
    }

    /// Reads `ROW(…)`.
    fn explicit_row(&mut self) -> Result<Expression, SqlError> {
        let start = self.start();
        self.expect("row")?;
        let fields = if self.symbol(1) == ")" {
            self.expect_symbol("(")?;
            self.expect_symbol(")")?;
            Vec::new()
        } else {
            self.parenthesized_list(Self::expression)?
        };
        let kind = ExpressionKind::Row { explicit: true, fields };
        Ok(Expression::new(kind, self.span_from(start)))
    }

    /// Reads OVERLAPS and another row, if they follow a row.
    pub(super) fn overlaps(&mut self, left: Expression) -> Result<Expression, SqlError> {
        if !self.at("overlaps") {
            return Ok(left);
        }
        let operator = self.here();
        self.advance();
        let start = self.start();
        let right = if self.at("row") {
            self.explicit_row()?
        } else {
            match self.parenthesized()? {
                Parenthesized::Row { fields, .. } => {
                    let kind = ExpressionKind::Row { explicit: false, fields };
                    Expression::new(kind, self.span_from(start))
                }
                _ => return Err(self.unexpected()),
            }
        };
        let span = left.span.to(right.span);
        let mut arguments = row_of_two(left, "left", operator)?;
        arguments.extend(row_of_two(right, "right", operator)?);
        let call = system_call("overlaps", arguments, operator);
        let kind = ExpressionKind::FunctionCall(Box::new(call));
        Ok(Expression { kind, span, location: operator.start })
    }

    /// The names behind a column, such as those of a window or an alias.
    pub(super) fn optional_column_id(&mut self) -> Result<Option<Name>, SqlError> {
        if self.is_name(0, is_column_id) { self.column_id().map(Some) } else { Ok(None) }
    }
}

/// The two fields of an operand of OVERLAPS.
fn row_of_two(row: Expression, side: &str, operator: Span) -> Result<Vec<Expression>, SqlError> {
    match row.kind {
        ExpressionKind::Row { fields, .. } if fields.len() == 2 => Ok(fields),
        _ => {
            let message =
                format!("wrong number of parameters on {side} side of OVERLAPS expression");
            Err(Parser::syntax_error(&message, operator.start))
        }
    }
}
