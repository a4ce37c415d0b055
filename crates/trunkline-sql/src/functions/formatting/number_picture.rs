//! Format pictures of numbers, such as `FM999,990.00`.
//!
//! ```text
//!   S9,999.99   sign before the number, 4 digits before and 2 after the decimal point
//!   9.99EEEE    an exponent
//!   99V99       multiplied by 100
//! ```
//!
//! Mirrors `NUMDesc_prepare` and `NUM_keywords` of PostgreSQL's `utils/adt/formatting.c`.

use super::date_picture::Ordinal;
use crate::error::{SqlError, SqlState};

/// What a keyword stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    /// `,`.
    Comma,
    /// `.` or `D`.
    Point,
    /// `0`: a digit that is always there.
    Zero,
    /// `9`.
    Nine,
    /// `B`: accepted, and changes nothing.
    Blank,
    /// `C` and `SP`: accepted, and do nothing.
    Ignored,
    /// `EEEE`.
    Exponent,
    /// `FM`: no padding.
    Fill,
    /// `G`.
    Group,
    /// `L`.
    Currency,
    /// `MI`.
    Minus,
    /// `PL`.
    Plus,
    /// `PR`: negative numbers in angle brackets.
    Brackets,
    /// `RN`, or `rn` in lower case.
    Roman(Ordinal),
    /// `SG`.
    PlusMinus,
    /// `S`: the sign next to the number.
    Sign,
    /// `TH`.
    Ordinal(Ordinal),
    /// `V`.
    Multiply,
}

/// The keywords in the order in which they are tried.
const KEYWORDS: &[(&str, Key)] = &[
    (",", Key::Comma),
    (".", Key::Point),
    ("0", Key::Zero),
    ("9", Key::Nine),
    ("B", Key::Blank),
    ("C", Key::Ignored),
    ("D", Key::Point),
    ("EEEE", Key::Exponent),
    ("FM", Key::Fill),
    ("G", Key::Group),
    ("L", Key::Currency),
    ("MI", Key::Minus),
    ("PL", Key::Plus),
    ("PR", Key::Brackets),
    ("RN", Key::Roman(Ordinal::Upper)),
    ("SG", Key::PlusMinus),
    ("SP", Key::Ignored),
    ("S", Key::Sign),
    ("TH", Key::Ordinal(Ordinal::Upper)),
    ("V", Key::Multiply),
    ("b", Key::Blank),
    ("c", Key::Ignored),
    ("d", Key::Point),
    ("eeee", Key::Exponent),
    ("fm", Key::Fill),
    ("g", Key::Group),
    ("l", Key::Currency),
    ("mi", Key::Minus),
    ("pl", Key::Plus),
    ("pr", Key::Brackets),
    ("rn", Key::Roman(Ordinal::Lower)),
    ("sg", Key::PlusMinus),
    ("sp", Key::Ignored),
    ("s", Key::Sign),
    ("th", Key::Ordinal(Ordinal::Lower)),
    ("v", Key::Multiply),
];

/// A part of a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Node {
    Key(Key),
    Literal(char),
}

/// Where the sign of `S` is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum SignPlace {
    #[default]
    None,
    Before,
    After,
}

/// What the keywords of a picture say together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Shape {
    /// Digits before the decimal point.
    pub(super) before: usize,
    /// Digits after it.
    pub(super) after: usize,
    /// Digits after `V`.
    pub(super) multiplied: usize,
    /// Digits before the first `0`, and one.
    pub(super) zero_start: usize,
    /// Digits up to the last `0`.
    pub(super) zero_end: usize,
    /// Digits before `S`.
    pub(super) before_sign: usize,
    pub(super) sign: SignPlace,
    pub(super) has_point: bool,
    pub(super) has_zero: bool,
    pub(super) has_blank: bool,
    pub(super) fill: bool,
    pub(super) has_sign: bool,
    pub(super) brackets: bool,
    pub(super) minus: bool,
    pub(super) plus: bool,
    pub(super) roman: bool,
    pub(super) multiplies: bool,
    pub(super) exponent: bool,
}

fn syntax(message: &str) -> SqlError {
    SqlError::new(SqlState::SYNTAX_ERROR, message)
}

impl Shape {
    /// Adds a keyword.
    ///
    /// # Errors
    /// 42601: the keyword can't be used after those before it.
    fn add(&mut self, key: Key) -> Result<(), SqlError> {
        if self.exponent && key != Key::Exponent {
            return Err(syntax("\"EEEE\" must be the last pattern used"));
        }
        match key {
            Key::Nine => self.add_nine()?,
            Key::Zero => self.add_zero()?,
            Key::Blank => {
                self.has_blank |= self.before == 0 && self.after == 0 && !self.has_zero;
            }
            Key::Point => {
                if self.has_point {
                    return Err(syntax("multiple decimal points"));
                }
                if self.multiplies {
                    return Err(syntax("cannot use \"V\" and decimal point together"));
                }
                self.has_point = true;
            }
            Key::Multiply => {
                if self.has_point {
                    return Err(syntax("cannot use \"V\" and decimal point together"));
                }
                self.multiplies = true;
            }
            Key::Fill => self.fill = true,
            Key::Roman(_) => self.roman = true,
            Key::Exponent => self.add_exponent()?,
            Key::Sign | Key::Minus | Key::Plus | Key::PlusMinus | Key::Brackets => {
                self.add_sign(key)?;
            }
            Key::Comma | Key::Ignored | Key::Group | Key::Currency | Key::Ordinal(_) => {}
        }
        Ok(())
    }

    fn add_nine(&mut self) -> Result<(), SqlError> {
        if self.brackets {
            return Err(syntax("\"9\" must be ahead of \"PR\""));
        }
        if self.multiplies {
            self.multiplied += 1;
        } else if self.has_point {
            self.after += 1;
        } else {
            self.before += 1;
        }
        Ok(())
    }

    fn add_zero(&mut self) -> Result<(), SqlError> {
        if self.brackets {
            return Err(syntax("\"0\" must be ahead of \"PR\""));
        }
        if !self.has_zero && !self.has_point {
            self.has_zero = true;
            self.zero_start = self.before + 1;
        }
        if self.has_point {
            self.after += 1;
        } else {
            self.before += 1;
        }
        self.zero_end = self.before + self.after;
        Ok(())
    }

    fn add_exponent(&mut self) -> Result<(), SqlError> {
        if self.exponent {
            return Err(syntax("cannot use \"EEEE\" twice"));
        }
        let others = [
            self.has_blank,
            self.fill,
            self.has_sign,
            self.brackets,
            self.minus,
            self.plus,
            self.roman,
            self.multiplies,
        ];
        if others.contains(&true) {
            let detail =
                "\"EEEE\" may only be used together with digit and decimal point patterns.";
            let what = "\"EEEE\" is incompatible with other formats";
            return Err(syntax(what).with_detail(detail));
        }
        self.exponent = true;
        Ok(())
    }

    fn add_sign(&mut self, key: Key) -> Result<(), SqlError> {
        let with_sign =
            |name: &str| Err(syntax(&format!("cannot use \"S\" and \"{name}\" together")));
        match key {
            Key::Minus if self.has_sign => return with_sign("MI"),
            Key::Plus if self.has_sign => return with_sign("PL"),
            Key::PlusMinus if self.has_sign => return with_sign("SG"),
            Key::Minus => self.minus = true,
            Key::Plus => self.plus = true,
            Key::PlusMinus => (self.minus, self.plus) = (true, true),
            Key::Brackets if self.has_sign || self.plus || self.minus => {
                let what = "cannot use \"PR\" and \"S\"/\"PL\"/\"MI\"/\"SG\" together";
                return Err(syntax(what));
            }
            Key::Brackets => self.brackets = true,
            _ if self.has_sign => return Err(syntax("cannot use \"S\" twice")),
            _ if self.plus || self.minus || self.brackets => {
                let what = "cannot use \"S\" and \"PL\"/\"MI\"/\"SG\"/\"PR\" together";
                return Err(syntax(what));
            }
            _ => {
                self.has_sign = true;
                self.sign = if self.has_point { SignPlace::After } else { SignPlace::Before };
                if !self.has_point {
                    self.before_sign = self.before;
                }
            }
        }
        Ok(())
    }
}

/// A picture that was read.
#[derive(Debug, Clone, Default)]
pub(super) struct Picture {
    pub(super) nodes: Vec<Node>,
    pub(super) shape: Shape,
}

impl Picture {
    /// Reads a picture.
    ///
    /// # Errors
    /// 42601: keywords can't be used together.
    pub(super) fn parse(picture: &str) -> Result<Self, SqlError> {
        let mut result = Self::default();
        let mut rest = picture;
        while !rest.is_empty() {
            let found = KEYWORDS.iter().find(|(name, _)| rest.starts_with(name));
            if let Some((name, key)) = found {
                result.shape.add(*key)?;
                result.nodes.push(Node::Key(*key));
                rest = rest.get(name.len()..).unwrap_or_default();
                continue;
            }
            rest = literal(rest, &mut result.nodes);
        }
        Ok(result)
    }
}

/// Reads one character, or a text in double quotes, and returns what is left.
fn literal<'a>(rest: &'a str, nodes: &mut Vec<Node>) -> &'a str {
    let Some(quoted) = rest.strip_prefix('"') else {
        let rest = if rest.starts_with("\\\"") { rest.get(1..).unwrap_or_default() } else { rest };
        let mut chars = rest.chars();
        nodes.extend(chars.next().map(Node::Literal));
        return chars.as_str();
    };
    let mut chars = quoted.chars();
    while let Some(mut c) = chars.next() {
        if c == '"' {
            break;
        }
        if c == '\\' {
            c = chars.next().unwrap_or(c);
        }
        nodes.push(Node::Literal(c));
    }
    chars.as_str()
}
