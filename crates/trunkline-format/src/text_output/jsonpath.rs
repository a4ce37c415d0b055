//! `jsonpath` output. A query is stored as a tree of items linked by relative offsets.
//!
//! Each item contains its type, the offset of the next item in the chain, and its arguments, which
//! can be text, numbers, or the offsets of its operands. In a damaged value, an offset can point
//! anywhere, even back to the same item. To guard against endless loops, we limit both the nesting
//! depth and the total number of bytes that we read.
//!
//! Mirrors `printJsonPathItem` of PostgreSQL's `utils/adt/jsonpath.c`.

use super::digits;
use super::error::ValueError;
use super::jsonb::write_json_string;
use super::numeric::numeric;
use super::reader::Reader;
use crate::align::Align;
use crate::varlena::{Varlena, stored_length};

/// Maximum nesting depth of operands. The printer recurses, so this bounds its stack.
const DEPTH_MAX: u32 = 1000;
/// If the value is not damaged, we read each item at most twice, once to determine its kind and
/// once to print it.
const READS: usize = 2;
/// The smallest item: kind, padding, and distance to the next item.
const ITEM_MIN: usize = 8;
/// `JSONPATH_LAX` in the header. If it is clear, the mode is strict.
const LAX: u32 = 0x8000_0000;
/// `JSONPATH_VERSION`.
const VERSION: u32 = 1;
/// The stored form of `last` as a level of `**`.
const LAST: u32 = u32::MAX;

const fn malformed(what: &'static str) -> ValueError {
    ValueError::Malformed { type_name: "jsonpath", what }
}

/// How an item is printed.
enum Shape {
    /// A text without arguments.
    Constant(&'static [u8]),
    /// The symbol of a binary operator, and its precedence.
    Binary(&'static [u8], u8),
    /// The symbol of a unary operator.
    Sign(u8),
    /// The text before and after an operand.
    Wrapped(&'static [u8], &'static [u8]),
    /// A method with an optional argument.
    Method(&'static [u8]),
    /// A method with up to two arguments.
    Method2(&'static [u8]),
    /// A kind with a rule of its own.
    Other,
}

/// The shape of an item of this kind (`JsonPathItemType`).
fn shape(kind: u8) -> Shape {
    use Shape::{Binary, Constant, Method, Method2, Wrapped};
    match kind {
        0 => Constant(b"null"),
        4 => Binary(b" && ", 1),
        5 => Binary(b" || ", 0),
        6 => Wrapped(b"!(", b")"),
        7 => Wrapped(b"(", b") is unknown"),
        8 => Binary(b" == ", 2),
        9 => Binary(b" != ", 2),
        10 => Binary(b" < ", 2),
        11 => Binary(b" > ", 2),
        12 => Binary(b" <= ", 2),
        13 => Binary(b" >= ", 2),
        14 => Binary(b" + ", 3),
        15 => Binary(b" - ", 3),
        16 => Binary(b" * ", 4),
        17 => Binary(b" / ", 4),
        18 => Binary(b" % ", 4),
        19 => Shape::Sign(b'+'),
        20 => Shape::Sign(b'-'),
        21 => Constant(b"[*]"),
        26 => Constant(b"@"),
        27 => Constant(b"$"),
        29 => Wrapped(b"?(", b")"),
        30 => Wrapped(b"exists (", b")"),
        31 => Constant(b".type()"),
        32 => Constant(b".size()"),
        33 => Constant(b".abs()"),
        34 => Constant(b".floor()"),
        35 => Constant(b".ceiling()"),
        36 => Constant(b".double()"),
        37 => Method(b".datetime("),
        38 => Constant(b".keyvalue()"),
        40 => Constant(b"last"),
        41 => Binary(b" starts with ", 2),
        43 => Constant(b".bigint()"),
        44 => Constant(b".boolean()"),
        45 => Constant(b".date()"),
        46 => Method2(b".decimal("),
        47 => Constant(b".integer()"),
        48 => Constant(b".number()"),
        49 => Constant(b".string()"),
        50 => Method(b".time("),
        51 => Method(b".time_tz("),
        52 => Method(b".timestamp("),
        53 => Method(b".timestamp_tz("),
        54 => Method2(b".replace("),
        55 => Constant(b".lower()"),
        56 => Constant(b".upper()"),
        57 => Method(b".ltrim("),
        58 => Method(b".rtrim("),
        59 => Method(b".btrim("),
        60 => Constant(b".initcap()"),
        61 => Method2(b".split_part("),
        _ => Shape::Other,
    }
}

/// The precedence of an item; higher binds tighter.
fn priority(kind: u8) -> u8 {
    match shape(kind) {
        Shape::Binary(_, priority) => priority,
        Shape::Sign(_) => 5,
        _ => 6,
    }
}

/// A `jsonpath`, as `jsonpath_out`.
pub(crate) fn jsonpath(value: &[u8], out: &mut Vec<u8>) -> Result<(), ValueError> {
    let mut reader = Reader::new("jsonpath", value);
    let header = reader.read::<u32>()?;
    if header & !LAX != VERSION {
        return Err(malformed("an unknown version"));
    }
    if header & LAX == 0 {
        out.extend_from_slice(b"strict ");
    }
    let items = reader.rest();
    Printer { items, left: items.len() * READS, out }.chain(0, false, true, 0)
}

struct Printer<'a, 'o> {
    items: &'a [u8],
    /// Number of bytes that we may still read. We only reach this limit if the value is damaged, so
    /// that some items share an operand or form a cycle.
    left: usize,
    out: &'o mut Vec<u8>,
}

/// An item that is being printed.
struct Item<'a> {
    kind: u8,
    at: usize,
    next: i32,
    reader: Reader<'a>,
}

impl Item<'_> {
    /// Resolves a stored `distance`, which is relative to this item's start.
    fn place(&self, distance: i32) -> Result<usize, ValueError> {
        let place = isize::try_from(distance).ok().and_then(|by| self.at.checked_add_signed(by));
        place.ok_or(malformed("an item before its beginning"))
    }
}

impl<'a> Printer<'a, '_> {
    fn charge(&mut self, bytes: usize) -> Result<(), ValueError> {
        self.left = self.left.checked_sub(bytes).ok_or(malformed("its items form no tree"))?;
        Ok(())
    }

    fn item(&mut self, at: usize) -> Result<Item<'a>, ValueError> {
        self.charge(ITEM_MIN)?;
        let mut reader = Reader::aligned("jsonpath", self.items);
        reader.seek(at)?;
        let kind = reader.read::<u8>()?;
        reader.align(Align::Int);
        let next = reader.read::<i32>()?;
        Ok(Item { kind, at, next, reader })
    }

    /// Prints the item at offset `at` and the rest of its chain. If `brackets` is true, operators
    /// are printed in parentheses. If `in_key` is true, a key is printed with a dot in front of it.
    fn chain(
        &mut self,
        mut at: usize,
        mut in_key: bool,
        mut brackets: bool,
        depth: u32,
    ) -> Result<(), ValueError> {
        if depth > DEPTH_MAX {
            return Err(malformed("nested too deep"));
        }
        loop {
            let mut item = self.item(at)?;
            self.one(&mut item, in_key, brackets, depth + 1)?;
            if item.next <= 0 {
                return Ok(());
            }
            (at, in_key, brackets) = (item.place(item.next)?, true, true);
        }
    }

    /// Prints an operand of an operator whose precedence is `around`.
    fn operand(&mut self, at: usize, around: u8, depth: u32) -> Result<(), ValueError> {
        let kind = self.item(at)?.kind;
        self.chain(at, false, priority(kind) <= around, depth)
    }

    fn one(
        &mut self,
        item: &mut Item<'a>,
        in_key: bool,
        brackets: bool,
        depth: u32,
    ) -> Result<(), ValueError> {
        match shape(item.kind) {
            Shape::Constant(text) => self.out.extend_from_slice(text),
            Shape::Binary(operator, around) => {
                let (left, right) = (item.reader.read()?, item.reader.read()?);
                self.open(brackets);
                self.operand(item.place(left)?, around, depth)?;
                self.out.extend_from_slice(operator);
                self.operand(item.place(right)?, around, depth)?;
                self.close(brackets);
            }
            Shape::Sign(sign) => {
                let operand = item.reader.read()?;
                self.open(brackets);
                self.out.push(sign);
                self.operand(item.place(operand)?, priority(item.kind), depth)?;
                self.close(brackets);
            }
            Shape::Wrapped(before, after) => {
                let operand = item.reader.read()?;
                self.out.extend_from_slice(before);
                self.chain(item.place(operand)?, false, false, depth)?;
                self.out.extend_from_slice(after);
            }
            Shape::Method(name) => {
                let argument = item.reader.read()?;
                self.method(name, item, [argument, 0], depth)?;
            }
            Shape::Method2(name) => {
                let arguments = [item.reader.read()?, item.reader.read()?];
                self.method(name, item, arguments, depth)?;
            }
            Shape::Other => self.rare(item, in_key, brackets, depth)?,
        }
        Ok(())
    }

    fn rare(
        &mut self,
        item: &mut Item<'a>,
        in_key: bool,
        brackets: bool,
        depth: u32,
    ) -> Result<(), ValueError> {
        if matches!(item.kind, 22 | 24 | 25) && in_key {
            self.out.push(b'.');
        }
        match item.kind {
            1 | 25 => self.text(item)?,
            2 => self.number(item)?,
            3 => {
                let value = item.reader.read::<u8>()? != 0;
                self.out.extend_from_slice(if value { b"true" } else { b"false" });
            }
            22 => self.out.push(b'*'),
            23 => self.subscripts(item, depth)?,
            24 => levels(item.reader.read()?, item.reader.read()?, self.out),
            28 => {
                self.out.push(b'$');
                self.text(item)?;
            }
            42 => self.like_regex(item, brackets, depth)?,
            _ => return Err(malformed("an item of unknown kind")),
        }
        Ok(())
    }

    /// A method and its arguments; 0 means that an argument is missing.
    fn method(
        &mut self,
        name: &[u8],
        item: &Item<'a>,
        [first, second]: [i32; 2],
        depth: u32,
    ) -> Result<(), ValueError> {
        self.out.extend_from_slice(name);
        if first != 0 {
            self.chain(item.place(first)?, false, false, depth)?;
        }
        if second != 0 {
            self.out.push(b',');
            self.chain(item.place(second)?, false, false, depth)?;
        }
        self.out.push(b')');
        Ok(())
    }

    fn open(&mut self, brackets: bool) {
        if brackets {
            self.out.push(b'(');
        }
    }

    fn close(&mut self, brackets: bool) {
        if brackets {
            self.out.push(b')');
        }
    }

    fn text(&mut self, item: &mut Item<'a>) -> Result<(), ValueError> {
        let length = usize::try_from(item.reader.read::<i32>()?).unwrap_or(usize::MAX);
        self.charge(length)?;
        write_json_string(item.reader.take(length)?, self.out);
        Ok(())
    }

    /// Adds parentheses if another item follows: `(1).type()`.
    fn number(&mut self, item: &mut Item<'a>) -> Result<(), ValueError> {
        let bytes = item.reader.rest();
        let datum = bytes.get(..stored_length(bytes)?).unwrap_or_default();
        let Varlena::Plain(payload) = Varlena::parse(datum)? else {
            return Err(malformed("a compressed number"));
        };
        self.open(item.next > 0);
        numeric(payload, self.out)?;
        self.close(item.next > 0);
        Ok(())
    }

    /// `[1,2 to last]`.
    fn subscripts(&mut self, item: &mut Item<'a>, depth: u32) -> Result<(), ValueError> {
        let count = item.reader.read::<u32>()?;
        self.out.push(b'[');
        for at in 0..count {
            if at > 0 {
                self.out.push(b',');
            }
            let (from, to) = (item.reader.read::<i32>()?, item.reader.read::<i32>()?);
            self.chain(item.place(from)?, false, false, depth)?;
            if to != 0 {
                self.out.extend_from_slice(b" to ");
                self.chain(item.place(to)?, false, false, depth)?;
            }
        }
        self.out.push(b']');
        Ok(())
    }

    /// `@ like_regex "pattern" flag "i"`.
    fn like_regex(
        &mut self,
        item: &mut Item<'a>,
        brackets: bool,
        depth: u32,
    ) -> Result<(), ValueError> {
        let (flags, operand) = (item.reader.read::<u32>()?, item.reader.read::<i32>()?);
        self.open(brackets);
        self.operand(item.place(operand)?, priority(item.kind), depth)?;
        self.out.extend_from_slice(b" like_regex ");
        self.text(item)?;
        if flags != 0 {
            self.out.extend_from_slice(b" flag \"");
            let letters = b"ismxq".iter().enumerate();
            self.out.extend(letters.filter(|(bit, _)| flags >> bit & 1 == 1).map(|(_, l)| l));
            self.out.push(b'"');
        }
        self.close(brackets);
        Ok(())
    }
}

/// `**`, `**{2}`, `**{2 to last}`.
fn levels(first: u32, last: u32, out: &mut Vec<u8>) {
    out.extend_from_slice(b"**");
    if (first, last) == (0, LAST) {
        return;
    }
    let level = |level: u32, out: &mut Vec<u8>| match level {
        LAST => out.extend_from_slice(b"last"),
        level => digits::unsigned(u64::from(level), out),
    };
    out.push(b'{');
    level(first, out);
    if first != last {
        out.extend_from_slice(b" to ");
        level(last, out);
    }
    out.push(b'}');
}
