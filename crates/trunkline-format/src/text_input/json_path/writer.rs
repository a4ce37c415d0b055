//! The stored form of paths. How it is laid out is in the module that prints it.
//!
//! Offsets are relative to the item that has them. An item begins with a byte for its kind, which may be
//! anywhere. The offset of the next item follows at a multiple of four, counted with the headers, and is
//! written when that is known (`flattenJsonPathParseItem`).

use super::tree::{JsonPath, PathChain, PathItem};

/// `JSONPATH_VERSION` and `JSONPATH_LAX`.
const VERSION: u32 = 1;
const LAX: u32 = 0x8000_0000;

pub(super) fn store(path: &JsonPath, out: &mut Vec<u8>) {
    let header = VERSION | if path.lax { LAX } else { 0 };
    out.extend_from_slice(&header.to_le_bytes());
    let start = out.len();
    Writer { start, out }.chain(&path.items);
}

struct Writer<'a> {
    /// Where the items begin in `out`.
    start: usize,
    out: &'a mut Vec<u8>,
}

impl Writer<'_> {
    fn place(&self) -> usize {
        self.out.len() - self.start
    }

    fn align(&mut self) {
        // The header of the value and that of the path together have eight bytes.
        let missing = self.place().next_multiple_of(4) - self.place();
        self.out.resize(self.out.len() + missing, 0);
    }

    fn word(&mut self, word: u32) {
        self.out.extend_from_slice(&word.to_le_bytes());
    }

    fn set(&mut self, at: usize, distance: usize) {
        let place = self.start + at;
        if let Some(place) = self.out.get_mut(place..place + 4) {
            // A path has less than 2^30 bytes.
            place.copy_from_slice(&(distance as u32).to_le_bytes());
        }
    }

    /// Writes items one behind the other, and returns the place of the first one.
    fn chain(&mut self, items: &PathChain) -> usize {
        let mut places: Vec<usize> = Vec::with_capacity(items.len());
        for item in items {
            let place = self.item(item);
            if let Some(&before) = places.last() {
                self.set(next_word(before), place - before);
            }
            places.push(place);
        }
        places.first().copied().unwrap_or_default()
    }

    /// Writes an operand, and its place into a word that has been reserved.
    fn operand(&mut self, item: usize, reserved: usize, operand: &PathChain) {
        let place = self.chain(operand);
        self.set(reserved, place - item);
    }

    fn item(&mut self, item: &PathItem) -> usize {
        let place = self.place();
        self.out.push(kind(item));
        self.align();
        self.word(0);
        match item {
            PathItem::Null
            | PathItem::Root
            | PathItem::Current
            | PathItem::Last
            | PathItem::AnyArray
            | PathItem::AnyKey => {}
            PathItem::String(text) | PathItem::Key(text) | PathItem::Variable(text) => {
                self.text(text);
            }
            PathItem::Number(payload) => {
                let header = ((payload.len() + 4) as u32) << 2;
                self.word(header);
                self.out.extend_from_slice(payload);
            }
            PathItem::Bool(value) => self.out.push(u8::from(*value)),
            PathItem::Any(first, last) => {
                self.word(*first);
                self.word(*last);
            }
            PathItem::Subscripts(list) => {
                self.word(list.len() as u32);
                let words = self.place();
                self.out.resize(self.out.len() + list.len() * 8, 0);
                for (at, (from, to)) in list.iter().enumerate() {
                    self.operand(place, words + at * 8, from);
                    if let Some(to) = to {
                        self.operand(place, words + at * 8 + 4, to);
                    }
                }
            }
            PathItem::Binary(_, left, right) => {
                let words = self.reserved(2);
                self.operand(place, words, left);
                self.operand(place, words + 4, right);
            }
            PathItem::Unary(_, operand) => {
                let words = self.reserved(1);
                self.operand(place, words, operand);
            }
            PathItem::Method(operator, arguments) => {
                let count = operator.operands();
                let words = self.reserved(count);
                for (at, argument) in arguments.iter().enumerate().take(count) {
                    self.operand(place, words + at * 4, argument);
                }
            }
            PathItem::LikeRegex(operand, pattern, flags) => {
                self.word(*flags);
                let words = self.reserved(1);
                self.text(pattern);
                self.operand(place, words, operand);
            }
        }
        place
    }

    fn reserved(&mut self, words: usize) -> usize {
        let place = self.place();
        self.out.resize(self.out.len() + words * 4, 0);
        place
    }

    fn text(&mut self, text: &str) {
        self.word(text.len() as u32);
        self.out.extend_from_slice(text.as_bytes());
        self.out.push(0);
    }
}

/// The place of the word with the distance to the next item, for an item at this place.
fn next_word(item: usize) -> usize {
    (item + 1).next_multiple_of(4)
}

/// The number of an item's kind (`JsonPathItemType`).
fn kind(item: &PathItem) -> u8 {
    match item {
        PathItem::Null => 0,
        PathItem::String(_) => 1,
        PathItem::Number(_) => 2,
        PathItem::Bool(_) => 3,
        PathItem::AnyArray => 21,
        PathItem::AnyKey => 22,
        PathItem::Subscripts(_) => 23,
        PathItem::Any(..) => 24,
        PathItem::Key(_) => 25,
        PathItem::Current => 26,
        PathItem::Root => 27,
        PathItem::Variable(_) => 28,
        PathItem::Last => 40,
        PathItem::LikeRegex(..) => 42,
        PathItem::Binary(operator, ..)
        | PathItem::Unary(operator, _)
        | PathItem::Method(operator, _) => *operator as u8,
    }
}
