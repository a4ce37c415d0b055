//! The items of a path that lead from values to values.

use trunkline_format::text_input::{PathChain, PathItem, PathOperator};

use super::failure::{
    ARRAY_NOT_FOUND, Failure, INVALID_SUBSCRIPT, MEMBER_NOT_FOUND, OBJECT_NOT_FOUND, failed,
};
use super::value::{Logical, Node};
use crate::error::{SqlError, SqlState};
use crate::functions::call::Call;
use crate::functions::json::container::Kind;
use crate::functions::regex::Compiler;

/// The execution of a path.
pub(super) struct Walk<'a, 'c> {
    pub(super) call: &'c Call<'c>,
    pub(super) regexes: Compiler,
    pub(super) lax: bool,
    /// `$`.
    pub(super) root: Node<'a>,
    /// The variables, an object.
    pub(super) variables: Option<Node<'a>>,
    /// `@`.
    pub(super) current: Node<'a>,
    /// The size of the innermost array that is subscripted.
    pub(super) array_size: Option<usize>,
    /// Members that don't exist are no errors.
    pub(super) ignores_structure: bool,
    /// What the ids of `keyvalue()` count from: an address, and a number.
    pub(super) base: (usize, i64),
    /// The number of objects that `keyvalue()` has made.
    pub(super) made: i64,
}

/// Where results are collected; `None` if only their existence counts.
pub(super) type Results<'f, 'a> = Option<&'f mut Vec<Node<'a>>>;

/// Whether there is a result.
type Walked = Result<bool, Failure>;

/// The levels that `**` covers.
#[derive(Clone, Copy)]
struct Levels {
    first: u32,
    last: u32,
}

impl<'a> Walk<'a, '_> {
    /// Executes a chain of items on a value.
    pub(super) fn chain(
        &mut self,
        items: &[PathItem],
        node: &Node<'a>,
        found: Results<'_, 'a>,
    ) -> Walked {
        let unwrap = self.lax;
        self.items(items, node, found, unwrap)
    }

    /// Executes items on a value, or on its elements if `unwrap` and the first item can't take an array.
    pub(super) fn items(
        &mut self,
        items: &[PathItem],
        node: &Node<'a>,
        mut found: Results<'_, 'a>,
        unwrap: bool,
    ) -> Walked {
        let Some((item, next)) = items.split_first() else {
            if let Some(found) = &mut found {
                found.push(node.clone());
            }
            return Ok(true);
        };
        with_room(|| self.item(item, next, items, node, found, unwrap))
    }

    fn item(
        &mut self,
        item: &PathItem,
        next: &[PathItem],
        items: &[PathItem],
        node: &Node<'a>,
        found: Results<'_, 'a>,
        unwrap: bool,
    ) -> Walked {
        if item.is_predicate() {
            if next.is_empty() && found.is_none() {
                // It has a value in any case.
                self.logical(item, node)?;
                return Ok(true);
            }
            let value = match self.logical(item, node)? {
                Logical::True => Node::bool(true),
                Logical::False => Node::bool(false),
                Logical::Unknown => Node::null(),
            };
            return self.chain(next, &value, found);
        }
        match item {
            PathItem::Null => self.chain(next, &Node::null(), found),
            PathItem::Bool(value) => self.chain(next, &Node::bool(*value), found),
            PathItem::String(text) => self.chain(next, &Node::string(text), found),
            PathItem::Number(payload) => self.chain(next, &Node::number(payload), found),
            PathItem::Variable(name) => self.variable(name, next, found),
            PathItem::Root => {
                let (root, base) = (self.root.clone(), self.base);
                self.base = (root.bytes.as_ptr() as usize, 0);
                let walked = self.chain(next, &root, found);
                self.base = base;
                walked
            }
            PathItem::Current => {
                let current = self.current.clone();
                self.chain(next, &current, found)
            }
            PathItem::Last => {
                let size = self.array_size.ok_or_else(|| {
                    SqlError::internal("evaluating jsonpath LAST outside of array subscript")
                })?;
                let last = Node::numeric(&crate::numeric::Numeric::from(size as i64 - 1))?;
                self.chain(next, &last, found)
            }
            PathItem::Key(key) => self.key(key, next, items, node, found, unwrap),
            PathItem::AnyKey => self.any_key(next, items, node, found, unwrap),
            PathItem::AnyArray => self.any_array(next, node, found),
            PathItem::Subscripts(list) => self.subscripts(list, next, node, found),
            PathItem::Any(first, last) => {
                self.any(Levels { first: *first, last: *last }, next, node, found)
            }
            PathItem::Unary(PathOperator::Filter, _) if unwrap && node.is_array()? => {
                self.unwrapped(items, node, found)
            }
            PathItem::Unary(PathOperator::Filter, predicate) => {
                let around = std::mem::replace(&mut self.current, node.clone());
                let logical = self.logical_of(predicate, node);
                self.current = around;
                match logical? {
                    Logical::True => self.chain(next, node, found),
                    _ => Ok(false),
                }
            }
            PathItem::Unary(operator, operand) => {
                self.signed(*operator, operand, next, node, found)
            }
            PathItem::Binary(operator, left, right) => {
                self.arithmetic(*operator, (left, right), next, node, found)
            }
            PathItem::Method(operator, arguments) => {
                self.method((*operator, arguments), next, items, node, found, unwrap)
            }
            PathItem::LikeRegex(..) => Err(SqlError::internal("a predicate as a value").into()),
        }
    }

    /// `.*`.
    fn any_key(
        &mut self,
        next: &[PathItem],
        items: &[PathItem],
        node: &Node<'a>,
        found: Results<'_, 'a>,
        unwrap: bool,
    ) -> Walked {
        if node.is_object()? {
            return self.parts(next, node, found, Levels { first: 1, last: 1 }, false, true);
        }
        if unwrap && node.is_array()? {
            return self.unwrapped(items, node, found);
        }
        let what = "jsonpath wildcard member accessor can only be applied to an object";
        self.structural(OBJECT_NOT_FOUND, what)
    }

    /// `[*]`.
    fn any_array(&mut self, next: &[PathItem], node: &Node<'a>, found: Results<'_, 'a>) -> Walked {
        if node.is_array()? {
            return self.parts(next, node, found, Levels { first: 1, last: 1 }, false, true);
        }
        if self.lax {
            return self.chain(next, node, found);
        }
        let what = "jsonpath wildcard array accessor can only be applied to an array";
        self.structural(ARRAY_NOT_FOUND, what)
    }

    /// The items on each element of an array instead of the array itself.
    pub(super) fn unwrapped(
        &mut self,
        items: &[PathItem],
        node: &Node<'a>,
        found: Results<'_, 'a>,
    ) -> Walked {
        self.parts(items, node, found, Levels { first: 1, last: 1 }, false, false)
    }

    /// No result, or an error if the structure must be as the path says.
    pub(super) fn structural(&self, code: SqlState, message: &str) -> Walked {
        if self.ignores_structure { Ok(false) } else { Err(failed(code, message)) }
    }

    fn key(
        &mut self,
        key: &str,
        next: &[PathItem],
        items: &[PathItem],
        node: &Node<'a>,
        found: Results<'_, 'a>,
        unwrap: bool,
    ) -> Walked {
        if node.is_object()? {
            return match node.member(key)? {
                Some(member) => self.chain(next, &member, found),
                None => {
                    let what = format!("JSON object does not contain key \"{key}\"");
                    self.structural(MEMBER_NOT_FOUND, &what)
                }
            };
        }
        if unwrap && node.is_array()? {
            return self.unwrapped(items, node, found);
        }
        let what = "jsonpath member accessor can only be applied to an object";
        self.structural(MEMBER_NOT_FOUND, what)
    }

    fn variable(&mut self, name: &str, next: &[PathItem], found: Results<'_, 'a>) -> Walked {
        let value = match &self.variables {
            Some(variables) => variables.member(name)?,
            None => None,
        };
        let value = value.ok_or_else(|| {
            let message = format!("could not find jsonpath variable \"{name}\"");
            SqlError::new(SqlState::UNDEFINED_OBJECT, message)
        })?;
        let place =
            self.variables.as_ref().map_or(0, |variables| variables.bytes.as_ptr() as usize);
        let base = std::mem::replace(&mut self.base, (place, 1));
        let walked = self.chain(next, &value, found);
        self.base = base;
        walked
    }

    /// Executes items on the parts of a value, and on parts of those down to the last level. If
    /// `is_loose`, structural errors are ignored. If `unwraps`, lax mode unwraps the parts.
    fn parts(
        &mut self,
        items: &[PathItem],
        node: &Node<'a>,
        mut found: Results<'_, 'a>,
        levels: Levels,
        is_loose: bool,
        unwraps: bool,
    ) -> Walked {
        self.levels(items, node, &mut found, (1, levels), is_loose, unwraps)
    }

    fn levels(
        &mut self,
        items: &[PathItem],
        node: &Node<'a>,
        found: &mut Results<'_, 'a>,
        (level, levels): (u32, Levels),
        is_loose: bool,
        unwraps: bool,
    ) -> Walked {
        if level > levels.last {
            return Ok(false);
        }
        let mut has_result = false;
        for part in node.parts()? {
            let is_leaf =
                levels.first == u32::MAX && levels.last == u32::MAX && part.kind != Kind::Container;
            if level >= levels.first || is_leaf {
                let ignores = self.ignores_structure;
                self.ignores_structure |= is_loose;
                let unwrap = unwraps && self.lax;
                let walked = self.items(items, &part, found.as_deref_mut(), unwrap);
                self.ignores_structure = ignores;
                has_result |= walked?;
                if has_result && found.is_none() {
                    return Ok(true);
                }
            }
            if level < levels.last && part.kind == Kind::Container {
                let inside = (level + 1, levels);
                has_result |=
                    with_room(|| self.levels(items, &part, found, inside, is_loose, unwraps))?;
                if has_result && found.is_none() {
                    return Ok(true);
                }
            }
        }
        Ok(has_result)
    }

    fn any(
        &mut self,
        levels: Levels,
        next: &[PathItem],
        node: &Node<'a>,
        mut found: Results<'_, 'a>,
    ) -> Walked {
        let mut has_result = false;
        if levels.first == 0 {
            let ignores = std::mem::replace(&mut self.ignores_structure, true);
            let walked = self.chain(next, node, found.as_deref_mut());
            self.ignores_structure = ignores;
            has_result = walked?;
            if has_result && found.is_none() {
                return Ok(true);
            }
        }
        has_result |= self.parts(next, node, found, levels, true, true)?;
        Ok(has_result)
    }

    fn subscripts(
        &mut self,
        list: &[(PathChain, Option<PathChain>)],
        next: &[PathItem],
        node: &Node<'a>,
        mut found: Results<'_, 'a>,
    ) -> Walked {
        let is_array = node.is_array()?;
        if !is_array && !self.lax {
            let what = "jsonpath array accessor can only be applied to an array";
            return self.structural(ARRAY_NOT_FOUND, what);
        }
        // In lax mode, anything else is an array of one element.
        let elements = if is_array { node.parts()? } else { vec![node.clone()] };
        let around = self.array_size.replace(elements.len());
        let mut walk = || {
            let mut has_result = false;
            for (from, to) in list {
                let from = self.index(from, node)?;
                let to = match to {
                    Some(to) => self.index(to, node)?,
                    None => from,
                };
                let size = elements.len() as i64;
                if !self.ignores_structure && (from < 0 || from > to || to >= size) {
                    let what = "jsonpath array subscript is out of bounds";
                    return Err(failed(INVALID_SUBSCRIPT, what));
                }
                for at in from.max(0)..=to.min(size - 1) {
                    let Some(element) = elements.get(at as usize) else { break };
                    if next.is_empty() && found.is_none() {
                        return Ok(true);
                    }
                    has_result |= self.chain(next, element, found.as_deref_mut())?;
                    if has_result && found.is_none() {
                        return Ok(true);
                    }
                }
            }
            Ok(has_result)
        };
        let walked = walk();
        self.array_size = around;
        walked
    }

    /// The value of a subscript, cut off after the decimal point.
    fn index(&mut self, subscript: &PathChain, node: &Node<'a>) -> Result<i64, Failure> {
        let mut values = Vec::new();
        self.chain(subscript, node, Some(&mut values))?;
        let number = match values.as_slice() {
            [only] => only.to_numeric()?,
            _ => None,
        };
        let number = number.ok_or_else(|| {
            let what = "jsonpath array subscript is not a single numeric value";
            failed(INVALID_SUBSCRIPT, what)
        })?;
        let index = number.truncate(0).to_i32();
        index.map(i64::from).map_err(|_| {
            let what = "jsonpath array subscript is out of integer range";
            failed(INVALID_SUBSCRIPT, what)
        })
    }

    /// The values of an operand, in lax mode with arrays unwrapped.
    pub(super) fn operand(
        &mut self,
        operand: &PathChain,
        node: &Node<'a>,
        unwrap: bool,
    ) -> Result<Vec<Node<'a>>, Failure> {
        let mut values = Vec::new();
        self.chain(operand, node, Some(&mut values))?;
        if !unwrap || !self.lax {
            return Ok(values);
        }
        let mut unwrapped = Vec::with_capacity(values.len());
        for value in values {
            match value.is_array()? {
                true => unwrapped.extend(value.parts()?),
                false => unwrapped.push(value),
            }
        }
        Ok(unwrapped)
    }
}

/// Paths and values may be nested deeply.
pub(super) fn with_room<T>(walk: impl FnOnce() -> T) -> T {
    stacker::maybe_grow(64 << 10, 1 << 20, walk)
}
