//! A value in a `jsonb`, or one that a path has made, and the values of predicates.

use std::borrow::Cow;

use crate::error::SqlError;
use crate::functions::json::container::{Container, Kind, Value};
use crate::numeric::Numeric;

/// The value of a predicate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Logical {
    True,
    False,
    Unknown,
}

impl From<bool> for Logical {
    fn from(value: bool) -> Self {
        if value { Self::True } else { Self::False }
    }
}

/// A value: its kind and its bytes, as a container has them.
#[derive(Debug, Clone)]
pub(super) struct Node<'a> {
    pub(super) kind: Kind,
    pub(super) bytes: Cow<'a, [u8]>,
    /// It is a part of a value that a path has made.
    pub(super) is_inside: bool,
}

impl<'a> Node<'a> {
    fn of(value: Value<'a>) -> Self {
        Self { kind: value.kind, bytes: Cow::Borrowed(value.bytes), is_inside: false }
    }

    fn made(kind: Kind, bytes: Vec<u8>) -> Self {
        Self { kind, bytes: Cow::Owned(bytes), is_inside: false }
    }

    /// A whole `jsonb`.
    pub(super) fn root(bytes: &'a [u8]) -> Result<Self, SqlError> {
        let whole = Value { kind: Kind::Container, bytes };
        Ok(Self::of(Container::parse(bytes)?.scalar().unwrap_or(whole)))
    }

    pub(super) fn null() -> Self {
        Self::made(Kind::Null, Vec::new())
    }

    pub(super) fn bool(value: bool) -> Self {
        Self::made(if value { Kind::True } else { Kind::False }, Vec::new())
    }

    pub(super) fn string(text: &str) -> Self {
        Self::made(Kind::String, text.as_bytes().to_vec())
    }

    /// A number, given as it is stored without a varlena header.
    pub(super) fn number(payload: &[u8]) -> Self {
        let mut bytes = (((payload.len() + 4) as u32) << 2).to_le_bytes().to_vec();
        bytes.extend_from_slice(payload);
        Self::made(Kind::Number, bytes)
    }

    pub(super) fn numeric(number: &Numeric) -> Result<Self, SqlError> {
        Ok(Self::number(&number.to_payload()?))
    }

    /// An object that a path has made.
    pub(super) fn object(bytes: Vec<u8>) -> Self {
        Self::made(Kind::Container, bytes)
    }

    pub(super) fn value(&self) -> Value<'_> {
        Value { kind: self.kind, bytes: &self.bytes }
    }

    /// The number, if it is one.
    pub(super) fn to_numeric(&self) -> Result<Option<Numeric>, SqlError> {
        match self.kind {
            Kind::Number => Numeric::decode(self.value().number()?).map(Some),
            _ => Ok(None),
        }
    }

    /// The characters of a string.
    pub(super) fn text(&self) -> Option<Cow<'_, str>> {
        (self.kind == Kind::String).then(|| String::from_utf8_lossy(&self.bytes))
    }

    pub(super) fn is_array(&self) -> Result<bool, SqlError> {
        Ok(self.container()?.is_some_and(|container| !container.is_object))
    }

    pub(super) fn is_object(&self) -> Result<bool, SqlError> {
        Ok(self.container()?.is_some_and(|container| container.is_object))
    }

    fn container(&self) -> Result<Option<Container<'_>>, SqlError> {
        match self.kind {
            Kind::Container => Container::parse(&self.bytes).map(Some),
            _ => Ok(None),
        }
    }

    /// The elements of an array, or the values of an object; none for other values.
    pub(super) fn parts(&self) -> Result<Vec<Node<'a>>, SqlError> {
        if self.kind != Kind::Container {
            return Ok(Vec::new());
        }
        Ok(match &self.bytes {
            Cow::Borrowed(bytes) => {
                Container::parse(bytes)?.values.into_iter().map(Node::of).collect()
            }
            Cow::Owned(bytes) => {
                let values = Container::parse(bytes)?.values.into_iter();
                let own = |value: Value<'_>| {
                    let node = Node::made(value.kind, value.bytes.to_vec());
                    Node { is_inside: true, ..node }
                };
                values.map(own).collect()
            }
        })
    }

    /// The keys of an object.
    pub(super) fn keys(&self) -> Result<Vec<Vec<u8>>, SqlError> {
        let keys = self.container()?.map_or(Vec::new(), |container| container.keys);
        Ok(keys.into_iter().map(<[u8]>::to_vec).collect())
    }

    /// The value of a key of an object.
    pub(super) fn member(&self, key: &str) -> Result<Option<Node<'a>>, SqlError> {
        let keys = self.container()?.map_or(Vec::new(), |container| container.keys);
        let at = keys.iter().position(|found| *found == key.as_bytes());
        Ok(match at {
            Some(at) => self.parts()?.into_iter().nth(at),
            None => None,
        })
    }
}
