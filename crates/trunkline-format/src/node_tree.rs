//! **Node trees**: the text that PostgreSQL stores in columns of type `pg_node_tree` (`nodeToString`).
//!
//! Defaults, check constraints, index expressions, partition bounds and the queries of views are stored
//! as the parse nodes of the server. Which fields a node has depends on the version, so this reader
//! knows none of them, and its callers look fields up by name:
//!
//! ```
//! use trunkline_format::node_tree::NodeValue;
//!
//! let text = "{NULLTEST :arg {VAR :varno 1 :varattno 2} :nulltesttype 0 :argisrow false}";
//! let tree = NodeValue::parse(text.as_bytes()).expect("a node tree");
//! let test = tree.node().expect("a node");
//! assert_eq!(test.kind(), "NULLTEST");
//! assert_eq!(test.number("nulltesttype"), Some(0));
//! assert_eq!(test.field("arg").and_then(NodeValue::node).expect("a node").kind(), "VAR");
//! ```
//!
//! Any bytes give a tree or an error. The depth is limited, so that a damaged value can't exhaust the
//! stack.

use std::fmt;

/// The maximum depth of a tree. The server has no limit but its stack; its own views stay below 50.
const DEPTH_MAX: usize = 500;

/// Why a text isn't a node tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NodeTreeError {
    /// The byte at which the reader stopped.
    pub offset: usize,
}

impl fmt::Display for NodeTreeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "invalid node tree at byte {}", self.offset)
    }
}

impl std::error::Error for NodeTreeError {}

/// A value in a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NodeValue {
    /// `<>`: no node, an empty list, or a null string.
    Null,
    /// `{KIND :field value …}`.
    Node(Node),
    /// `(…)`, also of numbers: `(i 1 2)`, `(o 1 2)`, `(b 1 2)` for integers, OIDs and bit sets.
    List(Vec<NodeValue>),
    /// A number, a word or a string, without its escapes. A string of a list is in double quotes,
    /// which are kept, because `"1"` and `1` differ.
    Token(Vec<u8>),
    /// The bytes of a datum: `4 [ 1 0 0 0 ]`.
    Datum(Vec<u8>),
}

/// A node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    kind: String,
    fields: Vec<(String, NodeValue)>,
}

impl Node {
    /// Its kind, such as `OPEXPR`.
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// A field; `None` if this version doesn't have it.
    pub fn field(&self, name: &str) -> Option<&NodeValue> {
        self.fields.iter().find(|(field, _)| field == name).map(|(_, value)| value)
    }

    /// A field that is a node.
    pub fn child(&self, name: &str) -> Option<&Node> {
        self.field(name)?.node()
    }

    /// The elements of a field that is a list; none if it is null or missing.
    pub fn list(&self, name: &str) -> &[NodeValue] {
        match self.field(name) {
            Some(NodeValue::List(elements)) => elements,
            _ => &[],
        }
    }

    /// The nodes of a field that is a list.
    pub fn nodes(&self, name: &str) -> impl Iterator<Item = &Node> {
        self.list(name).iter().filter_map(NodeValue::node)
    }

    /// A field that is a number, such as an enum or an OID.
    pub fn number(&self, name: &str) -> Option<i64> {
        match self.field(name)? {
            NodeValue::Token(token) => str::from_utf8(token).ok()?.parse().ok(),
            _ => None,
        }
    }

    /// A field that is `true`. Others, and a missing one, are false.
    pub fn flag(&self, name: &str) -> bool {
        matches!(self.field(name), Some(NodeValue::Token(token)) if token == b"true")
    }

    /// A field that is a string or a word, without quotes.
    pub fn text(&self, name: &str) -> Option<&[u8]> {
        match self.field(name)? {
            NodeValue::Token(token) => Some(token),
            _ => None,
        }
    }
}

impl NodeValue {
    /// Reads a tree.
    ///
    /// # Errors
    /// The text isn't one, or is nested too deeply.
    pub fn parse(text: &[u8]) -> Result<Self, NodeTreeError> {
        let mut reader = Reader { text, at: 0 };
        let token = reader.token();
        let value = reader.value(token, 0)?;
        match reader.token() {
            None => Ok(value),
            Some(_) => Err(reader.error()),
        }
    }

    /// The node, if it is one.
    pub fn node(&self) -> Option<&Node> {
        match self {
            Self::Node(node) => Some(node),
            _ => None,
        }
    }

    /// The elements; none unless it is a list.
    pub fn elements(&self) -> &[Self] {
        match self {
            Self::List(elements) => elements,
            _ => &[],
        }
    }
}

/// Splits the text into tokens as `pg_strtok` does.
struct Reader<'t> {
    text: &'t [u8],
    at: usize,
}

fn is_special(byte: u8) -> bool {
    matches!(byte, b'(' | b')' | b'{' | b'}')
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'\t')
}

impl<'t> Reader<'t> {
    fn error(&self) -> NodeTreeError {
        NodeTreeError { offset: self.at }
    }

    /// The next token with its escapes. Parentheses and braces are tokens of their own.
    fn token(&mut self) -> Option<&'t [u8]> {
        while self.text.get(self.at).is_some_and(|&byte| is_space(byte)) {
            self.at += 1;
        }
        let start = self.at;
        let first = *self.text.get(start)?;
        self.at += 1;
        if is_special(first) {
            return self.text.get(start..self.at);
        }
        self.at = start;
        while let Some(&byte) = self.text.get(self.at) {
            match byte {
                b'\\' if self.at + 1 < self.text.len() => self.at += 2,
                _ if is_space(byte) || is_special(byte) => break,
                _ => self.at += 1,
            }
        }
        self.text.get(start..self.at)
    }

    /// The token after the current one, which stays the next one.
    fn peek(&mut self) -> Option<&'t [u8]> {
        let at = self.at;
        let token = self.token();
        self.at = at;
        token
    }

    fn value(&mut self, token: Option<&'t [u8]>, depth: usize) -> Result<NodeValue, NodeTreeError> {
        if depth > DEPTH_MAX {
            return Err(self.error());
        }
        match token {
            None | Some(b")" | b"}") => Err(self.error()),
            Some(b"<>") => Ok(NodeValue::Null),
            Some(b"{") => self.node(depth).map(NodeValue::Node),
            Some(b"(") => self.list(depth),
            Some(token) => match self.peek() {
                Some(b"[") => self.datum(),
                _ => Ok(NodeValue::Token(unescaped(token))),
            },
        }
    }

    fn node(&mut self, depth: usize) -> Result<Node, NodeTreeError> {
        let kind = self.token().filter(|kind| kind.iter().all(u8::is_ascii_alphanumeric));
        let kind = kind.and_then(|kind| String::from_utf8(kind.to_vec()).ok());
        let kind = kind.ok_or_else(|| self.error())?;
        let mut fields = Vec::new();
        loop {
            let name = match self.token() {
                Some(b"}") => return Ok(Node { kind, fields }),
                Some([b':', name @ ..]) => String::from_utf8(name.to_vec()),
                _ => return Err(self.error()),
            };
            let name = name.map_err(|_| self.error())?;
            // A field without a value is an empty string in some versions.
            let value = match self.peek() {
                Some([b':', ..] | b"}") => NodeValue::Null,
                _ => {
                    let token = self.token();
                    self.value(token, depth + 1)?
                }
            };
            fields.push((name, value));
        }
    }

    fn list(&mut self, depth: usize) -> Result<NodeValue, NodeTreeError> {
        let mut elements = Vec::new();
        // The kind of a list of numbers says nothing that its user doesn't know.
        if matches!(self.peek(), Some(b"i" | b"o" | b"b" | b"x")) {
            self.token();
        }
        loop {
            match self.token() {
                Some(b")") => return Ok(NodeValue::List(elements)),
                token => elements.push(self.value(token, depth + 1)?),
            }
        }
    }

    /// The bytes in brackets, which are printed as signed numbers.
    fn datum(&mut self) -> Result<NodeValue, NodeTreeError> {
        self.token();
        let mut bytes = Vec::new();
        loop {
            let token = self.token().ok_or_else(|| self.error())?;
            if token == b"]" {
                return Ok(NodeValue::Datum(bytes));
            }
            let number = str::from_utf8(token).ok().and_then(|text| text.parse::<i16>().ok());
            let byte = number.filter(|number| (-128..=255).contains(number));
            bytes.push(byte.ok_or_else(|| self.error())? as u8);
        }
    }
}

/// A token without its escapes.
fn unescaped(token: &[u8]) -> Vec<u8> {
    let mut text = Vec::with_capacity(token.len());
    let mut bytes = token.iter();
    while let Some(&byte) = bytes.next() {
        match byte {
            b'\\' => text.extend(bytes.next()),
            _ => text.push(byte),
        }
    }
    // `""` is an empty string.
    if text == b"\"\"" { Vec::new() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_data::XorShift;

    const CONSTANT: &str = "{CONST :consttype 25 :consttypmod -1 :constisnull false :location -1 \
                            :constvalue 6 [ 24 0 0 0 -61 -87 ]}";

    #[test]
    fn nodes_lists_and_datums_are_read() {
        let text =
            format!("({{ALIAS :aliasname my\\ name :colnames (\"a\" \"b\\)\")}} {CONSTANT} <>)");
        let tree = NodeValue::parse(text.as_bytes()).expect("a tree");
        let [alias, constant, NodeValue::Null] = tree.elements() else { panic!("{tree:?}") };
        let alias = alias.node().expect("a node");
        assert_eq!((alias.kind(), alias.text("aliasname")), ("ALIAS", Some(&b"my name"[..])));
        let names: Vec<_> = alias.list("colnames").to_vec();
        let expected = ["\"a\"", "\"b)\""].map(|name| NodeValue::Token(name.into()));
        assert_eq!(names, expected);
        let constant = constant.node().expect("a node");
        assert_eq!(constant.number("consttypmod"), Some(-1));
        let value = NodeValue::Datum(b"\x18\0\0\0\xC3\xA9".to_vec());
        assert_eq!(constant.field("constvalue"), Some(&value));
        assert!(!constant.flag("constisnull") && constant.field("other").is_none());
    }

    #[test]
    fn what_is_not_a_tree_is_an_error() {
        for text in ["", "{", "{A", "{A :b", "{A b}", "(", "({A}", "{A} {B}", "3 [ 1", "3 [ x ]"] {
            assert!(NodeValue::parse(text.as_bytes()).is_err(), "{text}");
        }
        let deep = "(".repeat(100_000);
        assert!(NodeValue::parse(deep.as_bytes()).is_err());
    }

    #[test]
    fn changed_bytes_never_panic() {
        let mut random = XorShift(7);
        for _ in 0..2_000 {
            let mut text = CONSTANT.as_bytes().to_vec();
            for _ in 0..3 {
                let at = random.next() as usize % text.len();
                text[at] = random.next() as u8;
            }
            let _ = NodeValue::parse(&text);
        }
    }
}
