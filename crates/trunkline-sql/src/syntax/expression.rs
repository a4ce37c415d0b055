//! **The grammar of operators**: precedence and associativity as in PostgreSQL's grammar.
//!
//! `-2 ^ 2` is 4, because a sign binds more tightly than an exponent. `a < b < c` is a syntax error
//! at the second `<`, because comparisons are not associative. `a -> b -> c` nests to the left, as
//! all other operators do.

use super::clauses::Quantifier;
use super::constant::Constant;
use super::names::{Name, OperatorName, QualifiedName};
use super::parenthesized::Parenthesized;
use super::parse_nodes::{Argument, Expression, ExpressionKind, FunctionCall, SubLinkKind};
use super::parser::Parser;
use super::span::Span;
use super::token::TokenKind;
use crate::error::SqlError;

// The levels of precedence, from the loosest to the tightest.
const OR: u8 = 1;
const AND: u8 = 2;
const NOT: u8 = 3;
const IS: u8 = 4;
const COMPARISON: u8 = 5;
const MATCH: u8 = 6;
const OPERATOR: u8 = 7;
const ADDITION: u8 = 8;
const MULTIPLICATION: u8 = 9;
const POWER: u8 = 10;
const AT: u8 = 11;
const COLLATE: u8 = 12;
const SIGN: u8 = 13;
const CAST: u8 = 14;

/// Which operators an expression may consist of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Operators {
    /// All.
    All,
    /// Those that can stand where AND or IN has another meaning: PostgreSQL's `b_expr`.
    Restricted,
}

impl Expression {
    /// An expression whose location is its start.
    pub(super) fn new(kind: ExpressionKind, span: Span) -> Expression {
        Expression { kind, span, location: span.start }
    }
}

/// A function of `pg_catalog` that a special syntax stands for.
pub(super) fn system_call(name: &str, arguments: Vec<Expression>, span: Span) -> FunctionCall {
    let part = |text: &str| Name { text: text.to_owned(), span };
    FunctionCall {
        name: QualifiedName { parts: vec![part("pg_catalog"), part(name)], span },
        arguments: arguments.into_iter().map(|value| Argument { name: None, value }).collect(),
        star: false,
        distinct: false,
        variadic: false,
        order_by: Vec::new(),
        within_group: false,
        filter: None,
        over: None,
        sql_syntax: true,
    }
}

impl Parser<'_> {
    /// Reads an expression.
    pub(super) fn expression(&mut self) -> Result<Expression, SqlError> {
        self.operand(Operators::All, OR)
    }

    /// Reads an expression of the restricted kind.
    pub(super) fn restricted_expression(&mut self) -> Result<Expression, SqlError> {
        self.operand(Operators::Restricted, OR)
    }

    /// Reads the operators that follow the beginning of an expression.
    pub(super) fn continued_expression(
        &mut self,
        first: Expression,
    ) -> Result<Expression, SqlError> {
        self.continued(first, Operators::All, OR)
    }

    /// Reads an expression of operators that bind at least as tightly as `level_min`.
    fn operand(&mut self, operators: Operators, level_min: u8) -> Result<Expression, SqlError> {
        self.on_large_stack(|parser| {
            let first = parser.prefixed(operators)?;
            parser.continued(first, operators, level_min)
        })
    }

    /// Reads a primary with the prefix operators before it.
    fn prefixed(&mut self, operators: Operators) -> Result<Expression, SqlError> {
        let start = self.start();
        if operators == Operators::All && self.accept("not") {
            let argument = self.operand(operators, NOT + 1)?;
            let span = self.span_from(start);
            return Ok(Expression::new(ExpressionKind::Not(Box::new(argument)), span));
        }
        if operators == Operators::All && self.at("default") {
            // Only rows that are inserted or updated have defaults.
            let message = "DEFAULT is not allowed in this context";
            return Err(Self::syntax_error(message, start));
        }
        let sign = self.symbol(0);
        if matches!(sign, "+" | "-") {
            let operator = self.operator_name()?;
            let argument = self.operand(operators, SIGN + 1)?;
            return Ok(if sign == "-" {
                negated(operator, argument)
            } else {
                binary(None, operator, argument)
            });
        }
        if self.at_other_operator() {
            let operator = self.operator_name()?;
            let argument = self.operand(operators, OPERATOR + 1)?;
            return Ok(binary(None, operator, argument));
        }
        self.primary()
    }

    /// Whether an operator without a precedence of its own is next.
    fn at_other_operator(&self) -> bool {
        matches!(self.peek(0), TokenKind::Operator(_))
            || (self.at("operator") && self.symbol(1) == "(")
    }

    /// Reads an operator, which may be `OPERATOR(schema.+)`.
    pub(super) fn operator_name(&mut self) -> Result<OperatorName, SqlError> {
        let start = self.start();
        if !self.at("operator") {
            let symbol = self.operator_symbol()?;
            return Ok(OperatorName { qualification: vec![], symbol, span: self.span_from(start) });
        }
        self.advance();
        self.expect_symbol("(")?;
        let mut qualification = Vec::new();
        while self.is_name(0, super::parser::is_column_id) {
            qualification.push(self.column_id()?);
            self.expect_symbol(".")?;
        }
        let symbol = self.operator_symbol()?;
        self.expect_symbol(")")?;
        Ok(OperatorName { qualification, symbol, span: self.span_from(start) })
    }

    fn operator_symbol(&mut self) -> Result<String, SqlError> {
        let symbol = match self.peek(0) {
            TokenKind::Operator(symbol) => symbol.clone(),
            TokenKind::Symbol(symbol) if symbol_level(symbol).is_some_and(|level| level < CAST) => {
                (*symbol).to_owned()
            }
            _ => return Err(self.unexpected()),
        };
        self.advance();
        Ok(symbol)
    }

    /// Reads the operators that follow an expression and bind at least as tightly as `level_min`.
    fn continued(
        &mut self,
        mut left: Expression,
        operators: Operators,
        level_min: u8,
    ) -> Result<Expression, SqlError> {
        // The level of an operator that is not associative and has just been applied.
        let mut barred = None;
        while let Some(level) = self.infix_level(operators, level_min) {
            if level < level_min {
                break;
            }
            if barred == Some(level) {
                return Err(self.unexpected());
            }
            let open_right;
            (left, open_right) = self.infix(left, operators, level)?;
            let associative = !matches!(level, IS | COMPARISON | MATCH);
            barred = (open_right && !associative).then_some(level);
        }
        Ok(left)
    }

    /// The level of the operator that is next, if any.
    fn infix_level(&self, operators: Operators, level_min: u8) -> Option<u8> {
        let TokenKind::Keyword(keyword) = self.peek(0) else {
            return match self.peek(0) {
                TokenKind::Operator(_) => Some(OPERATOR),
                TokenKind::Symbol(symbol) => symbol_level(symbol),
                _ => None,
            };
        };
        let is_target = self.in_target && level_min == OR;
        if is_target && keyword.bare_label && self.target_ends(1) {
            return None;
        }
        let level = match keyword.word {
            "is" => return Some(IS),
            "operator" if self.symbol(1) == "(" || !is_target => return Some(OPERATOR),
            "or" => OR,
            "and" => AND,
            "isnull" | "notnull" => IS,
            "between" | "in" | "like" | "ilike" => MATCH,
            "similar" if self.word(1) == "to" => MATCH,
            "not" if matches!(self.word(1), "between" | "in" | "like" | "ilike" | "similar") => {
                MATCH
            }
            "at" => AT,
            "collate" => COLLATE,
            _ => return None,
        };
        (operators == Operators::All).then_some(level)
    }

    /// Whether an entry of a target list ends before the token `ahead`.
    fn target_ends(&self, ahead: usize) -> bool {
        match self.peek(ahead) {
            TokenKind::End | TokenKind::Symbol("," | ";" | ")") => true,
            TokenKind::Keyword(keyword) => matches!(
                keyword.word,
                "from"
                    | "into"
                    | "where"
                    | "group"
                    | "having"
                    | "window"
                    | "union"
                    | "intersect"
                    | "except"
                    | "order"
                    | "limit"
                    | "offset"
                    | "fetch"
                    | "for"
            ),
            _ => false,
        }
    }

    /// Applies the operator that is next. The flag says whether its last operand is an expression
    /// without a delimiter, which another operator of the same level could extend.
    fn infix(
        &mut self,
        left: Expression,
        operators: Operators,
        level: u8,
    ) -> Result<(Expression, bool), SqlError> {
        let location = self.start();
        match self.word(0) {
            "or" | "and" => {
                self.advance();
                let right = self.operand(operators, level + 1)?;
                return Ok((joined(left, right, level, location), true));
            }
            "is" | "isnull" | "notnull" => return self.is_test(left, operators),
            "at" => return Ok((self.at_time_zone(left, operators)?, true)),
            "collate" => {
                self.advance();
                let collation = self.qualified_name()?;
                let kind = ExpressionKind::Collate { argument: Box::new(left), collation };
                return Ok((self.placed(kind, location), false));
            }
            "not" | "between" | "in" | "like" | "ilike" | "similar" => return self.matched(left),
            _ => {}
        }
        if self.accept_symbol("::") {
            let type_name = Box::new(self.type_name()?);
            let kind = ExpressionKind::TypeCast { argument: Box::new(left), type_name };
            return Ok((self.placed(kind, location), false));
        }
        let operator = self.operator_name()?;
        if operators == Operators::All && self.at_quantifier() {
            return Ok((self.quantified(left, operator)?, false));
        }
        let right = self.operand(operators, level + 1)?;
        Ok((binary(Some(left), operator, right), true))
    }

    /// An expression that starts with the operand that `kind` holds and ends before the next token.
    fn placed(&self, kind: ExpressionKind, location: u32) -> Expression {
        let start = match &kind {
            ExpressionKind::Collate { argument, .. }
            | ExpressionKind::TypeCast { argument, .. }
            | ExpressionKind::NullTest { argument, .. }
            | ExpressionKind::BooleanTest { argument, .. }
            | ExpressionKind::Distinct { left: argument, .. }
            | ExpressionKind::Between { operand: argument, .. }
            | ExpressionKind::In { left: argument, .. }
            | ExpressionKind::ArrayComparison { left: argument, .. } => argument.span.start,
            ExpressionKind::SubLink {
                kind: SubLinkKind::In { left, .. } | SubLinkKind::Quantified { left, .. },
                ..
            } => left.span.start,
            _ => location,
        };
        Expression { kind, span: self.span_from(start), location }
    }

    fn at_quantifier(&self) -> bool {
        matches!(self.word(0), "any" | "some" | "all")
    }

    /// Reads `ANY (…)` and its like after an operator.
    fn quantified(
        &mut self,
        left: Expression,
        operator: OperatorName,
    ) -> Result<Expression, SqlError> {
        let quantifier = if self.at("all") { Quantifier::All } else { Quantifier::Any };
        self.advance();
        let location = operator.span.start;
        let left = Box::new(left);
        let kind = match self.parenthesized()? {
            Parenthesized::Query(query) => {
                let kind = SubLinkKind::Quantified { quantifier, left, operator };
                ExpressionKind::SubLink { kind, query }
            }
            Parenthesized::Expression(right) => {
                let right = Box::new(right);
                ExpressionKind::ArrayComparison { operator, quantifier, left, right }
            }
            Parenthesized::Row { comma, .. } => {
                return Err(Self::syntax_error("syntax error at or near \",\"", comma));
            }
        };
        Ok(self.placed(kind, location))
    }

    /// Reads IS, ISNULL and NOTNULL after an expression.
    fn is_test(
        &mut self,
        left: Expression,
        operators: Operators,
    ) -> Result<(Expression, bool), SqlError> {
        let location = self.start();
        let argument = Box::new(left);
        if self.at("isnull") || self.at("notnull") {
            let negated = self.at("notnull");
            self.advance();
            let kind = ExpressionKind::NullTest { negated, argument };
            return Ok((self.placed(kind, location), false));
        }
        self.expect("is")?;
        let negated = self.accept("not");
        if self.accept("distinct") {
            self.expect("from")?;
            let right = Box::new(self.operand(operators, IS + 1)?);
            let kind = ExpressionKind::Distinct { negated, left: argument, right };
            return Ok((self.placed(kind, location), true));
        }
        let kind = match self.word(0) {
            "document" => return Err(Self::unsupported("IS DOCUMENT", location)),
            _ if operators == Operators::Restricted => return Err(self.unexpected()),
            "json" => return Err(Self::unsupported("IS JSON", location)),
            "null" => ExpressionKind::NullTest { negated, argument },
            "true" => ExpressionKind::BooleanTest { negated, value: Some(true), argument },
            "false" => ExpressionKind::BooleanTest { negated, value: Some(false), argument },
            "unknown" => ExpressionKind::BooleanTest { negated, value: None, argument },
            _ => return Ok((self.is_normalized(*argument, negated, location)?, false)),
        };
        self.advance();
        Ok((self.placed(kind, location), false))
    }

    /// Reads `[NFC] NORMALIZED`.
    fn is_normalized(
        &mut self,
        argument: Expression,
        negated: bool,
        location: u32,
    ) -> Result<Expression, SqlError> {
        let start = argument.span.start;
        let mut arguments = vec![argument];
        if matches!(self.word(0), "nfc" | "nfd" | "nfkc" | "nfkd") {
            let form = Constant::String(self.word(0).to_ascii_uppercase());
            arguments.push(Expression::new(ExpressionKind::Constant(form), self.here()));
            self.advance();
        }
        self.expect("normalized")?;
        let span = self.span_from(start);
        let call = system_call("is_normalized", arguments, Span::new(location, span.end()));
        let kind = ExpressionKind::FunctionCall(Box::new(call));
        let test = Expression { kind, span, location };
        Ok(if negated {
            Expression { kind: ExpressionKind::Not(Box::new(test)), span, location }
        } else {
            test
        })
    }

    /// Reads `AT TIME ZONE zone` or `AT LOCAL`.
    fn at_time_zone(
        &mut self,
        left: Expression,
        operators: Operators,
    ) -> Result<Expression, SqlError> {
        let location = self.start();
        let start = left.span.start;
        self.expect("at")?;
        let arguments = if self.accept("local") {
            vec![left]
        } else {
            self.expect("time")?;
            self.expect("zone")?;
            vec![self.operand(operators, AT + 1)?, left]
        };
        let span = self.span_from(start);
        let call = system_call("timezone", arguments, Span::new(location, span.end()));
        Ok(Expression { kind: ExpressionKind::FunctionCall(Box::new(call)), span, location })
    }

    /// Reads BETWEEN, IN, LIKE and their like, possibly with NOT.
    fn matched(&mut self, left: Expression) -> Result<(Expression, bool), SqlError> {
        let location = self.start();
        let negated = self.accept("not");
        match self.word(0) {
            "between" => {
                self.advance();
                let symmetric = self.accept("symmetric");
                if !symmetric {
                    self.accept("asymmetric");
                }
                let operand = Box::new(left);
                let low = Box::new(self.restricted_expression()?);
                self.expect("and")?;
                let high = Box::new(self.operand(Operators::All, MATCH + 1)?);
                let kind = ExpressionKind::Between { negated, symmetric, operand, low, high };
                Ok((self.placed(kind, location), true))
            }
            "in" => {
                self.advance();
                let left = Box::new(left);
                let list = match self.parenthesized()? {
                    Parenthesized::Query(query) => {
                        let kind = SubLinkKind::In { negated, left };
                        let kind = ExpressionKind::SubLink { kind, query };
                        return Ok((self.placed(kind, location), false));
                    }
                    Parenthesized::Expression(only) => vec![only],
                    Parenthesized::Row { fields, .. } => fields,
                };
                Ok((self.placed(ExpressionKind::In { negated, left, list }, location), false))
            }
            _ => self.pattern(left, negated, location),
        }
    }

    /// Reads LIKE, ILIKE or SIMILAR TO, which are operators of the catalog.
    fn pattern(
        &mut self,
        left: Expression,
        negated: bool,
        location: u32,
    ) -> Result<(Expression, bool), SqlError> {
        let word = self.word(0);
        self.advance();
        let symbol = match (word, negated) {
            ("like", false) => "~~",
            ("like", true) => "!~~",
            ("ilike", false) => "~~*",
            ("ilike", true) => "!~~*",
            (_, false) => "~",
            (_, true) => "!~",
        };
        let span = self.span_from(location);
        let operator = OperatorName { qualification: vec![], symbol: symbol.to_owned(), span };
        if word == "similar" {
            self.expect("to")?;
        } else if self.at_quantifier() {
            return Ok((self.quantified(left, operator)?, false));
        }
        let mut arguments = vec![self.operand(Operators::All, MATCH + 1)?];
        if self.accept("escape") {
            arguments.push(self.operand(Operators::All, MATCH + 1)?);
        }
        let function = if word == "similar" { "similar_to_escape" } else { "like_escape" };
        let right = match (arguments.len(), arguments.pop()) {
            (1, Some(only)) if word != "similar" => only,
            (_, last) => {
                arguments.extend(last);
                let mut call = system_call(function, arguments, span);
                call.sql_syntax = false;
                let end = self.span_from(location);
                Expression::new(ExpressionKind::FunctionCall(Box::new(call)), end)
            }
        };
        Ok((binary(Some(left), operator, right), true))
    }
}

/// The level of a symbol that is an operator.
fn symbol_level(symbol: &str) -> Option<u8> {
    Some(match symbol {
        "<" | ">" | "=" | "<=" | ">=" | "<>" => COMPARISON,
        "+" | "-" => ADDITION,
        "*" | "/" | "%" => MULTIPLICATION,
        "^" => POWER,
        "::" => CAST,
        _ => return None,
    })
}

/// An operator applied to one or two operands.
fn binary(left: Option<Expression>, operator: OperatorName, right: Expression) -> Expression {
    let start = left.as_ref().map_or(operator.span, |left| left.span);
    let (span, location) = (start.to(right.span), operator.span.start);
    let (left, right) = (left.map(Box::new), Box::new(right));
    Expression { kind: ExpressionKind::Operator { operator, left, right }, span, location }
}

/// Conditions joined by AND or OR. A chain becomes one list, as PostgreSQL makes it, so that it may
/// be long.
fn joined(left: Expression, right: Expression, level: u8, location: u32) -> Expression {
    let span = left.span.to(right.span);
    let (kind, location) = match (left.kind, level) {
        (ExpressionKind::And(mut list), AND) => {
            list.push(right);
            (ExpressionKind::And(list), left.location)
        }
        (ExpressionKind::Or(mut list), OR) => {
            list.push(right);
            (ExpressionKind::Or(list), left.location)
        }
        (kind, _) => {
            let list = vec![Expression { kind, ..left }, right];
            let kind =
                if level == AND { ExpressionKind::And(list) } else { ExpressionKind::Or(list) };
            (kind, location)
        }
    };
    Expression { kind, span, location }
}

/// The sign before a number becomes part of the constant.
fn negated(operator: OperatorName, argument: Expression) -> Expression {
    let constant = match &argument.kind {
        ExpressionKind::Constant(Constant::Integer(value)) => Some(match value.checked_neg() {
            Some(value) => Constant::Integer(value),
            None => Constant::Float(value.unsigned_abs().to_string()),
        }),
        ExpressionKind::Constant(Constant::Float(text)) => Some(match text.strip_prefix('-') {
            Some(positive) => Constant::Float(positive.to_owned()),
            None => {
                let negative = format!("-{text}");
                negative.parse().map_or(Constant::Float(negative), Constant::Integer)
            }
        }),
        _ => None,
    };
    match constant {
        Some(constant) => {
            let span = operator.span.to(argument.span);
            Expression::new(ExpressionKind::Constant(constant), span)
        }
        None => binary(None, operator, argument),
    }
}
