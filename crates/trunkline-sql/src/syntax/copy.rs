//! **COPY … TO** and the options of commands.
//!
//! `copy t (a) to stdout with csv header` and `copy t (a) to stdout (format csv, header)` have the same
//! two options.

use super::names::Name;
use super::parser::Parser;
use super::statement::{CommandOption, CopySource, CopyTarget, CopyTo, OptionValue, Statement};
use crate::error::SqlError;

impl Parser<'_> {
    /// Reads COPY. COPY FROM writes.
    pub(super) fn copy(&mut self) -> Result<Statement, SqlError> {
        self.expect("copy")?;
        let mut options = Vec::new();
        let binary = self.here();
        if self.at("binary") {
            self.advance();
            options.push(word_option("format", "binary", binary));
        }
        let source = if self.at_symbol("(") && options.is_empty() {
            self.expect_symbol("(")?;
            let modifies = matches!(self.word(0), "insert" | "update" | "delete" | "merge");
            let statement = self.preparable_in_parentheses()?;
            self.expect_symbol(")")?;
            self.expect("to")?;
            match statement {
                Statement::Select(query) => CopySource::Query(query),
                other if modifies => return self.rest_of_write(other),
                Statement::Write { command: "SELECT INTO" } => {
                    return Err(SqlError::unsupported("COPY (SELECT INTO) is not supported"));
                }
                _ => return Err(self.unexpected()),
            }
        } else {
            let name = self.relation_name()?;
            let columns = self.column_list()?;
            if self.accept("from") {
                return self.rest_of_write(Statement::Write { command: "COPY FROM" });
            }
            self.expect("to")?;
            CopySource::Relation(name, columns)
        };
        let target = self.copy_target()?;
        if self.accept("using") {
            self.expect("delimiters")?;
            self.string_option("delimiter", &mut options)?;
        } else if self.at("delimiters") {
            self.advance();
            self.string_option("delimiter", &mut options)?;
        }
        self.accept("with");
        if self.at_symbol("(") {
            options.extend(self.options()?);
        } else {
            self.old_copy_options(&mut options)?;
        }
        if self.at("where") {
            let message = "WHERE clause not allowed with COPY TO";
            return Err(Self::syntax_error(message, self.start())
                .with_hint("Try the COPY (SELECT ... WHERE ...) TO variant."));
        }
        Ok(Statement::CopyTo(CopyTo { source, target, options }))
    }

    fn copy_target(&mut self) -> Result<CopyTarget, SqlError> {
        if self.accept_one(&["stdout", "stdin"]) {
            return Ok(CopyTarget::Stdout);
        }
        if self.accept("program") {
            return Ok(CopyTarget::Program(self.string()?));
        }
        Ok(CopyTarget::File(self.string()?))
    }

    /// Reads the options of the syntax without parentheses.
    fn old_copy_options(&mut self, options: &mut Vec<CommandOption>) -> Result<(), SqlError> {
        loop {
            let span = self.here();
            match self.word(0) {
                word @ ("binary" | "csv") => {
                    self.advance();
                    options.push(word_option("format", word, span));
                }
                word @ ("freeze" | "header") => {
                    self.advance();
                    options.push(word_option(word, "true", span));
                }
                word @ ("delimiter" | "null" | "quote" | "escape" | "encoding") => {
                    self.advance();
                    if word != "encoding" {
                        self.accept("as");
                    }
                    self.string_option(word, options)?;
                }
                "force" => {
                    self.advance();
                    let name = match self.word(0) {
                        "quote" => "force_quote",
                        "null" => "force_null",
                        "not" if self.word(1) == "null" => "force_not_null",
                        _ => return Err(self.unexpected()),
                    };
                    self.accept("not");
                    self.advance();
                    let value = if name == "force_quote" && self.accept_symbol("*") {
                        OptionValue::Star
                    } else {
                        OptionValue::Names(self.list(Self::column_id)?)
                    };
                    let name = Name { text: name.to_owned(), span };
                    let span = self.span_from(span.start);
                    options.push(CommandOption { name, value, span });
                }
                _ => return Ok(()),
            }
        }
    }

    /// Reads the string of an option whose name has been read.
    fn string_option(
        &mut self,
        name: &str,
        options: &mut Vec<CommandOption>,
    ) -> Result<(), SqlError> {
        let span = self.here();
        let value = OptionValue::String(self.string()?);
        let name = Name { text: name.to_owned(), span };
        options.push(CommandOption { name, value, span });
        Ok(())
    }

    /// Reads options in parentheses.
    pub(super) fn options(&mut self) -> Result<Vec<CommandOption>, SqlError> {
        self.parenthesized_list(|parser| {
            let start = parser.start();
            let name = parser.column_label()?;
            let value = if matches!(parser.symbol(0), "," | ")") {
                OptionValue::None
            } else if parser.accept_symbol("*") {
                OptionValue::Star
            } else if parser.at_symbol("(") {
                OptionValue::List(parser.parenthesized_list(Self::word_or_string)?)
            } else if parser.accept("default") {
                OptionValue::Word("default".to_owned())
            } else {
                parser.simple_value()?
            };
            Ok(CommandOption { name, value, span: parser.span_from(start) })
        })
    }
}

/// An option whose value is a word.
fn word_option(name: &str, value: &str, span: super::span::Span) -> CommandOption {
    let name = Name { text: name.to_owned(), span };
    CommandOption { name, value: OptionValue::Word(value.to_owned()), span }
}
