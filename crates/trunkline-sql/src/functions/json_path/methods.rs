//! Methods of paths: `size()`, `type()`, `double()`, `keyvalue()` and so on.

use trunkline_format::Oid;
use trunkline_format::text_input::{InputOptions, PathChain, PathItem, PathOperator, read_text};
use trunkline_format::text_output::{Base, Type};

use super::failure::{ARRAY_NOT_FOUND, Failure, NON_NUMERIC, OBJECT_NOT_FOUND, failed};
use super::value::Node;
use super::walk::{Results, Walk};
use crate::error::{SqlError, SqlState};
use crate::functions::json::access::{text, type_name};
use crate::functions::json::container::{Kind, Value, object};
use crate::numeric::{Numeric, NumericTypmod};

/// How far the ids of objects with different bases are apart.
const BASE_DISTANCE: i64 = 10_000_000_000;

/// The name of a method.
fn name(operator: PathOperator) -> &'static str {
    use PathOperator as O;
    match operator {
        O::Type => "type",
        O::Size => "size",
        O::Abs => "abs",
        O::Floor => "floor",
        O::Ceiling => "ceiling",
        O::Double => "double",
        O::KeyValue => "keyvalue",
        O::Bigint => "bigint",
        O::Boolean => "boolean",
        O::Decimal => "decimal",
        O::Integer => "integer",
        O::Number => "number",
        O::String => "string",
        O::Date => "date",
        O::Time => "time",
        O::TimeTz => "time_tz",
        O::Timestamp => "timestamp",
        O::TimestampTz => "timestamp_tz",
        _ => "datetime",
    }
}

fn only_for(operator: PathOperator, what: &str) -> Failure {
    let name = name(operator);
    let message = format!("jsonpath item method .{name}() can only be applied to {what}");
    failed(NON_NUMERIC, message)
}

impl<'a> Walk<'a, '_> {
    pub(super) fn method(
        &mut self,
        (operator, arguments): (PathOperator, &[PathChain]),
        next: &[PathItem],
        items: &[PathItem],
        node: &Node<'a>,
        found: Results<'_, 'a>,
        unwrap: bool,
    ) -> Result<bool, Failure> {
        use PathOperator as O;
        match operator {
            O::Type => {
                let name = match node.kind {
                    Kind::Container if node.is_object()? => "object",
                    Kind::Container => "array",
                    kind => type_name(kind),
                };
                return self.chain(next, &Node::string(name), found);
            }
            O::Size => {
                let size = match node.is_array()? {
                    true => node.parts()?.len() as i64,
                    false if self.lax => 1,
                    false => {
                        let what = "jsonpath item method .size() can only be applied to an array";
                        return self.structural(ARRAY_NOT_FOUND, what);
                    }
                };
                return self.chain(next, &Node::numeric(&Numeric::from(size))?, found);
            }
            O::Date | O::Time | O::TimeTz | O::Timestamp | O::TimestampTz | O::Datetime => {
                let name = name(operator);
                let message = format!("jsonpath method {name}() is not supported by trunkline");
                return Err(SqlError::unsupported(message).into());
            }
            _ => {}
        }
        if unwrap && node.is_array()? {
            return self.unwrapped(items, node, found);
        }
        let value = match operator {
            O::KeyValue => return self.key_values(next, node, found),
            O::Abs | O::Floor | O::Ceiling => {
                let number = node.to_numeric()?;
                let number = number.ok_or_else(|| only_for(operator, "a numeric value"))?;
                Node::numeric(&match operator {
                    O::Abs => number.absolute(),
                    O::Floor => number.floor(),
                    _ => number.ceiling(),
                })?
            }
            O::Boolean => self.boolean(node)?,
            O::String => match node.kind {
                Kind::Null | Kind::Container => {
                    let what = "a boolean, string, numeric, or datetime value";
                    return Err(only_for(operator, what));
                }
                _ => Node::string(&text(node.value(), self.call)?.unwrap_or_default()),
            },
            _ => self.converted(operator, arguments, node)?,
        };
        self.chain(next, &value, found)
    }

    /// A value read as another type; `None` if its text isn't one.
    fn read(&self, ty: Base, text: &str) -> Result<Option<Vec<u8>>, SqlError> {
        let settings = self.call.settings;
        let options = InputOptions::new(settings.major, &*settings.catalog, 0);
        let mut payload = Vec::new();
        let read = read_text(&Type::Base(ty), text.as_bytes(), -1, &options, &mut payload);
        Ok(read.ok().map(|()| payload))
    }

    /// The error for a value whose text isn't one of a type.
    fn invalid(&self, operator: PathOperator, text: &str, type_name: &str) -> Failure {
        let name = name(operator);
        let message = format!(
            "argument \"{text}\" of jsonpath item method .{name}() is invalid for type {type_name}"
        );
        failed(NON_NUMERIC, message)
    }

    /// `double()`, `bigint()`, `integer()`, `number()` and `decimal()`, of numbers and strings.
    fn converted(
        &self,
        operator: PathOperator,
        arguments: &[PathChain],
        node: &Node<'a>,
    ) -> Result<Node<'a>, Failure> {
        use PathOperator as O;
        if !matches!(node.kind, Kind::Number | Kind::String) {
            return Err(only_for(operator, "a string or numeric value"));
        }
        let shown = text(node.value(), self.call)?.unwrap_or_default();
        let not_finite = || {
            let name = name(operator);
            let message =
                format!("NaN or Infinity is not allowed for jsonpath item method .{name}()");
            failed(NON_NUMERIC, message)
        };
        let number = node.to_numeric()?;
        match operator {
            O::Double => {
                let read = self.read(Base::Float8, &shown)?;
                let value = read.and_then(|payload| payload.first_chunk().copied());
                let Some(value) = value.map(f64::from_le_bytes) else {
                    if self.call.settings.major >= 17 {
                        return Err(self.invalid(operator, &shown, "double precision"));
                    }
                    let what = if number.is_some() { "numeric" } else { "string" };
                    let message = format!(
                        "{what} argument of jsonpath item method .double() is not a valid \
                         representation of a double precision number"
                    );
                    return Err(failed(NON_NUMERIC, message));
                };
                if !value.is_finite() {
                    return Err(not_finite());
                }
                match number {
                    // A number stays as it is.
                    Some(_) => Ok(node.clone()),
                    None => Ok(Node::numeric(&Numeric::from(value))?),
                }
            }
            O::Bigint | O::Integer => {
                let (ty, type_name) = match operator {
                    O::Bigint => (Base::Int8, "bigint"),
                    _ => (Base::Int4, "integer"),
                };
                let value = match &number {
                    Some(number) if operator == O::Bigint => number.to_i64().ok(),
                    Some(number) => number.to_i32().ok().map(i64::from),
                    None => self.read(ty, &shown)?.and_then(|payload| integer(&payload)),
                };
                let value = value.ok_or_else(|| self.invalid(operator, &shown, type_name))?;
                Ok(Node::numeric(&Numeric::from(value))?)
            }
            _ => {
                let number = match number {
                    Some(number) => number,
                    None => {
                        let read = self.read(Base::Numeric, &shown)?;
                        let read = read.ok_or_else(|| self.invalid(operator, &shown, "numeric"))?;
                        Numeric::decode(&read)?
                    }
                };
                if !matches!(number, Numeric::Finite(_)) {
                    return Err(not_finite());
                }
                let Some((precision, scale)) = self.modifier(arguments)? else {
                    return Ok(Node::numeric(&number)?);
                };
                let applied = NumericTypmod { precision, scale }.apply(number);
                let applied = applied.map_err(|_| self.invalid(operator, &shown, "numeric"))?;
                Ok(Node::numeric(&applied)?)
            }
        }
    }

    /// The precision and scale of `decimal(precision, scale)`.
    fn modifier(&self, arguments: &[PathChain]) -> Result<Option<(i32, i32)>, Failure> {
        let mut numbers = Vec::new();
        for (argument, what) in arguments.iter().zip(["precision", "scale"]) {
            let number = match argument.as_slice() {
                [PathItem::Number(payload)] => Numeric::decode(payload)?.to_i32().ok(),
                _ => None,
            };
            numbers.push(number.ok_or_else(|| {
                let message = format!(
                    "{what} of jsonpath item method .decimal() is out of range for type integer"
                );
                failed(NON_NUMERIC, message)
            })?);
        }
        let Some(&precision) = numbers.first() else { return Ok(None) };
        let scale = numbers.get(1).copied().unwrap_or(0);
        let invalid = |message: String| SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message);
        if !(1..=1000).contains(&precision) {
            let message = format!("NUMERIC precision {precision} must be between 1 and 1000");
            return Err(invalid(message).into());
        }
        if !(-1000..=1000).contains(&scale) {
            let message = format!("NUMERIC scale {scale} must be between -1000 and 1000");
            return Err(invalid(message).into());
        }
        Ok(Some((precision, scale)))
    }

    fn boolean(&self, node: &Node<'a>) -> Result<Node<'a>, Failure> {
        let operator = PathOperator::Boolean;
        let value = match node.kind {
            Kind::True => Some(true),
            Kind::False => Some(false),
            Kind::Number => {
                let shown = text(node.value(), self.call)?.unwrap_or_default();
                self.read(Base::Int4, &shown)?.and_then(|payload| integer(&payload)).map(|n| n != 0)
            }
            Kind::String => {
                let read = self.read(Base::Bool, &node.text().unwrap_or_default())?;
                read.and_then(|payload| payload.first().map(|&byte| byte != 0))
            }
            Kind::Null | Kind::Container => {
                return Err(only_for(operator, "a boolean, string, or numeric value"));
            }
        };
        let shown = text(node.value(), self.call)?.unwrap_or_default();
        value.map(Node::bool).ok_or_else(|| self.invalid(operator, &shown, "boolean"))
    }

    /// `keyvalue()`: an object for each member, with the id of the object that has it.
    fn key_values(
        &mut self,
        next: &[PathItem],
        node: &Node<'a>,
        mut found: Results<'_, 'a>,
    ) -> Result<bool, Failure> {
        if !node.is_object()? {
            let what = "jsonpath item method .keyvalue() can only be applied to an object";
            return Err(failed(OBJECT_NOT_FOUND, what));
        }
        if node.is_inside {
            let message = "keyvalue() of a part of its own result is not supported by trunkline";
            return Err(SqlError::unsupported(message).into());
        }
        let (place, number) = self.base;
        // A value that was made is its own base.
        let own = node.bytes.as_ptr() as usize;
        let offset = match node.bytes {
            std::borrow::Cow::Borrowed(_) => own.wrapping_sub(place) as i64,
            std::borrow::Cow::Owned(_) => 0,
        };
        let id = Node::numeric(&Numeric::from(offset + number * BASE_DISTANCE))?;
        let mut has_result = false;
        for (key, value) in node.keys()?.into_iter().zip(node.parts()?) {
            if next.is_empty() && found.is_none() {
                return Ok(true);
            }
            let key = Value { kind: Kind::String, bytes: &key };
            let members: Vec<(&[u8], Value<'_>)> =
                vec![(b"key", key), (b"value", value.value()), (b"id", id.value())];
            let pair = Node::object(object(members)?);
            self.made += 1;
            let base = std::mem::replace(&mut self.base, (0, self.made + 1));
            let walked = self.chain(next, &pair, found.as_deref_mut());
            self.base = base;
            has_result |= walked?;
            if has_result && found.is_none() {
                return Ok(true);
            }
        }
        Ok(has_result)
    }
}

/// A stored integer of four or eight bytes.
fn integer(payload: &[u8]) -> Option<i64> {
    match payload.len() {
        4 => payload.first_chunk().map(|bytes| i64::from(i32::from_le_bytes(*bytes))),
        _ => payload.first_chunk().map(|bytes| i64::from_le_bytes(*bytes)),
    }
}

/// The collation `default`, in which texts are compared with regular expressions.
pub(super) const DEFAULT_COLLATION: Oid = Oid(100);
