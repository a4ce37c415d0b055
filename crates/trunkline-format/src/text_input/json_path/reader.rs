//! Stored paths as trees. How a path is laid out is in the module that prints it.
//!
//! A path is not read from its text, because the server prints some in a way that means something else:
//! `(2 / 3)[0]` is printed as `2 / 3[0]`.
//!
//! In a damaged path, an offset can point anywhere, even back to the same item. So the nesting is limited,
//! and so is the number of bytes that are read.

use super::tree::{JsonPath, PathChain, PathItem, PathOperator};
use crate::align::Align;
use crate::text_output::ValueError;
use crate::text_output::reader::Reader;
use crate::varlena::{Varlena, stored_length};

/// How deep operands may nest. The reader recurses.
const DEPTH_MAX: u32 = 1000;
/// The smallest item: kind, padding, and distance to the next item.
const ITEM_MIN: usize = 8;
/// `JSONPATH_LAX` in the header, and `JSONPATH_VERSION`.
const LAX: u32 = 0x8000_0000;
const VERSION: u32 = 1;

const fn malformed(what: &'static str) -> ValueError {
    ValueError::Malformed { type_name: "jsonpath", what }
}

/// Reads a stored path.
pub(super) fn read(value: &[u8]) -> Result<JsonPath, ValueError> {
    let mut reader = Reader::new("jsonpath", value);
    let header = reader.read::<u32>()?;
    if header & !LAX != VERSION {
        return Err(malformed("an unknown version"));
    }
    let items = reader.rest();
    let items = Items { items, left: items.len() }.chain(0, 0)?;
    Ok(JsonPath { lax: header & LAX != 0, items })
}

struct Items<'a> {
    items: &'a [u8],
    /// Number of bytes that we may still read. We only reach this limit if the value is damaged.
    left: usize,
}

/// The place that an item's `distance` leads to.
fn place(item: usize, distance: i32) -> Result<usize, ValueError> {
    let place = isize::try_from(distance).ok().and_then(|by| item.checked_add_signed(by));
    place.ok_or(malformed("an item before its beginning"))
}

impl<'a> Items<'a> {
    fn charge(&mut self, bytes: usize) -> Result<(), ValueError> {
        self.left = self.left.checked_sub(bytes).ok_or(malformed("its items form no tree"))?;
        Ok(())
    }

    /// The items from a place on.
    fn chain(&mut self, mut at: usize, depth: u32) -> Result<PathChain, ValueError> {
        if depth > DEPTH_MAX {
            return Err(malformed("nested too deep"));
        }
        let mut chain = PathChain::new();
        loop {
            self.charge(ITEM_MIN)?;
            let mut reader = Reader::aligned("jsonpath", self.items);
            reader.seek(at)?;
            let kind = reader.read::<u8>()?;
            reader.align(Align::Int);
            let next = reader.read::<i32>()?;
            chain.push(self.item(kind, at, reader, depth + 1)?);
            if next <= 0 {
                return Ok(chain);
            }
            at = place(at, next)?;
        }
    }

    fn item(
        &mut self,
        kind: u8,
        at: usize,
        mut reader: Reader<'a>,
        depth: u32,
    ) -> Result<PathItem, ValueError> {
        Ok(match kind {
            0 => PathItem::Null,
            1 => PathItem::String(self.text(&mut reader)?),
            2 => PathItem::Number(self.number(&reader)?),
            3 => PathItem::Bool(reader.read::<u8>()? != 0),
            21 => PathItem::AnyArray,
            22 => PathItem::AnyKey,
            23 => self.subscripts(at, reader, depth)?,
            24 => PathItem::Any(reader.read()?, reader.read()?),
            25 => PathItem::Key(self.text(&mut reader)?),
            26 => PathItem::Current,
            27 => PathItem::Root,
            28 => PathItem::Variable(self.text(&mut reader)?),
            40 => PathItem::Last,
            42 => {
                let (flags, operand) = (reader.read()?, reader.read()?);
                let pattern = self.text(&mut reader)?;
                PathItem::LikeRegex(self.chain(place(at, operand)?, depth)?, pattern, flags)
            }
            kind => self.operation(operator(kind)?, at, reader, depth)?,
        })
    }

    /// An operator with its operands, or a method with its arguments.
    fn operation(
        &mut self,
        operator: PathOperator,
        at: usize,
        mut reader: Reader<'a>,
        depth: u32,
    ) -> Result<PathItem, ValueError> {
        let mut operands = Vec::new();
        for _ in 0..operator.operands() {
            let distance = reader.read::<i32>()?;
            // An argument that is missing.
            if distance != 0 {
                operands.push(self.chain(place(at, distance)?, depth)?);
            }
        }
        if operator.is_method() {
            return Ok(PathItem::Method(operator, operands));
        }
        let missing = || malformed("an operator without an operand");
        let last = operands.pop().ok_or_else(missing)?;
        match operator.operands() {
            1 => Ok(PathItem::Unary(operator, last)),
            _ => Ok(PathItem::Binary(operator, operands.pop().ok_or_else(missing)?, last)),
        }
    }

    fn subscripts(
        &mut self,
        at: usize,
        mut reader: Reader<'a>,
        depth: u32,
    ) -> Result<PathItem, ValueError> {
        let mut list = Vec::new();
        for _ in 0..reader.read::<u32>()? {
            let (from, to) = (reader.read::<i32>()?, reader.read::<i32>()?);
            let from = self.chain(place(at, from)?, depth)?;
            let to = match to {
                0 => None,
                to => Some(self.chain(place(at, to)?, depth)?),
            };
            list.push((from, to));
        }
        Ok(PathItem::Subscripts(list))
    }

    fn text(&mut self, reader: &mut Reader<'a>) -> Result<String, ValueError> {
        let length = usize::try_from(reader.read::<i32>()?).unwrap_or(usize::MAX);
        self.charge(length)?;
        let text = reader.take(length)?.to_vec();
        String::from_utf8(text).map_err(|_| malformed("a text that is not UTF-8"))
    }

    fn number(&mut self, reader: &Reader<'a>) -> Result<Vec<u8>, ValueError> {
        let bytes = reader.rest();
        let datum = bytes.get(..stored_length(bytes)?).unwrap_or_default();
        let Varlena::Plain(payload) = Varlena::parse(datum)? else {
            return Err(malformed("a compressed number"));
        };
        self.charge(payload.len())?;
        Ok(payload.to_vec())
    }
}

/// The operator or method of an item.
fn operator(kind: u8) -> Result<PathOperator, ValueError> {
    let found = PathOperator::ALL.into_iter().find(|operator| *operator as u8 == kind);
    found.ok_or(malformed("an item of unknown kind"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_stored_is_read() {
        for text in [
            "strict $.a[*] ? (@.b > 1 && exists(@.c)).size()",
            "(2 / 3)[-1, 0 to last] - -$x.\"y z\"",
            "$.**{2 to last} ? ((@ starts with \"a\") is unknown || !(@ like_regex \"b\" flag \"i\"))",
            "$.decimal(5, 1).decimal(4).datetime(\"HH\").time(3).keyvalue().* ? (@ == null)",
            "true",
        ] {
            let path = JsonPath::parse(text, 18).expect("a path");
            let mut stored = Vec::new();
            path.store(&mut stored);
            assert_eq!(read(&stored).expect("a stored path"), path, "{text}");
        }
    }

    #[test]
    fn any_bytes_are_a_path_or_an_error() {
        let mut stored = Vec::new();
        let path = JsonPath::parse("$.a[1 to 2] ? (@ + 1 == \"x\").b", 18).expect("a path");
        path.store(&mut stored);
        for at in 0..stored.len() {
            for value in [0, 1, 4, 23, 0x7F, 0x80, 0xFF] {
                let mut damaged = stored.clone();
                damaged[at] = value;
                let _read = read(&damaged);
            }
            let _read = read(&stored[..at]);
        }
    }
}
