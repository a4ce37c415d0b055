//! `jsonb`: a tree of containers, printed as `jsonb_out` prints it.
//!
//! A container consists of the number of entries, a `JEntry` word for each entry, and then the data
//! of all entries. Most `JEntry` words contain the type and the length of the entry, but in every
//! 32nd word (`JB_OFFSET_STRIDE`) the length is replaced by the offset of the entry's end. Lengths
//! are used because they compress better than offsets. On the other hand, without any offsets, we
//! would have to add up all preceding lengths to find an entry.
//!
//! We don't use recursion to walk the tree, because a damaged or deeply nested value could then
//! overflow the thread's stack. Instead, we keep a stack of our own, with a frame for each
//! container that we are in. It can't grow without limit, because each container is inside its
//! parent and takes up at least 4 bytes.
//!
//! Mirrors `JsonbContainer` of PostgreSQL's `utils/jsonb.h`, and the text `jsonb_out` of
//! `utils/adt/jsonb.c`.

use super::digits;
use super::error::{ValueError, bounded};
use super::numeric::numeric;
use crate::little_endian::read_at;
use crate::varlena::Varlena;

/// `JB_CMASK`: the entry count in a container header.
const COUNT: u32 = 0x0FFF_FFFF;
/// `JB_FSCALAR`: a scalar at the top level, stored as a one-element array.
const SCALAR: u32 = 0x1000_0000;
/// `JB_FOBJECT`: the container holds keys and values.
const OBJECT: u32 = 0x2000_0000;
/// `JB_FARRAY`: the container holds values only.
const ARRAY: u32 = 0x4000_0000;

/// `JENTRY_OFFLENMASK`: the entry's length or end offset.
const OFFSET: u32 = 0x0FFF_FFFF;
/// `JENTRY_HAS_OFF`: the word holds an end offset, not a length.
const IS_END: u32 = 0x8000_0000;

const fn malformed(what: &'static str) -> ValueError {
    ValueError::Malformed { type_name: "jsonb", what }
}

/// Iterates over a container's entries in stored order.
#[derive(Clone)]
struct Entries<'a> {
    words: &'a [[u8; 4]],
    data: &'a [u8],
    /// Offset of the next entry in `data`.
    start: usize,
}

/// One key, element or value.
#[derive(Clone, Copy)]
struct Entry<'a> {
    kind: u32,
    bytes: &'a [u8],
    /// Offset of `bytes` in the container's data.
    start: usize,
}

impl<'a> Entries<'a> {
    fn next(&mut self) -> Result<Option<Entry<'a>>, ValueError> {
        let Some((&word, words)) = self.words.split_first() else { return Ok(None) };
        let word = u32::from_le_bytes(word);
        let start = self.start;
        let offset = (word & OFFSET) as usize;
        let end = if word & IS_END == 0 { start + offset } else { offset };
        let bytes = self.data.get(start..end).ok_or(malformed("an entry beyond its container"))?;
        (self.words, self.start) = (words, end);
        Ok(Some(Entry { kind: word >> 28 & 7, bytes, start }))
    }
}

impl<'a> Entry<'a> {
    /// Skips the alignment padding that precedes numerics and nested containers.
    fn padded(self) -> Result<&'a [u8], ValueError> {
        let padding = self.start.next_multiple_of(4) - self.start;
        self.bytes.get(padding..).ok_or(malformed("an entry shorter than its padding"))
    }
}

/// A container whose entries are still being printed.
struct Open<'a> {
    /// The keys of an object. Empty for arrays and scalars.
    keys: Entries<'a>,
    values: Entries<'a>,
    object: bool,
    /// A top-level scalar, which is printed without brackets.
    scalar: bool,
    first: bool,
}

impl<'a> Open<'a> {
    fn parse(bytes: &'a [u8]) -> Result<Self, ValueError> {
        let header = read_at::<u32>(bytes, 0).ok_or(malformed("no header of a container"))?;
        let count = (header & COUNT) as usize;
        let (object, scalar) = match header & !COUNT {
            OBJECT => (true, false),
            ARRAY => (false, false),
            word if word == ARRAY | SCALAR && count == 1 => (false, true),
            _ => return Err(malformed("neither an object nor an array")),
        };
        let total = if object { count * 2 } else { count };
        let split = bytes.get(4..).and_then(|bytes| bytes.split_at_checked(total * 4));
        let (words, data) = split.ok_or(malformed("more entries than bytes"))?;
        let words = words.as_chunks::<4>().0;
        let keys = words.get(..total - count).unwrap_or_default();
        let mut values = Entries { words, data, start: 0 };
        // All keys precede the values, so the first value starts where the last key ends.
        for _ in keys {
            values.next()?;
        }
        let keys = Entries { words: keys, data, start: 0 };
        Ok(Self { keys, values, object, scalar, first: true })
    }

    fn brackets(&self) -> [&'static [u8]; 2] {
        match (self.scalar, self.object) {
            (true, _) => [b"", b""],
            (false, true) => [b"{", b"}"],
            (false, false) => [b"[", b"]"],
        }
    }
}

/// A `jsonb` value, as `jsonb_out`.
pub(crate) fn jsonb(value: &[u8], out: &mut Vec<u8>) -> Result<(), ValueError> {
    let start = out.len();
    let outer = Open::parse(value)?;
    out.extend_from_slice(outer.brackets()[0]);
    let mut stack = vec![outer];
    while let Some(open) = stack.last_mut() {
        let Some(entry) = open.values.next()? else {
            out.extend_from_slice(open.brackets()[1]);
            stack.pop();
            continue;
        };
        if !open.first {
            out.extend_from_slice(b", ");
        }
        open.first = false;
        if let Some(key) = open.keys.next()? {
            if key.kind != 0 {
                return Err(malformed("a key that is not a string"));
            }
            write_json_string(key.bytes, out);
            out.extend_from_slice(b": ");
        }
        match entry.kind {
            0 => write_json_string(entry.bytes, out),
            1 => match Varlena::parse(entry.padded()?)? {
                Varlena::Plain(payload) => {
                    numeric(payload, out)?;
                    bounded(start, out)?;
                }
                _ => return Err(malformed("a compressed number")),
            },
            2 => out.extend_from_slice(b"false"),
            3 => out.extend_from_slice(b"true"),
            4 => out.extend_from_slice(b"null"),
            5 => {
                let inner = Open::parse(entry.padded()?)?;
                if inner.scalar {
                    return Err(malformed("a bare value within a container"));
                }
                out.extend_from_slice(inner.brackets()[0]);
                stack.push(inner);
            }
            _ => return Err(malformed("an entry of unknown kind")),
        }
    }
    Ok(())
}

/// Appends a string with JSON's quotes and escapes, as `escape_json` does.
pub fn write_json_string(text: &[u8], out: &mut Vec<u8>) {
    out.reserve(text.len() + 2);
    out.push(b'"');
    for &byte in text {
        match byte {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            8 => out.extend_from_slice(b"\\b"),
            b'\t' => out.extend_from_slice(b"\\t"),
            b'\n' => out.extend_from_slice(b"\\n"),
            12 => out.extend_from_slice(b"\\f"),
            b'\r' => out.extend_from_slice(b"\\r"),
            0..32 => {
                out.extend_from_slice(b"\\u00");
                digits::hex(&[byte], out);
            }
            _ => out.push(byte),
        }
    }
    out.push(b'"');
}
