//! **Cursors and prepared statements**: DECLARE, FETCH, MOVE, CLOSE, PREPARE, EXECUTE, DEALLOCATE.
//!
//! `fetch last from c` is [`FetchDirection::Absolute`] -1, as PostgreSQL's grammar has it.

use super::parser::{Parser, is_column_id};
use super::statement::{DeclareCursor, FetchDirection, FetchStatement, Statement};
use super::token::TokenKind;
use crate::error::SqlError;

impl Parser<'_> {
    /// Reads DECLARE.
    pub(super) fn declare(&mut self) -> Result<Statement, SqlError> {
        self.expect("declare")?;
        let name = self.column_id()?;
        let (mut binary, mut scroll, mut insensitive) = (false, None, None);
        loop {
            if self.accept("binary") {
                binary = true;
            } else if self.accept("scroll") {
                scroll = Some(true);
            } else if self.accept_words(&["no", "scroll"]) {
                scroll = Some(false);
            } else if self.accept("insensitive") {
                insensitive = Some(true);
            } else if self.accept("asensitive") {
                insensitive = Some(false);
            } else {
                break;
            }
        }
        self.expect("cursor")?;
        let hold = self.accept_words(&["with", "hold"]);
        if !hold {
            self.accept_words(&["without", "hold"]);
        }
        self.expect("for")?;
        let query = Box::new(self.select_statement()?);
        let cursor = DeclareCursor { name, binary, scroll, insensitive, hold, query };
        Ok(Statement::DeclareCursor(cursor))
    }

    /// Reads FETCH or MOVE.
    pub(super) fn fetch(&mut self) -> Result<Statement, SqlError> {
        let is_move = self.at("move");
        self.advance();
        let (direction, count) = self.fetch_direction()?;
        self.accept_one(&["from", "in"]);
        let cursor = self.column_id()?;
        Ok(Statement::Fetch(FetchStatement { is_move, direction, count, cursor }))
    }

    fn fetch_direction(&mut self) -> Result<(FetchDirection, Option<i32>), SqlError> {
        use FetchDirection::{Absolute, Backward, Forward, Relative};
        let number = matches!(self.peek(0), TokenKind::Integer(_) | TokenKind::Symbol("+" | "-"));
        if number {
            return Ok((Forward, Some(self.signed_integer()?)));
        }
        // The word may also be the cursor's name: `fetch next`.
        let end = matches!(self.peek(1), TokenKind::End | TokenKind::Symbol(";"));
        if end || self.at("from") || self.at("in") {
            return Ok((Forward, Some(1)));
        }
        Ok(match self.word(0) {
            "next" => self.fixed(Forward, 1),
            "prior" => self.fixed(Backward, 1),
            "first" => self.fixed(Absolute, 1),
            "last" => self.fixed(Absolute, -1),
            "absolute" | "relative" => {
                let direction = if self.at("absolute") { Absolute } else { Relative };
                self.advance();
                (direction, Some(self.signed_integer()?))
            }
            "all" => {
                self.advance();
                (Forward, None)
            }
            "forward" | "backward" => {
                let direction = if self.at("forward") { Forward } else { Backward };
                self.advance();
                if self.accept("all") {
                    (direction, None)
                } else if self.at("from") || self.at("in") || self.is_name(0, is_column_id) {
                    (direction, Some(1))
                } else {
                    (direction, Some(self.signed_integer()?))
                }
            }
            _ => (Forward, Some(1)),
        })
    }

    /// Steps over the word for a direction.
    fn fixed(&mut self, direction: FetchDirection, count: i32) -> (FetchDirection, Option<i32>) {
        self.advance();
        (direction, Some(count))
    }

    fn signed_integer(&mut self) -> Result<i32, SqlError> {
        let minus = self.accept_symbol("-");
        if !minus {
            self.accept_symbol("+");
        }
        let value = self.integer()?;
        Ok(if minus { value.wrapping_neg() } else { value })
    }

    /// Reads CLOSE.
    pub(super) fn close(&mut self) -> Result<Statement, SqlError> {
        self.expect("close")?;
        let name = if self.accept("all") { None } else { Some(self.column_id()?) };
        Ok(Statement::ClosePortal(name))
    }

    /// Reads PREPARE.
    pub(super) fn prepare(&mut self) -> Result<Statement, SqlError> {
        self.expect("prepare")?;
        let name = self.column_id()?;
        let argument_types = if self.at_symbol("(") {
            self.parenthesized_list(Self::type_name)?
        } else {
            Vec::new()
        };
        self.expect("as")?;
        let statement = Box::new(self.preparable()?);
        Ok(Statement::Prepare { name, argument_types, statement })
    }

    /// Reads EXECUTE.
    pub(super) fn execute(&mut self) -> Result<Statement, SqlError> {
        self.expect("execute")?;
        let name = self.column_id()?;
        let parameters = if self.at_symbol("(") {
            self.parenthesized_list(Self::expression)?
        } else {
            Vec::new()
        };
        Ok(Statement::Execute { name, parameters })
    }

    /// Reads DEALLOCATE.
    pub(super) fn deallocate(&mut self) -> Result<Statement, SqlError> {
        self.expect("deallocate")?;
        let end = matches!(self.peek(1), TokenKind::End | TokenKind::Symbol(";"));
        if self.at("prepare") && !end {
            self.advance();
        }
        let name = if self.accept("all") { None } else { Some(self.column_id()?) };
        Ok(Statement::Deallocate(name))
    }
}
