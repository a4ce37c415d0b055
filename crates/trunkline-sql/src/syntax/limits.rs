//! **Limits on nesting.** The parser, the binder and the destructor of a tree recurse, so a statement
//! that would nest too deeply is refused before it is parsed.
//!
//! `((1))` has two levels of parentheses. `1 + 1 + 1` nests to the left, so its two operators count as
//! well. `a and b and c` is one list however long it is, and so are values between commas.

use super::token::{Token, TokenKind};
use crate::error::{SqlError, SqlState};

/// How deep parentheses, brackets and CASE may nest.
pub const BRACKETS_MAX: usize = 1_000;

/// How many operators, joins and set operations may lie between the root of a tree and a leaf.
pub const CHAIN_MAX: usize = 10_000;

/// One level of parentheses, brackets or CASE.
#[derive(Default)]
struct Level {
    is_case: bool,
    /// Operators of the current expression.
    operators: usize,
    /// Joins and set operations.
    joins: usize,
    /// BETWEEN without its AND.
    between: usize,
}

/// The deepest nesting that the tree of these tokens can have.
///
/// # Errors
///
/// 54001 at the first token that nests too deeply.
pub(super) fn nesting(tokens: &[Token]) -> Result<usize, SqlError> {
    let mut levels = vec![Level::default()];
    // The operators and joins of all open levels.
    let mut chain = 0_usize;
    let mut deepest = 0;
    for token in tokens {
        count(&token.kind, &mut levels, &mut chain);
        if levels.len() > BRACKETS_MAX + 1 || chain > CHAIN_MAX {
            let detail = format!(
                "A statement may nest at most {BRACKETS_MAX} parentheses and chain at most \
                 {CHAIN_MAX} operators."
            );
            let code = SqlState::STATEMENT_TOO_COMPLEX;
            return Err(SqlError::new(code, "stack depth limit exceeded")
                .with_detail(detail)
                .at(token.span.start));
        }
        deepest = deepest.max(levels.len() + chain);
    }
    Ok(deepest)
}

/// Counts one token.
fn count(kind: &TokenKind, levels: &mut Vec<Level>, chain: &mut usize) {
    let word = match kind {
        TokenKind::Keyword(keyword) => keyword.word,
        TokenKind::Symbol(symbol) => symbol,
        TokenKind::Operator(_) => "operator",
        _ => return,
    };
    match word {
        "(" | "[" | "case" => {
            levels.push(Level { is_case: word == "case", ..Level::default() });
            return;
        }
        ")" | "]" | "end" => {
            let closes = levels.last().is_some_and(|level| level.is_case == (word == "end"));
            if closes && levels.len() > 1 {
                let level = levels.pop().unwrap_or_default();
                *chain -= level.operators + level.joins;
            }
            return;
        }
        _ => {}
    }
    let Some(level) = levels.last_mut() else { return };
    match word {
        "and" if level.between > 0 => level.between -= 1,
        "," | "and" | "or" | "select" | "where" | "when" | "then" | "else" => {
            *chain -= level.operators;
            level.operators = 0;
        }
        ";" => {
            *chain -= level.operators + level.joins;
            *level = Level { is_case: level.is_case, ..Level::default() };
        }
        "join" | "union" | "intersect" | "except" => {
            level.joins += 1;
            *chain += 1;
        }
        "+" | "-" | "*" | "/" | "%" | "^" | "<" | ">" | "=" | "<=" | ">=" | "<>" | "::"
        | "operator" | "not" | "is" | "isnull" | "notnull" | "between" | "in" | "like"
        | "ilike" | "similar" | "at" | "collate" => {
            level.between += usize::from(word == "between");
            level.operators += 1;
            *chain += 1;
        }
        _ => {}
    }
}
