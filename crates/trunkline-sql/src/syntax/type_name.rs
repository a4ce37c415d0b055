//! **Type names** and constants with a type before them. The grammar maps the type names of the SQL
//! standard onto names of the catalog: `int` is `pg_catalog.int4`, `char(3)` is `pg_catalog.bpchar(3)`.
//!
//! `interval day to second(3)` is `pg_catalog.interval` with two modifiers, a mask of fields and 3.
//! `mytype(1, 'a')[]` is `mytype` with two modifiers and one array bound.

use super::constant::Constant;
use super::names::{Name, QualifiedName, TypeModifier, TypeModifierValue, TypeName};
use super::parse_nodes::{Expression, ExpressionKind};
use super::parser::{Parser, is_type_function_name};
use super::span::Span;
use super::token::TokenKind;
use crate::error::{SqlError, SqlState};

// Bits of an interval's mask, as PostgreSQL's interval input numbers the fields.
const MONTH: i32 = 1 << 1;
const YEAR: i32 = 1 << 2;
const DAY: i32 = 1 << 3;
const HOUR: i32 = 1 << 10;
const MINUTE: i32 = 1 << 11;
const SECOND: i32 = 1 << 12;
/// No fields are written, but a precision is.
const FULL_RANGE: i32 = 0x7fff;

/// The fields to which an interval may range, and the masks of the ranges.
type Ranges = &'static [(&'static str, i32)];

/// The fields of an interval, their masks, and the fields to which they may range.
const INTERVAL_FIELDS: &[(&str, i32, Ranges)] = &[
    ("year", YEAR, &[("month", YEAR | MONTH)]),
    ("month", MONTH, &[]),
    (
        "day",
        DAY,
        &[
            ("hour", DAY | HOUR),
            ("minute", DAY | HOUR | MINUTE),
            ("second", DAY | HOUR | MINUTE | SECOND),
        ],
    ),
    ("hour", HOUR, &[("minute", HOUR | MINUTE), ("second", HOUR | MINUTE | SECOND)]),
    ("minute", MINUTE, &[("second", MINUTE | SECOND)]),
    ("second", SECOND, &[]),
];

impl Parser<'_> {
    /// Reads the name of a type.
    pub(super) fn type_name(&mut self) -> Result<TypeName, SqlError> {
        let start = self.start();
        let setof = self.accept("setof");
        let mut type_name = self.simple_type(false)?;
        type_name.setof = setof;
        if self.accept("array") {
            let bound = if self.accept_symbol("[") {
                let size = self.integer()?;
                self.expect_symbol("]")?;
                Some(size)
            } else {
                None
            };
            type_name.array_bounds.push(bound);
        } else {
            while self.accept_symbol("[") {
                let bound = if self.at_symbol("]") { None } else { Some(self.integer()?) };
                self.expect_symbol("]")?;
                type_name.array_bounds.push(bound);
            }
        }
        type_name.span = self.span_from(start);
        Ok(type_name)
    }

    /// A type of `pg_catalog`.
    pub(super) fn system_type(name: &str, modifiers: Vec<TypeModifier>, span: Span) -> TypeName {
        let part = |text: &str| Name { text: text.to_owned(), span };
        let name = QualifiedName { parts: vec![part("pg_catalog"), part(name)], span };
        TypeName { name, modifiers, array_bounds: Vec::new(), setof: false, span }
    }

    /// Reads a type without array bounds. Before a constant, `char` has any length; otherwise it has
    /// one character.
    fn simple_type(&mut self, before_constant: bool) -> Result<TypeName, SqlError> {
        let start = self.start();
        let word = self.word(0);
        let simple = match word {
            "int" | "integer" => "int4",
            "smallint" => "int2",
            "bigint" => "int8",
            "real" => "float4",
            "boolean" => "bool",
            "json" => "json",
            "float" => return self.float_type(),
            "decimal" | "dec" | "numeric" => {
                self.advance();
                let modifiers = self.optional_modifiers()?;
                return Ok(Self::system_type("numeric", modifiers, self.span_from(start)));
            }
            "bit" => return self.bit_type(before_constant),
            "char" | "character" | "varchar" | "national" | "nchar" => {
                return self.character_type(before_constant);
            }
            "time" | "timestamp" => return self.time_type(),
            "interval" => {
                self.advance();
                let mut modifiers = self.optional_length()?;
                if modifiers.is_empty() {
                    modifiers = self.interval_fields()?;
                } else {
                    modifiers.insert(0, modifier(FULL_RANGE));
                }
                return Ok(Self::system_type("interval", modifiers, self.span_from(start)));
            }
            "double" if self.word(1) == "precision" => {
                self.advance();
                "float8"
            }
            _ => return self.generic_type(),
        };
        self.advance();
        Ok(Self::system_type(simple, Vec::new(), self.span_from(start)))
    }

    /// Reads a type by its name in the catalog.
    fn generic_type(&mut self) -> Result<TypeName, SqlError> {
        let start = self.start();
        let first = self.name_if(is_type_function_name)?;
        let name = self.dotted(first)?;
        let modifiers = self.optional_modifiers()?;
        let span = self.span_from(start);
        Ok(TypeName { name, modifiers, array_bounds: Vec::new(), setof: false, span })
    }

    /// Reads FLOAT; a precision in bits chooses between two types.
    fn float_type(&mut self) -> Result<TypeName, SqlError> {
        let start = self.start();
        self.advance();
        let position = self.start() + 1;
        let bits = if self.at_symbol("(") { self.length()? } else { 53 };
        let problem = match bits {
            1..=24 => return Ok(Self::system_type("float4", vec![], self.span_from(start))),
            25..=53 => return Ok(Self::system_type("float8", vec![], self.span_from(start))),
            ..=0 => "precision for type float must be at least 1 bit",
            _ => "precision for type float must be less than 54 bits",
        };
        Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, problem).at(position))
    }

    fn bit_type(&mut self, before_constant: bool) -> Result<TypeName, SqlError> {
        let start = self.start();
        self.advance();
        let varying = self.accept("varying");
        let mut modifiers = self.optional_modifiers()?;
        if modifiers.is_empty() && !varying && !before_constant {
            modifiers.push(modifier(1));
        }
        let name = if varying { "varbit" } else { "bit" };
        Ok(Self::system_type(name, modifiers, self.span_from(start)))
    }

    fn character_type(&mut self, before_constant: bool) -> Result<TypeName, SqlError> {
        let start = self.start();
        let varying = if self.accept("varchar") {
            true
        } else {
            if self.accept("national") && !matches!(self.word(0), "char" | "character") {
                return Err(self.unexpected());
            }
            self.advance();
            self.accept("varying")
        };
        let mut modifiers = self.optional_length()?;
        if modifiers.is_empty() && !varying && !before_constant {
            modifiers.push(modifier(1));
        }
        let name = if varying { "varchar" } else { "bpchar" };
        Ok(Self::system_type(name, modifiers, self.span_from(start)))
    }

    fn time_type(&mut self) -> Result<TypeName, SqlError> {
        let start = self.start();
        let timestamp = self.at("timestamp");
        self.advance();
        let modifiers = self.optional_length()?;
        let with_zone = if self.at_words(&["with", "time"]) || self.at_words(&["without", "time"]) {
            let with_zone = self.at("with");
            self.advance();
            self.advance();
            self.expect("zone")?;
            with_zone
        } else {
            false
        };
        let name = match (timestamp, with_zone) {
            (true, true) => "timestamptz",
            (true, false) => "timestamp",
            (false, true) => "timetz",
            (false, false) => "time",
        };
        Ok(Self::system_type(name, modifiers, self.span_from(start)))
    }

    /// Reads the fields of an interval, or nothing.
    fn interval_fields(&mut self) -> Result<Vec<TypeModifier>, SqlError> {
        let word = self.word(0);
        let Some((_, mut mask, ranges)) =
            INTERVAL_FIELDS.iter().find(|(name, ..)| *name == word).copied()
        else {
            return Ok(Vec::new());
        };
        self.advance();
        if !ranges.is_empty() && self.accept("to") {
            let word = self.word(0);
            let found = ranges.iter().find(|(name, _)| *name == word);
            mask = found.ok_or_else(|| self.unexpected())?.1;
            self.advance();
        }
        let mut modifiers = vec![modifier(mask)];
        if mask & SECOND != 0 {
            modifiers.extend(self.optional_length()?);
        }
        Ok(modifiers)
    }

    /// Reads an integer in parentheses.
    pub(super) fn length(&mut self) -> Result<i32, SqlError> {
        self.expect_symbol("(")?;
        let length = self.integer()?;
        self.expect_symbol(")")?;
        Ok(length)
    }

    /// Reads an integer in parentheses as a modifier, or nothing.
    fn optional_length(&mut self) -> Result<Vec<TypeModifier>, SqlError> {
        if !self.at_symbol("(") {
            return Ok(Vec::new());
        }
        let start = self.start();
        let value = TypeModifierValue::Integer(self.length()?);
        Ok(vec![TypeModifier { value, span: self.span_from(start) }])
    }

    /// Reads modifiers in parentheses, or nothing.
    fn optional_modifiers(&mut self) -> Result<Vec<TypeModifier>, SqlError> {
        if !self.at_symbol("(") {
            return Ok(Vec::new());
        }
        let list = self.parenthesized_list(Self::expression)?;
        Self::type_modifiers(list)
    }

    /// The modifiers that expressions are: constants, or names without qualification.
    ///
    /// # Errors
    ///
    /// Any other expression.
    pub(super) fn type_modifiers(list: Vec<Expression>) -> Result<Vec<TypeModifier>, SqlError> {
        let mut modifiers = Vec::new();
        for expression in list {
            let value = match expression.kind {
                ExpressionKind::Constant(Constant::Integer(value)) => {
                    TypeModifierValue::Integer(value)
                }
                ExpressionKind::Constant(Constant::Float(text) | Constant::String(text)) => {
                    TypeModifierValue::Text(text)
                }
                ExpressionKind::ColumnReference(mut column)
                    if column.fields.len() == 1 && !column.star =>
                {
                    let name = column.fields.pop().map(|name| name.text);
                    TypeModifierValue::Text(name.unwrap_or_default())
                }
                _ => {
                    let message = "type modifiers must be simple constants or identifiers";
                    return Err(Self::syntax_error(message, expression.span.start));
                }
            };
            modifiers.push(TypeModifier { value, span: expression.span });
        }
        Ok(modifiers)
    }

    /// Whether a constant begins here with a type that is a keyword, such as `date '2000-01-01'`. If
    /// not, the keyword is a name.
    pub(super) fn at_type_constant(&self, word: &str) -> bool {
        let string = matches!(self.peek(1), TokenKind::String(_));
        let parenthesis = self.symbol(1) == "(";
        match word {
            "int" | "integer" | "smallint" | "bigint" | "real" | "boolean" | "json" => string,
            "double" => self.word(1) == "precision",
            "float" | "decimal" | "dec" | "numeric" | "varchar" | "interval" => {
                string || parenthesis
            }
            "bit" | "char" | "character" | "nchar" => {
                string || parenthesis || self.word(1) == "varying"
            }
            "national" => matches!(self.word(1), "char" | "character"),
            "time" | "timestamp" => {
                let zone = matches!(self.word(1), "with" | "without") && self.word(2) == "time";
                string || parenthesis || zone
            }
            _ => false,
        }
    }

    /// Reads a constant with its type before it, where the type is a keyword.
    pub(super) fn type_constant(&mut self) -> Result<Expression, SqlError> {
        let start = self.start();
        let (type_name, text) = if self.at("interval") {
            // The fields follow the string.
            self.interval_constant()?
        } else {
            let type_name = self.simple_type(true)?;
            (type_name, self.string_constant()?)
        };
        Ok(self.cast_constant(type_name, text, start))
    }

    /// Reads `INTERVAL '…' fields` or `INTERVAL(precision) '…'`.
    pub(super) fn interval_constant(&mut self) -> Result<(TypeName, Expression), SqlError> {
        let start = self.start();
        self.expect("interval")?;
        let mut modifiers = self.optional_length()?;
        let text = self.string_constant()?;
        if modifiers.is_empty() {
            modifiers = self.interval_fields()?;
        } else {
            modifiers.insert(0, modifier(FULL_RANGE));
        }
        Ok((Self::system_type("interval", modifiers, self.span_from(start)), text))
    }

    /// Reads the string behind a type that is not a keyword.
    pub(super) fn generic_constant(
        &mut self,
        name: QualifiedName,
        modifiers: Vec<TypeModifier>,
    ) -> Result<Expression, SqlError> {
        let span = self.span_from(name.span.start);
        let start = span.start;
        let text = self.string_constant()?;
        let array_bounds = Vec::new();
        let type_name = TypeName { name, modifiers, array_bounds, setof: false, span };
        Ok(self.cast_constant(type_name, text, start))
    }

    fn string_constant(&mut self) -> Result<Expression, SqlError> {
        let span = self.here();
        let kind = ExpressionKind::Constant(Constant::String(self.string()?));
        Ok(Expression::new(kind, span))
    }

    fn cast_constant(&self, type_name: TypeName, text: Expression, start: u32) -> Expression {
        let (argument, type_name) = (Box::new(text), Box::new(type_name));
        let kind = ExpressionKind::TypeCast { argument, type_name };
        Expression::new(kind, self.span_from(start))
    }
}

/// A modifier that the grammar adds.
fn modifier(value: i32) -> TypeModifier {
    TypeModifier { value: TypeModifierValue::Integer(value), span: Span::default() }
}
