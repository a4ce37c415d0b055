//! Parses a pattern into a tree of parts that are matched one after the other.
//!
//! PostgreSQL's regular expressions prefer the longest match from the left, or the shortest if the
//! first quantifier that has a preference is one such as `*?`. What a group captures depends on how
//! the pattern is divided. A run of simple parts, with no group and only one preference, is matched as
//! a whole; around it, each group is matched on its own, from left to right. For example:
//!
//! ```text
//!   a*b*(c|d)e+    concatenation ── plain: a*b*
//!                                └─ concatenation ── group 1: c|d
//!                                                 └─ plain: e+
//! ```
//!
//! Here, `a*b*` takes as much as possible in total. Mirrors the subexpression tree of PostgreSQL's
//! `regex/regcomp.c`.

use regex_syntax::hir::{Class, ClassUnicode, Hir, Repetition};

use super::flags::{BAD_BACKREFERENCE, BAD_QUANTIFIER, Flags, invalid};
use super::lexer::{Lexer, Quantifier, Token};
use crate::error::SqlError;

/// A part of a pattern.
#[derive(Debug, Clone)]
pub(super) struct Part {
    /// What it matches.
    pub(super) language: Hir,
    /// How its own parts are matched.
    pub(super) kind: Kind,
    /// The group that captures it, from 1; 0 if none does.
    pub(super) group: u32,
    pub(super) preference: Preference,
    /// Parts of it have both preferences.
    is_mixed: bool,
    /// It contains a group.
    captures: bool,
}

/// How a part is divided.
#[derive(Debug, Clone)]
pub(super) enum Kind {
    /// Not at all.
    Plain,
    /// The first part, then the second.
    Concatenation(Box<[Part; 2]>),
    /// The first of these that matches.
    Alternatives(Vec<Part>),
    /// A part several times: at least, and at most.
    Iteration(Box<Part>, u32, Option<u32>),
    /// The same part, captured by another group.
    Same(Box<Part>),
}

/// How long a match is preferred.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Preference {
    #[default]
    None,
    Longest,
    Shortest,
}

impl Preference {
    fn of(quantifier: Quantifier) -> Self {
        match quantifier.greedy {
            None => Self::None,
            Some(true) => Self::Longest,
            Some(false) => Self::Shortest,
        }
    }

    /// This preference or, if there is none, the other one.
    fn or(self, other: Self) -> Self {
        if self == Self::None { other } else { self }
    }

    /// Whether the two contradict each other.
    fn contradicts(self, other: Self) -> bool {
        self.or(other) != other.or(self)
    }
}

impl Part {
    fn plain(language: Hir, preference: Preference) -> Self {
        let (kind, is_mixed, captures) = (Kind::Plain, false, false);
        Self { language, kind, group: 0, preference, is_mixed, captures }
    }

    fn is_divided(&self) -> bool {
        self.is_mixed || self.captures
    }

    /// This part, then another.
    fn then(self, other: Self) -> Self {
        let language = Hir::concat(vec![self.language.clone(), other.language.clone()]);
        let is_mixed = self.mixes_with(other.preference, other.is_mixed);
        let (preference, captures) =
            (self.preference.or(other.preference), self.captures || other.captures);
        let kind = Kind::Concatenation(Box::new([self, other]));
        Self { language, kind, group: 0, preference, is_mixed, captures }
    }

    fn mixes_with(&self, preference: Preference, is_mixed: bool) -> bool {
        self.is_mixed || is_mixed || self.preference.contradicts(preference)
    }
}

/// A parsed pattern.
#[derive(Debug)]
pub(super) struct Parsed {
    pub(super) root: Part,
    /// The number of groups.
    pub(super) groups: u32,
    /// See [`Lexer::needs_ascii_text`].
    pub(super) needs_ascii_text: bool,
    /// See [`Lexer::needs_other_cases`].
    pub(super) needs_other_cases: bool,
}

/// Parses a pattern.
pub(super) fn parse(pattern: &str, flags: Flags) -> Result<Parsed, SqlError> {
    let mut lexer = Lexer::new(pattern, flags)?;
    let next = lexer.next()?;
    let mut parser = Parser { lexer, next, depth: 0, parts: 0, closed: Vec::new() };
    let root = parser.alternatives(false)?;
    let Parser { lexer, .. } = parser;
    let (groups, needs_ascii_text) = (lexer.groups, lexer.needs_ascii_text);
    Ok(Parsed { root, groups, needs_ascii_text, needs_other_cases: lexer.needs_other_cases })
}

/// The deepest nesting of parentheses.
const DEPTH_MAX: u32 = 100;
/// The most parts that are matched on their own, which are parsed and matched recursively.
const PARTS_MAX: u32 = 200;

fn too_complex() -> SqlError {
    SqlError::unsupported(
        "a regular expression with that many groups is not supported by trunkline",
    )
}

struct Parser<'a> {
    lexer: Lexer<'a>,
    next: Token,
    depth: u32,
    parts: u32,
    /// The groups that have been closed.
    closed: Vec<u32>,
}

impl Parser<'_> {
    fn advance(&mut self) -> Result<Token, SqlError> {
        let next = self.lexer.next()?;
        Ok(std::mem::replace(&mut self.next, next))
    }

    /// Whether the next token ends a branch.
    fn ends_branch(&self) -> bool {
        matches!(self.next, Token::Alternative | Token::Close | Token::End)
    }

    /// Branches separated by `|`, up to a parenthesis or to the end.
    fn alternatives(&mut self, in_parentheses: bool) -> Result<Part, SqlError> {
        let mut branches = vec![self.branch()?];
        while self.next == Token::Alternative {
            self.advance()?;
            branches.push(self.branch()?);
        }
        if (self.next == Token::Close) != in_parentheses {
            return Err(self.lexer.unbalanced());
        }
        if branches.len() == 1 {
            return branches.pop().ok_or_else(|| SqlError::internal("a pattern without branches"));
        }
        let language =
            Hir::alternation(branches.iter().map(|part| part.language.clone()).collect());
        let mut whole = Part::plain(language, Preference::Longest);
        for branch in &branches {
            whole.is_mixed = whole.mixes_with(branch.preference, branch.is_mixed);
            whole.captures |= branch.captures;
        }
        if whole.is_divided() {
            whole.kind = Kind::Alternatives(branches);
        }
        Ok(whole)
    }

    /// Parts one after the other.
    fn branch(&mut self) -> Result<Part, SqlError> {
        let mut before = Part::plain(Hir::empty(), Preference::None);
        // Whether anything at all is before, even something empty.
        let mut is_first = true;
        while !self.ends_branch() {
            let (atom, quantifier, is_group) = self.quantified()?;
            if quantifier.is_some_and(|found| found.max == Some(0)) {
                is_first = false;
                continue;
            }
            let wanted = quantifier.map_or(Preference::None, Preference::of);
            let is_mixed = before.mixes_with(wanted, false)
                || before.mixes_with(atom.preference, atom.is_mixed)
                || wanted.contradicts(atom.preference);
            if !is_group && !is_mixed && !atom.captures {
                let repeated = repeat(atom.language, quantifier);
                let preference = before.preference.or(wanted).or(atom.preference);
                let language = Hir::concat(vec![before.language, repeated]);
                before = Part::plain(language, preference);
                is_first = false;
                continue;
            }
            return self.divided(before, is_first, quantify(atom, quantifier));
        }
        Ok(before)
    }

    /// A branch that consists of a plain part, a part that must be matched on its own, and the rest.
    fn divided(&mut self, before: Part, is_first: bool, atom: Part) -> Result<Part, SqlError> {
        if self.ends_branch() {
            return Ok(if is_first { atom } else { before.then(atom) });
        }
        self.parts += 1;
        if self.parts > PARTS_MAX {
            return Err(too_complex());
        }
        let rest = self.branch()?;
        if is_first {
            return Ok(atom.then(rest));
        }
        let is_plain = matches!((&atom.kind, &rest.kind), (Kind::Plain, Kind::Plain));
        let mut after = atom.then(rest);
        if is_plain && !after.is_divided() {
            after.kind = Kind::Plain;
        }
        Ok(before.then(after))
    }

    /// One atom and its quantifier, and whether it is a group that captures.
    fn quantified(&mut self) -> Result<(Part, Option<Quantifier>, bool), SqlError> {
        let (atom, is_group) = match self.advance()? {
            Token::Class(class) => (Part::plain(of_class(class), Preference::None), false),
            Token::Place(look) => {
                // A place can't be repeated: a quantifier after it has nothing to repeat.
                return Ok((Part::plain(Hir::look(look), Preference::None), None, false));
            }
            Token::Open(captures) => (self.group(captures)?, captures),
            Token::BackReference(number) if self.closed.contains(&number) => {
                return Err(SqlError::unsupported(
                    "back references in regular expressions are not supported by trunkline",
                ));
            }
            Token::BackReference(_) => return Err(invalid(BAD_BACKREFERENCE)),
            Token::Quantifier(_) => return Err(invalid(BAD_QUANTIFIER)),
            Token::Close | Token::Alternative | Token::End => {
                return Err(SqlError::internal("the end of a branch in a branch"));
            }
        };
        let quantifier = match self.next {
            Token::Quantifier(found) => {
                self.advance()?;
                Some(found)
            }
            _ => None,
        };
        Ok((atom, quantifier, is_group))
    }

    /// What is in parentheses, and the parenthesis after it.
    fn group(&mut self, captures: bool) -> Result<Part, SqlError> {
        let number = self.lexer.groups + u32::from(captures);
        self.lexer.groups = number;
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(too_complex());
        }
        let inner = self.alternatives(true)?;
        self.depth -= 1;
        if captures {
            self.closed.push(number);
        }
        self.advance()?;
        if !captures {
            return Ok(inner);
        }
        let mut outer = inner;
        if outer.group != 0 {
            let (language, preference) = (outer.language.clone(), outer.preference);
            let is_mixed = outer.is_mixed;
            let kind = Kind::Same(Box::new(outer));
            outer = Part { language, kind, group: 0, preference, is_mixed, captures: true };
        }
        (outer.group, outer.captures) = (number, true);
        Ok(outer)
    }
}

fn of_class(class: ClassUnicode) -> Hir {
    Hir::class(Class::Unicode(class))
}

fn repeat(language: Hir, quantifier: Option<Quantifier>) -> Hir {
    let Some(Quantifier { min, max, .. }) = quantifier else { return language };
    Hir::repetition(Repetition { min, max, greedy: true, sub: Box::new(language) })
}

/// Repeats a part that is matched on its own.
fn quantify(atom: Part, quantifier: Option<Quantifier>) -> Part {
    let Some(found) = quantifier else { return atom };
    let wanted = Preference::of(found);
    let agrees = !wanted.contradicts(atom.preference) && !atom.is_mixed;
    if (found.min, found.max) == (1, Some(1)) && (wanted == Preference::None || agrees) {
        let preference = wanted.or(atom.preference);
        return Part { preference, ..atom };
    }
    let is_mixed = atom.mixes_with(wanted, false);
    let preference = wanted.or(atom.preference);
    if !atom.captures {
        let language = repeat(atom.language, Some(found));
        return Part { is_mixed, ..Part::plain(language, preference) };
    }
    if found.min > 0 {
        // Only what the last repetition captures counts, so the others are matched together.
        let max = found.max.map(|max| max - 1);
        let others = Quantifier { min: found.min - 1, max, greedy: found.greedy };
        let others = repeat(atom.language.clone(), Some(others));
        let mut whole = Part::plain(others, preference).then(atom);
        (whole.is_mixed, whole.preference) = (is_mixed, preference);
        return whole;
    }
    let language = repeat(atom.language.clone(), Some(found));
    let captures = atom.captures;
    let kind = Kind::Iteration(Box::new(atom), found.min, found.max);
    Part { language, kind, group: 0, preference, is_mixed, captures }
}
