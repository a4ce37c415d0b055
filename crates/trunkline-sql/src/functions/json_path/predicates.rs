//! Predicates of paths. What can't be compared, and what fails in an operand, is unknown.

use std::cmp::Ordering;

use trunkline_format::text_input::{PathChain, PathItem, PathOperator};

use super::failure::Failure;
use super::value::{Logical, Node};
use super::walk::{Walk, with_room};
use crate::error::SqlError;
use crate::functions::json::container::Kind;
use crate::functions::regex::{Flags, matches};

impl<'a> Walk<'a, '_> {
    /// The value of a chain that is a predicate.
    pub(super) fn logical_of(
        &mut self,
        chain: &PathChain,
        node: &Node<'a>,
    ) -> Result<Logical, SqlError> {
        match chain.as_slice() {
            // A chain of operators nests as deep as it is long.
            [item] => with_room(|| self.logical(item, node)),
            _ => Err(SqlError::internal("a predicate is one item")),
        }
    }

    /// The value of a predicate.
    pub(super) fn logical(
        &mut self,
        item: &PathItem,
        node: &Node<'a>,
    ) -> Result<Logical, SqlError> {
        use PathOperator as O;
        match item {
            PathItem::Binary(O::And, left, right) => {
                let left = self.logical_of(left, node)?;
                if left == Logical::False {
                    return Ok(left);
                }
                let right = self.logical_of(right, node)?;
                Ok(if right == Logical::True { left } else { right })
            }
            PathItem::Binary(O::Or, left, right) => {
                let left = self.logical_of(left, node)?;
                if left == Logical::True {
                    return Ok(left);
                }
                let right = self.logical_of(right, node)?;
                Ok(if right == Logical::False { left } else { right })
            }
            PathItem::Unary(O::Not, operand) => Ok(match self.logical_of(operand, node)? {
                Logical::True => Logical::False,
                Logical::False => Logical::True,
                Logical::Unknown => Logical::Unknown,
            }),
            PathItem::Unary(O::IsUnknown, operand) => {
                Ok((self.logical_of(operand, node)? == Logical::Unknown).into())
            }
            PathItem::Unary(O::Exists, operand) => self.exists(operand, node),
            PathItem::Binary(O::StartsWith, left, right) => {
                self.compared(left, Some(right), node, false, |_, left, right| {
                    let (Some(text), Some(start)) = (left.text(), right.text()) else {
                        return Ok(Logical::Unknown);
                    };
                    Ok(text.starts_with(&*start).into())
                })
            }
            PathItem::Binary(operator, left, right) => {
                let operator = *operator;
                self.compared(left, Some(right), node, true, |_, left, right| {
                    compare(operator, left, right)
                })
            }
            PathItem::LikeRegex(operand, pattern, bits) => {
                let flags = regex_flags(*bits)?;
                self.compared(operand, None, node, false, |walk, left, _| {
                    let Some(text) = left.text() else { return Ok(Logical::Unknown) };
                    let regex = walk.regexes.get(pattern, flags)?;
                    Ok((!matches(regex, &text, false)?.is_empty()).into())
                })
            }
            _ => Err(SqlError::internal("a value as a predicate")),
        }
    }

    fn exists(&mut self, operand: &PathChain, node: &Node<'a>) -> Result<Logical, SqlError> {
        let mut values = Vec::new();
        // In strict mode, all values are needed to know that there is no error.
        let found = if self.lax { None } else { Some(&mut values) };
        match self.chain(operand, node, found) {
            Ok(has_result) => Ok(has_result.into()),
            Err(Failure::Path(_)) => Ok(Logical::Unknown),
            Err(Failure::Statement(error)) => Err(error),
        }
    }

    /// Compares each pair of values of two operands. In lax mode, one pair that is true is enough; in
    /// strict mode, one that is unknown.
    fn compared(
        &mut self,
        left: &PathChain,
        right: Option<&PathChain>,
        node: &Node<'a>,
        unwrap_right: bool,
        test: impl Fn(&mut Self, &Node<'a>, &Node<'a>) -> Result<Logical, SqlError>,
    ) -> Result<Logical, SqlError> {
        let lefts = match self.operand(left, node, true) {
            Ok(values) => values,
            Err(Failure::Path(_)) => return Ok(Logical::Unknown),
            Err(Failure::Statement(error)) => return Err(error),
        };
        let rights = match right {
            None => vec![Node::null()],
            Some(right) => match self.operand(right, node, unwrap_right) {
                Ok(values) => values,
                Err(Failure::Path(_)) => return Ok(Logical::Unknown),
                Err(Failure::Statement(error)) => return Err(error),
            },
        };
        let (mut is_found, mut is_unknown) = (false, false);
        for left in &lefts {
            for right in &rights {
                match test(self, left, right)? {
                    Logical::Unknown if !self.lax => return Ok(Logical::Unknown),
                    Logical::Unknown => is_unknown = true,
                    Logical::True if self.lax => return Ok(Logical::True),
                    Logical::True => is_found = true,
                    Logical::False => {}
                }
            }
        }
        Ok(match (is_found, is_unknown) {
            (true, _) => Logical::True,
            (false, true) => Logical::Unknown,
            (false, false) => Logical::False,
        })
    }
}

/// The options of a regular expression, from the bits of its flags `ismxq`.
fn regex_flags(bits: u32) -> Result<Flags, SqlError> {
    let has = |letter: char| "ismxq".find(letter).is_some_and(|at| bits >> at & 1 == 1);
    if has('x') && !has('q') {
        let message = "XQuery \"x\" flag (expanded regular expressions) is not implemented";
        return Err(SqlError::unsupported(message));
    }
    let mut options = String::new();
    options.push(match (has('s'), has('m')) {
        (false, false) => 'p',
        (false, true) => 'n',
        (true, false) => 's',
        (true, true) => 'w',
    });
    if has('i') {
        options.push('i');
    }
    if has('q') {
        options = options.get(1..).unwrap_or_default().to_owned() + "q";
    }
    Flags::parse(&options)
}

/// Compares two values. Only scalars of one kind can be compared, and a null with anything.
fn compare(operator: PathOperator, left: &Node<'_>, right: &Node<'_>) -> Result<Logical, SqlError> {
    let is_bool = |kind: Kind| matches!(kind, Kind::True | Kind::False);
    let order = match (left.kind, right.kind) {
        (Kind::Null, Kind::Null) => Ordering::Equal,
        (Kind::Null, _) | (_, Kind::Null) => {
            return Ok((operator == PathOperator::NotEqual).into());
        }
        (a, b) if is_bool(a) && is_bool(b) => (a == Kind::True).cmp(&(b == Kind::True)),
        (Kind::Number, Kind::Number) => match (left.to_numeric()?, right.to_numeric()?) {
            (Some(left), Some(right)) => left.compare(&right),
            _ => return Ok(Logical::Unknown),
        },
        // The order of UTF-8 is that of code points.
        (Kind::String, Kind::String) => left.bytes.cmp(&right.bytes),
        _ => return Ok(Logical::Unknown),
    };
    Ok(match operator {
        PathOperator::Equal => order.is_eq(),
        PathOperator::NotEqual => order.is_ne(),
        PathOperator::Less => order.is_lt(),
        PathOperator::Greater => order.is_gt(),
        PathOperator::LessOrEqual => order.is_le(),
        PathOperator::GreaterOrEqual => order.is_ge(),
        _ => return Err(SqlError::internal("an operator that compares nothing")),
    }
    .into())
}
