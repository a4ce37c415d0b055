//! **Which statement it is**: the first words choose the grammar of the rest.
//!
//! `prepare p as select 1` prepares a query, `prepare transaction 'p'` a transaction. `explain (select
//! 1)` explains a query in parentheses, `explain (analyze) select 1` has an option.

use super::names::Name;
use super::parser::Parser;
use super::statement::{CommandOption, DiscardTarget, OptionValue, Statement};
use crate::error::SqlError;

impl Parser<'_> {
    /// Reads a statement.
    pub(super) fn statement(&mut self) -> Result<Statement, SqlError> {
        let start = self.start();
        match self.word(0) {
            "explain" => self.explain(),
            "set" => self.set(),
            "reset" => {
                let action = self.reset()?;
                Ok(Statement::VariableSet { local: false, action })
            }
            "show" => self.show(),
            "begin" | "start" | "commit" | "end" | "rollback" | "abort" | "savepoint"
            | "release" => self.transaction().map(Statement::Transaction),
            "prepare" if self.word(1) == "transaction" => {
                self.transaction().map(Statement::Transaction)
            }
            "prepare" => self.prepare(),
            "execute" => self.execute(),
            "deallocate" => self.deallocate(),
            "declare" => self.declare(),
            "fetch" | "move" => self.fetch(),
            "close" => self.close(),
            "copy" => self.copy(),
            "discard" => self.discard(),
            "checkpoint" => {
                self.advance();
                Ok(Statement::Checkpoint)
            }
            "listen" | "notify" | "unlisten" => self.notification(),
            "create" if self.word(1) == "extension" => self.create_extension(),
            "alter" if self.word(1) == "system" => {
                self.advance();
                self.advance();
                self.alter_system()
            }
            word @ ("do" | "call" | "load") => {
                Err(Self::unsupported(&word.to_ascii_uppercase(), start))
            }
            _ => match self.write_command() {
                Some(command) => self.rest_of_write(Statement::Write { command }),
                None => {
                    if matches!(self.word(0), "create" | "alter" | "drop") {
                        // The kind of object is what PostgreSQL doesn't know.
                        self.advance();
                    }
                    self.preparable()
                }
            },
        }
    }

    /// Reads a statement that can be prepared: a query or one that changes rows.
    pub(super) fn preparable(&mut self) -> Result<Statement, SqlError> {
        if let Some(command) = self.row_command() {
            return self.rest_of_write(Statement::Write { command });
        }
        self.into_position = None;
        self.modifying_position = None;
        let select = if self.at("with") {
            let with = self.with_clause()?;
            if let Some(command) = self.row_command() {
                return self.rest_of_write(Statement::Write { command });
            }
            self.select_after_with(Some(with))?
        } else {
            self.select_statement()?
        };
        if self.modifying_position.is_some() {
            return Ok(Statement::Write { command: "SELECT" });
        }
        if self.into_position.is_some() {
            return Ok(Statement::Write { command: "SELECT INTO" });
        }
        Ok(Statement::Select(Box::new(select)))
    }

    /// Like [`Parser::preparable`], up to the parenthesis that closes the current one.
    pub(super) fn preparable_in_parentheses(&mut self) -> Result<Statement, SqlError> {
        if let Some(command) = self.row_command() {
            self.skip_to_parenthesis();
            return Ok(Statement::Write { command });
        }
        self.preparable()
    }

    fn explain(&mut self) -> Result<Statement, SqlError> {
        self.expect("explain")?;
        let mut options = Vec::new();
        let open = (0..).take_while(|&ahead| self.symbol(ahead) == "(").count();
        if open == 1 && !self.at_query(1) {
            options = self.options()?;
        } else {
            for words in [["analyze", "analyse"], ["verbose", "verbose"]] {
                let span = self.here();
                if self.accept_one(&words) {
                    let name = Name { text: words.first().map_or("", |w| w).to_owned(), span };
                    options.push(CommandOption { name, value: OptionValue::None, span });
                }
            }
        }
        let statement = Box::new(match self.word(0) {
            "declare" => self.declare()?,
            "execute" => self.execute()?,
            "create" | "refresh" => {
                let start = self.start();
                match self.write_command() {
                    Some(
                        command @ ("CREATE TABLE AS"
                        | "CREATE MATERIALIZED VIEW"
                        | "REFRESH MATERIALIZED VIEW"),
                    ) => self.rest_of_write(Statement::Write { command })?,
                    _ => return Err(Self::unsupported("EXPLAIN of this command", start)),
                }
            }
            _ => self.preparable()?,
        });
        Ok(Statement::Explain { options, statement })
    }

    fn discard(&mut self) -> Result<Statement, SqlError> {
        self.expect("discard")?;
        let target = match self.word(0) {
            "all" => DiscardTarget::All,
            "plans" => DiscardTarget::Plans,
            "sequences" => DiscardTarget::Sequences,
            "temp" | "temporary" => DiscardTarget::Temporary,
            _ => return Err(self.unexpected()),
        };
        self.advance();
        Ok(Statement::Discard(target))
    }

    /// Reads LISTEN, NOTIFY or UNLISTEN.
    fn notification(&mut self) -> Result<Statement, SqlError> {
        if self.accept("listen") {
            return Ok(Statement::Listen(self.column_id()?));
        }
        if self.accept("notify") {
            let channel = self.column_id()?;
            let payload = if self.accept_symbol(",") { Some(self.string()?) } else { None };
            return Ok(Statement::Notify(channel, payload));
        }
        self.expect("unlisten")?;
        let channel = if self.accept_symbol("*") { None } else { Some(self.column_id()?) };
        Ok(Statement::Unlisten(channel))
    }

    fn create_extension(&mut self) -> Result<Statement, SqlError> {
        self.expect("create")?;
        self.expect("extension")?;
        let if_not_exists = self.accept_words(&["if", "not", "exists"]);
        let name = self.column_id()?;
        self.accept("with");
        let mut options = Vec::new();
        loop {
            let span = self.here();
            let word = self.word(0);
            if !self.accept_one(&["schema", "version", "cascade"]) {
                return Ok(Statement::CreateExtension { if_not_exists, name, options });
            }
            let value = match word {
                "schema" => OptionValue::Word(self.column_id()?.text),
                "version" => self.word_or_string()?,
                _ => OptionValue::None,
            };
            let name = Name { text: word.to_owned(), span };
            options.push(CommandOption { name, value, span: self.span_from(span.start) });
        }
    }
}
