//! **Function calls**, and the functions of the SQL standard that have a syntax of their own.
//!
//! `count(distinct a order by b) filter (where c) over w` shows every part of a call. `trim(leading
//! 'x' from a)` becomes `pg_catalog.ltrim(a, 'x')`, as PostgreSQL's grammar maps it.

use super::clauses::SqlValueFunction;
use super::constant::Constant;
use super::expression::system_call;
use super::names::{Name, QualifiedName};
use super::parse_nodes::{Argument, Expression, ExpressionKind, FunctionCall, Over};
use super::parser::{Parser, is_type_function_name};
use super::token::TokenKind;
use crate::error::{SqlError, SqlState};

/// Functions that are written without parentheses, and whether they take a precision.
const VALUE_FUNCTIONS: &[(&str, SqlValueFunction, bool)] = &[
    ("current_date", SqlValueFunction::CurrentDate, false),
    ("current_time", SqlValueFunction::CurrentTime, true),
    ("current_timestamp", SqlValueFunction::CurrentTimestamp, true),
    ("localtime", SqlValueFunction::LocalTime, true),
    ("localtimestamp", SqlValueFunction::LocalTimestamp, true),
    ("current_role", SqlValueFunction::CurrentRole, false),
    ("current_user", SqlValueFunction::CurrentUser, false),
    ("user", SqlValueFunction::User, false),
    ("session_user", SqlValueFunction::SessionUser, false),
    ("current_catalog", SqlValueFunction::CurrentCatalog, false),
    ("current_schema", SqlValueFunction::CurrentSchema, false),
];

/// Functions with a syntax of their own inside the parentheses.
const SPECIAL_FUNCTIONS: &[&str] = &[
    "cast",
    "coalesce",
    "extract",
    "greatest",
    "json",
    "json_array",
    "json_arrayagg",
    "json_exists",
    "json_object",
    "json_objectagg",
    "json_query",
    "json_scalar",
    "json_serialize",
    "json_value",
    "least",
    "merge_action",
    "normalize",
    "nullif",
    "overlay",
    "position",
    "substring",
    "treat",
    "trim",
    "xmlconcat",
    "xmlelement",
    "xmlexists",
    "xmlforest",
    "xmlparse",
    "xmlpi",
    "xmlroot",
    "xmlserialize",
];

impl Parser<'_> {
    /// Reads the parentheses of a call and the clauses behind them. The next token is the opening
    /// parenthesis. A string behind them makes the call a type with modifiers.
    pub(super) fn function_call(&mut self, name: QualifiedName) -> Result<Expression, SqlError> {
        let start = name.span.start;
        let mut call = self.function_application(name)?;
        if matches!(self.peek(0), TokenKind::String(_)) && !call.arguments.is_empty() {
            return self.constant_with_modifiers(call);
        }
        self.within_group(&mut call)?;
        if self.accept("filter") {
            self.expect_symbol("(")?;
            self.expect("where")?;
            call.filter = Some(self.expression()?);
            self.expect_symbol(")")?;
        }
        if self.accept("over") {
            call.over = Some(if self.at_symbol("(") {
                Over::Window(self.window_specification(None)?)
            } else {
                Over::Name(self.column_id()?)
            });
        }
        let kind = ExpressionKind::FunctionCall(Box::new(call));
        Ok(Expression::new(kind, self.span_from(start)))
    }

    /// Reads the parentheses of a call.
    pub(super) fn function_application(
        &mut self,
        name: QualifiedName,
    ) -> Result<FunctionCall, SqlError> {
        let in_target = std::mem::replace(&mut self.in_target, false);
        let mut call = system_call("", Vec::new(), name.span);
        call.name = name;
        call.sql_syntax = false;
        self.expect_symbol("(")?;
        if self.accept_symbol("*") {
            call.star = true;
        } else if !self.at_symbol(")") {
            call.distinct = self.accept("distinct");
            let quantified = call.distinct || self.accept("all");
            loop {
                call.variadic = !quantified && self.accept("variadic");
                call.arguments.push(self.argument()?);
                if call.variadic || !self.accept_symbol(",") {
                    break;
                }
            }
            call.order_by = self.order_by()?;
        }
        self.expect_symbol(")")?;
        self.in_target = in_target;
        Ok(call)
    }

    /// Reads an argument, possibly with its name.
    fn argument(&mut self) -> Result<Argument, SqlError> {
        let named = self.is_name(0, is_type_function_name) && matches!(self.symbol(1), "=>" | ":=");
        let name = if named {
            let name = self.type_function_name()?;
            self.advance();
            Some(name)
        } else {
            None
        };
        Ok(Argument { name, value: self.expression()? })
    }

    fn within_group(&mut self, call: &mut FunctionCall) -> Result<(), SqlError> {
        let start = self.start();
        if !self.accept("within") {
            return Ok(());
        }
        self.expect("group")?;
        self.expect_symbol("(")?;
        let order_by = self.order_by()?;
        if order_by.is_empty() {
            return Err(self.unexpected());
        }
        self.expect_symbol(")")?;
        let problem = if !call.order_by.is_empty() {
            "cannot use multiple ORDER BY clauses with WITHIN GROUP"
        } else if call.distinct {
            "cannot use DISTINCT with WITHIN GROUP"
        } else if call.variadic {
            "cannot use VARIADIC with WITHIN GROUP"
        } else {
            call.order_by = order_by;
            call.within_group = true;
            return Ok(());
        };
        Err(Self::syntax_error(problem, start))
    }

    /// Whether a function with a syntax of its own begins at this keyword.
    pub(super) fn at_special_function(&self, word: &str) -> bool {
        VALUE_FUNCTIONS
            .iter()
            .any(|(name, ..)| *name == word && (word != "current_schema" || self.symbol(1) != "("))
            || (self.symbol(1) == "(" && SPECIAL_FUNCTIONS.contains(&word))
            || matches!(word, "cast" | "system_user")
            || self.at_words(&["collation", "for"])
    }

    /// Reads a function with a syntax of its own.
    pub(super) fn special_function(&mut self, word: &'static str) -> Result<Expression, SqlError> {
        let start = self.start();
        if word.starts_with("xml") || (word.starts_with("json") && word != "json_object") {
            return Err(Self::unsupported(&word.to_ascii_uppercase(), start));
        }
        if word == "merge_action" {
            return Err(Self::syntax_error(
                "MERGE_ACTION() can only be used in the RETURNING list of a MERGE command",
                start,
            ));
        }
        self.advance();
        if let Some(&(_, function, precise)) =
            VALUE_FUNCTIONS.iter().find(|(name, ..)| *name == word)
        {
            let precision =
                if precise && self.at_symbol("(") { Some(self.length()?) } else { None };
            let kind = ExpressionKind::SqlValueFunction { function, precision };
            return Ok(Expression::new(kind, self.span_from(start)));
        }
        if word == "system_user" {
            let call = system_call(word, Vec::new(), self.span_from(start));
            let kind = ExpressionKind::FunctionCall(Box::new(call));
            return Ok(Expression::new(kind, self.span_from(start)));
        }
        if word == "collation" {
            self.expect("for")?;
        }
        let in_target = std::mem::replace(&mut self.in_target, false);
        self.expect_symbol("(")?;
        let kind = self.special_arguments(word, start)?;
        self.expect_symbol(")")?;
        self.in_target = in_target;
        Ok(match kind {
            ExpressionKind::FunctionCall(mut call) => {
                call.name.span = self.span_from(start);
                Expression::new(ExpressionKind::FunctionCall(call), self.span_from(start))
            }
            kind => Expression::new(kind, self.span_from(start)),
        })
    }

    /// Reads what a function of this kind has in its parentheses.
    fn special_arguments(
        &mut self,
        word: &'static str,
        start: u32,
    ) -> Result<ExpressionKind, SqlError> {
        match word {
            "cast" => {
                let argument = Box::new(self.expression()?);
                self.expect("as")?;
                let type_name = Box::new(self.type_name()?);
                return Ok(ExpressionKind::TypeCast { argument, type_name });
            }
            "coalesce" => return Ok(ExpressionKind::Coalesce(self.list(Self::expression)?)),
            "greatest" => return Ok(ExpressionKind::Greatest(self.list(Self::expression)?)),
            "least" => return Ok(ExpressionKind::Least(self.list(Self::expression)?)),
            "nullif" => {
                let left = Box::new(self.expression()?);
                self.expect_symbol(",")?;
                let right = Box::new(self.expression()?);
                return Ok(ExpressionKind::NullIf { left, right });
            }
            _ => {}
        }
        let (name, arguments) = match word {
            "collation" => ("pg_collation_for", vec![self.expression()?]),
            "extract" => ("extract", self.extract_arguments()?),
            "normalize" => ("normalize", self.normalize_arguments()?),
            "position" => {
                let part = self.restricted_expression()?;
                self.expect("in")?;
                ("position", vec![self.restricted_expression()?, part])
            }
            "trim" => self.trim_arguments()?,
            "treat" => {
                let argument = self.expression()?;
                self.expect("as")?;
                let name = self.type_name()?.name.last().to_owned();
                let span = self.span_from(start);
                let mut call = system_call(&name, vec![argument], span);
                call.sql_syntax = false;
                return Ok(ExpressionKind::FunctionCall(Box::new(call)));
            }
            _ => return self.dual_arguments(word, start),
        };
        let call = system_call(name, arguments, self.span_from(start));
        Ok(ExpressionKind::FunctionCall(Box::new(call)))
    }

    /// Reads the field of EXTRACT, which becomes a string, and the source.
    fn extract_arguments(&mut self) -> Result<Vec<Expression>, SqlError> {
        const FIELDS: &[&str] = &["year", "month", "day", "hour", "minute", "second"];
        let span = self.here();
        let field = match self.peek(0) {
            TokenKind::Identifier(text) | TokenKind::String(text) => text.clone(),
            TokenKind::Keyword(keyword) if FIELDS.contains(&keyword.word) => {
                keyword.word.to_owned()
            }
            _ => return Err(self.unexpected()),
        };
        self.advance();
        self.expect("from")?;
        let field = Expression::new(ExpressionKind::Constant(Constant::String(field)), span);
        Ok(vec![field, self.expression()?])
    }

    /// Reads the arguments of NORMALIZE; the form becomes a string.
    fn normalize_arguments(&mut self) -> Result<Vec<Expression>, SqlError> {
        let mut arguments = vec![self.expression()?];
        if self.accept_symbol(",") {
            let span = self.here();
            let form = self.word(0);
            if !matches!(form, "nfc" | "nfd" | "nfkc" | "nfkd") {
                return Err(self.unexpected());
            }
            self.advance();
            let form = Constant::String(form.to_ascii_uppercase());
            arguments.push(Expression::new(ExpressionKind::Constant(form), span));
        }
        Ok(arguments)
    }

    /// Reads the arguments of TRIM: what is trimmed comes first, whatever the order in the text.
    fn trim_arguments(&mut self) -> Result<(&'static str, Vec<Expression>), SqlError> {
        let name = match self.word(0) {
            "leading" => "ltrim",
            "trailing" => "rtrim",
            _ => "btrim",
        };
        self.accept_one(&["leading", "trailing", "both"]);
        if self.accept("from") {
            return Ok((name, self.list(Self::expression)?));
        }
        let mut arguments = self.list(Self::expression)?;
        if arguments.len() == 1 && self.accept("from") {
            let characters = arguments.pop();
            arguments = self.list(Self::expression)?;
            arguments.extend(characters);
        }
        Ok((name, arguments))
    }

    /// Reads the arguments of a function that may also be called as any other: OVERLAY, SUBSTRING,
    /// JSON_OBJECT.
    fn dual_arguments(
        &mut self,
        word: &'static str,
        start: u32,
    ) -> Result<ExpressionKind, SqlError> {
        let name = Name { text: word.to_owned(), span: self.span_from(start) };
        let mut arguments = Vec::new();
        let constructor = word == "json_object" && self.at("returning");
        if !self.at_symbol(")") && !constructor {
            let mut argument = self.argument()?;
            match (word, self.word(0)) {
                ("overlay", "placing") if argument.name.is_none() => {
                    return self.overlay(argument.value, start);
                }
                ("substring", "from" | "for" | "similar") if argument.name.is_none() => {
                    return self.substring(argument.value, start);
                }
                _ => {}
            }
            loop {
                arguments.push(argument);
                if !self.accept_symbol(",") {
                    break;
                }
                argument = self.argument()?;
            }
        }
        if word == "json_object" && (arguments.is_empty() || !self.at_symbol(")")) {
            return Err(Self::unsupported("JSON_OBJECT with keys and values", start));
        }
        let mut call = system_call(word, Vec::new(), self.span_from(start));
        if word != "json_object" {
            call.name = QualifiedName { span: name.span, parts: vec![name] };
        }
        call.arguments = arguments;
        call.sql_syntax = false;
        Ok(ExpressionKind::FunctionCall(Box::new(call)))
    }

    /// Reads the rest of `OVERLAY(a PLACING b FROM c [FOR d])`.
    fn overlay(&mut self, first: Expression, start: u32) -> Result<ExpressionKind, SqlError> {
        self.expect("placing")?;
        let mut arguments = vec![first, self.expression()?];
        self.expect("from")?;
        arguments.push(self.expression()?);
        if self.accept("for") {
            arguments.push(self.expression()?);
        }
        let call = system_call("overlay", arguments, self.span_from(start));
        Ok(ExpressionKind::FunctionCall(Box::new(call)))
    }

    /// Reads the rest of `SUBSTRING(a FROM b FOR c)` and its variants.
    fn substring(&mut self, first: Expression, start: u32) -> Result<ExpressionKind, SqlError> {
        let mut arguments = vec![first];
        if self.accept("similar") {
            arguments.push(self.expression()?);
            self.expect("escape")?;
            arguments.push(self.expression()?);
        } else if self.accept("from") {
            arguments.push(self.expression()?);
            if self.accept("for") {
                arguments.push(self.expression()?);
            }
        } else {
            self.expect("for")?;
            let length = self.expression()?;
            if self.accept("from") {
                arguments.extend([self.expression()?, length]);
            } else {
                // Without this cast, `substring(text, int, unknown)` would be ambiguous.
                let span = length.span;
                let one = ExpressionKind::Constant(Constant::Integer(1));
                let type_name = Box::new(Self::system_type("int4", Vec::new(), span));
                let cast = ExpressionKind::TypeCast { argument: Box::new(length), type_name };
                arguments.push(Expression::new(one, span));
                arguments.push(Expression::new(cast, span));
            }
        }
        let call = system_call("substring", arguments, self.span_from(start));
        Ok(ExpressionKind::FunctionCall(Box::new(call)))
    }

    /// Makes a constant of `type(modifiers) 'string'`, which has been read as a call.
    fn constant_with_modifiers(&mut self, call: FunctionCall) -> Result<Expression, SqlError> {
        let problem = if call.arguments.iter().any(|argument| argument.name.is_some()) {
            "type modifier cannot have parameter name"
        } else if !call.order_by.is_empty() {
            "type modifier cannot have ORDER BY"
        } else if call.star || call.distinct || call.variadic {
            return Err(self.unexpected());
        } else {
            let values = call.arguments.into_iter().map(|argument| argument.value).collect();
            let modifiers = Self::type_modifiers(values)?;
            return self.generic_constant(call.name, modifiers);
        };
        Err(SqlError::new(SqlState::SYNTAX_ERROR, problem).at(call.name.span.start))
    }
}
