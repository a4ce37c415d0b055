//! `jsonb`: builds the containers that values are stored in, which
//! [`crate::text_output`] describes.
//!
//! The keys of an object are sorted by length, then by bytes. If a key occurs twice, its last value
//! wins. The number of entries precedes the entries, so we build a tree first. It is a list of nodes
//! that refer to each other by number, and we write it without recursion.
//!
//! Mirrors `convertJsonbValue` of PostgreSQL's `utils/adt/jsonb_util.c`.

use super::error::InputError;
use super::json::{Sink, parse};
use super::numeric::numeric;

/// `JB_FSCALAR`, `JB_FOBJECT` and `JB_FARRAY`: flags in a container's header.
const SCALAR: u32 = 0x1000_0000;
const OBJECT: u32 = 0x2000_0000;
const ARRAY: u32 = 0x4000_0000;
/// `JENTRY_HAS_OFF`: the entry has the offset of its end rather than its length.
const IS_END: u32 = 0x8000_0000;
/// `JENTRY_OFFLENMASK`: the largest length of an entry, and the most entries of a container.
const LENGTH_MAX: usize = 0x0FFF_FFFF;
/// `JB_OFFSET_STRIDE`: one in this number of entries has an offset.
const STRIDE: usize = 32;
/// The kinds of entries.
const STRING: u32 = 0;
const NUMERIC: u32 = 0x1000_0000;
const FALSE: u32 = 0x2000_0000;
const TRUE: u32 = 0x3000_0000;
const NULL: u32 = 0x4000_0000;
const CONTAINER: u32 = 0x5000_0000;

enum Node {
    Null,
    Boolean(bool),
    String(String),
    /// The payload of a numeric.
    Number(Vec<u8>),
    Array(Vec<usize>),
    /// Keys and values.
    Object(Vec<(String, usize)>),
}

/// Collects the values of a text.
struct Tree {
    nodes: Vec<Node>,
    /// The containers that are open.
    open: Vec<usize>,
    /// For each open container, the key of its next value.
    keys: Vec<String>,
    major: u32,
}

fn too_long() -> InputError {
    InputError::new("54000", "string too long to represent as jsonb string")
}

impl Tree {
    fn add(&mut self, node: Node) -> usize {
        let at = self.nodes.len();
        self.nodes.push(node);
        if let Some(&parent) = self.open.last() {
            match self.nodes.get_mut(parent) {
                Some(Node::Array(elements)) => elements.push(at),
                Some(Node::Object(pairs)) => {
                    let key = self.keys.last_mut().map(std::mem::take);
                    pairs.push((key.unwrap_or_default(), at));
                }
                _ => {}
            }
        }
        at
    }
}

impl Sink for Tree {
    const UNESCAPE: bool = true;

    fn open(&mut self, object: bool) {
        let node = if object { Node::Object(Vec::new()) } else { Node::Array(Vec::new()) };
        let at = self.add(node);
        self.open.push(at);
        self.keys.push(String::new());
    }

    fn close(&mut self) {
        self.keys.pop();
        let Some(at) = self.open.pop() else { return };
        if let Some(Node::Object(pairs)) = self.nodes.get_mut(at) {
            // The sort is stable, so of equal keys the last one is the one to keep.
            pairs.sort_by(|(one, _), (other, _)| {
                one.len().cmp(&other.len()).then_with(|| one.cmp(other))
            });
            pairs.reverse();
            pairs.dedup_by(|later, earlier| later.0 == earlier.0);
            pairs.reverse();
        }
    }

    fn key(&mut self, key: String) -> Result<(), InputError> {
        if key.len() > LENGTH_MAX {
            return Err(too_long());
        }
        if let Some(place) = self.keys.last_mut() {
            *place = key;
        }
        Ok(())
    }

    fn string(&mut self, text: String) -> Result<(), InputError> {
        if text.len() > LENGTH_MAX {
            return Err(too_long());
        }
        self.add(Node::String(text));
        Ok(())
    }

    fn number(&mut self, text: &str) -> Result<(), InputError> {
        let mut payload = Vec::new();
        numeric(text, -1, self.major, &mut payload)?;
        self.add(Node::Number(payload));
        Ok(())
    }

    fn boolean(&mut self, value: bool) {
        self.add(Node::Boolean(value));
    }

    fn null(&mut self) {
        self.add(Node::Null);
    }
}

/// A container that is being written.
struct Frame<'a> {
    entries: Entries<'a>,
    /// The number of entries that were written.
    done: usize,
    /// Where in the output its entries are.
    words_at: usize,
    /// The length of the entries' data so far.
    total: usize,
    /// Where in the output the container begins, with its padding.
    start: usize,
}

#[derive(Clone, Copy)]
enum Entries<'a> {
    /// A single value that isn't in a container.
    Scalar(usize),
    Array(&'a [usize]),
    Object(&'a [(String, usize)]),
}

/// One entry: a key, or a node.
enum Entry<'a> {
    Key(&'a str),
    Node(usize),
}

impl<'a> Entries<'a> {
    /// The header's flags and the number of values.
    fn header(self) -> (u32, usize) {
        match self {
            Self::Scalar(_) => (ARRAY | SCALAR, 1),
            Self::Array(elements) => (ARRAY, elements.len()),
            Self::Object(pairs) => (OBJECT, pairs.len()),
        }
    }

    /// Entry `at`: all keys come first.
    fn get(self, at: usize) -> Option<Entry<'a>> {
        match self {
            Self::Scalar(node) => (at == 0).then_some(Entry::Node(node)),
            Self::Array(elements) => elements.get(at).copied().map(Entry::Node),
            Self::Object(pairs) => match pairs.get(at) {
                Some((key, _)) => Some(Entry::Key(key)),
                None => pairs.get(at - pairs.len()).map(|&(_, node)| Entry::Node(node)),
            },
        }
    }
}

/// A `jsonb`.
pub(crate) fn jsonb(text: &str, major: u32, out: &mut Vec<u8>) -> Result<(), InputError> {
    let mut tree = Tree { nodes: Vec::new(), open: Vec::new(), keys: Vec::new(), major };
    parse(text, &mut tree)?;
    let base = out.len();
    let mut frames: Vec<Frame<'_>> = Vec::new();
    let outer = tree.nodes.first().and_then(entries).unwrap_or(Entries::Scalar(0));
    open(outer, base, &mut frames, out)?;
    while let Some(frame) = frames.last_mut() {
        let start = out.len();
        let entry = match frame.entries.get(frame.done) {
            Some(entry) => entry,
            None => {
                let (start, length) = (frame.start, out.len() - frame.start);
                frames.pop();
                if let Some(parent) = frames.last_mut() {
                    finish_entry(parent, CONTAINER, length, out)?;
                }
                debug_assert!(start <= out.len());
                continue;
            }
        };
        let node = match entry {
            Entry::Key(key) => {
                out.extend_from_slice(key.as_bytes());
                finish_entry(frame, STRING, key.len(), out)?;
                continue;
            }
            Entry::Node(node) => tree.nodes.get(node).unwrap_or(&Node::Null),
        };
        let kind = match node {
            Node::Null => NULL,
            Node::Boolean(false) => FALSE,
            Node::Boolean(true) => TRUE,
            Node::String(text) => {
                out.extend_from_slice(text.as_bytes());
                STRING
            }
            Node::Number(payload) => {
                pad(base, out);
                // The number has a varlena header of its own.
                let word = ((payload.len() + 4) as u32) << 2;
                out.extend_from_slice(&word.to_le_bytes());
                out.extend_from_slice(payload);
                NUMERIC
            }
            Node::Array(_) | Node::Object(_) => {
                if let Some(inner) = entries(node) {
                    open(inner, base, &mut frames, out)?;
                }
                continue;
            }
        };
        let length = out.len() - start;
        finish_entry(frame, kind, length, out)?;
    }
    Ok(())
}

fn entries(node: &Node) -> Option<Entries<'_>> {
    match node {
        Node::Array(elements) => Some(Entries::Array(elements)),
        Node::Object(pairs) => Some(Entries::Object(pairs)),
        _ => None,
    }
}

/// Pads to a multiple of four bytes from `base`.
fn pad(base: usize, out: &mut Vec<u8>) {
    let length = (out.len() - base).next_multiple_of(4);
    out.resize(base + length, 0);
}

/// Writes a container's header, and leaves room for its entries.
fn open<'a>(
    entries: Entries<'a>,
    base: usize,
    frames: &mut Vec<Frame<'a>>,
    out: &mut Vec<u8>,
) -> Result<(), InputError> {
    let start = out.len();
    pad(base, out);
    let (flags, count) = entries.header();
    if count > LENGTH_MAX {
        let what = if flags == OBJECT { "object pairs" } else { "array elements" };
        let message = format!("number of jsonb {what} exceeds the maximum allowed ({LENGTH_MAX})");
        return Err(InputError::new("54000", message));
    }
    out.extend_from_slice(&(flags | count as u32).to_le_bytes());
    let words = if flags == OBJECT { count * 2 } else { count };
    let words_at = out.len();
    out.resize(words_at + words * 4, 0);
    frames.push(Frame { entries, done: 0, words_at, total: 0, start });
    Ok(())
}

/// Fills in the word of the entry whose data has just been written.
fn finish_entry(
    frame: &mut Frame<'_>,
    kind: u32,
    length: usize,
    out: &mut [u8],
) -> Result<(), InputError> {
    frame.total += length;
    if frame.total > LENGTH_MAX {
        let what = match frame.entries {
            Entries::Object(_) => "object",
            _ => "array",
        };
        let message = format!(
            "total size of jsonb {what} elements exceeds the maximum of {LENGTH_MAX} bytes"
        );
        return Err(InputError::new("54000", message));
    }
    let word = match frame.done.is_multiple_of(STRIDE) {
        true => kind | IS_END | frame.total as u32,
        false => kind | length as u32,
    };
    let at = frame.words_at + frame.done * 4;
    if let Some(place) = out.get_mut(at..at + 4) {
        place.copy_from_slice(&word.to_le_bytes());
    }
    frame.done += 1;
    Ok(())
}
