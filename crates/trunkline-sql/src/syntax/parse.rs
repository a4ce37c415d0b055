//! **From text to statements.**
//!
//! ```
//! use trunkline_sql::syntax::{Statement, parse};
//! let statements = parse("select 1; show work_mem")?;
//! assert!(matches!(statements[0].statement, Statement::Select(_)));
//! assert!(matches!(statements[1].statement, Statement::VariableShow(_)));
//!
//! let error = parse("select 1 from where").unwrap_err();
//! assert_eq!(error.message(), "syntax error at or near \"where\"");
//! # Ok::<(), trunkline_sql::SqlError>(())
//! ```

use super::lexer;
use super::limits;
use super::parser::Parser;
use super::raw_statement::{DROP_BYTES_PER_LEVEL, RawStatement};
use super::token::TokenKind;
use crate::error::{SqlError, SqlState};

/// The longest text, as PostgreSQL limits a message: one gibibyte.
const TEXT_BYTES_MAX: usize = 1 << 30;

/// Parses a text of any number of statements between semicolons. Empty statements are left out.
///
/// # Errors
///
/// A syntax error anywhere in the text, in PostgreSQL's words and with its position; 54001 if a
/// statement nests too deeply; 0A000 for syntax that PostgreSQL has and this program does not.
pub fn parse(sql: &str) -> Result<Vec<RawStatement>, SqlError> {
    if sql.len() > TEXT_BYTES_MAX {
        let message = "statement is longer than 1073741824 bytes";
        return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
    }
    let tokens = lexer::tokens(sql);
    let nesting = limits::nesting(&tokens)?;
    let mut parser = Parser::new(sql, tokens, nesting * DROP_BYTES_PER_LEVEL);
    parser.on_large_stack(|parser| statements(parser, nesting))
}

fn statements(parser: &mut Parser<'_>, nesting: usize) -> Result<Vec<RawStatement>, SqlError> {
    let mut statements = Vec::new();
    loop {
        while parser.accept_symbol(";") {}
        if *parser.peek(0) == TokenKind::End {
            return Ok(statements);
        }
        let start = parser.start();
        let statement = parser.statement()?;
        statements.push(RawStatement::new(statement, parser.span_from(start), nesting));
        if !parser.at_symbol(";") && *parser.peek(0) != TokenKind::End {
            return Err(parser.unexpected());
        }
    }
}
