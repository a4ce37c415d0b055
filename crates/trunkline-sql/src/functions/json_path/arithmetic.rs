//! Arithmetic in paths: `+ - * / %` of single numbers, and signs of any number of them.

use trunkline_format::text_input::{PathChain, PathItem, PathOperator};

use super::failure::{Failure, NUMBER_NOT_FOUND, SINGLETON_REQUIRED, failed};
use super::value::Node;
use super::walk::{Results, Walk};
use crate::numeric::Numeric;

fn symbol(operator: PathOperator) -> &'static str {
    match operator {
        PathOperator::Add | PathOperator::Plus => "+",
        PathOperator::Subtract | PathOperator::Minus => "-",
        PathOperator::Multiply => "*",
        PathOperator::Divide => "/",
        _ => "%",
    }
}

impl<'a> Walk<'a, '_> {
    /// An operator with two operands, each of which must be one number.
    pub(super) fn arithmetic(
        &mut self,
        operator: PathOperator,
        (left, right): (&PathChain, &PathChain),
        next: &[PathItem],
        node: &Node<'a>,
        found: Results<'_, 'a>,
    ) -> Result<bool, Failure> {
        let lefts = self.operand(left, node, true)?;
        let rights = self.operand(right, node, true)?;
        let single = |values: &[Node<'_>], side: &str| -> Result<Numeric, Failure> {
            let number = match values {
                [only] => only.to_numeric()?,
                _ => None,
            };
            number.ok_or_else(|| {
                let symbol = symbol(operator);
                let what = format!(
                    "{side} operand of jsonpath operator {symbol} is not a single numeric value"
                );
                failed(SINGLETON_REQUIRED, what)
            })
        };
        let (left, right) = (single(&lefts, "left")?, single(&rights, "right")?);
        let result = match operator {
            PathOperator::Add => Ok(left.add(&right)),
            PathOperator::Subtract => Ok(left.subtract(&right)),
            PathOperator::Multiply => Ok(left.multiply(&right)),
            PathOperator::Divide => left.divide(&right),
            _ => left.remainder(&right),
        };
        let result = result.and_then(|number| Node::numeric(&number)).map_err(Failure::Path)?;
        self.chain(next, &result, found)
    }

    /// A sign, which is applied to each value.
    pub(super) fn signed(
        &mut self,
        operator: PathOperator,
        operand: &PathChain,
        next: &[PathItem],
        node: &Node<'a>,
        mut found: Results<'_, 'a>,
    ) -> Result<bool, Failure> {
        let mut has_result = false;
        for value in self.operand(operand, node, true)? {
            let Some(number) = value.to_numeric()? else {
                if found.is_none() && next.is_empty() {
                    continue;
                }
                let symbol = symbol(operator);
                let what =
                    format!("operand of unary jsonpath operator {symbol} is not a numeric value");
                return Err(failed(NUMBER_NOT_FOUND, what));
            };
            if found.is_none() && next.is_empty() {
                return Ok(true);
            }
            let value = match operator {
                PathOperator::Minus => Node::numeric(&number.negate())?,
                _ => value,
            };
            has_result |= self.chain(next, &value, found.as_deref_mut())?;
            if has_result && found.is_none() {
                return Ok(true);
            }
        }
        Ok(has_result)
    }
}
