//! **What parentheses contain**: a query, an expression, or a row.
//!
//! `((select 1))` is a query, `((select 1) + 1)` an expression that begins with one, and
//! `((select 1) union select 2)` again a query. Which one it is shows only behind the inner
//! parenthesis, so the inner part is read first and then continued as whatever it turns out to be.

use super::parse_nodes::{Expression, ExpressionKind, SelectStatement, SubLinkKind};
use super::parser::Parser;
use super::span::Span;
use crate::error::SqlError;

/// The content of a pair of parentheses.
pub(super) enum Parenthesized {
    /// A query, possibly in more parentheses.
    Query(Box<SelectStatement>),
    /// One expression.
    Expression(Expression),
    /// Two or more expressions, and the offset of the first comma.
    Row { fields: Vec<Expression>, comma: u32 },
}

impl Parser<'_> {
    /// Reads a pair of parentheses.
    pub(super) fn parenthesized(&mut self) -> Result<Parenthesized, SqlError> {
        self.on_large_stack(|parser| {
            let in_target = std::mem::replace(&mut parser.in_target, false);
            let content = parser.parentheses();
            parser.in_target = in_target;
            content
        })
    }

    fn parentheses(&mut self) -> Result<Parenthesized, SqlError> {
        self.expect_symbol("(")?;
        if self.at_query(0) {
            let query = self.select_without_parentheses()?;
            self.expect_symbol(")")?;
            return Ok(Parenthesized::Query(Box::new(query)));
        }
        let start = self.start();
        let first = if self.at_symbol("(") {
            let content = self.parenthesized()?;
            let primary = match content {
                Parenthesized::Query(query) => {
                    if self.accept_symbol(")") {
                        return Ok(Parenthesized::Query(query));
                    }
                    if self.at_query_clause() {
                        let query = self.select_continued(*query)?;
                        self.expect_symbol(")")?;
                        return Ok(Parenthesized::Query(Box::new(query)));
                    }
                    self.primary_of(Parenthesized::Query(query), start)?
                }
                content => self.primary_of(content, start)?,
            };
            self.continued_expression(primary)?
        } else {
            self.expression()?
        };
        if !self.at_symbol(",") {
            self.expect_symbol(")")?;
            return Ok(Parenthesized::Expression(first));
        }
        let comma = self.start();
        let mut fields = vec![first];
        while self.accept_symbol(",") {
            fields.push(self.expression()?);
        }
        self.expect_symbol(")")?;
        Ok(Parenthesized::Row { fields, comma })
    }

    /// Reads what follows the parentheses that begin at `start`, and makes an expression of both.
    pub(super) fn primary_of(
        &mut self,
        content: Parenthesized,
        start: u32,
    ) -> Result<Expression, SqlError> {
        match content {
            Parenthesized::Query(query) => {
                let span = self.span_from(start);
                let base = sub_link(SubLinkKind::Scalar, query, span);
                self.with_indirection(base)
            }
            Parenthesized::Expression(base) => self.with_indirection(base),
            Parenthesized::Row { fields, .. } => {
                let kind = ExpressionKind::Row { explicit: false, fields };
                let row = Expression::new(kind, self.span_from(start));
                self.overlaps(row)
            }
        }
    }

    /// Reads a query in parentheses.
    pub(super) fn subquery(&mut self) -> Result<Box<SelectStatement>, SqlError> {
        let start = self.start();
        let open = (0..).take_while(|&ahead| self.symbol(ahead) == "(").count();
        if open == 0 || !self.at_query(open) {
            (0..open).for_each(|_| self.advance());
            return Err(self.unexpected());
        }
        match self.parenthesized()? {
            Parenthesized::Query(query) => Ok(query),
            _ => Err(Self::syntax_error("syntax error: a query in parentheses is required", start)),
        }
    }

    /// Whether the token `ahead` begins a query that is not in parentheses.
    pub(super) fn at_query(&self, ahead: usize) -> bool {
        match self.word(ahead) {
            "select" | "with" | "table" => true,
            "values" => self.symbol(ahead + 1) == "(",
            _ => false,
        }
    }
}

/// A query inside an expression.
pub(super) fn sub_link(kind: SubLinkKind, query: Box<SelectStatement>, span: Span) -> Expression {
    Expression::new(ExpressionKind::SubLink { kind, query }, span)
}
