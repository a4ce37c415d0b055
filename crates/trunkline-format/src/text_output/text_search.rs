//! `tsvector` and `tsquery`: words with their positions, and trees of operators over words.
//!
//! A query is stored in prefix (Polish) notation. Each operator is immediately followed by its
//! right operand, and contains the distance to its left operand. We only print parentheses where
//! they are necessary. Instead of using recursion, we keep a stack of what is still to be printed.
//! We stop with an error after as many items as the query contains, so that a damaged query can't
//! cause an endless loop.
//!
//! Mirrors PostgreSQL's `tsearch/ts_type.h`, `utils/adt/tsvector.c` and `utils/adt/tsquery.c`.

use super::digits;
use super::error::ValueError;
use super::quote::doubled;
use super::reader::Reader;
use crate::align::Align;
use crate::little_endian::read_at;

/// A word in quotes.
fn quoted(word: &[u8], out: &mut Vec<u8>) {
    doubled(word, b'\'', b"'\\", out);
}

/// A `tsvector`: `'word':1A,2 'other'`.
pub(super) fn tsvector(value: &[u8], out: &mut Vec<u8>) -> Result<(), ValueError> {
    let mut reader = Reader::new("tsvector", value);
    let count = usize::try_from(reader.read::<i32>()?).ok().and_then(|count| count.checked_mul(4));
    let entries = reader.take(count.unwrap_or(usize::MAX))?;
    let data = reader.rest();
    // Words don't overlap, so their total length can't exceed the data's.
    let mut left = data.len();
    for (at, &entry) in entries.as_chunks::<4>().0.iter().enumerate() {
        digits::separate(at, b" ", out);
        let entry = u32::from_le_bytes(entry);
        let (start, length) = ((entry >> 12) as usize, (entry >> 1 & 0x7FF) as usize);
        let end = start + length;
        left = left.checked_sub(length).ok_or_else(|| reader.error("words that overlap"))?;
        quoted(data.get(start..end).ok_or_else(|| reader.error("a word beyond its end"))?, out);
        if entry & 1 == 1 {
            // The entries are whole words, so the data is aligned like the value.
            let count = positions(data, Align::Short.up(end), out)
                .ok_or_else(|| reader.error("a position beyond its end"))?;
            left = left.checked_sub(count).ok_or_else(|| reader.error("words that overlap"))?;
        }
    }
    Ok(())
}

/// `:1A,2`: a count, followed by positions with their weights. Returns the count.
fn positions(data: &[u8], at: usize, out: &mut Vec<u8>) -> Option<usize> {
    let count = usize::from(read_at::<u16>(data, at)?);
    for n in 1..=count {
        let place = read_at::<u16>(data, at + 2 * n)?;
        out.push(if n == 1 { b':' } else { b',' });
        digits::unsigned(u64::from(place & 0x3FFF), out);
        match place >> 14 {
            3 => out.push(b'A'),
            2 => out.push(b'B'),
            1 => out.push(b'C'),
            _ => {}
        }
    }
    Some(count)
}

/// Size of a query item (`QueryItem`) in bytes.
const ITEM: usize = 12;
/// `OP_PHRASE`.
const PHRASE: u8 = 4;

/// Output that is still pending.
enum Task {
    /// Print an item. The fields are the item's index, the precedence of the operator around it,
    /// and whether it is the right operand of a phrase operator.
    Item(usize, u8, bool),
    /// `)`.
    Close,
    /// A binary operator, and the distance if it is a phrase operator.
    Operator(u8, u16),
}

/// An operator's precedence (`OP_PRIORITY`); higher binds tighter.
fn priority(operator: u8) -> Option<u8> {
    match operator {
        1 => Some(4),
        2 => Some(2),
        3 => Some(1),
        PHRASE => Some(3),
        _ => None,
    }
}

/// A `tsquery`: `'a' & !'b':*A`.
pub(super) fn tsquery(value: &[u8], out: &mut Vec<u8>) -> Result<(), ValueError> {
    let mut reader = Reader::new("tsquery", value);
    let count = usize::try_from(reader.read::<i32>()?).unwrap_or(usize::MAX);
    let items = reader.take(count.saturating_mul(ITEM))?.as_chunks::<ITEM>().0;
    let operands = reader.rest();
    let (mut left, mut words) = (items.len(), operands.len());
    let mut tasks = if items.is_empty() { vec![] } else { vec![Task::Item(0, 0, false)] };
    while let Some(task) = tasks.pop() {
        match task {
            Task::Close => out.extend_from_slice(b" )"),
            Task::Operator(PHRASE, 1) => out.extend_from_slice(b" <-> "),
            Task::Operator(PHRASE, distance) => {
                out.extend_from_slice(b" <");
                digits::unsigned(u64::from(distance), out);
                out.extend_from_slice(b"> ");
            }
            Task::Operator(operator, _) => {
                out.extend_from_slice(if operator == 2 { b" & " } else { b" | " });
            }
            Task::Item(at, around, right_of_phrase) => {
                left = left.checked_sub(1).ok_or_else(|| reader.error("its items form no tree"))?;
                let item = items.get(at).ok_or_else(|| reader.error("an item beyond its end"))?;
                let written = match item {
                    [1, ..] => operand(item, operands, &mut words, out),
                    [2, ..] => operator(item, at, around, right_of_phrase, &mut tasks, out),
                    _ => None,
                };
                written.ok_or_else(|| reader.error("an item that means nothing"))?;
            }
        }
    }
    Ok(())
}

/// Prints a word, followed by something like `:*AB` if it is a prefix match or has weights. No two
/// operands share any bytes, so their total length can't exceed the size of the query. We keep
/// track of this in `left`, to limit how much is printed for a damaged query.
fn operand(item: &[u8; ITEM], operands: &[u8], left: &mut usize, out: &mut Vec<u8>) -> Option<()> {
    let &[_, weight, prefix, _, _, _, _, _, a, b, c, d] = item;
    let place = u32::from_le_bytes([a, b, c, d]);
    let (start, length) = ((place >> 12) as usize, (place & 0xFFF) as usize);
    *left = left.checked_sub(length)?;
    quoted(operands.get(start..start + length)?, out);
    if weight == 0 && prefix == 0 {
        return Some(());
    }
    out.push(b':');
    if prefix != 0 {
        out.push(b'*');
    }
    let letters = b"DCBA".iter().enumerate().rev();
    out.extend(letters.filter(|(bit, _)| weight >> bit & 1 == 1).map(|(_, letter)| letter));
    Some(())
}

/// Writes everything that has to be printed before the operands of an operator, and pushes tasks
/// for the rest, in reverse order.
fn operator(
    item: &[u8; ITEM],
    at: usize,
    around: u8,
    right_of_phrase: bool,
    tasks: &mut Vec<Task>,
    out: &mut Vec<u8>,
) -> Option<()> {
    let &[_, operator, d, e, a, b, c, f, ..] = item;
    let priority = priority(operator)?;
    let distance = u16::from_le_bytes([d, e]);
    let left = at.checked_add(u32::from_le_bytes([a, b, c, f]) as usize)?;
    if priority < around || operator == PHRASE && right_of_phrase {
        out.extend_from_slice(b"( ");
        tasks.push(Task::Close);
    }
    if operator == 1 {
        out.push(b'!');
        tasks.push(Task::Item(at + 1, priority, false));
        return Some(());
    }
    tasks.push(Task::Item(at + 1, priority, operator == PHRASE));
    tasks.push(Task::Operator(operator, distance));
    tasks.push(Task::Item(left, priority, false));
    Some(())
}
