//! The parts of a `json`: the elements of its outermost array, or the pairs of its outermost object.
//!
//! ```text
//!   {"a": [1, 2], "b": "x\ny"}     a: an array, the text `[1, 2]`
//!                                  b: a string, the text `"x\ny"`, its characters x, newline, y
//! ```
//!
//! A `json` keeps the text that was written, so a part of it is a part of that text.

use std::ops::Range;

use super::error::InputError;
use super::json::{Sink, parse};

/// What a value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JsonKind {
    /// `{…}`.
    Object,
    /// `[…]`.
    Array,
    /// `"…"`.
    String,
    /// A number.
    Number,
    /// `true` or `false`.
    Boolean,
    /// `null`.
    Null,
}

/// A value in an array or an object, or a value that is neither.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonPart {
    /// Its key in an object; empty if keys were not asked for.
    pub key: String,
    /// What it is.
    pub kind: JsonKind,
    /// Where its text is, in bytes.
    pub place: Range<usize>,
    /// The characters of a string, without escapes.
    pub string: String,
}

/// A `json` and its parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonParts {
    /// The value itself.
    pub whole: JsonPart,
    /// The elements of an array or the values of an object, in the order of the text.
    pub parts: Vec<JsonPart>,
}

impl JsonParts {
    /// Reads a text. With `unescape`, escapes in strings are replaced, also in strings within the
    /// parts; otherwise keys and strings are left empty.
    ///
    /// # Errors
    /// 22P02: it isn't valid JSON. 22P05: with `unescape`, a string has the character `\u0000`.
    pub fn parse(text: &str, unescape: bool) -> Result<Self, InputError> {
        match unescape {
            true => Collector::<true>::collect(text),
            false => Collector::<false>::collect(text),
        }
    }
}

/// Collects the parts at the first level.
#[derive(Default)]
struct Collector<const UNESCAPE: bool> {
    depth: usize,
    key: String,
    at: Range<usize>,
    whole: Option<JsonPart>,
    parts: Vec<JsonPart>,
}

impl<const UNESCAPE: bool> Collector<UNESCAPE> {
    fn collect(text: &str) -> Result<JsonParts, InputError> {
        let mut collector = Self::default();
        parse(text, &mut collector)?;
        let whole = collector.whole.ok_or_else(|| InputError::syntax("json", text))?;
        Ok(JsonParts { whole, parts: collector.parts })
    }

    fn begin(&mut self, kind: JsonKind, string: String) {
        let place = self.at.clone();
        match self.depth {
            0 => self.whole = Some(JsonPart { key: String::new(), kind, place, string }),
            1 => {
                let key = std::mem::take(&mut self.key);
                self.parts.push(JsonPart { key, kind, place, string });
            }
            _ => {}
        }
    }
}

impl<const UNESCAPE: bool> Sink for Collector<UNESCAPE> {
    const UNESCAPE: bool = UNESCAPE;

    fn at(&mut self, token: Range<usize>) {
        self.at = token;
    }

    fn open(&mut self, object: bool) {
        self.begin(if object { JsonKind::Object } else { JsonKind::Array }, String::new());
        self.depth += 1;
    }

    fn close(&mut self) {
        self.depth = self.depth.saturating_sub(1);
        let open = match self.depth {
            0 => self.whole.as_mut(),
            1 => self.parts.last_mut(),
            _ => None,
        };
        if let Some(part) = open {
            part.place.end = self.at.end;
        }
    }

    fn key(&mut self, key: String) -> Result<(), InputError> {
        if self.depth == 1 {
            self.key = key;
        }
        Ok(())
    }

    fn string(&mut self, text: String) -> Result<(), InputError> {
        self.begin(JsonKind::String, text);
        Ok(())
    }

    fn number(&mut self, _text: &str) -> Result<(), InputError> {
        self.begin(JsonKind::Number, String::new());
        Ok(())
    }

    fn boolean(&mut self, _value: bool) {
        self.begin(JsonKind::Boolean, String::new());
    }

    fn null(&mut self) {
        self.begin(JsonKind::Null, String::new());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Vec<String> {
        let found = JsonParts::parse(text, true).expect("valid");
        let show = |part: &JsonPart| {
            let place = text.get(part.place.clone()).expect("a place in the text");
            format!("{}|{:?}|{place}|{}", part.key, part.kind, part.string)
        };
        [&found.whole].into_iter().chain(&found.parts).map(show).collect()
    }

    #[test]
    fn parts_are_cut_out_of_the_text() {
        let text = r#" {"a": [1, {"b": [ ]} ] , "a" : "x\u00e9" ,"": {} } "#;
        let expected = [
            r#"|Object|{"a": [1, {"b": [ ]} ] , "a" : "x\u00e9" ,"": {} }|"#,
            r#"a|Array|[1, {"b": [ ]} ]|"#,
            r#"a|String|"x\u00e9"|xé"#,
            "|Object|{}|",
        ];
        assert_eq!(shown(text), expected);
        assert_eq!(shown(" -1.50 "), ["|Number|-1.50|"]);
        let elements =
            ["|Array|[null,true,[],\"\"]|", "|Null|null|", "|Boolean|true|", "|Array|[]|"];
        assert_eq!(shown("[null,true,[],\"\"]")[..4], elements);
    }

    #[test]
    fn escapes_matter_only_where_they_are_replaced() {
        let text = r#"[["\u0000"]]"#;
        assert_eq!(JsonParts::parse(text, true).expect_err("refused").code(), "22P05");
        assert_eq!(JsonParts::parse(text, false).expect("valid").parts.len(), 1);
    }
}
