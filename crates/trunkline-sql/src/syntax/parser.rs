//! **The parser's cursor** over the tokens of a text, and the names that every part of the grammar
//! reads. The grammar itself is spread over the files beside this one, each with methods of
//! [`Parser`].
//!
//! The parser is a recursive descent without backtracking, as far ahead as PostgreSQL's LALR(1)
//! grammar looks. It therefore finds an error at the same token: in `select 1 from where`, at WHERE.

use super::keyword::{Category, Keyword};
use super::names::{Name, QualifiedName};
use super::span::Span;
use super::token::{Token, TokenKind};
use crate::error::{SqlError, SqlState};

/// Tokens and a place among them.
pub(super) struct Parser<'s> {
    source: &'s str,
    tokens: Vec<Token>,
    next: usize,
    /// An expression that is being parsed is an entry of a target list, where the keyword of an
    /// operator may be a label instead: `select 1 is`.
    pub(super) in_target: bool,
    /// Where INTO makes a query a command that creates a table.
    pub(super) into_position: Option<u32>,
    /// The common table expression that modifies data, if any.
    pub(super) modifying_position: Option<u32>,
    /// Where the last FETCH with WITH TIES is.
    pub(super) ties_position: Option<u32>,
    /// The stack that a recursive step must find.
    red_zone_bytes: usize,
}

/// The stack that one step takes between two checks, without optimization, and much more.
const STEP_BYTES: usize = 256 << 10;
/// What is added to the stack at a time, besides the red zone.
const SEGMENT_BYTES: usize = 4 << 20;

impl<'s> Parser<'s> {
    /// A parser before the first token. When the parser finds an
    /// error, it drops what it has built, which takes `drop_bytes` of stack.
    pub(super) fn new(source: &'s str, tokens: Vec<Token>, drop_bytes: usize) -> Parser<'s> {
        Parser {
            source,
            tokens,
            next: 0,
            in_target: false,
            into_position: None,
            modifying_position: None,
            ties_position: None,
            red_zone_bytes: STEP_BYTES + drop_bytes,
        }
    }

    /// Runs a recursive step on a stack that is large enough.
    pub(super) fn on_large_stack<T>(&mut self, step: impl FnOnce(&mut Self) -> T) -> T {
        let red_zone = self.red_zone_bytes;
        stacker::maybe_grow(red_zone, red_zone + SEGMENT_BYTES, || step(self))
    }

    /// The token `ahead` of the next one; behind the last one, the end.
    pub(super) fn peek(&self, ahead: usize) -> &TokenKind {
        self.tokens.get(self.next + ahead).map_or(&TokenKind::End, |token| &token.kind)
    }

    /// The next token's place.
    pub(super) fn here(&self) -> Span {
        self.tokens.get(self.next).map_or(Span::default(), |token| token.span)
    }

    /// The offset of the next token.
    pub(super) fn start(&self) -> u32 {
        self.here().start
    }

    /// From an offset to the end of the token before the next one.
    pub(super) fn span_from(&self, start: u32) -> Span {
        let last = self.next.checked_sub(1).and_then(|index| self.tokens.get(index));
        Span::new(start, last.map_or(start, |token| token.span.end()).max(start))
    }

    /// Steps over the next token, but never over the end.
    pub(super) fn advance(&mut self) {
        if self.next + 1 < self.tokens.len() {
            self.next += 1;
        }
    }

    /// The next token, over which the parser steps.
    pub(super) fn take(&mut self) -> TokenKind {
        let kind = self.peek(0).clone();
        self.advance();
        kind
    }

    /// The keyword `ahead` of the next token, or an empty string.
    pub(super) fn word(&self, ahead: usize) -> &'static str {
        match self.peek(ahead) {
            TokenKind::Keyword(keyword) => keyword.word,
            _ => "",
        }
    }

    /// The symbol `ahead` of the next token, or an empty string.
    pub(super) fn symbol(&self, ahead: usize) -> &'static str {
        match self.peek(ahead) {
            TokenKind::Symbol(symbol) => symbol,
            _ => "",
        }
    }

    /// Whether the next token is a keyword.
    pub(super) fn at(&self, word: &str) -> bool {
        self.word(0) == word
    }

    /// Whether the next tokens are these keywords.
    pub(super) fn at_words(&self, words: &[&str]) -> bool {
        words.iter().enumerate().all(|(ahead, &word)| self.word(ahead) == word)
    }

    /// Whether the next token is a symbol.
    pub(super) fn at_symbol(&self, symbol: &str) -> bool {
        self.symbol(0) == symbol
    }

    /// Steps over a keyword if it is next.
    pub(super) fn accept(&mut self, word: &str) -> bool {
        let found = self.at(word);
        if found {
            self.advance();
        }
        found
    }

    /// Steps over one of several keywords.
    pub(super) fn accept_one(&mut self, words: &[&str]) -> bool {
        words.iter().any(|word| self.accept(word))
    }

    /// Steps over keywords if all of them are next.
    pub(super) fn accept_words(&mut self, words: &[&str]) -> bool {
        let found = self.at_words(words);
        if found {
            words.iter().for_each(|_| self.advance());
        }
        found
    }

    /// Steps over a symbol if it is next.
    pub(super) fn accept_symbol(&mut self, symbol: &str) -> bool {
        let found = self.at_symbol(symbol);
        if found {
            self.advance();
        }
        found
    }

    /// Steps over a keyword.
    ///
    /// # Errors
    ///
    /// A syntax error if it is not next. The other methods of this kind fail likewise.
    pub(super) fn expect(&mut self, word: &str) -> Result<(), SqlError> {
        if self.accept(word) { Ok(()) } else { Err(self.unexpected()) }
    }

    /// Steps over a symbol.
    pub(super) fn expect_symbol(&mut self, symbol: &str) -> Result<(), SqlError> {
        if self.accept_symbol(symbol) { Ok(()) } else { Err(self.unexpected()) }
    }

    /// The error that the next token is.
    pub(super) fn unexpected(&self) -> SqlError {
        if let TokenKind::Malformed(error) = self.peek(0) {
            return (**error).clone();
        }
        self.error("syntax error")
    }

    /// An error with PostgreSQL's words for the place of the next token.
    pub(super) fn error(&self, message: &str) -> SqlError {
        let here = self.here();
        let place = match self.peek(0) {
            TokenKind::End => "at end of input".to_owned(),
            _ => format!("at or near \"{}\"", here.text(self.source)),
        };
        SqlError::new(SqlState::SYNTAX_ERROR, format!("{message} {place}")).at(here.start)
    }

    /// An error of the grammar that points to a place but does not quote it.
    pub(super) fn syntax_error(message: &str, position: u32) -> SqlError {
        SqlError::new(SqlState::SYNTAX_ERROR, message).at(position)
    }

    /// The refusal of what PostgreSQL knows and this program does not.
    pub(super) fn unsupported(what: &str, position: u32) -> SqlError {
        SqlError::unsupported(format!("{what} is not supported by trunkline")).at(position)
    }

    /// Reads items between commas.
    pub(super) fn list<T>(
        &mut self,
        mut item: impl FnMut(&mut Self) -> Result<T, SqlError>,
    ) -> Result<Vec<T>, SqlError> {
        let mut items = vec![item(self)?];
        while self.accept_symbol(",") {
            items.push(item(self)?);
        }
        Ok(items)
    }

    /// Reads items between commas, in parentheses.
    pub(super) fn parenthesized_list<T>(
        &mut self,
        item: impl FnMut(&mut Self) -> Result<T, SqlError>,
    ) -> Result<Vec<T>, SqlError> {
        self.expect_symbol("(")?;
        let items = self.list(item)?;
        self.expect_symbol(")")?;
        Ok(items)
    }

    /// Whether a token is an identifier or a keyword that satisfies a condition.
    pub(super) fn is_name(&self, ahead: usize, condition: impl Fn(Keyword) -> bool) -> bool {
        match self.peek(ahead) {
            TokenKind::Identifier(_) => true,
            TokenKind::Keyword(keyword) => condition(*keyword),
            _ => false,
        }
    }

    /// Reads an identifier or a keyword that satisfies a condition.
    pub(super) fn name_if(
        &mut self,
        condition: impl Fn(Keyword) -> bool,
    ) -> Result<Name, SqlError> {
        if !self.is_name(0, condition) {
            return Err(self.unexpected());
        }
        let span = self.here();
        let text = match self.take() {
            TokenKind::Identifier(text) => text,
            TokenKind::Keyword(keyword) => keyword.word.to_owned(),
            _ => String::new(),
        };
        Ok(Name { text, span })
    }

    /// The name of a column, table or the like.
    pub(super) fn column_id(&mut self) -> Result<Name, SqlError> {
        self.name_if(is_column_id)
    }

    /// A label after AS or a dot: any keyword is accepted.
    pub(super) fn column_label(&mut self) -> Result<Name, SqlError> {
        self.name_if(|_| true)
    }

    /// The name of a function or type.
    pub(super) fn type_function_name(&mut self) -> Result<Name, SqlError> {
        self.name_if(is_type_function_name)
    }

    /// A name in which only reserved words need quotes.
    pub(super) fn non_reserved_word(&mut self) -> Result<Name, SqlError> {
        self.name_if(|keyword| keyword.category != Category::Reserved)
    }

    /// A name with the names behind its dots.
    pub(super) fn qualified_name(&mut self) -> Result<QualifiedName, SqlError> {
        let first = self.column_id()?;
        self.dotted(first)
    }

    /// The rest of a name whose first part has been read.
    pub(super) fn dotted(&mut self, first: Name) -> Result<QualifiedName, SqlError> {
        let start = first.span.start;
        let mut parts = vec![first];
        while self.accept_symbol(".") {
            parts.push(self.column_label()?);
        }
        Ok(QualifiedName { parts, span: self.span_from(start) })
    }

    /// The names of columns in parentheses, or none.
    pub(super) fn column_list(&mut self) -> Result<Vec<Name>, SqlError> {
        if self.at_symbol("(") { self.parenthesized_list(Self::column_id) } else { Ok(Vec::new()) }
    }

    /// A string constant.
    pub(super) fn string(&mut self) -> Result<String, SqlError> {
        let TokenKind::String(text) = self.peek(0) else { return Err(self.unexpected()) };
        let text = text.clone();
        self.advance();
        Ok(text)
    }

    /// An integer constant without a sign.
    pub(super) fn integer(&mut self) -> Result<i32, SqlError> {
        match *self.peek(0) {
            TokenKind::Integer(value) => {
                self.advance();
                Ok(value)
            }
            _ => Err(self.unexpected()),
        }
    }
}

/// Whether a keyword may name a column or table without quotes.
pub(super) fn is_column_id(keyword: Keyword) -> bool {
    matches!(keyword.category, Category::Unreserved | Category::ColumnName)
}

/// Whether a keyword may name a function or type without quotes.
pub(super) fn is_type_function_name(keyword: Keyword) -> bool {
    matches!(keyword.category, Category::Unreserved | Category::TypeOrFunctionName)
}
