//! Options of a regular expression, and its errors.
//!
//! Options come from the operator (`~*`), from an argument (`regexp_replace(s, p, r, 'gi')`), and from
//! the pattern itself (`(?i)abc`).

use crate::error::{SqlError, SqlState};

/// How a pattern is read and matched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::functions) struct Flags {
    /// What syntax the pattern has.
    pub(super) syntax: Syntax,
    /// Letters match in both cases.
    pub(in crate::functions) ignore_case: bool,
    /// White space and comments in the pattern don't count.
    pub(super) expanded: bool,
    /// `.` and complemented brackets don't match a newline.
    pub(super) newline_stops: bool,
    /// `^` and `$` match at newlines, too.
    pub(super) newline_anchors: bool,
    /// All matches, not the first one only.
    pub(in crate::functions) global: bool,
}

/// The syntax of a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Syntax {
    /// POSIX basic, which is refused.
    Basic,
    /// POSIX extended.
    Extended,
    /// PostgreSQL's own, which extends the latter.
    Advanced,
    /// Every character stands for itself.
    Literal,
}

impl Flags {
    /// No options.
    pub(in crate::functions) const NONE: Self = Self {
        syntax: Syntax::Advanced,
        ignore_case: false,
        expanded: false,
        newline_stops: false,
        newline_anchors: false,
        global: false,
    };

    /// The options of an argument such as `gi`.
    pub(in crate::functions) fn parse(options: &str) -> Result<Self, SqlError> {
        let mut flags = Self::NONE;
        for letter in options.chars() {
            match letter {
                'g' => flags.global = true,
                // The server means extended syntax, but takes away too much, which leaves basic.
                'e' => flags.syntax = Syntax::Basic,
                _ if flags.set(letter) => {}
                _ => {
                    let message = format!("invalid regular expression option: \"{letter}\"");
                    return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message));
                }
            }
        }
        Ok(flags)
    }

    /// The same options for the first match only, which is how a pattern is compiled.
    pub(in crate::functions) fn once(self) -> Self {
        Self { global: false, ..self }
    }

    /// Sets the option with this letter. Returns false if there is none.
    pub(super) fn set(&mut self, letter: char) -> bool {
        let newlines = |flags: &mut Self, stops, anchors| {
            (flags.newline_stops, flags.newline_anchors) = (stops, anchors);
        };
        match letter {
            'b' => self.syntax = Syntax::Basic,
            'c' => self.ignore_case = false,
            'e' => self.syntax = Syntax::Extended,
            'i' => self.ignore_case = true,
            'm' | 'n' => newlines(self, true, true),
            'p' => newlines(self, true, false),
            'q' => self.syntax = Syntax::Literal,
            's' => newlines(self, false, false),
            't' => self.expanded = false,
            'w' => newlines(self, false, true),
            'x' => self.expanded = true,
            _ => return false,
        }
        true
    }
}

/// The error for a pattern that is not a regular expression.
pub(super) fn invalid(what: &str) -> SqlError {
    let message = format!("invalid regular expression: {what}");
    SqlError::new(SqlState::INVALID_REGULAR_EXPRESSION, message)
}

pub(super) const BAD_BRACES: &str = "braces {} not balanced";
pub(super) const BAD_CLASS: &str = "invalid character class";
pub(super) const BAD_COLLATING_ELEMENT: &str = "invalid collating element";
pub(super) const BAD_ESCAPE: &str = "invalid escape \\ sequence";
pub(super) const BAD_BACKREFERENCE: &str = "invalid backreference number";
pub(super) const BAD_BRACKETS: &str = "brackets [] not balanced";
pub(super) const BAD_PARENTHESES: &str = "parentheses () not balanced";
pub(super) const BAD_COUNT: &str = "invalid repetition count(s)";
pub(super) const BAD_RANGE: &str = "invalid character range";
pub(super) const BAD_QUANTIFIER: &str = "quantifier operand invalid";
pub(super) const BAD_OPTION: &str = "invalid embedded option";
pub(super) const TOO_COMPLEX: &str = "regular expression is too complex";
