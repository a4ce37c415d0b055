//! **The clauses behind a query**: ORDER BY, LIMIT, OFFSET, FETCH, FOR UPDATE.
//!
//! `limit 1 offset 2` may also be written `offset 2 rows fetch first row only`. FOR UPDATE may precede
//! LIMIT or follow it.

use super::clauses::{LockStrength, LockWaitPolicy, LockingClause};
use super::constant::Constant;
use super::parse_nodes::{Expression, ExpressionKind, SelectStatement};
use super::parser::Parser;
use super::span::Span;
use super::token::TokenKind;
use crate::error::{SqlError, SqlState};

impl Parser<'_> {
    /// Reads ORDER BY, LIMIT, OFFSET and FOR UPDATE into a query.
    pub(super) fn select_options(&mut self, select: &mut SelectStatement) -> Result<(), SqlError> {
        let start = self.start();
        let order_by = self.order_by()?;
        if !order_by.is_empty() {
            if !select.order_by.is_empty() {
                let position = order_by.first().map_or(start, |key| key.expression.span.start);
                let message = "multiple ORDER BY clauses not allowed";
                return Err(Self::syntax_error(message, position));
            }
            select.order_by = order_by;
        }
        let locked = self.at("for");
        self.locking_clauses(select)?;
        self.limits(select)?;
        if !locked {
            self.locking_clauses(select)?;
        }
        if select.with_ties && select.order_by.is_empty() {
            let message = "WITH TIES cannot be specified without ORDER BY clause";
            return Err(Self::syntax_error(message, self.ties_position.unwrap_or(start)));
        }
        let skips = |clause: &LockingClause| clause.wait_policy == LockWaitPolicy::Skip;
        if select.with_ties && select.locking.iter().any(skips) {
            let message = "SKIP LOCKED and WITH TIES options cannot be used together";
            return Err(Self::syntax_error(message, self.ties_position.unwrap_or(start)));
        }
        select.span = self.span_from(select.span.start);
        Ok(())
    }

    /// Reads LIMIT, FETCH and OFFSET, in any order, each at most once.
    fn limits(&mut self, select: &mut SelectStatement) -> Result<(), SqlError> {
        let (mut limited, mut skipped) = (false, false);
        loop {
            let start = self.start();
            let (kind, already) = match self.word(0) {
                "limit" | "fetch" if !limited => ("LIMIT", select.limit.is_some()),
                "offset" if !skipped => ("OFFSET", select.offset.is_some()),
                _ => return Ok(()),
            };
            let value;
            let mut ties = false;
            if self.accept("offset") {
                skipped = true;
                value = self.expression()?;
                self.accept_one(&["row", "rows"]);
            } else if self.accept("limit") {
                limited = true;
                value = self.limit(start)?;
            } else {
                limited = true;
                (value, ties) = self.fetch_first()?;
            }
            if already {
                let message = format!("multiple {kind} clauses not allowed");
                return Err(Self::syntax_error(&message, start));
            }
            if kind == "OFFSET" {
                select.offset = Some(value);
            } else {
                select.limit = Some(value);
            }
            select.with_ties |= ties;
        }
    }

    /// Reads the number of LIMIT; the clause begins at `clause`.
    fn limit(&mut self, clause: u32) -> Result<Expression, SqlError> {
        let start = self.start();
        if self.accept("all") {
            let kind = ExpressionKind::Constant(Constant::Null);
            return Ok(Expression::new(kind, self.span_from(start)));
        }
        let value = self.expression()?;
        if self.at_symbol(",") {
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, "LIMIT #,# syntax is not supported")
                .with_hint("Use separate LIMIT and OFFSET clauses.")
                .at(clause));
        }
        Ok(value)
    }

    /// Reads `FETCH FIRST … ROWS ONLY`; the flag is WITH TIES.
    fn fetch_first(&mut self) -> Result<(Expression, bool), SqlError> {
        let start = self.start();
        self.expect("fetch")?;
        if !self.accept_one(&["first", "next"]) {
            return Err(self.unexpected());
        }
        let value = if matches!(self.word(0), "row" | "rows") {
            let kind = ExpressionKind::Constant(Constant::Integer(1));
            Expression::new(kind, Span::new(start, start))
        } else {
            self.fetch_count()?
        };
        if !self.accept_one(&["row", "rows"]) {
            return Err(self.unexpected());
        }
        let ties = self.start();
        if self.accept_words(&["with", "ties"]) {
            self.ties_position = Some(ties);
            return Ok((value, true));
        }
        self.expect("only")?;
        Ok((value, false))
    }

    /// Reads a number with a sign, or an expression without operators.
    fn fetch_count(&mut self) -> Result<Expression, SqlError> {
        let signed = matches!(self.symbol(0), "+" | "-")
            && matches!(self.peek(1), TokenKind::Integer(_) | TokenKind::Float(_));
        if signed { self.signed_number() } else { self.primary() }
    }

    /// Reads FOR UPDATE and the like, as often as they occur.
    fn locking_clauses(&mut self, select: &mut SelectStatement) -> Result<(), SqlError> {
        if self.accept_words(&["for", "read", "only"]) {
            return Ok(());
        }
        loop {
            let start = self.start();
            if !self.accept("for") {
                return Ok(());
            }
            let strength = if self.accept("update") {
                LockStrength::Update
            } else if self.accept("share") {
                LockStrength::Share
            } else if self.accept_words(&["no", "key", "update"]) {
                LockStrength::NoKeyUpdate
            } else {
                self.expect("key")?;
                self.expect("share")?;
                LockStrength::KeyShare
            };
            let relations =
                if self.accept("of") { self.list(Self::relation_name)? } else { Vec::new() };
            let wait_policy = if self.accept("nowait") {
                LockWaitPolicy::Error
            } else if self.accept_words(&["skip", "locked"]) {
                LockWaitPolicy::Skip
            } else {
                LockWaitPolicy::Block
            };
            let span = self.span_from(start);
            select.locking.push(LockingClause { strength, relations, wait_policy, span });
        }
    }
}
