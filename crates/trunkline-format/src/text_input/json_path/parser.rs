//! The grammar of paths. Operators bind as in C, comparisons can't be chained, and predicates can only
//! be where booleans are wanted, or in parentheses before a method.

use super::lexer::{Token, Word, syntax, words};
use super::tree::{JsonPath, PathChain, PathItem, PathOperator};
use crate::text_input::error::InputError;
use crate::text_input::numeric::numeric;

/// How deep a path may nest. A level takes a dozen calls, so this bounds the stack.
const DEPTH_MAX: usize = 100;
/// How high the tree of a path may be. A chain of operators such as `1 + 1 + 1` is as high as it has
/// operators. What walks the tree recurses, and the printer takes the most stack: 4 KiB for each level
/// without optimization.
const HEIGHT_MAX: usize = 300;

struct Parser {
    words: Vec<Word>,
    at: usize,
    major: u32,
    depth: usize,
    /// The height of the tree that was read last.
    height: usize,
    /// Filters and subscripts around, in which `@` and `last` have a meaning.
    filters: usize,
    subscripts: usize,
    /// The text of the last number.
    number: String,
}

/// Reads a path.
pub(super) fn parse(text: &str, major: u32) -> Result<JsonPath, InputError> {
    let words = words(text)?;
    if words.len() == 1 {
        let message = format!("invalid input syntax for type jsonpath: \"{text}\"");
        return Err(InputError::new("22P02", message));
    }
    let (filters, subscripts, number) = (0, 0, String::new());
    let (depth, height) = (0, 0);
    let mut parser = Parser { words, at: 0, major, depth, height, filters, subscripts, number };
    let lax = match parser.keyword() {
        "strict" => false,
        "lax" => true,
        _ => {
            let items = parser.whole()?;
            return Ok(JsonPath { lax: true, items });
        }
    };
    parser.at += 1;
    let items = parser.whole()?;
    Ok(JsonPath { lax, items })
}

/// Keywords, which are written in any case unless they are values.
const KEYWORDS: [&str; 33] = [
    "abs",
    "bigint",
    "boolean",
    "ceiling",
    "date",
    "datetime",
    "decimal",
    "double",
    "exists",
    "false",
    "flag",
    "floor",
    "integer",
    "is",
    "keyvalue",
    "last",
    "lax",
    "like_regex",
    "null",
    "number",
    "size",
    "starts",
    "strict",
    "string",
    "time",
    "time_tz",
    "timestamp",
    "timestamp_tz",
    "to",
    "true",
    "type",
    "unknown",
    "with",
];

/// The methods of strings that version 19 has added. We don't read them.
const STRING_METHODS: [&str; 8] =
    ["lower", "upper", "initcap", "replace", "split_part", "ltrim", "rtrim", "btrim"];

impl Parser {
    fn token(&self) -> &Token {
        self.words.get(self.at).map_or(&Token::End, |(token, _)| token)
    }

    /// The keyword here; empty if there is none.
    fn keyword(&self) -> &'static str {
        self.keyword_at(self.at)
    }

    fn keyword_at(&self, at: usize) -> &'static str {
        let Some((Token::Name(name), _)) = self.words.get(at) else { return "" };
        let found = KEYWORDS.iter().copied().find(|word| {
            let is_value = matches!(*word, "null" | "true" | "false");
            if is_value { word == name } else { word.eq_ignore_ascii_case(name) }
        });
        match found.unwrap_or_default() {
            "bigint" | "boolean" | "date" | "decimal" | "integer" | "number" | "string"
            | "time" | "time_tz" | "timestamp" | "timestamp_tz"
                if self.major < 17 =>
            {
                ""
            }
            found => found,
        }
    }

    fn is_symbol(&self, symbol: &str) -> bool {
        matches!(self.token(), Token::Symbol(found) if *found == symbol)
    }

    fn accept(&mut self, symbol: &str) -> bool {
        let found = self.is_symbol(symbol);
        self.at += usize::from(found);
        found
    }

    fn accept_word(&mut self, word: &str) -> bool {
        let found = self.keyword() == word;
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, symbol: &str) -> Result<(), InputError> {
        if self.accept(symbol) { Ok(()) } else { Err(self.unexpected()) }
    }

    fn expect_word(&mut self, word: &str) -> Result<(), InputError> {
        if self.accept_word(word) { Ok(()) } else { Err(self.unexpected()) }
    }

    /// The error for the word here.
    fn unexpected(&self) -> InputError {
        match self.words.get(self.at) {
            // The server's scanner is at the end when it has read a name.
            Some((Token::Name(_), _)) if self.at + 2 >= self.words.len() => {
                syntax("syntax error at end of jsonpath input")
            }
            None | Some((Token::End, _)) => syntax("syntax error at end of jsonpath input"),
            Some((_, text)) => {
                syntax(&format!("syntax error at or near \"{text}\" of jsonpath input"))
            }
        }
    }

    fn whole(&mut self) -> Result<PathChain, InputError> {
        let items = self.or()?;
        match self.token() {
            Token::End => Ok(items),
            _ => Err(self.unexpected()),
        }
    }

    fn nested<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, InputError>,
    ) -> Result<T, InputError> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(too_deep());
        }
        let found = read(self);
        self.depth -= 1;
        found
    }

    /// The tree that was read last becomes part of an item, beside another one of this height.
    fn raise(&mut self, beside: usize) -> Result<(), InputError> {
        self.height = self.height.max(beside) + 1;
        if self.height > HEIGHT_MAX { Err(too_deep()) } else { Ok(()) }
    }

    /// An operator on a left operand of this height and on the right one, which was read last.
    fn binary(
        &mut self,
        operator: PathOperator,
        (left, height): (PathChain, usize),
        right: PathChain,
    ) -> Result<PathChain, InputError> {
        self.raise(height)?;
        Ok(vec![PathItem::Binary(operator, left, right)])
    }

    /// An operator on the operand that was read last.
    fn unary(
        &mut self,
        operator: PathOperator,
        operand: PathChain,
    ) -> Result<PathItem, InputError> {
        self.raise(0)?;
        Ok(PathItem::Unary(operator, operand))
    }

    fn predicate(&mut self) -> Result<PathChain, InputError> {
        let found = self.or()?;
        if is_predicate(&found) { Ok(found) } else { Err(self.unexpected()) }
    }

    fn value(&mut self) -> Result<PathChain, InputError> {
        let found = self.or()?;
        if is_predicate(&found) { Err(self.unexpected()) } else { Ok(found) }
    }

    fn or(&mut self) -> Result<PathChain, InputError> {
        self.nested(|parser| {
            let mut left = parser.and()?;
            while parser.is_symbol("||") && is_predicate(&left) {
                parser.at += 1;
                let height = parser.height;
                let right = parser.and()?;
                parser.require_predicate(&right)?;
                left = parser.binary(PathOperator::Or, (left, height), right)?;
            }
            Ok(left)
        })
    }

    fn and(&mut self) -> Result<PathChain, InputError> {
        let mut left = self.comparison()?;
        while self.is_symbol("&&") && is_predicate(&left) {
            self.at += 1;
            let height = self.height;
            let right = self.comparison()?;
            self.require_predicate(&right)?;
            left = self.binary(PathOperator::And, (left, height), right)?;
        }
        Ok(left)
    }

    fn require_predicate(&self, chain: &PathChain) -> Result<(), InputError> {
        if is_predicate(chain) { Ok(()) } else { Err(self.unexpected()) }
    }

    fn comparison(&mut self) -> Result<PathChain, InputError> {
        if self.accept("!") {
            let operand = self.delimited()?;
            return Ok(vec![self.unary(PathOperator::Not, operand)?]);
        }
        if self.keyword() == "exists" {
            return self.delimited();
        }
        let left = self.sum()?;
        if is_predicate(&left) {
            return Ok(left);
        }
        let operator = match self.token() {
            Token::Symbol("==" | "=") => PathOperator::Equal,
            Token::Symbol("!=" | "<>") => PathOperator::NotEqual,
            Token::Symbol("<") => PathOperator::Less,
            Token::Symbol(">") => PathOperator::Greater,
            Token::Symbol("<=") => PathOperator::LessOrEqual,
            Token::Symbol(">=") => PathOperator::GreaterOrEqual,
            _ => return self.text_comparison(left),
        };
        self.at += 1;
        let height = self.height;
        let right = self.sum()?;
        self.require_value(&right)?;
        self.binary(operator, (left, height), right)
    }

    /// `starts with` and `like_regex`, or only the operand.
    fn text_comparison(&mut self, left: PathChain) -> Result<PathChain, InputError> {
        if self.accept_word("starts") {
            self.expect_word("with")?;
            let start = match self.token().clone() {
                Token::Text(text) => PathItem::String(text),
                Token::Variable(name) => PathItem::Variable(name),
                _ => return Err(self.unexpected()),
            };
            self.at += 1;
            let height = self.height;
            return self.binary(PathOperator::StartsWith, (left, height), vec![start]);
        }
        if self.accept_word("like_regex") {
            let pattern = self.text()?;
            let mut bits = 0;
            if self.accept_word("flag") {
                for flag in self.text()?.chars() {
                    let Some(bit) = "ismxq".find(flag) else {
                        let detail = format!(
                            "Unrecognized flag character \"{flag}\" in LIKE_REGEX predicate."
                        );
                        let error = syntax("invalid input syntax for type jsonpath");
                        return Err(error.with_detail(detail));
                    };
                    bits |= 1 << bit;
                }
            }
            self.raise(0)?;
            return Ok(vec![PathItem::LikeRegex(left, pattern, bits)]);
        }
        Ok(left)
    }

    fn text(&mut self) -> Result<String, InputError> {
        let Token::Text(text) = self.token().clone() else { return Err(self.unexpected()) };
        self.at += 1;
        Ok(text)
    }

    /// A predicate in parentheses, or `exists`.
    fn delimited(&mut self) -> Result<PathChain, InputError> {
        if self.accept_word("exists") {
            self.expect("(")?;
            let value = self.value()?;
            self.expect(")")?;
            return Ok(vec![self.unary(PathOperator::Exists, value)?]);
        }
        self.expect("(")?;
        let predicate = self.predicate()?;
        self.expect(")")?;
        Ok(predicate)
    }

    fn sum(&mut self) -> Result<PathChain, InputError> {
        let mut left = self.product()?;
        while !is_predicate(&left) {
            let operator = match self.token() {
                Token::Symbol("+") => PathOperator::Add,
                Token::Symbol("-") => PathOperator::Subtract,
                _ => break,
            };
            self.at += 1;
            let height = self.height;
            let right = self.product()?;
            self.require_value(&right)?;
            left = self.binary(operator, (left, height), right)?;
        }
        Ok(left)
    }

    fn product(&mut self) -> Result<PathChain, InputError> {
        let mut left = self.signed()?;
        while !is_predicate(&left) {
            let operator = match self.token() {
                Token::Symbol("*") => PathOperator::Multiply,
                Token::Symbol("/") => PathOperator::Divide,
                Token::Symbol("%") => PathOperator::Modulo,
                _ => break,
            };
            self.at += 1;
            let height = self.height;
            let right = self.signed()?;
            self.require_value(&right)?;
            left = self.binary(operator, (left, height), right)?;
        }
        Ok(left)
    }

    fn require_value(&self, chain: &PathChain) -> Result<(), InputError> {
        if is_predicate(chain) { Err(self.unexpected()) } else { Ok(()) }
    }

    fn signed(&mut self) -> Result<PathChain, InputError> {
        let operator = match self.token() {
            Token::Symbol("+") => PathOperator::Plus,
            Token::Symbol("-") => PathOperator::Minus,
            _ => return self.accessors(),
        };
        self.at += 1;
        let operand = self.nested(Self::signed)?;
        self.require_value(&operand)?;
        // The sign of a number belongs to it.
        if let [PathItem::Number(_)] = operand.as_slice() {
            if operator == PathOperator::Minus {
                self.number = match self.number.strip_prefix('-') {
                    Some(positive) => positive.to_owned(),
                    None => format!("-{}", self.number),
                };
            }
            return Ok(vec![PathItem::Number(number(&self.number, self.major)?)]);
        }
        Ok(vec![self.unary(operator, operand)?])
    }

    /// A value and what is applied to it.
    fn accessors(&mut self) -> Result<PathChain, InputError> {
        let mut chain = if self.accept("(") {
            let inside = self.or()?;
            self.expect(")")?;
            if is_predicate(&inside) && self.keyword() == "is" {
                self.at += 1;
                self.expect_word("unknown")?;
                return Ok(vec![self.unary(PathOperator::IsUnknown, inside)?]);
            }
            inside
        } else {
            vec![self.primary()?]
        };
        let mut height = self.height;
        loop {
            self.height = 0;
            let Some(item) = self.accessor()? else { break };
            height = height.max(self.height);
            chain.push(item);
        }
        self.height = height;
        Ok(chain)
    }

    fn primary(&mut self) -> Result<PathItem, InputError> {
        let item = match self.token().clone() {
            Token::Text(text) => PathItem::String(text),
            Token::Variable(name) => PathItem::Variable(name),
            Token::Integer(text) | Token::Number(text) => {
                let payload = number(&text, self.major)?;
                self.number = text;
                PathItem::Number(payload)
            }
            Token::Symbol("$") => PathItem::Root,
            Token::Symbol("@") if self.filters == 0 => {
                return Err(syntax("@ is not allowed in root expressions"));
            }
            Token::Symbol("@") => PathItem::Current,
            Token::Name(_) => match self.keyword() {
                "null" => PathItem::Null,
                "true" => PathItem::Bool(true),
                "false" => PathItem::Bool(false),
                "last" if self.subscripts == 0 => {
                    return Err(syntax("LAST is allowed only in array subscripts"));
                }
                "last" => PathItem::Last,
                _ => return Err(self.unexpected()),
            },
            _ => return Err(self.unexpected()),
        };
        self.at += 1;
        self.height = 0;
        Ok(item)
    }

    fn accessor(&mut self) -> Result<Option<PathItem>, InputError> {
        if self.accept("?") {
            self.expect("(")?;
            self.filters += 1;
            let predicate = self.predicate()?;
            self.filters -= 1;
            self.expect(")")?;
            return self.unary(PathOperator::Filter, predicate).map(Some);
        }
        if self.accept("[") {
            return self.subscript_list().map(Some);
        }
        if !self.accept(".") {
            return Ok(None);
        }
        if self.accept("*") {
            return Ok(Some(PathItem::AnyKey));
        }
        if self.accept("**") {
            return self.levels().map(Some);
        }
        let name = match self.token() {
            Token::Text(text) => {
                let key = PathItem::Key(text.clone());
                self.at += 1;
                return Ok(Some(key));
            }
            Token::Name(name) => name.clone(),
            _ => return Err(self.unexpected()),
        };
        let method = self.keyword();
        let is_call = matches!(self.words.get(self.at + 1), Some((Token::Symbol("("), _)));
        let is_new = |method: &&str| method.eq_ignore_ascii_case(&name);
        if is_call && self.major >= 19 && STRING_METHODS.iter().any(is_new) {
            let message = format!("method {name}() of JSON paths is not supported by trunkline");
            return Err(InputError::unsupported(message));
        }
        self.at += 1;
        match is_call {
            true => self.method(method).map(Some),
            false => Ok(Some(PathItem::Key(name))),
        }
    }

    fn subscript_list(&mut self) -> Result<PathItem, InputError> {
        if self.accept("*") {
            self.expect("]")?;
            return Ok(PathItem::AnyArray);
        }
        self.subscripts += 1;
        let mut list = Vec::new();
        let mut height = 0;
        loop {
            let from = self.value()?;
            height = height.max(self.height);
            let to = if self.accept_word("to") { Some(self.value()?) } else { None };
            height = height.max(self.height);
            list.push((from, to));
            if !self.accept(",") {
                break;
            }
        }
        self.subscripts -= 1;
        self.raise(height)?;
        self.expect("]")?;
        Ok(PathItem::Subscripts(list))
    }

    fn levels(&mut self) -> Result<PathItem, InputError> {
        if !self.accept("{") {
            return Ok(PathItem::Any(0, u32::MAX));
        }
        let first = self.level()?;
        let last = if self.accept_word("to") { self.level()? } else { first };
        self.expect("}")?;
        Ok(PathItem::Any(first, last))
    }

    fn level(&mut self) -> Result<u32, InputError> {
        if self.accept_word("last") {
            return Ok(u32::MAX);
        }
        let Token::Integer(text) = self.token() else { return Err(self.unexpected()) };
        let level = text.parse::<i32>().ok().and_then(|level| u32::try_from(level).ok());
        let level = level.ok_or_else(|| {
            let message = format!("value \"{text}\" is out of range for type integer");
            InputError::new("22003", message)
        })?;
        self.at += 1;
        Ok(level)
    }

    fn method(&mut self, name: &str) -> Result<PathItem, InputError> {
        use PathOperator as O;
        let (operator, arguments_max) = match name {
            "abs" => (O::Abs, 0),
            "size" => (O::Size, 0),
            "type" => (O::Type, 0),
            "floor" => (O::Floor, 0),
            "double" => (O::Double, 0),
            "ceiling" => (O::Ceiling, 0),
            "keyvalue" => (O::KeyValue, 0),
            "bigint" => (O::Bigint, 0),
            "boolean" => (O::Boolean, 0),
            "date" => (O::Date, 0),
            "integer" => (O::Integer, 0),
            "number" => (O::Number, 0),
            "string" => (O::String, 0),
            "decimal" => (O::Decimal, 2),
            "datetime" => (O::Datetime, 1),
            "time" => (O::Time, 1),
            "time_tz" => (O::TimeTz, 1),
            "timestamp" => (O::Timestamp, 1),
            "timestamp_tz" => (O::TimestampTz, 1),
            _ => return Err(self.unexpected()),
        };
        self.expect("(")?;
        let mut arguments = Vec::new();
        while !self.is_symbol(")") && arguments.len() < arguments_max {
            if !arguments.is_empty() {
                self.expect(",")?;
            }
            let item = match (operator, self.token().clone()) {
                (O::Datetime, Token::Text(text)) => PathItem::String(text),
                (O::Decimal, Token::Symbol(sign @ ("+" | "-"))) => {
                    self.at += 1;
                    let Token::Integer(text) = self.token() else { return Err(self.unexpected()) };
                    let sign = if sign == "-" { "-" } else { "" };
                    PathItem::Number(number(&format!("{sign}{text}"), self.major)?)
                }
                (O::Datetime, _) => return Err(self.unexpected()),
                (_, Token::Integer(text)) => PathItem::Number(number(&text, self.major)?),
                _ => return Err(self.unexpected()),
            };
            self.at += 1;
            arguments.push(vec![item]);
        }
        self.expect(")")?;
        self.raise(0)?;
        Ok(PathItem::Method(operator, arguments))
    }
}

fn too_deep() -> InputError {
    InputError::new("54001", "stack depth limit exceeded")
}

fn is_predicate(chain: &PathChain) -> bool {
    matches!(chain.as_slice(), [only] if only.is_predicate())
}

/// The stored form of a number.
fn number(text: &str, major: u32) -> Result<Vec<u8>, InputError> {
    let mut payload = Vec::new();
    numeric(text, -1, major, &mut payload)?;
    Ok(payload)
}
