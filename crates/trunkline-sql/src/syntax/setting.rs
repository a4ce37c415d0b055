//! **SET, RESET, SHOW and ALTER SYSTEM.** Each way to write a setting comes out as a name and values:
//! `SET TIME ZONE 'UTC'` sets `timezone`, `SET NAMES 'UTF8'` sets `client_encoding`.

use super::constant::Constant;
use super::names::Name;
use super::parse_nodes::{Expression, ExpressionKind};
use super::parser::Parser;
use super::span::Span;
use super::statement::{
    OptionValue, SettingName, SettingValue, Statement, TransactionMode, VariableAction,
};
use super::token::TokenKind;
use crate::error::SqlError;

impl Parser<'_> {
    /// Reads SET.
    pub(super) fn set(&mut self) -> Result<Statement, SqlError> {
        self.expect("set")?;
        if self.at("constraints") {
            return Err(Self::unsupported("SET CONSTRAINTS", self.start()));
        }
        // `SET SESSION CHARACTERISTICS` and `SET SESSION AUTHORIZATION` go with the word SESSION.
        let local = self.accept("local");
        if !local && self.at("session") && !self.at_special_session() {
            self.advance();
        }
        if self.at_words(&["transaction", "snapshot"]) {
            self.advance();
            self.advance();
            let modes = vec![TransactionMode::Snapshot(self.string()?)];
            return Ok(Statement::SetTransaction { session: false, modes });
        }
        if self.at("transaction") && !matches!(self.symbol(1), "=" | ".") && self.word(1) != "to" {
            self.advance();
            let modes = self.transaction_modes()?;
            if modes.is_empty() {
                return Err(self.unexpected());
            }
            return Ok(Statement::SetTransaction { session: false, modes });
        }
        if self.accept_words(&["session", "characteristics"]) {
            self.expect("as")?;
            self.expect("transaction")?;
            let modes = self.transaction_modes()?;
            return Ok(Statement::SetTransaction { session: true, modes });
        }
        let action = match self.special_setting()? {
            Some(action) => action,
            None => self.generic_set()?,
        };
        Ok(Statement::VariableSet { local, action })
    }

    fn at_special_session(&self) -> bool {
        matches!(self.word(1), "characteristics" | "authorization")
    }

    /// Reads the settings that have a syntax of their own, or nothing.
    fn special_setting(&mut self) -> Result<Option<VariableAction>, SqlError> {
        let start = self.start();
        // Any of these words may also be the name of a setting.
        if matches!(self.symbol(1), "=" | ".") || self.word(1) == "to" {
            return Ok(None);
        }
        if self.accept_words(&["time", "zone"]) {
            let name = self.setting_name("timezone", start);
            if self.accept_one(&["default", "local"]) {
                return Ok(Some(VariableAction::SetDefault(name)));
            }
            let values = vec![self.zone_value()?];
            return Ok(Some(VariableAction::Set { name, values }));
        }
        if self.accept_words(&["session", "authorization"]) {
            return self.word_setting("session_authorization", start).map(Some);
        }
        if self.at_words(&["xml", "option"]) {
            self.advance();
            self.advance();
            return self.word_setting("xmloption", start).map(Some);
        }
        let name = match self.word(0) {
            "catalog" => return Err(Self::unsupported("SET CATALOG", start)),
            "schema" => "search_path",
            "names" => "client_encoding",
            "role" => "role",
            _ => return Ok(None),
        };
        self.advance();
        let name = self.setting_name(name, start);
        if name.text == "client_encoding"
            && (self.accept("default") || !matches!(self.peek(0), TokenKind::String(_)))
        {
            return Ok(Some(VariableAction::SetDefault(name)));
        }
        let span = self.here();
        let value = match name.text.as_str() {
            "role" => self.word_or_string()?,
            _ => OptionValue::String(self.string()?),
        };
        Ok(Some(VariableAction::Set { name, values: vec![SettingValue { value, span }] }))
    }

    /// Reads the only value of a setting, a word or DEFAULT.
    fn word_setting(&mut self, name: &str, start: u32) -> Result<VariableAction, SqlError> {
        let name = self.setting_name(name, start);
        if self.accept("default") {
            return Ok(VariableAction::SetDefault(name));
        }
        let span = self.here();
        let value = self.word_or_string()?;
        Ok(VariableAction::Set { name, values: vec![SettingValue { value, span }] })
    }

    fn zone_value(&mut self) -> Result<SettingValue, SqlError> {
        let start = self.start();
        let value = match self.peek(0) {
            TokenKind::String(text) => OptionValue::String(text.clone()),
            TokenKind::Identifier(text) => OptionValue::Word(text.clone()),
            TokenKind::Keyword(_) if self.at("interval") => {
                let (type_name, text) = self.interval_constant()?;
                let ExpressionKind::Constant(Constant::String(text)) = text.kind else {
                    return Err(self.unexpected());
                };
                let value = OptionValue::Interval(text, Box::new(type_name));
                return Ok(SettingValue { value, span: self.span_from(start) });
            }
            _ => {
                let value = self.number()?;
                return Ok(SettingValue { value, span: self.span_from(start) });
            }
        };
        self.advance();
        Ok(SettingValue { value, span: self.span_from(start) })
    }

    /// Reads `name TO value, …`.
    fn generic_set(&mut self) -> Result<VariableAction, SqlError> {
        let name = self.dotted_setting()?;
        if self.accept_words(&["from", "current"]) {
            return Err(Self::unsupported("SET FROM CURRENT", name.span.start));
        }
        if !self.accept("to") {
            self.expect_symbol("=")?;
        }
        if self.accept("default") {
            return Ok(VariableAction::SetDefault(name));
        }
        let values = self.list(|parser| {
            let start = parser.start();
            let value = parser.simple_value()?;
            Ok(SettingValue { value, span: parser.span_from(start) })
        })?;
        Ok(VariableAction::Set { name, values })
    }

    fn setting_name(&self, text: &str, start: u32) -> SettingName {
        SettingName { text: text.to_owned(), span: self.span_from(start) }
    }

    fn dotted_setting(&mut self) -> Result<SettingName, SqlError> {
        let start = self.start();
        let mut text = self.column_id()?.text;
        while self.accept_symbol(".") {
            text.push('.');
            text.push_str(&self.column_id()?.text);
        }
        Ok(SettingName { text, span: self.span_from(start) })
    }

    /// Reads RESET.
    pub(super) fn reset(&mut self) -> Result<VariableAction, SqlError> {
        self.expect("reset")?;
        if self.accept("all") {
            return Ok(VariableAction::ResetAll);
        }
        Ok(VariableAction::Reset(self.shown_setting()?))
    }

    /// Reads SHOW.
    pub(super) fn show(&mut self) -> Result<Statement, SqlError> {
        self.expect("show")?;
        if self.accept("all") {
            return Ok(Statement::VariableShow(None));
        }
        Ok(Statement::VariableShow(Some(self.shown_setting()?)))
    }

    /// Reads a setting as SHOW and RESET name it.
    fn shown_setting(&mut self) -> Result<SettingName, SqlError> {
        let start = self.start();
        let special: &[(&[&str], &str)] = &[
            (&["time", "zone"], "timezone"),
            (&["transaction", "isolation", "level"], "transaction_isolation"),
            (&["session", "authorization"], "session_authorization"),
        ];
        for (words, name) in special {
            if self.accept_words(words) {
                return Ok(self.setting_name(name, start));
            }
        }
        self.dotted_setting()
    }

    /// Reads the rest of ALTER SYSTEM.
    pub(super) fn alter_system(&mut self) -> Result<Statement, SqlError> {
        if self.at("reset") {
            return self.reset().map(Statement::AlterSystem);
        }
        self.expect("set")?;
        self.generic_set().map(Statement::AlterSystem)
    }

    /// Reads a word, a string or a number.
    pub(super) fn simple_value(&mut self) -> Result<OptionValue, SqlError> {
        match self.peek(0) {
            TokenKind::Integer(_) | TokenKind::Float(_) | TokenKind::Symbol("+" | "-") => {
                self.number()
            }
            _ => self.word_or_string(),
        }
    }

    /// Reads a string, or a word that is not reserved, TRUE, FALSE or ON.
    pub(super) fn word_or_string(&mut self) -> Result<OptionValue, SqlError> {
        if let TokenKind::String(_) = self.peek(0) {
            return self.string().map(OptionValue::String);
        }
        let boolean = matches!(self.word(0), "true" | "false" | "on");
        let Name { text, .. } =
            if boolean { self.column_label()? } else { self.non_reserved_word()? };
        Ok(OptionValue::Word(text))
    }

    /// Reads a number, possibly with a sign.
    fn number(&mut self) -> Result<OptionValue, SqlError> {
        match self.signed_number()?.kind {
            ExpressionKind::Constant(Constant::Integer(value)) => Ok(OptionValue::Integer(value)),
            ExpressionKind::Constant(Constant::Float(text)) => Ok(OptionValue::Float(text)),
            _ => Err(self.unexpected()),
        }
    }

    /// Reads a number, possibly with a sign, as a constant.
    pub(super) fn signed_number(&mut self) -> Result<Expression, SqlError> {
        let start = self.start();
        let minus = self.at_symbol("-");
        if minus || self.at_symbol("+") {
            self.advance();
        }
        let constant = match self.peek(0) {
            TokenKind::Integer(value) if minus => Constant::Integer(value.wrapping_neg()),
            TokenKind::Integer(value) => Constant::Integer(*value),
            TokenKind::Float(text) if minus => Constant::Float(format!("-{text}")),
            TokenKind::Float(text) => Constant::Float(text.clone()),
            _ => return Err(self.unexpected()),
        };
        self.advance();
        let span: Span = self.span_from(start);
        Ok(Expression::new(ExpressionKind::Constant(constant), span))
    }
}
