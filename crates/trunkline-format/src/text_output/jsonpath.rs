//! `jsonpath` output. A query is stored as a tree of items linked by relative offsets.
//!
//! Each item holds its kind, the distance to the next item in its chain, and its arguments: text,
//! numbers, or the distances to its operands. In a damaged value a distance may point anywhere,
//! even back to the same item. The printer therefore bounds both nesting depth and the bytes it
//! reads.
//!
//! Mirrors `printJsonPathItem` of PostgreSQL's `utils/adt/jsonpath.c`.

use super::digits;
use super::error::ValueError;
use super::jsonb::string;
use super::numeric::numeric;
use super::reader::Reader;
use crate::align::Align;
use crate::varlena::{Varlena, stored_length};

/// Maximum nesting depth of operands. The printer recurses, so this bounds its stack.
const DEPTH_MAX: u32 = 1000;
/// An undamaged item is read at most twice: once to learn its kind, and once to print it.
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

/// The text of an item without arguments.
fn constant(kind: u8) -> Option<&'static [u8]> {
    Some(match kind {
        0 => b"null",
        21 => b"[*]",
        26 => b"@",
        27 => b"$",
        31 => b".type()",
        32 => b".size()",
        33 => b".abs()",
        34 => b".floor()",
        35 => b".ceiling()",
        36 => b".double()",
        38 => b".keyvalue()",
        40 => b"last",
        43 => b".bigint()",
        44 => b".boolean()",
        45 => b".date()",
        47 => b".integer()",
        48 => b".number()",
        49 => b".string()",
        55 => b".lower()",
        56 => b".upper()",
        60 => b".initcap()",
        _ => return None,
    })
}

/// The symbol of a binary operator, and its precedence.
fn binary(kind: u8) -> Option<(&'static [u8], u8)> {
    Some(match kind {
        4 => (b" && ", 1),
        5 => (b" || ", 0),
        8 => (b" == ", 2),
        9 => (b" != ", 2),
        10 => (b" < ", 2),
        11 => (b" > ", 2),
        12 => (b" <= ", 2),
        13 => (b" >= ", 2),
        14 => (b" + ", 3),
        15 => (b" - ", 3),
        16 => (b" * ", 4),
        17 => (b" / ", 4),
        18 => (b" % ", 4),
        41 => (b" starts with ", 2),
        _ => return None,
    })
}

/// The precedence of an item; higher binds tighter.
fn priority(kind: u8) -> u8 {
    match kind {
        19 | 20 => 5,
        _ => binary(kind).map_or(6, |(_, priority)| priority),
    }
}

/// The text before and after the operand of a unary item.
fn wrapped(kind: u8) -> Option<[&'static [u8]; 2]> {
    Some(match kind {
        6 => [b"!(", b")"],
        7 => [b"(", b") is unknown"],
        29 => [b"?(", b")"],
        30 => [b"exists (", b")"],
        _ => return None,
    })
}

/// A method with an optional argument.
fn method(kind: u8) -> Option<&'static [u8]> {
    Some(match kind {
        37 => b".datetime(",
        50 => b".time(",
        51 => b".time_tz(",
        52 => b".timestamp(",
        53 => b".timestamp_tz(",
        57 => b".ltrim(",
        58 => b".rtrim(",
        59 => b".btrim(",
        _ => return None,
    })
}

/// A `jsonpath`, as `jsonpath_out`.
pub(super) fn jsonpath(value: &[u8], out: &mut Vec<u8>) -> Result<(), ValueError> {
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
    /// Number of item bytes that may still be read. It reaches zero if items are shared or form a
    /// cycle.
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

    /// Prints the item at `at` and the rest of its chain. `brackets` puts parentheses around
    /// operators; `in_key` puts a point before a key.
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
        let kind = item.kind;
        if let Some(text) = constant(kind) {
            self.out.extend_from_slice(text);
        } else if let Some((operator, around)) = binary(kind) {
            let (left, right) = (item.reader.read::<i32>()?, item.reader.read::<i32>()?);
            self.open(brackets);
            self.operand(item.place(left)?, around, depth)?;
            self.out.extend_from_slice(operator);
            self.operand(item.place(right)?, around, depth)?;
            self.close(brackets);
        } else if let Some([before, after]) = wrapped(kind) {
            let operand = item.reader.read::<i32>()?;
            self.out.extend_from_slice(before);
            self.chain(item.place(operand)?, false, false, depth)?;
            self.out.extend_from_slice(after);
        } else if let Some(name) = method(kind) {
            self.out.extend_from_slice(name);
            let argument = item.reader.read::<i32>()?;
            if argument != 0 {
                self.chain(item.place(argument)?, false, false, depth)?;
            }
            self.out.push(b')');
        } else {
            self.rare(item, in_key, brackets, depth)?;
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
        match item.kind {
            1 => self.text(item)?,
            2 => self.number(item)?,
            3 => {
                let value = item.reader.read::<u8>()? != 0;
                self.out.extend_from_slice(if value { b"true" } else { b"false" });
            }
            19 | 20 => {
                let operand = item.reader.read::<i32>()?;
                self.open(brackets);
                self.out.push(if item.kind == 19 { b'+' } else { b'-' });
                self.operand(item.place(operand)?, priority(item.kind), depth)?;
                self.close(brackets);
            }
            22 => {
                self.point(in_key);
                self.out.push(b'*');
            }
            23 => self.subscripts(item, depth)?,
            24 => {
                self.point(in_key);
                levels(item.reader.read::<u32>()?, item.reader.read::<u32>()?, self.out);
            }
            25 => {
                self.point(in_key);
                self.text(item)?;
            }
            28 => {
                self.out.push(b'$');
                self.text(item)?;
            }
            42 => self.like_regex(item, brackets, depth)?,
            46 => self.two_arguments(b".decimal(", item, depth)?,
            54 => self.two_arguments(b".replace(", item, depth)?,
            61 => self.two_arguments(b".split_part(", item, depth)?,
            _ => return Err(malformed("an item of unknown kind")),
        }
        Ok(())
    }

    /// A method with up to two arguments.
    fn two_arguments(
        &mut self,
        name: &[u8],
        item: &mut Item<'a>,
        depth: u32,
    ) -> Result<(), ValueError> {
        let (first, second) = (item.reader.read::<i32>()?, item.reader.read::<i32>()?);
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

    fn point(&mut self, in_key: bool) {
        if in_key {
            self.out.push(b'.');
        }
    }

    fn text(&mut self, item: &mut Item<'a>) -> Result<(), ValueError> {
        let length = usize::try_from(item.reader.read::<i32>()?).unwrap_or(usize::MAX);
        self.charge(length)?;
        string(item.reader.take(length)?, self.out);
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
